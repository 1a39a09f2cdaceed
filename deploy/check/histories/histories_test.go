// Package histories holds the whole read side to random histories of a chain (testkit/histories makes them): the log, the
// projector, the engines and the HTTP API, while the projector crashes at random places and readers ask all the time.
//
//	a history ──────▶ log (embedded Kafka) ─▶ project ──▶ door ──▶ ClickHouse ─▶ serve ◀─ readers
//	        │                                            shuts in the middle                │
//	        └─▶ the records that are live at a seq ─▶ oracle (deploy/testkit/oracle) ─▶ expected ─▶ compare
//
// Whatever an answer says it is about (X-Indexed-Seq, X-Indexed-Block, X-Generation), it has to be what the log up to that
// seq says of the chain up to that block. An answer that mixes two beliefs equals none of them.
//
// A history is made by its number alone: what the chain says, how the log is cut, when the door shuts and what is asked
// come from it. What is not made by it is in which order things happen that happen at the same time.
package histories_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/deploy/engines/enginetest"
)

var (
	plays = flag.Int("histories", 3, "how many random histories TestRandomHistories plays")
	seed  = flag.Uint64("seed", 0, "number of the first history; 0: by the clock")
	lanes = flag.Int("lanes", 4, "how many histories are played at the same time")
)

// all is what the histories came to.
var all struct {
	sync.Mutex
	played int
	tally
}

func TestMain(m *testing.M) {
	code := m.Run()
	if all.played > 0 {
		fmt.Printf("histories=%d %s\n", all.played, all.tally)
	}
	os.Exit(code)
}

// TestRandomHistories plays random histories and compares what the API answers, while the log grows and when it rests, about
// the newest state and the past, with what the log says.
func TestRandomHistories(t *testing.T) {
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	free := make(chan *lane, *lanes)
	brokers := enginetest.Kafka(t)
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
	t.Logf("%d histories, %.0f a minute: %s", all.played, float64(all.played)/time.Since(began).Minutes(), all.tally)
	for what, n := range map[string]int{"no projector crashed": all.crashes, "nobody asked while units were written": all.asked, "no number was explained": all.explained,
		"no projector died at a reorganisation": all.inside, "no vault joined late": all.joined} {
		if n == 0 && *plays >= 50 {
			t.Errorf("%s: the test is less than it should be", what)
		}
	}
}

// patience is how long one history may take.
const patience = 3 * time.Minute

// play plays one history and fails the test where an answer differs.
func play(t *testing.T, l *lane, number uint64) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	h := newHistory(l, number)
	err := h.play(ctx, number)
	all.Lock()
	all.played++
	all.tally.add(h.tally)
	if all.played%100 == 0 {
		fmt.Printf("%s  %d of %d histories: %s\n", time.Now().UTC().Format("15:04:05"), all.played, *plays, all.tally)
	}
	all.Unlock()
	if h.differing > 0 || err != nil {
		report := append(h.lines, h.said.lines()...)
		// What is wrong comes last, where it is seen of a report that was cut.
		t.Errorf("\n%s\nhistory %d: %d of %d answers differ, error: %v\nagain: make property HISTORIES=1 SEED=%d", strings.Join(report, "\n"), number, h.differing, h.answers, err, number)
	}
}
