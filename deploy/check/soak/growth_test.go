package soak

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/navlog/navlog/deploy/testkit/fleet"
	"github.com/navlog/navlog/deploy/testkit/stack"
)

// A sample is what was read of all processes at one time.
type sample struct {
	block  uint64 // mined so far
	values map[series]float64
}

// A series is one value of a program or an engine over the run.
type series struct{ of, what string }

// limits are how much each value may grow between the quarters that are compared, half a run apart. A leak of one for
// each block, unit or reorganisation adds at least 36 in that time, and one for each rebuild adds rebuildsADay/2 = 6.
var limits = map[string]float64{
	// Pools keep a few connections and their goroutines more or less, as their users happen to coincide.
	"goroutines": 4, "connections": 4,
	// Nothing that is not a socket is opened after the start, except while the process reads a file for a moment.
	"files": 1,
	// Memory that is in use after a garbage collection. It varies with what is being processed in that moment.
	"live heap, MiB": 3,
	// The process also has garbage and free memory that is not returned yet; its size follows the largest heap so far.
	"resident, MiB": 24,
}

// limitOf returns the limit of a series: "connections to Kafka" has that of connections.
func limitOf(what string) float64 {
	kind, _, _ := strings.Cut(what, " to ")
	limit, ok := limits[kind]
	if !ok {
		panic("there is no limit for " + what)
	}
	return limit
}

// samplesNeeded in each quarter, which has three rebuilds.
const samplesNeeded = 10

// judge compares each series of the last quarter of the blocks with the second quarter: the first is for warming up. It
// compares lower quartiles. Work that is in progress only adds to a value, for at most a part of the time, and a leak
// adds to all values after it.
func judge(samples []sample, blocks uint64) (table string, faults []string) {
	quarters := func(of series) (early, late []float64) {
		for _, s := range samples {
			value, ok := s.values[of]
			switch quarter := 4 * s.block / blocks; {
			case !ok:
			case quarter == 1:
				early = append(early, value)
			case quarter >= 3:
				late = append(late, value)
			}
		}
		return early, late
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "of\tvalue\tsecond quarter\tlast quarter\tmay grow by\tsamples")
	all := map[series]bool{}
	for _, s := range samples {
		for of := range s.values {
			all[of] = true
		}
	}
	for _, of := range slices.SortedFunc(maps.Keys(all), func(a, b series) int {
		return strings.Compare(a.of+"\n"+a.what, b.of+"\n"+b.what)
	}) {
		early, late := quarters(of)
		if len(early) < samplesNeeded || len(late) < samplesNeeded {
			faults = append(faults, fmt.Sprintf("%s, %s: %d and %d samples are too few to compare, want %d",
				of.of, of.what, len(early), len(late), samplesNeeded))
			continue
		}
		before, after, limit := lowerQuartile(early), lowerQuartile(late), limitOf(of.what)
		fmt.Fprintf(w, "%s\t%s\t%.4g\t%.4g\t%g\t%d, %d\n", of.of, of.what, before, after, limit, len(early), len(late))
		if after > before+limit {
			faults = append(faults, fmt.Sprintf("%s: %s grew from %.4g to %.4g, and may grow by %g", of.of, of.what, before,
				after, limit))
		}
	}
	if len(all) == 0 {
		faults = append(faults, "there are no samples")
	}
	_ = w.Flush() // to memory
	return text.String(), faults
}

func lowerQuartile(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/4]
}

// A sampler reads all processes twice a second, while there has been only the live generation for a while: project has
// the connections of each generation.
type sampler struct {
	*system
	mined   atomic.Uint64     // blocks
	engines map[uint16]string // by port
	samples []sample
	taken   atomic.Int64
}

const (
	samplePause = 500 * time.Millisecond
	// settled is how long there must have been one generation: project and serve notice its end within two seconds.
	settled = 3 * time.Second
)

func newSampler(s *system) *sampler {
	sampler := &sampler{system: s, engines: map[uint16]string{}}
	database, err := url.Parse(s.Postgres.URL)
	must(s.t, err)
	node, err := url.Parse(s.URL)
	must(s.t, err)
	for engine, address := range map[string]string{
		"Kafka": s.Kafka.Addr, "ClickHouse": s.ClickHouse.Addr, "PostgreSQL": database.Host, "the node": node.Host,
	} {
		_, port, err := net.SplitHostPort(address)
		must(s.t, err)
		n, err := strconv.ParseUint(port, 10, 16)
		must(s.t, err)
		sampler.engines[uint16(n)] = engine
	}
	return sampler
}

func (s *sampler) start(ctx context.Context, fail func(error)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(samplePause)
		defer tick.Stop()
		several := time.Now()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			err := s.take(ctx, &several)
			if err != nil && ctx.Err() == nil {
				fail(fmt.Errorf("take a sample: %w", err))
				return
			}
		}
	}()
	return func() { cancel(); <-done }
}

