package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/navlog/navlog/dispatch/lane"
	"github.com/navlog/navlog/schemas/registry/db"
)

// announceInterval is how often a dispatcher announces itself; an announcement is valid
// for three intervals.
const announceInterval = time.Second

// rebalance releases partners while this dispatcher has more than its share of them: all leases, divided by the
// number of running dispatchers that have one of its keys. Dispatchers that cannot open its partners' secrets do not
// count, because they would release the partners again; one that can open no secret removes itself from the list. A
// lane that is released finishes its POSTs and drops its lease, and another dispatcher finds the partner at its next
// scan. One partner more than the share is tolerated, so that partners do not move back and forth.
func (d *Dispatch) rebalance(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if errors.Is(d.endpoints.check(limited), errWrongKey) {
		d.deregister(limited)
		return
	}
	before := time.Now()
	announced, err := d.queries.Announce(limited, db.AnnounceParams{
		Owner: d.owner, Milliseconds: 3 * announceInterval.Milliseconds(), KeyIds: d.endpoints.sealer.KeyIDs(),
	})
	if err == nil {
		d.health.set(ctx, "sign with the right time", clockFault(before, time.Now(), announced.At))
	}
	d.health.set(ctx, "rebalance partners", err)
	running := announced.Running
	if err != nil || running < 2 {
		return
	}
	part := int((announced.Leases+running-1)/running) + 1
	lanes := slices.DeleteFunc(d.allLanes(), func(l *lane.Lane) bool { return !l.Leased() || l.Yielded() })
	slices.SortFunc(lanes, func(a, b *lane.Lane) int { return cmp.Compare(b.Partner(), a.Partner()) })
	for _, l := range lanes[:max(0, len(lanes)-part)] {
		d.release(l)
	}
}

// clockTolerance is by how much this machine's clock may differ from PostgreSQL's. Receivers reject a signature whose
// time differs from theirs by more than five minutes, and retries do not help. This leaves them four minutes for their
// own clocks.
const clockTolerance = time.Minute

// clockFault returns an error if this machine's clock differs by more than clockTolerance from PostgreSQL's, which
// was read between before and after. Only the difference that is certain counts, so a slow response is
// no fault. The error is rounded, because another text would be logged again. A dispatcher with a wrong clock keeps
// sending, because PostgreSQL's clock may be the wrong one, but it is not ready.
func clockFault(before, after, theirs time.Time) error {
	ahead, behind := before.Sub(theirs), theirs.Sub(after)
	switch {
	case ahead > clockTolerance:
		return fmt.Errorf("this machine's clock is %s ahead of PostgreSQL's: synchronise both with NTP",
			ahead.Round(10*time.Second))
	case behind > clockTolerance:
		return fmt.Errorf("this machine's clock is %s behind PostgreSQL's: synchronise both with NTP",
			behind.Round(10*time.Second))
	}
	return nil
}

// release ends a lane, and does not take its partner again for a while, so that another dispatcher can.
func (d *Dispatch) release(l *lane.Lane) {
	d.mu.Lock()
	d.released[l.Partner()] = time.Now().Add(d.shared.Leases.Period)
	d.mu.Unlock()
	l.Yield()
}

// wasReleased reports whether a partner was released recently, and is left to the other dispatchers. d.mu is held.
func (d *Dispatch) wasReleased(partner int64) bool {
	until, ok := d.released[partner]
	if ok && time.Now().After(until) {
		delete(d.released, partner)
		return false
	}
	return ok
}
