// Package users answers who the users are: a list in one of three orders, and what one
// of them has in each vault.
//
// # The list
//
// By first seen, and by totals at the newest block, the list is rows in the order in
// which they are asked for, so that a page is read where it lies (pin.WholePage).
//
// What is shown beside the order by first seen, the totals, is added up for the users of
// the page. The lists by totals carry all that they show and know the newest block
// alone: the answer is held back where they are of a later one than the pin (see
// pin.Pin.SeeCursor). At a past block everybody's totals are added up.
package users

import (
	"cmp"
	"context"
	_ "embed"
	"math/big"
	"strings"

	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
	"github.com/navlog/navlog/schemas/readmodel"
)

var (
	//go:embed page_asc.sql
	sqlPageAsc string
	//go:embed page_desc.sql
	sqlPageDesc string
	//go:embed count.sql
	sqlCount string
	//go:embed past_asc.sql
	sqlPastAsc string
	//go:embed past_desc.sql
	sqlPastDesc string
	//go:embed deposited.sql
	sqlDeposited string
	//go:embed withdrawn.sql
	sqlWithdrawn string
	//go:embed first_seen.sql
	sqlFirstSeen string
)

type userJSON struct {
	Address        string `json:"address"`
	FirstSeen      string `json:"firstSeen"`
	TotalDeposited string `json:"totalDeposited"`
	TotalWithdrawn string `json:"totalWithdrawn"`
}

// user is one as the lists give them.
type user struct {
	Key       *big.Int `ch:"key"` // by which the list is sorted
	Address   string   `ch:"user"`
	FirstSeen int64    `ch:"first_ts"`
	Deposited *big.Int `ch:"deposited"`
	Withdrawn *big.Int `ch:"withdrawn"`
}

func (u *user) json() userJSON {
	return userJSON{
		Address: httpapi.ToAddress(u.Address).Hex(), FirstSeen: httpapi.Time(uint64(u.FirstSeen)),
		TotalDeposited: u.Deposited.String(), TotalWithdrawn: u.Withdrawn.String(),
	}
}

// The lists of the table, by how a client names their order.
const firstSeen = "firstSeen"

var lists = map[string]string{firstSeen: "first", "totalDeposited": "deposited", "totalWithdrawn": "withdrawn"}

// List is a page of the users.
func List(r *httpapi.Request) (*httpapi.Answer, error) {
	page := r.Params.Page()
	by := r.Params.OneOf("sortBy", firstSeen, firstSeen, "totalDeposited", "totalWithdrawn")
	descending := r.Params.OneOf("sortOrder", "desc", "asc", "desc") == "desc"
	if r.AsFile() && by != firstSeen {
		r.Params.Fault("sortBy", "must be firstSeen for a file, which can be sorted by its totals afterwards")
	}
	return r.Pinned(func(ctx context.Context, p *pin.Pin) (*httpapi.Answer, error) {
		if r.AsFile() {
			return file(ctx, r, p, descending, page)
		}
		var users []user
		var total int64
		var err error
		if by != firstSeen && p.AsOf {
			users, total, err = pastPageOf(ctx, p, lists[by], descending, page)
		} else {
			users, total, err = pageOf(ctx, p, lists[by], descending, page)
		}
		if err != nil {
			return nil, err
		}
		return r.List(written(users), page, total), nil
	})
}

func written(users []user) []userJSON {
	out := make([]userJSON, len(users))
	for i := range users {
		out[i] = users[i].json()
	}
	return out
}

// pageOf reads a page out of a list of the table, and how many users it has.
func pageOf(ctx context.Context, p *pin.Pin, list string, descending bool, page httpapi.Page) (users []user, total int64, err error) {
	err = pin.WholePage(page.Offset()+uint64(page.Size),
		func(most uint64) (whole bool, err error) {
			users, err = readPage(ctx, p, list, descending, page, most, beginning(descending))
			return len(users) > page.Size, err
		},
		func() (rows uint64, err error) {
			n, err := count(ctx, p, list)
			total = n.Total
			return n.Rows, err
		})
	return users[:min(len(users), page.Size)], total, err
}

// counted is how many users a list has, and how many rows say so.
type counted struct {
	Total int64  `ch:"total"`
	Rows  uint64 `ch:"rows"`
	cursor
}

func count(ctx context.Context, p *pin.Pin, list string) (n counted, err error) {
	rows, err := pin.Ask[counted](ctx, p, sqlCount, pin.Args{"list": list})
	for _, r := range rows {
		r.see(p, list)
		n.Total, n.Rows = n.Total+r.Total, n.Rows+r.Rows
	}
	return n, err
}

// cursor is what a question read of the table's cursor.
type cursor struct {
	Seq   uint64   `ch:"cursor"`
	Fence []uint64 `ch:"fence"`
}

// see tells the pin of which belief a list is, and of which seq where it says nothing
// of the past.
func (c *cursor) see(p *pin.Pin, list string) {
	fence := readmodel.FenceOf(c.Fence)
	if list == lists[firstSeen] {
		p.See(fence)
	} else {
		p.SeeCursor(c.Seq, fence)
	}
}

