package verify

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/navlog/navlog/projections/oracle"
	"github.com/navlog/navlog/schemas/readmodel"
)

const (
	// tries is how often a question is asked before it is an error that lists moved on between
	// a look at their cursor and the question, which takes no longer than the engine's plan.
	tries    = 30
	askAgain = 50 * time.Millisecond
	// pieces is into how many parts lists are cut by a hash of their rows. If one differs,
	// its rows are compared one by one, and must fit into the memory of a patient question.
	pieces = 1024
)

// unsaid are the columns of lists that no definition gives.
var unsaid = []string{"sign", "writer"}

// group is lists that have the same definitions.
type group struct {
	name        string
	lists       []readmodel.List
	definitions []readmodel.ListDefinition
}

// groups are all lists that have a definition, the cursor last.
func groups() (out []group) {
	for _, d := range readmodel.Definitions {
		i := slices.IndexFunc(out, func(g group) bool {
			return slices.ContainsFunc(d.Lists, func(l readmodel.List) bool { return slices.Contains(g.lists, l) })
		})
		if i < 0 {
			out = append(out, group{d.Name, d.Lists, []readmodel.ListDefinition{d}})
			continue
		}
		out[i].name += " and " + d.Name
		out[i].definitions = append(out[i].definitions, d)
	}
	return out
}

// position is the seq up to which a generation is written: the cursor of its lists, or the
// newest record of events if they are not built yet.
func position(ctx context.Context, conn driver.Conn) (seq uint64, built bool, err error) {
	var tables uint64
	if err := conn.QueryRow(ctx, question("lists")).Scan(&tables); err != nil {
		return 0, false, fmt.Errorf("look for lists: %w", err)
	}
	if tables == 0 {
		seq, _, err = readmodel.ReadEventsCursor(ctx, conn, 0)
		return seq, false, err
	}
	seq, err = written(ctx, conn)
	return seq, true, err
}

// written is the seq up to which lists are.
func written(ctx context.Context, conn driver.Conn) (uint64, error) {
	cursor, err := readmodel.ReadListsCursor(ctx, conn, readmodel.ListsTable.Name)
	return cursor.Seq, err
}

// oneCursor says what is wrong with the cursor of lists; nothing if it is there once, at
// both ends.
func oneCursor(ctx context.Context, conn driver.Conn) (fault string, err error) {
	rows, err := conn.Query(ctx, question("cursor"))
	if err != nil {
		return "", fmt.Errorf("read the cursor of lists: %w", err)
	}
	defer rows.Close()
	var cursors, ends, seqs []uint64
	for rows.Next() {
		var list string
		var seq uint64
		var live int64
		if err := rows.Scan(&list, &seq, &live); err != nil {
			return "", fmt.Errorf("read the cursor of lists: %w", err)
		}
		if live != 1 {
			return fmt.Sprintf("the row %s of seq %d is there %d times, and must be there once", list, seq, live), nil
		}
		if list == readmodel.CursorList.String() {
			cursors = append(cursors, seq)
		} else {
			ends = append(ends, seq)
		}
		seqs = append(seqs, seq)
	}
	if err := rows.Err(); err != nil {
		return "", fmt.Errorf("read the cursor of lists: %w", err)
	}
	if len(cursors) != 1 || len(ends) != 1 || seqs[0] != seqs[1] {
		return fmt.Sprintf("lists have %d live cursor rows (seq %v) and %d of cursor_end (seq %v), "+
			"and must have one each, of one seq", len(cursors), cursors, len(ends), ends), nil
	}
	return "", nil
}

// defined compares the lists of a group with their definitions in SQL over events: what is
// live in the one and not in the other, and what is live twice, both ways in one question,
// by hashes of 64 bits.
func defined(ctx context.Context, conn driver.Conn, g group, progress Progress) (Check, error) {
	return inPieces(ctx, conn, g, pieces, progress)
}

