package events_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/events"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/readmodel"
)

// bill counts the reads that each address is charged for. The address exhausted has no budget left.
type bill struct {
	mu        sync.Mutex
	reads     map[netip.Addr]int
	exhausted netip.Addr
}

func (b *bill) Afford(client netip.Addr) error {
	if client == b.exhausted {
		return &serve.Failure{Status: http.StatusTooManyRequests, Crowd: true}
	}
	return nil
}

func (b *bill) Charge(client netip.Addr, _ time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reads[client]++
}

func (b *bill) of(client string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reads[netip.MustParseAddr(client)]
}

// TestKindsAreReadUpToTheLimit: a list of thousands of kinds, which fits into a request, is rejected at the 33rd. A
// stream reads it without a slot, so no limit of engine time would bound the comparison of each with all others.
func TestKindsAreReadUpToTheLimit(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	s := serve.New(1, 0, prometheus.NewRegistry())
	s.Log, s.Admit = log, func(*serve.Request, *serve.Route) error { return nil }
	s.RequestTimeout, s.WriteTimeout = time.Minute, time.Minute
	s.Watcher = state.New(readtest.ChainID, 1, time.Minute, readmodel.Config{}, nil, nil, log)
	c := readtest.Client{T: t, Handler: s.Handler([]serve.Route{{Path: "/api/v1/stream", Get: events.NewFeed().Stream,
		Live: true}}, nil, nil)}
	var kinds []string
	for n := range 32 {
		kinds = append(kinds, fmt.Sprintf("Kind%d", n))
	}
	most := strings.Join(kinds, ",")
	for given, want := range map[string]string{"Kind0,Kind0": "must be different", "no-name": "must be different",
		most + ",Kind32": "must be at most 32", most + ",Kind32,no-name": "must be at most 32"} {
		details := c.Get("/api/v1/stream?kind="+given).Failed(t, 400, serve.CodeInvalidParameter)
		if got := fmt.Sprint(details); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}

// following is a server of streams.
type following struct {
	*readtest.Client
	t    *testing.T
	g    *readtest.Generation
	addr string
	bill *bill
}

func follow(t *testing.T, log *readtest.Log) *following {
	g := readtest.New(t, enginetest.ClickHouse(t))
	g.Write(log)
	s := serve.New(4, 1<<20, prometheus.NewRegistry())
	f := &following{t: t, g: g, bill: &bill{reads: make(map[netip.Addr]int)}}
	s.SetBudget(f.bill)
	f.Client = readtest.ServeBy(t, s, g, serve.Route{Path: "/stream", Get: events.NewFeed().Stream, Live: true})
	s.Admit = func(r *serve.Request, _ *serve.Route) (err error) {
		r.Client, err = netip.ParseAddr(r.HTTP.Header.Get("X-Client"))
		return err
	}
	server := httptest.NewUnstartedServer(f.Handler)
	server.Config.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		if err := conn.(*net.TCPConn).SetWriteBuffer(32 << 10); err != nil {
			t.Error(err)
		}
		return serve.ConnContext(ctx, conn)
	}
	server.Start()
	t.Cleanup(server.Close) // after the connections
	f.addr = server.Listener.Addr().String()
	return f
}

// stream is an open stream, whose client reads only when the test lets it.
type stream struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
	id   uint64 // of the last event that until found
}

func (f *following) open(client, query string) *stream {
	f.t.Helper()
	conn, err := net.Dial("tcp", f.addr)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { conn.Close() })
	if err := conn.(*net.TCPConn).SetReadBuffer(32 << 10); err != nil {
		f.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "GET /stream?%s HTTP/1.1\r\nHost: x\r\nX-Client: %s\r\n\r\n", query,
		client); err != nil {
		f.t.Fatal(err)
	}
	s := &stream{t: f.t, conn: conn, in: bufio.NewReader(conn)}
	if err := s.until("retry: ", time.Minute); err != nil {
		f.t.Fatal(err)
	}
	return s
}

// until reads up to a line with a prefix.
func (s *stream) until(prefix string, patience time.Duration) error {
	if err := s.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	for {
		line, err := s.in.ReadString('\n')
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			s.id, _ = strconv.ParseUint(strings.TrimSpace(id), 10, 64)
		}
		if err != nil || strings.HasPrefix(line, prefix) {
			return err
		}
	}
}

// reaches reads up to the record with a seq.
func (s *stream) reaches(seq uint64) {
	s.t.Helper()
	if err := s.until("id: "+strconv.FormatUint(seq, 10)+"\n", time.Minute); err != nil {
		s.t.Fatalf("seq %d: %v", seq, err)
	}
}

