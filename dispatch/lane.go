package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// fetchPerPermit is how many deliveries a lane reads ahead for each POST that it
// may have under way.
const fetchPerPermit = 16

// asidePart is how many deliveries a lane parks or ends in one turn, so that a
// partner with a big backlog keeps PostgreSQL from nobody else for long.
const asidePart = 1000

// lane sends the deliveries of one partner. Its fields belong to the goroutine
// of run, except where it says otherwise.
//
// It lives in turns. A turn begins with plan, which finds out in which situation the
// partner is and does what that asks for, and ends when one of five things happens:
//
//	take ──▶ plan ──▶ wait ──┬── a slot is free, and something is due ──▶ send ───┐
//	 │        ▲              ├── a POST has ended, and is written ──▶ finish ─────┤
//	 │        │              ├── something came (wake) ──▶ look at once ──────────┤
//	 │        │              └── the time is over that plan gave ─────────────────┤
//	 │        └────────────────────────────── else ◀──────────────────────────────┤
//	 │                                                                            │
//	 └─ somebody else has the lease ──▶ end                    idle for long ─────┤
//	                                        lease lost, given away, program ends ─┤
//	                              drop the lease ◀── let POSTs under way finish ◀─┘
//
// The situations, of which plan takes the first that is true:
//
//	unreachable   no URL, or disabled    what is due ends as no_endpoint
//	held          an operator's park     what waits is parked, once
//	shut          the breaker is open    the same, until its time or its probe is over
//	open          else                   what is due is read and sent, as many at a time
//	                                     as the breaker permits; parked ones first looked for
type lane struct {
	d       *Dispatch
	partner int64
	wake    chan struct{} // something came; holds one
	ended   chan attempt  // attempts whose result is written

	fence int64        // of the lease; set before held, never changed
	held  atomic.Int64 // end of the lease in Unix nanoseconds, 0 before it is taken and when the lane has ended; also set by renew
	lost  atomic.Bool  // another dispatcher has it; also set by renew
	// yielded: it is to be given to another dispatcher; set by giveAway.
	yielded atomic.Bool

	queue    []db.DueDeliveriesRow  // due, and not under way
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

func newLane(d *Dispatch, partner int64) *lane {
	now := time.Now()
	return &lane{
		d: d, partner: partner, wake: make(chan struct{}, 1), ended: make(chan attempt),
		inFlight: map[uuid.UUID]struct{}{}, look: now, busy: now,
		poster: newPoster(d.guard, d.roots, d.config.PerPartnerConcurrency, d.timing.deadline),
	}
}

func (l *lane) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *lane) hold(until time.Time) { l.held.Store(until.UnixNano()) }

func (l *lane) leased() bool { return l.held.Load() != 0 && !l.lost.Load() }

// safe tells whether the lease still holds by our own clock. While it does not,
// nothing new is sent.
func (l *lane) safe() bool { return !l.lost.Load() && time.Now().UnixNano() < l.held.Load() }

func (l *lane) lose() {
	if !l.lost.Swap(true) {
		l.d.metrics.lostLeases.Inc()
	}
	l.signal()
}

// run takes the lease, sends until nothing has waited for a while, the lease is
// lost, or ctx ends, and lets the POSTs under way finish.
func (l *lane) run(ctx context.Context) {
	defer l.poster.transport.CloseIdleConnections()
	if !l.take(ctx) {
		l.d.retire(l, true)
		return
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for !l.mustEnd(ctx) {
		wait, err := l.turn(ctx)
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case l.slotWhere(err == nil && l.canSend()) <- struct{}{}:
			l.send(ctx)
		case a := <-l.ended:
			l.finish(a)
		case <-l.wake:
			l.look = time.Now()
		case <-timer.C:
		}
		if l.over() && l.d.retire(l, false) {
			l.drop(ctx)
			return
		}
	}
	for len(l.inFlight) > 0 {
		l.finish(<-l.ended)
	}
	l.save(context.WithoutCancel(ctx))
	l.d.retire(l, true)
	l.drop(ctx)
}

