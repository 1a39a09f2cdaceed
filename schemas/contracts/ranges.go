package contracts

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/core/types"
)

// maxRange is the number of blocks in one request for logs, until the node rejects it. Many providers allow this many.
const maxRange = 10_000

// ReadInRanges reads the logs of blocks first to last, both included, in ranges that are halved if a read fails. It
// calls visit for each range, with the logs in the order of the chain and without removed ones.
func ReadInRanges(ctx context.Context, first, last uint64, read func(from, to uint64) ([]types.Log, error),
	visit func(logs []types.Log, from, to uint64) error) error {
	for from, width := first, uint64(maxRange); ; {
		to := last
		if to-from >= width {
			to = from + width - 1
		}
		logs, err := read(from, to)
		if err != nil && width > 1 && ctx.Err() == nil {
			width /= 2
			continue
		}
		if err != nil {
			return fmt.Errorf("request the logs of blocks %d to %d from the node: %w", from, to, err)
		}
		logs = slices.DeleteFunc(logs, func(l types.Log) bool { return l.Removed })
		slices.SortStableFunc(logs, func(a, b types.Log) int {
			return cmp.Or(cmp.Compare(a.BlockNumber, b.BlockNumber), cmp.Compare(a.Index, b.Index))
		})
		if err := visit(logs, from, to); err != nil || to == last {
			return err
		}
		from, width = to+1, min(2*width, maxRange)
	}
}
