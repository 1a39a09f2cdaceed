package vaults

import (
	"context"

	"github.com/navlog/navlog/query/files"
	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/navs"
	"github.com/navlog/navlog/query/pin"
)

// columns are those of a file of vaults.
var columns = []files.Column[vaultJSON]{
	files.Text("address", func(v *vaultJSON) string { return v.Address }),
	files.Foreign("name", func(v *vaultJSON) string { return v.Name }),
	files.Foreign("symbol", func(v *vaultJSON) string { return v.Symbol }),
	files.Count("chainId", func(v *vaultJSON) int64 { return int64(v.ChainID) }),
	files.Count("decimals", func(v *vaultJSON) int64 { return int64(v.Decimals) }),
	files.Text("asset.address", func(v *vaultJSON) string { return v.Asset.Address }),
	files.Foreign("asset.symbol", func(v *vaultJSON) string { return v.Asset.Symbol }),
	files.Count("asset.decimals", func(v *vaultJSON) int64 { return int64(v.Asset.Decimals) }),
	files.TextOrNull("totalAssets", func(v *vaultJSON) *string { return v.TotalAssets }),
	files.TextOrNull("totalSupply", func(v *vaultJSON) *string { return v.TotalSupply }),
	files.TextOrNull("navPerShare", func(v *vaultJSON) *string { return v.NavPerShare }),
	files.TimeOrNull("navUpdatedAt", func(v *vaultJSON) *string { return v.NavUpdatedAt }),
	files.Number("startBlock", func(v *vaultJSON) string { return v.StartBlock }),
}

// navColumns are those of a file of NAV updates.
var navColumns = []files.Column[navs.JSON]{
	files.Text("id", func(n *navs.JSON) string { return n.ID }),
	files.Text("vaultAddress", func(n *navs.JSON) string { return n.VaultAddress }),
	files.Foreign("vaultName", func(n *navs.JSON) string { return n.VaultName }),
	files.Text("navPerShare", func(n *navs.JSON) string { return n.NavPerShare }),
	files.Text("totalAssets", func(n *navs.JSON) string { return n.TotalAssets }),
	files.Text("totalSupply", func(n *navs.JSON) string { return n.TotalSupply }),
	files.Time("timestamp", func(n *navs.JSON) string { return n.Timestamp }),
	files.Number("blockNumber", func(n *navs.JSON) string { return n.BlockNumber }),
	files.Text("txHash", func(n *navs.JSON) string { return n.TxHash }),
	files.Count("logIndex", func(n *navs.JSON) int64 { return int64(n.LogIndex) }),
}

// navsFile is all NAV updates of a vault: page after page, each before the last update of
// the one before.
func navsFile(ctx context.Context, r *httpapi.Request, p *pin.Pin, v *pin.Vault, args pin.Args) (*httpapi.Answer, error) {
	return httpapi.Whole(ctx, r, p, navColumns, func(ctx context.Context) ([]navs.JSON, error) {
		rows, err := pin.Ask[navs.Nav](ctx, p, sqlNavs, args)
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		last := &rows[len(rows)-1]
		args["before_block"], args["before_log"] = last.Block, last.LogIndex
		out := make([]navs.JSON, len(rows))
		for i := range rows {
			out[i] = rows[i].JSON(v)
		}
		return out, nil
	})
}
