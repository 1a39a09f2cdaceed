package verify

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"math/big"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/projections/oracle"
	"github.com/navlog/navlog/schemas/readmodel"
)

const (
	// spineWait is how long a derived table may be ahead of the spine before that is an error.
	spineWait = time.Minute
	askAgain  = 50 * time.Millisecond
)

// ahead waits until the spine is where a derived table was found to be already.
func ahead(ctx context.Context, conn driver.Conn, table string, written uint64) error {
	for began := time.Now(); ; {
		seq, err := readmodel.LastSeq(ctx, conn, readmodel.Spine)
		if err != nil || seq >= written {
			return err
		}
		if time.Since(began) > spineWait {
			return fmt.Errorf("%s is written up to seq %d and the spine up to seq %d since %s: start `navlog project`, which ends the unit, and verify again", table, written, seq, spineWait)
		}
		if err := pause(ctx, askAgain); err != nil {
			return err
		}
	}
}

// tableSlices is into how many parts a derived table is cut by a hash of its rows: where one differs from the definition, its
// rows are held side by side, and must fit into the memory of a patient question.
const tableSlices = 1024

// definedColumns are those of a derived table that its definition gives, with enums as the words that the definition has, and in
// words what a row of them says.
var definedColumns = map[string]struct{ names, words string }{
	readmodel.Withdrawals: {
		"toString(list) AS list, user, key, requested_log, vault, request_index, owner, estimate, expires_ts, requested_block, funded_block, closed_block, toString(closed_by) AS closed_by",
		"list, lower(hex(user)), key, requested_log, lower(hex(vault)), request_index, lower(hex(owner)), estimate, expires_ts, requested_block, funded_block, closed_block, closed_by",
	},
	readmodel.Users: {
		"toString(list) AS list, vault, partner, key, user, first_block, first_ts, deposited, withdrawn",
		"list, lower(hex(vault)), partner, key, lower(hex(user)), first_block, first_ts, deposited, withdrawn",
	},
	readmodel.PartnerTotals: {
		"partner, vault, from_block, until_block, deposits, volume",
		"partner, lower(hex(vault)), from_block, until_block, deposits, volume",
	},
}

// defined compares a derived table with its definition in SQL over the facts: what
// is live in the one and not in the other, and what is live twice, both ways in
// one question, by hashes of 64 bits as the rows of facts are. And it must have one
// live cursor row, and no fence elsewhere.
func defined(ctx context.Context, conn driver.Conn, table string, progress Progress) (Check, error) {
	return inSlices(ctx, conn, table, tableSlices, progress)
}

func inSlices(ctx context.Context, conn driver.Conn, table string, slices uint64, progress Progress) (Check, error) {
	check := Check{Name: table + ": its definition"}
	ctx = progress.Asked(ctx, check.Name)
	var cursors int64
	var stray, rows, differing, slice uint64
	seq, err := asOfSpine(ctx, conn, table, "defined", numbers{"slices": slices}, &cursors, &stray, &rows, &differing, &slice)
	switch {
	case err != nil:
		return check, err
	case cursors != 1:
		check.Difference = fmt.Sprintf("it has %d live cursor rows, and must have one", cursors)
	case stray != 0:
		check.Difference = fmt.Sprintf("a row that is no cursor has a fence, of seq %d", stray)
	case differing == 0:
		check.Compared = rows
	default:
		check.Difference = fmt.Sprintf("rows differ as of seq %d, in %d of %d slices of the table", seq, differing, slices)
		var first string
		var found, wanted int64
		seq, err = asOfSpine(ctx, conn, table, "differing", numbers{"slices": slices, "slice": slice}, &first, &found, &wanted)
		if err != nil {
			return check, err
		}
		if found != wanted { // otherwise a unit has corrected it meanwhile
			check.Difference += fmt.Sprintf("; one such row as of seq %d is %q, which the table has %d times and its definition %d", seq, first, found, wanted)
		}
	}
	return check, nil
}

