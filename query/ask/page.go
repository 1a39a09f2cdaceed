package ask

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/state"
)

// Order is the order of a page's rows.
type Order bool

// The orders. A page in descending order reads cursor_end, one in ascending order reads cursor: that way the cursor
// is the first row, and no limit can cut it off.
const (
	OldestFirst Order = false
	NewestFirst Order = true
)

// Place is the position of an entry in its list.
type Place struct {
	Key      string         `ch:"sort_key" sql:"toString(key)"`
	Block    uint64         `ch:"block"`
	LogIndex uint32         `ch:"log_index"`
	Sub      uint8          `ch:"sub"`
	User     common.Address `ch:"user"`
}

// InOrder returns SQL in one order. In its text {order} is the order of the lists, {order of places} that of the
// entries of one list, {cursor} the cursor before all lists, {beyond} the comparison with a place that the rows are
// behind, < or >, and {desc} is DESC or nothing. {reverse order} and {reverse cursor} are those of the other order.
func InOrder(sql string, order Order) string {
	const list, place = "list, owner, scope, kind", "key, block, log_index, sub, user"
	descending := func(columns string) string { return strings.ReplaceAll(columns, ",", " DESC,") + " DESC" }
	up := []string{place, list + ", " + place, "'cursor'"}
	down := []string{descending(place), descending(list + ", " + place), "'cursor_end'"}
	beyond, desc := ">", ""
	if order == NewestFirst {
		up, down, beyond, desc = down, up, "<", "DESC"
	}
	return strings.NewReplacer("{order of places}", up[0], "{order}", up[1], "{cursor}", up[2],
		"{reverse order}", down[1], "{reverse cursor}", down[2], "{beyond}", beyond, "{desc}", desc).Replace(sql)
}

// Entry is embedded in the rows of a page.
type Entry struct {
	Signed
	Part
	Place
}

func (e *Entry) entry() *Entry { return e }

// samePlace reports whether two rows are of one place of one list.
func (e *Entry) samePlace(other *Entry) bool {
	return e.List == other.List && e.Place == other.Place
}

type entry interface{ entry() *Entry }

// Page is a question for consecutive entries of one list, in its order. The SQL reads
//
//	SELECT {columns} FROM lists
//	WHERE (list = {list} AND owner = ...
//	    AND (key, block, log_index, sub, user) {beyond} ({after_key:Int256}, ..., {after_user:FixedString(20)}) -- if any
//	  ) OR list = {cursor}
//	ORDER BY {order} LIMIT {rows:UInt64}
//
// (A condition on only key or block, in addition to that on the tuple, lets the engine find the start.)
//
// A list contains rows that cancel each other until a merge removes them. So a page reads the first rows, adds up the
// signs of equal rows, drops the last place if the limit cut reading off there, and doubles the limit until the page
// is full. R must be comparable.
type Page[A any, R comparable] struct {
	list     string
	sql      string // in the page's order
	question *Question[A, R]
	places   *Question[A, placeRow] // nil: a page far from the beginning reads all entries before it
	order    Order
	newest   bool // the list is only valid for the newest block
	long     bool // its lists are usually longer than a page
}

// NewPage returns a page question for the entries of the named list; see New.
func NewPage[A any, R comparable](list, sql string, order Order) *Page[A, R] {
	listNamed(list)
	if _, ok := any(new(R)).(entry); !ok {
		panic("the rows of a page embed Entry")
	}
	sql = strings.ReplaceAll(InOrder(sql, order), "{list}", "'"+list+"'")
	q := newQuestion[A, R](sql, list)
	for _, l := range q.lines {
		if strings.Contains(l.text, "{after_") && !slices.Equal(l.names, []string{behind}) {
			panic("a page begins behind a place only if there is one (-- if after): " + l.text)
		}
	}
	return &Page[A, R]{list: list, sql: sql, question: q, order: order}
}

// Newest marks the page as one of a list that is only valid for the newest block: its rows must be of the pin's seq,
// otherwise the answer is rebuilt.
func (q *Page[A, R]) Newest() *Page[A, R] {
	q.newest = true
	return q
}

// Long marks the page as one of lists that are usually longer than a page: even for the first page, the count runs
// concurrently.
func (q *Page[A, R]) Long() *Page[A, R] {
	q.long = true
	return q
}

const (
	LowestKey  Decimal = "-57896044618658097711785492504343953926634992332820282019728792003956564819968"
	HighestKey Decimal = "57896044618658097711785492504343953926634992332820282019728792003956564819967"
)

// placeRow is the place of an entry, and how many rows were read to find it.
type placeRow struct {
	Place
	Read uint64 `ch:"rows_read"`
}

