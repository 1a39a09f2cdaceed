package state

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
)

// report returns a program's report of a given age.
func report(program, state string, age time.Duration, now time.Time) programStatus {
	p := programStatus{program: program, at: now.Add(-age), status: registry.ProgramStatus{State: state}}
	if program == registry.Ingest {
		p.status.HeadBlock, p.status.HeadTime, p.status.LagBlocks, p.status.LagSeconds = 4470, 54_000, new(uint64),
			new(uint64)
	}
	return p
}

// The state is that of the worst part, and the lag is the distance from the head to the served block, whatever ingest
// reports about its own lag.
func TestChainStateIsThatOfTheWorstPart(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	served := &Snapshot{Generation: 1, Block: 453, Time: 5_800}
	const following, stalled, unknown = registry.Following, registry.Stalled, registry.Unknown
	ingest := func(state string) programStatus { return report(registry.Ingest, state, 0, now) }
	project := func(state string) programStatus { return report(registry.Project, state, 0, now) }
	blind := ingest(following)
	blind.status.LagBlocks, blind.status.LagSeconds = nil, nil
	noHead := blind
	noHead.status.HeadBlock = 0
	catching, eta, long := project(registry.Building), uint64(70), uint64(900)
	catching.status.ETASeconds = &eta
	reading := ingest(registry.Backfilling)
	reading.status.ETASeconds = &long
	first := project("waiting")
	first.status.Building = &registry.BuildingStatus{Generation: 1}
	const far = "4017 blocks, 48200 s"

	for name, c := range map[string]struct {
		programs []programStatus
		change   func(*Watcher, *Registry)
		state    string
		reason   string
		lag, eta string
	}{
		"all follow, the tables are behind": {[]programStatus{ingest(following), project(following)}, nil, following, "", far,
			"-"},
		"project is bad": {[]programStatus{ingest(following), project(registry.Bad)}, nil, stalled,
			"another one has to replace it", far, "-"},
		"project retries": {[]programStatus{ingest(following), project(registry.Retrying)}, nil, stalled,
			"retries", far, "-"},
		"project starts": {[]programStatus{ingest(following), project("starting")}, nil, unknown,
			"project is starting", far, "-"},
		"no project": {[]programStatus{ingest(following)}, nil, unknown, "project reported nothing",
			far, "-"},
		"an old report of project": {[]programStatus{ingest(following),
			report(registry.Project, following, 6*time.Second, now)}, nil, unknown, "project reported nothing", far, "-"},
		"project reports an unknown state": {[]programStatus{ingest(following), project("")}, nil, unknown,
			"project reported nothing", far, "-"},
		"one project follows, one retries": {[]programStatus{ingest(following), project(registry.Retrying),
			project(following)}, nil, following, "", far, "-"},
		"one project stands by": {[]programStatus{ingest(following), project(registry.StandingBy),
			project(registry.Retrying)}, nil, stalled, "retries", far, "-"},
		"the read model catches up": {[]programStatus{ingest(following), catching}, nil, registry.Backfilling,
			"catches up", far, "70"},
		"both catch up": {[]programStatus{reading, catching}, nil, registry.Backfilling, "ingest reads",
			far, "900"},
		"it has no estimate": {[]programStatus{reading, project(registry.Building)}, nil, registry.Backfilling,
			"ingest reads", far, "-"},
		"the first read model is built": {[]programStatus{ingest(following), first}, nil, registry.Backfilling,
			"catches up", far, "-"},
		"ingest reads the history": {[]programStatus{reading, project(following)}, nil, registry.Backfilling,
			"ingest reads", far, "900"},
		"ingest is frozen": {[]programStatus{ingest(registry.Frozen), project(following)}, nil,
			registry.Frozen, "until an operator", far, "-"},
		"ingest is frozen, project is bad": {[]programStatus{ingest(registry.Frozen), project(registry.Bad)}, nil,
			registry.Frozen, "until an operator", far, "-"},
		"ingest starts, project is bad": {[]programStatus{ingest("starting"), project(registry.Bad)}, nil, stalled,
			"another one has to replace it", far, "-"},
		"ingest starts": {[]programStatus{ingest("starting"), project(following)}, nil, unknown,
			"ingest is starting", far, "-"},
		"an old report of ingest": {[]programStatus{report(registry.Ingest, following, 6*time.Second, now),
			project(following)}, nil, unknown, "ingest reported nothing", "-", "-"},
		"no report at all":             {nil, nil, unknown, "ingest reported nothing", "-", "-"},
		"the head was not seen lately": {[]programStatus{blind, project(following)}, nil, following, "", "-", "-"},
		"no head is known":             {[]programStatus{noHead, project(following)}, nil, following, "", "-", "-"},
		"PostgreSQL is down": {[]programStatus{ingest(following), project(following)},
			func(_ *Watcher, r *Registry) { r.Answered = now.Add(-6 * time.Second) }, unknown, "PostgreSQL", far, "-"},
		"no generation can be served": {[]programStatus{ingest(following), project(following)},
			func(_ *Watcher, r *Registry) { r.fault = "no generation is live" }, stalled, "no generation is live", far, "-"},
		"another schema is live, within the handover": {[]programStatus{ingest(following), project(following)},
			func(_ *Watcher, r *Registry) { r.fault, r.until = "another schema is live", now.Add(time.Second) }, following, "",
			far, "-"},
		"ClickHouse is down": {[]programStatus{ingest(following), project(following)},
			func(w *Watcher, _ *Registry) { w.seen.Store(now.Add(-6 * time.Second).UnixNano()) }, stalled, "last read 6s ago",
			far, "-"},
		"nothing is served yet": {[]programStatus{ingest(following), project(following)},
			func(w *Watcher, _ *Registry) { w.snapshot.Store(nil) }, unknown, "no snapshot", "-", "-"},
		"the first is being built": {[]programStatus{ingest(following), project(following)},
			func(w *Watcher, _ *Registry) {
				w.snapshot.Store(&Snapshot{Generation: 1, Block: 4470, Partial: true})
			}, registry.Backfilling, "being built", "0 blocks, 0 s", "-"},
		"the tables are ahead of the report": {[]programStatus{ingest(following), project(following)},
			func(w *Watcher, _ *Registry) { w.snapshot.Store(&Snapshot{Generation: 1, Block: 4475}) }, following, "",
			"0 blocks, 0 s", "-"},
		"the head has no time": {[]programStatus{ingest(following), project(following)},
			func(_ *Watcher, r *Registry) { r.programs[0].status.HeadTime = 0 }, following, "", "4017 blocks, ? s", "-"},
	} {
		w := New(1, 1, time.Minute, readmodel.DefaultConfig(), nil, nil, slog.New(slog.DiscardHandler))
		w.Now = func() time.Time { return now }
		w.snapshot.Store(served)
		w.seen.Store(now.UnixNano())
		view := &Registry{Known: true, Answered: now, served: 1, programs: c.programs}
		if c.change != nil {
			c.change(w, view)
		}
		w.registry.Store(view)
		chain := w.Chain()
		if chain.State != c.state || !strings.Contains(chain.Reason, c.reason) || (chain.Reason == "") != (c.reason == "") {
			t.Errorf("%s: %s, %q; want %s, %q", name, chain.State, chain.Reason, c.state, c.reason)
		}
		lag, etaGot := "-", "-"
		if blocks, seconds := chain.Lag(w.Snapshot()); blocks != nil {
			lag = fmt.Sprintf("%d blocks, ? s", *blocks)
			if seconds != nil {
				lag = fmt.Sprintf("%d blocks, %d s", *blocks, *seconds)
			}
		}
		if left := chain.ETA(w.Snapshot()); left != nil {
			etaGot = fmt.Sprint(*left)
		}
		if lag != c.lag || etaGot != c.eta {
			t.Errorf("%s: lag %s, eta %s; want %s, %s", name, lag, etaGot, c.lag, c.eta)
		}
	}
}

