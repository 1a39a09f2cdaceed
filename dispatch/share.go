package dispatch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/navlog/navlog/dispatch/lane"
	"github.com/navlog/navlog/schemas/registry/db"
)

// announceInterval is how often a dispatcher says that it runs; it counts for
// three times as long.
const announceInterval = time.Second

// share gives partners away while this dispatcher has more than its part of
// them: the leases of all, divided by the dispatchers that run and have one of
// its keys, for what the rest cannot sign for would come back. For the same reason
// one that can sign for nobody does not count: it is not on the list of those that
// run. A lane that is given away finishes its POSTs and drops its lease, and the
// others find the partner within a scan. The last one over is kept, so that nothing
// swings.
func (d *Dispatch) share(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if errors.Is(d.endpoints.check(limited), errWrongKey) {
		d.leave(limited)
		return
	}
	running, err := d.queries.Announce(limited, db.AnnounceParams{
		Owner: d.owner, Milliseconds: 3 * announceInterval.Milliseconds(), KeyIds: d.endpoints.sealer.KeyIDs(),
	})
	var leases int64
	if err == nil && running > 1 {
		leases, err = d.queries.CountLeases(limited)
	}
	d.health.set("share partners", err)
	if err != nil || running < 2 {
		return
	}
	part := int((leases+int64(running)-1)/int64(running)) + 1
	lanes := slices.DeleteFunc(d.allLanes(), func(l *lane.Lane) bool { return !l.Leased() || l.Yielded() })
	slices.SortFunc(lanes, func(a, b *lane.Lane) int { return cmp.Compare(b.Partner(), a.Partner()) })
	for _, l := range lanes[:max(0, len(lanes)-part)] {
		d.giveAway(l)
	}
}

// giveAway ends a lane and leaves its partner to the others for a while.
func (d *Dispatch) giveAway(l *lane.Lane) {
	d.mu.Lock()
	d.yielded[l.Partner()] = time.Now().Add(d.shared.Lease)
	d.mu.Unlock()
	l.Yield()
}

// givenAway tells whether a partner was given away a moment ago, and is left to
// the others. d.mu is held.
func (d *Dispatch) givenAway(partner int64) bool {
	until, ok := d.yielded[partner]
	if ok && time.Now().After(until) {
		delete(d.yielded, partner)
		return false
	}
	return ok
}
