package dispatch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/navlog/navlog/deploy/testkit/partners"
	"github.com/navlog/navlog/deploy/testkit/stack"
	"github.com/navlog/navlog/deploy/testkit/wait"
)

const (
	well           = 5        // partners with a working receiver
	partnersOfSeed = well + 2 // plus one whose receiver is down, and one without a URL
	concurrency    = 4        // concurrent POSTs to one partner: the default
	batches        = 12
	lease          = 3 * time.Second
	// settlesAtMost limits the total time for settling, as a multiple of the allowed pause without progress.
	settlesAtMost = 10
)

// run is the run of one seed.
type run struct {
	*chaos
	random      *rand.Rand
	base        int64 // id of the first partner
	dispatchers [2]*stack.Process
	begun       [2]time.Time // when each of them started
	back        time.Time    // when PostgreSQL last responded again after it was killed
	appended    []partners.Referral
	leaseLosses []leaseLoss
}

// down is the partner whose receiver refuses everything, mute the one without a URL.
func (r *run) down() uint32 { return uint32(r.base) + well }
func (r *run) mute() uint32 { return uint32(r.base) + well + 1 }

// seed appends events while faults happen, then a few without faults, and waits until each is delivered or has a valid
// reason not to be.
func (c *chaos) seed(ctx context.Context, seed uint64) (t tally, err error) {
	r := &run{chaos: c, random: rand.New(rand.NewPCG(seed, 0))}
	defer func() { err = errors.Join(err, r.stop()) }()
	r.base = int64(seed-c.first)*partnersOfSeed + 1
	for id := r.base; id < r.base+partnersOfSeed; id++ {
		url := c.receiver.url(id)
		if uint32(id) == r.mute() {
			url = ""
		}
		if err := c.world.Partner(ctx, id, url); err != nil {
			return t, err
		}
	}
	c.receiver.fell(r.down())
	for i := range r.dispatchers {
		if err := r.start(i); err != nil {
			return t, err
		}
	}
	c.receiver.begin()
	for batch := range batches {
		if err := r.append(ctx, batch*c.events/batches, (batch+1)*c.events/batches); err != nil {
			return t, err
		}
		if err := r.pause(ctx, 400*time.Millisecond); err != nil {
			return t, err
		}
		if err := r.injectFault(ctx); err != nil {
			return t, err
		}
	}
	// Let the leases of killed dispatchers expire, so that nothing disturbs what follows.
	if err := r.wait(ctx, lease+time.Second); err != nil {
		return t, err
	}
	if err := r.restartExited(); err != nil {
		return t, err
	}
	if err := r.append(ctx, c.events, c.events+well); err != nil {
		return t, err
	}
	t.events = len(r.appended)
	if err := errors.Join(r.settle(ctx), r.stop()); err != nil { // includes deliveries in flight
		return t, err
	}
	return r.judge(ctx, t)
}

// judge compares what arrived with what was appended and with the faults.
func (r *run) judge(ctx context.Context, t tally) (tally, error) {
	l, err := r.ledger(ctx)
	if err != nil {
		return t, err
	}
	histories := r.receiver.histories()
	lost := l.lost(histories, r.down(), r.mute())
	t.lost = len(lost)
	bound := l.bound(histories)
	for partner, n := range extra(histories) {
		t.extra, t.bound = t.extra+n, t.bound+bound[partner]
	}
	judged, final := r.final(l, histories)
	faults := append(lost, r.receiver.wrong(), sequences(histories, r.down(), r.mute()), final)
	if final == nil && judged == 0 {
		faults = append(faults, errors.New("something happened to every event that was refused, so that no waits were "+
			"judged"))
	}
	// Later seeds must not see pending events of this one.
	return t, errors.Join(append(faults,
		r.exec(ctx, fmt.Sprintf("UPDATE partner SET disabled = true WHERE id = %d", r.down())))...)
}

