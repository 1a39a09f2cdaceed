package ask

import (
	"context"
	_ "embed"
	"math"

	"github.com/ethereum/go-ethereum/common"
)

//go:embed sql/nav.sql
var sqlNav string

// OfNavs are NAV updates of a vault in some blocks, both included, and where Timed is set those whose
// time is not after At (Unix seconds).
type OfNavs struct {
	Vault common.Address `ask:"vault" reads:"vault_events.valuation"`
	First uint64         `ask:"first"`
	Last  uint64         `ask:"last"`
	Timed bool           `ask:"timed"`
	At    int64          `ask:"at"`
}

// Nav is a NAV update: the price of a share with 18 decimals, assets and shares in native units, the
// time in Unix seconds.
type Nav struct {
	Entry
	Time        uint32      `ch:"ts"`
	Tx          common.Hash `ch:"hash"`
	NavPerShare string      `ch:"nav_per_share"`
	TotalAssets string      `ch:"total_assets"`
	TotalSupply string      `ch:"total_supply"`
}

// Navs is a page of the NAV updates of a vault, newest first.
var Navs = NewPage[OfNavs, Nav]("vault_events", sqlNav, NewestFirst).Deep(func(_ *Pin, a OfNavs) (Filter, bool) {
	return Filter{Owner: a.Vault, Kind: "valuation", Above: LowestKey, UpTo: HighestKey, First: a.First, Last: a.Last}, !a.Timed
}).Long()

// NewestNav is the newest NAV update of a vault whose block's time is not after one, in Unix seconds;
// nil for none.
func NewestNav(ctx context.Context, p *Pin, vault common.Address, at int64) (*Nav, error) {
	rows, err := Navs.Read(ctx, p, OfNavs{Vault: vault, Last: p.Block, Timed: at != math.MaxInt64, At: at}, 0, 1)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}
