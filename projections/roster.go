package projections

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/navlog/navlog/projections/write"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
)

// listInterval is the interval at which the list of generations is read.
const listInterval = time.Second

// roster has the running keepers. Only supervise changes it.
type roster struct {
	mu      sync.Mutex
	keepers map[int32]*keeper
	liveID  int32
	// The status that is reported while no keeper has the live generation.
	idleBoard board
	// Why the successor of the outdated live generation cannot be built, until it can.
	unbuildable error
	// Why the live generation, which was marked bad, cannot be written, until another one is live.
	fault error
	// retiring is not nil while a generation is being dropped; it is closed at the end. retried is when the last drop
	// ended, and unfinished the generation whose drop failed: the list may show it as dropped already.
	retiring   chan struct{}
	retried    time.Time
	unfinished int32
}

func (r *roster) live() *board {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.keepers[r.liveID]; k != nil {
		return &k.board
	}
	return &r.idleBoard
}

// all lists the keepers by generation.
func (r *roster) all() []*keeper {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.keepers), func(a, b *keeper) int { return cmp.Compare(a.ID, b.ID) })
}

// allFaulty returns why the newest generation cannot be written, if no generation can be.
func (r *roster) allFaulty() (err error) {
	for _, k := range r.all() {
		if err = k.fault(); err == nil {
			return nil
		}
	}
	return err
}

// buildError returns why the successor of the live generation cannot be built until an operator acts; nil if it can
// be, or if none is needed.
func (r *roster) buildError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unbuildable
}

func (r *roster) setBuildError(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unbuildable = err
}

// supervise runs one keeper for each generation that must be written and that this binary can write, until ctx ends.
func (p *Projections) supervise(ctx context.Context) {
	defer func() {
		for _, k := range p.roster.all() {
			k.stop()
		}
		if p.roster.retiring != nil {
			<-p.roster.retiring
		}
	}()
	p.roster.idleBoard.set(Waiting, nil)
	var origin *event.Origin
	for logged := ""; ; {
		var err error
		if origin == nil {
			origin, err = p.origin(ctx)
		}
		if err == nil {
			err = p.reconcile(ctx, origin)
		}
		switch {
		case ctx.Err() != nil:
			return
		case permanent(err):
			p.roster.idleBoard.set(Bad, err)
		case err != nil: // the keepers continue
			p.roster.idleBoard.set(Retrying, err)
		}
		s := p.roster.idleBoard.get()
		if s.Reason != logged && s.Reason != "" { // once, not every second
			p.log.Warn("a generation cannot be written or created", "state", s.State, "error", s.Reason)
		}
		logged = s.Reason
		if s.State == Bad { // the next generation is built from the log that exists by then
			if now, err := chainlog.ReadOrigin(ctx, p.chainID, p.kafka.Options()...); err == nil && now != nil {
				origin = now
			}
		}
		if write.Pause(ctx, listInterval) != nil {
			return
		}
	}
}

// reconcile reads the list, stops the keepers of generations that are out of service, starts missing ones, and starts a
// successor if one is needed. If the live generation cannot be written, it only reports this: a rebuild fixes it, and
// this projector builds the generation that the rebuild creates.
func (p *Projections) reconcile(ctx context.Context, origin *event.Origin) error {
	l, err := p.generations(ctx, origin)
	if err != nil {
		return err
	}
	refusal := l.refusal
	needed := map[int32]generation{}
	building := false
	for _, g := range l.all {
		err := p.checkOrigin(g, origin)
		if err == nil {
			needed[g.ID] = g
			building = building || g.State == registry.Building
		} else if g.ID == l.live || l.live == 0 && g.State == registry.Building {
			refusal = err
		}
	}
	if l.live == 0 && building {
		refusal = nil
	}
	p.stopKeepers(needed, l)
	if err := p.startKeepers(ctx, needed, l.live); err != nil {
		return err
	}
	made, err := p.replaceOutdated(ctx, origin, l, needed)
	if err == nil || permanent(err) {
		p.roster.setBuildError(err)
	}
	if err != nil || made {
		return err // there is a new one to write
	}
	p.retire(ctx, l)
	if k := p.roster.keepers[l.live]; k != nil {
		refusal = k.fault()
	} else if p.roster.fault != nil {
		refusal = p.roster.fault
	} else if refusal == nil {
		refusal = p.roster.allFaulty()
	}
	if refusal == nil {
		p.roster.idleBoard.set(Waiting, nil) // also if an earlier call had an error or a refusal
		return nil
	}
	p.roster.idleBoard.set(Bad, refusal)
	return nil
}

