package ingest

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
)

// relay forwards connections to an address until it is cut.
type relay struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	open     []net.Conn
	refuses  bool
}

func newRelay(t *testing.T, to string) *relay {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: listener, to: to}
	t.Cleanup(func() { listener.Close(); r.cut() })
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go r.serve(in)
		}
	}()
	return r
}

func (r *relay) serve(in net.Conn) {
	r.mu.Lock()
	if r.refuses {
		r.mu.Unlock()
		in.Close()
		return
	}
	out, err := net.Dial("tcp", r.to)
	if err != nil {
		r.mu.Unlock()
		in.Close()
		return
	}
	r.open = append(r.open, in, out)
	r.mu.Unlock()
	go func() { _, _ = io.Copy(out, in); out.Close() }()
	_, _ = io.Copy(in, out)
	in.Close()
}

// cut closes all connections and refuses new ones; restore accepts them again.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuses = true
	for _, c := range r.open {
		c.Close()
	}
	r.open = nil
}

func (r *relay) restore() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuses = false
}

// socketOf returns the WebSocket URL of the rig's node; anvil serves both on one port.
func (r *rig) socketOf() string { return strings.Replace(r.url, "http://", "ws://", 1) }

// An announced block is followed at once: polling would take an hour for each of these blocks. When the socket dies,
// polling continues, and announcements resume by themselves.
func TestAnnouncedBlocksWakeTheFollower(t *testing.T) {
	for name, overHTTP := range map[string]bool{"in addition to HTTP": true, "only over the socket": false} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, kfake)
			r.steps(5)
			r.config.RPC = rpc.Endpoints(r.socketOf())
			if overHTTP {
				r.config.RPC = []rpc.Endpoint{{URL: r.url, WS: r.socketOf()}}
			}
			// Longer than the configuration allows and the test waits.
			p := r.start(func(i *Ingest) { i.config.PollInterval = time.Hour })
			p.until("subscription", func(st status.Status) bool { return st.Endpoints[0].Subscribed })
			for range 4 {
				r.steps(1)
				p.until("new block", func(st status.Status) bool { return st.IndexedBlock == r.height() })
			}
			r.verify()
		})
	}
}

func TestDeadSocketIsReplaced(t *testing.T) {
	r := newRig(t, kfake)
	r.steps(5)
	between := newRelay(t, strings.TrimPrefix(r.url, "http://"))
	r.config.RPC = []rpc.Endpoint{{URL: r.url, WS: "ws://" + between.listener.Addr().String()}}
	p := r.start()
	p.until("subscription", func(st status.Status) bool { return st.Endpoints[0].Subscribed })
	between.cut()
	p.until("loss of the subscription", func(st status.Status) bool { return !st.Endpoints[0].Subscribed })
	r.steps(3)
	p.caughtUp()
	between.restore()
	p.until("another subscription", func(st status.Status) bool { return st.Endpoints[0].Subscribed })
	before := p.metric("announcements_total")
	r.steps(1)
	p.until("announcement", func(status.Status) bool {
		return p.metric("announcements_total") > before
	})
	p.caughtUp()
	r.verify()
}
