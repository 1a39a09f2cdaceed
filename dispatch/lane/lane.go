package lane

import (
	"context"
	"crypto/x509"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

// Shared holds what all lanes of a dispatcher share, and the two functions that they
// call in it.
type Shared struct {
	Leases      *registry.Leases // of partners; the dispatcher is their owner and renews them
	Concurrency int              // POSTs to one partner at a time
	Slots       chan struct{}    // one per POST in flight, over all partners
	Timing      Timing
	Guard       *guard.Guard
	Roots       *x509.CertPool // trusted for receivers; nil: the system's
	Queries     *db.Queries
	Metrics     *Metrics
	Log         *slog.Logger

	// Endpoint returns the newest endpoint of a partner, and false if the partner is
	// unknown or disabled, or has no URL. It may be a second old.
	Endpoint func(ctx context.Context, partner int64) (Endpoint, bool, error)
	// Record writes the result of an attempt, retrying as long as needed, and reports whether the fence still held.
	// Some time after ctx has ended, it stops retrying.
	Record func(ctx context.Context, a Attempt) bool
}

// Lane sends the deliveries of one partner. Its fields belong to the goroutine of Run, unless noted otherwise.
type Lane struct {
	shared  *Shared
	partner int64
	woken   chan struct{} // signals new work; has a capacity of one
	ended   chan flight   // attempts whose result is written

	lease atomic.Pointer[registry.Lease] // set by Take, and never changed
	// yielded: the partner should move to another dispatcher; set by Yield.
	yielded atomic.Bool

	queue     []db.DueDeliveriesRow  // due, and not in flight
	read      time.Time              // when the queue was read
	inFlight  map[uuid.UUID]struct{} // events whose POST is in flight
	nextFetch time.Time              // when to read deliveries; zero: nothing is pending
	busy      time.Time              // when the lane last had something to do
	version   int64                  // of the current endpoint
	url       string                 // of that version; the breaker belongs to it
	breaker   *breaker               // nil until the first endpoint is known
	poster    *poster                // with connections and certificates of the current endpoint only
	unsaved   change                 // of the breaker, not in PostgreSQL yet
	trouble   string                 // the error that was logged last
	aside     bool                   // pending deliveries were parked when the lane became held or shut
}

// New returns the lane of a partner, without a lease.
func New(s *Shared, partner int64) *Lane {
	now := time.Now()
	return &Lane{
		shared: s, partner: partner, woken: make(chan struct{}, 1), ended: make(chan flight),
		inFlight: map[uuid.UUID]struct{}{}, nextFetch: now, busy: now,
		poster: newPoster(s.Guard, s.Roots, nil, s.Concurrency, s.Timing.Deadline),
	}
}

// Partner returns the partner whose deliveries the lane sends.
func (l *Lane) Partner() int64 { return l.partner }

// Run sends until the lane has been idle for a while, and returns false; it may be run
// again. If the lane must end, because its lease is lost, its partner is released or
// ctx ends, Run lets the POSTs in flight finish and returns true.
func (l *Lane) Run(ctx context.Context) (ended bool) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for !l.mustEnd(ctx) {
		wait, err := l.planOrRetry(ctx)
		timer.Reset(wait)
		var slots chan<- struct{} // nil is never ready
		if err == nil && l.canSend() {
			slots = l.shared.Slots
		}
		select {
		case <-ctx.Done():
		case slots <- struct{}{}:
			l.send(ctx)
		case f := <-l.ended:
			l.finish(f)
		case <-l.woken:
			l.nextFetch = time.Now()
		case <-l.lease.Load().Lost():
		case <-timer.C:
		}
		if l.idleLongEnough() {
			return false
		}
	}
	for len(l.inFlight) > 0 {
		l.finish(<-l.ended)
	}
	_ = l.save(context.WithoutCancel(ctx)) // the next lane starts without an unsaved change
	if !l.Leased() {
		l.shared.Metrics.LostLeases.Inc()
	}
	return true
}

// Wake makes the lane look for deliveries at once.
func (l *Lane) Wake() {
	select {
	case l.woken <- struct{}{}:
	default:
	}
}

// Woken reports whether Wake was called since the lane last looked.
func (l *Lane) Woken() bool { return len(l.woken) > 0 }

// Close closes the idle connections of a lane that has ended.
func (l *Lane) Close() { l.poster.transport.CloseIdleConnections() }

// mustEnd reports whether the lane may start nothing more.
func (l *Lane) mustEnd(ctx context.Context) bool {
	return ctx.Err() != nil || !l.Leased() || l.yielded.Load()
}

