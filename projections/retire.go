package projections

import (
	"context"
	"slices"
	"time"

	"github.com/navlog/navlog/schemas/registry"
)

// retryRetiring is the pause after a drop, including one that was rejected because a query instance still reads.
const retryRetiring = 30 * time.Second

// toDrop returns a generation to drop: one that is being built, is outdated and whose successor is live, or else the
// oldest standby generation beyond the number to keep; 0 if there is none.
func (l *list) toDrop(keep int) int32 {
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
// list. Nothing is dropped unless the live generation follows the log and nothing is wrong with the log: no generation
// could replace a dropped one then. Like `navlog projection drop`, it does not drop a generation that is read. It
// retries a drop that failed after the list was changed, but completes none of another process: a database with the
// same name may belong to another deployment.
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
	live, id := r.keepers[l.live], l.toDrop(p.config.Standbys)
	if slices.Contains(l.dropped, r.unfinished) {
		id = r.unfinished
	}
	if id == 0 || live == nil || live.board.get().State != Following || live.board.ready() != nil ||
		time.Since(r.retried) < retryRetiring {
		return
	}
	r.retiring, r.unfinished = make(chan struct{}), 0
	go func(ended chan struct{}) {
		defer close(ended)
		err := (&Operator{stores: p.stores}).Drop(ctx, id)
		switch {
		case err == nil:
			p.log.Info("surplus generation dropped", "generation", id, "standbys", p.config.Standbys)
		case ctx.Err() == nil:
			r.unfinished = id
			p.log.Warn("surplus generation not dropped, retrying", "generation", id, "error", err)
		}
	}(r.retiring)
}
