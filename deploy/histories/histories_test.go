package histories_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/deploy/local/localtest"
)

var (
	plays = flag.Int("histories", 6, "how many random histories TestRandomHistories plays")
	seed  = flag.Uint64("seed", 0, "number of the first history; 0: by the clock")
	lanes = flag.Int("lanes", 4, "how many histories are played at the same time")
)

// What all histories came to.
var played, answers, differing, crashes, unavailable atomic.Int64

func TestMain(m *testing.M) {
	code := m.Run()
	if played.Load() > 0 {
		fmt.Printf("histories=%d answers=%d differing=%d\n", played.Load(), answers.Load(), differing.Load())
	}
	os.Exit(code)
}

// TestRandomHistories plays random histories and compares what the API answers with what the fold of the log says, at the
// newest state, while it moves, and in the past.
func TestRandomHistories(t *testing.T) {
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	free := make(chan *lane, *lanes)
	brokers := localtest.Kafka(t)
	for n := range min(*lanes, *plays) {
		free <- newLane(t, n, brokers)
	}
	began := time.Now()
	var group errgroup.Group
	group.SetLimit(*lanes)
	for number := first; number < first+uint64(*plays) && t.Context().Err() == nil; number++ {
		group.Go(func() error {
			l := <-free
			defer func() { free <- l }()
			play(t, l, number)
			return nil
		})
	}
	_ = group.Wait() // a history that fails says so itself
	t.Logf("%d histories, %d answers, %d crashes, %d times unavailable, %.0f histories a minute", played.Load(), answers.Load(), crashes.Load(), unavailable.Load(), float64(played.Load())/time.Since(began).Minutes())
	if crashes.Load() == 0 && *plays >= 6 {
		t.Error("no projector crashed: the test is less than it should be")
	}
}

// patience is how long one history may take.
const patience = 3 * time.Minute

// play plays one history and fails the test where an answer differs.
func play(t *testing.T, l *lane, number uint64) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	h := newHistory(l, number)
	err := h.play(ctx)
	if n := played.Add(1); n%100 == 0 {
		fmt.Printf("%s  %d of %d histories\n", time.Now().UTC().Format("15:04:05"), n, *plays)
	}
	answers.Add(int64(h.answers))
	differing.Add(int64(h.differing))
	crashes.Add(int64(h.crashes))
	unavailable.Add(int64(h.unavailable))
	if h.differing > 0 || err != nil {
		report := append(h.lines, h.said.lines()...)
		// What is wrong comes last, where it is seen of a report that was cut.
		t.Errorf("\n%s\nhistory %d: %d of %d answers differ, error: %v\nagain: make property HISTORIES=1 SEED=%d", strings.Join(report, "\n"), number, h.differing, h.answers, err, number)
	}
}