func inPieces(ctx context.Context, conn driver.Conn, g group, pieces uint64, progress Progress) (Check, error) {
	check := Check{Name: g.name + ": the definition"}
	ctx = progress.Asked(ctx, check.Name)
	var rows, differing, piece uint64
	seq, err := asOfCursor(ctx, conn, g, "defined", numbers{"pieces": pieces}, &rows, &differing, &piece)
	switch {
	case err != nil:
		return check, err
	case differing == 0:
		check.Compared = rows
		return check, nil
	}
	check.Difference = fmt.Sprintf("rows differ as of seq %d, in %d of %d slices of the lists", seq, differing, pieces)
	var first string
	var found, wanted int64
	at, err := asOfCursor(ctx, conn, g, "differing", numbers{"pieces": pieces, "piece": piece}, &first, &found, &wanted)
	if err != nil {
		return check, err
	}
	if found != wanted { // otherwise a unit has corrected it meanwhile
		check.Difference += fmt.Sprintf("; one such row as of seq %d is %q, "+
			"which the lists have %d times and their definition %d", at, first, found, wanted)
	}
	return check, nil
}

// asOfCursor asks a question about lists and their definitions. Its answer begins with the
// seq up to which the lists are written, and it is asked again until that is the seq that
// the definitions were asked for, which it gives.
func asOfCursor(
	ctx context.Context, conn driver.Conn, g group, ask string, parameters numbers, into ...any,
) (seq uint64, err error) {
	// As when they are built: each thread has groups of its own, which share the memory.
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"max_threads": 2}))
	parameters["slice"], parameters["slices"] = 0, 1
	for try := 1; ; try++ {
		if parameters["seq"], err = written(ctx, conn); err != nil {
			return 0, err
		}
		grouped, err := readmodel.Grouped(ctx, conn, parameters["seq"])
		if err != nil {
			return 0, err
		}
		sides := question("sides", "{columns}", strings.Join(definedColumns(), ", "), "{lists}", listNames(g.lists),
			"{definitions}", union(g.definitions, grouped))
		text := question(ask, "{sides}", sides, "{line}", readmodel.ListsTable.LineSQL(unsaid...))
		var at uint64
		row := conn.QueryRow(readmodel.Parameters(ctx, parameters), text)
		if err := row.Scan(append([]any{&at}, into...)...); err != nil {
			return 0, fmt.Errorf("compare %s with their definition at seq %d: %w", g.name, parameters["seq"], err)
		}
		if at == parameters["seq"] {
			return at, nil
		}
		if try == tries {
			return 0, fmt.Errorf("lists moved on from seq %d to %d before they were read, %d times: "+
				"verify again when the chain is slower", parameters["seq"], at, tries)
		}
		if err := pause(ctx, askAgain); err != nil {
			return 0, err
		}
	}
}

