package query

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/query/access"
	"github.com/navlog/navlog/query/docs"
	"github.com/navlog/navlog/query/events"
	"github.com/navlog/navlog/query/explain"
	"github.com/navlog/navlog/query/health"
	"github.com/navlog/navlog/query/partner"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/query/web"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
	"github.com/navlog/navlog/schemas/statement"
	"github.com/navlog/navlog/schemas/telemetry"
)

// maxHeader is the maximum size of a request's header in bytes, including its first line; a longer one gets 431.
// net/http accepts headerSlop more than its configured limit, and up to another headerSlop on a reused connection.
const (
	maxHeader  = 32 << 10
	headerSlop = 4 << 10
)

// Query serves the HTTP API.
type Query struct {
	cfg     Config
	chainID uint64
	pool    *pgxpool.Pool
	log     *slog.Logger

	watcher    *state.Watcher
	access     *access.Access
	server     *serve.Server
	conns      *serve.Conns
	webhooks   *partner.Webhooks
	statements *partner.Statements
	explainer  *explain.Explainer
	health     *health.Health
	feed       *events.Feed
	addr       atomic.Pointer[string]
}

// New returns a server for one chain. It does not connect to anything until Run. cfg must be valid. The metrics are
// registered with reg, and not served here, because the port of the API is public.
func New(cfg Config, chainID uint64, ch readmodel.Config, pool *pgxpool.Pool, checkURL partner.CheckURL,
	reg prometheus.Registerer, log *slog.Logger) *Query {
	q := &Query{cfg: cfg, chainID: chainID, pool: pool, log: log}
	q.watcher = state.New(chainID, serve.Questions(cfg.Concurrency), max(cfg.WriteTimeout, cfg.FileTimeout), ch, pool,
		db.New(pool), log)
	q.watcher.Register(reg)

	q.access = access.New(pool, cfg.PartnerRateLimit, reg, log)
	q.access.PublicRateLimit, q.access.ForwardedHeader = cfg.PublicRateLimit, cfg.ForwardedHeader
	for _, proxy := range cfg.TrustedProxies {
		if prefix, err := netip.ParsePrefix(proxy); err == nil { // Validate has checked it
			q.access.Proxies = append(q.access.Proxies, prefix)
		}
	}

	q.server = serve.New(cfg.Concurrency, cfg.CacheBytes, reg)
	q.server.Watcher, q.server.Admit, q.server.Log = q.watcher, q.access.Admit, log
	q.server.RequestTimeout, q.server.WriteTimeout, q.server.FileTimeout = cfg.RequestTimeout, cfg.WriteTimeout,
		cfg.FileTimeout

	if cfg.PublicEngineTime > 0 {
		q.server.SetBudget(q.access.EngineTime(cfg.PublicEngineTime))
	}
	q.conns = serve.NewConns(min(cfg.MaxConnections, descriptors()), cfg.MaxConnectionsPerAddress, reg)
	q.conns.Trusted, q.conns.IdleTimeout = q.access.Trusted, cfg.IdleTimeout

	q.feed = events.NewFeed()
	q.webhooks = partner.NewWebhooks(pool, checkURL, log)
	q.webhooks.Rotation = cfg.PartnerRotation
	q.statements = &partner.Statements{Pool: pool, Depth: uint64(cfg.StatementConfirmations)}
	if key, err := statement.Key(cfg.StatementKey); err == nil { // Validate has checked it
		q.statements.Key = key
	}
	var proofs *explain.Node
	if cfg.ProofRPC != "" {
		if n, err := explain.NewNode(cfg.ProofRPC, cfg.ProofCallsPerSecond); err == nil { // Validate has checked it
			proofs = n
		}
	}
	q.explainer = explain.New(proofs)
	q.explainer.Spend, q.explainer.ProofsForPartners = q.access.ProofCalls(cfg.ProofCallsPerDay).Spend,
		cfg.ProofsForPartners
	q.health = health.New(q.watcher, q.Addr, cfg.Explorer)
	reg.MustRegister(q.health)
	return q
}

