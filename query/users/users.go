// Package users answers who the users are, of all vaults or of one: a list in one of three
// orders, and what one of them has in each vault.
//
// # The lists
//
// By first seen, and by totals at the newest block, the list is rows in the order in
// which they are asked for, so that a page is read where it lies (pin.WholePage).
//
// What is shown beside the order by first seen, the totals, is added up for the users of
// the page. The lists by totals carry all that they show and know the newest block
// alone: the answer is held back where they are of a later one than the pin (see
// pin.Pin.SeeCursor). At a past block everybody's totals are added up.
//
// The users of a vault are those who deposited into it or asked it for a withdrawal, and
// what is shown of them is what they did there. The table knows who they are and keeps
// them in no order, so everybody of the vault is added up, at the newest block too.
//
// A file by first seen is read out of the list, and every other one is added up, at the
// newest block too: file.go.
package users

import (
	"cmp"
	"context"
	_ "embed"
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/counts"
	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
	"github.com/navlog/navlog/schemas/readmodel"
)

var (
	//go:embed page_asc.sql
	sqlPageAsc string
	//go:embed page_desc.sql
	sqlPageDesc string
	//go:embed added_asc.sql
	sqlAddedAsc string
	//go:embed added_desc.sql
	sqlAddedDesc string
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

// allVaults stands for no vault in particular, in the table and in the questions.
var allVaults common.Address

// order is that of a list.
type order struct {
	by         string // as a client names it
	descending bool
	page       httpapi.Page
}

func newOrder(params *httpapi.Params) order {
	return order{
		page: params.Page(), by: params.OneOf("sortBy", firstSeen, firstSeen, "totalDeposited", "totalWithdrawn"),
		descending: params.OneOf("sortOrder", "desc", "asc", "desc") == "desc",
	}
}

// List is a page of the users.
func List(r *httpapi.Request) (*httpapi.Answer, error) {
	o := newOrder(r.Params)
	return r.Pinned(func(ctx context.Context, p *pin.Pin) (*httpapi.Answer, error) {
		if r.AsFile() {
			return o.file(ctx, r, p, allVaults)
		}
		var users []user
		var total int64
		var err error
		if o.by != firstSeen && p.AsOf {
			users, total, err = o.addedUp(ctx, p, allVaults)
		} else {
			users, total, err = o.pageOf(ctx, p)
		}
		if err != nil {
			return nil, err
		}
		return o.answer(r, users, total), nil
	})
}

// OfVault is a page of the users of a vault.
func OfVault(r *httpapi.Request) (*httpapi.Answer, error) {
	address, o := r.PathAddress(), newOrder(r.Params)
	return r.Pinned(func(ctx context.Context, p *pin.Pin) (*httpapi.Answer, error) {
		if _, ok := p.Vault(address); !ok {
			return nil, httpapi.NoSuchVault()
		}
		if r.AsFile() {
			return o.file(ctx, r, p, address)
		}
		users, total, err := o.addedUp(ctx, p, address)
		if err != nil {
			return nil, err
		}
		return o.answer(r, users, total), nil
	})
}

func (o order) answer(r *httpapi.Request, users []user, total int64) *httpapi.Answer {
	return r.List(written(users), o.page, total)
}

func written(users []user) []userJSON {
	out := make([]userJSON, len(users))
	for i := range users {
		out[i] = users[i].json()
	}
	return out
}

// pageOf reads a page out of a list of the table, and how many users it has.
func (o order) pageOf(ctx context.Context, p *pin.Pin) (users []user, total int64, err error) {
	users, err = o.part(ctx, p, beginning(o.descending), func() (_ int64, err error) {
		total, err = counts.Users(ctx, p, allVaults, 0)
		return total, err
	})
	return users, total, err
}

// part reads a page out of what a list of the table has after a user of it. total tells how
// many that are.
func (o order) part(ctx context.Context, p *pin.Pin, from *user, total func() (int64, error)) (users []user, err error) {
	err = pin.WholePage(ctx, p, o.page.Offset(), o.page.Size, total, func(most uint64) (n int, err error) {
		users, err = o.readPage(ctx, p, most, from)
		return len(users), err
	})
	return users, err
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

// readPage reads the users of a page, out of the first so many rows of a list after a user of
// it, with all that is shown of them.
func (o order) readPage(ctx context.Context, p *pin.Pin, most uint64, from *user) ([]user, error) {
	type row struct {
		user
		cursor
		IsCursor uint8 `ch:"is_cursor"`
	}
	list := lists[o.by]
	rows, err := pin.Ask[row](ctx, p, directed(o.descending, sqlPageDesc, sqlPageAsc),
		pin.Args{"list": list, "most": most, "limit": uint64(o.page.Size), "offset": o.page.Offset(),
			"from_key": from.Key, "from_user": httpapi.ToAddress(from.Address)})
	if err != nil {
		return nil, err
	}
	users := make([]user, 0, o.page.Size)
	for _, r := range rows {
		if r.IsCursor == 1 {
			r.see(p, list)
		} else {
			users = append(users, r.user)
		}
	}
	if o.by == firstSeen {
		err = addTotals(ctx, p, users, allVaults)
	}
	return users, err
}

func directed(descending bool, desc, asc string) string {
	if descending {
		return desc
	}
	return asc
}

// addedUp adds up what everybody of a vault did up to a block, and reads a page of that.
func (o order) addedUp(ctx context.Context, p *pin.Pin, vault common.Address) (users []user, total int64, err error) {
	err = pin.Together(
		func() (err error) {
			users, err = o.readAddedUp(ctx, p, vault, o.page.Size, beginning(o.descending))
			return
		},
		func() (err error) { total, err = counts.Users(ctx, p, vault, 0); return },
	)
	if err != nil {
		return nil, 0, err
	}
	return users, total, describe(ctx, p, users, vault)
}

// readAddedUp adds up what everybody did, and reads who the users are of a page of that
// after a user, and their keys.
func (o order) readAddedUp(ctx context.Context, p *pin.Pin, vault common.Address, size int, from *user) ([]user, error) {
	type row struct {
		Key      *big.Int `ch:"key"`
		User     string   `ch:"user"`
		Fence    []uint64 `ch:"fence"`
		IsCursor uint8    `ch:"is_cursor"`
	}
	rows, err := pin.Ask[row](ctx, p, directed(o.descending, sqlAddedDesc, sqlAddedAsc),
		pin.Args{"list": lists[o.by], "vault": vault, "limit": uint64(size), "offset": o.page.Offset(), "from_key": from.Key, "from_user": httpapi.ToAddress(from.Address)})
	if err != nil {
		return nil, err
	}
	users := make([]user, 0, len(rows))
	for _, r := range rows {
		if r.IsCursor == 1 {
			p.See(readmodel.FenceOf(r.Fence))
		} else {
			users = append(users, user{Key: r.Key, Address: r.User})
		}
	}
	return users, nil
}

// describe fills in all that is shown of users, in a vault or in all.
func describe(ctx context.Context, p *pin.Pin, users []user, vault common.Address) error {
	return pin.Together(
		func() error { return addTotals(ctx, p, users, vault) },
		func() error { return addFirstSeen(ctx, p, users, vault) },
	)
}

// addTotals fills in what users deposited and withdrew, in a vault or in all.
func addTotals(ctx context.Context, p *pin.Pin, users []user, vault common.Address) error {
	if len(users) == 0 {
		return nil
	}
	var deposited, withdrawn map[string]*big.Int
	err := pin.Together(
		func() (err error) { deposited, err = amounts(ctx, p, sqlDeposited, users, vault); return },
		func() (err error) { withdrawn, err = amounts(ctx, p, sqlWithdrawn, users, vault); return },
	)
	for i := range users {
		u := &users[i]
		u.Deposited, u.Withdrawn = cmp.Or(deposited[u.Address], new(big.Int)), cmp.Or(withdrawn[u.Address], new(big.Int))
	}
	return err
}

// amounts asks for an amount of each of some users, where they have one.
func amounts(ctx context.Context, p *pin.Pin, question string, users []user, vault common.Address) (map[string]*big.Int, error) {
	type row struct {
		User   string   `ch:"user"`
		Amount *big.Int `ch:"amount"`
	}
	rows, err := pin.Ask[row](ctx, p, question, pin.Args{"vault": vault, "users": keysOf(users)})
	out := make(map[string]*big.Int, len(rows))
	for _, r := range rows {
		out[r.User] = r.Amount
	}
	return out, err
}

// addFirstSeen fills in when users were first seen, in a vault or in any.
func addFirstSeen(ctx context.Context, p *pin.Pin, users []user, vault common.Address) error {
	type row struct {
		User     string   `ch:"user"`
		Time     int64    `ch:"first_ts"`
		Fence    []uint64 `ch:"fence"`
		IsCursor uint8    `ch:"is_cursor"`
	}
	if len(users) == 0 {
		return nil
	}
	rows, err := pin.Ask[row](ctx, p, sqlFirstSeen, pin.Args{"vault": vault, "users": keysOf(users)})
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

func keysOf(users []user) *pin.Keys {
	var keys pin.Keys
	for i := range users { // no copy of them, for others fill them in meanwhile
		keys.Address(httpapi.ToAddress(users[i].Address))
	}
	return &keys
}
