package withdrawals

import (
	"context"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/files"
	"github.com/navlog/navlog/query/serve"
)

// columns are the columns of a file of withdrawal requests.
var columns = []files.Column[requestJSON]{
	files.Text("id", func(w *requestJSON) string { return w.ID }),
	files.Text("vaultAddress", func(w *requestJSON) string { return w.VaultAddress }),
	files.Foreign("vaultName", func(w *requestJSON) string { return w.VaultName }),
	files.Text("userAddress", func(w *requestJSON) string { return w.UserAddress }),
	files.TextOrNull("receiverAddress", func(w *requestJSON) *string { return w.ReceiverAddress }),
	files.Number("requestIndex", func(w *requestJSON) string { return w.RequestIndex }),
	files.Text("shares", func(w *requestJSON) string { return w.Shares }),
	files.TextOrNull("assetsEstimate", func(w *requestJSON) *string { return w.AssetsEstimate }),
	files.Text("status", func(w *requestJSON) string { return w.Status }),
	files.Truth("claimable", func(w *requestJSON) bool { return w.Claimable }),
	files.TextOrNull("assetsClaimable", func(w *requestJSON) *string { return w.AssetsClaimable }),
	files.TextOrNull("assetsClaimed", func(w *requestJSON) *string { return w.AssetsClaimed }),
	files.CountOrNull("partnerId", func(w *requestJSON) *uint32 { return w.PartnerID }),
	files.Time("requestedAt", func(w *requestJSON) string { return w.RequestedAt }),
	files.TimeOrNull("expiresAt", func(w *requestJSON) *string { return w.ExpiresAt }),
	files.TimeOrNull("fundedAt", func(w *requestJSON) *string { return w.FundedAt }),
	files.TimeOrNull("claimedAt", func(w *requestJSON) *string { return w.ClaimedAt }),
	files.TimeOrNull("cancelledAt", func(w *requestJSON) *string { return w.CancelledAt }),
	files.TimeOrNull("expiredAt", func(w *requestJSON) *string { return w.ExpiredAt }),
	files.Text("txHash", func(w *requestJSON) string { return w.TxHash }),
	files.Number("blockNumber", func(w *requestJSON) string { return w.BlockNumber }),
	files.Count("logIndex", func(w *requestJSON) int64 { return int64(w.LogIndex) }),
	files.Time("timestamp", func(w *requestJSON) string { return w.Timestamp }),
}

// file returns a whole list, page by page; each page begins after the last request of the previous one.
func file[A any](ctx context.Context, r *serve.Request, p *ask.Pin, page serve.Page, question *ask.Page[A, request], args A, now uint64) (*serve.Answer, error) {
	var last *ask.Place
	return serve.Whole(ctx, r, p, columns, func(ctx context.Context) ([]requestJSON, error) {
		rows, err := question.After(ctx, p, args, last, page.Size)
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		place := rows[len(rows)-1].Place()
		last = &place
		return described(rows, p, now), nil
	})
}
