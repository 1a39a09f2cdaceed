package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
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

// Dispatch is the program. Any number of them may run at once.
type Dispatch struct {
	config  Config
	timing  timing
	kafka   chainlog.Config
	pool    *pgxpool.Pool
	queries *db.Queries
	metrics *metrics
	log     *slog.Logger

	owner     uuid.UUID // of leases: one per process
	endpoints *endpoints
	ledger    *ledger
	health    *health
	shared    *lane.Shared // by the lanes

	// working ends when Run is told to: lanes live as long, whoever woke them. Set by Run.
	working context.Context

	mu       sync.Mutex
	lanes    map[int64]*lane.Lane
	yielded  map[int64]time.Time // partners given away, and until when they are left to others
	stopping bool
	running  sync.WaitGroup // of lanes
}

// New makes a dispatcher. It does nothing before Run.
func New(c Config, kafka chainlog.Config, pool *pgxpool.Pool, sealer *registry.Sealer, g *guard.Guard, reg prometheus.Registerer, log *slog.Logger) *Dispatch {
	queries := db.New(pool)
	d := &Dispatch{
		config: c, timing: specified(), kafka: kafka, pool: pool, queries: queries, metrics: newMetrics(reg), log: log,
		owner: uuid.New(), endpoints: &endpoints{queries: queries, sealer: sealer},
		health: newHealth(log), lanes: map[int64]*lane.Lane{}, yielded: map[int64]time.Time{},
	}
	d.ledger = newLedger(d)
	d.shared = &lane.Shared{
		Owner: d.owner, Lease: time.Duration(c.LeaseSeconds) * time.Second, Concurrency: c.PerPartnerConcurrency, Slots: make(chan struct{}, c.Concurrency),
		Timing: lane.Specified(), Guard: g, Queries: queries, Metrics: lane.NewMetrics(reg), Log: log,
		Endpoint: d.endpoint, Expire: d.endpoints.expire, Record: d.ledger.record,
	}
	return d
}

// Run reads and sends until ctx ends; then it finishes the POSTs under way,
// writes their results, gives its partners back and returns nil. While Kafka or
// PostgreSQL cannot be reached it waits for them.
func (d *Dispatch) Run(ctx context.Context) error {
	roots, err := d.config.roots()
	if err != nil {
		return err
	}
	d.shared.Roots = roots

	// Leases are renewed until the last result is written.
	renewing, stopRenewing := context.WithCancel(context.WithoutCancel(ctx))
	var renewal sync.WaitGroup
	renewal.Go(func() { every(renewing, d.shared.Lease/3, d.renew) })
	var writing sync.WaitGroup
	writing.Go(d.ledger.run)

	group, working := errgroup.WithContext(ctx)
	d.working = working
	group.Go(func() error { return d.consume(working) })
	group.Go(func() error { every(working, d.timing.scan, d.look); return nil })
	group.Go(func() error { every(working, d.timing.scan/2, d.obey); return nil })
	group.Go(func() error { every(working, d.timing.scan, d.retryDead); return nil })
	group.Go(func() error { every(working, d.timing.scan, d.adopt); return nil })
	group.Go(func() error { every(working, announceInterval, d.share); return nil })
	group.Go(func() error { every(working, statsInterval, d.measure); return nil })
	group.Go(func() error { every(working, d.timing.forget, d.forget); return nil })
	group.Go(func() error {
		return registry.Report(working, d.pool, registry.Dispatch, func() any { return d.Status() })
	})
	err = group.Wait()

	d.mu.Lock()
	d.stopping = true
	d.log.Info("stopping: finishing what is under way", "partners", len(d.lanes))
	d.mu.Unlock()
	d.running.Wait()
	d.ledger.close()
	writing.Wait()
	stopRenewing()
	renewal.Wait()
	d.leave(ctx)
	return err
}

// leave takes this dispatcher off the list of those that run.
func (d *Dispatch) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = d.queries.Leave(ctx, d.owner) // it runs out by itself
}

// every calls f at once and then in intervals until ctx ends.
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

// wake tells the lane of a partner that something came, and starts one where
// there is none.
func (d *Dispatch) wake(partner int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopping {
		return
	}
	l, ok := d.lanes[partner]
	if !ok {
		if d.givenAway(partner) {
			return
		}
		l = lane.New(d.shared, partner)
		d.lanes[partner] = l
		d.running.Go(func() { d.send(d.working, l) })
	}
	l.Wake()
}

// send runs a lane under its lease until it is off the list.
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

// take takes the lease of a lane; false: there is none to be had, and look will try
// again.
func (d *Dispatch) take(ctx context.Context, l *lane.Lane) bool {
	taken, err := l.Take(ctx)
	if ctx.Err() == nil {
		d.health.setOf("take leases", strconv.FormatInt(l.Partner(), 10), err)
	}
	return taken
}

// retire takes a lane off the list: one that has ended, or is idle, unless something
// came meanwhile.
func (d *Dispatch) retire(l *lane.Lane, ended bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !ended && l.Woken() {
		return false
	}
	delete(d.lanes, l.Partner())
	return true
}

// endpoint is what lanes are told of a partner. One whose secret cannot be opened here
// may have a dispatcher with another key, and is given away.
func (d *Dispatch) endpoint(ctx context.Context, partner int64) (lane.Endpoint, bool, error) {
	e, known, err := d.endpoints.get(ctx, partner)
	if errors.Is(err, errWrongKey) || errors.Is(err, errSealed) {
		if l, ok := d.lane(partner); ok {
			d.giveAway(l)
		}
	}
	return e, known, err
}

// look finds partners with work that came in another way than through this
// process: inserted or replayed elsewhere, or left by a dispatcher that died. One
// that cannot sign takes none.
func (d *Dispatch) look(ctx context.Context) {
	err := d.endpoints.check(ctx)
	if ctx.Err() == nil {
		d.health.set("read the endpoints", err)
	}
	if err != nil {
		return
	}
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	rows, err := d.queries.PartnersToSend(limited, d.owner)
	d.health.set("look for deliveries to send", err)
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
	d.health.keep("take leases", without) // of others an older failure says nothing about now
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

// renew keeps the leases of all lanes.
func (d *Dispatch) renew(ctx context.Context) {
	lanes := slices.DeleteFunc(d.allLanes(), func(l *lane.Lane) bool { return !l.Leased() })
	if len(lanes) == 0 {
		d.health.set("renew leases", nil) // an older failure says nothing of now
		return
	}
	ctx, cancel := context.WithTimeout(ctx, d.shared.Lease/3)
	defer cancel()
	d.health.set("renew leases", d.keep(ctx, lanes))
}

// keep renews the leases of these lanes. One whose lease was taken by another
// dispatcher is told to end; one that has ended meanwhile gave its lease back
// itself.
func (d *Dispatch) keep(ctx context.Context, lanes []*lane.Lane) error {
	p := db.RenewLeasesParams{Owner: d.owner, Milliseconds: d.shared.Lease.Milliseconds()}
	lost := map[int64]*lane.Lane{}
	for _, l := range lanes {
		p.PartnerIds, p.Fences = append(p.PartnerIds, l.Partner()), append(p.Fences, l.Fence())
		lost[l.Partner()] = l
	}
	until := time.Now().Add(d.shared.Lease)
	kept, err := d.queries.RenewLeases(ctx, p)
	if err != nil {
		return err
	}
	for _, p := range kept {
		lost[p].Hold(until)
		delete(lost, p)
	}
	for _, l := range lost {
		if l.Leased() {
			l.Lose()
		}
	}
	return nil
}
