package ingest

import (
	"cmp"
	"slices"
	"sync"

	"github.com/navlog/navlog/schemas/registry"
)

// spending is what the nodes were asked since the process began, by method:
// providers sell calls, each at the price of its method. A question of a batch
// counts like one that comes alone, as it does on a bill; one that was put off or
// failed counts too, since some bill that.
type spending struct {
	prices map[string]uint64 // units of each method, as chain.prices has them

	mu       sync.Mutex
	byMethod map[string]*registry.MethodCalls
}

// add counts questions and gives the units that they cost.
func (s *spending) add(method string, questions int) (units uint64) {
	units = s.prices[method] * uint64(questions)
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.of(method)
	m.Calls += uint64(questions)
	m.Units += units
	return units
}

// received counts the bytes of an answer.
func (s *spending) received(method string, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(method).Bytes += uint64(bytes)
}

func (s *spending) of(method string) *registry.MethodCalls {
	if s.byMethod == nil {
		s.byMethod = map[string]*registry.MethodCalls{}
	}
	if s.byMethod[method] == nil {
		s.byMethod[method] = &registry.MethodCalls{Method: method}
	}
	return s.byMethod[method]
}

// calls gives all of it, the most called method first.
func (s *spending) calls() []registry.MethodCalls {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]registry.MethodCalls, 0, len(s.byMethod))
	for _, m := range s.byMethod {
		all = append(all, *m)
	}
	sortCalls(all)
	return all
}

func sortCalls(calls []registry.MethodCalls) {
	slices.SortFunc(calls, func(a, b registry.MethodCalls) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Method, b.Method))
	})
}
