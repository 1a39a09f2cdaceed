package ingest

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/faultproxy"
	"github.com/navlog/navlog/ingest/proof"
)

// chosen tries a plan that a test chose. What the plan leaves out is that of an ordinary chain with some history.
func chosen(t *testing.T, p Plan) Result {
	t.Helper()
	p.Seed = 1_000_000 // of the traffic; each plan has its own engines
	p.SlotsInEpoch, p.BatchBlocks, p.RangesInFlight, p.Poll = 4, cmp.Or(p.BatchBlocks, 10_000), 4, 20*time.Millisecond
	p.Window, p.Proof, p.Agreement = cmp.Or(p.Window, wholeWindow), cmp.Or(p.Proof, proof.Headers), cmp.Or(p.Agreement, 1)
	if p.Before == nil {
		p.Before = []Op{{Name: opTraffic, N: 20}}
	}
	r := Try(t.Context(), p, filepath.Join(t.TempDir(), "seed"), nil)
	t.Logf("%d logs, %d samples, %v", r.Logs, r.Samples, r.Counts)
	return r
}

// survived fails the test if the log is not that of the chain, or if not every fault was injected.
func (r Result) survived(t *testing.T, faults ...faultproxy.Fault) {
	t.Helper()
	if r.First != "" || r.Lost != 0 || r.Doubled != 0 || r.Logs == 0 {
		t.Errorf("%d logs, lost %d, doubled %d: %s\n%s", r.Logs, r.Lost, r.Doubled, r.First, r.Transcript)
	}
	for _, f := range faults {
		if r.Counts["fault "+string(f)] == 0 {
			t.Errorf("%s was not injected", f)
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(r.Counts)),
		func(what string) bool { return strings.HasPrefix(what, "fault ") }) {
		t.Error("no fault was injected")
	}
}

var reached = Op{Name: opSettle, Flag: true}

// life lets the chain grow while ingest reads it through the faults.
func life(stages int) (script []Op) {
	for stage := range stages {
		script = append(script, reached)
		if stage%2 == 1 {
			script = append(script, Op{Name: opReorg, N: 1 + stage%4})
		}
		script = append(script, Op{Name: opTraffic, N: 4})
	}
	return script
}

// threeReorgs are reorganisations of one, two and three blocks, each of a chain whose head ingest has reached.
func threeReorgs() (script []Op) {
	for depth := range 3 {
		script = append(script, reached, Op{Name: opReorg, N: 1 + depth}, Op{Name: opTraffic, N: 4})
	}
	return script
}

// lossyRanges are faults that ingest cannot detect in a range of final blocks: a block's bloom reveals a missing log
// only if the block has no other log of that vault and event.
var lossyRanges = []faultproxy.Fault{faultproxy.PartialLogs, faultproxy.TruncatedLogs}

// One endpoint with all faults now and then: where no block is final, so that every block is read by its hash, with all
// its logs, and where the first blocks are final, so that they are read as ranges.
func TestEndpointWithAllFaults(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		e := Endpoint{Seed: seed, Rate: 0.05, RangeLimit: 4, ResultLimit: 10}
		t.Run(fmt.Sprintf("head,seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			e := e
			e.Faults = faultproxy.All()
			chosen(t, Plan{Finality: nothingFinal, Endpoints: []Endpoint{e}, Script: life(6)}).survived(t)
		})
		t.Run(fmt.Sprintf("history,seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			e := e
			e.Faults = faultproxy.Except(lossyRanges...)
			chosen(t, Plan{Endpoints: []Endpoint{e}, Script: life(6)}).survived(t)
		})
	}
}

