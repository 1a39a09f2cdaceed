package ingest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
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
			mixed := r.newProxy(func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
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
			mixed.override, mixed.batches = honest, nil
			mixed.mu.Unlock()
			p.caughtUp()
			r.verify()
		})
	}
}

// An endpoint that takes over in the middle of a backfill may be behind blocks that the one before it named as final.
// It returns no logs for them, so they are not read from it before it has them.
func TestFinalBlocksThatTheNextEndpointLacks(t *testing.T) {
	r := newRig(t, kfake)
	r.steps(60)
	r.config.Finality, r.config.Window, r.config.BatchBlocks = Finality{Depth: 4}, 8, 4
	number := func(text string) (n uint64) {
		_, _ = fmt.Sscanf(text, "0x%x", &n)
		return n
	}
	var head atomic.Uint64 // of the endpoint that is behind
	var gone, beyond atomic.Bool
	head.Store(r.config.Vaults[0].StartBlock + 12)
	type filter struct{ FromBlock, ToBlock string }
	first := r.newProxy(func(method string, params []json.RawMessage, truth func() json.RawMessage) (any, error, bool) {
		var f filter
		if method == "eth_getLogs" && json.Unmarshal(params[0], &f) == nil && number(f.FromBlock) > head.Load() {
			var logs []struct{ BlockNumber string }
			_ = json.Unmarshal(truth(), &logs)
			if n := len(logs); n > 0 && number(logs[n-1].BlockNumber) > number(f.FromBlock) && !gone.Swap(true) {
				head.Store(number(f.FromBlock))
			}
		}
		return nil, errHangUp, gone.Load()
	})
	behind := func(method string, params []json.RawMessage, truth func() json.RawMessage) (any, error, bool) {
		switch {
		case method == "eth_getBlockByNumber" && string(params[0]) == `"latest"`:
			return r.blockAt(fmt.Sprintf("0x%x", head.Load())), nil, true
		case method == "eth_getBlockByNumber" && number(strings.Trim(string(params[0]), `"`)) > head.Load():
			return nil, nil, true
		case method != "eth_getLogs":
			return nil, nil, false
		}
		var f filter
		_ = json.Unmarshal(params[0], &f)
		if number(f.ToBlock) > head.Load() {
			beyond.Store(true)
		}
		var logs []map[string]any
		_ = json.Unmarshal(truth(), &logs)
		return slices.DeleteFunc(logs, func(l map[string]any) bool {
			return number(fmt.Sprint(l["blockNumber"])) > head.Load()
		}), nil, true
	}
	second := r.newProxy(behind)
	second.batches = func([]byte) string { return "http://127.0.0.1:1" } // one call at a time
	r.config.RPC = rpc.Endpoints(first.URL, second.URL)
	p := r.start()
	p.until("last block of the second endpoint, or a call for one that it lacks", func(st status.Status) bool {
		return gone.Load() && (st.IndexedBlock == head.Load() || beyond.Load())
	})
	second.use(honest)
	p.caughtUp()
	r.verify()
	if beyond.Load() {
		t.Error("the second endpoint was called for logs of blocks that it lacks")
	}
}
