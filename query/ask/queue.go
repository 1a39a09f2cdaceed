package ask

import (
	"context"
	_ "embed"
	"reflect"

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
	Vault common.Address `ch:"vault"`
	Queued
	Lapses uint64 `ch:"lapses"`
}

var queue = New[ofQueue, queueRow](sqlQueue)

// Queued describes the queue of a vault at a block: the pending and claimable requests that have not lapsed, the
// pending ones, and the sum of their estimates in native units.
type Queued struct {
	Total    uint64 `ch:"total"`
	Unfunded uint64 `ch:"unfunded"`
	Estimate string `ch:"unfunded_estimate"`
}

// Queue counts the queue of one vault, or of each if vault is nil. Vaults without requests are not in the map. Answers
// about the newest block share the count of all vaults: for one vault, the engine reads as much.
func Queue(ctx context.Context, p *Pin, vault *common.Address) (map[common.Address]Queued, error) {
	args := ofQueue{Past: p.AsOf}
	if vault != nil {
		args.Vault = *vault
	}
	rows, err := args.rows(ctx, p)
	out := make(map[common.Address]Queued, len(rows))
	for _, r := range rows {
		if vault == nil || r.Vault == *vault {
			out[r.Vault] = r.Queued
			p.Lapses(r.Lapses)
		}
	}
	return out, err
}

// allQueues is the name of the only look-up of the queue.
type allQueues struct{}

func (a ofQueue) rows(ctx context.Context, p *Pin) ([]queueRow, error) {
	if p.AsOf {
		return queue.Rows(ctx, p, a)
	}
	p.dependsOn(queue.keys(reflect.ValueOf(a)))
	read := func(ctx context.Context, newest *Pin, _ []allQueues) ([]queueRow, error) {
		return queue.all(ctx, newest, nil, ofQueue{})
	}
	name := func(r *queueRow) (allQueues, bool) { return allQueues{}, !r.isCursor() }
	parts, err := shared(p, read, name, func(allQueues) bool { return true }).get(ctx, []allQueues{{}})
	if err != nil {
		return nil, err
	}
	return withoutCursors(p, parts[0]), nil
}
