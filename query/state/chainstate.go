package state

import (
	"fmt"
	"slices"
	"time"

	"github.com/navlog/navlog/schemas/registry"
)

// Chain is the state of the path from the chain to an answer: the worst state of its parts, which are ingest, project
// and the served generation.
type Chain struct {
	State string
	// Reason explains to the public why the state is not following; empty while it is.
	Reason string
	// Head is the report of an ingest that sees the head of the chain, or nil if there is none.
	Head *registry.ProgramStatus
	// Project is the report of the most advanced projector, or nil if none reports.
	Project *registry.ProgramStatus
}

// chainStates are the states of the parts, from best to worst.
var chainStates = []string{registry.Following, registry.Backfilling, registry.Unknown, registry.Stalled,
	registry.Frozen}

// worse replaces the state if the given one is worse; the first of two equal states is kept.
func (c *Chain) worse(state, reason string) {
	if slices.Index(chainStates, state) > slices.Index(chainStates, c.State) {
		c.State, c.Reason = state, reason
	}
}

// Chain returns the state according to the last reports in the registry and the read models.
func (w *Watcher) Chain() Chain {
	now, view := w.Now(), w.registry.Load()
	c := Chain{State: registry.Following, Project: view.projector(now)}
	c.judgeIngest(view.Report(registry.Ingest, now))
	c.judgeProject()
	seen, _ := w.Seen()
	switch s := w.Snapshot(); {
	case !view.Known || now.Sub(view.Answered) > TrustedFor:
		c.worse(registry.Unknown, "PostgreSQL, where the programs report, did not answer within 5 s")
	case view.fault != "" && !now.Before(view.until):
		c.worse(registry.Stalled, view.fault)
	case s == nil:
		c.worse(registry.Unknown, "there is no snapshot of the read model yet")
	case now.Sub(seen) > TrustedFor:
		c.worse(registry.Stalled, fmt.Sprintf("the read model was last read %s ago", now.Sub(seen).Truncate(time.Second)))
	case s.Partial:
		c.worse(registry.Backfilling, "the first read model is being built")
	}
	return c
}

func (c *Chain) judgeIngest(report *registry.ProgramStatus) {
	switch {
	case report == nil || report.State == "":
		c.worse(registry.Unknown, "ingest reported nothing within 5 s")
		return
	case report.State == registry.Frozen:
		c.worse(registry.Frozen, "ingest appends nothing until an operator decides")
	case report.State == registry.Backfilling:
		c.worse(registry.Backfilling, "ingest reads the history of the chain")
	case report.State != registry.Following:
		c.worse(registry.Unknown, "ingest is "+report.State)
	}
	if report.HeadBlock > 0 && report.LagBlocks != nil {
		c.Head = report
	}
}

func (c *Chain) judgeProject() {
	switch report := c.Project; {
	case report == nil:
		c.worse(registry.Unknown, "project reported nothing within 5 s")
	case report.State == registry.Bad:
		c.worse(registry.Stalled, "the read model is bad and is not written: another one has to replace it")
	case report.State == registry.Retrying:
		c.worse(registry.Stalled, "project cannot write the read model and retries")
	case report.State == registry.Building || report.Building != nil:
		c.worse(registry.Backfilling, "the read model catches up with the log")
	case report.State != registry.Following:
		c.worse(registry.Unknown, "project is "+report.State)
	}
}

// projectStates are the states of a projector, most advanced first: only one of several instances writes the served
// generation, and the others cannot or need not.
var projectStates = []string{registry.Following, registry.Building, registry.Retrying, registry.Bad}

// projector returns the report of the most advanced projector of the live generation.
func (r *Registry) projector(now time.Time) (best *registry.ProgramStatus) {
	rank := func(s *registry.ProgramStatus) int {
		if n := slices.Index(projectStates, s.State); n >= 0 {
			return n
		}
		return len(projectStates)
	}
	for i := range r.programs {
		p := &r.programs[i]
		if p.program != registry.Project || p.status.State == "" || now.Sub(p.at) > TrustedFor {
			continue
		}
		if best == nil || rank(&p.status) < rank(best) {
			best = &p.status
		}
	}
	return best
}

// ChainState returns the state of the path from the chain to an answer.
func (w *Watcher) ChainState() string { return w.Chain().State }

// Lag returns how far the answers are behind the head of the chain, in blocks and in seconds of block time. Nil means
// unknown: nothing is served, or no head that continues the log is seen.
func (c *Chain) Lag(s *Snapshot) (blocks, seconds *uint64) {
	if s == nil || c.Head == nil {
		return nil, nil
	}
	behind := c.Head.HeadBlock - min(c.Head.HeadBlock, s.Block)
	if behind == 0 {
		return &behind, new(uint64)
	}
	if head := c.Head.HeadTime; head > 0 && s.Time > 0 {
		apart := head - min(head, s.Time)
		seconds = &apart
	}
	return &behind, seconds
}

// ETA returns the estimated seconds until the answers have caught up. Nil means unknown: a part has no estimate,
// nothing is catching up, or no progress is made in the current state.
func (c *Chain) ETA(s *Snapshot) *uint64 {
	behind, _ := c.Lag(s)
	if behind == nil || c.Project == nil ||
		slices.Index(chainStates, c.State) > slices.Index(chainStates, registry.Backfilling) {
		return nil
	}
	var eta *uint64
	for _, part := range []struct {
		behind bool
		eta    *uint64
	}{
		{c.Project.State == registry.Building, c.Project.ETASeconds},
		{c.Head.State == registry.Backfilling, c.Head.ETASeconds},
	} {
		switch {
		case !part.behind:
		case part.eta == nil:
			return nil
		case eta == nil || *part.eta > *eta:
			eta = part.eta
		}
	}
	return eta
}
