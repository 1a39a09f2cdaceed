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

	"github.com/navlog/navlog/ingest"
	"github.com/navlog/navlog/projections"
	"github.com/navlog/navlog/schemas/registry"
)

// screen is what is to be seen on a terminal after what was written to it.
func screen(written string) (lines []string) {
	for _, line := range strings.Split(written, "\n") {
		line = line[strings.LastIndex(line, eraseLine)+1:]
		lines = append(lines, strings.TrimPrefix(line, eraseLine[1:]))
	}
	return lines
}

func TestLogLinesStayAboveTheBar(t *testing.T) {
	var out bytes.Buffer
	c := &Console{out: &out, width: func() int { return 20 }}
	fmt.Fprintln(c, "before")
	c.Show("1 of 9")
	fmt.Fprintln(c, "while")
	c.Show("2 of 9, and much more than there is room for")
	fmt.Fprintln(c, "still")
	c.Show("")
	fmt.Fprintln(c, "after")
	if got, want := fmt.Sprint(screen(out.String())), fmt.Sprint([]string{"before", "while", "still", "after", ""}); got != want {
		t.Errorf("on the screen is %q, want %q", got, want)
	}
	if !strings.Contains(out.String(), eraseLine+"2 of 9, and much mo") || strings.Contains(out.String(), "much mor") {
		t.Errorf("the bar is not cut at the width: %q", out.String())
	}
}

// backfilling is an ingest that reads ten blocks at every look.
func backfilling() func() ingest.Status {
	var block uint64
	now := time.Unix(0, 0)
	return func() (st ingest.Status) {
		block, now = block+10, now.Add(time.Second)
		st.Time, st.Logs = now, 3*block
		if block <= 100 {
			eta := 10 - block/10
			st.ETASeconds = &eta
			st.Calls = []registry.MethodCalls{{Method: "eth_getLogs", Calls: block / 10, Bytes: 100, Units: 75 * block / 10}, {Method: "eth_call", Calls: 1, Bytes: 10}}
			st.Backfill = &registry.BackfillStatus{FromBlock: 1, Block: block, ToBlock: 100, Logs: 3 * block, BlocksPerSecond: 10, LogsPerSecond: 30}
		}
		return st
	}
}

// lockedBuffer may be written by one goroutine and read by another.
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
		width func() int
		want  string
	}{
		"on a terminal": {func() int { return 200 }, "backfill [######........................] 20.0%  block 20 of 100  10 blocks/s  30 logs/s  8s left  3 calls, 150 units"},
		"in a log":      {nil, "msg=backfilling done=20.0% block=20 of=100 logs=60 blocksPerSecond=10 logsPerSecond=30 left=8s calls=3 callsByMethod=\"eth_getLogs: 2, eth_call: 1\" answerBytes=110 units=150"},
	} {
		t.Run(name, func(t *testing.T) {
			out := new(lockedBuffer)
			c2 := &Console{out: out, width: c.width, every: time.Millisecond}
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
				t.Errorf("it shows %q, want %q", out.String(), c.want)
			}
			if last := screen(out.String()); last[len(last)-1] != "" {
				t.Errorf("%q is left on the screen", last[len(last)-1])
			}
		})
	}
	if c := New(io.Discard); c.width != nil || c.every != lineEvery {
		t.Error("what is no terminal is taken for one")
	}
}

func TestRebuildIsShown(t *testing.T) {
	half := projections.Progress{Generation: 3, Seq: 500, Left: 500, Speed: 100, ETA: 5 * time.Second}
	end := projections.Progress{Generation: 3, Seq: 1000, Speed: 100, AtEnd: true}
	var terminal, plain bytes.Buffer
	b := NewRebuild(&Console{out: &terminal, width: func() int { return 200 }})
	b.Show(projections.Progress{Generation: 3})
	b.Show(half)
	b.Say("a sentence")
	b.Show(end)
	b.Keep()
	for _, want := range []string{eraseLine + "[..............................]   0 %  generation 3  seq 0  0 records/s  ETA unknown",
		eraseLine + "[###############...............]  50 %  generation 3  seq 500  100 records/s  ETA 5s" + eraseLine + "a sentence\n",
		eraseLine + "[##############################] 100 %  generation 3  seq 1000  100 records/s  at the end of the log\n"} {
		if !strings.Contains(terminal.String(), want) {
			t.Errorf("a terminal shows %q, which lacks %q", terminal.String(), want)
		}
	}
	clock := time.Unix(1_700_000_000, 0)
	b = NewRebuild(New(&plain))
	b.now = func() time.Time { return clock }
	b.Show(half)
	b.Show(half) // too soon
	clock = clock.Add(lineEvery)
	b.Show(half)
	b.Show(end)
	b.Keep()
	line := "generation 3  seq 500  100 records/s  ETA 5s\n"
	if want := line + line + "generation 3  seq 1000  100 records/s  at the end of the log\n"; plain.String() != want {
		t.Errorf("a file gets %q, want %q", plain.String(), want)
	}
}
