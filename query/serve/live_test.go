package serve_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/navlog/navlog/query/serve"
)

// endless sends as much as its client receives.
func endless(r *serve.Request) (*serve.Answer, error) {
	return r.Following(func(uint64) *serve.Answer {
		return &serve.Answer{Kind: "text/event-stream", Live: func(_ context.Context, out *serve.Live) error {
			for piece := bytes.Repeat([]byte(":"), serve.StreamChunk); ; {
				if err := out.Send(piece); err != nil {
					return err
				}
			}
		}}
	})
}

// silent sends nothing.
func silent(r *serve.Request) (*serve.Answer, error) {
	return r.Following(func(uint64) *serve.Answer {
		return &serve.Answer{Kind: "text/event-stream", Live: func(ctx context.Context, out *serve.Live) error {
			return out.Wait(ctx, nil, 0)
		}}
	})
}

// TestLiveReaderThatTakesNothing: a client that reads nothing is cut off, and its slot becomes free.
func TestLiveReaderThatTakesNothing(t *testing.T) {
	c := startAPI(t, 1, serve.Route{Path: "/live", Get: endless, Live: true})
	c.Server.Patience = 50 * time.Millisecond
	cut := make(chan any, 1)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		defer func() { v := recover(); cut <- v; panic(http.ErrAbortHandler) }()
		c.Handler.ServeHTTP(rw, r)
	}))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /live HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if v := <-cut; v != http.ErrAbortHandler {
		t.Errorf("the handler ended with %v", v)
	}
	if n := c.Server.LiveTaken(); n != 0 {
		t.Errorf("%d slots are still taken", n)
	}
}

// TestLiveSendsHeartbeats: a silent stream sends heartbeats, more than one.
func TestLiveSendsHeartbeats(t *testing.T) {
	c := startAPI(t, 1, serve.Route{Path: "/live", Get: silent, Live: true})
	c.Server.Heartbeat = time.Millisecond
	server := httptest.NewServer(c.Handler)
	defer server.Close()
	defer c.Server.EndLive()
	r, err := http.Get(server.URL + "/live")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	received := make([]byte, 9)
	if _, err := io.ReadFull(r.Body, received); err != nil || string(received) != ":\n\n:\n\n:\n\n" {
		t.Errorf("the client received %q, %v", received, err)
	}
}

// TestWorkForAll: shared work depends neither on the slots of the client whose stream runs it nor on that client
// staying connected.
func TestWorkForAll(t *testing.T) {
	asked := make(chan error, 1)
	c := startAPI(t, 4, serve.Route{Path: "/live", Live: true, Get: func(r *serve.Request) (*serve.Answer, error) {
		return r.Following(func(uint64) *serve.Answer {
			return &serve.Answer{Kind: "text/event-stream", Live: func(_ context.Context, out *serve.Live) error {
				gone, leave := context.WithCancel(t.Context())
				leave()
				asked <- out.WorkForAll(gone, func(ctx context.Context) error { return ctx.Err() })
				return nil
			}}
		})
	}})
	var ip netip.Addr // the address of all clients in this test
	for range 2 {     // its share
		if _, err := c.Server.Occupy(t.Context(), ip); err != nil {
			t.Fatal(err)
		}
	}
	c.Server.EndLive() // so that the stream ends
	c.Serve("/live")
	if err := <-asked; err != nil {
		t.Errorf("work for all: %v", err)
	}
}

// TestLiveEndsWhole: a stream that was silent for longer than the deadline of a piece still ends cleanly for the
// client.
func TestLiveEndsWhole(t *testing.T) {
	quiet := make(chan struct{})
	once := func(r *serve.Request) (*serve.Answer, error) {
		return r.Following(func(uint64) *serve.Answer {
			return &serve.Answer{Kind: "text/event-stream", Live: func(ctx context.Context, out *serve.Live) error {
				if err := out.Send([]byte(":\n\n")); err != nil {
					return err
				}
				if err := out.Wait(ctx, nil, 2*time.Second); err != nil {
					return err
				}
				close(quiet)
				return out.Wait(ctx, nil, 0)
			}}
		})
	}
	c := startAPI(t, 1, serve.Route{Path: "/live", Get: once, Live: true})
	c.Server.Patience = time.Second
	server := httptest.NewServer(c.Handler)
	defer server.Close()
	r, err := http.Get(server.URL + "/live")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	<-quiet
	c.Server.EndLive()
	if received, err := io.ReadAll(r.Body); err != nil || string(received) != ":\n\n" {
		t.Errorf("the client received %q, %v", received, err)
	}
}

// TestLiveBeyondAnAddress: a stream beyond the share of an address is rejected after a while, and streams of others
// are not.
func TestLiveBeyondAnAddress(t *testing.T) {
	c := startAPI(t, 1, serve.Route{Path: "/live", Get: silent, Live: true})
	var ip netip.Addr // the address of all clients in this test
	var leave func()
	for range serve.LivePerAddress {
		var err error
		if leave, err = c.Server.OccupyLive(t.Context(), ip); err != nil {
			t.Fatal(err)
		}
	}
	c.Serve("/live").Failed(t, 503, "UNAVAILABLE")
	other, err := c.Server.OccupyLive(t.Context(), netip.MustParseAddr("192.0.2.1"))
	if err != nil {
		t.Fatal(err)
	}
	other()
	leave()
	c.Server.EndLive() // so that the admitted stream ends
	if r := c.Serve("/live"); r.Code != 200 {
		t.Errorf("with a free slot: %d %s", r.Code, r.Body)
	}
	if n := c.Server.LiveTaken(); n != serve.LivePerAddress-1 {
		t.Errorf("%d slots taken", n)
	}
}
