package verify

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/navlog/navlog/schemas/readmodel"
)

const (
	// tries is how often the lists are read before it is an error that they have passed the seq of the fold.
	tries = 30
	// pieces is the number of parts into which a list is divided by a hash of its rows. If a part differs, its rows
	// are compared one by one.
	pieces = 1024
)

// undefined are the columns of lists that no definition computes.
var undefined = []string{"sign", "writer"}

// definitions computes what the definitions in SQL give for the events of a generation.
type definitions struct {
	session driver.Conn
	derived *uint64 // the seq of the session's tables, nil if it has none
	pieces  uint64
	known   map[uint64]sums // the sums of each piece, by seq
}

func newDefinitions(session driver.Conn) *definitions {
	return &definitions{session: session, pieces: pieces, known: map[uint64]sums{}}
}

// rows calls ask with the definitions of some lists, as queries for their rows as of a seq.
func (d *definitions) rows(ctx context.Context, seq uint64, of func(list string) bool,
	ask func(query string) error) error {
	if d.derived == nil || *d.derived != seq {
		d.derived = nil
		if err := readmodel.Derive(ctx, d.session, seq); err != nil {
			return err
		}
		d.derived = &seq
	}
	for _, definition := range readmodel.Definitions {
		if !slices.ContainsFunc(definition.Lists, func(l readmodel.List) bool { return of(l.String()) }) {
			continue
		}
		if err := ask("SELECT " + definedColumns() + " FROM (" + definition.Rows() + ")"); err != nil {
			return fmt.Errorf("%s as of seq %d: %w", definition.Name, seq, err)
		}
	}
	return nil
}

// piece returns the expression for the piece of a list that a row belongs to, by the hash of the row.
func (d *definitions) piece() string { return fmt.Sprintf("print %% %d", d.pieces) }

// sums returns the sums of each piece as of a seq.
func (d *definitions) sums(ctx context.Context, seq uint64) (sums, error) {
	if given, known := d.known[seq]; known {
		return given, nil
	}
	given := sums{}
	err := d.rows(ctx, seq, func(string) bool { return true }, func(query string) error {
		_, err := given.add(ctx, d.session, "("+query+")", "1", d.piece(), "1")
		return err
	})
	if err != nil {
		return nil, err
	}
	d.known[seq] = given
	return given, nil
}

// compare compares the lists with their definitions in SQL over events. It counts the rows of each piece of a list and
// adds up their 64-bit hashes, in the lists first, and then in the definitions as of the seq that the lists had then.
func (d *definitions) compare(ctx context.Context, conn driver.Conn, progress Progress) ([]Check, error) {
	ctx = progress.Asked(ctx, "lists: the definitions")
	held := sums{}
	seq, err := held.add(ctx, conn, "lists", "sign", d.piece(), "1")
	if err != nil {
		return nil, err
	}
	given, err := d.sums(ctx, seq)
	if err != nil {
		return nil, err
	}
	var checks []Check
	wrong := map[string]string{} // the first piece that differs, by its list
	for _, list := range definedLists() {
		check := Check{Name: list + ": the definition"}
		differing := 0
		for piece := range d.pieces {
			at := place{list, fmt.Sprint(piece)}
			if held[at] != given[at] {
				if differing++; differing == 1 {
					wrong[list] = at.part
				}
			}
			check.Compared += uint64(given[at].rows)
		}
		if differing > 0 {
			check.Compared = 0
			check.Difference = fmt.Sprintf("rows differ as of seq %d, in %d of %d slices of the list", seq, differing, d.pieces)
		}
		checks = append(checks, check)
	}
	if len(wrong) == 0 {
		return checks, nil
	}
	rows, err := d.wrongRows(ctx, conn, wrong)
	for i, list := range definedLists() {
		checks[i].Difference += rows[list]
	}
	return checks, err
}

// place is a part of a list.
type place struct{ list, part string }

// sum is a number of rows, and the sum of their hashes.
type sum struct{ rows, hash int64 }

type sums map[place]sum

// add queries the sums of rows that meet a condition, by list and part: a piece, or the row as text. It returns the seq
// of the cursor if it is one of them.
func (s sums) add(ctx context.Context, conn driver.Conn, from, weight, part, where string) (seq uint64, err error) {
	var rows []struct {
		List string `ch:"name"`
		Part string `ch:"text"`
		Rows int64  `ch:"times"`
		Hash int64  `ch:"hash"`
		Seq  uint64 `ch:"last"`
	}
	err = conn.Select(readmodel.Parameters(ctx, nil), &rows, question("sums", "{from}", from, "{weight}", weight,
		"{part}", part, "{where}", where, "{columns}", definedColumns()))
	if err != nil {
		return 0, fmt.Errorf("add up the rows of lists: %w", err)
	}
	for _, r := range rows {
		at := place{r.List, r.Part}
		s[at] = sum{s[at].rows + r.Rows, s[at].hash + r.Hash}
		if r.List == readmodel.CursorList.String() {
			seq = max(seq, r.Seq)
		}
	}
	return seq, nil
}

