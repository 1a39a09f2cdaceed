package rpc

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/ingest/proof"
	"github.com/navlog/navlog/schemas/event"
)

// reading is a pipeline that reads a fake chain from block 1 to its end.
type reading struct {
	*fakeChain
	reader *Reader
	from   uint64 // blocks from this one are compared with their headers
	errs   int    // errors that were retried
	parts  []*Part
}

// reading compares every block with its header, as is done near the head, if the proof level uses headers.
func (c *fakeChain) reading(level proof.Level) *reading {
	return &reading{fakeChain: c, from: level.HeadersFrom(0), reader: &Reader{
		pool:   &Pool{},
		vaults: fakeVaults, proof: level, maxBlocks: 2000, target: targetBytes, inFlight: 1,
	}}
}

// farBelow is a reading of blocks far below the head: without any headers except those that are needed.
func (c *fakeChain) farBelow(level proof.Level) *reading {
	r := c.reading(level)
	r.from = math.MaxUint64
	return r
}

// errsEnough is the number of errors after which a test fails.
const errsEnough = 200

// all reads the whole chain. It retries after errors as the session does, but immediately. It returns the first error
// for which enough returns true.
func (r *reading) all(flight int, enough func(error) bool) error {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	n, last := r.dial(), uint64(len(r.blocks)-1)
	r.reader.inFlight = flight
	p := NewPipeline(ctx, r.reader, 1)
	defer p.Close()
	for p.at <= last {
		p.Fill(n, last, last+1, r.from)
		err := p.Gather(ctx, n)
		if len(p.ready) > 0 {
			r.parts = append(r.parts, p.ready...)
			p.Committed()
		}
		if err == nil {
			continue
		}
		if r.errs++; r.errs > errsEnough || ctx.Err() != nil || enough != nil && enough(err) {
			return err
		}
	}
	return nil
}

// whole checks that every block was covered once, and that the logs are those of the chain.
func (r *reading) whole() {
	r.t.Helper()
	next, logs := uint64(1), []*event.Log(nil)
	for _, p := range r.parts {
		if end := p.End(); p.From != next || p.To < p.From || end != nil && end.Number != p.To || end == nil &&
			r.from <= p.To {
			r.t.Fatalf("blocks %d to %d (header %+v) come after block %d", p.From, p.To, end, next-1)
		}
		next, logs = p.To+1, append(logs, p.Logs...)
	}
	if int(next) != len(r.blocks) {
		r.t.Fatalf("the last block is %d of %d", next-1, len(r.blocks)-1)
	}
	want := r.expectedLogs()
	for i := range max(len(logs), len(want)) {
		if i >= len(logs) || i >= len(want) || !proto.Equal(logs[i], want[i]) {
			r.t.Fatalf("log %d of %d is not that of the chain, which has %d:\n%v\n%v", i, len(logs), len(want), at(logs, i),
				at(want, i))
		}
	}
}

// fullBloom contains every value.
var fullBloom = types.BytesToBloom(bytes.Repeat([]byte{0xff}, types.BloomByteLength))

func sparse(rng *rand.Rand, _ int) int { return max(0, rng.IntN(12)-8) }

// wordings are providers' messages about a limit of blocks, of results, or without a number.
var wordings = struct{ blocks, results, nothing []fakeRefusal }{
	blocks: []fakeRefusal{
		{code: -32600, message: "eth_getLogs is limited to a %d block range"},
		{code: -32000, message: "exceed maximum block range: %d"},
		{code: -32614, message: "eth_getLogs is limited to a %d range"},
		{code: -32602, message: "query exceeds max block range %d"},
		{code: -32047, message: "Invalid block range params: max range: %d"},
		{code: -32000, message: "requested too many blocks from 1 to 400, maximum is set to %d"},
		{code: -32001, message: "ranges over %d blocks are not supported on freetier"},
		{code: -32000, message: "Please limit the query to at most %d blocks"},
		{code: -32000, message: "GetLogs query must be smaller than size %d"},
	},
	results: []fakeRefusal{
		{code: -32005, message: "query returned more than %d results"},
		{code: -32602, message: "query exceeds max results %d"},
		{code: -32005, message: "query returned more than %d results. Try with this block range [0x%x, 0x%x]."},
		{code: -32602, message: "Log response size exceeded. You can request any block range with a cap of %d logs in the " +
			"response. Based on your parameters this block range should work: [0x%x, 0x%x]"},
		{code: -32602, message: "query exceeds max results %d, retry with the range %d-%d"},
	},
	nothing: []fakeRefusal{
		{code: -32005, message: "limit exceeded"}, {code: -32000, message: "query timeout exceeded"},
		{code: -32008, message: "response size exceeded"},
		{code: -32600, message: "block range is too wide"}, {code: -32603, message: "something went wrong"}, {status: 413},
		{status: 504},
	},
}

