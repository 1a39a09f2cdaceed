package projections

import (
	"context"
	"log/slog"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// writerLease is how long the lease of a generation holds without renewal. The successor of a writer that crashed waits
// that long, and a shorter outage of PostgreSQL interrupts no writer.
const writerLease = 5 * time.Second

// newLeases returns the leases of generations of a new owner.
func newLeases(pool *pgxpool.Pool) *registry.Leases {
	return &registry.Leases{
		Queries: db.New(pool), Kind: registry.GenerationLease, Owner: uuid.New(), Period: writerLease,
	}
}

// stores are the log, ClickHouse, and PostgreSQL with the list of generations.
type stores struct {
	chainID    uint64
	kafka      chainlog.Config
	clickhouse readmodel.Config
	conn       driver.Conn // to ClickHouse, without a database
	pool       *pgxpool.Pool
}

// Projections keeps every generation that it can write up to date with the log of one chain: the live one, standby
// ones and those being built.
type Projections struct {
	stores
	config        Config
	leases        *registry.Leases
	reg           prometheus.Registerer
	log           *slog.Logger
	every         time.Duration // between checks of the end of the log, and of ingest's coverage
	hanging       time.Duration // how long a transaction of the log may be open
	audit         time.Duration // between audits of a generation that is being written
	repairs       time.Duration // between searches for broken parts
	reopen        time.Duration // until a generation with a permanent fault is opened again, for the first time
	mergeInterval time.Duration // between searches for tables that are worth merging
	mergeMinRows  uint64        // rows of such a table
	open          func(database string) (driver.Conn, error)
	openPatient   func(database string) (driver.Conn, error)
	roster        roster
}

// New returns a projector. It does nothing before Run.
func New(cfg Config, chainID uint64, kafka chainlog.Config, ch readmodel.Config, pool *pgxpool.Pool,
	reg prometheus.Registerer, log *slog.Logger) *Projections {
	p := &Projections{stores: stores{chainID: chainID, kafka: kafka.Tracked(), clickhouse: ch, pool: pool}, config: cfg,
		leases: newLeases(pool), reg: reg, log: log, every: time.Second, hanging: chainlog.HangingAfter, audit: time.Hour,
		repairs: repairEvery, reopen: 10 * time.Second, mergeInterval: time.Minute, mergeMinRows: 100_000,
		open: ch.Open, openPatient: ch.OpenPatient}
	p.roster.idleBoard.set(Starting, nil)
	return p
}

// Run writes the generations until ctx ends, and then returns nil with no insert under way. It returns an error if an
// engine is unreachable at the start; it waits for an engine that becomes unavailable later. It also waits if an
// operator must act: if the log or the live generation is broken, or they do not belong together. Then Ready returns
// the reason, and Run does not end, because this projector builds the generation that a rebuild creates.
func (p *Projections) Run(ctx context.Context) error {
	conn, err := p.open("")
	if err != nil {
		return err
	}
	defer conn.Close()
	p.conn = conn
	if err := p.reach(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return registry.Report(ctx, p.pool, registry.Project, func() any { return p.Status() })
	})
	group.Go(func() error { return p.observe(ctx) })
	group.Go(func() error { p.supervise(ctx); return nil })
	return group.Wait()
}

// reachTimeout is the time limit for the first response of Kafka.
const reachTimeout = 10 * time.Second

// reach checks that the engines respond and meet navlog's requirements.
func (p *Projections) reach(ctx context.Context) error {
	if err := readmodel.CheckServer(ctx, p.conn); err != nil {
		return err
	}
	_, _, err := p.kafka.Reach(ctx, reachTimeout)
	return err
}
