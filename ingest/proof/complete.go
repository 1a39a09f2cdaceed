package proof

import (
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/schemas/event"
)

// Incomplete returns why logs cannot be all logs of a block, or an empty string if they can. The logs of a block are
// numbered from 0 without a gap, and together they set every bit of its bloom. Logs of other contracts that the bloom
// does not contain are tolerated: some chains append logs of their bridge that they leave out of it.
func Incomplete(bloom *types.Bloom, logs []*event.Log) string {
	for i, l := range logs {
		if l.LogIndex != uint32(i) {
			return fmt.Sprintf("log %d is missing", i)
		}
	}
	if *bloom == (types.Bloom{}) {
		return ""
	}
	if b := bloomOf(logs); !within(bloom, &b) {
		return fmt.Sprintf("the header's logsBloom contains more than the %d logs of the response", len(logs))
	}
	return ""
}
