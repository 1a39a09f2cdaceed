package vaults

import (
	"context"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/readmodel"
)

// navJSON is NavHistory of the OpenAPI document.
type navJSON struct {
	ID           string  `json:"id"`
	VaultAddress string  `json:"vaultAddress"`
	VaultName    string  `json:"vaultName"`
	NavPerShare  string  `json:"navPerShare"`
	TotalAssets  string  `json:"totalAssets"`
	TotalSupply  string  `json:"totalSupply"`
	Timestamp    string  `json:"timestamp"`
	BlockNumber  string  `json:"blockNumber"`
	TxHash       *string `json:"txHash"`   // null for a sample
	LogIndex     *uint32 `json:"logIndex"` // null for a sample
}

// navOf returns the update as it appears in an answer about its vault.
func navOf(n *ask.Nav, v *state.Vault) navJSON {
	out := navJSON{
		ID: httpapi.SampleID(v.Written, n.Block), VaultAddress: v.Written, VaultName: v.Name,
		NavPerShare: n.NavPerShare, TotalAssets: n.TotalAssets, TotalSupply: n.TotalSupply,
		Timestamp: httpapi.Time(uint64(n.Time)), BlockNumber: httpapi.Decimal(n.Block),
	}
	if n.LogIndex != readmodel.SampleIndex {
		tx := n.Tx.Hex()
		out.ID, out.TxHash, out.LogIndex = httpapi.LogID(tx, n.LogIndex), &tx, &n.LogIndex
	}
	return out
}

func navsOf(rows []ask.Nav, v *state.Vault) []navJSON {
	out := make([]navJSON, len(rows))
	for i := range rows {
		out[i] = navOf(&rows[i], v)
	}
	return out
}

// Navs returns a page of the NAV updates of a vault, newest first.
func Navs(r *httpapi.Request) (*httpapi.Answer, error) {
	address, page, span := r.PathAddress(), r.Params.Page(), r.Params.Span()
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*httpapi.Answer, error) {
		v, ok := p.Vault(address)
		if !ok {
			return nil, httpapi.NoSuchVault()
		}
		args, err := ask.OfNavs{Vault: address}, error(nil)
		if args.First, args.Last, err = p.Blocks(ctx, span.From, span.To); err != nil {
			return nil, err
		}
		if r.AsFile() {
			return navsFile(ctx, r, p, v, page, args)
		}
		rows, total, err := ask.Navs.Counted(ctx, p, args, page.Offset(), page.Size, func() (int64, error) { return countNavs(ctx, p, args) })
		if err != nil {
			return nil, err
		}
		return r.List(navsOf(rows, v), page, total), nil
	})
}

// countNavs returns how many NAV updates a vault has in a range of blocks.
func countNavs(ctx context.Context, p *ask.Pin, in ask.OfNavs) (int64, error) {
	if in.Last < in.First {
		return 0, nil
	}
	upTo, before, err := ask.TotalsBetween(ctx, p, in.First, in.Last, in.Vault)
	return int64(upTo.Of(in.Vault, in.Vault).Navs) - int64(before.Of(in.Vault, in.Vault).Navs), err
}

// navsFile returns all NAV updates of a vault, page by page; each page begins after the last update of the previous
// one.
func navsFile(ctx context.Context, r *httpapi.Request, p *ask.Pin, v *state.Vault, page httpapi.Page, args ask.OfNavs) (*httpapi.Answer, error) {
	var last *ask.Place
	return httpapi.Whole(ctx, r, p, navColumns, func(ctx context.Context) ([]navJSON, error) {
		rows, err := ask.Navs.After(ctx, p, args, last, page.Size)
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		place := rows[len(rows)-1].Place()
		last = &place
		return navsOf(rows, v), nil
	})
}
