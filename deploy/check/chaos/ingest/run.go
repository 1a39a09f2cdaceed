package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/navlog/navlog/deploy/engines"
)

// Options configure a run.
type Options struct {
	Seeds   int    // number of seeds, 1 or more
	First   uint64 // the first seed; the others follow it
	Kafka   string // embedded or apache
	Workers int    // seeds run in parallel, 1 or more
	JSON    bool   // one JSON object per line instead of text
}

// A Result is the outcome of one seed.
type Result struct {
	Seed    uint64         `json:"seed"`
	OK      bool           `json:"ok"`
	Logs    int            `json:"logs"`    // live at the end
	Records int            `json:"records"` // of the log
	Lost    int            `json:"lost"`
	Doubled int            `json:"doubled"`
	Counts  map[string]int `json:"counts"` // number of faults, deaths and operations, by kind
	Took    float64        `json:"seconds"`
	Failure string         `json:"failure,omitempty"`
	Story   string         `json:"story,omitempty"` // after a failure: plan, injections, ingest's output
}

// Cases returns how many single things were done to ingest.
func (r Result) Cases() (n int) {
	for _, c := range r.Counts {
		n += c
	}
	return n
}

// Run tries seeds and writes their results. It returns false if one of them failed.
func Run(ctx context.Context, o Options, out io.Writer) (ok bool, err error) {
	root, err := engines.TempDir("chaos")
	if err != nil {
		return false, err
	}
	var brokers []string
	if o.Kafka == "apache" {
		kafka, err := engines.StartApacheKafka(ctx, filepath.Join(root, "apachekafka"))
		if err != nil {
			return false, err
		}
		defer kafka.Close()
		brokers = []string{kafka.Addr}
	}
	seeds := make(chan uint64)
	go func() {
		defer close(seeds)
		for n := range o.Seeds {
			select {
			case seeds <- o.First + uint64(n):
			case <-ctx.Done():
				return
			}
		}
	}()
	total := &total{options: o, out: out, counts: map[string]int{}}
	var workers sync.WaitGroup
	for range o.Workers {
		workers.Go(func() {
			for seed := range seeds {
				total.add(Try(ctx, PlanOf(seed), filepath.Join(root, fmt.Sprint("seed-", seed)), brokers))
			}
		})
	}
	workers.Wait()
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	total.close()
	return total.failed == 0, nil
}

// Try tries one plan with its engines in dir, which it removes. brokers are those of a shared Kafka, if there is one.
func Try(ctx context.Context, plan Plan, dir string, brokers []string) Result {
	start := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer os.RemoveAll(dir)
	result := Result{Seed: plan.Seed}
	w, err := newWorld(ctx, plan, dir, brokers)
	if err != nil {
		result.Failure = err.Error()
		return result
	}
	defer w.close()
	v, line, err := w.play()
	result.Took = time.Since(start).Seconds()
	result.Logs, result.Records, result.Lost, result.Doubled = v.Logs, v.Records, v.Lost, v.Doubled
	w.mu.Lock()
	defer w.mu.Unlock()
	result.Counts = w.counts
	switch {
	case err != nil:
		result.Failure = fmt.Sprintf("%s: %v", line, err)
	case v.First != "":
		result.Failure = v.First
	default:
		result.OK = true
		return result
	}
	result.Story = fmt.Sprintf("%s\ninjected:\n%s\nthe last ingest said:\n%s", plan, strings.Join(w.injections, "\n"), w.sup.lastWords())
	return result
}

// play runs the script from its first operation to the verdict. On an error, line is the operation that failed.
func (w *world) play() (v verdict, line string, err error) {
	if err = w.steps(w.plan.Before); err != nil {
		return v, "before the start", err
	}
	w.sup.start()
	for i, o := range w.plan.Script {
		if err = w.do(o); err == nil {
			err = w.sup.err()
		}
		if err != nil {
			return v, fmt.Sprintf("line %d of the script (%s)", i+1, o), err
		}
	}
	if err = w.finish(); err != nil {
		// The content of the log says more than the error that ingest made no progress.
		v, _ = w.judge()
		return v, "after the script", err
	}
	if err = w.sup.stop(true); err != nil {
		return v, "at the end", err
	}
	v, err = w.judge()
	return v, "the verdict", err
}

// total is the sum of the results.
type total struct {
	options Options
	out     io.Writer

	mu                          sync.Mutex
	done, failed, lost, doubled int
	cases                       int
	counts                      map[string]int
}

func (t *total) add(r Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done++
	t.lost, t.doubled, t.cases = t.lost+r.Lost, t.doubled+r.Doubled, t.cases+r.Cases()
	for what, n := range r.Counts {
		t.counts[what] += n
	}
	if !r.OK {
		t.failed++
	}
	if t.options.JSON {
		_ = json.NewEncoder(t.out).Encode(r)
		return
	}
	if r.OK {
		fmt.Fprintf(t.out, "seed %d: ok, %d logs, %d records, %d cases, %.1f s (%d of %d seeds)\n", r.Seed, r.Logs, r.Records, r.Cases(), r.Took, t.done, t.options.Seeds)
		return
	}
	fmt.Fprintf(t.out, "seed %d: FAILED, lost %d, doubled %d: %s\n%s\n", r.Seed, r.Lost, r.Doubled, r.Failure, r.Story)
	fmt.Fprintf(t.out, "again with: make chaos-ingest SEEDS=1 FIRST=%d KAFKA=%s\n", r.Seed, t.options.Kafka)
}

// close writes the totals and the closing line.
func (t *total) close() {
	if t.options.JSON {
		_ = json.NewEncoder(t.out).Encode(map[string]any{
			"seeds": t.done, "failed": t.failed, "cases": t.cases, "lost": t.lost, "doubled": t.doubled, "counts": t.counts,
		})
		return
	}
	for _, what := range slices.Sorted(maps.Keys(t.counts)) {
		fmt.Fprintf(t.out, "%7d %s\n", t.counts[what], what)
	}
	failed := ""
	if t.failed > 0 {
		failed = fmt.Sprintf(" failed=%d", t.failed)
	}
	fmt.Fprintf(t.out, "seeds=%d cases=%d lost=%d doubled=%d%s\n", t.done, t.cases, t.lost, t.doubled, failed)
}
