package lane

import (
	"context"
	"crypto/tls"
	"net/http/httptrace"
	"sync"
	"time"
)

// phases says how long each part of a POST took. A part that did not happen is
// -1: a connection that was open already needs no name, connect or TLS.
type Phases struct {
	DNS, Connect, TLS time.Duration
	FirstByte         time.Duration // from the start of the POST
}

func NoPhases() Phases { return Phases{-1, -1, -1, -1} }

// stopwatch takes the times of one POST. net/http calls it from several
// goroutines, some of which outlive the POST.
type stopwatch struct {
	mu                            sync.Mutex
	started                       time.Time
	dnsFrom, connectFrom, tlsFrom time.Time
	phases                        Phases
	reused                        bool // the request went out on a connection that an earlier one had used
}

// watch gives a context under which net/http tells the stopwatch.
func (s *stopwatch) watch(ctx context.Context) context.Context {
	s.started, s.phases = time.Now(), NoPhases()
	from := func(at *time.Time) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if at.IsZero() { // of several addresses, the first begins
			*at = time.Now()
		}
	}
	to := func(at *time.Time, phase *time.Duration) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !at.IsZero() {
			*phase = time.Since(*at)
		}
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.reused = info.Reused
		},
		DNSStart:             func(httptrace.DNSStartInfo) { from(&s.dnsFrom) },
		DNSDone:              func(httptrace.DNSDoneInfo) { to(&s.dnsFrom, &s.phases.DNS) },
		ConnectStart:         func(string, string) { from(&s.connectFrom) },
		ConnectDone:          func(string, string, error) { to(&s.connectFrom, &s.phases.Connect) },
		TLSHandshakeStart:    func() { from(&s.tlsFrom) },
		TLSHandshakeDone:     func(tls.ConnectionState, error) { to(&s.tlsFrom, &s.phases.TLS) },
		GotFirstResponseByte: func() { to(&s.started, &s.phases.FirstByte) },
	})
}

// diedIdle reports whether a request that failed was on a connection of an earlier one and got
// not even the first byte of a response: the receiver may have closed the connection before.
func (s *stopwatch) diedIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reused && s.phases.FirstByte < 0
}

// read gives what is known now.
func (s *stopwatch) read() Phases {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phases
}