// asOfSpine asks a question about a derived table and its definition, whose answer begins with the seq up to which the table
// is written, until that is not above the spine's, which it gives.
func asOfSpine(ctx context.Context, conn driver.Conn, table, ask string, parameters numbers, into ...any) (seq uint64, err error) {
	sides := question("sides", "{columns}", definedColumns[table].names, "{cursor}", readmodel.CursorRow(table), "{table}", table, "{definition}", readmodel.Definition(table))
	text := question(ask, "{sides}", sides, "{words}", definedColumns[table].words)
	// As when it is derived: each thread has groups of its own, which share the memory.
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"max_threads": 2}))
	for {
		if seq, err = readmodel.LastSeq(ctx, conn, readmodel.Spine); err != nil {
			return 0, err
		}
		parameters["seq"] = seq
		var written uint64
		row := conn.QueryRow(readmodel.Parameters(ctx, parameters), text)
		if err := row.Scan(append([]any{&written}, into...)...); err != nil {
			return 0, fmt.Errorf("compare %s with its definition at seq %d: %w", table, seq, err)
		}
		if written <= seq {
			return seq, nil
		}
		if err := ahead(ctx, conn, table, written); err != nil {
			return 0, err
		}
	}
}

// lines are those that a derived table must have, in its order.
var lines = map[string]func(*oracle.Books) iter.Seq[string]{
	readmodel.Withdrawals:   withdrawalLines,
	readmodel.Users:         userLines,
	readmodel.PartnerTotals: totalLines,
}

// againstOracle compares derived tables with the log folded into plain maps, which
// knows nothing of their definitions.
func (v *verifier) againstOracle(ctx context.Context, tables []string) error {
	for {
		seq, err := readmodel.LastSeq(ctx, v.conn, readmodel.Spine)
		if err != nil {
			return err
		}
		if v.passed, err = passedVaults(ctx, v.conn, seq); err != nil {
			return err
		}
		if err := v.follow(ctx, seq); err != nil || v.broken() {
			return err
		}
		done, err := v.againstFold(ctx, tables, seq)
		if err != nil || done {
			return err
		}
	}
}

// againstFold asks for the live rows of all tables, and compares them if none is
// ahead of the fold, which is at seq. The questions are asked before anything is
// added up, which would give a chain that moves the time to go on.
func (v *verifier) againstFold(ctx context.Context, tables []string, seq uint64) (done bool, err error) {
	answers := make([]*liveRows, len(tables))
	for i, table := range tables {
		if answers[i], err = v.ask(v.options.Progress.Asked(ctx, table+": the fold of the log"), table); err != nil {
			return false, err
		}
		defer answers[i].rows.Close()
	}
	for i, a := range answers {
		if a.written > seq {
			return false, ahead(ctx, v.conn, tables[i], a.written)
		}
	}
	books := v.fold.Books(oracle.Newest, v.passed...)
	v.report.Quarantined, v.report.Impossible, v.report.WithoutData = books.Quarantined, books.Impossible, v.fold.WithoutData()
	v.sample.thin(books)
	for i, table := range tables {
		check := Check{Name: table + ": the fold of the log"}
		if !answers[i].cursor {
			check.Difference = "it has no live cursor row"
		} else if err := check.compareLines(answers[i].lines(), lines[table](books)); err != nil {
			return false, err
		}
		v.report.Checks = append(v.report.Checks, check)
	}
	return true, nil
}

// liveRows is the answer to a question for a derived table's live rows, of which
// the cursor row was read.
type liveRows struct {
	rows    driver.Rows
	cursor  bool
	written uint64 // up to which seq the table is
}

func (v *verifier) ask(ctx context.Context, table string) (*liveRows, error) {
	rows, err := v.conn.Query(readmodel.Parameters(ctx, numbers{"n": max(1, v.sample.n), "k": v.sample.k}), question("live_"+table))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", table, err)
	}
	a := &liveRows{rows: rows}
	if rows.Next() {
		a.cursor, a.written, _, err = a.scan()
	}
	if err = cmp.Or(err, rows.Err()); err != nil {
		rows.Close()
		return nil, fmt.Errorf("read %s: %w", table, err)
	}
	return a, nil
}

func (a *liveRows) scan() (cursor bool, seq uint64, line string, err error) {
	var is uint8
	err = a.rows.Scan(&is, &seq, &line)
	return is == 1, seq, line, err
}

// lines gives the rows after the cursor row.
func (a *liveRows) lines() iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for a.rows.Next() {
			_, _, line, err := a.scan()
			if !yield(line, err) || err != nil {
				return
			}
		}
		if err := a.rows.Err(); err != nil {
			yield("", err)
		}
	}
}

