package verify

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/projections/oracle"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
)

// Events is compared while the log is read, record by record, including retracted and retracting records, by
// fingerprints, so that no record needs to be kept. If a fingerprint differs, the log is read again up to there.

// perPrint is the number of seqs in a fingerprint; prints.sql has the same number.
const perPrint = 1000

// fingerprint is a number of rows, and the sum of their hashes.
type fingerprint struct{ rows, hash uint64 }

// prints are the fingerprints of every thousand seqs of the log.
type prints struct {
	all  []fingerprint
	unit unit
}

// unit has the records of a unit: a log is mapped together with the others of its transaction, and a unit has all of
// them.
type unit []oracle.Record

// add adds the next record, and returns the records of the unit if it is the last one.
func (u *unit) add(e chainlog.Entry, fold *oracle.Fold) (whole unit) {
	*u = append(*u, oracle.Record{Record: e.Record, Value: e.Value, Passed: fold.Skips(e.Record)})
	if e.GetBoundary() {
		whole, *u = *u, nil
	}
	return whole
}

// linesOf returns the expected lines of events for the records of a unit, each with its seq.
func linesOf(vaults *mapping.Vaults, unit []oracle.Record) iter.Seq2[uint64, string] {
	return func(yield func(uint64, string) bool) {
		for i, rows := range oracle.Rows(vaults, unit) {
			for j := range rows {
				if !yield(unit[i].GetSeq(), readmodel.EventsTable.Line(&rows[j], "writer")) {
					return
				}
			}
		}
	}
}

// add adds the next record, which the fold has.
func (p *prints) add(e chainlog.Entry, fold *oracle.Fold) {
	if (e.GetSeq()-1)%perPrint == 0 {
		p.all = append(p.all, fingerprint{})
	}
	for seq, line := range linesOf(fold.Vaults(), p.unit.add(e, fold)) {
		hash := sha256.Sum256([]byte(line))
		in := &p.all[(seq-1)/perPrint]
		in.rows++
		in.hash += binary.LittleEndian.Uint64(hash[:])
	}
}

// skippedBy returns what a generation records as skipped up to a seq.
func skippedBy(ctx context.Context, conn driver.Conn, seq uint64) (s oracle.Skipped, err error) {
	var vaults []string
	row := conn.QueryRow(readmodel.Parameters(ctx, numbers{"seq": seq}), question("skipped"))
	if err := row.Scan(&vaults, &s.From); err != nil {
		return s, fmt.Errorf("read what the generation skips: %w", err)
	}
	for _, v := range vaults {
		s.Vaults = append(s.Vaults, common.BytesToAddress([]byte(v)))
	}
	return s, nil
}

// hexWithout returns vaults for a report, without some.
func hexWithout(vaults, without []common.Address) (out []string) {
	for _, v := range vaults {
		if !slices.Contains(without, v) {
			out = append(out, v.Hex())
		}
	}
	return out
}

// againstLog compares events with the log's fingerprints, and row by row the first thousand seqs that differ.
func (v *verifier) againstLog(ctx context.Context) error {
	check := Check{Name: "events: all effects of the log"}
	found, err := v.printsOf(v.options.Progress.Asked(ctx, check.Name))
	if err != nil {
		return err
	}
	for thousand, want := range v.prints.all {
		if found[uint64(thousand)] == want {
			check.Compared += want.rows
			continue
		}
		if err := v.compareThousand(ctx, uint64(thousand), &check); err != nil {
			return err
		}
		break
	}
	v.report.Checks = append(v.report.Checks, check)
	return nil
}

// lineSQL returns the SQL of a row of events as text, in the format of linesOf.
func lineSQL() string { return readmodel.EventsTable.LineSQL("writer") }

func (v *verifier) printsOf(ctx context.Context) (map[uint64]fingerprint, error) {
	var rows []struct {
		Thousand uint64 `ch:"thousand"`
		Rows     uint64 `ch:"rows"`
		Print    uint64 `ch:"print"`
	}
	err := v.conn.Select(readmodel.Parameters(ctx, numbers{"to": v.report.Seq}), &rows,
		question("prints", "{line}", lineSQL()))
	if err != nil {
		return nil, fmt.Errorf("take the fingerprints of events: %w", err)
	}
	found := map[uint64]fingerprint{}
	for _, r := range rows {
		found[r.Thousand] = fingerprint{r.Rows, r.Print}
	}
	return found, nil
}

// errStop stops reading the log.
var errStop = errors.New("that is enough")

// compareThousand compares the rows of a thousand seqs one by one.
func (v *verifier) compareThousand(ctx context.Context, thousand uint64, check *Check) error {
	from, to := thousand*perPrint, min((thousand+1)*perPrint, v.report.Seq)
	var want []string
	var open unit
	err := v.log(ctx, chainlog.Position{}, v.report.Seq, func(e chainlog.Entry) error {
		for seq, line := range linesOf(v.fold.Vaults(), open.add(e, v.fold)) {
			if seq > from && seq <= to {
				want = append(want, line)
			}
		}
		if e.GetBoundary() && e.GetSeq() >= to {
			return errStop
		}
		return nil
	})
	if errors.Is(err, errStop) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("read the log up to seq %d again: %w", to, err)
	}
	ask := question("lines", "{line}", lineSQL())
	if err := check.compareLines(texts(ctx, v.conn, ask, numbers{"after": from, "to": to}),
		slices.Values(want)); err != nil {
		return err
	}
	if check.Difference == "" {
		check.Difference = fmt.Sprintf("the rows of seq %d to %d changed while they were compared; compare again", from+1, to)
	}
	return nil
}
