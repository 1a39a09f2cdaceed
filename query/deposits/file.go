package deposits

import (
	"context"
	"math"

	"github.com/navlog/navlog/query/files"
	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
)

// columns are those of a file of deposits.
var columns = []files.Column[depositJSON]{
	files.Text("id", func(d *depositJSON) string { return d.ID }),
	files.Text("vaultAddress", func(d *depositJSON) string { return d.VaultAddress }),
	files.Foreign("vaultName", func(d *depositJSON) string { return d.VaultName }),
	files.Text("userAddress", func(d *depositJSON) string { return d.UserAddress }),
	files.Text("senderAddress", func(d *depositJSON) string { return d.SenderAddress }),
	files.Text("assetAmount", func(d *depositJSON) string { return d.AssetAmount }),
	files.Text("shares", func(d *depositJSON) string { return d.Shares }),
	files.CountOrNull("partnerId", func(d *depositJSON) *uint32 { return d.PartnerID }),
	files.TimeOrNull("sweptAt", func(d *depositJSON) *string { return d.SweptAt }),
	files.Text("txHash", func(d *depositJSON) string { return d.TxHash }),
	files.Number("blockNumber", func(d *depositJSON) string { return d.BlockNumber }),
	files.Count("logIndex", func(d *depositJSON) int64 { return int64(d.LogIndex) }),
	files.Time("timestamp", func(d *depositJSON) string { return d.Timestamp }),
}

// before has a list begin before a deposit, nil for its beginning.
func before(args pin.Args, d *deposit) {
	args["before_id"], args["before_block"], args["before_log"] = uint64(math.MaxUint64), uint64(math.MaxUint64), uint32(math.MaxUint32)
	if d != nil {
		args["before_id"], args["before_block"], args["before_log"] = d.Number, d.Block, d.LogIndex
	}
}

// file is a whole list: page after page of the question, each before the last deposit of
// the one before.
func file(ctx context.Context, r *httpapi.Request, p *pin.Pin, question string, args pin.Args) (*httpapi.Answer, error) {
	return httpapi.Whole(ctx, r, p, columns, func(ctx context.Context) ([]depositJSON, error) {
		rows, err := pin.Ask[deposit](ctx, p, question, args)
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		before(args, &rows[len(rows)-1])
		return described(ctx, p, rows)
	})
}