// Each fault that ingest can detect, in its first requested range: ingest reports it or retries, and the log is
// complete.
func TestDetectableFaults(t *testing.T) {
	t.Parallel()
	for _, f := range []faultproxy.Fault{
		faultproxy.WrongHash, faultproxy.EmptyLogs, faultproxy.Stale, faultproxy.ShortLogs, faultproxy.BeyondHead,
		faultproxy.BlockOverLimit, faultproxy.RangeResults,
		faultproxy.ResponseSize, faultproxy.RangeWide, faultproxy.RangeLimited, faultproxy.RangeMaximum,
		faultproxy.LimitExceeded, faultproxy.QueryTimeout, faultproxy.Range413,
	} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			e := Endpoint{Seed: 1, Faults: []faultproxy.Fault{f}, Rate: 1, RangeLimit: 4, ResultLimit: 10, Endless: true}
			switch f { // the others are limits that smaller requests respect
			case faultproxy.WrongHash, faultproxy.EmptyLogs, faultproxy.Stale, faultproxy.ShortLogs, faultproxy.BeyondHead:
				e.Endless = false
			}
			chosen(t, Plan{Endpoints: []Endpoint{e}, Script: []Op{{Name: opFault, N: 1}}}).survived(t, f)
		})
	}
}

// The proofs by receipts find a log that was lost in a range of old blocks, and find nothing if none was lost.
func TestLostLogsAreDisproven(t *testing.T) {
	t.Parallel()
	var lost atomic.Int64
	t.Run("faults", func(t *testing.T) {
		for _, f := range append([]faultproxy.Fault{faultproxy.EmptyLogs, faultproxy.ShortLogs}, lossyRanges...) {
			t.Run(string(f), func(t *testing.T) {
				t.Parallel()
				r := chosen(t, Plan{
					Window: 4, Finality: 4, BatchBlocks: 7, Before: []Op{{Name: opTraffic, N: 40}}, Proven: true,
					Script:    []Op{{Name: opFault, N: 3}},
					Endpoints: []Endpoint{{Seed: 1, Faults: []faultproxy.Fault{f}, Rate: 1, RangeLimit: 4, ResultLimit: 10}},
				})
				if found := strings.Contains(r.Transcript, "ingest has disproven its own log"); found != (r.Lost > 0) ||
					found == (r.First == "") {
					t.Errorf("the log lacks %d logs, disproven: %t, %s\n%s", r.Lost, found, r.First, r.Transcript)
				}
				lost.Add(int64(r.Lost))
			})
		}
	})
	if lost.Load() == 0 {
		t.Error("no log was lost: the test shows nothing")
	}
}

// A provider with all limits at once: blocks in a range, results, response size, and calls per second, counting each
// call of a batch. Ingest knows none of these limits, and reads the history without help from an operator. The limits
// are proxies in a chain, the widest limit first, because a single proxy draws only one fault per call.
func TestLimitedProvider(t *testing.T) {
	t.Parallel()
	limit := func(f faultproxy.Fault, blocks uint64, logs int, via *Endpoint) *Endpoint {
		return &Endpoint{Seed: 1, Faults: []faultproxy.Fault{f}, Rate: 1, RangeLimit: blocks, ResultLimit: logs, Via: via}
	}
	wide := limit(faultproxy.RangeLimited, 40, 0, nil)
	long := limit(faultproxy.ResponseSize, 0, 12, limit(faultproxy.RangeResults, 0, 30, wide))
	var history []Op
	for range 4 {
		history = append(history, Op{Name: opTraffic, N: 20}, Op{Name: opMine, N: 150})
	}
	r := chosen(t, Plan{Window: 150, Before: history,
		Endpoints: []Endpoint{{Seed: 1, PerSecond: 60, Via: long, Endless: true}}})
	r.survived(t, faultproxy.RangeLimited, faultproxy.TooManyRequests)
	if r.Counts["fault "+string(faultproxy.RangeResults)]+r.Counts["fault "+string(faultproxy.ResponseSize)] == 0 {
		t.Error("no limit of long responses was met") // which of the two is met first depends on chance
	}
}