// final checks what waiting cannot fix: POSTs that arrived too often, too early or once too many. It also returns the
// number of events whose waits were checked.
func (r *run) final(l *ledger, histories map[uuid.UUID]history) (judged int, err error) {
	var faults []error
	bound := l.bound(histories)
	for partner, n := range extra(histories) {
		if n > bound[partner] {
			faults = append(faults, fmt.Errorf("partner %d: %d posts came too often, and only %d were under way when it "+
				"changed hands:%s", partner, n, bound[partner], l.repeats(partner, histories)))
		}
	}
	judged, err = l.schedule(histories, r.down())
	return judged, errors.Join(append(faults, err)...)
}

func (r *run) start(i int) (err error) {
	r.begun[i] = time.Now()
	r.dispatchers[i], err = r.world.Dispatch(r.navlog, r.receiver.CAFile, fmt.Sprintf("dispatch%d.log", i+1),
		fmt.Sprintf("NAVLOG_WEBHOOKS_LEASE_SECONDS=%d", lease/time.Second))
	return err
}

// stop stops the running dispatchers.
func (r *run) stop() (err error) {
	for i, d := range r.dispatchers {
		if d != nil {
			err = errors.Join(err, d.Stop())
		}
		r.dispatchers[i] = nil
	}
	return err
}

// append writes events, deposits and withdrawals, for all partners in turn. One in fifty is refused every time, and so
// is one more for each healthy partner at the end.
func (r *run) append(ctx context.Context, from, to int) error {
	var events []partners.Referral
	for n := from; n < to; n++ {
		last := n >= r.events
		partner := uint32(r.base) + uint32(n%partnersOfSeed)
		if last {
			partner = uint32(r.base) + uint32(n-r.events)
		}
		kind := partners.Withdrawal
		if n%2 == 0 {
			kind = partners.Deposit
		}
		e, err := kind(partner, n)
		if err != nil {
			return err
		}
		r.receiver.expect(e, last || n%50 == 49)
		events = append(events, e)
	}
	r.appended = append(r.appended, events...)
	return r.world.Produce(ctx, events...)
}

// pause waits for a random time up to longest.
func (r *run) pause(ctx context.Context, longest time.Duration) error {
	return r.wait(ctx, time.Duration(r.random.Int64N(int64(longest))))
}

func (r *run) wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// injectFault causes one fault, or none. It first checks the dispatchers, because a fault must not hide that one had
// already ended by itself.
func (r *run) injectFault(ctx context.Context) error {
	if err := r.restartExited(); err != nil {
		return err
	}
	switch n := r.random.IntN(100); {
	case n < 40: // a dispatcher dies and is restarted after a while
		i := r.random.IntN(len(r.dispatchers))
		r.dispatchers[i].Kill()
		if err := r.pause(ctx, 300*time.Millisecond); err != nil {
			return err
		}
		return r.start(i)
	case n < 52:
		return r.killPostgres(ctx)
	case n < 64: // every partner, and the intake, is taken away from its dispatcher
		from := time.Now()
		err := r.exec(ctx, "UPDATE job_lease SET owner = gen_random_uuid(), fence = fence + 1, until = now()")
		r.leaseLosses = append(r.leaseLosses, newLeaseLoss(from, time.Now()))
		return err
	case n < 76: // the topics are read again from the start
		// A DELETE without the lock takes row locks in its own order and could deadlock with a dispatcher that updates
		// positions.
		return r.exec(ctx, "DO $$ BEGIN LOCK TABLE position IN EXCLUSIVE MODE; DELETE FROM position; END $$")
	case n < 80: // a topic is recreated, and everything in it appended again
		topic := r.appended[r.random.IntN(len(r.appended))].Topic
		if err := r.world.RemakeTopic(ctx, topic); err != nil {
			return err
		}
		return r.world.Produce(ctx,
			slices.DeleteFunc(slices.Clone(r.appended), func(e partners.Referral) bool { return e.Topic != topic })...)
	case n < 90: // a dispatcher is suspended for longer than its leases
		return r.suspend(ctx, r.dispatchers[r.random.IntN(len(r.dispatchers))])
	}
	return nil
}

