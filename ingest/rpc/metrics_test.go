package rpc

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/navlog/navlog/schemas/registry"
)

// Every call counts, in metrics and status, with the units of its method; the calls of a batch count one by one, as a
// provider bills them.
func TestCallsAreCounted(t *testing.T) {
	chain := newFakeChain(t, 3, 20, sparse)
	reg := newRegistry()
	prices := map[string]uint64{"eth_getLogs": 75, "eth_getBlockByNumber": 16, "eth_call": 26}
	p := NewPool(1, Endpoints(chain.url), 1, prices, reg, slog.New(slog.DiscardHandler))
	t.Cleanup(p.Close)
	n := p.all[0]
	if _, err := n.Headers(t.Context(), 1, 9); err != nil {
		t.Fatal(err)
	}
	if _, err := n.ByHash(t.Context(), chain.blocks[3].hash, 3); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := n.logsOfRange(t.Context(), maxAnswer, 1, 20, nil); err != nil {
			t.Fatal(err)
		}
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	metrics := map[string]map[string]float64{} // by name and method
	for _, f := range families {
		metrics[f.GetName()] = map[string]float64{}
		for _, m := range f.GetMetric() {
			metrics[f.GetName()][m.GetLabel()[len(m.GetLabel())-1].GetValue()] = m.GetCounter().GetValue()
		}
	}
	calls := n.spent.Calls()
	for i, c := range calls {
		if c.Bytes == 0 || metrics["navlog_ingest_rpc_bytes_total"][c.Method] != float64(c.Bytes) {
			t.Errorf("the responses to %s have %d bytes, the metrics another number", c.Method, c.Bytes)
		}
		if got := metrics["navlog_ingest_rpc_calls_total"][c.Method]; got != float64(c.Calls) {
			t.Errorf("navlog_ingest_rpc_calls_total of %s is %v, want %d", c.Method, got, c.Calls)
		}
		if got := metrics["navlog_ingest_rpc_units_total"][c.Method]; got != float64(c.Units) {
			t.Errorf("navlog_ingest_rpc_units_total of %s is %v, want %d", c.Method, got, c.Units)
		}
		calls[i].Bytes = 0
	}
	want := []registry.MethodCalls{
		{Method: "eth_getBlockByNumber", Calls: 9, Units: 144}, {Method: "eth_getLogs", Calls: 2, Units: 150},
		{Method: "eth_getBlockByHash", Calls: 1},
	}
	if !slices.Equal(calls, want) {
		t.Errorf("the counted calls are %+v, want %+v", calls, want)
	}
	if all := registry.Spent(calls); all.Calls != 12 || all.Units != 294 {
		t.Errorf("the total is %+v", all)
	}
	for _, c := range calls {
		if chain.asked(c.Method) != int(c.Calls) {
			t.Errorf("the node received %[2]d calls of %[1]s, %[3]d are counted", c.Method, chain.asked(c.Method), c.Calls)
		}
	}
}

// An endpoint has its own prices, or those of the chain; the total bill is the sum of the endpoints' bills.
func TestPricesOfEndpoints(t *testing.T) {
	first, second := newFakeChain(t, 3, 20, sparse), newFakeChain(t, 3, 20, sparse)
	endpoints := Endpoints(first.url, second.url)
	endpoints[1].Prices = map[string]uint64{"eth_getBlockByNumber": 5}
	p := NewPool(1, endpoints, 1, map[string]uint64{"eth_getBlockByNumber": 2}, newRegistry(), slog.New(slog.DiscardHandler))
	t.Cleanup(p.Close)
	for i, n := range p.all {
		if _, err := n.Headers(t.Context(), 1, uint64(2+i)); err != nil {
			t.Fatal(err)
		}
	}
	status := p.Status()
	for i, want := range [][2]uint64{{2, 4}, {3, 15}} {
		if got := [2]uint64{status[i].Calls, status[i].Units}; got != want {
			t.Errorf("endpoint %d has calls and units %v, want %v", i, got, want)
		}
	}
	all := p.Calls()
	if len(all) != 1 || all[0].Bytes == 0 || all[0].Calls != 5 || all[0].Units != 19 {
		t.Errorf("the calls of all endpoints are %+v", all)
	}
}