// mustEnd tells whether nothing more may begin here, whatever waits.
func (l *lane) mustEnd(ctx context.Context) bool {
	return ctx.Err() != nil || l.lost.Load() || l.yielded.Load()
}

// turn plans, and where that fails begins anew a little later. It says how long
// nothing will change by itself.
func (l *lane) turn(ctx context.Context) (time.Duration, error) {
	wait, err := l.plan(ctx)
	if err != nil {
		l.queue, l.look, wait = nil, time.Now(), l.d.timing.scan
	}
	l.complain(ctx, err)
	if errors.Is(err, errWrongKey) {
		l.d.giveAway(l)
	}
	return wait, err
}

// slotWhere gives the slots to wait for one where a POST could begin, and none, which
// is never ready, where not.
func (l *lane) slotWhere(can bool) chan<- struct{} {
	if !can {
		return nil
	}
	return l.d.slots
}

// complain logs what keeps the lane from sending, once.
func (l *lane) complain(ctx context.Context, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != l.trouble && ctx.Err() == nil {
		l.d.log.Warn("cannot send to a partner, trying again", "partner", l.partner, "error", err)
	}
	l.trouble = text
}

// take takes the lease; false: another dispatcher has it, or PostgreSQL does
// not answer, and look will try again.
func (l *lane) take(ctx context.Context) bool {
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	until := time.Now().Add(l.d.lease())
	fence, err := l.d.queries.TakeLease(limited, db.TakeLeaseParams{PartnerID: l.partner, Owner: l.d.owner, Milliseconds: l.d.lease().Milliseconds()})
	taken := err == nil
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil // PostgreSQL answers
	}
	if ctx.Err() == nil {
		l.d.health.set("take leases", err)
	}
	if !taken {
		return false
	}
	l.fence = fence
	l.hold(until)
	return true
}

// drop gives back the lease that the lane took. By then another lane of the
// partner may run, here too, for the lane is off the list: its lease has another
// fence and stays.
func (l *lane) drop(ctx context.Context) {
	if l.lost.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	// One that is not dropped runs out.
	_ = l.d.queries.DropLease(ctx, db.DropLeaseParams{Owner: l.d.owner, PartnerID: l.partner, Fence: l.fence})
}

// over tells whether nothing has waited for so long that the breaker's window
// is empty too.
func (l *lane) over() bool {
	if len(l.queue) > 0 || len(l.inFlight) > 0 || !l.look.IsZero() || l.unsaved != unchanged || l.aside {
		l.busy = time.Now()
		return false
	}
	return time.Since(l.busy) >= l.d.timing.idle
}

// canSend is about what plan prepared: the queue is empty while the breaker
// lets nothing through.
func (l *lane) canSend() bool {
	return len(l.queue) > 0 && l.safe() && len(l.inFlight) < l.permits()
}

func (l *lane) permits() int {
	n, _ := l.breaker.permits()
	return n
}

// situation is what the partner is in; see lane.
type situation int

const (
	unreachable situation = iota
	held
	shut
	open
)

