package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// keeper keeps one generation up to date with the log. It shares nothing with
// the keepers of other generations that one of them could use up: it has a
// connection pool, a lease, a status and metrics of its own.
type keeper struct {
	*Projections
	generation
	conn    driver.Conn
	reg     prometheus.Registerer
	metrics *metrics
	log     *slog.Logger
	board   board
	wrote   chan struct{} // there is something to announce; it holds one
	cancel  context.CancelFunc
	done    chan struct{} // closed when it has ended
	err     error         // why it ended; nil: it was told to. Read after done.
}

// keep starts a keeper. ended gets a word when it ends by itself.
func (p *Projections) keep(ctx context.Context, g generation, ended chan<- struct{}) (*keeper, error) {
	conn, err := p.open()
	if err != nil {
		return nil, err
	}
	reg := prometheus.WrapRegistererWith(prometheus.Labels{"generation": fmt.Sprint(g.id)}, p.reg)
	k := &keeper{Projections: p, generation: g, conn: conn, reg: reg, metrics: newMetrics(reg),
		log: p.log.With("generation", g.id), wrote: make(chan struct{}, 1), done: make(chan struct{})}
	k.board.begin(g.id)
	ctx, k.cancel = context.WithCancel(ctx)
	go func() {
		defer close(k.done)
		defer conn.Close()
		if k.err = k.run(ctx); k.err == nil {
			return
		}
		k.log.Error("the generation is not written any more", "error", k.err)
		select {
		case ended <- struct{}{}:
		default: // there is a word already
		}
	}()
	return k, nil
}

// stop ends the keeper, with no insert under way.
func (k *keeper) stop() {
	k.cancel()
	<-k.done
}

// fault is why the keeper ended by itself, nil while it runs.
func (k *keeper) fault() error {
	select {
	case <-k.done:
		return k.err
	default:
		return nil
	}
}

// run takes the lease and writes, again and again until ctx ends or going on
// needs a person.
func (k *keeper) run(ctx context.Context) error {
	const shortest, longest = 100 * time.Millisecond, 5 * time.Second
	for wait := shortest; ; wait = min(2*wait, longest) {
		began := time.Now()
		err := k.term(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if permanent(err) {
			k.board.set(Bad, err)
			return err
		}
		k.board.set(Retrying, err)
		k.log.Warn("the projection stopped and begins again", "error", err)
		if time.Since(began) > time.Minute {
			wait = shortest
		}
		if pause(ctx, wait) != nil {
			return nil
		}
	}
}

// term is one time of holding the lease: from asking for it to the first error.
func (k *keeper) term(ctx context.Context) error {
	origin, err := k.origin(ctx)
	if err != nil {
		return err
	}
	if err := k.fits(k.generation, origin); err != nil {
		return err
	}
	lease, err := acquire(ctx, k.pool, k.id, func() {
		k.board.set(StandingBy, nil)
		k.log.Info("another instance writes the generation")
	})
	if err != nil {
		return err
	}
	defer lease.release()
	if err := k.wanted(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return lease.watch(ctx) })
	group.Go(func() error { return k.follow(ctx) })
	return group.Wait()
}

// wanted refuses to write a generation that was dropped or marked bad: its
// database may be gone, and must not come back. Whoever drops it takes the
// lease first, so that this holds for as long as the lease does.
func (k *keeper) wanted(ctx context.Context) error {
	all, err := db.New(k.pool).ListGenerations(ctx)
	if err != nil {
		return fmt.Errorf("list the generations in PostgreSQL: %w", err)
	}
	for _, g := range all {
		if g.ID == k.id && writable(g.State) {
			return nil
		}
	}
	return &permanentError{fmt.Errorf("generation %d is no longer to be written: it was dropped or marked bad", k.id)}
}