// definedColumns are the columns of lists that definitions give.
func definedColumns() (names []string) {
	for _, c := range readmodel.ListsTable.Columns {
		if !slices.Contains(unsaid, c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}

func listNames(lists []readmodel.List) string {
	names := make([]string, len(lists))
	for i, l := range lists {
		names[i] = "'" + l.String() + "'"
	}
	return strings.Join(names, ", ")
}

func union(definitions []readmodel.ListDefinition, grouped bool) string {
	var all []string
	for _, d := range definitions {
		all = append(all, "SELECT "+strings.Join(definedColumns(), ", ")+" FROM ("+d.Rows(grouped)+")")
	}
	return strings.Join(all, "\nUNION ALL\n")
}

// againstOracle compares lists with the log folded into plain maps, which knows nothing of
// their definitions.
func (v *verifier) againstOracle(ctx context.Context) error {
	for try := 1; ; try++ {
		seq, err := written(ctx, v.conn)
		if err != nil {
			return err
		}
		if seq < v.fold.Seq() {
			return fmt.Errorf("lists went back from seq %d to %d while they were compared: verify again", v.fold.Seq(), seq)
		}
		if v.passed, err = passedVaults(ctx, v.conn, seq); err != nil {
			return err
		}
		if err := v.follow(ctx, seq); err != nil || v.broken() {
			return err
		}
		done, err := v.againstFold(ctx, seq)
		if err != nil || done {
			return err
		}
		if try == tries {
			return fmt.Errorf("lists moved on before they were read, %d times: verify again when the chain is slower", tries)
		}
	}
}

// againstFold asks for the live rows of all lists, and compares them if they are where the
// fold is, which is at seq. The question is asked before anything is added up, which would
// give a chain that moves the time to go on.
func (v *verifier) againstFold(ctx context.Context, seq uint64) (done bool, err error) {
	ctx = v.options.Progress.Asked(ctx, "lists: the fold of the log")
	rows, err := v.conn.Query(readmodel.Parameters(ctx, numbers{"n": max(1, v.sample.n), "k": v.sample.k}),
		question("live", "{line}", readmodel.ListsTable.LineSQL(unsaid...),
			"{columns}", strings.Join(definedColumns(), ", ")))
	if err != nil {
		return false, fmt.Errorf("read lists: %w", err)
	}
	defer rows.Close()
	a := &liveRows{rows: rows}
	if err := a.next(); err != nil {
		return false, err
	}
	if a.list != readmodel.CursorList.String() {
		return true, nil // the check of the cursor has said that there is none
	}
	at := uint64(0)
	for a.list == readmodel.CursorList.String() {
		at = max(at, a.seq)
		if err := a.next(); err != nil {
			return false, err
		}
	}
	if at != seq {
		return false, nil
	}
	books := v.fold.Books(oracle.Newest, v.passed...)
	v.report.Quarantined, v.report.Impossible = books.Quarantined, books.Impossible
	want := slices.DeleteFunc(v.fold.Lists(v.passed...), func(r readmodel.ListRow) bool { return !v.sample.whole(&r) })
	slices.SortFunc(want, compareRows)
	for _, list := range folded() {
		n := slices.IndexFunc(want, func(r readmodel.ListRow) bool { return r.List != list })
		if n < 0 {
			n = len(want)
		}
		check := Check{Name: list.String() + ": the fold of the log"}
		if err := check.compareLines(a.of(list.String()), lines(want[:n])); err != nil {
			return false, err
		}
		v.options.Progress.Tell(check.Name, check.Compared, check.Compared)
		if err := a.skip(list.String()); err != nil {
			return false, err
		}
		want = want[n:]
		v.report.Checks = append(v.report.Checks, check)
	}
	return true, nil
}

// folded are the lists that the fold gives, in the order of the table.
func folded() (out []readmodel.List) {
	for _, g := range groups() {
		if !slices.Contains(g.lists, readmodel.CursorList) {
			out = append(out, g.lists...)
		}
	}
	slices.Sort(out)
	return out
}

// compareRows is the order of the table.
func compareRows(a, b readmodel.ListRow) int {
	return cmp.Or(cmp.Compare(a.List, b.List), a.Owner.Cmp(b.Owner), a.Scope.Cmp(b.Scope),
		cmp.Compare(a.Kind, b.Kind), a.Key.Cmp(&b.Key), cmp.Compare(a.Block, b.Block), cmp.Compare(a.LogIndex, b.LogIndex), cmp.Compare(a.Sub, b.Sub), a.User.Cmp(b.User))
}

// lines are those that the table must have, each once.
func lines(rows []readmodel.ListRow) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range rows {
			if !yield(readmodel.ListsTable.Line(&rows[i], unsaid...) + " 1") {
				return
			}
		}
	}
}

// liveRows is the answer to a question for live rows: the row that was read last, of no list
// at the end.
type liveRows struct {
	rows driver.Rows
	list string
	seq  uint64
	line string
}

func (a *liveRows) next() error {
	a.list = ""
	if !a.rows.Next() {
		return a.fault(a.rows.Err())
	}
	return a.fault(a.rows.Scan(&a.list, &a.seq, &a.line))
}

func (a *liveRows) fault(err error) error {
	if err != nil {
		return fmt.Errorf("read lists: %w", err)
	}
	return nil
}

// of gives the rows of a list, the one that was read last included.
func (a *liveRows) of(list string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for a.list == list {
			line := a.line
			err := a.next()
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// skip reads what is left of a list.
func (a *liveRows) skip(list string) error {
	for a.list == list {
		if err := a.next(); err != nil {
			return err
		}
	}
	return nil
}
