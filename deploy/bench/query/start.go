package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/navlog/navlog/deploy/bench"
)

// startRounds is how many times all questions are asked after a start.
const startRounds = 30

// start measures how long after its start the program answers questions about past blocks at full speed. All questions
// are asked repeatedly from the moment it is ready. Full speed is the median of the last third of the rounds; a round
// that takes 1.5 times as long is not at full speed.
func (w *world) start(ctx context.Context) ([]bench.Bar, error) {
	s, err := w.serve(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	ready := time.Since(s.began)
	questions := slices.DeleteFunc(w.past(w.questions()), func(q question) bool { return q.byTotals })
	a, rng := w.asker(s), rand.New(rand.NewPCG(5, 5))
	var began, medians []time.Duration
	for range startRounds {
		began = append(began, time.Since(s.began))
		var took []time.Duration
		for _, q := range questions {
			path, since := q.path(rng), time.Now()
			if err := a.ask(ctx, q, path); err != nil {
				return nil, fmt.Errorf("after a start: %w", err)
			}
			took = append(took, time.Since(since))
		}
		slices.Sort(took)
		medians = append(medians, took[len(took)/2])
	}
	full := slices.Sorted(slices.Values(medians[startRounds*2/3:]))[startRounds/6]
	first := slices.IndexFunc(medians, func(d time.Duration) bool { return 2*d <= 3*full })
	fmt.Printf("\nafter a start: ready after %.2f s; the median question about a past block takes %.1f ms in the first "+
		"round, %.1f ms at full speed, which is there after %.2f s\n",
		ready.Seconds(), bench.Milliseconds(medians[0]), bench.Milliseconds(full), began[first].Seconds())
	return []bench.Bar{{Name: "start-to-full-speed-at-past-blocks-s", Value: began[first].Seconds(), Bound: 1}}, nil
}