// Metrics show the lag of the served block and the state, even before anything is known.
func TestChainMetrics(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	w := New(1, 1, time.Minute, readmodel.DefaultConfig(), nil, nil, slog.New(slog.DiscardHandler))
	w.Now = func() time.Time { return now }
	reg := prometheus.NewRegistry()
	w.Register(reg)
	shows := func(lag, seconds, state string) {
		t.Helper()
		text := "# HELP navlog_query_chain_state 1 for the current state of the indexing, as in the header X-Chain-State, " +
			"0 for the other states.\n# TYPE navlog_query_chain_state gauge\n"
		for _, s := range []string{registry.Backfilling, registry.Following, registry.Frozen, registry.Stalled,
			registry.Unknown} {
			value := 0
			if s == state {
				value = 1
			}
			text += fmt.Sprintf("navlog_query_chain_state{state=%q} %d\n", s, value)
		}
		text += "# HELP navlog_query_lag_blocks Blocks from what is served to the head of the chain; NaN while that is " +
			"not known.\n# TYPE navlog_query_lag_blocks gauge\nnavlog_query_lag_blocks " + lag + "\n" +
			"# HELP navlog_query_lag_seconds Seconds from what is served to the head of the chain, by the times of the " +
			"blocks; NaN while that is not known.\n# TYPE navlog_query_lag_seconds gauge\nnavlog_query_lag_seconds " + seconds +
			"\n"
		if err := testutil.GatherAndCompare(reg, strings.NewReader(text), "navlog_query_chain_state",
			"navlog_query_lag_blocks", "navlog_query_lag_seconds"); err != nil {
			t.Error(err)
		}
	}
	shows("NaN", "NaN", registry.Unknown)
	w.seen.Store(now.UnixNano())
	w.snapshot.Store(&Snapshot{Block: 453, Time: 5_800})
	w.registry.Store(&Registry{Known: true, Answered: now, programs: []programStatus{
		report(registry.Ingest, registry.Following, 0, now), report(registry.Project, registry.Bad, 0, now)}})
	shows("4017", "48200", registry.Stalled)
}