// situation decides which one it is, and for how long at most it lasts by itself. The
// breaker is that of e. Of a breaker whose probe is under way nobody knows how long.
func (l *lane) situation(e endpoint, known bool) (situation, time.Duration) {
	longest := l.d.timing.scan // so that a new URL is noticed
	if !known {
		return unreachable, longest
	}
	if e.held {
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
// that has gone silent holds it up for timing.database at most.
func (l *lane) plan(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, l.d.timing.database)
	defer cancel()
	if err := l.save(ctx); err != nil {
		return 0, err
	}
	e, known, err := l.d.endpoints.get(ctx, l.partner)
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

// due tells whether it is time to read deliveries.
func (l *lane) due() bool { return !l.look.IsZero() && !time.Now().Before(l.look) }

// fetchDue reads what is due, where there is room for it. After the lane was held or
// shut that is what is parked, whenever it was due, and it stays to be read while POSTs
// from before take all permits.
func (l *lane) fetchDue(ctx context.Context) error {
	permits := l.permits()
	if len(l.queue) > 0 || len(l.inFlight) >= permits || !l.due() && !l.aside {
		return nil
	}
	if err := l.fetch(ctx, permits*fetchPerPermit); err != nil {
		return err
	}
	l.aside = false
	return nil
}

// untilNext is how long nothing will be due: what is in the queue waits for a slot or
// a permit, and not for a time.
func (l *lane) untilNext(longest time.Duration) time.Duration {
	if l.look.IsZero() || len(l.queue) > 0 || len(l.inFlight) >= l.permits() {
		return longest
	}
	return min(max(time.Until(l.look), 0), longest)
}

// follow takes the newest version of the endpoint and keeps the breaker of its
// URL. A new secret, or the same URL registered again, changes nothing about a
// receiver that is down.
func (l *lane) follow(ctx context.Context, e endpoint) error {
	if l.breaker != nil && l.version == e.version {
		return nil
	}
	if l.breaker != nil {
		l.poster.transport.CloseIdleConnections() // some may lead to where the receiver was
	}
	if l.breaker == nil || l.url != e.url {
		if err := l.restore(ctx, e.url); err != nil {
			return err
		}
	}
	l.version = e.version
	return nil
}

// restore makes the breaker of a URL: as PostgreSQL has it when the lane begins,
// closed after a change of the URL.
func (l *lane) restore(ctx context.Context, url string) error {
	limit := l.d.config.PerPartnerConcurrency
	b := newBreaker(l.d.timing, limit)
	row, err := l.d.queries.RestoreBreaker(ctx, db.RestoreBreakerParams{PartnerID: l.partner, Url: url})
	switch {
	case err == nil:
		b = restoreBreaker(l.d.timing, limit, time.Duration(row.OpenMs)*time.Millisecond, time.Duration(row.RemainingMs)*time.Millisecond, row.Refusing)
	case errors.Is(err, pgx.ErrNoRows):
		// One of an older URL, if any, is of no use any more.
		if err := l.d.queries.DeleteBreaker(ctx, db.DeleteBreakerParams{PartnerID: l.partner, Owner: l.d.owner, Fence: l.fence}); err != nil {
			return fmt.Errorf("forget the breaker of partner %d: %w", l.partner, err)
		}
	default:
		return fmt.Errorf("read the breaker of partner %d: %w", l.partner, err)
	}
	l.url, l.breaker, l.unsaved = url, b, unchanged
	return nil
}

// save writes what became of the breaker.
func (l *lane) save(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var err error
	switch l.unsaved {
	case unchanged:
		return nil
	case opened:
		err = l.d.queries.SaveBreaker(ctx, db.SaveBreakerParams{
			PartnerID: l.partner, EndpointVersion: l.version, Url: l.url, State: "open",
			OpenMs: l.breaker.openTime().Milliseconds(), Refusing: l.breaker.refuses(), Owner: l.d.owner, Fence: l.fence,
		})
	case probing:
		err = l.d.queries.ProbeBreaker(ctx, db.ProbeBreakerParams{PartnerID: l.partner, Url: l.url, Owner: l.d.owner, Fence: l.fence})
	case closed:
		err = l.d.queries.DeleteBreaker(ctx, db.DeleteBreakerParams{PartnerID: l.partner, Owner: l.d.owner, Fence: l.fence})
	}
	if err != nil {
		return fmt.Errorf("write the breaker of partner %d: %w", l.partner, err)
	}
	l.unsaved = unchanged
	return nil
}

// known are the deliveries that this lane has in memory.
func (l *lane) known() []uuid.UUID {
	ids := make([]uuid.UUID, 0, len(l.inFlight)+len(l.queue))
	for id := range l.inFlight {
		ids = append(ids, id)
	}
	for _, row := range l.queue {
		ids = append(ids, row.EventID)
	}
	return ids
}

// fetch reads what is due, and when there will be more.
func (l *lane) fetch(ctx context.Context, limit int) error {
	rows, err := l.d.queries.DueDeliveries(ctx, db.DueDeliveriesParams{PartnerID: l.partner, InFlight: l.known(), MaxRows: int32(limit)})
	if err != nil {
		return fmt.Errorf("read the due deliveries of partner %d: %w", l.partner, err)
	}
	l.queue = rows
	if len(rows) == limit {
		l.look = time.Now()
		return nil
	}
	wait, err := l.d.queries.NextDue(ctx, db.NextDueParams{PartnerID: l.partner, InFlight: l.known()})
	if err != nil {
		return fmt.Errorf("read when partner %d has a delivery due: %w", l.partner, err)
	}
	l.look = time.Time{}
	if wait >= 0 {
		l.look = time.Now().Add(time.Duration(wait) * time.Millisecond)
	}
	return nil
}

// park puts what waits aside while the breaker lets nothing through: a part of it,
// and the next part in the next turn, at once.
func (l *lane) park(ctx context.Context, due bool) error {
	l.queue, l.aside = nil, true
	if !due {
		return nil
	}
	n, err := l.d.queries.ParkDeliveries(ctx, db.ParkDeliveriesParams{
		Parked: next(registry.Pending, breakerOpened), PartnerID: l.partner, InFlight: l.known(), MaxRows: asidePart, Owner: l.d.owner, Fence: l.fence,
	})
	if err != nil {
		l.aside = false
		return fmt.Errorf("park the deliveries of partner %d: %w", l.partner, err)
	}
	l.d.metrics.parked.Add(float64(n))
	l.look = time.Time{}
	if n == asidePart {
		l.signal()
	}
	return nil
}

// giveUp ends what waits, in parts as park does, because there is nowhere to send
// it. A URL that has just been registered may not be known here yet, so it asks
// first.
func (l *lane) giveUp(ctx context.Context, due bool) error {
	if len(l.queue) == 0 && !due {
		return nil
	}
	l.queue = nil
	reachable, err := l.d.queries.Reachable(ctx, []int64{l.partner})
	if err != nil {
		return fmt.Errorf("look for the endpoint of partner %d: %w", l.partner, err)
	}
	if len(reachable) > 0 {
		l.d.endpoints.expire()
		l.signal()
		return nil
	}
	n, err := l.d.queries.GiveUpDeliveries(ctx, db.GiveUpDeliveriesParams{
		NoEndpoint: next(registry.Pending, noEndpoint), PartnerID: l.partner, InFlight: l.known(), MaxRows: asidePart, Owner: l.d.owner, Fence: l.fence,
	})
	if err != nil {
		return fmt.Errorf("end the deliveries of partner %d: %w", l.partner, err)
	}
	l.look, l.aside = time.Time{}, false
	if n == asidePart {
		l.signal()
	}
	return nil
}

// send starts the next attempt; it owns a slot. Endpoint and breaker are asked
// again, for the slot may have been waited for.
func (l *lane) send(ctx context.Context) {
	e, known, err := l.d.endpoints.get(ctx, l.partner)
	if err != nil || !known || e.held || e.version != l.version || !l.safe() {
		<-l.d.slots
		return
	}
	done, probe, ok := l.breaker.allow(l.queue[0].EventID)
	if !ok {
		<-l.d.slots
		return
	}
	a := attempt{partner: l.partner, delivery: l.queue[0], endpoint: e, breaker: l.breaker, poster: l.poster, done: done, probe: probe}
	l.queue = l.queue[1:]
	l.inFlight[a.delivery.EventID] = struct{}{}
	if probe {
		l.unsaved = probing
	}
	go func() { l.ended <- l.d.try(ctx, l.fence, a) }()
}

// finish takes the end of an attempt in.
func (l *lane) finish(a attempt) {
	delete(l.inFlight, a.delivery.EventID)
	l.busy = time.Now()
	if a.breaker == l.breaker && a.change != unchanged {
		l.unsaved = a.change
		l.d.log.Info("breaker of partner "+a.change.String(), "partner", l.partner, "openFor", l.breaker.openTime())
	}
	if a.fenced {
		l.lose()
	}
	if a.verdict.finished {
		return
	}
	if at := time.Now().Add(a.verdict.wait + time.Millisecond); l.look.IsZero() || at.Before(l.look) {
		l.look = at
	}
}
