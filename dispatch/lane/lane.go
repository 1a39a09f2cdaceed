package lane

import (
	"context"
	"crypto/x509"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/navlog/navlog/schemas/registry/db"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

// Shared is what all lanes of a dispatcher have in common, and the three things that
// they ask of it.
type Shared struct {
	Owner       uuid.UUID     // of leases: the dispatcher
	Lease       time.Duration // how long one holds without being renewed
	Concurrency int           // POSTs to one partner at a time
	Slots       chan struct{} // one per POST under way, over all partners
	Timing      Timing
	Guard       *guard.Guard
	Roots       *x509.CertPool // that receivers' certificates lead to; nil: the system's
	Queries     *db.Queries
	Metrics     *Metrics
	Log         *slog.Logger

	// Endpoint gives the newest endpoint of a partner: false for one that is unknown,
	// disabled or has no URL. What it gives may be a second old.
	Endpoint func(ctx context.Context, partner int64) (Endpoint, bool, error)
	// Expire makes the next Endpoint be read again.
	Expire func()
	// Record writes what came of an attempt, however long that takes, and tells whether
	// the fence still held. It gives up some time after the end of ctx.
	Record func(ctx context.Context, a Attempt) bool
}

// Lane sends the deliveries of one partner, as the package says. Its fields belong to
// the goroutine of Run, except where it says otherwise.
type Lane struct {
	shared  *Shared
	partner int64
	woken   chan struct{} // something came; holds one
	ended   chan flight   // whose result is written

	fence int64        // of the lease; set before held, never changed
	held  atomic.Int64 // end of the lease in Unix nanoseconds, 0 before it is taken and after drop; also set by renew
	lost  atomic.Bool  // another dispatcher has it; also set by renew
	// yielded: it is to be given to another dispatcher; set by yield.
	yielded atomic.Bool

	queue    []db.DueDeliveriesRow  // due, and not under way
	read     time.Time              // when the queue was
	inFlight map[uuid.UUID]struct{} // under way
	look     time.Time              // when to read deliveries; zero: nothing waits
	busy     time.Time              // when there was last something to do
	version  int64                  // of the endpoint that is followed
	url      string                 // of that version; the breaker belongs to it
	breaker  *breaker               // nil until the first endpoint is known
	poster   *poster                // whose connections are this partner's alone
	unsaved  change                 // of the breaker, not in PostgreSQL yet
	trouble  string                 // what was last complained about
	aside    bool                   // what waited was parked when the lane became held or shut
}

// New makes the lane of a partner. It has no lease yet.
func New(s *Shared, partner int64) *Lane {
	now := time.Now()
	return &Lane{
		shared: s, partner: partner, woken: make(chan struct{}, 1), ended: make(chan flight),
		inFlight: map[uuid.UUID]struct{}{}, look: now, busy: now,
		poster: newPoster(s.Guard, s.Roots, s.Concurrency, s.Timing.Deadline),
	}
}

// Partner is whose deliveries the lane sends.
func (l *Lane) Partner() int64 { return l.partner }

// Run sends until nothing has waited for a while, or until the lane must end: its lease
// is lost, its partner is to be another's, or ctx ends. Then it lets the POSTs under way
// finish and says that it has ended; one that is idle may be run again.
func (l *Lane) Run(ctx context.Context) (ended bool) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for !l.mustEnd(ctx) {
		wait, err := l.turn(ctx)
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case l.slotWhere(err == nil && l.canSend()) <- struct{}{}:
			l.send(ctx)
		case f := <-l.ended:
			l.finish(f)
		case <-l.woken:
			l.look = time.Now()
		case <-timer.C:
		}
		if l.over() {
			return false
		}
	}
	for len(l.inFlight) > 0 {
		l.finish(<-l.ended)
	}
	_ = l.save(context.WithoutCancel(ctx)) // what is not saved begins anew with the next lane
	return true
}

// Wake tells the lane that something came.
func (l *Lane) Wake() {
	select {
	case l.woken <- struct{}{}:
	default:
	}
}

// Woken tells whether something came that it has not looked at.
func (l *Lane) Woken() bool { return len(l.woken) > 0 }

// Close gives up what an ended lane leaves open: connections that are kept.
func (l *Lane) Close() { l.poster.transport.CloseIdleConnections() }

// mustEnd tells whether nothing more may begin here, whatever waits.
func (l *Lane) mustEnd(ctx context.Context) bool {
	return ctx.Err() != nil || l.lost.Load() || l.yielded.Load()
}

