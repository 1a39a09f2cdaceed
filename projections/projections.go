package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
)

// Projections keeps the live generation up to date with the log of one chain.
type Projections struct {
	config     Config
	chainID    uint64
	kafka      chainlog.Config
	clickhouse readmodel.Config
	pool       *pgxpool.Pool
	metrics    *metrics
	log        *slog.Logger
	board      board
	every      time.Duration // between looks at the end of the log
	audit      time.Duration // between proofs that the generation is contiguous
	conn       driver.Conn
	open       func() (driver.Conn, error)
}

// New makes a projector. It does nothing before Run.
func New(cfg Config, chainID uint64, kafka chainlog.Config, ch readmodel.Config, pool *pgxpool.Pool, reg prometheus.Registerer, log *slog.Logger) *Projections {
	p := &Projections{config: cfg, chainID: chainID, kafka: kafka, clickhouse: ch, pool: pool,
		metrics: newMetrics(reg), log: log, every: time.Second, audit: time.Hour, open: ch.Open}
	p.board.set(Starting, nil)
	return p
}

// Run writes the live generation until ctx ends, and then returns nil with no
// insert under way. It returns an error when an engine cannot be reached at
// the start, and when going on needs a person: a log or a generation that is
// broken, or that do not belong together. An engine that goes away later is
// waited for.
func (p *Projections) Run(ctx context.Context) error {
	conn, err := p.open()
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
	group.Go(func() error { return p.lead(ctx) })
	return group.Wait()
}

// reach checks that the engines answer and are what navlog needs.
func (p *Projections) reach(ctx context.Context) error {
	if err := readmodel.CheckServer(ctx, p.conn); err != nil {
		return err
	}
	client, err := kgo.NewClient(p.kafka.Options()...)
	if err != nil {
		return fmt.Errorf("make a Kafka client: %w", err)
	}
	defer client.Close()
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := client.Ping(limited); err != nil {
		return fmt.Errorf("reach Kafka at %v: %w; is kafka.brokers right and the broker up?", p.kafka.Brokers, err)
	}
	return nil
}

// lead takes the lease and writes, again and again until ctx ends or going on
// needs a person.
func (p *Projections) lead(ctx context.Context) error {
	const shortest, longest = 100 * time.Millisecond, 5 * time.Second
	for wait := shortest; ; wait = min(2*wait, longest) {
		began := time.Now()
		err := p.term(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if permanent(err) {
			p.board.set(Bad, err)
			return err
		}
		p.board.set(Retrying, err)
		p.log.Warn("the projection stopped and begins again", "error", err)
		if time.Since(began) > time.Minute {
			wait = shortest
		}
		if pause(ctx, wait) != nil {
			return nil
		}
	}
}

// term is one time of holding the lease: from asking for it to the first error.
func (p *Projections) term(ctx context.Context) error {
	p.board.set(Waiting, nil)
	origin, err := p.origin(ctx)
	if err != nil {
		return err
	}
	g, err := p.liveGeneration(ctx, origin)
	if err != nil {
		return err
	}
	lease, err := acquire(ctx, p.pool, g.id, func() {
		p.board.set(StandingBy, nil)
		p.log.Info("another instance writes the generation", "generation", g.id)
	})
	if err != nil {
		return err
	}
	defer lease.release()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return lease.watch(ctx) })
	group.Go(func() error { return p.follow(ctx, g) })
	return group.Wait()
}

// follow opens the generation and writes what the log has, and will have. It
// never returns nil.
func (p *Projections) follow(ctx context.Context, g generation) error {
	if err := readmodel.Create(ctx, p.conn, g.database); err != nil {
		return err
	}
	if err := readmodel.CheckTables(ctx, p.conn, g.database); err != nil {
		return err
	}
	if err := p.prove(ctx, g); err != nil {
		return err
	}
	w, err := openWriter(ctx, p.conn, g.database, p.config.StateEntries, p.metrics, p.log)
	if err != nil {
		return err
	}
	offset, err := locate(ctx, p.chainID, w.position, p.kafka.Options())
	if err != nil {
		return err
	}
	reader, err := chainlog.NewReader(p.chainID, chainlog.Position{Seq: w.position, Offset: offset}, p.kafka.Options()...)
	if err != nil {
		return err
	}
	defer reader.Close()
	p.board.open(g.id, w.position)
	p.log.Info("writing", "generation", g.id, "database", g.database, "after", w.position)
	f := newFeed(reader, p.config.MaxRows)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return f.run(ctx) })
	group.Go(func() error { return p.write(ctx, g, w, f) })
	return group.Wait()
}

// write writes batch after batch, and proves the generation now and then.
func (p *Projections) write(ctx context.Context, g generation, w *writer, f *feed) error {
	proven := time.Now()
	for {
		batch, err := f.next(ctx, p.config.MaxRows, p.config.Linger)
		if err != nil {
			return err
		}
		if err := w.write(ctx, batch); err != nil {
			return err
		}
		p.board.wrote(batch)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Since(proven) > p.audit {
			if err := p.prove(ctx, g); err != nil {
				return err
			}
			proven = time.Now()
		}
	}
}

// prove checks that the generation has one row for every seq. One that has
// not is marked bad.
func (p *Projections) prove(ctx context.Context, g generation) error {
	err := checkContiguous(ctx, p.conn, g.database)
	var broken *brokenError
	if !errors.As(err, &broken) {
		return err
	}
	if err := p.markBad(ctx, g.id); err != nil {
		return err
	}
	return &permanentError{broken}
}
