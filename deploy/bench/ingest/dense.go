package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/navlog/navlog/deploy/bench"
	"github.com/navlog/navlog/deploy/testkit/stack"
)

const (
	// visibleEvery is how often a backfill run polls the API for the newest valuation.
	visibleEvery = 50 * time.Millisecond
	// plainRuns is the number of runs of the plain HTTP client: half before navlog, half after. The median counts.
	plainRuns = 4
)

// dense measures the backfill of b.Logs logs in b.Blocks blocks and compares it with plain HTTP and Ponder.
func (b *benchmark) dense(ctx context.Context) (_ []bench.Bar, err error) {
	c, err := b.chain(ctx, b.Blocks, b.Logs)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	bench.Say("recording which ranges navlog asks for")
	asked, err := b.record(ctx, c)
	if err != nil {
		return nil, err
	}
	ranges, err := asked.once(c.start, c.final())
	if err != nil {
		return nil, err
	}
	var plains []float64 // seconds of each run
	plain := func() error {
		for range plainRuns / 2 {
			took, err := fetch(ctx, c.URL, ranges)
			if err != nil {
				return err
			}
			plains = append(plains, took.Seconds())
		}
		return nil
	}
	bench.Say("plain HTTP")
	if err := plain(); err != nil {
		return nil, err
	}
	bench.Say("navlog, from an empty data folder")
	run, err := b.backfill(ctx, c)
	if err != nil {
		return nil, err
	}
	bench.Say("plain HTTP again")
	if err := plain(); err != nil {
		return nil, err
	}
	logs, seconds, http := float64(c.logs), run.visible.Seconds(), median(plains)
	fmt.Printf("dense: %d logs in %d blocks\n", c.logs, b.Blocks)
	row("plain HTTP", "%.2f s, %.0f logs/s, %d ranges (runs: %.2f)", http, logs/http, len(ranges), plains)
	row("navlog", "%.2f s, %.0f logs/s; all in the log after %.2f s", seconds, logs/seconds, run.ingested.Seconds())
	row("CPU time", "%v", run.cpu)
	row("ratio to plain HTTP", "%.2f", seconds/http)
	row("peak of navlog ingest", "%.0f MiB", float64(run.ingestPeak)/mib)
	row("calls of the node", "%v", asked.methods())
	bars := []bench.Bar{
		{Name: "wall-ratio", Value: seconds / http, Bound: 1.6}, // a multiple of plain HTTP's time
		{Name: "ingest-peak-mib", Value: float64(run.ingestPeak) / mib, Bound: 256},
	}
	if !b.wants("ponder") {
		return bars, nil
	}
	bench.Say("Ponder, from an empty database")
	took, err := b.ponder(ctx, c)
	if err != nil {
		took = 0
		row("Ponder", "not measured: %v", err)
	} else {
		row("Ponder", "%.1f s, %.0f logs/s; navlog is %.1f times as fast", took.Seconds(), logs/took.Seconds(),
			took.Seconds()/seconds)
	}
	return append(bars, bench.Bar{Name: "ponder-speedup", Value: took.Seconds() / seconds, Bound: 15, Least: true}), nil
}

func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	n := len(sorted)
	return (sorted[n/2] + sorted[(n-1)/2]) / 2
}

// record runs only ingest, through a recording proxy, until the log holds the whole chain.
func (b *benchmark) record(ctx context.Context, c *chain) (seen traffic, err error) {
	proxy, err := startRecorder(c.URL)
	if err != nil {
		return seen, err
	}
	defer func() { seen = proxy.stop() }()
	s, err := b.start(ctx, c, proxy.URL)
	if err != nil {
		return seen, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	return seen, s.ingest(ctx, c)
}

// backfillRun is one run of navlog over a chain that does not grow.
type backfillRun struct {
	ingested   time.Duration // until the log held every log
	visible    time.Duration // until the last log was visible in the API
	ingestPeak int64         // bytes
	cpu        map[string]time.Duration
}

// backfill runs navlog from an empty data folder until the newest log is visible in the API. The clock starts when the
// engines respond, before navlog's programs are started.
func (b *benchmark) backfill(ctx context.Context, c *chain) (r backfillRun, err error) {
	s, err := b.start(ctx, c, c.URL)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	before := cpuTimes(c, s, nil)
	began := time.Now()
	run, err := s.start("ingest", "project", "serve")
	if err != nil {
		return r, err
	}
	defer run.stop()
	// The API is polled only once the result can be positive, because requests slow down what is measured.
	err = run.until(ctx, visibleEvery, func() bool {
		if r.ingested == 0 {
			if ingestedBlock(ctx, s) < c.last {
				return false
			}
			r.ingested = time.Since(began)
		}
		return complete(ctx, s.api, c.vault) >= c.last
	})
	if err != nil {
		return r, fmt.Errorf("run navlog: %w", err)
	}
	r.visible, r.ingestPeak = time.Since(began), stack.Peak(run["ingest"].Pid)
	r.cpu = cpuTimes(c, s, run)
	for name, spent := range before {
		r.cpu[name] -= spent
	}
	return r, wholeLog(ctx, s, c)
}

// cpuTimes returns the CPU time that each process of a run has used so far, or 0 if the system does not provide it. The
// broker is part of this process, which does little else.
func cpuTimes(c *chain, s *system, run programs) map[string]time.Duration {
	pids := map[string]int{"node": c.Pid, "clickhouse": s.ClickHouse.Pid, "kafka": os.Getpid()}
	for name, p := range run {
		pids[name] = p.Pid
	}
	times := map[string]time.Duration{}
	for name, pid := range pids {
		times[name], _ = stack.CPU(pid)
	}
	return times
}