// replaceOutdated provides a generation that represents the whole log. It acts if no generation is live, or if the live
// one is outdated: a vault was added, removed or restored since it was built. Then it creates a new generation beside
// the live one, and a later call makes it live when it is built and follows the log, unless this would take a vault out
// of the API that was restored meanwhile. It creates none while the live generation, or one that is being built, has a
// fault that another generation would most likely have too, such as a hole in the log.
func (p *Projections) replaceOutdated(ctx context.Context, origin *event.Origin, l *list,
	needed map[int32]generation) (made bool, err error) {
	live := p.roster.keepers[l.live]
	if l.live != 0 && (live == nil || !needed[l.live].Outdated) {
		return false, nil
	}
	var next, faulty *keeper
	outdated := live != nil && !live.faulty()
	for id, g := range needed {
		k := p.roster.keepers[id]
		switch {
		case g.State != registry.Building || k == nil:
		case k.faulty():
			faulty = k
		case k.fault() != nil: // a vault was restored
			outdated = outdated || live == nil
		case k.restored.Load() && live != nil && live.fault() == nil && omitsMore(g, needed[l.live]):
			// The live generation still has a vault that was restored meanwhile: only another successor will have it too.
		case next == nil || id > next.ID:
			next = k // even if a vault was added since it was built: it has the others
		}
	}
	if next == nil {
		if !outdated {
			return false, nil // one is being built and cannot be written here, or is broken
		}
		if faulty != nil {
			return false, &permanentError{fmt.Errorf("generation %d, the successor of the live one, cannot be built: %w; "+
				"resolve that, or drop this generation (`navlog projection drop %d`), so that another one is built", faulty.ID,
				faulty.fault(), faulty.ID)}
		}
		id := l.newest + 1
		made, err := p.create(ctx, id, origin)
		if err != nil {
			return false, fmt.Errorf("create generation %d, the successor of the live one: %w", id, err)
		}
		if made {
			p.log.Info("vaults of the live generation are outdated, another generation was created", "live", l.live,
				"generation", id)
		}
		return true, nil
	}
	if next.board.get().State != Following {
		return false, nil
	}
	if live != nil { // another instance may write it, whose status is unknown here
		has, err := readmodel.ReadPosition(ctx, p.conn, live.database)
		if err != nil || next.board.get().Seq < has.Seq {
			return false, err
		}
	}
	if err := promote(ctx, p.pool, next.ID, registry.Building, l.live); err != nil {
		return false, err
	}
	p.log.Info("generation is live", "generation", next.ID, "seq", next.board.get().Seq)
	return false, nil
}

// omitsMore reports whether a generation omits a vault that another one has.
func omitsMore(g, than generation) bool {
	return slices.ContainsFunc(g.Without, func(v []byte) bool {
		return !slices.ContainsFunc(than.Without, func(w []byte) bool { return bytes.Equal(v, w) })
	})
}

// stopKeepers ends the keepers of generations that are no longer needed.
func (p *Projections) stopKeepers(needed map[int32]generation, l *list) {
	r := &p.roster
	if l.live != 0 {
		r.fault = nil
	}
	for _, k := range r.all() {
		if _, ok := needed[k.ID]; ok {
			continue
		}
		k.stop()
		if k.ID == r.liveID && l.live == 0 {
			r.fault = k.fault()
			if why := cmp.Or(r.fault, l.refusal); why != nil {
				r.idleBoard.set(Bad, why) // before the keeper that has the reason is gone
			}
		}
		r.mu.Lock()
		delete(r.keepers, k.ID)
		r.mu.Unlock()
		k.reg.Unregister(k.metrics.own)
		p.log.Info("generation out of service", "generation", k.ID)
	}
}

// startKeepers starts the missing keepers, and records which one has the live generation.
func (p *Projections) startKeepers(ctx context.Context, needed map[int32]generation, live int32) error {
	r := &p.roster
	for id, g := range needed {
		if r.keepers[id] != nil {
			continue
		}
		k, err := p.keep(ctx, g)
		if err != nil {
			return err
		}
		r.mu.Lock()
		if r.keepers == nil {
			r.keepers = map[int32]*keeper{}
		}
		r.keepers[id] = k
		r.mu.Unlock()
	}
	r.mu.Lock()
	r.liveID = live
	r.mu.Unlock()
	return nil
}