// suspend stops a dispatcher until its leases are over and the other one may have taken them. When it continues, it
// finishes the POSTs that it had begun. Any partner may have had some of these, so this finds lost events, and repeated
// ones only if they are many.
func (r *run) suspend(ctx context.Context, d *stack.Process) error {
	from := time.Now()
	d.Signal(syscall.SIGSTOP)
	defer d.Signal(syscall.SIGCONT)
	err := r.wait(ctx, lease+time.Second)
	until := time.Now().Add(time.Second)
	r.leaseLosses = append(r.leaseLosses, leaseLoss{window{from, until}, until})
	return err
}

func (r *run) exec(ctx context.Context, sql string) error {
	_, err := r.world.Pool.Exec(ctx, sql)
	return err
}

// killPostgres kills it in the middle of whatever it does. The dispatchers must cope with errors after its death; this
// process waits until it is back.
func (r *run) killPostgres(ctx context.Context) error {
	died := time.Now()
	r.world.Postgres.Kill()
	defer func() {
		for i, loss := range r.leaseLosses {
			r.leaseLosses[i] = loss.extended(died, time.Now())
		}
	}()
	if err := r.pause(ctx, 300*time.Millisecond); err != nil {
		return err
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		err := r.world.Postgres.Restart(ctx)
		for err == nil && r.exec(ctx, "SELECT 1") != nil && time.Now().Before(deadline) {
			// The pool only notices a dead connection by using it.
		}
		if err == nil {
			r.back = time.Now()
			return r.restartExited()
		}
		if time.Now().After(deadline) {
			return err
		}
		if err := r.pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

// restartExited restarts dispatchers that exited because PostgreSQL was down when they started, as a supervisor would.
// Any other exit is a fault.
func (r *run) restartExited() error {
	for i, d := range r.dispatchers {
		fault := d.Running()
		if fault == nil {
			continue
		}
		if !r.begun[i].Before(r.back) || !missedPostgres(d) {
			r.dispatchers[i] = nil // or stop would report it again
			return fmt.Errorf("dispatcher %d exited by itself: %w", i+1, fault)
		}
		if err := r.start(i); err != nil {
			return err
		}
	}
	return nil
}

// missedPostgres reports whether a dispatcher exited because it could not connect to PostgreSQL, according to its last
// line. A dispatcher that has started survives an outage.
func missedPostgres(d *stack.Process) bool {
	const failed, unreachable = 1, 4 // docs/operations.md
	if code := d.State().ExitCode(); code != failed && code != unreachable {
		return false
	}
	output := strings.TrimSpace(d.Output())
	last := output[strings.LastIndexByte(output, '\n')+1:]
	return strings.HasPrefix(last, "navlog: reach PostgreSQL") ||
		strings.HasPrefix(last, "navlog: read the version of the tables in PostgreSQL")
}

// settle waits until every event has reached its final state, or until there is no more progress: how long that takes
// depends on the machine. There is still a limit, because an event that is sent repeatedly counts as progress too.
func (r *run) settle(ctx context.Context) error {
	last := time.Now().Add(settlesAtMost * r.settleWithin)
	var before []string
	moved := time.Now()
	return wait.Poll(ctx, 100*time.Millisecond, func() (bool, error) {
		histories := r.receiver.histories()
		l, err := r.ledger(ctx)
		if err != nil {
			return false, err
		}
		if err := r.restartExited(); err != nil {
			return false, err
		}
		now := l.unsettled(histories, r.down(), r.mute())
		if !slices.Equal(now, before) {
			before, moved = now, time.Now()
		}
		return len(now) == 0 || time.Since(moved) > r.settleWithin || time.Now().After(last), nil
	})
}

// unsettled lists the events that have not reached their final state, with the state of each.
func (l *ledger) unsettled(histories map[uuid.UUID]history, down, mute uint32) (list []string) {
	for _, why := range l.lost(histories, down, mute) {
		list = append(list, why.Error())
	}
	slices.Sort(list)
	return list
}
