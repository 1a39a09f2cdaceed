package query

import (
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strconv"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/schemas/readmodel"
)

// newHot is a Query with a snapshot of six vaults and no engines.
func newHot(limit int) *Query {
	cfg := testConfig()
	cfg.PublicRateLimit = limit
	reg := prometheus.NewRegistry()
	q := New(cfg, testChain, readmodel.DefaultConfig(), nil, acceptHTTPS, reg, reg, slog.New(slog.DiscardHandler))
	s := &snapshot{generation: generation{id: 1}, seq: 12_345_678, block: 1_000_000, time: 1_700_000_000, navs: map[common.Address]navRow{}, seen: q.now(), cache: newCache(cfg.CacheBytes)}
	for i := range maxVaults {
		meta := vaultMeta(common.BigToAddress(big.NewInt(int64(i+1))), fmt.Sprintf("Vault %d", i+1), 1).meta
		address := common.BytesToAddress(meta.Address)
		s.vaults = append(s.vaults, vault{address: address, name: meta.Name, symbol: meta.Symbol, decimals: meta.Decimals, asset: asset{symbol: "USDX", decimals: 6}, startBlock: 1})
		s.navs[address] = navRow{NavPerShare: big.NewInt(1e18), TotalAssets: big.NewInt(1e15), TotalSupply: big.NewInt(1e15), Time: 1_700_000_000}
	}
	s.position = position(s.generation, s.seq, s.block)
	q.snapshot.Store(s)
	return q
}

// BenchmarkHot is an answer out of the cache beside the least that net/http
// can do with the same bytes: the handler alone, and over connections.
//
//	go test ./query -run '^$' -bench Hot -benchmem
func BenchmarkHot(b *testing.B) {
	const path = "/api/v1/vaults"
	navlog := newHot(0).Handler()
	first := httptest.NewRecorder()
	navlog.ServeHTTP(first, httptest.NewRequest(http.MethodGet, path, nil))
	body := first.Body.Bytes()
	bare := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	})
	for _, c := range []struct {
		name     string
		handler  http.Handler
		encoding string
	}{
		{"bare", bare, "identity"}, {"navlog", navlog, "identity"}, {"navlog-gzip", navlog, "gzip"}, {"navlog-limited", newHot(maxRateLimit).Handler(), "identity"},
	} {
		b.Run(c.name+"/handler", func(b *testing.B) { benchmarkHandler(b, c.handler, path, c.encoding) })
		if c.name != "navlog-limited" { // its answers differ in length
			b.Run(c.name+"/socket", func(b *testing.B) { benchmarkSocket(b, c.handler, path, c.encoding) })
		}
	}
}

// discard is a ResponseWriter that keeps nothing.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}

func benchmarkHandler(b *testing.B, h http.Handler, path, encoding string) {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Accept-Encoding", encoding)
	w := &discard{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		h.ServeHTTP(w, r)
	}
}

func benchmarkSocket(b *testing.B, h http.Handler, path, encoding string) {
	server := httptest.NewServer(h)
	defer server.Close()
	length := wireLength(b, server.URL+path, encoding)
	request := []byte("GET " + path + " HTTP/1.1\r\nHost: navlog\r\nAccept-Encoding: " + encoding + "\r\n\r\n")
	ask := func(conn net.Conn, in []byte) error {
		if _, err := conn.Write(request); err != nil {
			return err
		}
		_, err := io.ReadFull(conn, in)
		return err
	}
	b.ReportAllocs()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.Close()
		in := make([]byte, length)
		for pb.Next() {
			if err := ask(conn, in); err != nil || string(in[:15]) != "HTTP/1.1 200 OK" {
				b.Errorf("%v %.15s", err, in)
				return
			}
		}
	})
}

// wireLength is that of an answer with its header. All answers have it, for
// they differ in the time and the request id only.
func wireLength(b *testing.B, url, encoding string) int {
	b.Helper()
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", encoding)
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := httputil.DumpResponse(answer, true)
	if err != nil {
		b.Fatal(err)
	}
	return len(raw)
}
