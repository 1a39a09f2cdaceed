package lane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/engines/enginetest"
)

// connection is the context key of the number of requests on a request's connection.
type connection struct{}

// keeper is a receiver that accepts the first request of a connection and calls second for the next.
type keeper struct {
	*httptest.Server
	mu  sync.Mutex
	ids []string // event ids of the requests, in order of arrival
}

func (f *fixture) keeper(second func(http.ResponseWriter)) *keeper {
	f.Helper()
	k := &keeper{}
	k.Server = f.receiverWith(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		k.mu.Lock()
		k.ids = append(k.ids, r.Header.Get("X-Service-Event-Id"))
		k.mu.Unlock()
		n := r.Context().Value(connection{}).(*int)
		if *n++; *n > 1 {
			second(w)
		}
	}, func(s *httptest.Server) {
		s.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, connection{}, new(int))
		}
	})
	return k
}

func (k *keeper) got() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.ids)
}

// closeConn writes some text and ends the connection, with RST if hard and otherwise with FIN.
func closeConn(f *fixture, w http.ResponseWriter, text string, hard bool) {
	conn, _, err := w.(http.Hijacker).Hijack()
	f.check(err)
	_, err = conn.Write([]byte(text))
	f.check(err)
	if hard {
		below := conn.(*tls.Conn).NetConn().(*net.TCPConn)
		reset(below)
		below.Close()
		return
	}
	conn.Close()
}

// posterTo returns a poster that trusts the fixture's receivers and allows loopback.
func (f *fixture) posterTo(names *enginetest.Names) *poster {
	f.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(f.certificates)
	p := newPoster(f.resolvingAt(names), roots, nil, 4, time.Minute)
	f.Cleanup(p.transport.CloseIdleConnections)
	return p
}

// A receiver closes an idle connection, and the next request dies on it. The attempt does not fail: the request is sent
// again, on a new connection. A request that got part of a response, or died on a new connection, is not repeated.
func TestConnectionThatTheReceiverClosed(t *testing.T) {
	f := newFixture(t)
	for what, c := range map[string]struct {
		second   func(http.ResponseWriter)
		outcome  string
		requests int // for the second event
	}{
		"closed":                  {func(w http.ResponseWriter) { closeConn(f, w, "", false) }, outcomeAccepted, 2},
		"reset":                   {func(w http.ResponseWriter) { closeConn(f, w, "", true) }, outcomeAccepted, 2},
		"cut within the response": {func(w http.ResponseWriter) { closeConn(f, w, "HTTP/1.1 20", false) }, outcomeNetwork, 1},
		"an early response": {func(w http.ResponseWriter) {
			closeConn(f, w, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", false)
		}, outcomeAccepted, 1},
	} {
		k := f.keeper(c.second)
		p := f.posterTo(enginetest.NameServer(t))
		e := Endpoint{URL: k.URL, Secret: testSecret}
		first, second := newEvent(), newEvent()
		if r := p.post(t.Context(), e, first); !r.accepted() {
			t.Fatalf("%s: the first event is %s: %v", what, r.Outcome, r.Cause)
		}
		r := p.post(t.Context(), e, second)
		got := k.got()
		other := slices.ContainsFunc(got[1:], func(id string) bool { return id != second.EventID.String() })
		if r.Outcome != c.outcome || len(got) != 1+c.requests || other {
			t.Errorf("%s: %s (%v) after the requests %q, want %s and %d requests of %s",
				what, r.Outcome, r.Cause, got, c.outcome, c.requests, second.EventID)
		}
	}
}

// gate is a listener that holds back its second connection until open is closed.
type gate struct {
	net.Listener
	accepted int
	arrived  chan string // the address of the second connection
	open     chan struct{}
}

func (g *gate) Accept() (net.Conn, error) {
	c, err := g.Listener.Accept()
	if g.accepted++; err == nil && g.accepted == 2 {
		g.arrived <- c.RemoteAddr().String()
		<-g.open
	}
	return c, err
}

// An idle connection may never have had a request, because the request that it was opened for used another connection
// that was free sooner. The receiver may have closed it too, so a request that dies on it is sent again.
func TestConnectionThatWasNeverUsed(t *testing.T) {
	f := newFixture(t)
	g := &gate{arrived: make(chan string, 1), open: make(chan struct{})}
	release, begun := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	var unused, dead string    // the second connection, and the event whose request died on it
	got := map[string][]bool{} // per event: whether its requests had Connection: close
	r := f.receiverWith(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		id := r.Header.Get("X-Service-Event-Id")
		got[id] = append(got[id], r.Close)
		first, known, dies := len(got) == 1, unused != "", unused == r.RemoteAddr
		if dies {
			dead = id
		}
		mu.Unlock()
		switch {
		case first:
			close(begun)
			<-release
		case dies:
			closeConn(f, w, "", false)
		case known:
			w.Header().Set("Connection", "close") // so that no other connection stays idle
		}
	}, func(s *httptest.Server) { g.Listener, s.Listener = s.Listener, g })
	p := f.posterTo(enginetest.NameServer(t))
	post := func() {
		e := Endpoint{URL: r.URL, Secret: testSecret}
		if r := p.post(t.Context(), e, newEvent()); !r.accepted() {
			t.Errorf("%s: %v", r.Outcome, r.Cause)
		}
	}
	var both sync.WaitGroup
	both.Go(post)
	<-begun
	both.Go(post)
	second := <-g.arrived // opened for the second event
	close(release)
	both.Wait() // which went out on the first connection
	mu.Lock()
	unused = second
	mu.Unlock()
	close(g.open)
	for {
		post()
		mu.Lock()
		id := dead
		closes := got[id]
		mu.Unlock()
		if id == "" {
			continue // the connection is not kept yet
		}
		if !slices.Equal(closes, []bool{false, true}) {
			t.Errorf("the event on the unused connection came with Connection: close %t, want once without and once with it",
				closes)
		}
		return
	}
}

