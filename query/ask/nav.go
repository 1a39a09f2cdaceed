package ask

import (
	"context"
	_ "embed"
	"math"

	"github.com/ethereum/go-ethereum/common"
)

//go:embed sql/nav.sql
var sqlNav string

// OfNavs selects the NAV updates of a vault in the blocks First to Last, both included. If Timed is set, only those
// with a time of at most At (Unix seconds) count.
type OfNavs struct {
	Vault common.Address `ask:"vault" reads:"vault_events.valuation"`
	First uint64         `ask:"first"`
	Last  uint64         `ask:"last"`
	Timed bool           `ask:"timed"`
	At    int64          `ask:"at"`
}

// Nav is a NAV update: the price per share with 18 decimals, assets and shares in native units, the time in Unix
// seconds.
type Nav struct {
	Entry
	Time        uint32      `ch:"ts"`
	Tx          common.Hash `ch:"hash"`
	NavPerShare string      `ch:"nav_per_share"`
	TotalAssets string      `ch:"total_assets"`
	TotalSupply string      `ch:"total_supply"`
}

// Navs is a page of a vault's NAV updates, newest first.
var Navs = NewPage[OfNavs, Nav]("vault_events", sqlNav, NewestFirst).Deep(func(_ *Pin, a OfNavs) (Filter, bool) {
	return Filter{Owner: a.Vault, Kind: "valuation", Above: LowestKey, UpTo: HighestKey, First: a.First, Last: a.Last}, !a.Timed
}).Long()

// NewestNav returns a vault's newest NAV update with a block time of at most at, in Unix seconds, or nil if there is
// none.
func NewestNav(ctx context.Context, p *Pin, vault common.Address, at int64) (*Nav, error) {
	rows, err := Navs.Read(ctx, p, OfNavs{Vault: vault, Last: p.Block, Timed: at != math.MaxInt64, At: at}, 0, 1)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}
