package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/navlog/navlog/deploy/bench"
)

// times are the latencies of one kind of question.
type times struct {
	mu     sync.Mutex
	of     map[string][]time.Duration
	spent  map[string]time.Duration // CPU time of the engine for all questions of a kind, if measured
	failed map[string]int
	first  error // the first failure
}

func newTimes() *times {
	return &times{of: map[string][]time.Duration{}, spent: map[string]time.Duration{}, failed: map[string]int{}}
}

func (t *times) add(name string, took time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of[name] = append(t.of[name], took)
	if err != nil {
		t.failed[name]++
		if t.first == nil {
			t.first = err
		}
	}
}

// all returns the latencies of all kinds.
func (t *times) all() []time.Duration { return slices.Concat(slices.Collect(maps.Values(t.of))...) }

// answered returns how many requests did not fail.
func (t *times) answered() (n int) {
	for name, all := range t.of {
		n += len(all) - t.failed[name]
	}
	return n
}

func (t *times) print(title string) {
	fmt.Printf("\n%s\n%-36s %7s %9s %9s %9s %7s %7s\n", title, "question", "asked", "p50 ms", "p99 ms", "max ms", "cpu ms",
		"failed")
	for _, name := range slices.Sorted(maps.Keys(t.of)) {
		d, cpu := t.of[name], "-"
		if spent, measured := t.spent[name]; measured {
			cpu = fmt.Sprintf("%.1f", bench.Milliseconds(spent)/float64(len(d)))
		}
		fmt.Printf("%-36s %7d %9.1f %9.1f %9.1f %7s %7d\n", name, len(d), bench.Quantile(d, 0.5), bench.Quantile(d, 0.99),
			bench.Quantile(d, 1), cpu, t.failed[name])
	}
	if t.first != nil {
		fmt.Printf("the first that failed: %v\n", t.first)
	}
}

// asker sends requests to the API.
type asker struct {
	client *http.Client
	bases  []string // URLs of the instances, which get the requests in turn
	turn   atomic.Uint64
	keys   map[uint32]string // API key by partner
}

// asker returns a client of some instances.
func (w *world) asker(instances ...*server) *asker {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost, transport.DisableCompression = 256, true
	a := &asker{client: &http.Client{Transport: transport, Timeout: 30 * time.Second}, keys: w.keys}
	for _, s := range instances {
		a.bases = append(a.bases, "http://"+s.addr)
	}
	return a
}

func (a *asker) ask(ctx context.Context, q question, path string) error {
	base := a.bases[a.turn.Add(1)%uint64(len(a.bases))]
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
	if err != nil {
		return err
	}
	if q.partner > 0 {
		r.Header.Set("x-api-key", a.keys[q.partner])
	}
	resp, err := a.client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNotFound { // the user does not exist yet
		return fmt.Errorf("%s: %s", path, resp.Status)
	}
	return nil
}

// saturate keeps the clients busy: each sends its next request as soon as it has a response. choose returns, for the
// random numbers of a client, the function that chooses its next question.
func saturate(
	ctx context.Context, a *asker, clients int, for_ time.Duration, choose func(*rand.Rand) func() question,
) *times {
	t := newTimes()
	var group sync.WaitGroup
	end := time.Now().Add(for_)
	for c := range clients {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(c), 9))
			next := choose(rng)
			for time.Now().Before(end) && ctx.Err() == nil {
				q := next()
				path, start := q.path(rng), time.Now()
				err := a.ask(ctx, q, path)
				t.add(q.name, time.Since(start), err)
			}
		})
	}
	group.Wait()
	return t
}

// inTurns asks an instance all questions in turn, repeatedly, until the time is over.
func (w *world) inTurns(ctx context.Context, s *server, questions []question) (*times, error) {
	a, t, rng := w.asker(s), newTimes(), rand.New(rand.NewPCG(3, 9))
	for end := time.Now().Add(w.Each); time.Now().Before(end) && ctx.Err() == nil; {
		for _, q := range questions {
			path := q.path(rng)
			before, err := w.spent()
			if err != nil {
				return nil, err
			}
			start := time.Now()
			err = a.ask(ctx, q, path)
			t.add(q.name, time.Since(start), err)
			after, err := w.spent()
			if err != nil {
				return nil, err
			}
			t.spent[q.name] += after - before
		}
	}
	return t, ctx.Err()
}

// measureRate sends requests over the connections as fast as they are answered, with a minimal client, and returns the
// requests per second and the latencies.
func measureRate(addr, path string, connections int, for_ time.Duration) (float64, []time.Duration, error) {
	var mu sync.Mutex
	var all []time.Duration
	var faults []error
	var group sync.WaitGroup
	start := time.Now()
	for range connections {
		group.Go(func() {
			took, err := loop(addr, path, start.Add(for_))
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
			if err != nil {
				faults = append(faults, err)
			}
		})
	}
	group.Wait()
	return float64(len(all)) / time.Since(start).Seconds(), all, errors.Join(faults...)
}

func loop(addr, path string, end time.Time) ([]time.Duration, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	in := bufio.NewReaderSize(conn, 32<<10)
	request := []byte("GET " + path + " HTTP/1.1\r\nHost: navlog\r\n\r\n")
	var took []time.Duration
	for {
		start := time.Now()
		if start.After(end) {
			return took, nil
		}
		if _, err := conn.Write(request); err != nil {
			return took, err
		}
		if err := discardAnswer(in); err != nil {
			return took, err
		}
		took = append(took, time.Since(start))
	}
}

// discardAnswer reads and discards a response, which must have status 200 and a Content-Length.
func discardAnswer(in *bufio.Reader) error {
	length, first := -1, true
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if first && !strings.HasPrefix(string(line), "HTTP/1.1 200") {
			return fmt.Errorf("answered %q", line)
		}
		first = false
		if len(line) <= 2 {
			break
		}
		if name, value, ok := strings.Cut(string(line), ":"); ok && len(name) == len("Content-Length") &&
			strings.EqualFold(name, "Content-Length") {
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return err
			}
		}
	}
	if length < 0 {
		return errors.New("an answer has no Content-Length")
	}
	_, err := in.Discard(length)
	return err
}
