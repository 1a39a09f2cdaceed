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

// denseResult is the result of the backfill of a chain with many logs.
type denseResult struct {
	Logs         uint64             `json:"logs"`
	Blocks       int                `json:"blocks"`
	BuildSeconds float64            `json:"chainBuildSeconds"`
	NodePeak     int64              `json:"nodePeakBytes"`
	PlainSeconds []float64          `json:"plainHttpSeconds"` // of each run
	Plain        float64            `json:"plainHttpMedianSeconds"`
	PlainBytes   int64              `json:"plainHttpBytes"`
	Ranges       int                `json:"ranges"`
	Again        int                `json:"rangesAskedAgain"` // more than are needed to read each block once
	Seconds      float64            `json:"navlogSeconds"`
	Ingested     float64            `json:"ingestedSeconds"` // until the log held everything
	IngestPeak   int64              `json:"ingestPeakBytes"`
	CPU          map[string]float64 `json:"cpuSeconds"` // of each process, in navlog's run
	Traffic      traffic            `json:"traffic"`
	Ratio        float64            `json:"ratio"`

	Ponder *ponderResult `json:"ponder,omitempty"`
}

// dense measures the backfill of b.Logs logs in b.Blocks blocks and compares it with plain HTTP and Ponder.
func dense(ctx context.Context, b *benchmark) (_ *denseResult, err error) {
	bench.Say("building a chain of %d logs in %d blocks", b.Logs, b.Blocks)
	c, err := b.chain(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.dense(ctx, b.Blocks, b.Logs); err != nil {
		return nil, fmt.Errorf("build the chain: %w", err)
	}
	r := &denseResult{Logs: c.logs, Blocks: b.Blocks, BuildSeconds: c.took.Seconds()}

	bench.Say("recording which ranges navlog asks for")
	if r.Traffic, err = record(ctx, b, c); err != nil {
		return nil, err
	}
	ranges, err := r.Traffic.once(c.start, c.final())
	if err != nil {
		return nil, err
	}
	r.Ranges, r.Again = len(ranges), len(r.Traffic.ranges)-len(ranges)
	plain := func() error {
		for range plainRuns / 2 {
			took, got, err := fetch(ctx, c.URL, ranges)
			if err != nil {
				return err
			}
			r.PlainSeconds, r.PlainBytes = append(r.PlainSeconds, took.Seconds()), got
		}
		return nil
	}
	bench.Say("plain HTTP")
	if err := plain(); err != nil {
		return nil, err
	}
	bench.Say("navlog, from an empty data folder")
	run, err := backfill(ctx, b, c)
	if err != nil {
		return nil, err
	}
	r.Seconds, r.Ingested, r.IngestPeak = run.visible.Seconds(), run.ingested.Seconds(), run.ingestPeak
	r.CPU = run.cpu
	bench.Say("plain HTTP again")
	if err := plain(); err != nil {
		return nil, err
	}
	r.Plain = median(r.PlainSeconds)
	r.Ratio, r.NodePeak = r.Seconds/r.Plain, stack.Peak(c.Pid)
	if !b.wants("ponder") {
		return r, nil
	}
	bench.Say("Ponder, from an empty database")
	r.Ponder = ponder(ctx, b, c)
	return r, nil
}

func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	n := len(sorted)
	return (sorted[n/2] + sorted[(n-1)/2]) / 2
}

// record runs only ingest, through a recording proxy, until the log holds the whole chain.
func record(ctx context.Context, b *benchmark, c *chain) (seen traffic, err error) {
	s, err := startSystem(ctx, b)
	if err != nil {
		return seen, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	proxy := startRecorder(c.URL)
	defer func() { seen = proxy.stop() }()
	if err := s.configure(b.settings(c, proxy.URL)); err != nil {
		return seen, err
	}
	run, err := startPrograms(b, s, "ingest")
	if err != nil {
		return seen, err
	}
	defer run.stop()
	return seen, run.until(ctx, visibleEvery, func(ctx context.Context) bool { return ingestedBlock(ctx, s) >= c.last })
}

// backfillRun is one run of navlog over a chain that does not grow.
type backfillRun struct {
	ingested   time.Duration // until the log held every log
	visible    time.Duration // until the last log was visible in the API
	ingestPeak int64         // bytes
	cpu        map[string]float64
}

// backfill runs navlog from an empty data folder until the newest log is visible in the API. The clock starts when the
// engines respond, before navlog's programs are started.
func backfill(ctx context.Context, b *benchmark, c *chain) (r backfillRun, err error) {
	s, err := startSystem(ctx, b)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := s.configure(b.settings(c, c.URL)); err != nil {
		return r, err
	}
	before := cpuTimes(c, s, nil)
	began := time.Now()
	run, err := startPrograms(b, s, "ingest", "project", "serve")
	if err != nil {
		return r, err
	}
	defer run.stop()
	// The API is polled only once the result can be positive, because requests slow down what is measured.
	err = run.until(ctx, visibleEvery, func(ctx context.Context) bool {
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
	for name, seconds := range before {
		r.cpu[name] -= seconds
	}
	return r, wholeLog(ctx, s, c)
}

// cpuTimes returns the CPU seconds that each process of a run has used so far. The broker is part of this process,
// which does little else.
func cpuTimes(c *chain, s *system, run programs) map[string]float64 {
	times := map[string]float64{
		"node": cpuSeconds(c.Pid), "clickhouse": cpuSeconds(s.ClickHouse.Pid), "kafka": cpuSeconds(os.Getpid()),
	}
	for name, p := range run {
		times[name] = cpuSeconds(p.Pid)
	}
	return times
}
