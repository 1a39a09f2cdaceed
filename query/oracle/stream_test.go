package oracle

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/events"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/query/serve"
)

// sentEvent is an event of a stream.
type sentEvent struct {
	id, name string
	data     any
}

// follower reads a stream.
type follower struct {
	t      *testing.T
	body   *bufio.Scanner
	cancel context.CancelFunc
}

func listen(t *testing.T, url, last string) *follower {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Last-Event-ID", last)
	r.Header.Set("Accept-Encoding", "gzip")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	h := resp.Header
	if resp.StatusCode != 200 || h.Get("Content-Type") != "text/event-stream; charset=utf-8" ||
		h.Get("Content-Encoding") != "" || h.Get("X-Accel-Buffering") != "no" ||
		h.Get("Cache-Control") != "no-store, no-transform" {
		t.Fatalf("%d %v", resp.StatusCode, h)
	}
	body := bufio.NewScanner(resp.Body)
	body.Buffer(nil, 1<<20)
	return &follower{t, body, cancel}
}

// next returns the next event, and skips comments and lines that belong to no event.
func (f *follower) next() (e sentEvent, ok bool) {
	f.t.Helper()
	for f.body.Scan() {
		name, value, _ := strings.Cut(f.body.Text(), ": ")
		switch {
		case name == "id":
			e.id = value
		case name == "event":
			e.name = value
		case name == "data":
			if err := json.Unmarshal([]byte(value), &e.data); err != nil {
				f.t.Fatalf("%v: %s", err, value)
			}
		case name == "" && e.name != "":
			return e, true
		}
	}
	return e, false
}

// scenarioOf returns the events that a stream should send for a log, computed from the log only.
func scenarioOf(l *readtest.Log, generation int32, keep func(readtest.Entry) bool) (out []sentEvent) {
	chain := chainOf(l, l.Seq()) // whose vaults have their current names
	for _, e := range l.Entries {
		sent := len(out)
		for _, effect := range e.Effects() {
			if eventNames[e.Kind] == "" || keep != nil && !keep(effect) {
				continue
			}
			at := &Oracle{gone: map[uint64]uint64{}, chain: chain}
			of := sentEvent{name: eventNames[e.Kind]}
			if e.Retracts != 0 {
				at.gone = map[uint64]uint64{e.Retracts: e.Seq}
				of.name, effect.Seq = "retracted", e.Retracts
			}
			of.data = at.event(effect)
			out = append(out, of)
		}
		if len(out) > sent { // only the last event of a record has an id
			out[len(out)-1].id = dec(e.Seq)
		}
		if e.Boundary {
			if len(out) > sent {
				out[len(out)-1].id = ""
			}
			unit := object{"seq": dec(e.Seq), "generation": generation, "blockNumber": nil, "timestamp": nil}
			if e.Kind == readtest.Block && e.Retracts == 0 {
				unit["blockNumber"], unit["timestamp"] = dec(e.Block), iso(e.At())
			}
			out = append(out, sentEvent{dec(e.Seq), "unit", unit})
		}
	}
	return out
}

func sameEvent(t *testing.T, got, want sentEvent) {
	t.Helper()
	same(t, "seq "+want.id, []any{got.id, got.name, got.data}, []any{want.id, want.name, want.data})
}

// streamed serves the stream of a generation over a socket.
func streamed(t *testing.T, l *readtest.Log) (*readtest.Client, *readtest.Generation, string) {
	t.Helper()
	g := readtest.New(t, enginetest.ClickHouse(t))
	g.Write(l)
	c, url := streamOf(t, g)
	return c, g, url
}

// streamOf starts a server for the stream of a generation.
func streamOf(t *testing.T, g *readtest.Generation) (*readtest.Client, string) {
	t.Helper()
	c := readtest.Serve(t, g,
		serve.Route{Path: "/api/v1/stream", Get: events.NewFeed().Stream, Live: true, FirstSync: true})
	server := httptest.NewUnstartedServer(c.Handler)
	// which do not end a stream
	server.Config.ReadTimeout, server.Config.WriteTimeout = 200*time.Millisecond, 200*time.Millisecond
	server.Start()
	t.Cleanup(func() { c.Server.EndLive(); server.Close() })
	return c, server.URL + "/api/v1/stream"
}

