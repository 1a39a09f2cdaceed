package lane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/navlog/navlog/schemas/webhook/guard"
)

// Phases is how long each part of a POST took. A part that did not happen is -1: on a
// reused connection that is DNS, Connect and TLS.
type Phases struct {
	DNS, Connect, TLS time.Duration
	FirstByte         time.Duration // from the start of the POST
}

// NoPhases returns the Phases of a POST of which nothing happened.
func NoPhases() Phases { return Phases{-1, -1, -1, -1} }

// stopwatch measures the phases of one POST. net/http calls it from several goroutines,
// some of which outlive the POST.
type stopwatch struct {
	mu                            sync.Mutex
	started                       time.Time
	dnsFrom, connectFrom, tlsFrom time.Time
	phases                        Phases
	reused                        bool // the request used the connection of an earlier one
	certificateRequested          bool // the receiver asked for a client certificate
}

// stopwatchKey is the context key of a POST's stopwatch. net/http passes to the dialer and the handshake only the
// values of the context, not its deadline.
type stopwatchKey struct{}

// noteRequest notes that the receiver asked for a client certificate. ctx is that of a handshake; its stopwatch is that
// of the POST that opened the connection.
func noteRequest(ctx context.Context) {
	s, ok := ctx.Value(stopwatchKey{}).(*stopwatch)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.certificateRequested = true
}

// watch returns a context with which net/http reports to the stopwatch.
func (s *stopwatch) watch(ctx context.Context) context.Context {
	s.started, s.phases = time.Now(), NoPhases()
	from := func(at *time.Time) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if at.IsZero() { // with several addresses the first one counts
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
	return httptrace.WithClientTrace(context.WithValue(ctx, stopwatchKey{}, s), &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.reused = info.Reused
		},
		DNSStart:     func(httptrace.DNSStartInfo) { from(&s.dnsFrom) },
		DNSDone:      func(httptrace.DNSDoneInfo) { to(&s.dnsFrom, &s.phases.DNS) },
		ConnectStart: func(string, string) { from(&s.connectFrom) },
		ConnectDone: func(_, _ string, err error) {
			if refusal := new(guard.Refusal); !errors.As(err, &refusal) { // a connection that the guard refuses is not tried
				to(&s.connectFrom, &s.phases.Connect)
			}
		},
		TLSHandshakeStart:    func() { from(&s.tlsFrom) },
		TLSHandshakeDone:     func(tls.ConnectionState, error) { to(&s.tlsFrom, &s.phases.TLS) },
		GotFirstResponseByte: func() { to(&s.started, &s.phases.FirstByte) },
	})
}

// closedWhileIdle reports whether a request that failed used the connection of an earlier one and
// got no byte of a response: the receiver may have closed the idle connection before.
func (s *stopwatch) closedWhileIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reused && s.phases.FirstByte < 0
}

// clientAuth returns what a POST without a response has to do with a client certificate. client is the certificate that
// a receiver gets, with its chain.
func (s *stopwatch) clientAuth(client []*x509.Certificate) clientAuth {
	s.mu.Lock()
	defer s.mu.Unlock()
	return clientAuth{asked: s.certificateRequested, sent: client}
}

// read returns the phases so far.
func (s *stopwatch) read() Phases {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phases
}
