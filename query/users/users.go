// Package users serves the users of all vaults or of one: a list in one of three orders, and a user's totals in each
// vault.
//
// The users of a vault are those who deposited into it or requested a withdrawal from it, and their totals are those
// in the vault.
//
// By first seen, and by totals at the newest block, each order is a list of the read model, so that a page is read
// directly; the totals of its users are read in addition. Lists by totals are only valid for the newest block. At a
// past block, and for a file, one query reads and sorts the totals of all users: the only query here whose cost grows
// with their number. (A file by first seen reads those of its next users only.)
package users

import (
	"context"
	"embed"
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/state"
)

//go:embed *.sql
var files embed.FS

type userJSON struct {
	Address        string `json:"address"`
	FirstSeen      string `json:"firstSeen" file:"time"`
	TotalDeposited string `json:"totalDeposited"`
	TotalWithdrawn string `json:"totalWithdrawn"`
}

// allVaults stands for all vaults, in the lists and in the queries.
var allVaults common.Address

const firstSeen = "firstSeen"

// lists are the lists of the read model, by the client's name for their order.
var lists = map[string]ask.Word{firstSeen: "first_seen", "totalDeposited": "deposited", "totalWithdrawn": "withdrawn"}

// ofVault selects the users of a vault, or of all vaults if it is zero.
type ofVault struct {
	Vault common.Address `ask:"vault" reads:"page"`
}

type user struct {
	ask.Entry
	FirstSeen uint32 `ch:"ts"`
}

// addedUp is a user with the totals up to a block, in a vault or in all.
type addedUp struct {
	ask.Mark
	Address   common.Address `ch:"address"`
	Deposited big.Int        `ch:"total_in"`
	Withdrawn big.Int        `ch:"total_out"`
	Block     uint64         `ch:"first_block"`
	FirstSeen uint32         `ch:"first_time"`
	Place     big.Int        `ch:"place"` // in the order of the list
}

func (u *addedUp) json() userJSON {
	return describe(u.Address, uint64(u.FirstSeen), &u.Deposited, &u.Withdrawn)
}

func describe(user common.Address, first uint64, deposited, withdrawn *big.Int) userJSON {
	return userJSON{Address: user.Hex(), FirstSeen: serve.Time(first), TotalDeposited: deposited.String(),
		TotalWithdrawn: withdrawn.String()}
}

type ofWhole struct {
	List  ask.Word       `ask:"list"`
	Vault common.Address `ask:"vault"`
	Came  bool           `ask:"came"` // the list is first_seen
	place
}

// place is where a list continues, and how many users are read.
type place struct {
	Key    ask.Decimal    `ask:"after_key"`
	User   common.Address `ask:"after_user"`
	Rows   uint64         `ask:"rows"`
	Offset uint64         `ask:"offset"`
}

var (
	pages = map[ask.Order]map[string]*ask.Page[ofVault, user]{ask.NewestFirst: {}, ask.OldestFirst: {}}
	whole = map[ask.Order]*ask.Question[ofWhole, addedUp]{
		ask.NewestFirst: ask.New[ofWhole, addedUp](ask.InOrder(state.SQL(files, "whole"), ask.NewestFirst)),
		ask.OldestFirst: ask.New[ofWhole, addedUp](ask.InOrder(state.SQL(files, "whole"), ask.OldestFirst)),
	}
)

func init() {
	for by, list := range lists {
		for _, order := range []ask.Order{ask.OldestFirst, ask.NewestFirst} {
			page := ask.NewPage[ofVault, user](string(list), state.SQL(files, "page"), order).Deep().Long()
			if by != firstSeen {
				page.Newest()
			}
			pages[order][by] = page
		}
	}
}

type order struct {
	by   string // the client's name for it
	of   ask.Order
	page serve.Page
}

func newOrder(params *serve.Params) order {
	o := order{page: params.Page(), by: params.OneOf("sortBy", firstSeen, firstSeen, "totalDeposited", "totalWithdrawn")}
	if params.OneOf("sortOrder", "desc", "asc", "desc") == "desc" {
		o.of = ask.NewestFirst
	}
	return o
}

// List returns a page of the users.
func List(r *serve.Request) (*serve.Answer, error) {
	o := newOrder(r.Params)
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) { return o.answer(ctx, r, p, allVaults) })
}

// OfVault returns a page of the users of a vault.
func OfVault(r *serve.Request) (*serve.Answer, error) {
	vault, o := r.PathAddress(), newOrder(r.Params)
	return r.WithVault(vault, func(ctx context.Context, p *ask.Pin, _ *state.Vault) (*serve.Answer, error) {
		return o.answer(ctx, r, p, vault)
	})
}

func (o order) answer(ctx context.Context, r *serve.Request, p *ask.Pin, vault common.Address) (*serve.Answer, error) {
	switch {
	case r.AsFile():
		return o.file(ctx, r, p, vault)
	case o.by != firstSeen && p.AsOf:
		return o.past(ctx, r, p, vault)
	}
	count := func() (int64, error) { return count(ctx, p, vault) }
	users, total, err := pages[o.of][o.by].Counted(ctx, p, ofVault{vault}, o.page.Offset(), o.page.Size, count)
	if err != nil {
		return nil, err
	}
	addresses := serve.Each(users, func(u *user) common.Address { return u.User })
	totals, err := ask.UserTotals(ctx, p, addresses...)
	if err != nil {
		return nil, err
	}
	var only *common.Address
	if vault != allVaults {
		only = &vault
	}
	return r.List(serve.Each(users, func(u *user) userJSON {
		sum := totals.Sum(u.User, only)
		return describe(u.User, uint64(u.FirstSeen), &sum.Deposited, &sum.Claimed)
	}), o.page, total), nil
}

