package rpc

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/ingest/proof"
)

// sharing returns the pool of several endpoints, and a reading through it.
func sharing(t *testing.T, endpoints []Endpoint, chains []*fakeChain) (*Pool, *reading) {
	t.Helper()
	for i := range chains {
		endpoints[i].URL = chains[i].url
	}
	p := NewPool(5, endpoints, 1, nil, newRegistry(), slog.New(slog.DiscardHandler))
	t.Cleanup(p.Close)
	last := uint64(len(chains[0].blocks) - 1)
	for _, n := range p.all {
		n.health.set(func(h *health) { h.identified, h.head, h.headAt = h.now(), &Header{Number: last}, h.now() })
	}
	r := chains[0].farBelow(proof.Headers)
	r.reader = p.NewReader(fakeVaults, nil, proof.Headers, 50, 4)
	return p, r
}

// shared reads a chain through several endpoints, as the session does. It returns the number of errors that it saw.
func shared(t *testing.T, endpoints []Endpoint, chains []*fakeChain, prepare func(*Pool)) (*reading, int) {
	t.Helper()
	p, r := sharing(t, endpoints, chains)
	if prepare != nil {
		prepare(p)
	}
	last := uint64(len(r.blocks) - 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	line := NewPipeline(ctx, r.reader, 1)
	defer func() { line.Close() }()
	errs := 0
	for n := p.all[0]; line.at <= last; {
		if !line.Serves(fakeVaults, line.at, last) {
			line.Close()
			line = NewPipeline(ctx, r.reader, line.at)
		}
		line.Fill(n, last, last+1, r.from)
		err := line.Gather(ctx, n)
		if len(line.ready) > 0 {
			sealed, failure := line.Seal(ctx, n)
			if failure == nil {
				r.parts = append(r.parts, sealed...)
				line.Committed()
			}
			err = cmp.Or(err, failure)
		}
		if err == nil {
			continue
		}
		if errs++; errs > errsEnough || ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	return r, errs
}

func sameChains(t *testing.T, n int) (chains []*fakeChain) {
	for range n {
		chains = append(chains, newFakeChain(t, 47, 3000, sparse))
	}
	return chains
}

// Ranges are distributed over all usable endpoints, each within its own limits, and no endpoint that fails, is behind
// or is spare delays the others.
func TestEndpointsShareABackfill(t *testing.T) {
	refuseOver := func(most uint64) func(q fakeQuestion) *fakeRefusal {
		return func(q fakeQuestion) *fakeRefusal {
			if !q.byHash && q.blocks() > most {
				return &fakeRefusal{code: -32602, message: "block range is too wide"}
			}
			return nil
		}
	}
	broken := func(fakeQuestion) *fakeRefusal { return &fakeRefusal{status: 502} }
	pruned := func(fakeQuestion) *fakeRefusal {
		return &fakeRefusal{code: 4444, message: "pruned history unavailable"}
	}
	for name, c := range map[string]struct {
		endpoints []Endpoint
		refuse    []func(q fakeQuestion) *fakeRefusal
		prepare   func(*Pool)
		asked     []bool // endpoints that must have returned a good part of the chain
	}{
		"two working endpoints": {make([]Endpoint, 2), nil, nil, []bool{true, true}},
		"one has narrow ranges": {make([]Endpoint, 2), []func(q fakeQuestion) *fakeRefusal{nil, refuseOver(9)}, nil,
			[]bool{true, true}},
		"the other one is broken": {make([]Endpoint, 3), []func(q fakeQuestion) *fakeRefusal{nil, broken, nil}, nil,
			[]bool{true, false, true}},
		"the first one is broken": {make([]Endpoint, 2), []func(q fakeQuestion) *fakeRefusal{broken, nil}, nil,
			[]bool{false, true}},
		"the other one is pruned": {make([]Endpoint, 2), []func(q fakeQuestion) *fakeRefusal{nil, pruned}, nil,
			[]bool{true, false}},
		"the first one is pruned": {make([]Endpoint, 2), []func(q fakeQuestion) *fakeRefusal{pruned, nil}, nil,
			[]bool{false, true}},
		"one is spare": {[]Endpoint{{}, {Spare: true}, {}}, nil, nil, []bool{true, false, true}},
		"one lacks these blocks": {make([]Endpoint, 2), nil, func(p *Pool) { p.all[1].health.head = &Header{Number: 20} },
			[]bool{true, false}},
		"one has an unknown chain": {make([]Endpoint, 2), nil,
			func(p *Pool) { p.all[1].health.identified = p.all[1].health.fault }, []bool{true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			chains := sameChains(t, len(c.endpoints))
			for i := range c.refuse {
				chains[i].refuse = c.refuse[i]
			}
			r, errs := shared(t, c.endpoints, chains, c.prepare)
			r.whole()
			if errs > 0 {
				t.Errorf("the session had %d errors, although another endpoint works", errs)
			}
			for i, chain := range chains {
				if some := chain.asked("eth_getLogs") >= 10; some != c.asked[i] {
					t.Errorf("endpoint %d was called %d times", i, chain.asked("eth_getLogs"))
				}
			}
		})
	}
}

// If every endpoint fails at the same blocks, the session gets the error, and the blocks before them are read.
func TestSharedBlocksThatNoEndpointReturns(t *testing.T) {
	chains := sameChains(t, 2)
	for _, c := range chains {
		c.pruned = 1500
		c.changeLogs = func(q fakeQuestion, logs []*types.Log) []*types.Log { return logs }
		failures := 0
		c.refuse = func(q fakeQuestion) *fakeRefusal {
			if q.from <= 1500 && q.to >= 1500 && failures < 5 {
				failures++
				return &fakeRefusal{status: 502}
			}
			return nil
		}
	}
	r, errs := shared(t, make([]Endpoint, 2), chains, nil)
	r.whole()
	if errs == 0 {
		t.Error("the session got no error for a block that no endpoint returned")
	}
}

// An endpoint on another chain, whose genesis is the same, may share a backfill until it lacks the last block of a
// commit. Then all blocks of this commit are read again, from the others.
func TestEndpointOnAnotherChainSharesNoBackfill(t *testing.T) {
	chains := append(sameChains(t, 1), newFakeChain(t, 48, 3000, sparse))
	r, errs := shared(t, make([]Endpoint, 2), chains, nil)
	r.whole()
	if errs != 1 || chains[1].asked("eth_getLogs") == 0 {
		t.Errorf("the session had %d errors, and the other endpoint %d calls", errs, chains[1].asked("eth_getLogs"))
	}
}

// sharedCommit returns the pool of two endpoints, and a pipeline whose ready parts come from both.
func sharedCommit(t *testing.T, chains []*fakeChain) (*Pool, *Pipeline) {
	t.Helper()
	p, r := sharing(t, make([]Endpoint, 2), chains)
	line := NewPipeline(t.Context(), r.reader, 1)
	t.Cleanup(line.Close)
	for len(line.others(p.all[0])) == 0 {
		line.Fill(p.all[0], 3000, 3001, r.from)
		if err := line.Gather(t.Context(), p.all[0]); err != nil {
			t.Fatal(err)
		}
		if len(line.ready) >= MaxParts && len(line.others(p.all[0])) == 0 {
			line.Committed()
		}
	}
	line.wg.Wait() // no response to a job changes the state of an endpoint any more
	return p, line
}

// An endpoint that returns logs, but not the header at the end of a commit, costs one commit: it shares no backfill for
// a while, and the endpoint in use is not blamed for it.
func TestEndpointThatDoesNotProveItsPart(t *testing.T) {
	chains := sameChains(t, 2)
	p, line := sharedCommit(t, chains)
	chains[1].headless.Store(true)
	_, err := line.Seal(t.Context(), p.all[0])
	if _, other := errors.AsType[*otherEndpointError](err); !other {
		t.Errorf("a commit with its blocks returns %v", err)
	}
	if line.Serves(fakeVaults, line.at, 3000) || slices.Contains(p.sharing(p.all[0], 3000), p.all[1]) {
		t.Error("its blocks are not read again, or from it")
	}
}

// The last block of a commit must be the one that the endpoint returned with its part: another backend at its URL may
// have another one by then.
func TestEndpointWhoseBackendsDiffer(t *testing.T) {
	for hash, accepted := range map[common.Hash]bool{{1}: false, newFakeChain(t, 47, 3000, sparse).blocks[3000].hash: true} {
		chains := sameChains(t, 2)
		p, r := sharing(t, make([]Endpoint, 2), chains)
		line := NewPipeline(t.Context(), r.reader, 3000)
		t.Cleanup(line.Close)
		line.next = 3001
		line.ready = []*Part{{From: 3000, To: 3000, Blocks: []*Header{{Number: 3000, Hash: hash}}, node: p.all[1]}}
		sealed, err := line.Seal(t.Context(), p.all[0])
		if (err == nil) != accepted || len(sealed) > 0 != accepted || line.Serves(fakeVaults, 3000, 3000) != accepted {
			t.Errorf("a commit with block %s returns %d parts, %v", hash, len(sealed), err)
		}
		if shares := slices.Contains(p.sharing(p.all[0], 3000), p.all[1]); shares != accepted {
			t.Errorf("the endpoint that returned block %s shares a backfill: %t", hash, shares)
		}
	}
}

// After a failure another node may come back at a URL, and it may be behind: it shares no backfill before its own head
// was read.
func TestEndpointIsBackWithoutItsHead(t *testing.T) {
	chains := sameChains(t, 2)
	p, _ := sharing(t, make([]Endpoint, 2), chains)
	n, o := p.all[0], p.all[1]
	shares := func() bool { return slices.Contains(p.sharing(n, 3000), o) }
	if !shares() {
		t.Fatal("it does not share before it fails")
	}
	o.health.set(func(h *health) {
		h.fail(h.now(), h.now(), io.EOF)
		h.failures.until = h.now()
		h.answer(h.now().Add(time.Nanosecond), h.now())
		h.identified = h.now()
	})
	if !o.health.is(usable) || shares() {
		t.Errorf("it shares with the head of before; usable: %t", o.health.is(usable))
	}
	o.health.sawHead(&Header{Number: 3000}, nil)
	if !shares() {
		t.Error("it does not share after its head was read")
	}
}

// Blocks that an endpoint returned before it went down are read again, without waiting for it: nothing shows any more
// of which chain they are.
func TestBlocksOfAnEndpointThatWentDown(t *testing.T) {
	p, line := sharedCommit(t, sameChains(t, 2))
	p.all[1].health.set(func(h *health) { h.fail(h.now(), h.now(), errors.New("it hangs")) })
	if _, err := line.Seal(t.Context(), p.all[0]); err == nil || !strings.Contains(err.Error(), "is down") {
		t.Errorf("a commit with its blocks returns %v", err)
	}
	if line.Serves(fakeVaults, line.at, 3000) {
		t.Error("its blocks are not read again")
	}
}
