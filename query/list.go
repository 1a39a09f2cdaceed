package query

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

// of is the tally that stands in a row.
func (t tally) of() tally { return t }

// whole tells whether nothing was taken back.
func (t tally) whole() bool { return t.Said == uint64(t.Total) }

// longPage reads a page of a list that may be long, and meanwhile counts it.
func longPage[T any](x *exchange, p *pin, list list, page page, count func() (tally, error), args ...any) (rows []T, total int64, err error) {
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

// userList is a list that is short enough to be counted where it is read: every
// row of a page has the tally, so that nothing is asked beside it.
type userList struct {
	list
	count string // for a page past the end, which has no row to say it
}

func newUserList(name string) userList { return userList{newList(name), question(name+"_count", nil)} }

// userPage reads a page of a user's list and how many entries the list has.
func userPage[T interface{ of() tally }](x *exchange, p *pin, list userList, page page, args []any) ([]T, int64, error) {
	limit, offset, skip := page.reach()
	args = append(args, named("limit", limit), named("offset", offset))
	rows, err := pinned[T](x, p, list.page, args...)
	if err == nil && len(rows) > 0 && !rows[0].of().whole() {
		rows, err = pinned[T](x, p, list.live, args...)
	}
	switch {
	case err != nil:
		return nil, 0, err
	case len(rows) > 0:
		return rows[min(skip, len(rows)):], rows[0].of().Total, nil
	case offset == 0:
		return nil, 0, nil
	}
	count, err := total(x, p, list.count, args...)
	return nil, count, err
}