// readPage reads the users of a page and one more, out of the first so many rows of a
// list after a user of it, with all that is shown of them.
func readPage(ctx context.Context, p *pin.Pin, list string, descending bool, page httpapi.Page, most uint64, from *user) ([]user, error) {
	type row struct {
		user
		cursor
		IsCursor uint8 `ch:"is_cursor"`
	}
	rows, err := pin.Ask[row](ctx, p, directed(descending, sqlPageDesc, sqlPageAsc),
		pin.Args{"list": list, "most": most, "limit": uint64(page.Size) + 1, "offset": page.Offset(),
			"from_key": from.Key, "from_user": httpapi.ToAddress(from.Address)})
	if err != nil {
		return nil, err
	}
	users := make([]user, 0, page.Size+1)
	for _, r := range rows {
		if r.IsCursor == 1 {
			r.see(p, list)
		} else {
			users = append(users, r.user)
		}
	}
	if list == lists[firstSeen] {
		err = addTotals(ctx, p, users)
	}
	return users, err
}

func directed(descending bool, desc, asc string) string {
	if descending {
		return desc
	}
	return asc
}

// pastPageOf adds up what everybody deposited or withdrew up to a past block, and
// reads a page of that.
func pastPageOf(ctx context.Context, p *pin.Pin, list string, descending bool, page httpapi.Page) (users []user, total int64, err error) {
	var n counted
	err = pin.Together(
		func() (err error) { users, err = readPastPage(ctx, p, list, descending, page); return },
		func() (err error) { n, err = count(ctx, p, lists[firstSeen]); return },
	)
	if err != nil {
		return nil, 0, err
	}
	err = pin.Together(
		func() error { return addTotals(ctx, p, users) },
		func() error { return addFirstSeen(ctx, p, users) },
	)
	return users, n.Total, err
}

func readPastPage(ctx context.Context, p *pin.Pin, list string, descending bool, page httpapi.Page) ([]user, error) {
	type row struct {
		User     string   `ch:"user"`
		Fence    []uint64 `ch:"fence"`
		IsCursor uint8    `ch:"is_cursor"`
	}
	rows, err := pin.Ask[row](ctx, p, directed(descending, sqlPastDesc, sqlPastAsc), pin.Args{"list": list, "limit": uint64(page.Size), "offset": page.Offset()})
	if err != nil {
		return nil, err
	}
	users := make([]user, 0, page.Size)
	for _, r := range rows {
		if r.IsCursor == 1 {
			p.See(readmodel.FenceOf(r.Fence))
		} else {
			users = append(users, user{Address: r.User})
		}
	}
	return users, nil
}

// addTotals fills in what users deposited and withdrew.
func addTotals(ctx context.Context, p *pin.Pin, users []user) error {
	if len(users) == 0 {
		return nil
	}
	var deposited, withdrawn map[string]*big.Int
	err := pin.Together(
		func() (err error) { deposited, err = amounts(ctx, p, sqlDeposited, users); return },
		func() (err error) { withdrawn, err = amounts(ctx, p, sqlWithdrawn, users); return },
	)
	for i := range users {
		u := &users[i]
		u.Deposited, u.Withdrawn = cmp.Or(deposited[u.Address], new(big.Int)), cmp.Or(withdrawn[u.Address], new(big.Int))
	}
	return err
}

// amounts asks for an amount of each of some users, where they have one.
func amounts(ctx context.Context, p *pin.Pin, question string, users []user) (map[string]*big.Int, error) {
	type row struct {
		User   string   `ch:"user"`
		Amount *big.Int `ch:"amount"`
	}
	rows, err := pin.Ask[row](ctx, p, ofUsers(question, users), nil)
	out := make(map[string]*big.Int, len(rows))
	for _, r := range rows {
		out[r.User] = r.Amount
	}
	return out, err
}

// addFirstSeen fills in when users were first seen.
func addFirstSeen(ctx context.Context, p *pin.Pin, users []user) error {
	type row struct {
		User     string   `ch:"user"`
		Time     int64    `ch:"first_ts"`
		Fence    []uint64 `ch:"fence"`
		IsCursor uint8    `ch:"is_cursor"`
	}
	if len(users) == 0 {
		return nil
	}
	rows, err := pin.Ask[row](ctx, p, ofUsers(sqlFirstSeen, users), nil)
	if err != nil {
		return err
	}
	byUser := make(map[string]int64, len(rows))
	for _, r := range rows {
		if r.IsCursor == 1 {
			p.See(readmodel.FenceOf(r.Fence))
		} else {
			byUser[r.User] = r.Time
		}
	}
	for i := range users {
		users[i].FirstSeen = byUser[users[i].Address]
	}
	return nil
}

// ofUsers writes users into a question as literals: only of these the engine sees which
// rows to read.
func ofUsers(question string, users []user) string {
	list := make([]string, len(users))
	for i := range users { // no copy of them, for others fill them in meanwhile
		list[i] = pin.Literal(httpapi.ToAddress(users[i].Address))
	}
	return strings.ReplaceAll(question, "{users}", strings.Join(list, ","))
}