// TestReadsOfChosenSeqsAreCharged: the read after a seq that a client chose is charged to it, and shared with others
// that chose the same, except if the client has no budget. No client is charged for reads at the end of the log.
func TestReadsOfChosenSeqsAreCharged(t *testing.T) {
	log := readtest.SmallChain()
	f := follow(t, log)
	const one, other, exhausted = "198.51.100.7", "203.0.113.9", "192.0.2.1"
	f.bill.exhausted = netip.MustParseAddr(exhausted)
	end := log.Seq()
	var open []*stream
	for n := range uint64(3) {
		s := f.open(one, fmt.Sprintf("after=%d", n+1))
		s.reaches(end)
		open = append(open, s)
	}
	if n := f.bill.of(one); n != 3 {
		t.Errorf("%d reads are charged for three seqs", n)
	}
	limited := f.open(exhausted, "after=5")
	again := f.open(other, "after=1")
	again.reaches(end)
	beside := f.open(other, "after=5")
	beside.reaches(end)
	limited.reaches(end)
	open = append(open, limited, again, beside, f.open(other, ""), f.open(other, fmt.Sprintf("after=%d", end)))
	if n := f.bill.of(other); n != 1 {
		t.Errorf("%d reads are charged for a seq that was read before, a new one, and the end", n)
	}
	log.Append(readtest.BlockRecord(13))
	f.g.Write(log)
	f.Look()
	for _, s := range open {
		s.reaches(log.Seq())
	}
	if a, b := f.bill.of(one), f.bill.of(other); a != 3 || b != 1 {
		t.Errorf("%d and %d reads are charged after a read at the end", a, b)
	}
}

// TestAJumpAtTheEndIsFree: the log grows by more at once than the shared reads keep. Streams at its end read it
// together and without charge, also those of a client without budget, in which no record is missing. Only the stream of
// a client that received nothing meanwhile needs separate reads, and is charged for them.
func TestAJumpAtTheEndIsFree(t *testing.T) {
	log := readtest.SmallChain()
	f := follow(t, log)
	const one, slow, exhausted = "198.51.100.7", "203.0.113.9", "192.0.2.1"
	f.bill.exhausted = netip.MustParseAddr(exhausted)
	last := f.open(slow, "")
	open := []*stream{f.open(exhausted, "")}
	for range 10 {
		open = append(open, f.open(one, ""))
	}
	before := log.Seq()
	for n := range uint64(12 << 10) { // 12 stretches, of which 8 are kept
		log.Append(readtest.BlockRecord(13 + n))
	}
	f.g.Write(log)
	f.Look()
	var read sync.WaitGroup
	for _, s := range open {
		read.Go(func() {
			for seq := before + 1; seq <= log.Seq() && !t.Failed(); seq++ {
				if err := s.until("id: ", time.Minute); err != nil || s.id != seq {
					t.Errorf("seq %d follows %d: %v", s.id, seq-1, err)
				}
			}
		})
	}
	read.Wait()
	if a, b := f.bill.of(one), f.bill.of(exhausted); a != 0 || b != 0 {
		t.Errorf("%d and %d reads are charged after a jump at the end", a, b)
	}
	last.reaches(log.Seq())
	if n := f.bill.of(slow); n == 0 {
		t.Error("a stream that fell behind the shared reads is not charged for separate reads")
	}
}

// TestFewStreamsHoldWhatTheyCaughtUp: of one address, only a few streams that catch up hold what they read while their
// clients receive nothing. Others wait until one of them is done; streams of other addresses, and those at the end, do
// not.
func TestFewStreamsHoldWhatTheyCaughtUp(t *testing.T) {
	log := readtest.SmallChain()
	for n := range uint64(700) {
		log.Append(readtest.Fact{Kind: readtest.Deposit, Vault: readtest.VaultA, User: readtest.Alice, Other: readtest.Router,
			ID: 100 + n, Assets: 1, Shares: 1, Block: 13 + n, Tx: readtest.Tx(18)}, readtest.BlockRecord(13+n))
	}
	f := follow(t, log)
	const one, other = "198.51.100.7", "203.0.113.9"
	var slow []*stream
	for range 4 { // the share of an address
		s := f.open(one, "after=0")
		s.reaches(10) // it has a place
		slow = append(slow, s)
	}
	waiting := f.open(one, "after=0")
	if err := waiting.until("id: ", time.Second); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a stream beyond the share of its address reads: %v", err)
	}
	f.open(other, "after=0").reaches(log.Seq())
	newest := f.open(one, "")
	log.Append(readtest.BlockRecord(2000))
	f.g.Write(log)
	f.Look()
	newest.reaches(log.Seq())
	slow[0].conn.Close()
	waiting.reaches(log.Seq())
}
