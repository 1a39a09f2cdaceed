package dispatch

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/testkit/partners"
	tlsreceiver "github.com/navlog/navlog/deploy/testkit/receiver"
	"github.com/navlog/navlog/deploy/testkit/stack"
)

var (
	seeds  = flag.Int("seeds", 2, "how many seeds are tried")
	first  = flag.Uint64("first", 1, "the first seed; the others follow it")
	events = flag.Int("events", 300, "events of each seed")
)

// `make chaos-dispatch` tries many more.
func TestSeeds(t *testing.T) {
	if testing.Short() {
		t.Skip("a seed takes half a minute")
	}
	t.Parallel() // beside the planted faults: all of them mostly wait
	if *seeds < 1 {
		t.Fatalf("-seeds is %d and must be 1 or more", *seeds)
	}
	if least := 2 * partnersOfSeed; *events < least {
		t.Fatalf("-events is %d and must be %d or more", *events, least)
	}
	navlog, err := stack.Build("navlog")
	if err != nil {
		t.Fatal(err)
	}
	run := chaos{navlog: navlog, seeds: *seeds, first: *first, events: *events, settleWithin: time.Minute, log: t.Logf}
	data, err := filepath.Abs("../../../../build/chaos-dispatch") // the logs of a seed that fails stay there
	if err != nil {
		t.Fatal(err)
	}
	if err := run.run(t.Context(), data); err != nil {
		t.Error(err)
	}
}

// ended returns a run whose first dispatcher, a script, has exited and whose second one runs. If the first is started
// again, it keeps running.
func ended(t *testing.T, script string) *run {
	t.Helper()
	dir := t.TempDir()
	// The command that is started is `sh dispatch`, in this folder.
	if err := os.WriteFile(filepath.Join(dir, "dispatch"), []byte("[ -e again ] && exec sleep 600\ntouch again\n"+script),
		0o600); err != nil {
		t.Fatal(err)
	}
	r := &run{
		chaos:  &chaos{navlog: "sh", world: &partners.World{Dir: dir}, receiver: &receiver{Server: &tlsreceiver.Server{}}},
		random: rand.New(rand.NewPCG(1, 0)),
	}
	t.Cleanup(func() {
		for _, d := range r.dispatchers {
			if d != nil {
				d.Kill()
			}
		}
	})
	if err := r.start(0); err != nil {
		t.Fatal(err)
	}
	<-r.dispatchers[0].Ended()
	if err := r.start(1); err != nil {
		t.Fatal(err)
	}
	return r
}

// Whatever fault comes next, it does not hide that a dispatcher had exited by itself.
func TestFaultAfterAnExit(t *testing.T) {
	for seed := range uint64(20) {
		r := ended(t, "echo 'panic: assignment to entry in nil map'; exit 2")
		r.random = rand.New(rand.NewPCG(seed, 0))
		if n := rand.New(rand.NewPCG(seed, 0)).IntN(100); n >= 40 && n < 80 {
			continue // needs PostgreSQL
		}
		err := r.injectFault(t.Context())
		if err == nil || !strings.Contains(err.Error(), "exit status 2") || !strings.Contains(err.Error(), "nil map") {
			t.Errorf("seed %d: a dispatcher that ended is %v", seed, err)
		}
	}
}

// Only a dispatcher that started while PostgreSQL was down is restarted.
func TestAttend(t *testing.T) {
	const unreachable = "echo 'navlog: reach PostgreSQL at 127.0.0.1:1: connection refused'; exit 4"
	for what, c := range map[string]struct {
		script string
		back   func(begun time.Time) time.Time
		want   string // expected error; "": none
	}{
		"began without PostgreSQL": {unreachable, after, ""},
		"lost it before it had begun": {"echo 'navlog: read the version of the tables in PostgreSQL: EOF'; exit 1",
			after, ""},
		"began when it was back":       {unreachable, before, "exit status 4"},
		"PostgreSQL was not killed":    {unreachable, never, "exit status 4"},
		"a panic while there was none": {"echo 'panic: no rows'; exit 2", after, "panic: no rows"},
		"an end of one that had begun": {"echo 'navlog: dispatch: PostgreSQL is gone'; exit 1", after,
			"PostgreSQL is gone"},
		"a graceful end":                 {"exit 0", after, "exit status 0"},
		"a panic after it has missed it": {"echo 'navlog: reach PostgreSQL'; exit 2", after, "exit status 2"},
		"killed by another program":      {"kill -KILL $$", after, "signal: killed"},
	} {
		r := ended(t, c.script)
		r.back = c.back(r.begun[0])
		err := r.restartExited()
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", what, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", what, err)
		} else if err := r.restartExited(); err != nil {
			t.Errorf("%s, and it was not started again: %v", what, err)
		}
	}
}

func after(begun time.Time) time.Time  { return begun.Add(time.Second) }
func before(begun time.Time) time.Time { return begun.Add(-time.Second) }
func never(time.Time) time.Time        { return time.Time{} }