// With any limit and any message about it, each block is covered once, and the node gets few more calls than the limit
// requires.
func TestRangesUnderAnyLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("sequential: one limit after the other, against a fake chain")
	}
	const blocks = 400
	type limit struct {
		blocks         uint64
		results, bytes int
		say            func(q fakeQuestion, fits uint64) *fakeRefusal
	}
	var cases []limit
	worded := func(r fakeRefusal, a ...any) *fakeRefusal {
		r.message = fmt.Sprintf(r.message, a...)
		return &r
	}
	for _, most := range []uint64{1, 3, 50} {
		for _, w := range wordings.blocks {
			cases = append(cases, limit{blocks: most, say: func(fakeQuestion, uint64) *fakeRefusal { return worded(w, most) }})
		}
		for _, w := range wordings.nothing {
			cases = append(cases, limit{blocks: most, say: func(fakeQuestion, uint64) *fakeRefusal { return &w }})
		}
	}
	for _, most := range []int{10, 60} {
		for i, w := range wordings.results {
			cases = append(cases, limit{results: most, say: func(q fakeQuestion, fits uint64) *fakeRefusal {
				if i < 2 {
					return worded(w, most)
				}
				return worded(w, most, q.from, fits)
			}})
		}
		for _, w := range wordings.nothing {
			cases = append(cases, limit{bytes: most * 600, say: func(fakeQuestion, uint64) *fakeRefusal { return &w }})
		}
	}
	chain := newFakeChain(t, 7, blocks, sparse)
	for i, c := range cases {
		t.Run(fmt.Sprintf("%d blocks=%d results=%d bytes=%d %s", i, c.blocks, c.results, c.bytes,
			c.say(fakeQuestion{}, 0).message), func(t *testing.T) {
			chain.t, chain.calls = t, map[string]int{}
			chain.refuse = func(q fakeQuestion) *fakeRefusal {
				over := c.blocks > 0 && q.blocks() > c.blocks || c.results > 0 && q.logs > c.results || c.bytes > 0 &&
					q.bytes > c.bytes
				if !over {
					return nil
				}
				fits, logs := q.from, 0
				for ; fits <= q.to; fits++ {
					if logs += len(chain.blocks[fits].logs); logs > c.results {
						break
					}
				}
				return c.say(q, max(q.from, fits-1))
			}
			r := chain.reading(proof.Headers)
			if i%2 == 1 {
				r = chain.farBelow(proof.Headers)
			}
			if err := r.all(1+i%5, nil); err != nil {
				t.Fatal(err)
			}
			r.whole()
			needed := 2 * len(r.expectedLogs()) / max(c.results, c.bytes/600, 1)
			if c.blocks > 0 {
				needed = blocks / int(c.blocks)
			}
			if got, most := chain.asked("eth_getLogs"), 3*needed+60; got > most {
				t.Errorf("the node was called %d times, want at most %d", got, most)
			}
			t.Logf("%d calls, %d errors", chain.asked("eth_getLogs"), r.errs)
		})
	}
}

// A single block that is over the limit is read by another method, or the error says what to do.
func TestBlockOverTheLimit(t *testing.T) {
	heavy := func(rng *rand.Rand, i int) int {
		if i == 20 {
			return 300
		}
		return sparse(rng, i)
	}
	over := &fakeRefusal{code: -32005, message: "query returned more than 100 results"}
	for name, c := range map[string]struct {
		refuse func(q fakeQuestion) bool // also rejected, in addition to the range
		works  bool
	}{
		"by hash":         {func(q fakeQuestion) bool { return false }, true},
		"from receipts":   {func(q fakeQuestion) bool { return q.logs > 100 }, true},
		"vault by vault":  {func(q fakeQuestion) bool { return q.logs > 100 || q.logs < 0 }, true},
		"by no method":    {func(q fakeQuestion) bool { return q.logs > 60 || q.logs < 0 }, false},
		"unclear wording": {func(q fakeQuestion) bool { return q.logs > 100 }, true},
	} {
		for read, level := range map[string]proof.Level{"none": proof.None, "headers": proof.Headers,
			"headers, far below the head": proof.Headers} {
			t.Run(name+" "+read, func(t *testing.T) {
				chain := newFakeChain(t, 11, 40, heavy)
				chain.refuse = func(q fakeQuestion) *fakeRefusal {
					if q.logs > 100 && !q.byHash || q.byHash && c.refuse(q) {
						if name == "unclear wording" {
							return &fakeRefusal{code: -32603, message: "internal error"}
						}
						return over
					}
					return nil
				}
				r := chain.reading(level)
				if read != string(level) {
					r = chain.farBelow(level)
				}
				limit := false
				err := r.all(3, func(err error) bool {
					limit = errors.Is(err, errOverLimit) && strings.Contains(err.Error(), "block 20 ")
					return limit
				})
				if c.works {
					if err != nil {
						t.Fatal(err)
					}
					r.whole()
					return
				}
				if !limit {
					t.Fatalf("the error is %v", err)
				}
				if n := chain.asked("eth_getLogs"); n > 100 {
					t.Errorf("the node was called %d times", n)
				}
			})
		}
	}
}

// A final block with more logs than the node returns by any method, none of them of the vaults, has a full bloom, which
// also contains the vaults: it is read for one vault after the other, and not proven.
func TestFullBloomOverTheLimit(t *testing.T) {
	const number = 20
	chain := newFakeChain(t, 11, 40, func(_ *rand.Rand, i int) int {
		if i == number {
			return 300
		}
		return 0
	})
	for _, l := range chain.blocks[number].logs {
		l.Address = fakeStarter
	}
	chain.blocks[number].header["logsBloom"] = fullBloom
	chain.refuse = func(q fakeQuestion) *fakeRefusal {
		if q.logs > 100 || q.logs < 0 {
			return &fakeRefusal{code: -32005, message: "query returned more than 100 results"}
		}
		return nil
	}
	n, r := chain.dial(), chain.reading(proof.Headers)
	j := &job{next: 16, to: 23, recordFrom: 24}
	var err error
	if j.headers, err = n.Headers(t.Context(), j.next, j.to); err != nil {
		t.Fatal(err)
	}
	for _, h := range j.headers {
		h.Sealed = true
	}
	p, err := r.reader.read(t.Context(), n, j)
	if err != nil || p.To != j.to || len(p.Logs) > 0 || p.Unproven != number {
		t.Errorf("%+v, %v", p, err)
	}
}

