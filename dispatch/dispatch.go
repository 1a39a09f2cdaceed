package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/dispatch/lane"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

// Dispatch is the program. Any number of instances may run at once.
type Dispatch struct {
	config  Config
	timing  timing
	kafka   chainlog.Config
	pool    *pgxpool.Pool
	queries *db.Queries
	metrics *metrics
	log     *slog.Logger

	owner     uuid.UUID        // holds the leases; one per process
	intakes   *registry.Leases // of which one is needed, to read the referral topics
	reads     atomic.Bool      // whether this dispatcher has that lease
	marks     map[source]mark  // the newest position that it committed in each partition; used only with that lease
	endpoints *endpoints
	ledger    *ledger
	health    *health
	shared    *lane.Shared // what all lanes use

	// working ends when Run should stop; every lane runs under it. Set by Run.
	working context.Context

	mu       sync.Mutex
	lanes    map[int64]*lane.Lane
	released map[int64]time.Time // partners that were released, and until when this dispatcher does not take them
	stopping bool
	running  sync.WaitGroup // of lanes
}

// New returns a dispatcher that does nothing before Run.
func New(
	c Config, kafka chainlog.Config, pool *pgxpool.Pool, sealer *registry.Sealer, g *guard.Guard,
	reg prometheus.Registerer, log *slog.Logger,
) *Dispatch {
	queries := db.New(pool)
	d := &Dispatch{
		config: c, timing: specified(), kafka: kafka, pool: pool, queries: queries, metrics: newMetrics(reg), log: log,
		owner: uuid.New(), endpoints: &endpoints{queries: queries, sealer: sealer},
		health: newHealth(log), lanes: map[int64]*lane.Lane{}, released: map[int64]time.Time{}, marks: map[source]mark{},
	}
	leases := func(kind string) *registry.Leases {
		period := time.Duration(c.LeaseSeconds) * time.Second
		return &registry.Leases{Queries: queries, Kind: kind, Owner: d.owner, Period: period}
	}
	d.intakes = leases(registry.IntakeLease)
	d.ledger = &ledger{d: d, first: make(chan entry), repeats: make(chan entry)}
	d.shared = &lane.Shared{
		Leases: leases(registry.PartnerLease), Concurrency: c.PerPartnerConcurrency,
		Slots:  make(chan struct{}, c.Concurrency),
		Timing: lane.Specified(), Guard: g, Queries: queries, Metrics: lane.NewMetrics(reg), Log: log,
		Endpoint: d.endpoint, Record: d.ledger.record,
	}
	return d
}

// Run reads and sends until ctx ends; then it finishes the POSTs in flight,
// writes their results, drops its leases and returns nil. While Kafka or
// PostgreSQL cannot be reached it retries.
func (d *Dispatch) Run(ctx context.Context) error {
	roots, err := d.config.roots()
	if err != nil {
		return err
	}
	d.shared.Roots = roots

	// Leases are renewed until the last result is written.
	renewing, stopRenewing := context.WithCancel(context.WithoutCancel(ctx))
	var renewal sync.WaitGroup
	renewal.Go(func() { every(renewing, d.shared.Leases.Period/3, d.renew) })
	var writing sync.WaitGroup
	writing.Go(d.ledger.run)

	group, working := errgroup.WithContext(ctx)
	d.working = working
	group.Go(func() error { return d.consume(working) })
	group.Go(func() error { every(working, d.timing.scan, d.findWork); return nil })
	group.Go(func() error { every(working, d.timing.scan/2, d.runCommands); return nil })
	group.Go(func() error { every(working, d.timing.scan, d.retryDead); return nil })
	group.Go(func() error { d.listen(working); return nil })
	group.Go(func() error { every(working, announceInterval, d.rebalance); return nil })
	group.Go(func() error { every(working, statsInterval, d.measure); return nil })
	group.Go(func() error { every(working, d.timing.prune, d.prune); return nil })
	group.Go(func() error {
		return registry.Report(working, d.pool, registry.Dispatch, func() any { return d.Status() })
	})
	err = group.Wait()

	d.mu.Lock()
	d.stopping = true
	d.log.Info("stopping: finishing the POSTs in flight", "partners", len(d.lanes))
	d.mu.Unlock()
	d.running.Wait()
	d.ledger.close()
	writing.Wait()
	stopRenewing()
	renewal.Wait()
	d.deregister(ctx)
	return err
}

