package ask

import (
	"context"
	_ "embed"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
)

//go:embed sql/queue.sql
var sqlQueue string

// ofQueue selects the queue of a vault, or of all if it is zero.
type ofQueue struct {
	Vault common.Address `ask:"vault" reads:"queue"`
	Past  bool           `ask:"past"`
}

type queueRow struct {
	Mark
	Vault    common.Address `ch:"vault"`
	Total    uint64         `ch:"total"`
	Unfunded uint64         `ch:"unfunded"`
	Estimate string         `ch:"unfunded_estimate"`
	Lapses   uint64         `ch:"lapses"`
}

var queue = New[ofQueue, queueRow](sqlQueue)

// Queued describes the queue of a vault at a block: the pending and claimable requests that have not lapsed, the
// pending ones, and the sum of their estimates in native units.
type Queued struct {
	Total, Unfunded uint64
	Estimate        *big.Int
}

// Queue counts the queue of one vault, or of each if vault is nil. Vaults without requests are not in the map.
func Queue(ctx context.Context, p *Pin, vault *common.Address) (map[common.Address]Queued, error) {
	args := ofQueue{Past: p.AsOf}
	if vault != nil {
		args.Vault = *vault
	}
	rows, err := queue.Rows(ctx, p, args)
	out := make(map[common.Address]Queued, len(rows))
	for _, r := range rows {
		out[r.Vault] = Queued{r.Total, r.Unfunded, Number(r.Estimate)}
		p.Lapses(r.Lapses)
	}
	return out, err
}
