package ask

import (
	"context"
	_ "embed"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
)

//go:embed sql/totals.sql
var sqlTotals string

type ofOwners struct {
	Owners []common.Address `ask:"owners" reads:"totals"`
	steps
}

type ofUsers struct {
	Users []common.Address `ask:"owners" reads:"user_totals"`
	steps
}

type steps struct {
	List   Word   `ask:"list"`
	At     uint64 `ask:"at"`
	Before uint64 `ask:"before"`
}

type totalsRow struct {
	Mark
	Owner    common.Address `ch:"owner"`
	Scope    common.Address `ch:"scope"`
	From     uint64         `ch:"from_block"`
	Until    uint64         `ch:"until_block"`
	Deposits uint64         `ch:"deposit_count"`
	Assets   string         `ch:"deposit_sum"`
	Requests uint64         `ch:"request_count"`
	Estimate string         `ch:"estimate_sum"`
	Claims   uint64         `ch:"claim_count"`
	Claimed  string         `ch:"claim_sum"`
	Users    uint64         `ch:"user_count"`
	Swept    uint64         `ch:"swept_count"`
	SweptSum string         `ch:"swept_sum"`
	SweptTo  uint64         `ch:"last_swept"`
	Navs     uint64         `ch:"valuation_count"`
}

var (
	totals     = New[ofOwners, totalsRow](sqlTotals)
	userTotals = New[ofUsers, totalsRow](sqlTotals)
)

// Totals are the running totals of an owner in a scope at a block. What the owners and scopes
// are readmodel.List says. Amounts are in native units.
type Totals struct {
	Deposits, Requests, Claims, Users, Swept uint64
	Deposited, Estimated, Claimed            *big.Int
	SweptAssets                              *big.Int
	SweptTo                                  uint64 // the highest number that a sweep named
	Navs                                     uint64 // NAV updates
}

// Holding names the totals of an owner in a scope.
type Holding struct{ Owner, Scope common.Address }

// noTotals are those of an owner of whom nothing is known.
func noTotals() *Totals {
	return &Totals{Deposited: new(big.Int), Estimated: new(big.Int), Claimed: new(big.Int), SweptAssets: new(big.Int)}
}

// AllTotals are totals by owner and scope.
type AllTotals map[Holding]*Totals

// Of gives the totals of an owner in a scope; zeros where there are none.
func (a AllTotals) Of(owner, scope common.Address) *Totals {
	if t := a[Holding{owner, scope}]; t != nil {
		return t
	}
	return noTotals()
}

// Sum adds up the totals of an owner over all vaults, or of one where it is not nil. Users and
// what is swept do not add up, and are zero.
func (a AllTotals) Sum(owner common.Address, vault *common.Address) *Totals {
	sum := noTotals()
	for h, t := range a {
		if h.Owner != owner || h.Scope == (common.Address{}) || vault != nil && h.Scope != *vault {
			continue
		}
		sum.Deposits += t.Deposits
		sum.Requests += t.Requests
		sum.Claims += t.Claims
		sum.Deposited.Add(sum.Deposited, t.Deposited)
		sum.Estimated.Add(sum.Estimated, t.Estimated)
		sum.Claimed.Add(sum.Claimed, t.Claimed)
	}
	return sum
}

// TotalsOf reads the totals of vaults and partners (readmodel.PartnerOwner), or of everything (zero),
// at the pin's block.
func TotalsOf(ctx context.Context, p *Pin, owners ...common.Address) (AllTotals, error) {
	now, _, err := TotalsBetween(ctx, p, 0, p.Block, owners...)
	return now, err
}

// TotalsBetween reads their totals at block last, which is at most the pin's, and before block
// first: the difference is of the blocks first to last.
func TotalsBetween(ctx context.Context, p *Pin, first, last uint64, owners ...common.Address) (upTo, before AllTotals, err error) {
	rows, err := totals.Rows(ctx, p, ofOwners{owners, newSteps("totals", first, last)})
	upTo, before = divided(rows, first, last)
	return upTo, before, err
}

// UserTotals reads the totals of users at the pin's block.
func UserTotals(ctx context.Context, p *Pin, users ...common.Address) (AllTotals, error) {
	now, _, err := UserTotalsBetween(ctx, p, 0, p.Block, users...)
	return now, err
}

// UserTotalsBetween is TotalsBetween of users.
func UserTotalsBetween(ctx context.Context, p *Pin, first, last uint64, users ...common.Address) (upTo, before AllTotals, err error) {
	rows, err := userTotals.Rows(ctx, p, ofUsers{users, newSteps("user_totals", first, last)})
	upTo, before = divided(rows, first, last)
	return upTo, before, err
}

func newSteps(list Word, first, last uint64) steps {
	s := steps{List: list, At: last, Before: last}
	if first > 0 {
		s.Before = first - 1
	}
	return s
}

// divided are the steps that are true at block last, and those before block first.
func divided(rows []totalsRow, first, last uint64) (upTo, before AllTotals) {
	upTo, before = AllTotals{}, AllTotals{}
	for i := range rows {
		r := &rows[i]
		t := &Totals{Deposits: r.Deposits, Requests: r.Requests, Claims: r.Claims, Users: r.Users, Swept: r.Swept, SweptTo: r.SweptTo, Navs: r.Navs,
			Deposited: Number(r.Assets), Estimated: Number(r.Estimate), Claimed: Number(r.Claimed), SweptAssets: Number(r.SweptSum)}
		if r.From <= last && last < r.Until {
			upTo[Holding{r.Owner, r.Scope}] = t
		}
		if first > 0 && r.From < first && first <= r.Until {
			before[Holding{r.Owner, r.Scope}] = t
		}
	}
	return upTo, before
}

// Number reads an Int256 as the engine writes it.
func Number(s string) *big.Int {
	n, _ := new(big.Int).SetString(s, 10)
	if n == nil {
		n = new(big.Int)
	}
	return n
}
