package query

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// maxHeader is the bytes that the header of a request has at most, its first
// line included; a longer one is 431. On a connection that is used again net/http
// lets up to headerSlop more through than on a new one, and headerSlop there more
// than it is told.
const (
	maxHeader  = 32 << 10
	headerSlop = 4 << 10
)

// CheckURL judges a webhook URL and gives its canonical form. Its error is a
// *guard.Refusal, or something that has nothing to do with the URL.
// (*guard.Guard).CheckURL is one.
type CheckURL func(ctx context.Context, rawURL string) (canonical string, err error)

// Query serves the HTTP API.
type Query struct {
	cfg       Config
	chainID   uint64
	readModel readmodel.Config
	pool      *pgxpool.Pool
	db        *db.Queries
	checkURL  CheckURL
	gatherer  prometheus.Gatherer
	log       *slog.Logger
	now       func() time.Time
	proxies   []netip.Prefix
	metrics   metrics

	snapshot    atomic.Pointer[snapshot]
	snapshotErr atomic.Pointer[error] // why the last look at it failed
	leaving     leaving
	registry    atomic.Pointer[registryView]
	addr        atomic.Pointer[string]
	listener    listener

	keys       keyCache
	byIP       *limiter[netip.Addr]
	byFailure  *limiter[netip.Addr]
	leases     leases
	slots      *slots
	streams    *slots // the long answers, which hold memory until the client has them
	readers    *readers
	warming    sync.Mutex
	patience   time.Duration // with a reader that takes nothing
	looks      time.Duration // what a look at the engines may take
	prepares   time.Duration // what of it may go into the head of a snapshot
	scale      scale         // of the past
	newsAtMost uint64
	sizes      sizes
	pastRead   atomic.Bool // as far as it is read before anybody asks (fill.go)
}

// New makes a server for one chain. It touches nothing until Run. cfg must be
// valid. gatherer is what /metrics shows; the program's own metrics are
// registered with reg.
func New(cfg Config, chainID uint64, ch readmodel.Config, pool *pgxpool.Pool, checkURL CheckURL,
	gatherer prometheus.Gatherer, reg prometheus.Registerer, log *slog.Logger) *Query {
	q := &Query{
		cfg: cfg, chainID: chainID, readModel: ch, pool: pool, db: db.New(pool), checkURL: checkURL,
		gatherer: gatherer, log: log, now: time.Now,
		keys: keyCache{entries: make(map[[32]byte]keyEntry)},
		byIP: newLimiter[netip.Addr](maxKeys), byFailure: newLimiter[netip.Addr](maxKeys),
		leases:   leases{held: make(map[rateKey]lease)},
		listener: listener{notified: make(chan struct{}, 1), every: lookEvery, rarely: lookRarely},
	}
	for _, proxy := range cfg.TrustedProxies {
		if prefix, err := netip.ParsePrefix(proxy); err == nil { // Validate has seen it
			q.proxies = append(q.proxies, prefix)
		}
	}
	q.metrics = newMetrics(reg, q)
	q.slots = newSlots(cfg.Concurrency, q.metrics.refused.Inc)
	q.patience, q.looks, q.prepares, q.scale, q.newsAtMost, q.sizes = streamPatience, lookTimeout, prepareTimeout, pastScale, newsAtMost, usualSizes
	q.streams, q.readers = newSlots(maxStreams, q.metrics.refused.Inc), newReaders(q.metrics.refused.Inc)
	return q
}

// Addr is the address that Run listens on, host:port; empty before that.
func (q *Query) Addr() string {
	if addr := q.addr.Load(); addr != nil {
		return *addr
	}
	return ""
}

// Run serves until ctx ends, then lets the open requests finish, for at most
// ShutdownTimeout, and returns nil.
func (q *Query) Run(ctx context.Context) error {
	conn, err := q.readModel.OpenReader(conns(q.cfg.Concurrency))
	if err != nil {
		return err
	}
	defer conn.Close()
	listener, err := net.Listen("tcp", q.cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen on http.listen %s: %w; choose another address, or port 0 for a free one", q.cfg.Listen, err)
	}
	addr := listener.Addr().String()
	q.addr.Store(&addr)
	q.log.Info("serving", "addr", addr)

	server := &http.Server{
		Handler:           q.Handler(),
		ReadHeaderTimeout: q.cfg.ReadTimeout,
		ReadTimeout:       q.cfg.ReadTimeout,
		WriteTimeout:      q.cfg.WriteTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeader - 2*headerSlop,
		ErrorLog:          slog.NewLogLogger(q.log.Handler(), slog.LevelDebug),
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve HTTP on %s: %w", addr, err)
		}
		return nil
	})
	// The loops outlive the server, for its last requests need what they keep.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	group.Go(func() error {
		defer stop()
		<-ctx.Done()
		return q.shutDown(server)
	})
	group.Go(func() error { return q.watchRegistry(work) })
	group.Go(func() error { return q.listen(work) })
	group.Go(func() error { return q.follow(work, conn) })
	group.Go(func() error { return q.fill(work) })
	group.Go(func() error { return registry.Report(work, q.pool, registry.Serve, q.Status) })
	return group.Wait()
}

// conns is how many connections to ClickHouse are enough: who waits for one is
// told that the engine does not answer. Of the requests that have a slot each
// asks six questions at once at most, a long answer asks one, and a few are for
// the snapshot.
func conns(concurrency int) int { return 6*concurrency + maxStreams + 8 }

// shutDown stops accepting and waits for the open requests.
func (q *Query) shutDown(server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), q.cfg.ShutdownTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		q.log.Warn("requests cut off at the end", "after", q.cfg.ShutdownTimeout)
		return server.Close()
	}
	return nil
}

// decimal writes a number the way the API writes block numbers.
func decimal(n uint64) string { return strconv.FormatUint(n, 10) }