// deregister removes this dispatcher from the list of running dispatchers.
func (d *Dispatch) deregister(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = d.queries.Leave(ctx, d.owner) // otherwise the row expires
}

// every calls f at once and then at each interval until ctx ends.
func every(ctx context.Context, interval time.Duration, f func(context.Context)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		f(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// wake notifies the lane of a partner that it has work, and starts a lane if
// there is none.
func (d *Dispatch) wake(partner int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopping {
		return
	}
	l, ok := d.lanes[partner]
	if !ok {
		if d.wasReleased(partner) {
			return
		}
		l = lane.New(d.shared, partner)
		d.lanes[partner] = l
		d.running.Go(func() { d.send(d.working, l) })
	}
	l.Wake()
}

// send runs a lane under its lease until it is retired.
func (d *Dispatch) send(ctx context.Context, l *lane.Lane) {
	defer l.Close()
	if !d.take(ctx, l) {
		d.retire(l, true)
		return
	}
	for !d.retire(l, l.Run(ctx)) {
	}
	l.Drop(ctx)
}

// take takes the lease of a lane. If it returns false, the next scan retries.
func (d *Dispatch) take(ctx context.Context, l *lane.Lane) bool {
	taken, err := l.Take(ctx)
	d.health.setOf(ctx, "take leases", strconv.FormatInt(l.Partner(), 10), err)
	return taken
}

// retire removes a lane that has ended, or is idle and was not woken meanwhile, and
// reports whether it did.
func (d *Dispatch) retire(l *lane.Lane, ended bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !ended && l.Woken() {
		return false
	}
	delete(d.lanes, l.Partner())
	return true
}

// endpoint returns a partner's endpoint to its lane. If the secret cannot be opened
// here, the partner is released, because another dispatcher may have the key.
func (d *Dispatch) endpoint(ctx context.Context, partner int64) (lane.Endpoint, bool, error) {
	e, known, err := d.endpoints.get(ctx, partner)
	if errors.Is(err, errWrongKey) || errors.Is(err, errSealed) {
		if l, ok := d.lane(partner); ok {
			d.release(l)
		}
	}
	return e, known, err
}

// findWork wakes the lanes of partners whose work did not come through this process: events inserted or replayed
// elsewhere, or left by a dispatcher that died. A dispatcher that cannot open any secret skips the scan.
func (d *Dispatch) findWork(ctx context.Context) {
	err := d.endpoints.check(ctx)
	d.health.set(ctx, "read the endpoints", err)
	if err != nil {
		return
	}
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	rows, err := d.queries.PartnersToSend(limited, d.owner)
	d.health.set(ctx, "look for deliveries to send", err)
	if err != nil {
		return
	}
	without := map[string]bool{} // partners without a lane
	for _, r := range rows {
		_, ok := d.lane(r.PartnerID)
		if !ok {
			without[strconv.FormatInt(r.PartnerID, 10)] = true
		}
		if r.Due || !ok {
			d.wake(r.PartnerID)
		}
	}
	d.health.keepOnly("take leases", without) // drop the faults of all other partners
}

func (d *Dispatch) lane(partner int64) (*lane.Lane, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l, ok := d.lanes[partner]
	return l, ok
}

func (d *Dispatch) allLanes() []*lane.Lane {
	d.mu.Lock()
	defer d.mu.Unlock()
	lanes := make([]*lane.Lane, 0, len(d.lanes))
	for _, l := range d.lanes {
		lanes = append(lanes, l)
	}
	return lanes
}

// renew renews the leases of all lanes. It no longer fails once there is none, even if PostgreSQL cannot be reached.
func (d *Dispatch) renew(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, d.shared.Leases.Period/3)
	defer cancel()
	d.health.set(ctx, "renew leases", d.shared.Leases.Renew(limited))
}

// listenRetry is the time between attempts to listen for new deliveries.
const listenRetry = 5 * time.Second

// listen wakes the lanes whose deliveries another dispatcher inserted, until ctx ends. Partners without a lane here are
// left to that dispatcher. If a notification does not arrive, as behind a pooler, findWork runs within a second.
func (d *Dispatch) listen(ctx context.Context) {
	every(ctx, listenRetry, func(ctx context.Context) {
		const what = "listen for new deliveries"
		err := registry.ListenQueued(ctx, d.pool, func() { d.health.note(ctx, what, nil) }, func(partner int64) {
			if l, ok := d.lane(partner); ok {
				l.Wake()
			}
		})
		d.health.note(ctx, what, err)
	})
}
