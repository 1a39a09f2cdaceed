package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/navlog/navlog/deploy/bench"
	"github.com/navlog/navlog/deploy/testkit/wait"
)

const (
	crowdSize   = 512 // concurrent clients; the program serves 16 and queues 256
	slowClients = 64
	// heldUpAtMost is how long another client is tried beside those that read nothing.
	heldUpAtMost = 20 * time.Second
)

// crowd simulates misbehaving clients: some never read their response, some leave, and there are more than there is
// room for.
func (w *world) crowd(ctx context.Context) ([]bench.Bar, error) {
	ctx, s, stop, err := w.serveLive(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	heldUp, err := w.slowReaders(ctx, s)
	if err != nil {
		return nil, err
	}
	bars := w.overload(ctx, s)
	memory, err := s.memory()
	return append(bars, heldUp, bench.Bar{Name: "crowd-memory-mib", Value: memory, Bound: mostMemory}), err
}

// slowReaders requests the longest response over connections that are never read, and over as many that are closed at
// once. It measures how long another client then waits for that response.
func (w *world) slowReaders(ctx context.Context, s *server) (bar bench.Bar, err error) {
	a := w.asker(s)
	const path = api + "/queues/deposits"
	if err := a.ask(ctx, question{}, path); err != nil {
		return bar, err
	}
	for i := range 2 * slowClients {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			return bar, err
		}
		if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
			return bar, err
		}
		if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: navlog\r\nConnection: close\r\n\r\n", path); err != nil {
			return bar, err
		}
		if i%2 == 0 {
			conn.Close()
		} else {
			defer conn.Close()
		}
	}
	start := time.Now()
	bounded, cancel := context.WithTimeout(ctx, heldUpAtMost)
	defer cancel()
	answered := func() (bool, error) { return a.ask(bounded, question{}, path) == nil, nil }
	_ = wait.Poll(bounded, 200*time.Millisecond, answered) // until the limit, which is a figure too
	heldUp := time.Since(start).Seconds()
	fmt.Printf("\n%d clients that read nothing, and %d that leave: another one is answered after %.1f s\n",
		slowClients, slowClients, heldUp)
	return bench.Bar{Name: "slow-readers-hold-up-s", Value: heldUp, Bound: 10}, ctx.Err()
}

// outcome counts the responses to a crowd.
type outcome struct {
	mu                        sync.Mutex
	served, refused, sickness int
	other                     map[string]int
}

// overload sends more uncached questions at once than there is room for, watches the health endpoints meanwhile, and
// then measures how long it takes until questions are answered normally.
func (w *world) overload(ctx context.Context, s *server) []bench.Bar {
	out := &outcome{other: map[string]int{}}
	questions := slices.DeleteFunc(w.questions(), func(q question) bool { return q.partner > 0 })
	end := time.Now().Add(w.Each / 4)
	var group sync.WaitGroup
	for i := range crowdSize {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 5))
			for time.Now().Before(end) && ctx.Err() == nil {
				out.add(getOnce(s.addr, questions[rng.IntN(len(questions))].path(rng)))
			}
		})
	}
	group.Go(func() {
		for now := range time.Tick(100 * time.Millisecond) {
			if now.After(end) || ctx.Err() != nil {
				return
			}
			for _, path := range []string{"/healthz", "/readyz"} {
				if status, _, err := getOnce(s.addr, path); err != nil || status != http.StatusOK {
					out.sickness++
				}
			}
		}
	})
	group.Wait()
	over, recovered := time.Now(), false
	for !recovered && time.Since(over) < 30*time.Second {
		start := time.Now()
		status, _, err := getOnce(s.addr, "/api/v1/users?page=2")
		recovered = err == nil && status == http.StatusOK && time.Since(start) < time.Second
	}
	recovery := time.Since(over).Seconds()
	others := sum(out.other)
	fmt.Printf("\n%d clients at once: %d answered, %d sent away with 503 and Retry-After, %d something else %v; "+
		"%d answers of health endpoints were not 200; normal again after %.2f s\n",
		crowdSize, out.served, out.refused, others, out.other, out.sickness, recovery)
	return []bench.Bar{
		{Name: "overload-refused", Value: float64(out.refused), Bound: 1, Least: true},
		{Name: "overload-answered", Value: float64(out.served), Bound: 1, Least: true},
		{Name: "overload-other-answers", Value: float64(others), Bound: 0},
		{Name: "overload-health-failed", Value: float64(out.sickness), Bound: 0},
		{Name: "overload-recovery-s", Value: recovery, Bound: 5},
	}
}

func (o *outcome) add(status int, retryAfter string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err != nil:
		o.other[rootCause(err).Error()]++
	case status == http.StatusOK || status == http.StatusNotFound:
		o.served++
	case status == http.StatusServiceUnavailable && retryAfter != "":
		o.refused++
	default:
		o.other[fmt.Sprint(status)]++
	}
}

// rootCause returns the reason of an error, without the path and the ports of a connection.
func rootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// once connects for each request, as different clients do.
var once = &http.Client{Timeout: 30 * time.Second,
	Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}

// getOnce sends a request over a new connection and reads the whole response.
func getOnce(addr, path string) (status int, retryAfter string, err error) {
	answer, err := once.Get("http://" + addr + path)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, answer.Header.Get("Retry-After"), err
}
