package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/testkit/fleet"
)

// TestEnginesStopOneByOne stops one engine after the other. Each program names on /readyz every engine that it uses and
// that does not respond: which one, since when, and what to do. A program that needs the engine for its role is also
// not ready.
func TestEnginesStopOneByOne(t *testing.T) {
	t.Parallel()
	f := fleet.New(t, fleet.Options{Partners: 1, SlotsInEpoch: 1})
	f.Start("ingest", "project", "serve", "dispatch")
	until := func(holds func(*fleet.Program) error) {
		t.Helper()
		for _, p := range f.Programs {
			f.Until(func() error { return holds(p) })
		}
	}
	sentence := regexp.MustCompile(`^(.*) at \S+ has been failing since (\S+) \(.+\): check (\S+) and that .* up$`)
	began := time.Now() // an outage begins with the last response, which came before the engine was stopped
	// named returns the engines and settings that a program names as unreachable.
	named := func(p *fleet.Program) (engines []string, err error) {
		state, err := p.Readiness()
		for _, outage := range state.Unreachable {
			parts := sentence.FindStringSubmatch(outage)
			if parts == nil {
				return nil, fmt.Errorf("%s: an outage is described as %q", p.Name, outage)
			}
			if at, err := time.Parse(time.RFC3339, parts[2]); err != nil || at.Before(began.Truncate(time.Second)) ||
				at.After(time.Now()) {
				return nil, fmt.Errorf("%s: the outage began at another time: %q", p.Name, outage)
			}
			engines = append(engines, parts[1]+" "+parts[3])
		}
		slices.Sort(engines)
		return engines, err
	}
	f.Until(f.Ready)
	until(func(p *fleet.Program) error {
		if engines, err := named(p); err != nil || len(engines) > 0 {
			return fmt.Errorf("%s names %q: %w", p.Name, engines, err)
		}
		return nil
	})
	want := map[string][]string{}
	for _, c := range []struct {
		engine, setting string
		stop            func() error
		users, needers  []string // those that use the engine, and those whose role needs it
	}{
		{"ClickHouse", "clickhouse.addr", func() error { f.ClickHouse.Kill(); return nil }, []string{"project", "serve"},
			[]string{"project", "serve"}},
		{"Kafka", "kafka.brokers", f.Kafka.Close, []string{"ingest", "project", "dispatch"},
			[]string{"ingest", "project", "dispatch"}},
		{"PostgreSQL", "postgres.url", func() error { f.Postgres.Kill(); return nil },
			[]string{"ingest", "project", "serve", "dispatch"}, []string{"serve", "dispatch"}},
		{"the node", "chain.rpc", func() error { f.KillChain(); return nil }, []string{"ingest"}, []string{"ingest"}},
	} {
		if err := c.stop(); err != nil {
			t.Fatal(err)
		}
		if c.engine == "Kafka" { // ingest notices with the next block
			f.Steps(1)
		}
		for _, user := range c.users {
			want[user] = append(want[user], c.engine+" "+c.setting)
			slices.Sort(want[user])
		}
		until(func(p *fleet.Program) error {
			if engines, err := named(p); err != nil || !slices.Equal(engines, want[p.Name]) {
				return fmt.Errorf("without %s, %s names %q, want %q: %w", c.engine, p.Name, engines, want[p.Name], err)
			}
			if fault := p.Ready(); slices.Contains(c.needers, p.Name) &&
				(fault == nil || !strings.Contains(fault.Error(), c.engine+" at ")) {
				return fmt.Errorf("without %s, %s is not ready because %w", c.engine, p.Name, fault)
			}
			return nil
		})
		for name, p := range f.Programs {
			t.Logf("without %s, %s: %v", c.engine, name, p.Ready())
		}
	}
}
