package serve

import (
	"context"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// Access to a server's internals for tests.

var (
	LongPerAddress = longShares.Address
	LivePerAddress = liveShares.Address
)

const PostsPerPartner = postsPerPartner

// Occupy takes a slot for an address, and OccupyStream takes one for a long response.
func (s *Server) Occupy(ctx context.Context, ip netip.Addr) (release func(), err error) {
	leave, err := s.slots.acquire(ctx, holder{client: ip})
	return func() { leave(nil) }, err
}
func (s *Server) OccupyStream(ctx context.Context, ip netip.Addr) (release func(), err error) {
	return s.streams.acquire(ctx, holder{client: ip})
}
func (s *Server) OccupyLive(ctx context.Context, ip netip.Addr) (release func(), err error) {
	return s.lives.acquire(ctx, holder{client: ip})
}

// Crowd fills the queue of the public with waiting requests.
func (s *Server) Crowd() (disperse func()) {
	n := s.slots.slots[cheap].places()
	s.slots.slots[cheap].add(n)
	return func() { s.slots.slots[cheap].add(-n) }
}

func (s *slots) add(waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roots[public].waiting += waiting
}

// taken returns the number of slots in use.
func (s *slots) taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.roots[public].taken + s.roots[partner].taken
}

// EngineTaken returns the number of engine slots in use, over all classes.
func (s *Server) EngineTaken() (n int) {
	for _, of := range s.slots.slots {
		n += of.taken()
	}
	return n
}

func (s *Server) Refused() float64 { return testutil.ToFloat64(s.metrics.refused) }
func (s *Server) Panics() float64  { return testutil.ToFloat64(s.metrics.panics) }
func (s *Server) Cached() int      { return s.cache.len() }
func (s *Server) Counted(route, method, status string) float64 {
	return testutil.ToFloat64(s.metrics.requests.WithLabelValues(route, method, status))
}
func (s *Server) CutOff(why string) float64 {
	return testutil.ToFloat64(s.metrics.cut.WithLabelValues(why))
}
func (s *Server) PostsTaken() int   { return s.posts.taken() }
func (s *Server) StreamsTaken() int { return s.streams.taken() }
func (s *Server) LiveTaken() int    { return s.lives.taken() }
func (s *Server) FilesTaken() int   { return s.files.taken() }