// A receiver that always hangs up gets an event at most twice in one attempt, with the same id, body and signature, and
// no idle connection survives the failure.
func TestRequestIsRepeatedOnce(t *testing.T) {
	f := newFixture(t)
	var requests int
	var arrived []string                                           // the requests
	r := f.receiver(func(w http.ResponseWriter, r *http.Request) { // one at a time
		body, _ := io.ReadAll(r.Body)
		r.Header.Del("Connection")
		arrived = append(arrived, fmt.Sprintf("%s %v", body, r.Header))
		if requests++; requests > 1 {
			closeConn(f, w, "", false)
		}
	})
	p := f.posterTo(enginetest.NameServer(t))
	e := Endpoint{URL: r.URL, Secret: testSecret}
	post := func() Result { return p.post(t.Context(), e, newEvent()) }
	if got := post(); !got.accepted() {
		t.Fatalf("%s: %v", got.Outcome, got.Cause)
	}
	if got := post(); got.Outcome != outcomeNetwork || requests != 3 {
		t.Errorf("%s after %d requests, want a failure after 3", got.Outcome, requests)
	}
	if arrived[1] != arrived[2] {
		t.Errorf("%s was repeated as %s", arrived[1], arrived[2])
	}
	if got := post(); got.Outcome != outcomeNetwork || requests != 4 {
		t.Errorf("%s after %d requests: the retry did not begin with a new connection", got.Outcome, requests)
	}
}

// The guard checks the new connection too: a name that now resolves to an internal address gets nothing.
func TestNewConnectionIsCheckedToo(t *testing.T) {
	f := newFixture(t)
	k := f.keeper(func(w http.ResponseWriter) { closeConn(f, w, "", false) })
	names := enginetest.NameServer(t)
	names.SetAddrs("127.0.0.1")
	p := f.posterTo(names)
	_, port, err := net.SplitHostPort(k.Listener.Addr().String())
	f.check(err)
	e := Endpoint{URL: "https://" + net.JoinHostPort(testName, port), Secret: testSecret}
	if r := p.post(t.Context(), e, newEvent()); !r.accepted() {
		t.Fatalf("%s: %v", r.Outcome, r.Cause)
	}
	names.SetAddrs("10.0.0.1")
	r := p.post(t.Context(), e, newEvent())
	if r.Outcome != outcomeForbidden || len(k.got()) != 2 {
		t.Errorf("%s: %v after %d requests", r.Outcome, r.Cause, len(k.got()))
	}
}

// The outcome of a response whose body does not end is its status after bodyPatience, long before the deadline, and its
// connection is closed.
func TestBodyIsWaitedForBriefly(t *testing.T) {
	f := newFixture(t)
	long := strings.Repeat("x", MaxResponseKept)
	for what, c := range map[string]struct {
		write func(w http.ResponseWriter)
		kept  string
	}{
		"nothing":            {func(http.ResponseWriter) {}, ""},
		"a part":             {func(w http.ResponseWriter) { _, _ = io.WriteString(w, "thanks") }, "thanks"},
		"a length":           {func(w http.ResponseWriter) { w.Header().Set("Content-Length", "100") }, ""},
		"as much as is kept": {func(w http.ResponseWriter) { _, _ = io.WriteString(w, long) }, long},
	} {
		closed := make(chan struct{})
		r := f.receiver(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			c.write(w)
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done() // the connection is closed
			close(closed)
		})
		p := f.posterTo(enginetest.NameServer(t))
		if p.patience != bodyPatience {
			t.Fatalf("the patience for a body is %s", p.patience)
		}
		p.patience = 20 * time.Millisecond
		if c.kept != "" {
			p.patience = 2 * time.Second // in which what was sent arrives on a busy machine
		}
		got := p.post(t.Context(), Endpoint{URL: r.URL, Secret: testSecret}, newEvent())
		if !got.accepted() || string(got.Response) != c.kept || got.Took >= p.deadline {
			t.Errorf("%s: %s with %d bytes after %s: %v", what, got.Outcome, len(got.Response), got.Took, got.Cause)
		}
		<-closed // otherwise the test times out
	}
}
