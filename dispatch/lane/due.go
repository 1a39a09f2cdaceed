package lane

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/navlog/navlog/schemas/registry/db"
)

// fetchPerPermit is how many deliveries a lane prefetches for each POST that it may
// have in flight.
const fetchPerPermit = 16

// asidePart is how many deliveries a lane parks or ends in one turn, so that a partner
// with a big backlog does not occupy PostgreSQL for long.
const asidePart = 1000

// due reports whether it is time to read deliveries.
func (l *Lane) due() bool { return !l.nextFetch.IsZero() && !time.Now().Before(l.nextFetch) }

// fetchDue reads the due deliveries if the lane has room for them. After the lane was held
// or shut, that includes the parked ones, whenever they were due; if earlier POSTs take
// all permits, the read waits for a later turn.
func (l *Lane) fetchDue(ctx context.Context) error {
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

// refresh reads the queue again if it is too old: with a slow receiver, prefetched
// deliveries wait for minutes, and an event that was corrected meanwhile must be sent with
// its new body. Only send calls refresh, so deliveries that wait for a slot cost nothing,
// and a queue that empties quickly is never read twice. If the read fails, nothing is
// sent; the next turn reads again and reports the error.
func (l *Lane) refresh(ctx context.Context) {
	if time.Since(l.read) < l.shared.Timing.Scan {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, l.shared.Timing.Database)
	defer cancel()
	l.queue = nil
	if l.fetch(ctx, l.permits()*fetchPerPermit) != nil {
		l.queue, l.nextFetch = nil, time.Now()
	}
}

// untilNext returns how long nothing will be due. Deliveries in the queue do not count:
// they wait for a slot or a permit.
func (l *Lane) untilNext(longest time.Duration) time.Duration {
	if l.nextFetch.IsZero() || len(l.queue) > 0 || len(l.inFlight) >= l.permits() {
		return longest
	}
	return min(max(time.Until(l.nextFetch), 0), longest)
}

// known returns the ids of the deliveries that the lane has in memory.
func (l *Lane) known() []uuid.UUID {
	ids := make([]uuid.UUID, 0, len(l.inFlight)+len(l.queue))
	for id := range l.inFlight {
		ids = append(ids, id)
	}
	for _, row := range l.queue {
		ids = append(ids, row.EventID)
	}
	return ids
}

// fetch reads the due deliveries and the time at which more will be due.
func (l *Lane) fetch(ctx context.Context, limit int) error {
	read := time.Now()
	rows, err := l.shared.Queries.DueDeliveries(
		ctx, db.DueDeliveriesParams{PartnerID: l.partner, InFlight: l.known(), MaxRows: int32(limit)},
	)
	if err != nil {
		return fmt.Errorf("read the due deliveries of partner %d: %w", l.partner, err)
	}
	l.queue, l.read = rows, read
	if len(rows) == limit {
		l.nextFetch = time.Now()
		return nil
	}
	wait, err := l.shared.Queries.NextDue(ctx, db.NextDueParams{PartnerID: l.partner, InFlight: l.known()})
	if err != nil {
		return fmt.Errorf("read when partner %d has a delivery due: %w", l.partner, err)
	}
	l.nextFetch = time.Time{}
	if wait >= 0 {
		l.nextFetch = time.Now().Add(time.Duration(wait) * time.Millisecond)
	}
	return nil
}

// park parks the pending deliveries while the breaker admits nothing: one part per turn, and
// the next turn follows at once.
func (l *Lane) park(ctx context.Context, due bool) error {
	l.queue, l.aside = nil, true
	if !due {
		return nil
	}
	n, err := l.shared.Queries.ParkDeliveries(ctx, db.ParkDeliveriesParams{
		PartnerID: l.partner, InFlight: l.known(), MaxRows: asidePart, Owner: l.shared.Leases.Owner, Fence: l.fence(),
	})
	if err != nil {
		return fmt.Errorf("park the deliveries of partner %d: %w", l.partner, err)
	}
	l.shared.Metrics.parked.Add(float64(n))
	l.nextFetch = time.Time{}
	if n == asidePart {
		l.Wake()
	}
	return nil
}

// giveUp ends the pending and parked deliveries as no_endpoint, in parts as park does. If a URL was registered that the
// lane does not know yet, none ends: a later turn knows it.
func (l *Lane) giveUp(ctx context.Context, due bool) error {
	if len(l.queue) == 0 && !due {
		return nil
	}
	l.queue = nil
	found, err := l.shared.Queries.GiveUpDeliveries(ctx, db.GiveUpDeliveriesParams{
		PartnerID: l.partner, InFlight: l.known(), MaxRows: asidePart, Owner: l.shared.Leases.Owner, Fence: l.fence(),
	})
	if err != nil {
		return fmt.Errorf("end the deliveries of partner %d: %w", l.partner, err)
	}
	if found.Reachable {
		l.nextFetch = time.Now() // the queue is gone
		return nil
	}
	l.nextFetch, l.aside = time.Time{}, false
	if found.Ended == asidePart {
		l.Wake()
	}
	return nil
}