// take takes a sample unless there were several generations a short time ago.
func (s *sampler) take(ctx context.Context, several *time.Time) error {
	var generations int
	if err := s.Pool.QueryRow(ctx,
		"SELECT count(*) FROM generation WHERE state <> 'dropped'").Scan(&generations); err != nil {
		return err
	}
	if generations != 1 {
		*several = time.Now()
	}
	if time.Since(*several) < settled {
		return nil
	}
	values := map[series]float64{}
	for _, p := range s.Programs {
		if err := s.read(p, values); err != nil {
			return err
		}
	}
	if err := s.readEngines(ctx, values); err != nil {
		return err
	}
	s.samples = append(s.samples, sample{s.mined.Load(), values})
	s.taken.Add(1)
	return nil
}

func (s *sampler) read(p *fleet.Program, values map[series]float64) error {
	metrics, err := p.Metrics()
	if err != nil {
		return err
	}
	open, err := stack.Open(p.Pid)
	if err != nil {
		return err
	}
	resident, err := stack.Resident(p.Pid)
	if err != nil {
		return err
	}
	const mib = 1 << 20
	for _, name := range []string{"go_goroutines", "go_memstats_next_gc_bytes", "go_gc_gogc_percent"} {
		if _, ok := metrics[name]; !ok {
			return fmt.Errorf("%s exports no %s", p.Name, name)
		}
	}
	values[series{p.Name, "goroutines"}] = metrics["go_goroutines"]
	// The next collection begins when the heap has grown by GOGC percent since the last one.
	values[series{p.Name,
		"live heap, MiB"}] = metrics["go_memstats_next_gc_bytes"] / (1 + metrics["go_gc_gogc_percent"]/100) / mib
	values[series{p.Name, "resident, MiB"}] = float64(resident) / mib
	values[series{p.Name, "files"}] = float64(open.Files)
	others := open.Sockets
	for port, engine := range s.engines {
		values[series{p.Name, "connections to " + engine}] = float64(open.To[port])
		others -= open.To[port]
	}
	values[series{p.Name, "connections to others"}] = float64(others)
	return nil
}

// readEngines counts the sessions at the engines, those of this process and of commands included.
func (s *sampler) readEngines(ctx context.Context, values map[series]float64) error {
	var sessions int64
	if err := s.Pool.QueryRow(ctx,
		"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()").Scan(&sessions); err != nil {
		return err
	}
	values[series{"PostgreSQL", "connections"}] = float64(sessions)
	if err := s.Conn.QueryRow(ctx,
		"SELECT value FROM system.metrics WHERE metric = 'TCPConnection'").Scan(&sessions); err != nil {
		return err
	}
	values[series{"ClickHouse", "connections"}] = float64(sessions)
	return nil
}

// TestJudge: a leak fails, however small; a burst, a value that falls, and one that grows only at first do not.
func TestJudge(t *testing.T) {
	const blocks = 7200
	run := func(what string, value func(block uint64) float64) []string {
		var samples []sample
		for block := uint64(0); block <= blocks; block += 30 {
			samples = append(samples, sample{block, map[series]float64{{"project", what}: value(block)}})
		}
		_, faults := judge(samples, blocks)
		return faults
	}
	rebuilds := func(block uint64) float64 { return float64(block / (day / rebuildsADay)) }
	for name, c := range map[string]struct {
		what  string
		value func(uint64) float64
		fails bool
	}{
		"constant":                 {"goroutines", func(uint64) float64 { return 90 }, false},
		"one goroutine a block":    {"goroutines", func(b uint64) float64 { return 90 + float64(b) }, true},
		"one goroutine a rebuild":  {"goroutines", func(b uint64) float64 { return 90 + rebuilds(b) }, true},
		"one connection a rebuild": {"connections to Kafka", func(b uint64) float64 { return 4 + rebuilds(b) }, true},
		"one file a rebuild":       {"files", func(b uint64) float64 { return 7 + rebuilds(b) }, true},
		"2 kB a block":             {"live heap, MiB", func(b uint64) float64 { return 5 + float64(b)*2/1024 }, true},
		"grows until the first day": {"goroutines", func(b uint64) float64 { return 90 + float64(min(b, blocks/4)) },
			false},
		"falls": {"goroutines", func(b uint64) float64 { return 9000 - float64(b) }, false},
		"bursts half of the late time": {"goroutines",
			func(b uint64) float64 { return 90 + 50*float64(b/30%2)*float64(b/(blocks/2)) }, false},
	} {
		if faults := run(c.what, c.value); (len(faults) > 0) != c.fails {
			t.Errorf("%s: %q, want a fault: %v", name, faults, c.fails)
		}
	}
	if _, faults := judge(nil, blocks); len(faults) == 0 {
		t.Error("a run without samples succeeds")
	}
	few := []sample{{blocks / 4, map[series]float64{{"project", "files"}: 7}},
		{blocks, map[series]float64{{"project", "files"}: 7}}}
	if _, faults := judge(few, blocks); len(faults) != 1 {
		t.Errorf("a run with a sample in each quarter: %q", faults)
	}
}