// expects reads the next events and compares them.
func (f *follower) expects(expected []sentEvent) {
	f.t.Helper()
	for _, want := range expected {
		got, ok := f.next()
		if !ok {
			f.t.Fatalf("the stream ended before %s: %v", want.id, f.body.Err())
		}
		sameEvent(f.t, got, want)
	}
}

// halves returns a log up to the end of a unit in its middle, the whole log, and how many events the first part has.
func halves() (first, whole *readtest.Log, middle int) {
	whole = readtest.SmallChain()
	half := whole.Seq() / 2
	for !whole.Entries[half-1].Boundary {
		half++
	}
	first = &readtest.Log{ChainID: whole.ChainID, Entries: whole.Entries[:half:half]}
	return first, whole, len(scenarioOf(first, 0, nil))
}

// TestStreamOverASwitch: while a stream is open, another generation becomes the served one; the stream continues in
// it at the same seq, and names the generation.
func TestStreamOverASwitch(t *testing.T) {
	first, whole, middle := halves()
	c, g, url := streamed(t, first)
	f := listen(t, url+"?after=0", "")
	f.expects(scenarioOf(first, g.ID, nil))
	next := readtest.New(t, enginetest.ClickHouse(t))
	next.Write(whole)
	c.Switch(next)
	f.expects(scenarioOf(whole, next.ID, nil)[middle:])
}

// TestStreamOverARestart: a server that shuts down ends its streams cleanly, and another one continues after the last
// id.
func TestStreamOverARestart(t *testing.T) {
	first, whole, middle := halves()
	c, g, url := streamed(t, first)
	f := listen(t, url+"?after=0", "")
	scenario := scenarioOf(first, g.ID, nil)
	f.expects(scenario)
	c.Server.EndLive()
	if got, ok := f.next(); ok || f.body.Err() != nil {
		t.Fatalf("a server that shuts down sends %v, %v", got, f.body.Err())
	}
	g.Write(whole)
	_, url = streamOf(t, g)
	listen(t, url+"?after=0", scenario[len(scenario)-1].id).expects(scenarioOf(whole, g.ID, nil)[middle:])
}

// TestStreamThroughAProxy: events pass a proxy at once, and are not compressed even for a client that accepts it.
func TestStreamThroughAProxy(t *testing.T) {
	first, whole, middle := halves()
	c, g, direct := streamed(t, first)
	to, err := url.Parse(strings.TrimSuffix(direct, "/api/v1/stream"))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }})
	t.Cleanup(func() { c.Server.EndLive(); proxy.Close() })
	f := listen(t, proxy.URL+"/api/v1/stream?after=0", "")
	f.expects(scenarioOf(first, g.ID, nil)) // before more is written
	g.Write(whole)
	c.Look()
	f.expects(scenarioOf(whole, g.ID, nil)[middle:])
}

// gate is a proxy to an engine that can be shut.
type gate struct {
	net.Listener
	to      string
	refused chan struct{} // receives a value when a connection was refused
	mu      sync.Mutex
	shut    bool
	conns   []net.Conn
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	if shut {
		for _, c := range g.conns {
			c.Close()
		}
		g.conns = nil
	}
}

func (g *gate) run() {
	for {
		in, err := g.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", g.to)
		if err != nil {
			in.Close()
			continue
		}
		g.mu.Lock()
		if g.shut {
			in.Close()
			out.Close()
			select {
			case g.refused <- struct{}{}:
			default:
			}
		} else {
			g.conns = append(g.conns, in, out)
			go func() { _, _ = io.Copy(in, out); in.Close() }()
			go func() { _, _ = io.Copy(out, in); out.Close() }()
		}
		g.mu.Unlock()
	}
}

