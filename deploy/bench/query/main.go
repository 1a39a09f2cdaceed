// Command query measures the HTTP API on a data set of ten million events and a million users, with the difficult
// properties that package workload describes, while the chain grows by a unit per second and is reorganised.
//
//	log of a made-up chain ─▶ Kafka ─▶ projections ─▶ ClickHouse ◀─ navlog serve ◀─ load
//
// The data set is created once and kept in build/bench-query.
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/navlog/navlog/deploy/bench"
)

// parts of the benchmark, in the order in which they run.
var parts = []string{
	"alone", // words: "alone": the name of a part
	"mix", "cold", "people", "stream", "start", "hot", "crowd", "export",
}

// options are the command-line options.
type options struct {
	Events    int           `default:"10000000" help:"Events of the chain."`
	Dir       string        `type:"path" default:"build/bench-query" help:"Folder in which the data set is kept."`
	Navlog    string        `type:"existingfile" default:"bin/navlog" help:"The binary to measure."`
	Each      time.Duration `default:"60s" help:"Time of each measurement."`
	Instances int           `default:"1" help:"Instances of serve that share the requests of the part mix."`
	Load      bool          `help:"Create the data set and exit."`
	Only      []string      `placeholder:"PART" enum:"${parts}" default:"${parts}" help:"Run these parts only: ${enum}."`

	// Set when the program starts itself as the handler to compare with.
	Bare   string `hidden:"" help:"Serve this file and nothing else."`
	Listen string `hidden:"" help:"Where to serve it."`
}

// users returns the number of users that the events name.
func (o options) users() int { return o.Events / 10 }

func main() {
	var o options
	bench.Main("bench-query", "Measure navlog's HTTP API.", &o, parts,
		func(ctx context.Context) error { return o.run(ctx) })
}

func (o options) run(ctx context.Context) (err error) {
	if o.Bare != "" {
		return runBare(ctx, o.Bare, o.Listen)
	}
	if o.Instances < 1 {
		return fmt.Errorf("--instances is %d and must be 1 or more", o.Instances)
	}
	w, err := open(ctx, o)
	if w != nil {
		defer func() { err = errors.Join(err, w.close()) }()
	}
	if err != nil || o.Load {
		return err
	}
	measures := map[string]bench.Part{
		"alone": w.single, // words: "alone": the name of a part
		"mix":   w.mix, "cold": w.cold, "people": w.people,
		"stream": w.stream, "start": w.start, "hot": w.hot, "crowd": w.crowd, "export": w.export,
	}
	for part, measure := range measures {
		measures[part] = w.part(measure)
	}
	return bench.Run(ctx, parts, o.Only, measures)
}

// part returns a part that yields no figure if the chain or the projector has ended in it, because queries on
// unchanging data are faster.
func (w *world) part(measure bench.Part) bench.Part {
	return func(ctx context.Context) ([]bench.Bar, error) {
		bars, err := measure(ctx)
		return bars, errors.Join(err, w.ended())
	}
}

// single sends one request at a time, with the cache off, to measure the cost of each.
func (w *world) single(ctx context.Context) ([]bench.Bar, error) {
	s, err := w.serve(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	newest, err := w.inTurns(ctx, s, w.questions())
	if err != nil {
		return nil, err
	}
	newest.print("cold, one at a time, the newest block")
	past, err := w.inTurns(ctx, s, w.past(w.questions()))
	if err != nil {
		return nil, err
	}
	past.print("cold, one at a time, random past blocks")
	return nil, nil
}

// spent returns the CPU time that the engine has used for queries and inserts so far. The call itself adds half a
// millisecond.
func (w *world) spent() (time.Duration, error) {
	var micros uint64
	err := w.Conn.QueryRow(context.Background(),
		"SELECT value FROM system.events WHERE event = 'OSCPUVirtualTimeMicroseconds'").Scan(&micros)
	return time.Duration(micros) * time.Microsecond, err
}

// cold measures how many questions of all kinds, equally often, 8 clients get answered with the cache off.
func (w *world) cold(ctx context.Context) ([]bench.Bar, error) {
	ctx, s, stop, err := w.serveLive(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	a, questions := w.asker(s), w.questions()
	equally := func(rng *rand.Rand) func() question {
		return func() question { return questions[rng.IntN(len(questions))] }
	}
	saturate(ctx, a, 8, w.Each/6, equally) // warm up: read everything once
	t := saturate(ctx, a, 8, w.Each, equally)
	t.print("cold, 8 clients as fast as they are answered")
	memory, err := s.memory()
	if err != nil {
		return nil, err
	}
	return []bench.Bar{
		{Name: "cold-answers-per-second", Value: float64(t.answered()) / w.Each.Seconds(), Bound: 100, Least: true},
		{Name: "cold-p99-ms", Value: bench.Quantile(t.all(), 0.99), Bound: 300},
		{Name: "memory-mib", Value: memory, Bound: mostMemory},
		{Name: "cold-failed", Value: float64(sum(t.failed))},
	}, nil
}

// mostMemory is the maximum resident memory of navlog serve in MiB, whatever the questions.
const mostMemory = 128

func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// hot requests cached responses, alternating with a handler that only writes the same bytes.
func (w *world) hot(ctx context.Context) ([]bench.Bar, error) {
	s, err := w.serve(ctx, mixCacheBytes)
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
		rate, all, err := measureRate(s.addr, path, connections, w.Each/rounds/2)
		if err != nil {
			return nil, err
		}
		rates, took = append(rates, rate), append(took, all...)
		if rate, all, err = measureRate(plain.addr, "/", connections, w.Each/rounds/2); err != nil {
			return nil, err
		}
		bares, bareTook = append(bares, rate), append(bareTook, all...)
	}
	slices.Sort(rates)
	slices.Sort(bares)
	fmt.Printf("\nhot, %d connections, %d bytes: %.0f requests/s (p50 %.2f ms, p99 %.2f ms); a bare handler %.0f "+
		"requests/s (p50 %.2f ms, p99 %.2f ms)\n",
		connections, len(body), rates[rounds/2], bench.Quantile(took, 0.5), bench.Quantile(took, 0.99), bares[rounds/2],
		bench.Quantile(bareTook, 0.5), bench.Quantile(bareTook, 0.99))
	memory, err := s.memory()
	if err != nil {
		return nil, err
	}
	return []bench.Bar{
		{Name: "hot-ratio-to-bare", Value: rates[rounds/2] / bares[rounds/2], Bound: 0.5, Least: true},
		{Name: "hot-p99-to-bare", Value: bench.Quantile(took, 0.99) / bench.Quantile(bareTook, 0.99), Bound: 1.6},
		{Name: "hot-memory-mib", Value: memory, Bound: mostMemory},
	}, nil
}