// Only logs that make up the bloom of a sealed header are proven. Logs that were read for one vault after the other are
// not, and are rejected if they contradict the bloom or each other.
func TestOneBlockIsProven(t *testing.T) {
	const number = 2
	limited := func(q fakeQuestion) bool { return q.all }
	for name, c := range map[string]struct {
		refuse   func(q fakeQuestion) bool
		unsealed bool
		full     bool // bloom
		spoil    func(vault common.Address, logs []*types.Log, forged *types.Log) []*types.Log
		logs     int
		proven   bool
		fault    string
	}{
		"all logs":                       {logs: 6, proven: true},
		"header of another hashing rule": {unsealed: true, logs: 6},
		"from receipts":                  {refuse: func(q fakeQuestion) bool { return q.logs > 0 }, logs: 6, proven: true},
		"vault by vault":                 {refuse: limited, logs: 6},
		"full bloom":                     {refuse: limited, full: true, logs: 6},
		"some logs left out": {refuse: limited, logs: 1,
			spoil: func(_ common.Address, logs []*types.Log, _ *types.Log) []*types.Log {
				return logs[:min(1, len(logs))]
			}},
		"a log that the bloom excludes": {refuse: limited,
			spoil: func(vault common.Address, logs []*types.Log, forged *types.Log,
			) []*types.Log {
				if vault == forged.Address {
					logs = append(logs, forged)
				}
				return logs
			}, fault: "logsBloom does not contain"},
		"one number twice": {refuse: limited,
			spoil: func(vault common.Address, logs []*types.Log, forged *types.Log) []*types.Log {
				if vault == forged.Address {
					twice := *forged
					twice.Index = 5
					logs = append(logs, &twice)
				}
				return logs
			}, fault: "two different logs have number 5"},
	} {
		chain := newFakeChain(t, 11, 3, func(*rand.Rand, int) int { return 6 })
		b := chain.blocks[number]
		for _, l := range b.logs {
			l.Address, l.Topics = fakeVaults[0], []common.Hash{{1}}
		}
		b.header["logsBloom"] = types.CreateBloom(&types.Receipt{Logs: b.logs})
		if c.full {
			b.header["logsBloom"] = fullBloom
		}
		forged := fakeLog(rand.New(rand.NewPCG(1, 1)), number, b.hash, 6)
		forged.Address = fakeVaults[1]
		chain.refuse = func(q fakeQuestion) *fakeRefusal {
			if c.refuse != nil && c.refuse(q) {
				return &fakeRefusal{code: -32005, message: "query returned more than 1 results"}
			}
			return nil
		}
		chain.changeLogs = func(q fakeQuestion, logs []*types.Log) []*types.Log {
			if c.spoil == nil || q.all {
				return logs
			}
			return c.spoil(q.vault, logs, forged)
		}
		n := chain.dial()
		h, err := n.ByNumber(t.Context(), number)
		if err != nil {
			t.Fatal(err)
		}
		h.Sealed = !c.unsealed
		logs, proven, err := n.OneBlock(t.Context(), h, fakeVaults, proof.Headers)
		if fault := fmt.Sprint(err); c.fault == "" && (err != nil || len(logs) != c.logs || proven != c.proven) ||
			c.fault != "" && !strings.Contains(fault, c.fault) {
			t.Errorf("%s: %d logs, proven %v, %v", name, len(logs), proven, err)
		}
	}
}

// A bloom that is too full shows nothing: the logs of a block that are read for one vault after the other are read
// twice, because a backend that is behind has none.
func TestBackendBehindAtAFullBlock(t *testing.T) {
	for _, behind := range [][]bool{{true, true}, {true, false}, {false, true, true}} { // at each of four calls
		testBackendBehindAtAFullBlock(t, behind)
	}
}

