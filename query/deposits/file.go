package deposits

import (
	"context"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/files"
	"github.com/navlog/navlog/query/serve"
)

// columns are the columns of a file of deposits.
var columns = []files.Column[depositJSON]{
	files.Text("id", func(d *depositJSON) string { return d.ID }),
	files.Text("vaultAddress", func(d *depositJSON) string { return d.VaultAddress }),
	files.Foreign("vaultName", func(d *depositJSON) string { return d.VaultName }),
	files.Text("userAddress", func(d *depositJSON) string { return d.UserAddress }),
	files.TextOrNull("senderAddress", func(d *depositJSON) *string { return d.SenderAddress }),
	files.Text("assetAmount", func(d *depositJSON) string { return d.AssetAmount }),
	files.TextOrNull("shares", func(d *depositJSON) *string { return d.Shares }),
	files.CountOrNull("partnerId", func(d *depositJSON) *uint32 { return d.PartnerID }),
	files.TimeOrNull("sweptAt", func(d *depositJSON) *string { return d.SweptAt }),
	files.Text("txHash", func(d *depositJSON) string { return d.TxHash }),
	files.Number("blockNumber", func(d *depositJSON) string { return d.BlockNumber }),
	files.Count("logIndex", func(d *depositJSON) int64 { return int64(d.LogIndex) }),
	files.Time("timestamp", func(d *depositJSON) string { return d.Timestamp }),
}

// file returns a whole list, page by page; each page begins after the last deposit of the previous one.
func file[A any](ctx context.Context, r *serve.Request, p *ask.Pin, page serve.Page, question *ask.Page[A, deposit],
	args A, last uint64) (*serve.Answer, error) {
	var behind *ask.Place
	return serve.Whole(ctx, r, p, columns, func(ctx context.Context) ([]depositJSON, error) {
		rows, err := question.After(ctx, p, args, behind, page.Size)
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		place := rows[len(rows)-1].Place()
		behind = &place
		return described(p, rows, last), nil
	})
}

// queueFile returns the whole queue: vault by vault and page by page, with the deposits of each vault in the order of
// their numbers.
func queueFile(ctx context.Context, r *serve.Request, p *ask.Pin, groups []group) (*serve.Answer, error) {
	var last *ask.Place
	size := r.Params.PageSize()
	return serve.Whole(ctx, r, p, columns, func(ctx context.Context) ([]depositJSON, error) {
		for ; len(groups) > 0; groups, last = groups[1:], nil {
			rows, err := unsweptPage.After(ctx, p, of(p, groups[0]), last, size)
			if err != nil {
				return nil, err
			}
			if len(rows) > 0 {
				place := rows[len(rows)-1].Place()
				last = &place
				return described(p, rows, p.Block), nil
			}
		}
		return nil, nil
	})
}