// follow opens the generation and writes what the log has, and will have. It
// never returns nil.
func (k *keeper) follow(ctx context.Context) error {
	if err := k.clickhouse.Create(ctx, k.conn, k.database); err != nil {
		return err
	}
	if err := k.clickhouse.CheckTables(ctx, k.conn, k.database); err != nil {
		return err
	}
	// First of all: what is folded from rows that are not all there would be wrong,
	// or stop with an error that tells of something else.
	if err := k.judge(ctx, k.audited(ctx)); err != nil {
		return err
	}
	w, err := openWriter(ctx, k.conn, k.database, k.share, k.metrics, k.log)
	if err != nil {
		return err
	}
	w.across(k.clickhouse.Processes())
	last, err := locate(ctx, k.chainID, w.position, k.kafka.Options())
	if err != nil {
		return err
	}
	if err := w.endsWith(ctx, &last); err != nil {
		return err
	}
	reader, err := chainlog.NewReader(k.chainID, chainlog.Position{Seq: w.position, Offset: last.offset}, k.kafka.Options()...)
	if err != nil {
		return err
	}
	defer reader.Close()
	k.board.open(k.id, w.position)
	k.log.Info("writing", "database", k.database, "after", w.position)
	f := newFeed(reader, k.chainID, k.config.MaxRows)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return f.run(ctx) })
	group.Go(func() error { return k.write(ctx, w, f) })
	group.Go(func() error { return k.announce(ctx) })
	group.Go(func() error { return k.merge(ctx) })
	group.Go(func() error { return k.proveAgain(ctx) })
	return group.Wait()
}

// write folds batch after batch while the one before is inserted.
func (k *keeper) write(ctx context.Context, w *writer, f *feed) error {
	ready := make(chan *folded)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		for {
			facts, err := f.next(ctx, k.config.MaxRows, k.config.Linger)
			if err != nil {
				return err
			}
			k.board.took()
			batch, err := w.fold(ctx, facts)
			if err != nil {
				return err
			}
			select {
			case ready <- batch:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	group.Go(func() error { return k.insert(ctx, w, ready) })
	return group.Wait()
}

func (k *keeper) insert(ctx context.Context, w *writer, ready <-chan *folded) error {
	for {
		var batch *folded
		select {
		case batch = <-ready:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := w.insert(ctx, batch); err != nil {
			return err
		}
		k.board.wrote(batch.wrote)
		select {
		case k.wrote <- struct{}{}:
		default: // what is announced next is this as well
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// announceTimeout bounds an announcement that PostgreSQL does not take.
const announceTimeout = time.Second

// announce tells query that there are new rows, until ctx ends. One that fails
// is no loss: query looks by itself as well.
func (k *keeper) announce(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-k.wrote:
		}
		limited, cancel := context.WithTimeout(ctx, announceTimeout)
		if err := registry.AnnounceWritten(limited, k.pool, k.id); err != nil && ctx.Err() == nil {
			k.log.Debug("an announcement was not taken", "error", err)
		}
		cancel()
	}
}

// auditTimeout bounds an audit, which takes the longer the more rows there are.
const auditTimeout = 10 * time.Minute

// audited audits the generation for as long as that may take.
func (k *keeper) audited(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, auditTimeout)
	defer cancel()
	return audit(ctx, k.conn, k.database)
}

// proveAgain audits the generation now and then beside the writer, until ctx ends
// or the generation is broken. An audit that cannot be made is an alarm and no
// more: the rows are none the worse for it.
func (k *keeper) proveAgain(ctx context.Context) error {
	for {
		if err := pause(ctx, k.audit); err != nil {
			return err
		}
		err := k.audited(sparing(ctx))
		broken := new(brokenError)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			k.metrics.audits.WithLabelValues("sound").Inc()
		case errors.As(err, &broken):
			return k.judge(ctx, err)
		default:
			k.metrics.audits.WithLabelValues("failed").Inc()
			k.log.Error("the generation is written and could not be audited, trying again later", "error", err, "in", k.audit)
		}
	}
}

// sparing asks with one thread, and leaves the others to the writer and to query.
func sparing(ctx context.Context) context.Context {
	return clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"max_threads": 1}))
}

// judge says of an audit's verdict what it means for the keeper: a broken
// generation is marked bad and not written any more.
func (k *keeper) judge(ctx context.Context, verdict error) error {
	err := condemn(ctx, k.pool, k.id, verdict)
	if broken := new(brokenError); errors.As(err, &broken) {
		return &permanentError{err}
	}
	return err
}
