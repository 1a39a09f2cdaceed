package events

import (
	"context"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/files"
	"github.com/navlog/navlog/query/serve"
)

// columns are the columns of a file of events.
var columns = []files.Column[eventJSON]{
	files.Text("id", func(e *eventJSON) string { return e.ID }),
	files.Number("seq", func(e *eventJSON) string { return e.Seq }),
	files.Text("kind", func(e *eventJSON) string { return e.Kind }),
	files.Text("vaultAddress", func(e *eventJSON) string { return e.VaultAddress }),
	files.Foreign("vaultName", func(e *eventJSON) string { return e.VaultName }),
	files.Number("blockNumber", func(e *eventJSON) string { return e.BlockNumber }),
	files.Time("timestamp", func(e *eventJSON) string { return e.Timestamp }),
	files.Text("txHash", func(e *eventJSON) string { return e.TxHash }),
	files.Count("logIndex", func(e *eventJSON) int64 { return int64(e.LogIndex) }),
	files.TextOrNull("userAddress", func(e *eventJSON) *string { return e.UserAddress }),
	files.CountOrNull("partnerId", func(e *eventJSON) *uint32 { return e.PartnerID }),
	files.NumberOrNull("depositId", func(e *eventJSON) *string { return e.DepositID }),
	files.NumberOrNull("requestIndex", func(e *eventJSON) *string { return e.RequestIndex }),
	files.TextOrNull("assets", func(e *eventJSON) *string { return e.Assets }),
	files.TextOrNull("shares", func(e *eventJSON) *string { return e.Shares }),
	files.TextOrNull("navPerShare", func(e *eventJSON) *string { return e.NavPerShare }),
	files.TextOrNull("totalAssets", func(e *eventJSON) *string { return e.TotalAssets }),
	files.TextOrNull("totalSupply", func(e *eventJSON) *string { return e.TotalSupply }),
	files.NumberOrNull("fromId", func(e *eventJSON) *string { return e.FromID }),
	files.NumberOrNull("toId", func(e *eventJSON) *string { return e.ToID }),
	files.Text("state", func(e *eventJSON) string { return e.State }),
	files.NumberOrNull("retractedBySeq", func(e *eventJSON) *string { return e.RetractedBySeq }),
}

// file returns all pages of the list. It pages with a copy of the filter, so that an earlier attempt at the answer
// has no effect.
func (f *filter) file(ctx context.Context, r *serve.Request, p *ask.Pin) (*serve.Answer, error) {
	some := *f
	return serve.Whole(ctx, r, p, columns, func(ctx context.Context) ([]eventJSON, error) {
		rows, err := some.page(ctx, p)
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		rows = rows[:min(len(rows), some.size)]
		some.before = rows[len(rows)-1].place(some.retracted)
		return describe(ctx, p, rows, some.retracted)
	})
}
