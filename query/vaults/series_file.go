package vaults

import "github.com/navlog/navlog/query/files"

// ofNav returns a value of a point's NAVs, or nil if it has none.
func ofNav[V any](p *pointJSON, field func(*candleJSON) *V) *V {
	if p.Nav == nil {
		return nil
	}
	return field(p.Nav)
}

// seriesColumns are the columns of a file of points. Yields are left out, because they do not belong to a point.
var seriesColumns = []files.Column[pointJSON]{
	files.Time("start", func(p *pointJSON) string { return p.Start }),
	files.Time("end", func(p *pointJSON) string { return p.End }),
	files.Truth("complete", func(p *pointJSON) bool { return p.Complete }),
	files.TextOrNull("nav.open", func(p *pointJSON) *string { return ofNav(p, func(n *candleJSON) *string { return &n.Open }) }),
	files.TextOrNull("nav.high", func(p *pointJSON) *string { return ofNav(p, func(n *candleJSON) *string { return &n.High }) }),
	files.TextOrNull("nav.low", func(p *pointJSON) *string { return ofNav(p, func(n *candleJSON) *string { return &n.Low }) }),
	files.TextOrNull("nav.close", func(p *pointJSON) *string { return ofNav(p, func(n *candleJSON) *string { return &n.Close }) }),
	files.CountOrNull("nav.updates", func(p *pointJSON) *int64 { return ofNav(p, func(n *candleJSON) *int64 { return &n.Updates }) }),
	files.TextOrNull("totalAssets", func(p *pointJSON) *string { return p.TotalAssets }),
	files.TextOrNull("totalSupply", func(p *pointJSON) *string { return p.TotalSupply }),
	files.Count("deposits.count", func(p *pointJSON) int64 { return p.Deposits.Count }),
	files.Text("deposits.assets", func(p *pointJSON) string { return p.Deposits.Assets }),
	files.Count("requested.count", func(p *pointJSON) int64 { return p.Requested.Count }),
	files.Text("requested.assets", func(p *pointJSON) string { return p.Requested.Assets }),
	files.Count("claimed.count", func(p *pointJSON) int64 { return p.Claimed.Count }),
	files.Text("claimed.assets", func(p *pointJSON) string { return p.Claimed.Assets }),
	files.Count("newUsers", func(p *pointJSON) int64 { return p.NewUsers }),
	files.Count("users", func(p *pointJSON) int64 { return p.Users }),
}