// planOrRetry calls plan and, if it fails, schedules the next attempt. It returns how long
// nothing will change by itself.
func (l *Lane) planOrRetry(ctx context.Context) (time.Duration, error) {
	wait, err := l.plan(ctx)
	if err != nil {
		l.queue, l.nextFetch, wait = nil, time.Now(), l.shared.Timing.Scan
	}
	l.logObstacle(ctx, err)
	return wait, err
}

// logObstacle logs what keeps the lane from sending, once.
func (l *Lane) logObstacle(ctx context.Context, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != l.trouble && ctx.Err() == nil {
		l.shared.Log.Warn("cannot send to a partner, retrying", "partner", l.partner, "error", err)
	}
	l.trouble = text
}

// idleLongEnough reports whether the lane has been idle for so long that the breaker's window is
// empty too.
func (l *Lane) idleLongEnough() bool {
	if len(l.queue) > 0 || len(l.inFlight) > 0 || !l.nextFetch.IsZero() || l.unsaved != unchanged || l.aside {
		l.busy = time.Now()
		return false
	}
	return time.Since(l.busy) >= l.shared.Timing.Idle
}

// canSend reports whether a POST may start. It needs a plan: the queue is empty while the
// breaker admits nothing.
func (l *Lane) canSend() bool {
	return len(l.queue) > 0 && l.Safe() && len(l.inFlight) < l.permits()
}

func (l *Lane) permits() int {
	n, _ := l.breaker.permits()
	return n
}

// maxWait returns how long at most the partner's situation lasts by itself: until the breaker's opening ends, and not
// longer than until the endpoint is read again.
func (l *Lane) maxWait() time.Duration {
	if _, closedFor := l.breaker.permits(); closedFor > 0 {
		return min(closedFor, l.shared.Timing.Scan)
	}
	return l.shared.Timing.Scan
}

// plan updates the lane to its endpoint and breaker, acts on the partner's situation, one of those in the package
// comment, and returns how long nothing will change by itself. A silent PostgreSQL connection delays it by
// Timing.Database at most.
func (l *Lane) plan(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, l.shared.Timing.Database)
	defer cancel()
	if err := l.save(ctx); err != nil {
		return 0, err
	}
	e, known, err := l.shared.Endpoint(ctx, l.partner)
	if err != nil {
		return 0, err
	}
	if !known { // parked deliveries end too
		return l.shared.Timing.Scan, l.giveUp(ctx, l.due() || l.aside)
	}
	if err := l.follow(ctx, e); err != nil {
		return 0, err
	}
	wait := l.maxWait()
	if e.Held || l.permits() == 0 { // park only once; parked deliveries are not read
		return wait, l.park(ctx, l.due() || !l.aside)
	}
	if err := l.fetchDue(ctx); err != nil {
		return 0, err
	}
	return l.untilNext(wait), nil
}

// send starts the next attempt; it owns a slot. It checks the queue, endpoint and lease again, because the lane may
// have waited long for the slot.
func (l *Lane) send(ctx context.Context) {
	l.refresh(ctx)
	e, known, err := l.shared.Endpoint(ctx, l.partner)
	if err != nil || !known || e.Held || l.version != e.Version || !l.canSend() {
		<-l.shared.Slots
		return
	}
	f := flight{
		attempt: Attempt{Partner: l.partner, Fence: l.fence(), Delivery: l.queue[0], Endpoint: e}, poster: l.poster,
		breaker: l.breaker,
	}
	f.done, f.probe = l.breaker.start(l.queue[0].EventID)
	l.queue = l.queue[1:]
	l.inFlight[f.attempt.Delivery.EventID] = struct{}{}
	if f.probe {
		l.unsaved = probing
	}
	go func() { l.ended <- l.shared.try(ctx, f) }()
}

// finish handles the end of an attempt.
func (l *Lane) finish(f flight) {
	delete(l.inFlight, f.attempt.Delivery.EventID)
	l.busy = time.Now()
	if f.poster != l.poster {
		f.poster.transport.CloseIdleConnections() // nothing else uses its connections
	}
	if change := f.done(f.attempt.Result); f.breaker == l.breaker && change != unchanged {
		l.unsaved = change
		l.shared.Log.Info("breaker of partner "+change.String(), "partner", l.partner, "openFor", l.breaker.openFor)
	}
	if f.fenced {
		l.lease.Load().Lose()
	}
	if f.attempt.Verdict.Finished {
		return
	}
	if at := time.Now().Add(f.attempt.Verdict.Wait + time.Millisecond); l.nextFetch.IsZero() || at.Before(l.nextFetch) {
		l.nextFetch = at
	}
}
