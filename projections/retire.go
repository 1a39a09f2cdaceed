package projections

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/navlog/navlog/schemas/registry"
)

// retryRetiring is the pause after a drop, including one that was rejected because a query instance still reads.
const retryRetiring = 30 * time.Second

// surplus returns a generation to drop: one that is being built, is outdated and whose successor is live, or else the
// oldest standby generation beyond the number to keep; 0 if there is none.
func (l *list) surplus(keep int) int32 {
	var standby []int32
	for _, g := range l.all {
		switch {
		case g.State == registry.Standby:
			standby = append(standby, g.ID)
		case g.State == registry.Building && g.Outdated && g.ID < l.live:
			return g.ID
		}
	}
	if keep < 1 || len(standby) <= keep {
		return 0
	}
	return standby[0]
}

// retire drops a surplus generation, in the background: its writer here releases the lease when a later call sees the
// list. If there is none, it completes a drop that was interrupted. Nothing is dropped unless the live generation
// follows the log. Like `navlog projection drop`, it does not drop a generation that is read.
func (p *Projections) retire(ctx context.Context, l *list) {
	r := &p.roster
	if r.retiring != nil {
		select {
		case <-r.retiring:
			r.retiring, r.retried = nil, time.Now()
		default:
			return
		}
	}
	live := r.keepers[l.live]
	if live == nil || live.fault() != nil || live.board.get().State != Following ||
		time.Since(r.retried) < retryRetiring {
		return
	}
	r.retiring = make(chan struct{})
	go func(ended chan struct{}) {
		defer close(ended)
		id, err := l.surplus(p.config.Standbys), error(nil)
		if id == 0 {
			id, err = p.interrupted(ctx, l)
		}
		if id != 0 && err == nil {
			err = (&Operator{stores: p.stores}).Drop(ctx, id)
		}
		switch {
		case err == nil && id != 0:
			p.log.Info("surplus generation dropped", "generation", id, "standbys", p.config.Standbys)
		case err != nil && ctx.Err() == nil:
			p.log.Warn("surplus generation not dropped, retrying", "generation", id, "error", err)
		}
	}(r.retiring)
}

// interrupted returns a dropped generation whose database still exists; 0 if there is none. The list shows the drop
// first, so one that was interrupted, or that ClickHouse refused, leaves the database.
func (p *Projections) interrupted(ctx context.Context, l *list) (int32, error) {
	var databases []string
	if err := p.conn.QueryRow(ctx, "SELECT groupArray(name) FROM system.databases").Scan(&databases); err != nil {
		return 0, fmt.Errorf("list the databases of ClickHouse: %w", err)
	}
	for _, id := range l.dropped {
		if slices.Contains(databases, p.clickhouse.Database(id)) {
			return id, nil
		}
	}
	return 0, nil
}
