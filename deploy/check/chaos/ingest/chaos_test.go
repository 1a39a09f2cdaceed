package ingest

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/faultproxy"
)

var (
	seeds = flag.Uint64("seeds", 2, "how many seeds are tried")
	first = flag.Uint64("first", 1, "the first seed; the others follow it")
	kafka = flag.String("kafka", "embedded", "embedded, or apache for Apache Kafka itself")
)

func TestMain(m *testing.M) {
	Child()
	flag.Parse()
	os.Exit(m.Run())
}

// `make chaos-ingest` tries many more. A case is one thing that was done to ingest: a fault, a death, a reorganisation.
func TestSeeds(t *testing.T) {
	if *seeds < 1 {
		t.Fatalf("-seeds is %d and must be 1 or more", *seeds)
	}
	var brokers []string // each seed has its own
	switch *kafka {
	case "embedded":
	case "apache":
		dir, err := engines.TempDir("chaos")
		if err != nil {
			t.Fatal(err)
		}
		shared, err := engines.StartApacheKafka(t.Context(), filepath.Join(dir, "kafka"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(shared.Kill)
		brokers = []string{shared.Addr}
	default:
		t.Fatalf("-kafka is %q and must be embedded or apache", *kafka)
	}
	var mu sync.Mutex
	counts, done, cases, lost, doubled := map[string]int{}, 0, 0, 0, 0
	t.Cleanup(func() {
		for _, what := range slices.Sorted(maps.Keys(counts)) {
			t.Logf("%7d %s", counts[what], what)
		}
		t.Logf("seeds=%d cases=%d lost=%d doubled=%d", done, cases, lost, doubled)
	})
	for seed := *first; seed < *first+*seeds; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			r := Try(t.Context(), PlanOf(seed), filepath.Join(t.TempDir(), "seed"), brokers)
			summary := fmt.Sprintf("%d logs, %d records, %d cases, lost %d, doubled %d", r.Logs, r.Records, r.Cases(), r.Lost,
				r.Doubled)
			if r.First != "" || r.Lost != 0 || r.Doubled != 0 || r.Logs == 0 || r.Cases() == 0 {
				t.Errorf("%s: %s\n%s\nagain with: make chaos-ingest SEEDS=1 FIRST=%d KAFKA=%s", summary, r.First, r.Transcript, seed,
					*kafka)
			} else {
				t.Log(summary)
			}
			mu.Lock()
			defer mu.Unlock()
			done, cases, lost, doubled = done+1, cases+r.Cases(), lost+r.Lost, doubled+r.Doubled
			for what, n := range r.Counts {
				counts[what] += n
			}
		})
	}
}

// unseeded describes the plan of a seed without the seeds in it.
func unseeded(seed uint64) string {
	p := PlanOf(seed)
	p.Seed = 0
	for i := range p.Endpoints {
		p.Endpoints[i].Seed = 0
	}
	return fmt.Sprintf("%+v", p)
}

// The same seed gives the same plan, different seeds give different plans, and a few hundred plans together contain
// every operation and fault.
func TestPlans(t *testing.T) {
	tried := map[string]bool{}
	faults := map[faultproxy.Fault]bool{}
	for seed := range uint64(200) {
		plan := PlanOf(seed)
		if !reflect.DeepEqual(plan, PlanOf(seed)) {
			t.Fatalf("seed %d makes different plans", seed)
		}
		if unseeded(seed) == unseeded(seed+1) {
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
	for _, what := range append([]string{opTraffic, opMine, opReorg, opAgain, opRewind, opReturn, opSettle, opKill,
		opOffline, opTakeover, opPair, opBroker,
		opVault, opConfirm, opFinality, opRate, ""}, steps...) {
		if !tried[what] {
			t.Errorf("no seed tries %q", what)
		}
	}
	// Ranges of final blocks do not survive partial and truncated logs: chain.receiptsEvery finds them afterwards
	// (TestLostLogsAreDisproven).
	const notSurvived = 2
	if len(faults) != len(faultproxy.All())+len(faultproxy.FalseResponses())-notSurvived {
		t.Errorf("the seeds draw only the faults %v", faults)
	}
}
