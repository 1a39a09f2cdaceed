package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/navlog/navlog/deploy/referrals"
)

const (
	partners    = 5
	concurrency = 4 // POSTs to one partner at a time: the default
	batches     = 12
	lease       = 3 * time.Second
	// settle is how long events may take after the last blow.
	settle = 90 * time.Second
)

// run is one seed.
type run struct {
	*chaos
	random      *rand.Rand
	dispatchers [2]*referrals.Dispatcher
	appended    []referrals.Referral
	thefts      []theft
}

// seed appends events while things happen to everybody, and waits until all of
// them are acknowledged.
func (c *chaos) seed(ctx context.Context, seed uint64) (t tally, err error) {
	r := &run{chaos: c, random: rand.New(rand.NewPCG(seed, 0))}
	defer func() { err = errors.Join(err, r.stop()) }()
	base := int64(seed-c.First)*partners + 1
	for i := range int64(partners) {
		secret, err := c.world.Partner(ctx, base+i, c.receiver.url(base+i))
		if err != nil {
			return t, err
		}
		c.receiver.know(base+i, secret)
	}
	for i := range r.dispatchers {
		if err := r.start(i); err != nil {
			return t, err
		}
	}
	c.receiver.begin()
	for batch := range batches {
		if err := r.append(ctx, uint32(base), batch); err != nil {
			return t, err
		}
		if err := r.pause(ctx, 400*time.Millisecond); err != nil {
			return t, err
		}
		if err := r.strike(ctx); err != nil {
			return t, err
		}
	}
	t.events = len(r.appended)
	t.lost, err = r.settle(ctx)
	if err := errors.Join(err, r.stop()); err != nil { // what is under way counts, too
		return t, err
	}
	l, err := r.ledger(ctx)
	if err != nil {
		return t, err
	}
	t.bound = c.receiver.underWay(l)
	if t.extra, err = c.receiver.judge(); err == nil && t.extra > t.bound {
		err = fmt.Errorf("%d posts came too often, and only %d were under way when their partner changed hands", t.extra, t.bound)
	}
	return t, err
}

func (r *run) start(i int) (err error) {
	r.dispatchers[i], err = r.world.Dispatch(r.Navlog, r.receiver.caFile, fmt.Sprintf("dispatch%d.log", i+1), fmt.Sprintf("NAVLOG_WEBHOOKS_LEASE_SECONDS=%d", lease/time.Second))
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

// append writes the next events, for all partners in turn.
func (r *run) append(ctx context.Context, base uint32, batch int) error {
	from, to := batch*r.Events/batches, (batch+1)*r.Events/batches
	var events []referrals.Referral
	for n := from; n < to; n++ {
		e, err := referrals.Withdrawal(base+uint32(n%partners), n)
		if err != nil {
			return err
		}
		r.receiver.expect(e)
		events = append(events, e)
	}
	r.appended = append(r.appended, events...)
	return r.world.Produce(ctx, events...)
}

// pause waits for up to longest.
func (r *run) pause(ctx context.Context, longest time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(r.random.Int64N(int64(longest)))):
		return nil
	}
}

// strike does one thing, or nothing.
func (r *run) strike(ctx context.Context) error {
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
		return r.exec(ctx, "DELETE FROM position")
	case n < 80: // the topic is made anew, and everything appended again
		if err := r.world.RemakeTopic(ctx); err != nil {
			return err
		}
		return r.world.Produce(ctx, r.appended...)
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
			return r.revive()
		}
		if time.Now().After(deadline) {
			return err
		}
		if err := r.pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

// revive starts dispatchers again that ended because there was no PostgreSQL when
// they began, as whoever supervises them would. One that ends at any other time is
// a fault, which stop reports.
func (r *run) revive() error {
	for i, d := range r.dispatchers {
		select {
		case <-d.Ended():
			if err := r.start(i); err != nil {
				return err
			}
		default:
		}
	}
	return nil
}

// settle waits until every event is acknowledged and written so, and gives the
// number of those that are not.
func (r *run) settle(ctx context.Context) (lost int, err error) {
	deadline := time.Now().Add(settle)
	for {
		var waiting int
		err := r.world.Pool.QueryRow(ctx, "SELECT count(*) FROM delivery WHERE state <> 'delivered'").Scan(&waiting)
		if err != nil {
			return 0, err
		}
		lost = r.receiver.missing()
		if waiting+lost == 0 || time.Now().After(deadline) {
			return lost, nil
		}
		if err := r.pause(ctx, 200*time.Millisecond); err != nil {
			return 0, err
		}
	}
}
