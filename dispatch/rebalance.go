package dispatch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/navlog/navlog/dispatch/lane"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// announceInterval is how often a dispatcher announces itself; an announcement is valid
// for three intervals.
const announceInterval = time.Second

// rebalance gives partners away while this dispatcher has more than its share of them: all leases, divided by the
// number of running dispatchers that have one of its keys. Dispatchers that cannot open its partners' secrets do not
// count, since they would give the partners back; one that can open no secret removes itself from the list. A lane that
// is given away finishes its POSTs and drops its lease, and another dispatcher finds the partner at its next scan. One
// partner more than the share is tolerated, so that partners do not move back and forth.
func (d *Dispatch) rebalance(ctx context.Context) {
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
		leases, err = d.queries.CountLeases(limited, registry.PartnerLease)
	}
	d.health.set("rebalance partners", err)
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

// giveAway ends a lane and leaves its partner to the other dispatchers for a while.
func (d *Dispatch) giveAway(l *lane.Lane) {
	d.mu.Lock()
	d.yielded[l.Partner()] = time.Now().Add(d.shared.Leases.Period)
	d.mu.Unlock()
	l.Yield()
}

// givenAway reports whether a partner was given away recently, and is left to the other dispatchers. d.mu is held.
func (d *Dispatch) givenAway(partner int64) bool {
	until, ok := d.yielded[partner]
	if ok && time.Now().After(until) {
		delete(d.yielded, partner)
		return false
	}
	return ok
}
