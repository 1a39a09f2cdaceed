package ask

import (
	"context"
	_ "embed"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/state"
)

var (
	//go:embed sql/hashes.sql
	sqlHashes string
	//go:embed sql/live_hashes.sql
	sqlLiveHashes string
)

type ofHashes struct {
	Blocks []uint64 `ask:"blocks"`
	Seqs   []uint64 `ask:"seqs,optional"`
	_      struct{} `reads:"-"` // a record never changes, and the question that read the places declares their lists
}

type hashRow struct {
	Seq      uint64      `ch:"seq"`
	Block    uint64      `ch:"block"`
	LogIndex uint32      `ch:"log_index"`
	Hash     common.Hash `ch:"hash"`
}

var (
	hashes     = New[ofHashes, hashRow](sqlHashes)
	liveHashes = New[ofHashes, hashRow](sqlLiveHashes)
)

// Log identifies a log by its seq, together with the number of its block.
type Log struct{ Seq, Block uint64 }

// BlockHashes returns the block hash of each event, in order; of returns the log of an event.
func BlockHashes[E any](ctx context.Context, p *Pin, events []E, of func(*E) Log) ([]common.Hash, error) {
	logs, seqs := make([]hashRow, len(events)), make([]uint64, len(events))
	for i := range events {
		log := of(&events[i])
		logs[i], seqs[i] = hashRow{Seq: log.Seq, Block: log.Block}, log.Seq
	}
	return hashesOf(ctx, p, hashes, seqs, logs, func(r hashRow) hashRow { return hashRow{Seq: r.Seq, Block: r.Block} })
}

// LiveBlockHashes returns the block hashes of entries of a list, in order.
func LiveBlockHashes(ctx context.Context, p *Pin, places []Place) ([]common.Hash, error) {
	logs := make([]hashRow, len(places))
	for i, at := range places {
		logs[i] = hashRow{Block: at.Block, LogIndex: at.LogIndex}
	}
	return hashesOf(ctx, p, liveHashes, nil, logs,
		func(r hashRow) hashRow { return hashRow{Block: r.Block, LogIndex: r.LogIndex} })
}

// hashesOf returns the block hashes of logs, in order; named returns the fields of a row by which they are named. A
// missing row is an internal error.
func hashesOf(ctx context.Context, p *Pin, question *Question[ofHashes, hashRow], seqs []uint64, logs []hashRow,
	named func(hashRow) hashRow) ([]common.Hash, error) {
	if len(logs) == 0 {
		return nil, nil
	}
	args := ofHashes{Seqs: seqs}
	for i, log := range logs {
		if i == 0 || log.Block != logs[i-1].Block {
			args.Blocks = append(args.Blocks, log.Block)
		}
	}
	rows, err := question.Rows(ctx, p, args)
	if err != nil {
		return nil, err
	}
	known := make(map[hashRow]common.Hash, len(rows))
	for _, r := range rows {
		known[named(r)] = r.Hash
	}
	out := make([]common.Hash, len(logs))
	for i, log := range logs {
		hash, ok := known[log]
		if !ok {
			return nil, state.Wrong("the table events has no record %d, or log %d, of block %d", log.Seq, log.LogIndex,
				log.Block)
		}
		out[i] = hash
	}
	return out, nil
}