// wrongRows describes, for each list with a differing piece, the first row that the list has more or less often than
// its definition; nothing if a unit has corrected it since.
func (d *definitions) wrongRows(
	ctx context.Context, conn driver.Conn, wrong map[string]string,
) (map[string]string, error) {
	isWrong := func(list string) bool { return wrong[list] != "" }
	var chosen []string
	for list, piece := range wrong {
		chosen = append(chosen, fmt.Sprintf("('%s', %s)", list, piece))
	}
	line := readmodel.ListsTable.LineSQL(undefined...)
	where := fmt.Sprintf("(list = 'cursor' OR (toString(list), %s) IN (%s))", d.piece(), strings.Join(chosen, ", "))
	held, given := sums{}, sums{}
	seq, err := held.add(ctx, conn, "lists", "sign", line, where)
	if err != nil {
		return nil, err
	}
	if err := d.rows(ctx, seq, isWrong, func(query string) error {
		_, err := given.add(ctx, d.session, "("+query+")", "1", line, where)
		return err
	}); err != nil {
		return nil, err
	}
	first := map[string]string{}
	for _, rows := range []sums{held, given} {
		for at := range rows {
			line, is := first[at.list]
			if isWrong(at.list) && held[at] != given[at] && (!is || at.part < line) {
				first[at.list] = at.part
			}
		}
	}
	for list, line := range first {
		at := place{list, line}
		first[list] = fmt.Sprintf("; one such row as of seq %d is %q, which the list has %d times and its definition %d", seq,
			line, held[at].rows, given[at].rows)
	}
	return first, nil
}

// definedLists returns all lists that have a definition, the cursor last.
func definedLists() (names []string) {
	for _, d := range readmodel.Definitions {
		for _, l := range d.Lists {
			if !slices.Contains(names, l.String()) {
				names = append(names, l.String())
			}
		}
	}
	return names
}

// definedColumns returns the columns of lists that definitions compute.
func definedColumns() string { return readmodel.ListsTable.Names(undefined...) }

// againstOracle compares lists with the log folded into plain maps, independently of their definitions.
func (v *verifier) againstOracle(ctx context.Context) error {
	for try := 1; ; try++ {
		at, err := readmodel.ReadPosition(ctx, v.conn, "")
		if err != nil {
			return err
		}
		seq := at.Seq
		if seq < v.fold.Seq() {
			return fmt.Errorf("lists went back from seq %d to %d while they were compared: verify again", v.fold.Seq(), seq)
		}
		skipped, err := skippedBy(ctx, v.conn, seq)
		if err != nil {
			return err
		}
		v.fold.Skip(skipped)
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

// againstFold queries the live rows of all lists, and compares them if they are at the same seq as the fold. The
// query is sent before the fold is added up: otherwise a moving chain would have time to advance.
func (v *verifier) againstFold(ctx context.Context, seq uint64) (done bool, err error) {
	ctx = v.options.Progress.Asked(ctx, "lists: the fold of the log")
	rows, err := v.conn.Query(readmodel.Parameters(ctx, numbers{"n": max(1, v.sample.n), "k": v.sample.k}),
		question("live", "{line}", readmodel.ListsTable.LineSQL(undefined...),
			"{columns}", definedColumns()))
	if err != nil {
		return false, fmt.Errorf("read lists: %w", err)
	}
	defer rows.Close()
	a := &liveRows{rows: rows}
	if err := a.next(); err != nil {
		return false, err
	}
	if a.list != readmodel.CursorList.String() {
		return true, nil // the check of the cursor has reported that there is none
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
	v.report.Quarantined, v.report.Impossible = v.fold.Contradictions()
	want := slices.DeleteFunc(v.fold.Lists(), func(r readmodel.ListRow) bool { return !v.sample.whole(&r) })
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
		v.options.Progress.Report(check.Name, check.Compared, check.Compared)
		if err := a.skip(list.String()); err != nil {
			return false, err
		}
		want = want[n:]
		v.report.Checks = append(v.report.Checks, check)
	}
	return true, nil
}

// folded returns the lists that the fold computes, in the order of the table.
func folded() (out []readmodel.List) {
	for _, d := range readmodel.Definitions {
		if d.Name != "cursor" {
			out = append(out, d.Lists...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// compareRows compares in the order of the table, whose keys are signed: 32-byte keys use the sign bit.
func compareRows(a, b readmodel.ListRow) int {
	return cmp.Or(cmp.Compare(a.List, b.List), a.Owner.Cmp(b.Owner), a.Scope.Cmp(b.Scope),
		cmp.Compare(a.Kind, b.Kind), compareKeys(&a.Key, &b.Key), cmp.Compare(a.Block, b.Block),
		cmp.Compare(a.LogIndex, b.LogIndex), cmp.Compare(a.Sub, b.Sub), a.User.Cmp(b.User))
}

func compareKeys(a, b *readmodel.Amount) int {
	switch {
	case a.Slt(b):
		return -1
	case a.Sgt(b):
		return 1
	}
	return 0
}

// lines iterates over the lines that the table must have, each once.
func lines(rows []readmodel.ListRow) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range rows {
			if !yield(readmodel.ListsTable.Line(&rows[i], undefined...) + " 1") {
				return
			}
		}
	}
}

// liveRows iterates over the result of a query for live rows. It has the row that was read last; list is empty at the
// end.
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

// of iterates over the rows of a list, including the one that was read last.
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

func (a *liveRows) skip(list string) error {
	for a.list == list {
		if err := a.next(); err != nil {
			return err
		}
	}
	return nil
}
