package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/navlog/navlog/deploy/testkit/partners"
	tlsreceiver "github.com/navlog/navlog/deploy/testkit/receiver"
	"github.com/navlog/navlog/deploy/testkit/wait"
)

// receiver is the HTTP server of all partners. /live/ responds with 204 if body and signature are correct; /dead/ never
// responds.
type receiver struct {
	*tlsreceiver.Server
	world   *partners.World
	closing chan struct{}

	mu       sync.Mutex
	expected map[uuid.UUID]*expectation
	seen     arrivals
	fault    error
	now      int // POSTs in the handler
}

// arrivals is what a receiver has seen of the expected events.
type arrivals struct {
	n           int // events, each counted once
	first, last time.Time
	most        int // POSTs in the handler at a time
}

// expectation is an expected event and, once it has arrived, its latency.
type expectation struct {
	body     []byte
	appended time.Time
	took     time.Duration // 0 until it has arrived
}

func startReceiver(dir string, world *partners.World) (_ *receiver, err error) {
	r := &receiver{world: world, closing: make(chan struct{}), expected: map[uuid.UUID]*expectation{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /live/{partner}", r.live)
	mux.HandleFunc("POST /dead/{partner}", r.dead)
	r.Server, err = tlsreceiver.Serve(dir, mux)
	return r, err
}

func (r *receiver) close() {
	close(r.closing)
	r.Close()
}

func (r *receiver) url(partner int64, dead bool) string {
	kind := "live"
	if dead {
		kind = "dead"
	}
	return fmt.Sprintf("https://%s/%s/%d", r.Address, kind, partner)
}

func (r *receiver) dead(_ http.ResponseWriter, request *http.Request) {
	_, _ = io.Copy(io.Discard, request.Body) // otherwise the server does not notice that the connection ends
	select {
	case <-request.Context().Done():
	case <-r.closing:
	}
}

func (r *receiver) live(w http.ResponseWriter, request *http.Request) {
	at := time.Now()
	r.enter(1)
	defer r.enter(-1)
	body, err := io.ReadAll(request.Body)
	if err == nil {
		err = r.take(at, request, body)
	}
	if err != nil {
		r.mu.Lock()
		r.fault = err
		r.mu.Unlock()
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (r *receiver) enter(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now += n
	r.seen.most = max(r.seen.most, r.now)
}

// take checks a delivery and records its latency.
func (r *receiver) take(at time.Time, request *http.Request, body []byte) error {
	id, _, err := r.world.Event(request, body, at)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.expected[id]
	if e == nil {
		return nil // belongs to another part
	}
	if !bytes.Equal(body, e.body) {
		return fmt.Errorf("event %s has another body", id)
	}
	if e.took == 0 {
		e.took = max(at.Sub(e.appended), 1)
		r.seen.n++
		r.seen.last = at
		if r.seen.first.IsZero() {
			r.seen.first = at
		}
	}
	return nil
}

// forget drops all expectations before a new part.
func (r *receiver) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expected, r.seen = map[uuid.UUID]*expectation{}, arrivals{most: r.now}
}

// expect registers events that are about to be appended.
func (r *receiver) expect(events ...partners.Referral) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for _, e := range events {
		r.expected[e.ID] = &expectation{body: e.Body, appended: now}
	}
}

// all waits until n of the expected events have arrived.
func (r *receiver) all(ctx context.Context, n int) error {
	return wait.Poll(ctx, 20*time.Millisecond, func() (bool, error) {
		seen, err := r.soFar()
		return seen.n >= n, err
	})
}

// soFar returns what has arrived, and an error if a delivery was not as expected.
func (r *receiver) soFar() (arrivals, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen, r.fault
}

// took returns the latency of each of these events, measured from its append.
func (r *receiver) took(events []uuid.UUID) []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]time.Duration, 0, len(events))
	for _, id := range events {
		if e := r.expected[id]; e != nil && e.took > 0 {
			all = append(all, e.took)
		}
	}
	return all
}
