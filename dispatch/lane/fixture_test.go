package lane

import (
	"context"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/registrytest"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

const (
	testName   = "example.com" // a receiver's certificate is valid for it
	urlToken   = "sesame-in-the-url"
	testSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

// fixture is what tests of one lane need: receivers and, on request, a PostgreSQL. The dispatch package tests lanes in
// a running dispatcher.
type fixture struct {
	*testing.T
	certificates []byte // of the receivers
	pool         *pgxpool.Pool
	queries      *db.Queries
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	return &fixture{T: t}
}

func (f *fixture) withPostgres() *fixture {
	f.Helper()
	c := registry.DefaultConfig()
	c.URL = registrytest.Postgres(f.T)
	pool, err := registry.Open(f.Context(), c)
	f.check(err)
	f.Cleanup(pool.Close)
	f.pool, f.queries = pool, db.New(pool)
	return f
}

func (f *fixture) check(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// lane7 returns a lane of partner 7 that has its lease and does not run. The partner has an
// endpoint.
func (f *fixture) lane7() *Lane {
	f.Helper()
	l := New(&Shared{
		Leases: &registry.Leases{Queries: f.queries, Kind: registry.PartnerLease, Owner: uuid.New(),
			Period: time.Minute},
		Concurrency: 4, Slots: make(chan struct{}, 4), Timing: Specified(),
		Guard: f.resolvingAt(enginetest.NameServer(f.T)), Queries: f.queries, Metrics: NewMetrics(prometheus.NewRegistry()),
		Log: slog.New(slog.DiscardHandler),
		Endpoint: func(context.Context, int64) (Endpoint, bool, error) {
			return Endpoint{Version: 1, URL: "https://receiver.invalid/hook", Secret: testSecret}, true, nil
		},
	}, 7)
	f.take(l)
	return l
}

func (f *fixture) take(l *Lane) {
	f.Helper()
	if taken, err := l.Take(f.Context()); err != nil || !taken {
		f.Fatalf("the lease is not available: %v", err)
	}
}

// granted is a PostgreSQL that grants every lease, with this fence.
type granted int64

func (g granted) QueryRow(context.Context, string, ...any) pgx.Row { return g }

func (g granted) Scan(to ...any) error {
	*to[0].(*int64) = int64(g)
	return nil
}

func (granted) Exec(context.Context, string, ...any) (pgconn.CommandTag, error) { panic("not a lease") }

func (granted) Query(context.Context, string, ...any) (pgx.Rows, error) { panic("not a lease") }

// leasesOf returns leases that need no PostgreSQL.
func leasesOf(fence int64) *registry.Leases {
	return &registry.Leases{Queries: db.New(granted(fence)), Kind: registry.PartnerLease, Owner: uuid.New(),
		Period: time.Hour}
}

// newEvent returns an event that is due.
func newEvent() db.DueDeliveriesRow {
	return db.DueDeliveriesRow{EventID: uuid.New(), Body: []byte("{}")}
}

func (f *fixture) exec(sql string, args ...any) {
	f.Helper()
	_, err := f.pool.Exec(f.Context(), sql, args...)
	f.check(err)
}

func (f *fixture) number(sql string, args ...any) (n int64) {
	f.Helper()
	f.check(f.pool.QueryRow(f.Context(), sql, args...).Scan(&n))
	return n
}

// replays replays an event of a partner, as a command does, and reports whether it changed
// anything.
func (f *fixture) replays(partner int64, event uuid.UUID) bool {
	f.Helper()
	n, err := f.queries.ReplayDelivery(f.Context(), db.ReplayDeliveryParams{EventID: event, PartnerID: partner})
	f.check(err)
	return n == 1
}

// receiver is a partner's server.
func (f *fixture) receiver(answer http.HandlerFunc) *httptest.Server {
	f.Helper()
	return f.receiverWith(answer, func(*httptest.Server) {})
}

func (f *fixture) receiverWith(answer http.HandlerFunc, change func(*httptest.Server)) *httptest.Server {
	f.Helper()
	s := httptest.NewUnstartedServer(answer)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	change(s)
	s.StartTLS()
	f.Cleanup(s.Close)
	f.certificates = append(
		f.certificates, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})...,
	)
	return s
}
