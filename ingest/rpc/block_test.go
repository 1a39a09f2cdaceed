package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/ingest/proof"
	"github.com/navlog/navlog/schemas/event"
)

// The logs of blocks at the head come from the receipts while the only endpoint is silent at eth_getLogs, which costs
// 30 s each time: it is called again at longer and longer intervals, so that ingest keeps up with the chain.
func TestBlocksOfANodeThatIsSilentAboutLogs(t *testing.T) {
	const every, blocks = 2 * time.Second, 900
	for _, level := range []proof.Level{proof.Headers, proof.None} {
		chain, f := newFakeChain(t, 43, blocks, sparse), newFakeTime()
		n := noPool(f.clock()).newNode(Endpoint{URL: chain.url}, "fake")
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
		if logs != len(chain.expectedLogs()) {
			t.Errorf("proof %s: %d logs of %d", level, logs, len(chain.expectedLogs()))
		}
		if timeouts() > 10 || behind > 2*callTimeout {
			t.Errorf("proof %s: %d timeouts, and the last block is read %s late", level, timeouts(), behind)
		}
	}
}

// A node that is silent at eth_getLogs does not show whether it has old logs. Its blocks are read by their receipts,
// and further timeouts are avoided.
func TestHistoryOfANodeThatIsSilentAboutLogs(t *testing.T) {
	chain := newFakeChain(t, 43, 40, func(_ *rand.Rand, i int) int { return i % 3 })
	r, n := chain.farBelow(proof.Headers).reader, chain.dial()
	timeouts := silentAbove(n, 0, func() {})
	j := &job{next: 1, to: 40, recordFrom: 400, headersFrom: 400}
	if err := r.run(t.Context(), n, j); err != nil {
		t.Fatal(err)
	}
	var logs []*event.Log
	for _, p := range j.parts {
		logs = append(logs, p.Logs...)
	}
	if !j.done() || len(logs) != len(chain.expectedLogs()) || timeouts() != 1 {
		t.Errorf("%d of %d logs, up to block %d, after %d timeouts", len(logs), len(chain.expectedLogs()), j.next-1, timeouts())
	}
}

// While eth_getLogs rests after a timeout, no range is read whose logs could not be accepted: those of blocks below the
// ones of which the node had a log.
func TestNoRangesOfANodeThatIsSilentAboutLogs(t *testing.T) {
	chain, f := newFakeChain(t, 43, 60, func(*rand.Rand, int) int { return 3 }), newFakeTime()
	r, n := chain.farBelow(proof.Headers).reader, noPool(f.clock()).newNode(Endpoint{URL: chain.url}, "fake")
	t.Cleanup(n.close)
	read := func(from, to uint64) (logs int) {
		j := &job{next: from, to: to, recordFrom: 400, headersFrom: 400}
		if err := r.run(t.Context(), n, j); err != nil || !j.done() {
			t.Fatalf("blocks %d to %d, read up to %d: %v", from, to, j.next-1, err)
		}
		for _, p := range j.parts {
			logs += len(p.Logs)
		}
		return logs
	}
	logs := read(51, 60)
	n.health.set(func(h *health) { h.fail(f.now(), f.now(), io.EOF) }) // another node may come back
	n.health.suspend(&n.health.logs, callTimeout, longestSilence, context.DeadlineExceeded)
	ranges := chain.asked("eth_getLogs")
	if logs += read(31, 50); chain.asked("eth_getLogs") != ranges {
		t.Errorf("%d ranges were read while eth_getLogs rests", chain.asked("eth_getLogs")-ranges)
	}
	f.pass(callTimeout)
	if logs += read(1, 30); chain.asked("eth_getLogs") == ranges || logs != len(chain.expectedLogs()) {
		t.Errorf("%d calls of eth_getLogs after the rest, %d of %d logs", chain.asked("eth_getLogs")-ranges, logs,
			len(chain.expectedLogs()))
	}
}

// A node that has pruned the logs of old blocks, with or without their receipts, returns none for any of their ranges.
// It is not accepted, however often the call that would show this hangs or fails.
func TestPrunedNodeThatHangs(t *testing.T) {
	for name, failure := range map[string]error{
		"hangs":          context.DeadlineExceeded,
		"internal error": &rpcError{Code: -32603, Message: "internal error"},
	} {
		for _, failures := range []int{0, 1, 4, 20} {
			for _, receiptsFrom := range []uint64{0, 900} {
				chain := newFakeChain(t, 17, 1000, func(*rand.Rand, int) int { return 3 })
				chain.pruned = receiptsFrom
				chain.changeLogs = func(_ fakeQuestion, logs []*types.Log) []*types.Log {
					return slices.DeleteFunc(logs, func(l *types.Log) bool { return l.BlockNumber < 900 })
				}
				f := newFakeTime()
				r, n := chain.farBelow(proof.Headers).reader, noPool(f.clock()).newNode(Endpoint{URL: chain.url}, "fake")
				t.Cleanup(n.close)
				failing(n, failures, failure)
				j := &job{next: 1, to: 800, recordFrom: 4000, headersFrom: 4000}
				var err error
				for tries := 0; !j.done() && !isUnproven(err) && tries < 50; tries++ {
					err = r.run(t.Context(), n, j)
					f.pass(longestSilence)
				}
				got, want := 0, 0
				for _, p := range j.parts {
					got += len(p.Logs)
				}
				for _, l := range chain.expectedLogs() {
					if l.BlockNumber < j.next {
						want++
					}
				}
				if got != want || !isUnproven(err) && !j.done() {
					t.Errorf("%s, %d times, receipts from block %d: %d of %d logs below block %d, error %v", name, failures,
						receiptsFrom, got, want, j.next, err)
				}
			}
		}
	}
}

