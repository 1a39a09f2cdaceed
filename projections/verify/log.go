package verify

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/projections/oracle"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
)

// The spine and the facts are what the log says, record by record. So they are
// compared while the log is read, the records that were taken back and those that
// take back too, by fingerprints, so that nothing needs to be kept of them. Where
// one differs, that part of the log is read again.

// appended are the tables that a record alone fills.
var appended = slices.Concat([]string{readmodel.Spine}, readmodel.Facts)

// perPrint is how many seqs a fingerprint is made of; prints.sql says the same.
const perPrint = 1000

// fingerprint is a number of rows, and the sum of their hashes.
type fingerprint struct{ rows, hash uint64 }

// prints are the fingerprints of each thousand seqs of the log, by table.
type prints struct {
	tables map[string][]fingerprint
	before []chainlog.Position // the position before each thousand
}

// add takes the next record, which stands after a position.
func (p *prints) add(e chainlog.Entry, after chainlog.Position, passed []common.Address) {
	if (e.GetSeq()-1)%perPrint == 0 {
		if p.tables == nil {
			p.tables = map[string][]fingerprint{}
		}
		for _, table := range appended {
			p.tables[table] = append(p.tables[table], fingerprint{})
		}
		p.before = append(p.before, after)
	}
	for table, line := range rowsOf(e, passed) {
		hash := sha256.Sum256([]byte(line))
		last := &p.tables[table][len(p.before)-1]
		last.rows++
		last.hash += binary.LittleEndian.Uint64(hash[:])
	}
}

// rowsOf gives what the tables are to say of a record, in words: the spine, and
// the facts if the record is a log that counts, of a vault that is not passed over.
func rowsOf(e chainlog.Entry, passed []common.Address) map[string]string {
	name, quarantined := oracle.Named(e.Record)
	block, at, hash, index, payload, over := uint64(0), uint64(0), []byte(nil), uint32(0), []byte(nil), false
	var vault, tx []byte
	switch {
	case e.GetLog() != nil:
		l := e.GetLog()
		block, at, hash, index = l.GetBlockNumber(), l.GetBlockTime(), l.GetBlockHash(), l.GetLogIndex()
		vault, tx = l.GetAddress(), l.GetTxHash()
		over = slices.Contains(passed, common.BytesToAddress(vault))
		if quarantined || name == "WithdrawalsSettled" {
			payload = e.Value
		}
	case e.GetBlock() != nil:
		block, at, hash = e.GetBlock().GetNumber(), e.GetBlock().GetTime(), e.GetBlock().GetHash()
	case e.GetVault() != nil:
		vault = e.GetVault().GetAddress()
		over = slices.Contains(passed, common.BytesToAddress(vault))
		payload = e.Value
	default:
		payload = e.Value
	}
	l, counts, _ := oracle.Read(e.Record)
	user := ownerOf(l.Event)
	out := map[string]string{readmodel.Spine: fmt.Sprintf("%d %d %d %s %s %d %d %d %d %x %d %x %x %x %d %x", e.GetSeq(), chainlog.Sign(e.Record), e.GetRetracts(), chainlog.TypeOf(e.Record), name,
		bit(e.GetBoundary()), bit(quarantined), bit(over), block, common.BytesToHash(hash), min(at, math.MaxUint32),
		common.BytesToAddress(vault).Bytes(), user[:], common.BytesToHash(tx), index, payload)}
	if counts && !over {
		if table, says := factOf(l); table != "" {
			out[table] = fmt.Sprintf("%d %d %d %x %s %d %d %x %d", e.GetSeq(), chainlog.Sign(e.Record), e.GetRetracts(), l.Vault[:], says, l.Block, l.Time, l.Tx[:], l.Index)
		}
	}
	return out
}

// factOf gives the table that has a log as a fact, and what it says of the event.
func factOf(l oracle.Log) (table, says string) {
	zero, none := new(common.Address), 0
	about := func(kind string, index any, user, receiver *common.Address, partner uint32, shares, assets any, expires uint64) (string, string) {
		return readmodel.WithdrawalEvents, fmt.Sprintf("%d %s %x %x %d %d %d %d", index, kind, user[:], receiver[:], partner, shares, assets, expires)
	}
	switch e := l.Event.(type) {
	case contracts.DepositAccepted:
		return readmodel.Deposits, fmt.Sprintf("%d %x %x %d %d %d", e.DepositID, e.Owner[:], e.Sender[:], e.PartnerID, e.Assets, e.Shares)
	case contracts.WithdrawalRequested:
		return about("requested", e.RequestIndex, &e.Owner, &e.Receiver, e.PartnerID, e.Shares, e.AssetsEstimate, e.ExpiresAt)
	case contracts.WithdrawalFunded:
		return about("funded", e.RequestIndex, &e.Owner, zero, 0, e.Shares, e.Assets, 0)
	case contracts.WithdrawalClaimed:
		return about("claimed", e.RequestIndex, &e.Owner, zero, 0, e.Shares, e.Assets, 0)
	case contracts.WithdrawalCancelled:
		return about("cancelled", e.RequestIndex, &e.Owner, zero, 0, e.Shares, none, 0)
	case contracts.WithdrawalExpired:
		return about("expired", e.RequestIndex, &e.Owner, zero, 0, e.Shares, none, 0)
	case contracts.NavUpdated:
		return readmodel.Navs, fmt.Sprintf("%d %d %d", e.NavPerShare, e.TotalAssets, e.TotalSupply)
	case contracts.DepositsSwept:
		return readmodel.Sweeps, fmt.Sprintf("%d %d %d", e.FromDepositID, e.ToDepositID, e.Assets)
	}
	return "", ""
}

