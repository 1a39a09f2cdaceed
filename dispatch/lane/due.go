package lane

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// fetchPerPermit is how many deliveries a lane reads ahead for each POST that it
// may have under way.
const fetchPerPermit = 16

// asidePart is how many deliveries a lane parks or ends in one turn, so that a
// partner with a big backlog keeps PostgreSQL from nobody else for long.
const asidePart = 1000

// due tells whether it is time to read deliveries.
func (l *Lane) due() bool { return !l.look.IsZero() && !time.Now().Before(l.look) }

// fetchDue reads what is due, where there is room for it. After the lane was held or
// shut that is what is parked, whenever it was due, and it stays to be read while POSTs
// from before take all permits.
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

// refresh reads the queue anew where that was long ago: with a slow receiver what was read
// ahead waits for minutes, and an event that was corrected meanwhile is to be told as it is
// now. It is asked by who is about to send: what waits for a slot, however long, costs
// nothing, and a queue that is emptied faster is never read twice. What cannot be read is
// not sent, and looked for in the next turn, which says why.
func (l *Lane) refresh(ctx context.Context) {
	if time.Since(l.read) < l.shared.Timing.Scan {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, l.shared.Timing.Database)
	defer cancel()
	l.queue = nil
	if l.fetch(ctx, l.permits()*fetchPerPermit) != nil {
		l.queue, l.look = nil, time.Now()
	}
}

// untilNext is how long nothing will be due: what is in the queue waits for a slot or
// a permit, and not for a time.
func (l *Lane) untilNext(longest time.Duration) time.Duration {
	if l.look.IsZero() || len(l.queue) > 0 || len(l.inFlight) >= l.permits() {
		return longest
	}
	return min(max(time.Until(l.look), 0), longest)
}

// known are the deliveries that this lane has in memory.
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

// fetch reads what is due, and when there will be more.
func (l *Lane) fetch(ctx context.Context, limit int) error {
	read := time.Now()
	rows, err := l.shared.Queries.DueDeliveries(ctx, db.DueDeliveriesParams{PartnerID: l.partner, InFlight: l.known(), MaxRows: int32(limit)})
	if err != nil {
		return fmt.Errorf("read the due deliveries of partner %d: %w", l.partner, err)
	}
	l.queue, l.read = rows, read
	if len(rows) == limit {
		l.look = time.Now()
		return nil
	}
	wait, err := l.shared.Queries.NextDue(ctx, db.NextDueParams{PartnerID: l.partner, InFlight: l.known()})
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
func (l *Lane) park(ctx context.Context, due bool) error {
	l.queue, l.aside = nil, true
	if !due {
		return nil
	}
	n, err := l.shared.Queries.ParkDeliveries(ctx, db.ParkDeliveriesParams{
		Parked: next(registry.Pending, breakerOpened), PartnerID: l.partner, InFlight: l.known(), MaxRows: asidePart, Owner: l.shared.Owner, Fence: l.fence,
	})
	if err != nil {
		return fmt.Errorf("park the deliveries of partner %d: %w", l.partner, err)
	}
	l.shared.Metrics.Parked.Add(float64(n))
	l.look = time.Time{}
	if n == asidePart {
		l.Wake()
	}
	return nil
}

// giveUp ends what waits, in parts as park does, because there is nowhere to send
// it. A URL that has just been registered may not be known here yet, so it asks
// first.
func (l *Lane) giveUp(ctx context.Context, due bool) error {
	if len(l.queue) == 0 && !due {
		return nil
	}
	l.queue = nil
	reachable, err := l.shared.Queries.Reachable(ctx, []int64{l.partner})
	if err != nil {
		return fmt.Errorf("look for the endpoint of partner %d: %w", l.partner, err)
	}
	if len(reachable) > 0 {
		l.shared.Expire()
		l.Wake()
		return nil
	}
	n, err := l.shared.Queries.GiveUpDeliveries(ctx, db.GiveUpDeliveriesParams{
		NoEndpoint: next(registry.Pending, noEndpoint), PartnerID: l.partner, InFlight: l.known(), MaxRows: asidePart, Owner: l.shared.Owner, Fence: l.fence,
	})
	if err != nil {
		return fmt.Errorf("end the deliveries of partner %d: %w", l.partner, err)
	}
	l.look, l.aside = time.Time{}, false
	if n == asidePart {
		l.Wake()
	}
	return nil
}
