package vaults

import "github.com/navlog/navlog/query/files"

// columns are the columns of a file of vaults.
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

// navColumns are the columns of a file of NAV updates.
var navColumns = []files.Column[navJSON]{
	files.Text("id", func(n *navJSON) string { return n.ID }),
	files.Text("vaultAddress", func(n *navJSON) string { return n.VaultAddress }),
	files.Foreign("vaultName", func(n *navJSON) string { return n.VaultName }),
	files.Text("navPerShare", func(n *navJSON) string { return n.NavPerShare }),
	files.TextOrNull("totalAssets", func(n *navJSON) *string { return n.TotalAssets }),
	files.TextOrNull("totalSupply", func(n *navJSON) *string { return n.TotalSupply }),
	files.Time("timestamp", func(n *navJSON) string { return n.Timestamp }),
	files.Number("blockNumber", func(n *navJSON) string { return n.BlockNumber }),
	files.TextOrNull("txHash", func(n *navJSON) *string { return n.TxHash }),
	files.CountOrNull("logIndex", func(n *navJSON) *uint32 { return n.LogIndex }),
}