// A node all of whose responses have every unusual format that keeps the content true: the log is correct, both the
// history of final blocks and new blocks at the head, through reorganisations.
func TestUnusualFormats(t *testing.T) {
	t.Parallel()
	failures := []faultproxy.Fault{faultproxy.OddError, faultproxy.HTML, faultproxy.NoContent}
	without := func(some ...faultproxy.Fault) []faultproxy.Fault {
		return slices.DeleteFunc(faultproxy.UnusualFormats(), func(f faultproxy.Fault) bool { return slices.Contains(some, f) })
	}
	for name, c := range map[string]struct {
		level    proof.Level
		faults   []faultproxy.Fault
		rate     float64
		finality uint64
	}{
		"every answer, proven":         {proof.Headers, without(append(failures, faultproxy.NoBloom)...), 1, 0},
		"no batches":                   {proof.Headers, []faultproxy.Fault{faultproxy.NoBatches}, 1, 0},
		"no bloom":                     {proof.None, []faultproxy.Fault{faultproxy.NoBloom}, 1, 0},
		"every answer, without proof":  {proof.None, without(failures...), 1, 0},
		"now and then, also a failure": {proof.Headers, faultproxy.UnusualFormats(), 0.2, 0},
		"nothing is final":             {proof.Headers, without(append(failures, faultproxy.NoBloom)...), 1, nothingFinal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chosen(t, Plan{Finality: c.finality, Proof: c.level,
				Endpoints: []Endpoint{{Seed: 1, Faults: c.faults, Rate: c.rate}}, Script: life(4)}).survived(t)
		})
	}
}

// One of three endpoints gives only false responses. With chain.agreement 2 the log and its finality are those of the other
// two, even while it does, whichever endpoint is used first.
func TestBesideAFalseEndpoint(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		faults   []faultproxy.Fault
		finality uint64
	}{
		"about finality":                     {aboutFinality, 0},
		"a head that is named as final":      {[]faultproxy.Fault{faultproxy.FinalHead}, 0},
		"a final block of the future":        {[]faultproxy.Fault{faultproxy.FinalFuture}, 0},
		"a final block that moves back":      {[]faultproxy.Fault{faultproxy.FinalBack}, 0},
		"a head of the future":               {[]faultproxy.Fault{faultproxy.FutureHead}, 0},
		"no blooms and no logs, at the head": {[]faultproxy.Fault{faultproxy.ZeroBloom}, nothingFinal},
		"changed headers, at the head":       {[]faultproxy.Fault{faultproxy.ChangedHeader}, nothingFinal},
		"about everything, at the head":      {faultproxy.FalseResponses(), nothingFinal},
	} {
		for _, used := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, used first: %t", name, used), func(t *testing.T) {
				t.Parallel()
				endpoints := []Endpoint{{Seed: 3, Faults: c.faults, Rate: 1, FalseResponses: true, Endless: true}, {}, {}}
				if !used {
					slices.Reverse(endpoints)
				}
				chosen(t, Plan{Agreement: 2, Finality: c.finality, Endpoints: endpoints, Script: threeReorgs()}).survived(t)
			})
		}
	}
}

// With chain.agreement 2 and two honest endpoints, the log contains no sample from a third endpoint with false data about the
// calls, and no sample is missing. Faults that do not look like an answer need neither agreement nor a second honest
// endpoint.
func TestSamplesBesideAFalseEndpoint(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		faults    []faultproxy.Fault
		agreement int // as many honest endpoints
	}{
		"wrong values":                  {[]faultproxy.Fault{faultproxy.SampleWrong}, 2},
		"answers that a contract gives": {[]faultproxy.Fault{faultproxy.SampleReverted, faultproxy.SampleEmpty}, 2},
		"everything":                    {faultproxy.Samples(), 2},
		"what no contract would give":   {[]faultproxy.Fault{faultproxy.SampleNull, faultproxy.SampleTimeout}, 1},
		"no state, beside an archive":   {[]faultproxy.Fault{faultproxy.SampleNoState}, 1},
		"failures of all calls": {[]faultproxy.Fault{faultproxy.TooManyRequests, faultproxy.Reset,
			faultproxy.BrokenBody}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			endpoints := append([]Endpoint{{Seed: 5, Faults: c.faults, Rate: 0.6, FalseResponses: true, Endless: true}},
				make([]Endpoint, c.agreement)...)
			r := chosen(t, Plan{Agreement: c.agreement, SampleEvery: 3, Endpoints: endpoints, Script: threeReorgs()})
			r.survived(t)
			if r.Samples < 20 {
				t.Errorf("%d samples, too few for this test", r.Samples)
			}
		})
	}
}
