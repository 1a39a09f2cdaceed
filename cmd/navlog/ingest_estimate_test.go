package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/ingest/operate"
	"github.com/navlog/navlog/schemas/registry"
)

func TestEstimateForPeople(t *testing.T) {
	undated := false
	e := &operate.Estimate{
		ChainID: 1, Endpoint: "https://a.example", FromBlock: 10, ToBlock: 1_000_009, RangeBlocks: 10_000, Samples: 12,
		Logs: 700, Seconds: 75, DatesLogs: &undated,
		Calls: []registry.MethodCalls{{Method: "eth_getBlockByHash", Calls: 600, Bytes: 9000},
			{Method: "eth_getLogs", Calls: 103, Bytes: 500, Units: 7725}},
		Total:           registry.MethodCalls{Calls: 703, Bytes: 9500, Units: 7725},
		FollowingPerDay: []registry.MethodCalls{{Method: "eth_getBlockByNumber", Calls: 172_800}},
		FollowingTotal:  registry.MethodCalls{Calls: 172_800},
		Unpriced:        []string{"eth_getBlockByHash"},
		Sampling:        []registry.MethodCalls{{Method: "eth_getLogs", Calls: 12}, {Method: "eth_chainId", Calls: 1}},
	}
	text := func(e *operate.Estimate, priced bool) string {
		var out bytes.Buffer
		if err := (cli.Output{}).Print(&out, e, func(w io.Writer) { writeEstimate(w, e, priced) }); err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(out.String()), " ")
	}
	for _, want := range []string{
		"chain 1 from https://a.example reads blocks 10 to 1000009 in ranges of up to 10000, about 700 logs, in about 1m15s.",
		"does not return the times of logs",
		"BACKFILL CALLS BYTES UNITS eth_getBlockByHash 600 9000 0 eth_getLogs 103 500 7725 total 703 9500 7725",
		"A DAY AT THE HEAD CALLS BYTES UNITS eth_getBlockByNumber 172800 0 0", "no price for eth_getBlockByHash",
		"made 13 calls for 12 ranges of blocks",
	} {
		if got := text(e, true); !strings.Contains(got, want) {
			t.Errorf("the estimate lacks %q: %s", want, got)
		}
	}
	if got := text(e, false); strings.Contains(got, "UNITS") {
		t.Errorf("without prices the output is %s", got)
	}
	e.FromBlock = 2_000_000
	if got := text(e, false); !strings.Contains(got, "there is no history to read") {
		t.Errorf("without a history the output is %s", got)
	}
	for _, wrong := range []string{"0", "1001"} {
		if err := run(t.Context(), []string{"ingest", "estimate", "--samples", wrong}, new(bytes.Buffer),
			new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "--samples: it is "+wrong) {
			t.Errorf("--samples %s: %v", wrong, err)
		}
	}
}
