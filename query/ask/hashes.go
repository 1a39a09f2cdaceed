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
	Seqs   []uint64 `ask:"seqs"`
	_      struct{} `reads:"-"` // a record never changes
}

type hashRow struct {
	Seq  uint64      `ch:"seq"`
	Hash common.Hash `ch:"hash"`
}

var hashes = New[ofHashes, hashRow](sqlHashes)

// Log identifies a log by its seq, together with the number of its block.
type Log struct{ Seq, Block uint64 }

// BlockHashes returns the block hash of each event, in order; of returns the log of an event. A missing hash is an
// internal error.
func BlockHashes[E any](ctx context.Context, p *Pin, events []E, of func(*E) Log) ([]common.Hash, error) {
	if len(events) == 0 {
		return nil, nil
	}
	logs := make([]Log, len(events))
	var args ofHashes
	for i := range events {
		logs[i] = of(&events[i])
		if i == 0 || logs[i].Block != logs[i-1].Block {
			args.Blocks = append(args.Blocks, logs[i].Block)
		}
		args.Seqs = append(args.Seqs, logs[i].Seq)
	}
	rows, err := hashes.Rows(ctx, p, args)
	if err != nil {
		return nil, err
	}
	known := make(map[uint64]common.Hash, len(rows))
	for _, r := range rows {
		known[r.Seq] = r.Hash
	}
	out := make([]common.Hash, len(logs))
	for i, l := range logs {
		hash, ok := known[l.Seq]
		if !ok {
			return nil, state.Wrong("the table events has no record %d of a log", l.Seq)
		}
		out[i] = hash
	}
	return out, nil
}

type ofHeights struct {
	Blocks []uint64 `ask:"blocks"`
	_      struct{} `reads:"-"` // the question that read the places already declares the lists
}

type placeHash struct {
	Block    uint64      `ch:"block"`
	LogIndex uint32      `ch:"log_index"`
	Hash     common.Hash `ch:"hash"`
}

var liveHashes = New[ofHeights, placeHash](sqlLiveHashes)

// LiveBlockHashes returns the block hashes of entries of a list, in order.
func LiveBlockHashes(ctx context.Context, p *Pin, places []Place) ([]common.Hash, error) {
	if len(places) == 0 {
		return nil, nil
	}
	var args ofHeights
	for i := range places {
		if i == 0 || places[i].Block != places[i-1].Block {
			args.Blocks = append(args.Blocks, places[i].Block)
		}
	}
	rows, err := liveHashes.Rows(ctx, p, args)
	if err != nil {
		return nil, err
	}
	type at struct {
		block uint64
		log   uint32
	}
	known := make(map[at]common.Hash, len(rows))
	for _, r := range rows {
		known[at{r.Block, r.LogIndex}] = r.Hash
	}
	out := make([]common.Hash, len(places))
	for i, place := range places {
		hash, ok := known[at{place.Block, place.LogIndex}]
		if !ok {
			return nil, state.Wrong("the table events has no log %d of block %d", place.LogIndex, place.Block)
		}
		out[i] = hash
	}
	return out, nil
}
