package ingest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
)

// A provider whose nodes are on two chains returns final blocks of both. They are not appended one after the other,
// neither for vaults at the head nor for a late one, whose blocks are all below the head.
func TestFinalBlocksOfTwoChains(t *testing.T) {
	sequential(t)
	for name, late := range map[string]bool{"at the head": false, "late": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, kfake)
			r.steps(40)
			if late {
				r.followWithoutFirst(0)
			}
			fork := enginetest.Anvil(t, engines.AnvilOptions{ChainID: r.config.ID, Timestamp: 1_600_000_000})
			r.must(devchain.Mine(r.ctx, fork.URL, r.height()))
			beyond := r.config.Vaults[0].StartBlock + 10
			of := func(first string) string { // the node that serves calls for blocks from first
				var number uint64
				if _, err := fmt.Sscanf(first, "0x%x", &number); err == nil && number > beyond {
					return fork.URL
				}
				return r.url
			}
			mixed := r.liar(func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
				var filter struct{ FromBlock string }
				if method == "eth_getLogs" && json.Unmarshal(params[0], &filter) == nil && of(filter.FromBlock) == fork.URL {
					return []any{}, nil, true // the fork's blocks are empty
				}
				return nil, nil, false
			})
			mixed.batches = func(body []byte) string {
				var calls []struct{ Params []any }
				_ = json.Unmarshal(body, &calls)
				return of(fmt.Sprint(calls[0].Params[0]))
			}
			r.config.RPC, r.config.BatchBlocks = rpc.Endpoints(mixed.URL), 4
			p := r.start()
			p.until("reason", func(st status.Status) bool {
				reason := st.Reason
				if len(st.LateVaults) == 1 {
					reason = st.LateVaults[0].Reason
				}
				return strings.Contains(reason, "the nodes of chain.rpc are not of one chain")
			})
			mixed.mu.Lock()
			mixed.lie, mixed.batches = honest, nil
			mixed.mu.Unlock()
			p.caughtUp()
			r.verify()
		})
	}
}