// Deep lets the page find an entry far from the beginning without reading all columns of the entries before it: the
// engine counts the rows of the same SQL. The entries must be those of one owner, in the order of the list.
func (q *Page[A, R]) Deep() *Page[A, R] {
	page, _, _ := strings.Cut(q.sql, "\nSETTINGS") // which are for reading few rows
	page = strings.ReplaceAll(page, "{columns}", "list, key, block, log_index, sub, user, sign")
	deep := InOrder(state.SQL(files, "sql/deep"), q.order)
	q.places = newQuestion[A, placeRow](strings.ReplaceAll(deep, "{page}", page), q.list)
	return q
}

const (
	// spareRows is how many extra rows are read at first.
	spareRows = 64
	// deepFrom is the offset from which a deep question finds the page.
	deepFrom = 500
	// mostRows limits what a page reads: no list has that many rows.
	mostRows = 1 << 40
)

// withSpare returns how many rows to read first for a number of entries, because some rows cancel each other.
func withSpare(entries uint64) uint64 { return entries + entries/8 + spareRows }

func (q *Page[A, R]) Read(ctx context.Context, p *Pin, args A, offset uint64, size int) ([]R, error) {
	if !q.far(offset) {
		return q.read(ctx, p, args, nil, offset, size)
	}
	before, ok, err := q.find(ctx, p, args, offset-1)
	switch {
	case err != nil:
		return nil, err
	case !ok: // the list ends before the page; only a question that reads the cursor can confirm it
		return q.read(ctx, p, args, nil, offset, size)
	}
	return q.read(ctx, p, args, before, 0, size)
}

// far reports whether a page at the offset needs a question of its own, which reads all entries before it. If the
// list is shorter, that question reads the whole list several times, so count first.
func (q *Page[A, R]) far(offset uint64) bool { return q.places != nil && offset >= deepFrom }

// After returns the entries that follow a place, and the place of the last one; nil means the beginning of the list.
func (q *Page[A, R]) After(
	ctx context.Context, p *Pin, args A, place *Place, size int,
) (rows []R, last *Place, err error) {
	rows, err = q.read(ctx, p, args, place, 0, size)
	if len(rows) > 0 {
		place = new(any(&rows[len(rows)-1]).(entry).entry().Place)
	}
	return rows, place, err
}

// find returns the place of the entry after the first offset entries, or false if it did not find one. It judges no
// cursor: the question that continues at the place does, and that one reads a state that is at least as new. The
// result is certain if another entry follows or the list ends: only the last place that was read may lack some of its
// rows.
func (q *Page[A, R]) find(ctx context.Context, p *Pin, args A, offset uint64) (*Place, bool, error) {
	for rows := withSpare(offset); ; rows *= 2 {
		parameters := clickhouse.Parameters{"rows": strconv.FormatUint(rows, 10), "offset": strconv.FormatUint(offset, 10)}
		found, err := q.places.all(ctx, p, parameters, args)
		if err != nil {
			return nil, false, err
		}
		whole := len(found) > 0 && found[0].Read < rows
		switch {
		case len(found) == 2 || len(found) == 1 && whole:
			return &found[0].Place, true, nil
		case len(found) == 0 && rows > 32*(offset+spareRows): // no list has so many rows that cancel each other
			return nil, false, nil
		}
	}
}

// Counted is Read that also returns the number of entries in the list. It is counted from the first page if that
// holds the whole list and the list is not Long, otherwise by count.
func (q *Page[A, R]) Counted(ctx context.Context, p *Pin, args A, offset uint64, size int,
	count func() (int64, error)) (rows []R, total int64, err error) {
	if q.far(offset) {
		if total, err = count(); err != nil || int64(offset) >= total {
			return nil, total, err
		}
		rows, err = q.Read(ctx, p, args, offset, size)
		return rows, total, err
	}
	if offset > 0 || q.long {
		err = Together(
			func() (err error) { rows, err = q.Read(ctx, p, args, offset, size); return },
			func() (err error) { total, err = count(); return },
		)
		return rows, total, err
	}
	rows, whole, err := q.atLeast(ctx, p, args, nil, uint64(size))
	if total = int64(len(rows)); err == nil && !(whole && len(rows) <= size) {
		total, err = count()
	}
	return rows[:min(size, len(rows))], total, err
}

func (q *Page[A, R]) read(ctx context.Context, p *Pin, args A, place *Place, offset uint64, size int) ([]R, error) {
	found, _, err := q.atLeast(ctx, p, args, place, offset+uint64(size))
	found = found[min(offset, uint64(len(found))):]
	return found[:min(size, len(found))], err
}

