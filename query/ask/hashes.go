package ask

import (
	"context"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/state"
)

type ofHeights struct {
	Blocks []uint64 `ask:"blocks"`
	_      struct{} `reads:"-"` // the question that read the places already declares the lists
}

type placeHash struct {
	InChain
	Hash common.Hash `ch:"hash"`
}

// InChain is the position of a log in the chain.
type InChain struct {
	Block    uint64 `ch:"block"`
	LogIndex uint32 `ch:"log_index"`
}

var liveHashes = New[ofHeights, placeHash](state.SQL(files, "sql/live_hashes"))

// LiveBlockHashes returns the block hashes of live logs and samples, in order. Those of one block must be adjacent.
func LiveBlockHashes(ctx context.Context, p *Pin, logs []InChain) ([]common.Hash, error) {
	if len(logs) == 0 {
		return nil, nil
	}
	var args ofHeights
	for _, log := range logs {
		args.Blocks = append(args.Blocks, log.Block)
	}
	args.Blocks = slices.Compact(args.Blocks)
	rows, err := liveHashes.Rows(ctx, p, args)
	if err != nil {
		return nil, err
	}
	known := make(map[InChain]common.Hash, len(rows))
	for _, r := range rows {
		known[r.InChain] = r.Hash
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