// ownerOf is the user whom an event is about; zero for none.
func ownerOf(e contracts.Event) common.Address {
	switch e := e.(type) {
	case contracts.DepositAccepted:
		return e.Owner
	case contracts.WithdrawalRequested:
		return e.Owner
	case contracts.WithdrawalFunded:
		return e.Owner
	case contracts.WithdrawalClaimed:
		return e.Owner
	case contracts.WithdrawalCancelled:
		return e.Owner
	case contracts.WithdrawalExpired:
		return e.Owner
	}
	return common.Address{}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// passedVaults gives the vaults that a generation passes over up to a seq: those
// that joined after its tables were derived.
func passedVaults(ctx context.Context, conn driver.Conn, seq uint64) (vaults []common.Address, err error) {
	for payload, err := range texts(ctx, conn, question("passed"), numbers{"seq": seq}) {
		if err != nil {
			return nil, fmt.Errorf("read the vaults that are passed over: %w", err)
		}
		r := new(event.Record)
		if err := proto.Unmarshal([]byte(payload), r); err != nil || r.GetVault() == nil {
			continue // the comparison with the log finds the row
		}
		vaults = append(vaults, common.BytesToAddress(r.GetVault().GetAddress()))
	}
	return vaults, nil
}

// said compares a table with the log's fingerprints, and the rows of the first
// thousand that differs one by one.
func (v *verifier) said(ctx context.Context, table string) error {
	check := Check{Name: table + ": all that the log says"}
	found, err := v.printsOf(v.options.Progress.Asked(ctx, check.Name), table)
	if err != nil {
		return err
	}
	for thousand, want := range v.prints.tables[table] {
		if found[uint64(thousand)] == want {
			check.Compared += want.rows
			continue
		}
		if err := v.tellApart(ctx, table, uint64(thousand), &check); err != nil {
			return err
		}
		break
	}
	v.report.Checks = append(v.report.Checks, check)
	return nil
}

func (v *verifier) printsOf(ctx context.Context, table string) (map[uint64]fingerprint, error) {
	found := map[uint64]fingerprint{}
	ask := question("prints", "{lines}", question("lines_"+table))
	rows, err := v.conn.Query(readmodel.Parameters(ctx, numbers{"to": v.report.Seq}), ask)
	if err != nil {
		return nil, fmt.Errorf("take the fingerprints of %s: %w", table, err)
	}
	defer rows.Close()
	for rows.Next() {
		var thousand uint64
		var f fingerprint
		if err := rows.Scan(&thousand, &f.rows, &f.hash); err != nil {
			return nil, fmt.Errorf("take the fingerprints of %s: %w", table, err)
		}
		found[thousand] = f
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("take the fingerprints of %s: %w", table, err)
	}
	return found, nil
}

// tellApart compares the rows of a thousand seqs.
func (v *verifier) tellApart(ctx context.Context, table string, thousand uint64, check *Check) error {
	from, to := thousand*perPrint, min((thousand+1)*perPrint, v.report.Seq)
	var want []string
	err := v.log(ctx, v.prints.before[thousand], to, func(e chainlog.Entry) error {
		if line, has := rowsOf(e, v.passed)[table]; has {
			want = append(want, line)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the log from seq %d to %d again: %w", from+1, to, err)
	}
	ask := question("lines", "{lines}", question("lines_"+table))
	if err := check.compareLines(texts(ctx, v.conn, ask, numbers{"from": following(from), "to": to}), slices.Values(want)); err != nil {
		return err
	}
	if check.Difference == "" {
		check.Difference = fmt.Sprintf("the rows of seq %d to %d changed while they were compared; compare again", from+1, to)
	}
	return nil
}

// following is the seq after one. The first is 0, which no record has, so that a row
// that has it is found.
func following(seq uint64) uint64 {
	if seq == 0 {
		return 0
	}
	return seq + 1
}

// rowsAtOnce is the seqs whose rows are told apart at once: one of 8 bytes each in
// a set of the engine's, which stays far below its limit.
const rowsAtOnce = 16 << 20

// unique checks that a table has one row for a seq at most, and the spine one for each.
func (v *verifier) unique(ctx context.Context, table string) error {
	check := Check{Name: table + ": rows unique"}
	ctx = v.options.Progress.Asked(ctx, check.Name)
	var rows, seqs uint64
	for after := uint64(0); after < v.report.Seq; after += v.atOnce {
		to := min(after+v.atOnce, v.report.Seq)
		var r, s uint64
		if err := v.conn.QueryRow(readmodel.Parameters(ctx, numbers{"from": following(after), "to": to}), question("unique", "{table}", table)).Scan(&r, &s); err != nil {
			return fmt.Errorf("count the rows of %s from seq %d to %d: %w", table, after+1, to, err)
		}
		rows, seqs = rows+r, seqs+s
	}
	check.Compared = seqs
	if rows != seqs {
		check.Difference = fmt.Sprintf("%d rows of %d seqs", rows, seqs)
	}
	if table == readmodel.Spine && seqs != v.report.Seq {
		check.Difference = fmt.Sprintf("%d rows of %d seqs up to seq %d", rows, seqs, v.report.Seq)
	}
	v.report.Checks = append(v.report.Checks, check)
	return nil
}
