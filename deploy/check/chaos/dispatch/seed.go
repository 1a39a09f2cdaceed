package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/navlog/navlog/deploy/testkit/child"
	"github.com/navlog/navlog/deploy/testkit/poll"
	"github.com/navlog/navlog/deploy/testkit/referrals"
)

const (
	well        = 5        // partners whose receiver is there
	partners    = well + 2 // and one whose is down, and one that has no URL
	concurrency = 4        // POSTs to one partner at a time: the default
	batches     = 12
	lease       = 3 * time.Second
	// settlesAtMost is how many times the pause without progress a seed may take to settle in all.
	settlesAtMost = 10
)

// run is one seed.
type run struct {
	*chaos
	random      *rand.Rand
	base        int64 // the first partner's id
	dispatchers [2]*child.Process
	begun       [2]time.Time // when each of them was started
	back        time.Time    // when PostgreSQL last answered again after it was killed
	appended    []referrals.Referral
	thefts      []theft
}

// down is the partner whose receiver refuses everything, mute the one without a URL.
func (r *run) down() uint32 { return uint32(r.base) + well }
func (r *run) mute() uint32 { return uint32(r.base) + well + 1 }

// seed appends events while things happen to everybody, then a few while nothing
// does, and waits until each is delivered or has a reason to wait.
func (c *chaos) seed(ctx context.Context, seed uint64) (t tally, err error) {
	r := &run{chaos: c, random: rand.New(rand.NewPCG(seed, 0))}
	defer func() { err = errors.Join(err, r.stop()) }()
	r.base = int64(seed-c.First)*partners + 1
	for id := r.base; id < r.base+partners; id++ {
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
		if err := r.append(ctx, batch*c.Events/batches, (batch+1)*c.Events/batches); err != nil {
			return t, err
		}
		if err := r.pause(ctx, 400*time.Millisecond); err != nil {
			return t, err
		}
		if err := r.strike(ctx); err != nil {
			return t, err
		}
	}
	// Leases of those that were killed run out, and what comes then is left alone.
	if err := r.wait(ctx, lease+time.Second); err != nil {
		return t, err
	}
	if err := r.attend(); err != nil {
		return t, err
	}
	if err := r.append(ctx, c.Events, c.Events+well); err != nil {
		return t, err
	}
	t.events = len(r.appended)
	if err := errors.Join(r.settle(ctx), r.stop()); err != nil { // what is under way counts, too
		return t, err
	}
	return r.judge(ctx, t)
}

// judge compares what came with what was appended, and with what was done.
func (r *run) judge(ctx context.Context, t tally) (tally, error) {
	l, err := r.ledger(ctx)
	if err != nil {
		return t, err
	}
	stories := r.receiver.stories()
	lost := l.lost(stories, r.down(), r.mute())
	t.lost = len(lost)
	bound := l.bound(stories)
	for partner, n := range extra(stories) {
		t.extra, t.bound = t.extra+n, t.bound+bound[partner]
	}
	judged, final := r.final(l, stories)
	faults := append(lost, r.receiver.wrong(), sequences(stories, r.down(), r.mute()), final)
	if final == nil && judged == 0 {
		faults = append(faults, errors.New("something happened to every event that was refused, so that no waits were judged"))
	}
	// Later seeds know nothing of what waits here.
	return t, errors.Join(append(faults, r.exec(ctx, fmt.Sprintf("UPDATE partner SET disabled = true WHERE id = %d", r.down())))...)
}

// final is what no waiting mends: a POST that came too often, too early or once too
// many. It also tells of how many events the waits were judged.
func (r *run) final(l *ledger, stories map[uuid.UUID]story) (judged int, err error) {
	var faults []error
	bound := l.bound(stories)
	for partner, n := range extra(stories) {
		if n > bound[partner] {
			faults = append(faults, fmt.Errorf("partner %d: %d posts came too often, and only %d were under way when it changed hands:%s", partner, n, bound[partner], l.repeats(partner, stories)))
		}
	}
	judged, err = l.schedule(stories, r.down())
	return judged, errors.Join(append(faults, err)...)
}

func (r *run) start(i int) (err error) {
	r.begun[i] = time.Now()
	r.dispatchers[i], err = r.world.Dispatch(r.Navlog, r.receiver.CAFile, fmt.Sprintf("dispatch%d.log", i+1), fmt.Sprintf("NAVLOG_WEBHOOKS_LEASE_SECONDS=%d", lease/time.Second))
	return err
}

// stop stops the dispatchers that run.
func (r *run) stop() (err error) {
	for i, d := range r.dispatchers {
		if d != nil {
			err = errors.Join(err, d.Stop())
		}
		r.dispatchers[i] = nil
	}
	return err
}

