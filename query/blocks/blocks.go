// Package blocks says which block a log is in, by hash: what a proof begins with, and what a statement names.
package blocks

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
)

//go:embed hashes.sql
var sqlHashes string

// Log is a log by its seq, and the number of its block.
type Log struct{ Seq, Block uint64 }

// Hashes gives the hashes of the blocks of some events of the read model, in their order; of is
// the log of an event. That one of them is unknown to the spine is an error of ours.
func Hashes[E any](ctx context.Context, p *pin.Pin, events []E, of func(*E) Log) ([]common.Hash, error) {
	if len(events) == 0 {
		return nil, nil
	}
	logs := make([]Log, len(events))
	var numbers, seqs pin.Keys
	for i := range events {
		logs[i] = of(&events[i])
		if i == 0 || logs[i].Block != logs[i-1].Block {
			numbers.Number(logs[i].Block)
		}
		seqs.Number(logs[i].Seq)
	}
	type row struct {
		Seq  uint64 `ch:"seq"`
		Hash string `ch:"hash"`
	}
	rows, err := pin.Ask[row](ctx, p, sqlHashes, pin.Args{"blocks": &numbers, "seqs": &seqs})
	if err != nil {
		return nil, err
	}
	known := make(map[uint64]common.Hash, len(rows))
	for _, r := range rows {
		known[r.Seq] = common.BytesToHash([]byte(r.Hash))
	}
	out := make([]common.Hash, len(logs))
	for i, l := range logs {
		hash, ok := known[l.Seq]
		if !ok {
			return nil, httpapi.Internal(fmt.Errorf("the spine has no record %d of a log", l.Seq))
		}
		out[i] = hash
	}
	return out, nil
}
