package console

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/navlog/navlog/schemas/registry"
)

// appears waits until all the words were written, in this order.
func appears(t *testing.T, out *lockedBuffer, words ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		rest, all := out.String(), true
		for _, word := range words {
			var found bool
			_, rest, found = strings.Cut(rest, word)
			all = all && found
		}
		if all {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%q does not have %q in this order", out.String(), words)
		case <-tick.C:
		}
	}
}

// Log lines are written at once, even while there is a progress line. The progress line is cut off to fit, and removed
// when it is no longer needed.
func TestLogLinesStayAboveTheBar(t *testing.T) {
	out := new(lockedBuffer)
	c := &Console{out: out, terminal: true}
	fmt.Fprintln(c, "before")
	c.show(0.5, "1 of 2")
	appears(t, out, "before\n", "[#########.........] 1 of 2")
	fmt.Fprintln(c, "while")
	c.show(1, "2 of 2, and much more than there is room for, as in a terminal of eighty columns: not this")
	appears(t, out, "while\n", "[##################] 2 of 2, and much more")
	c.end()
	c.end() // nothing is left to remove
	fmt.Fprintln(c, "after")
	if text := out.String(); !strings.HasSuffix(text, "after\n") || strings.Contains(text, "not this") {
		t.Errorf("written: %q", text)
	}
}

// backfilling is an ingest that reads ten more blocks at every call.
func backfilling() func() Backfill {
	var block uint64
	now := time.Unix(0, 0)
	return func() (st Backfill) {
		block, now = block+10, now.Add(time.Second)
		st.Time, st.Logs = now, 3*block
		if block <= 100 {
			eta := 10 - block/10
			st.SecondsLeft = &eta
			st.Calls = []registry.MethodCalls{{Method: "eth_getLogs", Calls: block / 10, Bytes: 100, Units: 75 * block / 10},
				{Method: "eth_call", Calls: 1, Bytes: 10}}
			st.Of = &registry.BackfillStatus{FromBlock: 1, Block: block, ToBlock: 100, Logs: 3 * block,
				BlocksPerSecond: 10, LogsPerSecond: 30}
		}
		return st
	}
}

// lockedBuffer can be written by one goroutine and read by another.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestBackfillIsShown(t *testing.T) {
	for name, c := range map[string]struct {
		terminal bool
		want     string
	}{
		"on a terminal": {true, "] backfill "},
		"in a log": {false, "msg=backfilling done=20.0% block=20 of=100 logs=60 blocksPerSecond=10 logsPerSecond=30 " +
			"left=8s calls=3 callsByMethod=\"eth_getLogs: 2, eth_call: 1\" answerBytes=110 units=150"},
	} {
		t.Run(name, func(t *testing.T) {
			out := new(lockedBuffer)
			c2 := &Console{out: out, terminal: c.terminal, every: time.Millisecond}
			log := slog.New(slog.NewTextHandler(c2, nil))
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			done := make(chan error, 1)
			go func() { done <- c2.Watch(ctx, backfilling(), log) }()
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for !strings.Contains(out.String(), "backfill done") {
				select {
				case <-ctx.Done():
					t.Fatalf("the backfill does not end: %q", out.String())
				case <-tick.C:
				}
			}
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if !strings.Contains(out.String(), c.want) || !strings.Contains(out.String(), "took=10s") {
				t.Errorf("the console shows %q, want %q", out.String(), c.want)
			}
		})
	}
	if c := New(io.Discard); c.terminal || c.every != lineEvery {
		t.Error("a file that is not a terminal is taken for one")
	}
}

// The text to the right of a backfill's bar.
func TestBackfillText(t *testing.T) {
	eta := uint64(8)
	b := &registry.BackfillStatus{FromBlock: 1, Block: 20, ToBlock: 100, Logs: 60, BlocksPerSecond: 10, LogsPerSecond: 30}
	calls := []registry.MethodCalls{{Method: "eth_getLogs", Calls: 2, Units: 150}, {Method: "eth_call", Calls: 1}}
	if got, want := BackfillText(b, &eta)+", "+Spent(calls),
		"20.0%: block 20 of 100, 10 blocks/s, 30 logs/s, 8s left, 3 calls, 150 units"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
