package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
)

const registryEvery = time.Second

// registryView is what the registry said when it was last asked.
type registryView struct {
	known      bool      // it has answered at least once
	answered   time.Time // when it last did
	generation int32     // the live one
	fault      string    // why the live generation cannot be served; empty: it can
	programs   []programStatus
	err        error // of the last question
}

// programStatus is the last word of one program's instance.
type programStatus struct {
	program string
	at      time.Time // by our clock
	status  registry.ProgramStatus
}

// watchRegistry keeps the registry's view fresh until ctx ends.
func (q *Query) watchRegistry(ctx context.Context) error {
	tick := time.NewTicker(registryEvery)
	defer tick.Stop()
	for {
		was := q.registry.Load()
		now := q.askRegistry(ctx, was)
		if ctx.Err() != nil {
			return nil
		}
		q.registry.Store(now)
		if was != nil && was.generation != now.generation {
			q.listener.notify()
		}
		if broken := was != nil && was.err != nil; now.err != nil && !broken {
			q.log.Warn("registry not readable", "error", now.err)
		} else if now.err == nil && broken {
			q.log.Info("registry readable")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// askRegistry gives the next view. When PostgreSQL does not answer, what it
// said before stays: the read models are still there.
func (q *Query) askRegistry(ctx context.Context, was *registryView) *registryView {
	ctx, cancel := context.WithTimeout(ctx, q.looks)
	defer cancel()
	view := registryView{}
	if was != nil {
		view = *was
	}
	now := q.now()
	live, err := q.db.LiveGeneration(ctx)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		view.fault = "no generation is live: `navlog project` makes the first one"
	case err != nil:
		view.err = fmt.Errorf("read the live generation: %w", err)
		return &view
	case live.Schema != readmodel.Schema():
		view.fault = fmt.Sprintf("generation %d is live and has the tables of schema %s; this program reads schema %s: run the version that made it, or `navlog projection rebuild`",
			live.ID, live.Schema, readmodel.Schema())
	default:
		view.generation, view.fault = live.ID, ""
	}
	status, err := q.db.ListStatus(ctx)
	if err != nil {
		view.err = fmt.Errorf("read what the programs say: %w", err)
		return &view
	}
	view.programs = nil
	for _, s := range status {
		p := programStatus{program: s.Program, at: now.Add(-time.Duration(s.AgeMs) * time.Millisecond)}
		if err := json.Unmarshal(s.Status, &p.status); err != nil {
			p.status = registry.ProgramStatus{} // a program that says something else is one that says nothing
		}
		view.programs = append(view.programs, p)
	}
	view.known, view.answered, view.err = true, now, nil
	return &view
}

// report is the newest word of a program; nil when it is older than 5 s.
func (v *registryView) report(program string, now time.Time) *registry.ProgramStatus {
	var newest *programStatus
	for i := range v.programs {
		if p := &v.programs[i]; p.program == program && (newest == nil || p.at.After(newest.at)) {
			newest = p
		}
	}
	if newest == nil || now.Sub(newest.at) > trustedFor {
		return nil
	}
	return &newest.status
}

// chainState is the value of X-Chain-State: how ingest is doing.
func (q *Query) chainState() string {
	if view := q.registry.Load(); view != nil {
		if report := view.report(registry.Ingest, q.now()); report != nil {
			switch report.State {
			case "following", "backfilling", "frozen":
				return report.State
			}
		}
	}
	return "unknown"
}
