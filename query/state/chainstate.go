package state

import (
	"fmt"
	"slices"
	"time"

	"github.com/navlog/navlog/schemas/registry"
)

// Chain is the state of the way from the chain to an answer: the worst of its parts, which
// are ingest, project and the generation that is served.
type Chain struct {
	State string
	// Reason says in words for the public why the state is not following; empty while it is.
	Reason string
	// Head is the report of an ingest that sees the head of the chain; nil while none does.
	Head *registry.ProgramStatus
	// Project is the report of the projector that is furthest; nil while none reports.
	Project *registry.ProgramStatus
}

// chainStates are the states of the parts, the best first.
var chainStates = []string{registry.Following, registry.Backfilling, registry.Unknown, registry.Stalled, registry.Frozen}

// worse keeps the state that is worse, the earlier one of two that are equal.
func (c *Chain) worse(state, reason string) {
	if slices.Index(chainStates, state) > slices.Index(chainStates, c.State) {
		c.State, c.Reason = state, reason
	}
}

// Chain judges what the registry and the read models said last.
func (w *Watcher) Chain() Chain {
	now, view := w.Now(), w.registry.Load()
	c := Chain{State: registry.Following, Project: view.projector(now)}
	c.judgeIngest(view.Report(registry.Ingest, now))
	c.judgeProject()
	seen, _ := w.Seen()
	switch s := w.Snapshot(); {
	case view == nil || !view.Known || now.Sub(view.Answered) > TrustedFor:
		c.worse(registry.Unknown, "PostgreSQL, where the programs report, did not answer within 5 s")
	case view.fault != "":
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
		c.worse(registry.Stalled, "the read model is bad and is not written: an operator has to rebuild it")
	case report.State == registry.Retrying:
		c.worse(registry.Stalled, "project cannot write the read model and retries")
	case report.State == registry.Building || report.Building != nil:
		c.worse(registry.Backfilling, "the read model catches up with the log")
	case report.State != registry.Following:
		c.worse(registry.Unknown, "project is "+report.State)
	}
}

// projectStates are the states of a projector, the most advanced first: one instance of several
// writes the served generation, and the others cannot or need not.
var projectStates = []string{registry.Following, registry.Building, registry.Retrying, registry.Bad}

// projector is the report of the projector that is furthest with the live generation.
func (r *Registry) projector(now time.Time) (best *registry.ProgramStatus) {
	if r == nil {
		return nil
	}
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

// ChainState is the state of the way from the chain to an answer.
func (w *Watcher) ChainState() string { return w.Chain().State }

// Lag is how far the answers are behind the head of the chain, by number and by block time.
// Nil is not known: nothing is served, or no head that goes on from the log is seen.
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

// ETA is the seconds until the answers have caught up. Nil is not known: a part has no
// estimate, nothing is catching up, or the state is one in which nothing comes nearer.
func (c *Chain) ETA(s *Snapshot) *uint64 {
	behind, _ := c.Lag(s)
	if behind == nil || c.Project == nil || slices.Index(chainStates, c.State) > slices.Index(chainStates, registry.Backfilling) {
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
