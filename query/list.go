package query

import "slices"

// A list is read as if nothing of it had ever been taken back, which is mostly
// so: then every row of a page is an entry. How many entries there are, and how
// many rows say so, is read with it; where these differ, the page is asked for
// again without what was taken back, and that takes longer.

// list is the questions about a page of one kind of list.
type list struct {
	page string // takes all rows for live ones
	live string // leaves out what was taken back
}

func newList(name string) list {
	return list{page: question(name, struct{ Live bool }{false}), live: question(name, struct{ Live bool }{true})}
}

// tally says how long a list is.
type tally struct {
	Total int64  `ch:"total"` // how many entries there are
	Said  uint64 `ch:"said"`  // how many rows say so: more than there are, where some were taken back
}

// whole tells whether nothing was taken back.
func (t tally) whole() bool { return t.Said == uint64(t.Total) }

// longPage reads a page of a list that may be long, and meanwhile counts it.
func longPage[T any](x *exchange, p *pin, list list, page page, count func() (tally, error), args ...param) (rows []T, total int64, err error) {
	var t tally
	args = append(args, page.args()...)
	err = together(
		func() (err error) { rows, err = pinned[T](x, p, list.page, args...); return },
		func() (err error) { t, err = count(); return },
	)
	if err == nil && !t.whole() {
		rows, err = pinned[T](x, p, list.live, args...)
	}
	return rows, max(t.Total, 0), err
}

// userList is one user's: mostly a few rows, which are read whole and put into
// order here, for to plan that takes the engine longer than to find them. A longer
// one is counted where it is read: every row of a page has the tally.
type userList struct {
	list
	few   string
	count string // for a page past the end, which has no row to say it
}

func newUserList(name string) userList {
	return userList{newList(name), question(name+"_few", nil), question(name+"_count", nil)}
}

// sizes say how many rows make a question be asked in one way or another.
type sizes struct {
	few  int    // of a user: up to so many are read whole
	many uint64 // of the buckets of a page of who came first: so many are not added up, their totals are asked for
}

// usualSizes are where one way takes as long as the other, or so.
var usualSizes = sizes{few: 200, many: 16_384}

// userEntry is what a row of a user's list says of itself beside what it lists: the
// tally where it is one of a page, and else what it did.
type userEntry struct {
	tally
	Seq      uint64 `ch:"seq"`
	Sign     int8   `ch:"sign"`
	Retracts uint64 `ch:"retracts"`
}

func (e *userEntry) entry() *userEntry { return e }

// entryOf is a pointer to a row that is one of a user's list.
type entryOf[T any] interface {
	*T
	entry() *userEntry
	position(b T) int // in the order of the chain
}

// fewEntries reads all of a user's list, newest first, or gives false where it is a
// long one.
func fewEntries[T any, P entryOf[T]](x *exchange, p *pin, list userList, args []param) ([]T, bool, error) {
	rows, err := pinned[T](x, p, list.few, append(args, named("few", uint64(x.sizes.few+1)))...)
	if err != nil || len(rows) > x.sizes.few {
		return nil, false, err
	}
	rows = liveEntries[T, P](rows)
	slices.SortFunc(rows, func(a, b T) int { return P(&b).position(a) })
	return rows, true, nil
}

// userPage reads a page of a user's list and how many entries the list has.
func userPage[T any, P entryOf[T]](x *exchange, p *pin, list userList, page page, args []param) ([]T, int64, error) {
	rows, few, err := fewEntries[T, P](x, p, list, args)
	if few || err != nil {
		return pageOf(rows, page), int64(len(rows)), err
	}
	limit, offset, skip := page.reach()
	args = append(args, named("limit", limit), named("offset", offset))
	rows, err = pinned[T](x, p, list.page, args...)
	if err == nil && len(rows) > 0 && !P(&rows[0]).entry().whole() {
		rows, err = pinned[T](x, p, list.live, args...)
	}
	switch {
	case err != nil:
		return nil, 0, err
	case len(rows) > 0:
		return rows[min(skip, len(rows)):], P(&rows[0]).entry().Total, nil
	case offset == 0:
		return nil, 0, nil
	}
	count, err := total(x, p, list.count, args...)
	return nil, count, err
}

// pageOf is a page of a list of which all is there.
func pageOf[T any](all []T, page page) []T {
	count := uint64(len(all))
	return all[min(page.offset(), count):min(page.offset()+uint64(page.size), count)]
}

// liveEntries leaves out what says that something was taken back, and what was.
func liveEntries[T any, P entryOf[T]](rows []T) []T {
	gone := make(map[uint64]bool)
	for i := range rows {
		if e := P(&rows[i]).entry(); e.Sign < 0 {
			gone[e.Retracts] = true
		}
	}
	return slices.DeleteFunc(rows, func(r T) bool {
		e := P(&r).entry()
		return e.Sign <= 0 || gone[e.Seq]
	})
}
