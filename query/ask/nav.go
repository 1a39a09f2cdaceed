package ask

import (
	"context"
	_ "embed"
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/state"
)

//go:embed sql/vault_events.sql
var sqlVaultEvents string

// Valuation is the kind of NAV updates among the events of a vault.
const Valuation Word = "valuation"

// OfVault selects the events of one kind of a vault in some blocks. If Timed is set, only those with a time of at most
// At (Unix seconds) count.
type OfVault struct {
	Vault common.Address `ask:"vault" reads:"page.*"`
	Kind  Word           `ask:"kind"`
	Blocks
	Timed  bool  `ask:"timed"`
	At     int64 `ask:"at"`
	Oldest bool  `ask:"oldest"` // oldest first; for FirstOfEach only
}

// VaultEvent is an event of a vault. Of a NAV update it has the price per share with 18 decimals, assets and shares in
// native units, and the time in Unix seconds.
type VaultEvent struct {
	Entry
	Time        uint32      `ch:"ts"`
	Tx          common.Hash `ch:"hash"`
	NavPerShare string      `ch:"nav_per_share" sql:"toString(nav)"`
	TotalAssets string      `ch:"total_assets" sql:"toString(assets)"`
	TotalSupply string      `ch:"total_supply" sql:"toString(shares)"`
}

// VaultEvents is a page of a vault's events of one kind, newest first.
var VaultEvents = NewPage[OfVault, VaultEvent]("vault_events", sqlVaultEvents, NewestFirst).Deep().Long()

// NAV is the newest NAV update of a vault, with the price per share with 18 decimals, assets and supply in native
// units, and the time in Unix seconds.
type NAV struct {
	Block    uint64  `ch:"valued_block"`
	LogIndex uint32  `ch:"valued_log"`
	Time     uint32  `ch:"valued_ts"`
	PerShare big.Int `ch:"nav"`
	Assets   big.Int `ch:"assets"`
	Supply   big.Int `ch:"shares"`
}

// NewestNavs returns the newest NAV update of each vault of the pin, or nil if it has none.
func NewestNavs(ctx context.Context, p *Pin) ([]*NAV, error) {
	vaults, navs := state.Addresses(p.Vaults), make([]*NAV, len(p.Vaults))
	totals, err := TotalsOf(ctx, p, vaults...)
	for i, v := range vaults {
		navs[i] = totals.Of(v, v).NewestNav()
	}
	return navs, err
}
