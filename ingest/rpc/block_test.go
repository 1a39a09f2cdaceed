package rpc

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/navlog/navlog/ingest/proof"
	"github.com/navlog/navlog/schemas/event"
)

// The logs of blocks at the head come from the receipts while the only endpoint is silent at eth_getLogs, which costs
// 30 s each time: it is called again at longer and longer intervals, so that ingest keeps up with the chain.
func TestBlocksOfANodeThatIsSilentAboutLogs(t *testing.T) {
	const every, blocks = 2 * time.Second, 900
	for level, most := range map[proof.Level]int{proof.Headers: 10, proof.None: 10} {
		chain, f := newFakeChain(t, 43, blocks, sparse), newFakeTime()
		n := newNode(Endpoint{URL: chain.url}, "fake", f.clock(), newCallMetrics(newRegistry()))
		t.Cleanup(n.close)
		timeouts := silentAbove(n, 0, func() { f.pass(callTimeout) })
		began, logs, behind := f.now(), 0, time.Duration(0)
		for number := uint64(1); number <= blocks; number++ {
			due := began.Add(time.Duration(number) * every)
			f.pass(max(0, due.Sub(f.now())))
			behind = f.now().Sub(due)
			h, err := n.ByNumber(t.Context(), number)
			if err != nil {
				t.Fatal(err)
			}
			some, _, err := n.OneBlock(t.Context(), h, fakeVaults, level)
			if err != nil {
				t.Fatalf("block %d: %v", number, err)
			}
			logs += len(some)
		}
		if logs != len(chain.truth()) {
			t.Errorf("proof %s: %d logs of %d", level, logs, len(chain.truth()))
		}
		if timeouts() > most || behind > 2*callTimeout {
			t.Errorf("proof %s: %d timeouts, and the last block is read %s late", level, timeouts(), behind)
		}
	}
}

// A node that is silent at eth_getLogs does not show whether it has old logs. Its ranges show that they cannot be read,
// and its blocks are read by their receipts.
func TestHistoryOfANodeThatIsSilentAboutLogs(t *testing.T) {
	chain := newFakeChain(t, 43, 3, func(*rand.Rand, int) int { return 2 })
	r, n := chain.farBelow(proof.Headers).reader, chain.dial()
	timeouts := silentAbove(n, 0, func() {})
	j := &job{at: 1, to: 3, recordFrom: 4, headersFrom: 4}
	for try := 1; !j.done() && try <= 20; try++ {
		if err := r.run(t.Context(), n, j); err != nil && refusalOf(t.Context(), err).kind != unanswered {
			t.Fatal(err)
		}
	}
	var logs []*event.Log
	for _, p := range j.parts {
		logs = append(logs, p.Logs...)
	}
	if !j.done() || len(logs) != len(chain.truth()) {
		t.Errorf("%d of %d logs, up to block %d, after %d timeouts", len(logs), len(chain.truth()), j.at-1, timeouts())
	}
}