func testBackendBehindAtAFullBlock(t *testing.T, behind []bool) {
	t.Helper()
	chain := newFakeChain(t, 11, 3, func(*rand.Rand, int) int { return 6 })
	b := chain.blocks[2]
	for i, l := range b.logs {
		l.Address = fakeVaults[i%2]
	}
	b.header["logsBloom"] = fullBloom
	chain.refuse = func(q fakeQuestion) *fakeRefusal {
		if q.all {
			return &fakeRefusal{code: limitExceeded, message: "query returned more than 1 results"}
		}
		return nil
	}
	calls := 0
	chain.changeLogs = func(_ fakeQuestion, logs []*types.Log) []*types.Log {
		if calls++; calls <= len(behind) && behind[calls-1] {
			return nil
		}
		return logs
	}
	n := chain.dial()
	h, err := n.ByNumber(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if logs, proven, err := n.OneBlock(t.Context(), h, fakeVaults, proof.Headers); err != nil || len(logs) != 6 || proven {
		t.Errorf("behind %v: %d of 6 logs, proven %t, %v", behind, len(logs), proven, err)
	}
}

// Responses that omit logs are not accepted.
func TestLossyRanges(t *testing.T) {
	if testing.Short() {
		t.Skip("sequential: one range after the other, against a fake chain")
	}
	everyOther := func() func() bool {
		n := 0
		return func() bool { n++; return n%2 == 1 }
	}
	for name, c := range map[string]struct {
		proof []proof.Level
		spoil func(q fakeQuestion, logs []*types.Log) []*types.Log
	}{
		"empty": {[]proof.Level{proof.Headers}, func(fakeQuestion, []*types.Log) []*types.Log { return nil }},
		"lagging": {[]proof.Level{proof.Headers}, func(_ fakeQuestion, logs []*types.Log) []*types.Log {
			return slices.DeleteFunc(slices.Clone(logs), func(l *types.Log) bool { return l.BlockNumber > 130 })
		}},
		"a block omitted": {[]proof.Level{proof.Headers}, func(_ fakeQuestion, logs []*types.Log) []*types.Log {
			return slices.DeleteFunc(slices.Clone(logs), func(l *types.Log) bool { return l.BlockNumber%50 == 0 })
		}},
		"cut at a round number": {[]proof.Level{proof.None, proof.Headers},
			func(_ fakeQuestion, logs []*types.Log) []*types.Log {
				return logs[:min(len(logs), 1000)]
			}},
	} {
		if testing.Short() { // the levels differ in what they read, not in how
			c.proof = c.proof[:1]
		}
		for _, level := range c.proof {
			t.Run(name+" "+string(level), func(t *testing.T) {
				chain := newFakeChain(t, 13, 200, func(rng *rand.Rand, i int) int { return rng.IntN(140) })
				omits, omitted := everyOther(), 0
				chain.changeLogs = func(q fakeQuestion, logs []*types.Log) []*types.Log {
					if q.byHash || name != "cut at a round number" && !omits() {
						return logs
					}
					kept := c.spoil(q, logs)
					omitted += len(logs) - len(kept)
					return kept
				}
				r := chain.reading(level)
				if err := r.all(2, nil); err != nil {
					t.Fatal(err)
				}
				r.whole()
				if omitted == 0 {
					t.Error("no log was left out")
				}
			})
		}
	}
}

// A block that is read by its hash, because the node refuses it as a range, is compared with its bloom like any other.
func TestLossyBlocks(t *testing.T) {
	for name, far := range map[string]bool{"near the head": false, "far below the head": true} {
		t.Run(name, func(t *testing.T) {
			chain := newFakeChain(t, 37, 30, sparse)
			chain.refuse = func(q fakeQuestion) *fakeRefusal {
				if !q.byHash {
					return &fakeRefusal{code: -32005, message: "query returned more than 0 results"}
				}
				return nil
			}
			chain.changeLogs = func(q fakeQuestion, logs []*types.Log) []*types.Log {
				if q.all {
					return logs
				}
				return nil
			}
			r := chain.reading(proof.Headers)
			if far {
				r = chain.farBelow(proof.Headers)
			}
			if err := r.all(2, nil); err != nil {
				t.Fatal(err)
			}
			r.whole()
		})
	}
}

func isUnproven(err error) bool {
	var unproven *UnprovenError
	return errors.As(err, &unproven)
}

// A node that returns headers and no logs, by range and by hash, is detected.
func TestPrunedHistory(t *testing.T) {
	if testing.Short() {
		t.Skip("sequential: one range after the other, against a fake chain")
	}
	for name, perBlock := range map[string]int{"sparse blooms": 3, "full blooms": 1500} {
		t.Run(name, func(t *testing.T) {
			chain := newFakeChain(t, 17, 30, func(_ *rand.Rand, i int) int { return perBlock })
			chain.changeLogs = func(q fakeQuestion, logs []*types.Log) []*types.Log {
				return slices.DeleteFunc(slices.Clone(logs), func(l *types.Log) bool { return l.BlockNumber < 20 })
			}
			fromReceipts := chain.reading(proof.Headers)
			if err := fromReceipts.all(2, nil); err != nil {
				t.Fatalf("the receipts are there, but: %v", err)
			}
			fromReceipts.whole()

			chain.pruned = 20
			r := chain.reading(proof.Headers)
			if err := r.all(2, isUnproven); !isUnproven(err) || len(r.parts) > 0 {
				t.Fatalf("%d parts, %v", len(r.parts), err)
			}
		})
	}
}

// The blocks of a response below one that cannot be proven are kept.
func TestBlocksBelowAnUnprovenOneAreKept(t *testing.T) {
	chain := newFakeChain(t, 17, 30, func(_ *rand.Rand, i int) int { return 3 })
	chain.changeLogs = func(q fakeQuestion, logs []*types.Log) []*types.Log {
		return slices.DeleteFunc(slices.Clone(logs), func(l *types.Log) bool { return l.BlockNumber == 6 })
	}
	chain.pruned = 20 // no receipts either
	r := chain.reading(proof.Headers)
	if err := r.all(1, isUnproven); !isUnproven(err) || len(r.parts) == 0 || r.parts[len(r.parts)-1].To != 5 {
		t.Errorf("the parts are %+v, %v", r.parts, err)
	}
}

// Further below the head than the window, logs are not compared with headers, but a node that has pruned its logs is
// detected all the same, before any of its responses is accepted.
func TestPrunedHistoryFarBelowTheHead(t *testing.T) {
	for name, perBlock := range map[string]int{"sparse blooms": 3, "full blooms": 1500} {
		t.Run(name, func(t *testing.T) {
			chain := newFakeChain(t, 17, 30, func(_ *rand.Rand, i int) int {
				if i < 3 {
					return 0 // the first blocks have no logs at all
				}
				return perBlock
			})
			chain.changeLogs = func(q fakeQuestion, logs []*types.Log) []*types.Log {
				return slices.DeleteFunc(slices.Clone(logs), func(l *types.Log) bool { return l.BlockNumber < 20 })
			}
			r := chain.farBelow(proof.Headers)
			r.reader.maxBlocks = 2
			if err := r.all(2, isUnproven); !isUnproven(err) {
				t.Fatalf("reading its history returns %v", err)
			}
			for _, p := range r.parts {
				if p.To >= 3 {
					t.Errorf("blocks %d to %d were accepted unproven", p.From, p.To)
				}
			}
		})
	}
}

// lostBelow makes a node return no logs of blocks below a number.
func (c *fakeChain) lostBelow(number uint64) {
	c.changeLogs = func(_ fakeQuestion, logs []*types.Log) []*types.Log {
		return slices.DeleteFunc(slices.Clone(logs), func(l *types.Log) bool { return l.BlockNumber < number })
	}
}

// A range whose first blocks have lost their logs, and whose last blocks have theirs, is not accepted from a node that
// has shown only that it has logs of later blocks, nor after a failure.
func TestPrunedHistoryWithinARange(t *testing.T) {
	chain := newFakeChain(t, 17, 60, func(*rand.Rand, int) int { return 3 })
	chain.lostBelow(20)
	r, n := chain.farBelow(proof.Headers).reader, chain.dial()
	read := func(from, to uint64) error {
		return r.run(t.Context(), n, &job{next: from, to: to, step: to - from + 1, recordFrom: 400, headersFrom: 400})
	}
	if err := read(30, 40); err != nil {
		t.Fatal(err)
	}
	if err := read(10, 29); !isUnproven(err) {
		t.Errorf("lower blocks, of which it has logs only of the last ones: %v", err)
	}
	n.health.set(func(h *health) { h.fail(h.now(), h.now(), io.EOF) })
	chain.lostBelow(55)
	if err := read(51, 58); !isUnproven(err) {
		t.Errorf("blocks of which it has logs only of the last ones, after a failure: %v", err)
	}
}

// The check of the first range of a node finds a log above those that the node has lost, or no log at all. Then the
// blocks below the first log of the range are checked.
func TestPrunedHistoryWithinTheFirstRange(t *testing.T) {
	for _, empty := range [][]int{{10, 17}, {10, 17, 24}} { // of the blocks 10, 17 and 24, which are checked first
		chain := newFakeChain(t, 17, 60, func(_ *rand.Rand, i int) int {
			if slices.Contains(empty, i) {
				return 0
			}
			return 3
		})
		chain.lostBelow(20)
		j := &job{next: 10, to: 29, step: 20, recordFrom: 400, headersFrom: 400}
		if err := chain.farBelow(proof.Headers).reader.run(t.Context(), chain.dial(), j); !isUnproven(err) {
			t.Errorf("blocks %d empty: it was accepted: %v", empty, err)
		}
	}
}

// Whether a node has old logs is checked in each range until a block with logs was found in one, wherever it is in the
// range.
func TestPrunedHistoryWithEmptyBlocks(t *testing.T) {
	for name, c := range map[string]struct{ every, most, accepted int }{
		"every second range begins with one":   {2, 2, 2},
		"no range begins with a block of logs": {10, 9, 27}, // of 9 blocks, 3 are looked at
		"several ranges without logs":          {50, 3, 50},
	} {
		chain := newFakeChain(t, 17, 400, func(_ *rand.Rand, i int) int {
			if i%c.every == 0 {
				return 3
			}
			return 0
		})
		chain.lostBelow(380)
		r := chain.farBelow(proof.Headers)
		r.reader.maxBlocks = uint64(c.most)
		if err := r.all(1, isUnproven); !isUnproven(err) {
			t.Fatalf("%s: reading its history returns %v", name, err)
		}
		if end := r.parts[max(1, len(r.parts))-1:]; len(end) > 0 && end[0].To >= uint64(c.accepted) {
			t.Errorf("%s: blocks up to %d were accepted", name, end[0].To)
		}
	}
}

// A node that has shown that it has logs of some blocks is checked again for lower ones, as those of a vault that was
// added later, and after a failure: another node may come back at its URL.
func TestPrunedHistoryIsCheckedAgain(t *testing.T) {
	chain := newFakeChain(t, 17, 60, func(*rand.Rand, int) int { return 3 })
	chain.lostBelow(20)
	r, n := chain.farBelow(proof.Headers).reader, chain.dial()
	read := func(from, to uint64) error {
		return r.run(t.Context(), n, &job{next: from, to: to, recordFrom: 400, headersFrom: 400})
	}
	if err := read(30, 40); err != nil {
		t.Fatal(err)
	}
	if err := read(1, 10); !isUnproven(err) {
		t.Errorf("blocks of which it has no logs, below others: %v", err)
	}
	checks := chain.asked("eth_getBlockByNumber")
	if err := read(41, 50); err != nil || chain.asked("eth_getBlockByNumber") != checks {
		t.Errorf("later blocks cost %d more headers, %v", chain.asked("eth_getBlockByNumber")-checks, err)
	}
	n.health.set(func(h *health) { h.fail(h.now(), h.now(), io.EOF) })
	chain.lostBelow(60)
	if err := read(51, 58); !isUnproven(err) {
		t.Errorf("blocks of which it has no logs, after a failure: %v", err)
	}
}

// A node that returns null for a moment loses no logs, far below the head either. One that writes every empty list as
// null is read, too.
func TestNullForAMoment(t *testing.T) {
	chain := newFakeChain(t, 13, 60, sparse)
	var asked sync.Map
	for name, null := range map[string]func(q fakeQuestion) bool{
		"for a moment":      func(q fakeQuestion) bool { _, again := asked.Swap(q.from, true); return !again },
		"for an empty list": func(q fakeQuestion) bool { return q.logs == 0 },
	} {
		chain.null = null
		r := chain.farBelow(proof.None)
		if err := r.all(2, nil); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r.whole()
	}
}

// A response that is truncated at a round number is detected, in whatever block the cut is.
func TestCutFarBelowTheHead(t *testing.T) {
	if testing.Short() {
		t.Skip("sequential: one range after the other, against a fake chain")
	}
	for name, perBlock := range map[string]func(rng *rand.Rand, i int) int{
		"between blocks":         func(rng *rand.Rand, _ int) int { return rng.IntN(140) },
		"within a block":         func(_ *rand.Rand, i int) int { return 300 * (i % 2) },
		"within the first block": func(_ *rand.Rand, i int) int { return 2500 * (i % 2) },
	} {
		t.Run(name, func(t *testing.T) {
			chain := newFakeChain(t, 13, 60, perBlock)
			omitted := 0
			chain.changeLogs = func(q fakeQuestion, logs []*types.Log) []*types.Log {
				if q.byHash {
					return logs
				}
				omitted += max(0, len(logs)-1000)
				return logs[:min(len(logs), 1000)]
			}
			r := chain.farBelow(proof.Headers)
			if err := r.all(2, nil); err != nil {
				t.Fatal(err)
			}
			r.whole()
			if omitted == 0 {
				t.Error("no log was left out")
			}
		})
	}
}

// If only the header of a commit's last block cannot be used, only that header is read again: the ranges before it are
// paid for.
func TestEndWithoutBloomIsReadAgain(t *testing.T) {
	chain := newFakeChain(t, 3, 60, sparse)
	r, n := chain.farBelow(proof.Headers), chain.dial()
	p := NewPipeline(t.Context(), r.reader, 1)
	defer p.Close()
	for len(p.ready) == 0 || p.ready[len(p.ready)-1].To < 60 {
		p.Fill(n, 60, 61, math.MaxUint64)
		if err := p.Gather(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	ranges, end := chain.asked("eth_getLogs"), chain.blocks[60]
	whole := end.header
	end.header = without(whole, "logsBloom")
	if _, err := p.Seal(t.Context(), n); err == nil || !strings.Contains(err.Error(), "without logsBloom") {
		t.Fatalf("without its bloom the last block returns %v", err)
	}
	end.header = whole
	if !p.Serves(fakeVaults, 1, 60) {
		t.Fatal("all ranges must be read again")
	}
	sealed, err := p.Seal(t.Context(), n)
	if err != nil || len(sealed) != 1 || chain.asked("eth_getLogs") != ranges {
		t.Fatalf("%d parts after %d more calls for logs, %v", len(sealed), chain.asked("eth_getLogs")-ranges, err)
	}
	r.from, r.parts = math.MaxUint64, sealed
	r.whole()
}

// Logs whose times contradict each other are not accepted, although no header is read that would reveal it.
func TestTimesFarBelowTheHead(t *testing.T) {
	chain := newFakeChain(t, 43, 60, func(*rand.Rand, int) int { return 6 })
	for name, late := range map[string]func(l *types.Log) bool{
		"in one block":   func(l *types.Log) bool { return l.Index == 1 },
		"before a block": func(l *types.Log) bool { return l.BlockNumber == 20 },
	} {
		chain.changeLogs = func(q fakeQuestion, logs []*types.Log) []*types.Log {
			spoiled := slices.Clone(logs)
			for i, l := range logs {
				if late(l) && !q.byHash {
					other := *l
					other.BlockTimestamp += 1_000_000
					spoiled[i] = &other
				}
			}
			return spoiled
		}
		err := chain.farBelow(proof.Headers).all(1, func(error) bool { return true })
		if err == nil || !containsWords(err.Error(), "times contradict each other") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// For a chain without blooms the error names the reason, and the chain can be read without proof.
func TestEmptyBlooms(t *testing.T) {
	chain := newFakeChain(t, 19, 50, sparse)
	for _, b := range chain.blocks {
		b.header["logsBloom"] = types.Bloom{}
	}
	err := chain.reading(proof.Headers).all(1, func(error) bool { return true })
	if err == nil || !containsWords(err.Error(), "set chain.proof to none") {
		t.Error(err)
	}
	for _, r := range []*reading{chain.reading(proof.None), chain.farBelow(proof.Headers)} {
		if err := r.all(1, nil); err != nil {
			t.Fatal(err)
		}
		r.whole()
	}
}

// Memory use is bounded for any size of blocks.
func TestPartsAreBounded(t *testing.T) {
	chain := newFakeChain(t, 23, 300, func(_ *rand.Rand, i int) int {
		if i > 100 {
			return 200
		}
		return 0
	})
	r := chain.reading(proof.Headers)
	r.reader.target = 100_000
	if err := r.all(4, nil); err != nil {
		t.Fatal(err)
	}
	r.whole()
	for _, p := range r.parts {
		if p.bytes > 3*r.reader.target {
			t.Errorf("blocks %d to %d have %d bytes", p.From, p.To, p.bytes)
		}
	}
}

// An endpoint that times out may hang: another one is used with a shorter range, and no limit is recorded for the
// first.
func TestNoAnswerInTime(t *testing.T) {
	chain := newFakeChain(t, 41, 100, sparse)
	r, n := chain.reading(proof.Headers).reader, chain.dial()
	hung := fmt.Errorf("eth_getLogs at fake: %w", context.DeadlineExceeded)
	j := &job{next: 1, to: 64} // compared with headers
	for asked := uint64(64); asked > 1; asked /= 16 {
		p, err := r.narrow(t.Context(), n, j, asked, hung)
		if p != nil || !errors.Is(err, context.DeadlineExceeded) || j.step != max(1, asked/16) {
			t.Errorf("after a timeout of %d blocks the next range has %d, %v", asked, j.step, err)
		}
	}
	if l := n.limits; l.ranges != newAdaptiveLimit(math.MaxInt64, rangesAfter) || l.width != firstWidth ||
		l.batch != newAdaptiveLimit(MaxBatchHeaders, batchesAfter) {
		t.Errorf("the timeout changed the limits to %+v", l)
	}
	var p *Part
	for try := 1; p == nil; try++ {
		var err error
		if p, err = r.narrow(t.Context(), n, j, 1, hung); (err != nil) != (try < unclearTries) {
			t.Fatalf("after %d timeouts of a single block the error is %v", try, err)
		}
	}
	if p.From != 1 || p.To != 1 {
		t.Errorf("another method read the blocks %d to %d", p.From, p.To)
	}
}

// timeouts reads blocks from a node that is silent at the calls for which hangs returns true, and counts the calls. The
// error of those calls is silence.
func (r *reading) timeouts(n *Node, blocks uint64, silence error, hangs func(asked uint64) bool) (calls, timeouts int) {
	for j := (&job{next: 1, to: blocks}); !j.done(); calls++ {
		asked := cmp.Or(j.step, n.limits.next(r.reader.maxBlocks))
		if hangs(asked) {
			timeouts++
			_, _ = r.reader.narrow(r.t.Context(), n, j, j.next+asked-1, silence)
			continue
		}
		n.limits.rangeSucceeded(asked, 0, 0, r.reader.target, time.Millisecond)
		j.next, j.step = j.next+asked, 0
	}
	return calls, timeouts
}

var errHung = fmt.Errorf("eth_getLogs at fake: %w", context.DeadlineExceeded)

// A node, or a proxy in front of it, never responds to ranges of more than 100 blocks, and at once to others. Each
// timeout takes 30 s, so there may only be a few until the limit is found, and few afterwards, even if it responded to
// longer ranges before. One outage has no lasting effect.
func TestRangesThatTimeOut(t *testing.T) {
	r := newFakeChain(t, 43, 1, sparse).reading(proof.None)
	n := r.dial()
	tooLong := func(asked uint64) bool { return asked > 100 }
	if _, timeouts := r.timeouts(n, 10_000, errHung, tooLong); timeouts > 9 {
		t.Errorf("%d ranges timed out in the first 10,000 blocks", timeouts)
	}
	if _, timeouts := r.timeouts(n, 100_000, errHung, tooLong); timeouts > 12 {
		t.Errorf("%d ranges timed out in the next 100,000 blocks", timeouts)
	}
	n = r.dial()
	r.timeouts(n, 100_000, errHung, func(uint64) bool { return false })
	if _, timeouts := r.timeouts(n, 100_000, errHung, tooLong); timeouts > 30 {
		t.Errorf("%d ranges timed out in the next 100,000 blocks of a node that responded to long ones before", timeouts)
	}
	n = r.dial()
	r.timeouts(n, 100_000, errHung, func(uint64) bool { return false })
	outage := 4
	hangs := func(asked uint64) bool { outage--; return outage >= 0 && asked > 1 }
	if _, timeouts := r.timeouts(n, 1_000_000, errHung, hangs); timeouts > 4 {
		t.Errorf("%d timeouts in an outage", timeouts)
	}
	if width := n.limits.next(r.reader.maxBlocks); width < r.reader.maxBlocks {
		t.Errorf("long after the outage a range has %d blocks", width)
	}
}

// Another endpoint continues each range that timed out, so that the slow one gets a new one. Its limit is found all the
// same.
func TestRangesThatTimeOutAndGoOn(t *testing.T) {
	l, timeouts := newLimits(), 0
	for range 200 {
		if asked := l.next(2000); asked > 100 {
			timeouts++
			l.refused(asked, refusal{kind: unanswered})
		} else {
			l.rangeSucceeded(asked, 0, 0, targetBytes, time.Millisecond)
		}
	}
	if timeouts > 10 {
		t.Errorf("%d of 200 ranges timed out", timeouts)
	}
}

// A node that hangs at some calls, whatever their length, takes at most twice as many calls as one that fails at them
// at once, which does not show the length.
func TestHangsOfAnyLength(t *testing.T) {
	every := func(n int) func() func(uint64) bool {
		return func() func(uint64) bool {
			calls := 0
			return func(uint64) bool { calls++; return calls%n == 0 }
		}
	}
	atRandom := func(n int) func() func(uint64) bool {
		return func() func(uint64) bool {
			rng := rand.New(rand.NewPCG(uint64(n), 7))
			return func(uint64) bool { return rng.IntN(n) == 0 }
		}
	}
	for name, hangs := range map[string]func() func(uint64) bool{
		"every 10th call": every(10), "every 50th call": every(50), "every 100th call": every(100),
		"every 200th call": every(200), "one call in 3, at random": atRandom(3), "one call in 5, at random": atRandom(5),
		"one call in 10, at random": atRandom(10), "one call in 50, at random": atRandom(50),
	} {
		t.Run(name, func(t *testing.T) {
			r := newFakeChain(t, 43, 1, sparse).reading(proof.None)
			const blocks = 1_000_000
			without, _ := r.timeouts(r.dial(), blocks, errors.New("connection reset"), hangs())
			calls, timeouts := r.timeouts(r.dial(), blocks, errHung, hangs())
			if calls > 2*without {
				t.Errorf("%d calls, %d of them timeouts, but %d if they fail at once", calls, timeouts, without)
			}
		})
	}
}

// Limits are recorded per endpoint, and relaxed later.
func TestLimitsAreRelaxed(t *testing.T) {
	l := newLimits()
	if got := l.refused(64, refusal{kind: tooMuch, blocks: 10}); got != 10 {
		t.Fatalf("after a refusal with the limit 10 the next range has %d blocks", got)
	}
	for range 10 * rangesAfter {
		blocks := l.next(2000)
		l.rangeSucceeded(blocks, 0, 0, targetBytes, time.Millisecond)
	}
	if got := l.next(2000); got <= 10 || got > 200 {
		t.Errorf("much later the next range has %d blocks", got)
	}
	l.rangeSucceeded(100, 5, 1000, targetBytes, 2*slowResponse)
	if got := l.next(2000); got > 50 {
		t.Errorf("after a slow response the next range has %d blocks", got)
	}
}

// Blocks that are so full that a response becomes too long make ranges short only as long as they last.
func TestFullBlocksHaveNoLastingEffect(t *testing.T) {
	l := newLimits()
	tooLong := refusalOf(t.Context(), tooLong(maxAnswer))
	for blocks := uint64(2000); blocks > 8; {
		blocks = l.refused(blocks, tooLong)
	}
	for range 10 {
		l.rangeSucceeded(l.next(2000), 0, 0, targetBytes, time.Millisecond)
	}
	if got := l.next(2000); got != 2000 {
		t.Errorf("10 ranges later a range has %d blocks", got)
	}
}

// Without a named limit, the width comes close to what the endpoint accepts, and stays there with few refusals. When
// the endpoint accepts more, the width grows.
func TestLimitIsFound(t *testing.T) {
	for _, limit := range []uint64{1, 2, 7, 50, 999, 2000, 9999} {
		l := newLimits()
		asked, refusals, blocks := 0, 0, uint64(0)
		read := func(ranges int) {
			for asked, refusals, blocks = 0, 0, 0; asked < ranges; asked++ {
				width := l.next(10_000)
				for width > limit {
					width, refusals = l.refused(width, refusal{kind: tooMuch}), refusals+1
				}
				l.rangeSucceeded(width, 0, 0, targetBytes, time.Millisecond)
				blocks += width
			}
		}
		read(640)
		read(6400)
		if mean := blocks / uint64(asked); mean < limit*3/4 || refusals > asked/64 {
			t.Errorf("with a limit of %d blocks a range has %d, and %d of %d are refused", limit, mean, refusals, asked)
		}
		limit *= 4
		read(6400)
		if got := l.next(10_000); got < min(limit, 10_000)*3/4 {
			t.Errorf("long after the limit became %d blocks a range has %d", limit, got)
		}
	}
}

// The refusals of ranges that were in flight before the bound fell do not lower it further.
func TestRefusalsOfOneMoment(t *testing.T) {
	l := newAdaptiveLimit(math.MaxInt64, rangesAfter)
	for range 8 {
		if got := l.refused(1000, 0); got != 500 {
			t.Errorf("after a refusal of 1000 the bound is %d", got)
		}
	}
	for l.before == 0 {
		l.succeeded(l.bound)
	}
	if raised := l.bound; raised <= 500 || l.refused(raised, 0) != 500 || l.refused(raised, 0) != 500 {
		t.Errorf("after refusals of a bound that was raised to %d it is %d", raised, l.bound)
	}
}

// A limit that a short period of errors suggested, down to the shortest range, is relaxed as well.
func TestMomentOfErrorsHasNoLastingEffect(t *testing.T) {
	for above := uint64(2); above <= 12; above++ {
		l := newLimits()
		for blocks := 4 * above; blocks > 1; {
			blocks = l.refused(blocks, refusal{kind: unclear})
		}
		l.refused(above, refusal{kind: unclear})
		for range 40 * rangesAfter {
			l.rangeSucceeded(l.next(2000), 0, 0, targetBytes, time.Millisecond)
		}
		if got := l.next(2000); got < 1000 {
			t.Errorf("long after the refusal of %d blocks the next range has %d", above, got)
		}
	}
	l := newLimits()
	for l.batchRefused(l.callsAtOnce(), 0) {
	}
	if got := l.callsAtOnce(); got != 1 {
		t.Errorf("after many refusals the next batch has %d headers", got)
	}
	l.batchSucceeded(l.callsAtOnce())
	if got := l.callsAtOnce(); got != 1 {
		t.Errorf("after one successful batch the next batch has %d headers", got)
	}
	for range 20 * batchesAfter {
		l.batchSucceeded(l.callsAtOnce())
	}
	if got := l.callsAtOnce(); got != MaxBatchHeaders {
		t.Errorf("long after the refusals the next batch has %d headers", got)
	}
}

// A node rejects batches for a moment: later the headers are read in long batches again.
func TestBatchesGrowAgain(t *testing.T) {
	chain := newFakeChain(t, 37, 400, sparse)
	n := chain.dial()
	l := n.limits
	l.batchRefused(4, 1)
	for range 30 * batchesAfter {
		if _, err := n.Headers(t.Context(), 1, uint64(l.callsAtOnce())); err != nil {
			t.Fatal(err)
		}
		if l.callsAtOnce() == MaxBatchHeaders {
			return
		}
	}
	t.Errorf("a batch still has %d headers", l.callsAtOnce())
}

// A backend that is behind returns an error because it does not have the blocks. That reveals nothing about the length
// of a range: the same number of blocks is requested again.
func TestBackendBehindDoesNotShortenRanges(t *testing.T) {
	const blocks = 6000
	for _, wording := range []string{
		"block range extends beyond current head block: requested 21000100, head 21000000",
		"requested to block 23734227 after last accepted block 23734226",
		"One of the blocks specified in filter (fromBlock, toBlock or blockHash) cannot be found",
	} {
		for name, far := range map[string]bool{"near the head": false, "far below the head": true} {
			t.Run(name+" "+wording[:20], func(t *testing.T) {
				calls := map[bool]int{}
				for _, behind := range []bool{false, true} {
					chain := newFakeChain(t, 5, blocks, sparse)
					refused := map[uint64]bool{}
					chain.refuse = func(q fakeQuestion) *fakeRefusal {
						if !behind || q.byHash || refused[q.from] {
							return nil
						}
						refused[q.from] = true // the next backend has the blocks
						return &fakeRefusal{code: -32602, message: wording}
					}
					r := chain.reading(proof.Headers)
					if far {
						r = chain.farBelow(proof.Headers)
					}
					if err := r.all(1, nil); err != nil {
						t.Fatal(err)
					}
					r.whole()
					calls[behind] = chain.asked("eth_getLogs") - len(refused)
				}
				if calls[true] != calls[false] {
					t.Errorf("%d ranges were read from a backend that is behind now and then, and %d from one that never is",
						calls[true], calls[false])
				}
			})
		}
	}
}
