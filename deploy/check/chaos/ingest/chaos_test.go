package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/navlog/navlog/deploy/faultproxy"
)

var seeds = flag.Uint64("seeds", 2, "how many seeds are tried")

func TestMain(m *testing.M) {
	Child()
	flag.Parse()
	os.Exit(m.Run())
}

// `make chaos-ingest` tries many more.
func TestSeeds(t *testing.T) {
	for seed := uint64(1); seed <= *seeds; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := Try(t.Context(), PlanOf(seed), filepath.Join(t.TempDir(), "seed"), nil)
			if !r.OK || r.Lost != 0 || r.Doubled != 0 || r.Logs == 0 || r.Cases() == 0 {
				t.Errorf("%d logs, %d cases, lost %d, doubled %d: %s\n%s", r.Logs, r.Cases(), r.Lost, r.Doubled, r.Failure, r.Story)
			}
		})
	}
}

// The same seed gives the same plan, different seeds give different plans, and a few hundred plans together contain
// every operation and fault.
func TestPlans(t *testing.T) {
	tried := map[string]bool{}
	faults := map[faultproxy.Fault]bool{}
	for seed := range uint64(200) {
		plan := PlanOf(seed)
		if plan.String() != PlanOf(seed).String() {
			t.Fatalf("seed %d makes different plans", seed)
		}
		if plan.String() == PlanOf(seed+1).String() {
			t.Errorf("seeds %d and %d make the same plan", seed, seed+1)
		}
		for _, o := range plan.Script {
			tried[o.Name] = true
		}
		for _, d := range plan.Deaths {
			tried[d.Step] = true
		}
		for _, e := range plan.Endpoints {
			for _, f := range e.Faults {
				faults[f] = true
			}
		}
	}
	for _, what := range append([]string{opTraffic, opMine, opReorg, opAgain, opRewind, opComeback, opSettle, opKill, opOffline, opRival, opPair, opBroker,
		opVault, opConfirm, opFinality, opRate, ""}, steps...) {
		if !tried[what] {
			t.Errorf("no seed tries %q", what)
		}
	}
	// Ranges of final blocks do not survive partial and truncated logs: chain.receiptsEvery finds them afterwards
	// (TestLostLogsAreDisproven of deploy/faultproxy).
	const notSurvived = 2
	if len(faults) != len(faultproxy.All())+len(faultproxy.Lies())-notSurvived {
		t.Errorf("the seeds draw only the faults %v", faults)
	}
}
