package query

// A user's lists are read in one question each: every row of a page says how
// many rows the list has, so that nothing is counted beside it.

// userList is the questions about one kind of list.
type userList struct {
	page  string // takes all rows for live ones
	live  string // leaves out what was taken back, and so takes longer
	count string // for a page past the end, which has no row to say it
}

func newUserList(name string) userList {
	return userList{
		page:  question(name, struct{ Live bool }{false}),
		live:  question(name, struct{ Live bool }{true}),
		count: question(name+"_count", nil),
	}
}

// tally is the part of a row that is about the whole list.
type tally struct {
	Total int64  `ch:"total"` // how many there are
	Said  uint64 `ch:"said"`  // how many rows say so: more than there are, where some were taken back
}

// of is the tally that stands in a row.
func (t tally) of() tally { return t }

// userPage reads a page of a list and how many entries the list has.
func userPage[T interface{ of() tally }](x *exchange, p *pin, list userList, page page, args []any) ([]T, int64, error) {
	limit, offset, skip := page.reach()
	args = append(args, named("limit", limit), named("offset", offset))
	rows, err := pinned[T](x, p, list.page, args...)
	if err == nil && len(rows) > 0 {
		if t := rows[0].of(); t.Said != uint64(t.Total) {
			rows, err = pinned[T](x, p, list.live, args...)
		}
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
