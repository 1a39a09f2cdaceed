package httpapi

import (
	"context"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// What tests see of a server.

const (
	MaxStreams = maxStreams
	MaxLive    = maxLive
)

// Occupy takes a slot for an address, and OccupyStream one for a long answer.
func (s *Server) Occupy(ctx context.Context, ip netip.Addr) (release func(), err error) {
	return s.slots.acquire(ctx, holder{client: ip})
}
func (s *Server) OccupyStream(ctx context.Context, ip netip.Addr) (release func(), err error) {
	return s.streams.acquire(ctx, holder{client: ip})
}
func (s *Server) OccupyLive(ctx context.Context, ip netip.Addr) (release func(), err error) {
	return s.lives.acquire(ctx, holder{client: ip})
}

// Crowd has so many more of the public wait for a slot as may wait.
func (s *Server) Crowd() (disperse func()) {
	n := waitersPerSlot * s.slots.all()
	s.slots.add(n)
	return func() { s.slots.add(-n) }
}

func (s *slots) add(waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[public] += waiting
}

func (s *Server) Refused() float64 { return testutil.ToFloat64(s.metrics.refused) }
func (s *Server) Panics() float64  { return testutil.ToFloat64(s.metrics.panics) }
func (s *Server) Cached() int      { return s.cache.len() }
func (s *Server) Counted(route, method, status string) float64 {
	return testutil.ToFloat64(s.metrics.requests.WithLabelValues(route, method, status))
}
func (s *Server) StreamsTaken() int {
	s.streams.mu.Lock()
	defer s.streams.mu.Unlock()
	return s.streams.taken[public] + s.streams.taken[partner]
}
func (s *Server) LiveTaken() int {
	s.lives.mu.Lock()
	defer s.lives.mu.Unlock()
	return s.lives.taken[public] + s.lives.taken[partner]
}