// SealWith gives the server the value of NAVLOG_SECRET_KEY, with which it seals the secrets that partners rotate.
func (q *Query) SealWith(secretKey string) { q.webhooks.SecretKey = secretKey }

// Handler serves every path of the program, and traces requests to the API. Before Run has made a snapshot, requests
// that need the read models get 503.
func (q *Query) Handler() http.Handler {
	probes, files := append(q.health.Probes(), q.statements.Probe()), slices.Concat(docs.Files(), web.Files())
	return telemetry.Handler(q.server.Handler(q.routes(), probes, files),
		func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/api/") })
}

// Addr returns the address that Run listens on, host:port, or "" before that.
func (q *Query) Addr() string {
	if addr := q.addr.Load(); addr != nil {
		return *addr
	}
	return ""
}

// Ready returns nil while the program can serve a proven generation.
func (q *Query) Ready() error { return q.health.Ready() }

// Status returns the program's health.Status. It is safe to call at any time.
func (q *Query) Status() any { return q.health.Status() }

// Run serves until ctx ends, and for Drain longer while it is not ready. Then it waits for the open requests, for at
// most ShutdownTimeout, and returns nil.
func (q *Query) Run(ctx context.Context) error {
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
		IdleTimeout:       q.cfg.IdleTimeout,
		ConnContext:       serve.ConnContext,
		ConnState:         q.conns.State,
		Protocols:         new(http.Protocols), // HTTP/1.1: a connection has one request at a time
		MaxHeaderBytes:    maxHeader - 2*headerSlop,
		ErrorLog:          slog.NewLogLogger(q.log.Handler(), slog.LevelDebug),
	}
	server.Protocols.SetHTTP1(true)
	server.RegisterOnShutdown(q.server.EndLive)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.Serve(q.conns.Listen(listener)); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve HTTP on %s: %w", addr, err)
		}
		return nil
	})
	// The loops outlive the server, because its last requests need them.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	group.Go(func() error {
		defer stop()
		<-ctx.Done()
		q.drain()
		return q.shutDown(server)
	})
	group.Go(func() error { return q.watcher.Run(work) })
	group.Go(func() error { q.warnOfUnknownVaults(work); return nil })
	group.Go(func() error { return registry.Report(work, q.pool, registry.Serve, q.Status) })
	return group.Wait()
}

// warnOfUnknownVaults logs the entries of http.vaults that are about no vault of the first snapshot.
func (q *Query) warnOfUnknownVaults(ctx context.Context) {
	for {
		changed := q.watcher.Changed()
		if s := q.watcher.Snapshot(); s != nil {
			for _, about := range q.cfg.Vaults {
				address := common.HexToAddress(about.Address)
				if !slices.ContainsFunc(s.Vaults, func(v state.Vault) bool { return v.Address == address }) {
					q.log.Warn("http.vaults has an entry for an unknown vault: correct its address or remove it", "address",
						about.Address)
				}
			}
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// spareDescriptors are reserved for everything other than client connections: engines, files and libraries.
const spareDescriptors = 512

// descriptors returns how many connections the file descriptors of the process allow.
func descriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt
	}
	return int(max(16, min(limit.Cur, math.MaxInt32)-min(spareDescriptors, limit.Cur/2)))
}

// drain lets a balancer notice that the program is no longer ready, before it rejects connections.
func (q *Query) drain() {
	q.health.End()
	if q.cfg.Drain > 0 {
		q.log.Info("ending: not ready, and still serving", "for", q.cfg.Drain)
		time.Sleep(q.cfg.Drain)
	}
}

// shutDown stops accepting connections and waits for the open requests.
func (q *Query) shutDown(server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), q.cfg.ShutdownTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		q.log.Warn("requests cut off at the end", "after", q.cfg.ShutdownTimeout)
		return server.Close()
	}
	return nil
}
