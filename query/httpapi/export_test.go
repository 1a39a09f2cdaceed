package httpapi

import (
	"context"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// What tests see of a server.

const (
	WaitersPerSlot = waitersPerSlot
	ClientStreams  = clientStreams
	MaxStreams     = maxStreams
)

func (s *Server) Occupy(ctx context.Context) (release func(), err error) { return s.slots.acquire(ctx) }
func (s *Server) Wait(n int64)                                           { s.slots.waiting.Add(n) }
func (s *Server) Refused() float64                                       { return testutil.ToFloat64(s.metrics.refused) }
func (s *Server) Cached() int                                            { return s.cache.len() }
func (s *Server) Counted(route, method, status string) float64 {
	return testutil.ToFloat64(s.metrics.requests.WithLabelValues(route, method, status))
}
func (s *Server) EnterStreams(ctx context.Context, ip netip.Addr) (leave func(), err error) {
	return s.readers.enter(ctx, ip)
}
func (s *Server) StreamsOf(ip netip.Addr) int { return s.readers.of[ip].inside }
func (s *Server) StreamsTaken() int           { return len(s.streams.taken) }