// TestStreamWhileTheEngineIsAway: a stream stays open while the engine is down, and continues when it is back.
func TestStreamWhileTheEngineIsAway(t *testing.T) {
	l := readtest.SmallChain()
	g := readtest.New(t, enginetest.ClickHouse(t))
	g.Write(l)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	way := &gate{Listener: listener, to: g.Config.Addr, refused: make(chan struct{}, 1)}
	go way.run()
	t.Cleanup(func() { way.Close(); way.set(true) })
	g.Config.Addr = listener.Addr().String()
	_, url := streamOf(t, g)
	way.set(true)
	f := listen(t, url+"?after=0", "")
	<-way.refused // a query was attempted
	way.set(false)
	f.expects(scenarioOf(l, g.ID, nil))
}

// TestStreamSendsTheWholeLog: throughout a history with reorganisations, a client that keeps losing its connection,
// also between two effects of a log, receives all events after its last id, in order, and complete units.
func TestStreamSendsTheWholeLog(t *testing.T) {
	seeds := uint64(3)
	if testing.Short() {
		seeds = 1
	}
	for seed := uint64(1); seed <= seeds; seed++ {
		random := rand.New(rand.NewPCG(seed, 4))
		var whole []*readtest.Log
		s := randomScenario(seed, func(s *scenario) {
			whole = append(whole, &readtest.Log{ChainID: s.ChainID, Entries: s.Entries[:len(s.Entries):len(s.Entries)]})
		})
		c, g, url := streamed(t, whole[0])
		filters := map[string]func(readtest.Entry) bool{
			"": nil, "&vault=" + readtest.VaultB.Hex(): inVault(readtest.VaultB),
			"&kind=NavUpdated,DepositAccepted": func(e readtest.Entry) bool {
				return e.Kind == readtest.Nav ||
					e.Kind == readtest.Deposit
			},
			"&user=" + readtest.Alice.Hex(): func(e readtest.Entry) bool { return names(e, readtest.Alice) },
		}
		type reader struct {
			*follower
			url, last string
			received  int // events
			upToLast  int // events up to the one with the last id
			want      func(*readtest.Log) []sentEvent
		}
		var readers []*reader
		for query, keep := range filters {
			readers = append(readers, &reader{follower: listen(t, url+"?after=0"+query, ""), url: url + "?after=0" + query,
				want: func(l *readtest.Log) []sentEvent { return scenarioOf(l, g.ID, keep) }})
		}
		for i, l := range whole {
			if i > 0 {
				l.Entries = s.Entries[:len(l.Entries)]
				g.Write(l)
				c.Look()
			}
			for _, r := range readers {
				for want := r.want(l); r.received < len(want); {
					got, ok := r.next()
					if !ok {
						t.Fatalf("seed %d: the stream ended after %s: %v", seed, r.last, r.body.Err())
					}
					sameEvent(t, got, want[r.received])
					r.received++
					if got.id != "" {
						r.last, r.upToLast = got.id, r.received
					}
					if random.IntN(20) == 0 {
						r.cancel()
						r.follower, r.received = listen(t, r.url, r.last), r.upToLast
					}
				}
			}
		}
	}
}