// A node that refuses to return all logs of a block has old logs if a range returns one that its receipts prove. Then
// its ranges are read, even if that range failed once.
func TestHistoryOfANodeThatRequiresAddresses(t *testing.T) {
	chain, failures := newFakeChain(t, 43, 1000, func(*rand.Rand, int) int { return 1 }), 1
	chain.refuse = func(q fakeQuestion) *fakeRefusal {
		switch {
		case q.all && q.logs >= 0:
			return &fakeRefusal{code: -32701, message: "Please specify an address in your request"}
		case !q.all && failures > 0:
			failures--
			return &fakeRefusal{code: -32603, message: "internal error"}
		}
		return nil
	}
	r, n := chain.farBelow(proof.Headers).reader, chain.dial()
	j := &job{next: 1, to: 1000, recordFrom: 4000, headersFrom: 4000}
	if err := r.run(t.Context(), n, j); err == nil || j.next != 1 {
		t.Errorf("blocks up to %d are accepted before the node was checked, error %v", j.next-1, err)
	}
	if err := r.run(t.Context(), n, j); err != nil {
		t.Fatal(err)
	}
	if calls := chain.asked("eth_getLogs"); !j.done() || calls > 20 {
		t.Errorf("1000 blocks took %d calls", calls)
	}
}

// failing makes the next calls for the logs of a block by its hash fail.
func failing(n *Node, calls int, failure error) {
	real := n.http.client.Transport
	n.http.client.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if !bytes.Contains(body, []byte("blockHash")) || calls == 0 {
			return real.RoundTrip(r)
		}
		calls--
		answer, is := errors.AsType[*rpcError](failure)
		if !is {
			return nil, failure
		}
		var q struct{ ID json.RawMessage }
		if err := json.Unmarshal(body, &q); err != nil {
			return nil, err
		}
		text := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, q.ID, answer.Code, answer.Message)
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
	})
}

// A block with more logs than the node returns is read vault by vault at each level of proof, also while eth_getLogs
// rests after a timeout, and whatever the receipts fail with.
func TestLargeBlockWithoutReceipts(t *testing.T) {
	for name, receipts := range map[string]fakeRefusal{
		"pruned":       {code: 4444, message: "pruned history unavailable"},
		"no method":    {code: -32601, message: "the method does not exist"},
		"out of order": {status: http.StatusServiceUnavailable},
	} {
		for _, level := range []proof.Level{proof.None, proof.Headers} {
			for _, silent := range []bool{false, true} {
				chain := newFakeChain(t, 17, 3, func(*rand.Rand, int) int { return 6 })
				both := slices.DeleteFunc(chain.expectedLogs(), func(l *event.Log) bool { return l.BlockNumber != 2 })
				chain.refuse = func(q fakeQuestion) *fakeRefusal {
					switch {
					case q.logs == -1:
						return &receipts
					case q.logs >= len(both):
						return &fakeRefusal{code: limitExceeded, message: "query returned more than 10000 results"}
					}
					return nil
				}
				n := chain.dial()
				h, err := n.ByNumber(t.Context(), 2)
				if err != nil {
					t.Fatal(err)
				}
				if silent {
					n.health.suspend(&n.health.logs, callTimeout, longestSilence, context.DeadlineExceeded)
				}
				logs, _, err := n.OneBlock(t.Context(), h, fakeVaults, level)
				if err != nil || len(logs) != len(both) {
					t.Errorf("receipts %s, proof %s, silent %t: %d logs of %d, %v", name, level, silent, len(logs), len(both), err)
				}
			}
		}
	}
}

// While eth_getLogs rests, the logs of a block whose receipts lack some are read by hash.
func TestIncompleteReceiptsOfASilentNode(t *testing.T) {
	chain := newFakeChain(t, 17, 3, func(*rand.Rand, int) int { return 6 })
	n := chain.dial()
	h, err := n.ByNumber(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	n.health.suspend(&n.health.logs, callTimeout, longestSilence, context.DeadlineExceeded)
	chain.emptyReceipts = true
	if logs, proven, err := n.OneBlock(t.Context(), h, fakeVaults, proof.Headers); err != nil || len(logs) == 0 {
		t.Errorf("%d logs, proven %t, %v", len(logs), proven, err)
	}
}
