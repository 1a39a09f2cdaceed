package ingest

import (
	"cmp"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/ingest/operate"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/registry"
)

// estimate calls only the node.
func (h *history) estimate(change func(*Config)) (*operate.Estimate, error) {
	h.t.Helper()
	c := h.config()
	change(&c)
	if err := c.Validate(); err != nil {
		h.t.Fatal(err)
	}
	var progress lastProgress
	e, err := New(c, chainlog.Config{}, nil, newRegistry(), slog.New(slog.DiscardHandler)).Estimate(h.t.Context(), 10,
		progress.note)
	if last := progress.last["chain: samples"]; err == nil && e.Samples > 0 && (last[1] == 0 || last[0] != last[1]-1) {
		h.t.Errorf("the progress before the last sample was %d of %d", last[0], last[1])
	}
	return e, err
}

func callsOf(calls []registry.MethodCalls, method string) int {
	for _, m := range calls {
		if m.Method == method {
			return int(m.Calls)
		}
	}
	return 0
}

// The backfill makes about the calls that the estimate predicts, on any node, and the estimate itself needs few calls.
func TestEstimateIsWhatABackfillCosts(t *testing.T) {
	sequential(t)
	for name, c := range map[string]struct {
		dated bool
		most  uint64
	}{"logs with times": {true, 0}, "logs without times": {false, 0}, "limited ranges": {true, 3000}} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t, c.dated)
			h.most = c.most
			e, err := h.estimate(func(c *Config) { c.Prices = map[string]uint64{"eth_getLogs": 75} })
			if err != nil {
				t.Fatal(err)
			}
			asked := 0
			for _, n := range h.calls {
				asked += n
			}
			if spent := registry.Spent(e.Sampling); asked > 25 || int(spent.Calls) != asked {
				t.Errorf("the estimate made %d calls and reports %d", asked, spent.Calls)
			}
			if e.DatesLogs == nil || *e.DatesLogs != c.dated || e.FromBlock != 1 || e.ToBlock != h.final ||
				e.RangeBlocks != cmp.Or(c.most, 10_000) || e.Logs < 900 || e.Logs > 1100 {
				t.Errorf("the estimate is %+v", e)
			}
			if e.Total.Units != uint64(75*callsOf(e.Calls, "eth_getLogs")) || len(e.Unpriced) == 0 {
				t.Errorf("%d units, methods without a price: %v", e.Total.Units, e.Unpriced)
			}
			h.mu.Lock()
			clear(h.calls)
			h.mu.Unlock()
			r := h.rig()
			p := r.start()
			h.caughtUp(p)
			p.halt()
			for method, n := range h.calls {
				if estimated := callsOf(e.Calls, method); estimated < n*9/10-3 || estimated > n*11/10+3 {
					t.Errorf("the estimate has %d calls of %s, the backfill made %d", estimated, method, n)
				}
			}
			if bytes := registry.Spent(p.Status().Calls).Bytes; e.Total.Bytes < bytes*8/10 || e.Total.Bytes > bytes*12/10 {
				t.Errorf("the estimate says %d bytes, the backfill took %d", e.Total.Bytes, bytes)
			}
		})
	}
}

// If the chain names no final block, or a vault begins above it, there is no
// history.
func TestEstimateOfOtherChains(t *testing.T) {
	h := newHistory(t, true)
	e, err := h.estimate(func(c *Config) { c.Vaults[0].StartBlock = h.tip })
	if err != nil {
		t.Fatal(err)
	}
	if e.Samples != 0 || e.Total.Calls > 30 || e.FromBlock <= e.ToBlock {
		t.Errorf("without a history the estimate is %+v", e)
	}
	h.final = h.tip + 10
	if _, err = h.estimate(func(*Config) {}); err == nil ||
		!strings.Contains(err.Error(), "set chain.finality to a depth") {
		t.Errorf("without a final block: %v", err)
	}
}

// Each poll of the head also reads the final block, unless that is a depth.
func TestEstimateOfADay(t *testing.T) {
	h := newHistory(t, true)
	perDay := func(change func(*Config)) int {
		t.Helper()
		e, err := h.estimate(func(c *Config) { c.PollInterval = 20 * time.Second; change(c) })
		if err != nil {
			t.Fatal(err)
		}
		return callsOf(e.FollowingPerDay, "eth_getBlockByNumber")
	}
	const looks, between = 24 * 60 * 60 / 20, 24*60*60/12 - 24*60*60/20
	if tag, depth := perDay(func(*Config) {}),
		perDay(func(c *Config) { c.Finality = Finality{Depth: 64} }); tag-depth != looks || depth != looks+between {
		t.Errorf("a day reads %d blocks, and %d if finality is a depth, with %d polls", tag, depth, looks)
	}
}

// A vault whose NAV is sampled costs a call and a header for each sample of its history, and a call for each at the
// head.
func TestEstimateOfSamples(t *testing.T) {
	h := newHistory(t, true)
	e, err := h.estimate(func(c *Config) { c.Vaults[0].Mapping = "erc4626" })
	if err != nil {
		t.Fatal(err)
	}
	const every = 300
	if day := callsOf(e.FollowingPerDay, "eth_call"); day != 24*60*60/12/every {
		t.Errorf("a day has %d samples", day)
	}
	plain, err := h.estimate(func(*Config) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"eth_call", "eth_getBlockByNumber"} {
		more, want := callsOf(e.Calls, method)-callsOf(plain.Calls, method), int(h.tip/every)
		if more < want-1 || more > want+1 {
			t.Errorf("the history has %d more calls of %s, want %d", more, method, want)
		}
	}
}
