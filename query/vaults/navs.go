package vaults

import (
	"context"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
)

// navJSON is NavHistory of the OpenAPI document.
type navJSON struct {
	ID           string  `json:"id"`
	VaultAddress string  `json:"vaultAddress"`
	VaultName    string  `json:"vaultName" file:"foreign"`
	NavPerShare  string  `json:"navPerShare"`
	TotalAssets  *string `json:"totalAssets"` // null if no log has the supply, and this one lacks the assets
	TotalSupply  *string `json:"totalSupply"` // null if no log has it
	Timestamp    string  `json:"timestamp" file:"time"`
	BlockNumber  string  `json:"blockNumber" file:"number"`
	TxHash       *string `json:"txHash"`   // null for a sample
	LogIndex     *uint32 `json:"logIndex"` // null for a sample
}

// navOf returns the update as it appears in an answer about its vault.
func navOf(n *ask.VaultEvent, v *state.Vault) navJSON {
	out := navJSON{
		ID: serve.SampleID(v.Written, n.Block), VaultAddress: v.Written, VaultName: v.Name, NavPerShare: n.NavPerShare,
		Timestamp: serve.Time(uint64(n.Time)), BlockNumber: serve.Decimal(n.Block),
	}
	if n.LogIndex != readmodel.SampleIndex {
		tx := n.Tx.Hex()
		out.ID, out.TxHash, out.LogIndex = serve.EffectID(tx, n.LogIndex, n.Sub), &tx, &n.LogIndex
	}
	out.TotalAssets, out.TotalSupply = worth(v, n.Block, n.LogIndex, n.TotalAssets, n.TotalSupply)
	return out
}

// worth are the total assets and supply of a NAV update, nil for what no log has: the supply of a vault that neither
// its valuations nor its other logs give, and the assets that would follow from it.
func worth(v *state.Vault, block uint64, logIndex uint32, assets, supply string) (knownAssets, knownSupply *string) {
	d := v.Mapped.Description
	lacks := func(field mapping.Fields) bool {
		return logIndex == readmodel.SampleIndex || d.MayLack(mapping.Valuation, field, block)
	}
	if supply != "0" || !lacks(mapping.Shares) || d.Emits(mapping.Supply) {
		return &assets, &supply
	}
	if lacks(mapping.Assets) {
		return nil, nil
	}
	return &assets, nil
}

// Navs returns a page of the NAV updates of a vault, newest first.
func Navs(r *serve.Request) (*serve.Answer, error) {
	address, page, span := r.PathAddress(), r.Params.Page(), r.Params.Span()
	return r.WithVault(address, func(ctx context.Context, p *ask.Pin, v *state.Vault) (*serve.Answer, error) {
		args, err := ask.OfVault{Vault: address, Kind: ask.Valuation}, error(nil)
		if args.Blocks, err = p.Blocks(ctx, span.From, span.To); err != nil {
			return nil, err
		}
		count := func() (int64, error) {
			return ask.Growth(ctx, p, ask.Whose{Owners: []common.Address{address}}, args.Blocks,
				func(s *ask.Sums) uint64 { return s.Owners.Of(address, address).Navs })
		}
		return serve.Listed(ctx, r, p, page, ask.VaultEvents, args, count,
			func(n *ask.VaultEvent) navJSON { return navOf(n, v) })
	})
}