// append writes events, for all partners in turn, deposits and withdrawals. One in
// fifty is refused for ever, and so are those after the last, one of each partner
// that is well.
func (r *run) append(ctx context.Context, from, to int) error {
	var events []referrals.Referral
	for n := from; n < to; n++ {
		last := n >= r.Events
		partner := uint32(r.base) + uint32(n%partners)
		if last {
			partner = uint32(r.base) + uint32(n-r.Events)
		}
		kind := referrals.Withdrawal
		if n%2 == 0 {
			kind = referrals.Deposit
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

// pause waits for up to longest.
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

// strike does one thing, or nothing. What comes to a dispatcher now must not hide
// that it had ended before.
func (r *run) strike(ctx context.Context) error {
	if err := r.attend(); err != nil {
		return err
	}
	switch n := r.random.IntN(100); {
	case n < 40: // a dispatcher dies, and starts again after a while
		i := r.random.IntN(len(r.dispatchers))
		r.dispatchers[i].Kill()
		if err := r.pause(ctx, 300*time.Millisecond); err != nil {
			return err
		}
		return r.start(i)
	case n < 52:
		return r.killPostgres(ctx)
	case n < 64: // every partner is taken away from its dispatcher
		from := time.Now()
		err := r.exec(ctx, "UPDATE lease SET owner = gen_random_uuid(), fence = fence + 1, until = now()")
		r.thefts = append(r.thefts, stolen(from, time.Now()))
		return err
	case n < 76: // the topics are read again, from zero
		// A DELETE locks row by row, in an order of its own: it would deadlock with who moves them.
		return r.exec(ctx, "DO $$ BEGIN LOCK TABLE position IN EXCLUSIVE MODE; DELETE FROM position; END $$")
	case n < 80: // a topic is made anew, and everything in it appended again
		topic := r.appended[r.random.IntN(len(r.appended))].Topic
		if err := r.world.RemakeTopic(ctx, topic); err != nil {
			return err
		}
		return r.world.Produce(ctx, slices.DeleteFunc(slices.Clone(r.appended), func(e referrals.Referral) bool { return e.Topic != topic })...)
	}
	return nil
}

func (r *run) exec(ctx context.Context, sql string) error {
	_, err := r.world.Pool.Exec(ctx, sql)
	return err
}

// killPostgres ends it in the middle of whatever it does. What it answers after
// its death is for the dispatchers to bear; this process waits for it.
func (r *run) killPostgres(ctx context.Context) error {
	died := time.Now()
	r.world.KillPostgres()
	defer func() {
		for i, theft := range r.thefts {
			r.thefts[i] = theft.outlived(died, time.Now())
		}
	}()
	if err := r.pause(ctx, 300*time.Millisecond); err != nil {
		return err
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		err := r.world.StartPostgres(ctx)
		for err == nil && r.exec(ctx, "SELECT 1") != nil && time.Now().Before(deadline) {
			// the pool finds out about each dead connection by using it
		}
		if err == nil {
			r.back = time.Now()
			return r.attend()
		}
		if time.Now().After(deadline) {
			return err
		}
		if err := r.pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

// attend starts dispatchers again that ended because there was no PostgreSQL when
// they began, as whoever supervises them would. Any other end is a fault.
func (r *run) attend() error {
	for i, d := range r.dispatchers {
		fault := d.Running()
		if fault == nil {
			continue
		}
		if !r.begun[i].Before(r.back) || !missedPostgres(d) {
			r.dispatchers[i] = nil // stop would tell of it again
			return fmt.Errorf("dispatcher %d ended although nobody asked it to: %w", i+1, fault)
		}
		if err := r.start(i); err != nil {
			return err
		}
	}
	return nil
}

// missedPostgres says that a dispatcher has ended because it could not open
// PostgreSQL, which its last line says. One that has begun bears that it is gone.
func missedPostgres(d *child.Process) bool {
	const failed, unreachable = 1, 4 // docs/operations.md
	if code := d.State().ExitCode(); code != failed && code != unreachable {
		return false
	}
	said := strings.TrimSpace(d.Said())
	last := said[strings.LastIndexByte(said, '\n')+1:]
	return strings.HasPrefix(last, "navlog: reach PostgreSQL") || strings.HasPrefix(last, "navlog: read the version of the tables in PostgreSQL")
}

// settle waits until every event is where it is to end, or until nothing more happens to those that are not. How long
// that takes depends on the machine, so it waits for progress; but not for ever, for what is sent again and again
// makes progress, too.
func (r *run) settle(ctx context.Context) error {
	last := time.Now().Add(settlesAtMost * r.Settle)
	var before []string
	moved := time.Now()
	return poll.Until(ctx, 100*time.Millisecond, func() (bool, error) {
		stories := r.receiver.stories()
		l, err := r.ledger(ctx)
		if err != nil {
			return false, err
		}
		if err := r.attend(); err != nil {
			return false, err
		}
		now := l.unsettled(stories, r.down(), r.mute())
		if !slices.Equal(now, before) {
			before, moved = now, time.Now()
		}
		return len(now) == 0 || time.Since(moved) > r.Settle || time.Now().After(last), nil
	})
}

// unsettled lists the events that are not where they are to end, with how far each has come.
func (l *ledger) unsettled(stories map[uuid.UUID]story, down, mute uint32) (list []string) {
	for _, why := range l.lost(stories, down, mute) {
		list = append(list, why.Error())
	}
	slices.Sort(list)
	return list
}