// TestStreamOfSeveralEffects: of the effects of a log, the last one that a stream sends has the id, whatever its filter
// drops, and the unit ends after it. So a client that loses its connection between two of them receives both.
func TestStreamOfSeveralEffects(t *testing.T) {
	l := readtest.NewLog(readtest.ChainID)
	settled := func(block uint64, also ...common.Address) readtest.Fact {
		return readtest.Fact{Kind: readtest.Settlement, Vault: readtest.VaultA, Assets: 3, Shares: 2, Price: 1, Block: block,
			Tx: readtest.Tx(byte(block)), Also: also}
	}
	l.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.BlockRecord(2))
	l.Append(settled(3, readtest.Alice, readtest.Bob), readtest.BlockRecord(3))
	l.Append(settled(4, readtest.Bob, readtest.Alice, readtest.Alice, readtest.Bob)) // a unit that ends with a log
	l.Retract(2)
	l.Entries[len(l.Entries)-1].Boundary = true // and one that ends with the retraction of a log
	_, g, url := streamed(t, l)
	for query, keep := range map[string]func(readtest.Entry) bool{
		"": nil, "&kind=DepositAccepted": func(readtest.Entry) bool { return false },
		"&user=" + readtest.Alice.Hex(): func(e readtest.Entry) bool { return names(e, readtest.Alice) },
		"&user=" + readtest.Bob.Hex():   func(e readtest.Entry) bool { return names(e, readtest.Bob) },
	} {
		scenario, last, upToLast := scenarioOf(l, g.ID, keep), "0", 0
		for i, e := range scenario {
			f := listen(t, url+"?after=0"+query, last)
			f.expects(scenario[upToLast : i+1])
			f.cancel()
			if e.id != "" {
				last, upToLast = e.id, i+1
			}
		}
	}
}

// TestStreamOfALongLog: a stream that begins far behind sends everything, however long the log is.
func TestStreamOfALongLog(t *testing.T) {
	l := readtest.NewLog(readtest.ChainID)
	l.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.BlockRecord(1))
	for b := uint64(2); b <= 1500; b++ {
		l.Append(readtest.Fact{Kind: readtest.Nav, Vault: readtest.VaultA, Price: int64(b), Block: b, Tx: readtest.Tx(1)},
			readtest.BlockRecord(b))
	}
	_, g, url := streamed(t, l)
	all := scenarioOf(l, g.ID, nil)
	for _, after := range []int{0, 1, 777, 1023, 1024, 1025, 2975, 2999} {
		f := listen(t, url, strconv.Itoa(after))
		for _, want := range all {
			if seq, _ := strconv.Atoi(want.id); seq <= after {
				continue
			}
			got, ok := f.next()
			if !ok {
				t.Fatalf("after %d: the stream ended before %s", after, want.id)
			}
			if got.id != want.id || got.name != want.name {
				t.Fatalf("after %d: got %v, should be %v", after, got, want)
			}
		}
		f.cancel()
	}
}

// TestStreamRefuses: an invalid seq and invalid filters are rejected.
func TestStreamRefuses(t *testing.T) {
	a := startAPI(t, readtest.SmallChain())
	c := readtest.Serve(t, a.gen,
		serve.Route{Path: "/api/v1/stream", Get: events.NewFeed().Stream, Live: true, FirstSync: true})
	for _, last := range []string{"x", "-1", "+1", "1.0", "0x1", " ", "18446744073709551616", "9223372036854775808",
		strings.Repeat("9", 5000)} {
		if last != " " {
			c.Get("/api/v1/stream", "Last-Event-ID", last).Failed(t, 400, "INVALID_PARAMETER")
		}
		c.Get("/api/v1/stream?after="+strings.NewReplacer(" ", "%20", "+", "%2B").Replace(last)).Failed(t, 400,
			"INVALID_PARAMETER")
	}
	c.Get("/api/v1/stream?kind=1").Failed(t, 400, "INVALID_PARAMETER")
	c.Get("/api/v1/stream?vault=0x12").Failed(t, 400, "INVALID_ADDRESS")
	c.Get("/api/v1/stream?user=0x12").Failed(t, 400, "INVALID_ADDRESS")
	if r := c.Do("HEAD", "/api/v1/stream", nil); r.Code != 200 || r.Body.Len() > 0 {
		t.Errorf("HEAD: %d %s", r.Code, r.Body)
	}
	c.Server.EndLive() // ends the streams cleanly
	if got := fmt.Sprintf("%q", c.Get("/api/v1/stream?after=99999999").Body.String()); got != `"retry: 2000\n\n"` {
		t.Errorf("a stream that ends sends %s", got)
	}
}