// turn plans, and where that fails begins anew a little later. It says how long
// nothing will change by itself.
func (l *Lane) turn(ctx context.Context) (time.Duration, error) {
	wait, err := l.plan(ctx)
	if err != nil {
		l.queue, l.look, wait = nil, time.Now(), l.shared.Timing.Scan
	}
	l.complain(ctx, err)
	return wait, err
}

// slotWhere gives the slots to wait for one where a POST could begin, and none, which
// is never ready, where not.
func (l *Lane) slotWhere(can bool) chan<- struct{} {
	if !can {
		return nil
	}
	return l.shared.Slots
}

// complain logs what keeps the lane from sending, once.
func (l *Lane) complain(ctx context.Context, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != l.trouble && ctx.Err() == nil {
		l.shared.Log.Warn("cannot send to a partner, trying again", "partner", l.partner, "error", err)
	}
	l.trouble = text
}

// over tells whether nothing has waited for so long that the breaker's window
// is empty too.
func (l *Lane) over() bool {
	if len(l.queue) > 0 || len(l.inFlight) > 0 || !l.look.IsZero() || l.unsaved != unchanged || l.aside {
		l.busy = time.Now()
		return false
	}
	return time.Since(l.busy) >= l.shared.Timing.Idle
}

// canSend is about what plan prepared: the queue is empty while the breaker
// lets nothing through.
func (l *Lane) canSend() bool {
	return len(l.queue) > 0 && l.Safe() && len(l.inFlight) < l.permits()
}

func (l *Lane) permits() int {
	n, _ := l.breaker.permits()
	return n
}

// situation is what the partner is in; the package comment has them.
type situation int

const (
	unreachable situation = iota
	held
	shut
	open
)

// situation decides which one it is, and for how long at most it lasts by itself. The
// breaker is that of e. Of a breaker whose probe is under way nobody knows how long.
func (l *Lane) situation(e Endpoint, known bool) (situation, time.Duration) {
	longest := l.shared.Timing.Scan // so that a new URL is noticed
	if !known {
		return unreachable, longest
	}
	if e.Held {
		return held, longest
	}
	permits, closedFor := l.breaker.permits()
	switch {
	case permits > 0:
		return open, longest
	case closedFor > 0:
		return shut, min(closedFor, longest)
	}
	return shut, longest
}

// plan brings the lane up to date with its endpoint and breaker, does what the
// situation asks for, and says how long nothing will change by itself. A connection
// that has gone silent holds it up for timing.Database at most.
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
	if known {
		if err := l.follow(ctx, e); err != nil {
			return 0, err
		}
	}
	now, lasts := l.situation(e, known)
	switch now {
	case unreachable: // what was put aside ends too
		return lasts, l.giveUp(ctx, l.due() || l.aside)
	case held, shut: // what was put aside already waits without being looked at
		return lasts, l.park(ctx, l.due() || !l.aside)
	}
	if err := l.fetchDue(ctx); err != nil {
		return 0, err
	}
	return l.untilNext(lasts), nil
}

// send starts the next attempt; it owns a slot. What is to be sent, endpoint, lease and
// breaker are looked at again, in this order, for the slot may have been waited for.
func (l *Lane) send(ctx context.Context) {
	l.refresh(ctx)
	e, known, err := l.shared.Endpoint(ctx, l.partner)
	if err != nil || !known || e.Held || e.Version != l.version || !l.Safe() || len(l.queue) == 0 {
		<-l.shared.Slots
		return
	}
	done, probe, ok := l.breaker.allow(l.queue[0].EventID)
	if !ok {
		<-l.shared.Slots
		return
	}
	f := flight{attempt: Attempt{Partner: l.partner, Fence: l.fence, Delivery: l.queue[0], Endpoint: e}, breaker: l.breaker, done: done, probe: probe}
	l.queue = l.queue[1:]
	l.inFlight[f.attempt.Delivery.EventID] = struct{}{}
	if probe {
		l.unsaved = probing
	}
	go func() { l.ended <- l.shared.try(ctx, l.poster, f) }()
}

// finish takes the end of an attempt in.
func (l *Lane) finish(f flight) {
	delete(l.inFlight, f.attempt.Delivery.EventID)
	l.busy = time.Now()
	if f.breaker == l.breaker && f.change != unchanged {
		l.unsaved = f.change
		l.shared.Log.Info("breaker of partner "+f.change.String(), "partner", l.partner, "openFor", l.breaker.openTime())
	}
	if f.fenced {
		l.Lose()
	}
	if f.attempt.Verdict.Finished {
		return
	}
	if at := time.Now().Add(f.attempt.Verdict.Wait + time.Millisecond); l.look.IsZero() || at.Before(l.look) {
		l.look = at
	}
}