// past returns a page of a list by amounts at a past block.
func (o order) past(ctx context.Context, r *serve.Request, p *ask.Pin, vault common.Address) (*serve.Answer, error) {
	var users []addedUp
	var total int64
	err := ask.Together(
		func() (err error) {
			users, _, err = o.rank(ctx, p, vault, o.page.Offset(), uint64(o.page.Size), o.beginning())
			return err
		},
		func() (err error) { total, err = count(ctx, p, vault); return },
	)
	if err != nil {
		return nil, err
	}
	return r.List(serve.Each(users, (*addedUp).json), o.page, total), nil
}

func count(ctx context.Context, p *ask.Pin, vault common.Address) (int64, error) {
	totals, err := ask.TotalsOf(ctx, p, vault)
	return int64(totals.Of(vault, vault).Users), err
}

// beginning is the place before the first user of a list.
func (o order) beginning() place {
	if o.of == ask.NewestFirst {
		return place{Key: ask.HighestKey, User: common.MaxAddress}
	}
	return place{Key: ask.LowestKey}
}

// rank sorts all users by their values at the pin's block, and returns some of them after a place, and the place of
// the last one.
func (o order) rank(
	ctx context.Context, p *ask.Pin, vault common.Address, offset, rows uint64, after place,
) ([]addedUp, place, error) {
	after.Offset, after.Rows = offset, rows
	users, err := whole[o.of].Rows(ctx, p, ofWhole{lists[o.by], vault, o.by == firstSeen, after})
	if len(users) > 0 {
		last := &users[len(users)-1]
		after.Key, after.User = ask.Decimal(last.Place.String()), last.Address
	}
	return users, after, err
}

// addedAtOnce is how many pages of a file are sorted at once, because sorting a list by amounts reads the totals of
// all users each time.
const addedAtOnce = 10

// file returns all users, of a vault or in total, at its block. It does not read the lists by amounts: they are only
// valid for the newest block, which changes while a file is sent.
func (o order) file(ctx context.Context, r *serve.Request, p *ask.Pin, vault common.Address) (*serve.Answer, error) {
	after := o.beginning()
	var ahead []addedUp
	var ranked bool // all users
	return serve.Whole(ctx, r, p, func(ctx context.Context) (_ []userJSON, more bool, err error) {
		if len(ahead) == 0 {
			if ahead, after, err = o.rank(ctx, p, vault, 0, addedAtOnce*uint64(o.page.Size), after); err != nil {
				return nil, false, err
			}
			ranked = len(ahead) < addedAtOnce*o.page.Size
		}
		users := ahead[:min(len(ahead), o.page.Size)]
		ahead = ahead[len(users):]
		return serve.Each(users, (*addedUp).json), len(ahead) > 0 || !ranked, nil
	})
}

type detailJSON struct {
	userJSON
	Holdings holdingsJSON `json:"holdings"`
}

type holdingsJSON struct {
	Deposits    []depositsJSON    `json:"deposits"`
	Withdrawals []withdrawalsJSON `json:"withdrawals"`
}

type depositsJSON struct {
	VaultAddress string `json:"vaultAddress"`
	Sum          struct {
		AssetAmount string `json:"assetAmount"`
	} `json:"_sum"`
	Count int64 `json:"_count"`
}

type withdrawalsJSON struct {
	VaultAddress string `json:"vaultAddress"`
	Sum          struct {
		AssetsEstimate string `json:"assetsEstimate"`
		AssetsClaimed  string `json:"assetsClaimed"`
	} `json:"_sum"`
	Count int64 `json:"_count"`
}

// Detail returns one user with the totals in each vault.
func Detail(r *serve.Request) (*serve.Answer, error) {
	address := r.PathAddress()
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) {
		sums, err := ask.SumsOf(ctx, p, ask.Whose{Users: []common.Address{address}, Members: []ask.Member{{User: address}}})
		if err != nil {
			return nil, err
		}
		totals := sums.Users
		first, ok := sums.Seen[address]
		if !ok {
			return nil, serve.NotFound("There is no such user.")
		}
		holdings := holdingsJSON{Deposits: []depositsJSON{}, Withdrawals: []withdrawalsJSON{}}
		for _, v := range p.Vaults {
			t := totals.Of(address, v.Address)
			if ask.HasDeposits(&v, t) {
				out := depositsJSON{VaultAddress: v.Written, Count: int64(t.Deposits)}
				out.Sum.AssetAmount = t.Deposited.String()
				holdings.Deposits = append(holdings.Deposits, out)
			}
			if ask.HasWithdrawals(&v, t) {
				out := withdrawalsJSON{VaultAddress: v.Written, Count: int64(t.Requests)}
				out.Sum.AssetsEstimate, out.Sum.AssetsClaimed = t.Estimated.String(), t.Claimed.String()
				holdings.Withdrawals = append(holdings.Withdrawals, out)
			}
		}
		sum := totals.Sum(address, nil)
		return &serve.Answer{Data: detailJSON{describe(address, first, &sum.Deposited, &sum.Claimed), holdings}}, nil
	})
}
