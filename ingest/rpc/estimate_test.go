package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/navlog/navlog/ingest/proof"
)

// silentAbove makes a node never respond to eth_getLogs for more than this number of blocks, or with 0 to any. It
// returns the timeouts so far.
func silentAbove(n *Node, most uint64, wait func()) (timeouts func() int) {
	real, count := n.http.client.Transport, 0
	n.http.client.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		var q struct {
			Method string
			Params []struct{ FromBlock, ToBlock hexutil.Uint64 }
		}
		if json.Unmarshal(body, &q) == nil && q.Method == "eth_getLogs" &&
			uint64(q.Params[0].ToBlock-q.Params[0].FromBlock) >= most {
			count++
			wait()
			return nil, context.DeadlineExceeded
		}
		return real.RoundTrip(r)
	})
	return func() int { return count }
}

// A node that never responds to long ranges is sampled with shorter ones, as a backfill would read it.
func TestSamplesOfANodeThatIsSilentAboutLongRanges(t *testing.T) {
	chain := newFakeChain(t, 43, 3000, sparse)
	r, n := chain.farBelow(proof.Headers).reader, chain.dial()
	timeouts := silentAbove(n, 100, func() {})
	s, err := r.Survey(t.Context(), n, 1, 3000, 5, func(uint64, uint64) {})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Strata) != 5 || timeouts() > 9 {
		t.Errorf("%d of 5 samples, after %d timeouts", len(s.Strata), timeouts())
	}
	for _, at := range s.Strata {
		if at.Blocks > 100 || at.Width < 25 || at.Width > 100 {
			t.Errorf("blocks %d to %d: the range has %d blocks, and the estimated one %g", at.From, at.To, at.Blocks, at.Width)
		}
	}
}

// One that responds to no range at all is an error, soon.
func TestSamplesOfANodeThatIsSilent(t *testing.T) {
	chain := newFakeChain(t, 43, 3000, sparse)
	r, n := chain.farBelow(proof.Headers).reader, chain.dial()
	timeouts := silentAbove(n, 0, func() {})
	_, err := r.Survey(t.Context(), n, 1, 3000, 5, func(uint64, uint64) {})
	if refusalOf(t.Context(), err).kind != unanswered || timeouts() > 3 {
		t.Errorf("after %d timeouts the error is %v", timeouts(), err)
	}
}