// atLeast returns at least the given number of entries after a place, or all that exist; whole reports whether these
// are all.
func (q *Page[A, R]) atLeast(ctx context.Context, p *Pin, args A, place *Place,
	entries uint64) (found []R, whole bool, err error) {
	parts, err := q.parts(ctx, p, []A{args}, place, entries)
	return parts[0].entries, parts[0].whole, err
}

// FirstOfEach returns the first entry of the list for each of some arguments, or nil if there is none, in one
// statement.
func (q *Page[A, R]) FirstOfEach(ctx context.Context, p *Pin, args []A) ([]*R, error) {
	parts, err := q.parts(ctx, p, args, nil, 1)
	out := make([]*R, len(args))
	for i := range parts {
		if len(parts[i].entries) > 0 {
			out[i] = &parts[i].entries[0]
		}
	}
	return out, err
}

// part is what was read for some arguments: the first entries, and whether these are all.
type part[R any] struct {
	entries []R
	whole   bool
}

// parts returns, for each argument, at least the given number of entries after a place, or all if there are fewer.
func (q *Page[A, R]) parts(ctx context.Context, p *Pin, args []A, place *Place, entries uint64) ([]part[R], error) {
	out, missing := make([]part[R], len(args)), make([]int, len(args))
	for i := range missing {
		missing[i] = i
	}
	for rows := withSpare(entries); len(missing) > 0; rows *= 2 {
		if rows > mostRows {
			return out, state.Wrong("a list has rows that do not add up to entries: check the generation with `navlog verify`")
		}
		asked := make([]A, len(missing))
		for i, n := range missing {
			asked[i] = args[n]
		}
		parameters := after(place)
		parameters["rows"] = strconv.FormatUint(rows, 10)
		of, err := q.question.each(ctx, p, parameters, asked)
		if err != nil {
			return out, err
		}
		var again []int
		for i, n := range missing {
			if out[n], err = q.settle(p, of[i], rows); err != nil {
				return out, err
			}
			if !out[n].whole && uint64(len(out[n].entries)) < entries {
				again = append(again, n)
			}
		}
		missing = again
	}
	return out, nil
}

// settle returns the entries among the first rows of a list, and whether these are all.
func (q *Page[A, R]) settle(p *Pin, raw []R, rows uint64) (out part[R], err error) {
	out.whole = uint64(len(raw)) < rows
	if !out.whole {
		raw = withoutLastPlace(raw)
	}
	// Rows that cancel each other have one place, so they are adjacent.
	distinct, live, place, seen := raw[:0], make([]int, 0, len(raw)), 0, false
	for i := range raw {
		e := any(&raw[i]).(entry).entry()
		sign := int(e.Sign)
		e.Sign = 0
		if n := len(distinct); n > 0 && !e.samePlace(any(&distinct[n-1]).(entry).entry()) {
			place = n
		}
		if same := slices.Index(distinct[place:], raw[i]); same >= 0 {
			live[place+same] += sign
			continue
		}
		distinct, live = append(distinct, raw[i]), append(live, sign)
	}
	out.entries = distinct[:0]
	for i, n := range live {
		switch n {
		case 0:
			continue
		case 1:
		default:
			return part[R]{}, state.Wrong("an entry of a list is there %d times: check the generation with `navlog verify`", n)
		}
		switch m := any(&distinct[i]).(marked).mark(); {
		case m.isCursor():
			p.saw(m, q.newest)
			seen = true
		default:
			out.entries = append(out.entries, distinct[i])
		}
	}
	if !seen {
		if !out.whole { // cursor rows filled the limit
			return part[R]{}, nil
		}
		p.saw(&Mark{}, false) // the generation has lost its cursor: older than every pin
	}
	return out, nil
}

// withoutLastPlace drops the last place that was read, which may lack some of its rows.
func withoutLastPlace[R any](rows []R) []R {
	if len(rows) == 0 {
		return rows
	}
	last := any(&rows[len(rows)-1]).(entry).entry()
	n := len(rows) - 1
	for n > 0 && any(&rows[n-1]).(entry).entry().samePlace(last) {
		n--
	}
	return rows[:n]
}

// after returns the parameters that make a page begin after a place; none for nil.
func after(place *Place) clickhouse.Parameters {
	if place == nil {
		return clickhouse.Parameters{}
	}
	return clickhouse.Parameters{"after_key": place.Key, "after_block": strconv.FormatUint(place.Block, 10),
		"after_log": strconv.FormatUint(uint64(place.LogIndex), 10), "after_sub": strconv.Itoa(int(place.Sub)),
		"after_user": escaped(place.User[:])}
}
