package rpc

import (
	"cmp"
	"slices"
	"sync"

	"github.com/navlog/navlog/schemas/registry"
)

// Bill counts the calls to a node since the process began, by method: providers sell calls, each at the price of its
// method. A call in a batch counts like a single one, as it does on a provider's bill. Calls that were rate-limited or
// failed count too, because some providers bill them.
type Bill struct {
	Prices map[string]uint64 // units per call, by method

	mu       sync.Mutex
	byMethod map[string]*registry.MethodCalls
}

// Add counts calls and returns the units that they cost.
func (s *Bill) Add(method string, questions int) (units uint64) {
	units = s.Prices[method] * uint64(questions)
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.of(method)
	m.Calls += uint64(questions)
	m.Units += units
	return units
}

// Received counts the bytes of a response.
func (s *Bill) Received(method string, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(method).Bytes += uint64(bytes)
}

func (s *Bill) of(method string) *registry.MethodCalls {
	if s.byMethod == nil {
		s.byMethod = map[string]*registry.MethodCalls{}
	}
	if s.byMethod[method] == nil {
		s.byMethod[method] = &registry.MethodCalls{Method: method}
	}
	return s.byMethod[method]
}

// Calls returns the calls by method, the most called method first.
func (s *Bill) Calls() []registry.MethodCalls {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]registry.MethodCalls, 0, len(s.byMethod))
	for _, m := range s.byMethod {
		all = append(all, *m)
	}
	sortCalls(all)
	return all
}

// together adds up bills by method, the most called method first.
func together(bills []*Bill) (all []registry.MethodCalls) {
	var sum Bill
	for _, b := range bills {
		for _, c := range b.Calls() {
			m := sum.of(c.Method)
			m.Calls, m.Bytes, m.Units = m.Calls+c.Calls, m.Bytes+c.Bytes, m.Units+c.Units
		}
	}
	return sum.Calls()
}

func sortCalls(calls []registry.MethodCalls) {
	slices.SortFunc(calls, func(a, b registry.MethodCalls) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Method, b.Method))
	})
}
