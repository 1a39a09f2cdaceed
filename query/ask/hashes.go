package ask

import (
	"context"
	_ "embed"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/state"
)

var (
	//go:embed sql/hashes.sql
	sqlHashes string
	//go:embed sql/live_hashes.sql
	sqlLiveHashes string
)

// Logs selects logs by their blocks and seqs.
type Logs struct {
	Blocks []uint64 `ask:"blocks"`
	Seqs   []uint64 `ask:"seqs"`
}

type ofHashes struct {
	Logs
	_ struct{} `reads:"-"` // a record never changes
}

type hashRow struct {
	Seq  uint64      `ch:"seq"`
	Hash common.Hash `ch:"hash"`
}

var hashes = New[ofHashes, hashRow](sqlHashes)

// Log identifies a log by its seq, together with the number of its block.
type Log struct{ Seq, Block uint64 }

// LogsOf selects the logs of events; those of one block must be adjacent. of returns the log of an event.
func LogsOf[E any](events []E, of func(*E) Log) (logs Logs) {
	for i := range events {
		l := of(&events[i])
		logs.Blocks, logs.Seqs = append(logs.Blocks, l.Block), append(logs.Seqs, l.Seq)
	}
	logs.Blocks = slices.Compact(logs.Blocks)
	return logs
}

// BlockHashes returns the block hash of each event, in order; of returns the log of an event, as for LogsOf. A missing
// hash is an internal error.
func BlockHashes[E any](ctx context.Context, p *Pin, events []E, of func(*E) Log) ([]common.Hash, error) {
	if len(events) == 0 {
		return nil, nil
	}
	logs := LogsOf(events, of)
	rows, err := hashes.Rows(ctx, p, ofHashes{Logs: logs})
	if err != nil {
		return nil, err
	}
	return inOrder(logs.Seqs, rows, func(r *hashRow) (uint64, common.Hash) { return r.Seq, r.Hash })
}

// inOrder returns the hash of each log, from rows in any order.
func inOrder[K comparable, R any](logs []K, rows []R, of func(*R) (K, common.Hash)) ([]common.Hash, error) {
	known := make(map[K]common.Hash, len(rows))
	for i := range rows {
		log, hash := of(&rows[i])
		known[log] = hash
	}
	out := make([]common.Hash, len(logs))
	for i, log := range logs {
		var ok bool
		if out[i], ok = known[log]; !ok {
			return nil, state.Wrong("the table events has no log %+v", log)
		}
	}
	return out, nil
}

type ofHeights struct {
	Blocks []uint64 `ask:"blocks"`
	_      struct{} `reads:"-"` // the question that read the places already declares the lists
}

type placeHash struct {
	inChain
	Hash common.Hash `ch:"hash"`
}

type inChain struct {
	Block    uint64 `ch:"block"`
	LogIndex uint32 `ch:"log_index"`
}

var liveHashes = New[ofHeights, placeHash](sqlLiveHashes)

// LiveBlockHashes returns the block hashes of entries of a list, in order.
func LiveBlockHashes(ctx context.Context, p *Pin, places []Place) ([]common.Hash, error) {
	if len(places) == 0 {
		return nil, nil
	}
	var args ofHeights
	logs := make([]inChain, len(places))
	for i := range places {
		logs[i] = inChain{places[i].Block, places[i].LogIndex}
		args.Blocks = append(args.Blocks, places[i].Block)
	}
	args.Blocks = slices.Compact(args.Blocks)
	rows, err := liveHashes.Rows(ctx, p, args)
	if err != nil {
		return nil, err
	}
	return inOrder(logs, rows, func(r *placeHash) (inChain, common.Hash) { return r.inChain, r.Hash })
}
