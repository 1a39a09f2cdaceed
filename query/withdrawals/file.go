package withdrawals

import (
	"cmp"
	"context"
	"slices"

	"github.com/navlog/navlog/query/files"
	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
)

// columns are those of a file of withdrawal requests.
var columns = []files.Column[requestJSON]{
	files.Text("id", func(w *requestJSON) string { return w.ID }),
	files.Text("vaultAddress", func(w *requestJSON) string { return w.VaultAddress }),
	files.Foreign("vaultName", func(w *requestJSON) string { return w.VaultName }),
	files.Text("userAddress", func(w *requestJSON) string { return w.UserAddress }),
	files.Text("receiverAddress", func(w *requestJSON) string { return w.ReceiverAddress }),
	files.Number("requestIndex", func(w *requestJSON) string { return w.RequestIndex }),
	files.Text("shares", func(w *requestJSON) string { return w.Shares }),
	files.Text("assetsEstimate", func(w *requestJSON) string { return w.AssetsEstimate }),
	files.Text("status", func(w *requestJSON) string { return w.Status }),
	files.Truth("claimable", func(w *requestJSON) bool { return w.Claimable }),
	files.Text("assetsClaimable", func(w *requestJSON) string { return w.AssetsClaimable }),
	files.Text("assetsClaimed", func(w *requestJSON) string { return w.AssetsClaimed }),
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

// lastFirst puts requests of a vault into the order of its list.
func lastFirst(requests []request) {
	slices.SortFunc(requests, func(a, b request) int { return cmp.Compare(b.asked.Index, a.asked.Index) })
}

// sort puts requests into the order of the list.
func (l *list) sort(requests []request) {
	oldestFirst(requests)
	if l.newestFirst {
		slices.Reverse(requests)
	}
}

// vaultFile is all requests of a vault: page after page, each from the index below the
// last one.
func vaultFile(ctx context.Context, r *httpapi.Request, p *pin.Pin, args pin.Args) (*httpapi.Answer, error) {
	now, err := p.Now(ctx)
	if err != nil {
		return nil, err
	}
	over := false
	return httpapi.Whole(ctx, r, p, columns, func(ctx context.Context) ([]requestJSON, error) {
		if over {
			return nil, nil
		}
		keys, err := pin.Ask[key](ctx, p, sqlVault, args)
		if err != nil || len(keys) == 0 {
			return nil, err
		}
		last := keys[len(keys)-1].Index
		over = last == 0
		args["up_to"] = last - 1
		requests, err := read(ctx, p, keys)
		lastFirst(requests)
		return written(requests, p, now), err
	})
}

// file is a whole list: page after page, each after the last request of the one before.
// How many the list has is asked once, and is so about its block as long as the file is sent.
func (l *list) file(ctx context.Context, r *httpapi.Request, p *pin.Pin, args pin.Args, page httpapi.Page, now uint64) (*httpapi.Answer, error) {
	left, err := l.total(ctx, p, args)
	if err != nil {
		return nil, err
	}
	return httpapi.Whole(ctx, r, p, columns, func(ctx context.Context) ([]requestJSON, error) {
		places, requests, err := l.part(ctx, p, args, page, func() (int64, error) { return left, nil })
		if err != nil || len(places) == 0 {
			return nil, err
		}
		left -= int64(len(places))
		l.from(args, &places[len(places)-1])
		l.sort(requests)
		return written(requests, p, now), nil
	})
}