func withdrawalLines(b *oracle.Books) iter.Seq[string] {
	return func(yield func(string) bool) {
		keys := slices.Collect(maps.Keys(b.Withdrawals))
		for _, list := range requestLists {
			slices.SortFunc(keys, func(x, y oracle.RequestKey) int { return list.compare(x, b.Withdrawals[x], y, b.Withdrawals[y]) })
			for _, k := range keys {
				w := b.Withdrawals[k]
				user, key := list.place(w)
				ask := w.Ask()
				line := fmt.Sprintf("%s %x %d %d %x %d %x %d %d %d %d %d %s 1", list.name, user[:], key, w.Requested.Index, k.Vault[:], k.Index,
					ask.Owner[:], ask.AssetsEstimate, ask.ExpiresAt, w.Requested.Block, oracle.BlockOf(w.Funded), oracle.BlockOf(w.Ended), w.EndedBy())
				if !yield(line) {
					return
				}
			}
		}
	}
}

// requestList is a list of withdrawals: of whom it is and in the order of which block.
type requestList struct {
	name  string
	place func(*oracle.Withdrawal) (user common.Address, key uint64)
}

var requestLists = []requestList{
	{"queue", func(w *oracle.Withdrawal) (common.Address, uint64) { return common.Address{}, oracle.BlockOf(w.Ended) }},
	{"user", func(w *oracle.Withdrawal) (common.Address, uint64) { return w.Ask().Owner, w.Requested.Block }},
}

func (l *requestList) compare(j oracle.RequestKey, v *oracle.Withdrawal, k oracle.RequestKey, w *oracle.Withdrawal) int {
	user, key := l.place(v)
	other, after := l.place(w)
	return cmp.Or(user.Cmp(other), cmp.Compare(key, after), cmp.Compare(v.Requested.Index, w.Requested.Index), j.Vault.Cmp(k.Vault), cmp.Compare(j.Index, k.Index))
}

// listed is a row of users: a user in a list of a scope.
type listed struct {
	list  int
	scope oracle.Scope
	key   *big.Int
	user  common.Address
	since oracle.Since
	of    oracle.User
}

// lists are the names of the lists, in their order.
var lists = []string{"member", "first", "deposited", "withdrawn"}

func (l listed) compare(m listed) int {
	return cmp.Or(cmp.Compare(l.list, m.list), bytes.Compare(l.scope.Vault[:], m.scope.Vault[:]), cmp.Compare(l.scope.Partner, m.scope.Partner),
		l.key.Cmp(m.key), l.user.Cmp(m.user))
}

func userLines(b *oracle.Books) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, l := range slices.SortedFunc(everyListed(b), listed.compare) {
			line := fmt.Sprintf("%s %x %d %d %x %d %d %d %d 1", lists[l.list], l.scope.Vault[:], l.scope.Partner, l.key, l.user[:],
				l.since.Block, l.since.Time, l.of.Deposited, l.of.Withdrawn)
			if !yield(line) {
				return
			}
		}
	}
}

func everyListed(b *oracle.Books) iter.Seq[listed] {
	zero := new(big.Int)
	nothing := oracle.User{Deposited: zero, Withdrawn: zero}
	return func(yield func(listed) bool) {
		for scope, members := range b.Members {
			for a, since := range members {
				if !yield(listed{0, scope, zero, a, since, nothing}) {
					return
				}
			}
		}
		for a, u := range b.Users {
			seen := u.First.Block != oracle.Never
			all := []listed{
				{0, oracle.Scope{}, zero, a, u.First, *u},
				{1, oracle.Scope{}, new(big.Int).SetUint64(u.First.Block), a, u.First, nothing},
				{2, oracle.Scope{}, u.Deposited, a, u.First, *u},
				{3, oracle.Scope{}, u.Withdrawn, a, u.First, *u},
			}
			switch {
			case !seen && u.Withdrawn.Sign() == 0:
				all = nil
			case !seen:
				all = all[:1]
			}
			for _, l := range all {
				if !yield(l) {
					return
				}
			}
		}
	}
}

func totalLines(b *oracle.Books) iter.Seq[string] {
	return func(yield func(string) bool) {
		keys := slices.SortedFunc(maps.Keys(b.Totals), func(x, y oracle.PartnerVault) int {
			return cmp.Or(cmp.Compare(x.Partner, y.Partner), x.Vault.Cmp(y.Vault))
		})
		for _, k := range keys {
			for _, t := range b.Totals[k] {
				if !yield(fmt.Sprintf("%d %x %d %d %d %d 1", k.Partner, k.Vault[:], t.Block, t.Until, t.Deposits, t.Volume)) {
					return
				}
			}
		}
	}
}
