package ingest

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/chainlog"
)

// A provider whose nodes are on two chains returns final blocks of both. They are not appended one after the other,
// neither for vaults at the head nor for a late one, whose blocks are all below the head.
func TestFinalBlocksOfTwoChains(t *testing.T) {
	for name, late := range map[string]bool{"at the head": false, "late": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, kfake)
			r.steps(40)
			if late {
				all := r.config.Vaults
				r.config.Vaults = all[1:]
				p := r.start()
				p.caughtUp()
				p.halt()
				r.config.Vaults = all
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
			p.until("complaint", func(st Status) bool {
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

// Both ends of a part are compared with the adjacent blocks, if these are known: the part before it, the head, and the
// window.
func TestPartsThatDoNotFollow(t *testing.T) {
	hash := func(chain, number uint64) common.Hash {
		return common.BigToHash(new(big.Int).SetUint64(1000*chain + number))
	}
	block := func(chain, number uint64) *rpc.Header {
		return &rpc.Header{Number: number, Hash: hash(chain, number), Parent: hash(chain, number-1)}
	}
	of := func(chain, from, to uint64) *rpc.Part {
		return &rpc.Part{From: from, To: to, Parent: hash(chain, from-1), Blocks: []*rpc.Header{block(chain, to)}}
	}
	unknown := of(2, 11, 20)
	unknown.Parent = common.Hash{}
	known := &state{head: block(1, 50)}
	for number := uint64(30); number <= 50; number++ {
		record := blockFact(block(1, number))
		record.Seq = number
		known.window.apply(chainlog.Entry{Record: record})
	}
	for name, c := range map[string]struct {
		state    *state
		appended *rpc.Header
		parts    []*rpc.Part
		follows  bool
	}{
		"the same chain":              {&state{}, nil, []*rpc.Part{of(1, 1, 10), of(1, 11, 20), of(1, 21, 30)}, true},
		"another one in one commit":   {&state{}, nil, []*rpc.Part{of(1, 1, 10), of(1, 11, 20), of(2, 21, 30)}, false},
		"after what was appended":     {&state{}, block(1, 10), []*rpc.Part{of(2, 11, 20)}, false},
		"not after it":                {&state{}, block(1, 10), []*rpc.Part{of(2, 15, 20)}, true},
		"without a parent":            {&state{}, block(1, 10), []*rpc.Part{unknown}, true},
		"above the head":              {known, nil, []*rpc.Part{of(2, 51, 60)}, false},
		"above the head, the same":    {known, nil, []*rpc.Part{of(1, 51, 60)}, true},
		"above a block of the window": {known, nil, []*rpc.Part{of(2, 41, 41)}, false},
		"up to one of the window":     {known, nil, []*rpc.Part{of(2, 20, 30)}, false},
		"up to the head":              {known, block(1, 30), []*rpc.Part{of(1, 31, 40), of(1, 41, 50)}, true},
	} {
		s, before, err := &session{state: c.state}, c.appended, error(nil)
		for _, p := range c.parts {
			if err = s.continues(p, before); err != nil {
				break
			}
			before = p.End()
		}
		if (err == nil) != c.follows {
			t.Errorf("%s: the parts give %v", name, err)
		}
	}

	// A commit with such a part is rejected before it begins: this session has no client to make one.
	s := &session{state: &state{}}
	if err := s.appendParts(t.Context(), []*rpc.Part{of(1, 1, 10), of(2, 11, 20)}, nil, 20); err == nil || !strings.Contains(err.Error(), "block 11 was given with the parent") {
		t.Errorf("parts of two chains give %v", err)
	}
}

// Ingest ends after several attempts at a block that no endpoint proves, with an error that says what to do. Another
// block, or another error, restarts the count.
func TestDoubts(t *testing.T) {
	var d doubts
	for try := 1; try <= 2*doubtsEnough; try++ {
		err := d.weigh(fmt.Errorf("read: %w", &rpc.UnprovenError{Block: 7, Node: "a"}), 2)
		if hopeless(err) != (try == 2*doubtsEnough) {
			t.Fatalf("try %d gives %v", try, err)
		}
		for _, words := range []string{"block 7 ", "pruned or lost", "archive node"} {
			if hopeless(err) && !strings.Contains(err.Error(), words) {
				t.Errorf("the refusal has no %q: %v", words, err)
			}
		}
	}
	if err := d.weigh(&rpc.UnprovenError{Block: 8}, 1); hopeless(err) || d.count != 1 {
		t.Errorf("another block is refused at once: %v", err)
	}
	if err := d.weigh(errKilled, 1); err != errKilled || d.count != 1 {
		t.Errorf("another error becomes %v and counts", err)
	}
}
