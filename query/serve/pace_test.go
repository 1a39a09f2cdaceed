package serve_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/readmodel"
)

// link is a connection to a client whose operating system buffers as Linux does: it accepts what fits into its buffer,
// then nothing until a third of it is free. The client reads rate bytes per second, in one step each second.
type link struct {
	net.Conn // a pipe, for requests
	room     int

	mu       sync.Mutex
	changed  chan struct{} // closed when bytes were read or the deadline moved
	buffered int
	deadline time.Time
}

func newLink(conn net.Conn, room int) *link {
	return &link{Conn: conn, room: room, changed: make(chan struct{})}
}

func (l *link) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *link) SetWriteDeadline(t time.Time) error {
	l.change(func() { l.deadline = t })
	return nil
}

func (l *link) SetDeadline(t time.Time) error {
	return l.SetWriteDeadline(t)
}

// Write implements net.Conn.
func (l *link) Write(b []byte) (n int, err error) {
	for waiting := false; ; {
		l.mu.Lock()
		changed, left := l.changed, time.Until(l.deadline)
		if free := l.room - l.buffered; free > 0 && (!waiting || free >= l.room/3) {
			part := min(free, len(b)-n)
			l.buffered += part
			n += part
		}
		late := !l.deadline.IsZero() && left <= 0
		l.mu.Unlock()
		switch {
		case n == len(b):
			return n, nil
		case late:
			return n, timeoutError{}
		}
		waiting = true
		select {
		case <-changed:
		case <-time.After(left):
		}
	}
}

type timeoutError struct{}

func (timeoutError) Error() string   { return "i/o timeout" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Is(e error) bool { return e.Error() == "i/o timeout" }

// read reads rate bytes per second until ctx ends.
func (l *link) read(ctx context.Context, rate int) (all int) {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		select {
		case <-second.C:
			l.change(func() {
				n := min(rate, l.buffered)
				l.buffered -= n
				all += n
			})
		case <-ctx.Done():
			return all
		}
	}
}

// oneConn is a listener that accepts one connection.
type oneConn struct {
	conn chan net.Conn
	end  chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.end:
		return nil, net.ErrClosed
	}
}
func (l *oneConn) Close() error   { close(l.end); return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// TestSlowLinks: a client at 15 KB/s receives its whole file, whatever its operating system buffers. One at 8 KB/s,
// or one that reads nothing, is cut off, and the log has the reason. This also applies to a long response that is
// finished before it is sent.
func TestSlowLinks(t *testing.T) {
	const size = 8 << 20
	for name, c := range map[string]struct {
		path       string
		rate, room int
		whole      bool
		why        string
	}{
		"15 KB/s, small buffers":       {"/file", 15 << 10, 200 << 10, true, ""},
		"15 KB/s, large buffers":       {"/file", 15 << 10, 1200 << 10, true, ""},
		"1 MB/s":                       {"/file", 1 << 20, 4 << 20, true, ""},
		"8 KB/s":                       {"/file", 8 << 10, 1 << 20, false, "slow"},
		"8 KB/s, small buffers":        {"/file", 8 << 10, 200 << 10, false, "slow"},
		"nothing":                      {"/file", 0, 1 << 20, false, "slow"},
		"14 KB/s, longer than allowed": {"/file", 14 << 10, 1 << 20, false, "late"},
		"finished, 1 MB/s":             {"/finished", 1 << 20, 1 << 20, true, ""},
		"finished, 8 KB/s":             {"/finished", 8 << 10, 1 << 20, false, "slow"},
		"finished, 100 KB/s":           {"/finished", 100 << 10, 1 << 20, false, "late"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var logged bytes.Buffer
				s := serve.New(1, 0, prometheus.NewRegistry())
				s.Log = slog.New(slog.NewTextHandler(&logged, nil))
				s.Watcher = state.New(1, 1, time.Minute, readmodel.DefaultConfig(), nil, nil, slog.New(slog.DiscardHandler))
				s.Admit = func(*serve.Request, *serve.Route) error { return nil }
				s.RequestTimeout, s.WriteTimeout, s.FileTimeout = 10*time.Second, time.Minute, 15*time.Minute
				if c.path == "/finished" && c.why == "slow" {
					s.WriteTimeout = 10 * time.Minute
				}
				if c.why == "late" {
					s.FileTimeout = 5 * time.Minute
				}
				handler := s.Handler([]serve.Route{{Path: "/file", IsFile: true, Get: func(*serve.Request) (*serve.Answer, error) {
					return &serve.Answer{Kind: "text/csv", Stream: func(_ context.Context, w io.Writer) error {
						for range size / 1024 {
							if _, err := io.WriteString(w, strings.Repeat("x", 1024)); err != nil {
								return err
							}
						}
						return nil
					}}, nil
				}}, {Path: "/finished", Uncached: true, Get: func(*serve.Request) (*serve.Answer, error) {
					return &serve.Answer{Raw: bytes.Repeat([]byte("x"), size)}, nil
				}}}, nil, nil)
				client, serverSide := net.Pipe()
				l := newLink(serverSide, c.room)
				listener := &oneConn{make(chan net.Conn, 1), make(chan struct{})}
				listener.conn <- l
				ended := make(chan bool, 1) // whether the handler wrote all of the response
				server := &http.Server{ConnContext: serve.ConnContext,
					ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
					Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						whole := false
						defer func() { ended <- whole }()
						handler.ServeHTTP(w, r)
						whole = c.why == "" || s.CutOff(c.why) == 0
					})}
				served := make(chan struct{})
				go func() { defer close(served); _ = server.Serve(listener) }()
				ctx, stop := context.WithCancel(t.Context())
				took := make(chan int, 1)
				go func() { took <- l.read(ctx, c.rate) }()
				if _, err := io.WriteString(client, "GET "+c.path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				<-time.After(5500 * time.Millisecond)
				synctest.Wait()
				if places, engine := s.FilesTaken()+s.StreamsTaken(), s.EngineTaken(); places != 1 || engine != 0 {
					t.Errorf("while its client reads, a response has %d places, and %d slots of the engine", places, engine)
				}
				whole := <-ended
				if whole != c.whole {
					t.Errorf("after %s the response is complete: %t, want %t", time.Since(begun), whole, c.whole)
				}
				if n := s.FilesTaken() + s.StreamsTaken() + s.EngineTaken(); n != 0 {
					t.Errorf("%d slots are taken", n)
				}
				if c.why != "" && (s.CutOff(c.why) != 1 || !strings.Contains(logged.String(), "why="+c.why)) {
					t.Errorf("it did not end with the reason %s: %s", c.why, logged.String())
				}
				if whole { // the end of the response, which the server writes itself, arrives too
					<-time.After(6 * time.Minute)
				}
				_ = client.Close()
				_ = server.Close()
				<-served
				stop()
				if n := <-took; c.whole && n < size {
					t.Errorf("the client has %d bytes", n)
				}
			})
		})
	}
}
