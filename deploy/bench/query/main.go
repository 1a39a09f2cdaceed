// Command query measures the HTTP API on a data set of ten million events and
// a million users, with a chain that goes on while it is asked.
//
//	log of a made-up chain ─▶ Kafka ─▶ projections ─▶ ClickHouse ◀─ navlog serve ◀─ load
//	                                                  PostgreSQL ◀──────────────── the same questions
//
// The data set is made once and kept in build/bench-query.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/navlog/navlog/deploy/bench"
	"github.com/navlog/navlog/schemas/readmodel"
)

func main() {
	o := options{}
	flag.IntVar(&o.events, "events", 10_000_000, "events of the chain")
	flag.IntVar(&o.users, "users", 0, "users (default: a tenth of the events)")
	flag.StringVar(&o.dir, "dir", "build/bench-query", "where the data set is kept")
	flag.StringVar(&o.navlog, "navlog", "bin/navlog", "the program to measure")
	flag.DurationVar(&o.each, "each", 60*time.Second, "time of each measurement")
	flag.BoolVar(&o.load, "load", false, "make the data set and end")
	flag.StringVar(&o.only, "only", "", "only these measurements, separated by commas: alone, cold, hot, crowd, postgres")
	bare, listen := flag.String("bare", "", "(internal) serve this file and nothing else"), flag.String("listen", "", "(internal) where")
	flag.Parse()
	if *bare != "" {
		fmt.Fprintln(os.Stderr, "bench-query:", runBare(*bare, *listen))
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench-query:", err)
		os.Exit(1)
	}
}

type options struct {
	events, users int
	dir, navlog   string
	each          time.Duration
	load          bool
	only          string
}

func run(ctx context.Context, o options) (err error) {
	if o.users == 0 {
		o.users = o.events / 10
	}
	// The tables are part of the name: others are another data set.
	folder, err := filepath.Abs(filepath.Join(o.dir, fmt.Sprintf("%d-%s", o.events, readmodel.Schema())))
	if err != nil {
		return err
	}
	if o.navlog, err = filepath.Abs(o.navlog); err != nil {
		return err
	}
	w, err := open(ctx, folder, o.events, o.users, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if w != nil {
		defer func() { err = errors.Join(err, w.close()) }()
	}
	if err != nil || o.load {
		return err
	}
	var bars []bench.Bar
	for _, m := range []struct {
		name    string
		measure func(context.Context, options) ([]bench.Bar, error)
	}{{"alone", w.alone}, {"cold", w.cold}, {"hot", w.hot}, {"crowd", w.crowd}, {"postgres", w.compare}} {
		if o.only != "" && !slices.Contains(strings.Split(o.only, ","), m.name) {
			continue
		}
		more, err := m.measure(ctx, o)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		bars = append(bars, more...)
	}
	fmt.Println()
	bench.Print(os.Stdout, bars...)
	return nil
}

// alone asks one question at a time with the cache off: what each of them costs.
func (w *world) alone(ctx context.Context, o options) ([]bench.Bar, error) {
	s, err := w.serve(ctx, o.navlog, 0)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	a, questions := newAsker("http://"+s.addr, w.keys[1]), w.questions()
	inTurns(ctx, a, questions, o.each, func(p string, _ *rand.Rand) string { return p }).print(os.Stdout, "cold, the newest block, one at a time")
	inTurns(ctx, a, questions, o.each, w.past).print(os.Stdout, "cold, a random past block, one at a time")
	return nil, nil
}

// cold asks with the cache off.
func (w *world) cold(ctx context.Context, o options) ([]bench.Bar, error) {
	s, err := w.serve(ctx, o.navlog, 0)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go w.live(ctx)
	a, questions := newAsker("http://"+s.addr, w.keys[1]), w.questions()
	pace(ctx, a, questions, 50, o.each/6, func(p string, _ *rand.Rand) string { return p }) // what was never read is read once
	newest := pace(ctx, a, questions, 50, o.each, func(p string, _ *rand.Rand) string { return p })
	past := pace(ctx, a, questions, 20, o.each, w.past)
	full := saturate(ctx, a, questions, 8, o.each/2)
	newest.print(os.Stdout, "cold, the newest block, 50 requests a second")
	past.print(os.Stdout, "cold, a random past block, 20 requests a second")
	full.print(os.Stdout, "cold, 8 clients as fast as they are answered")
	memory, err := s.memory()
	if err != nil {
		return nil, err
	}
	far := map[string]bool{}
	for _, q := range questions {
		far[q.name] = q.far
	}
	every := func(string) bool { return true }
	return []bench.Bar{
		{Name: "cold-newest-worst-p50-ms", Value: newest.worst(0.5, every), Bound: 10},
		{Name: "cold-newest-worst-p99-ms", Value: newest.worst(0.99, every), Bound: 50},
		{Name: "cold-past-worst-p50-ms", Value: past.worst(0.5, func(n string) bool { return !far[n] }), Bound: 10},
		{Name: "cold-past-worst-p99-ms", Value: past.worst(0.99, func(n string) bool { return !far[n] }), Bound: 50},
		{Name: "cold-past-users-worst-p99-ms", Value: past.worst(0.99, func(n string) bool { return far[n] }), Bound: 1500},
		{Name: "saturated-p99-ms", Value: full.worst(0.99, every), Bound: 100},
		{Name: "memory-mib", Value: memory, Bound: 256},
		{Name: "cold-failed", Value: float64(sum(newest.failed) + sum(past.failed) + sum(full.failed))},
	}, nil
}

func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// hot asks for what is in the cache, and a handler that does nothing for the
// same bytes, in turns.
func (w *world) hot(ctx context.Context, o options) ([]bench.Bar, error) {
	s, err := w.serve(ctx, o.navlog, 32<<20)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	const path = "/api/v1/users?sortBy=totalDeposited"
	body, err := fetch("http://" + s.addr + path)
	if err != nil {
		return nil, err
	}
	plain, err := w.bare(ctx, body)
	if err != nil {
		return nil, err
	}
	defer plain.stop()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go w.live(ctx)
	const rounds, connections = 3, 32
	var rates, bares []float64
	var took, bareTook []time.Duration
	for range rounds {
		rate, all, err := hammer(s.addr, []string{path}, connections, o.each/rounds/2)
		if err != nil {
			return nil, err
		}
		rates, took = append(rates, rate), append(took, all...)
		if rate, all, err = hammer(plain.addr, []string{"/"}, connections, o.each/rounds/2); err != nil {
			return nil, err
		}
		bares, bareTook = append(bares, rate), append(bareTook, all...)
	}
	slices.Sort(rates)
	slices.Sort(bares)
	fmt.Printf("\nhot, %d connections, %d bytes: %.0f requests/s (p50 %.2f ms, p99 %.2f ms); a bare handler %.0f requests/s (p50 %.2f ms, p99 %.2f ms)\n",
		connections, len(body), rates[rounds/2], quantile(took, 0.5), quantile(took, 0.99), bares[rounds/2], quantile(bareTook, 0.5), quantile(bareTook, 0.99))
	memory, err := s.memory()
	if err != nil {
		return nil, err
	}
	return []bench.Bar{
		{Name: "hot-ratio-to-bare", Value: rates[rounds/2] / bares[rounds/2], Bound: 0.5, Least: true},
		{Name: "hot-p99-ms", Value: quantile(took, 0.99), Bound: 5},
		{Name: "hot-memory-mib", Value: memory, Bound: 256},
	}, nil
}
