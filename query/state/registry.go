package state

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

const (
	registryEvery = time.Second
	// handover is how long a generation is served after one of another schema was made live. Meanwhile a balancer that
	// checks /readyz moves the requests to instances of the other version: in the chart, for which /readyz must fail 10
	// times in 10 s, that takes half of this time.
	handover = 30 * time.Second
	// uptimeEvery is how often the uptime is read: it is counted in days, including today.
	uptimeEvery = 10 * time.Second
)

// Registry is what the registry contained when it was last read: the served generation, and the reports of the
// programs.
type Registry struct {
	Known    bool      // it was read at least once
	Answered time.Time // when it was last read
	Err      error     // of the last attempt

	served    int32     // the live generation, or the first one while it is being built
	building  bool      // served is the one being built
	records   [][]byte  // the vault records that served was made with
	fault     string    // why no generation can be served; empty: one can
	until     time.Time // despite the fault, served is still served before this time
	programs  []programStatus
	uptime    []db.ListUptimeRow // of the last 90 days
	uptimeAt  time.Time          // when it was last read, by our clock
	uptimeErr error              // of that query
	logs      map[int32]string   // by generation: the id of its log, in hex
	ingest    []programStatus    // trusted reports of ingest about one log, oldest first
}

type programStatus struct {
	program string
	at      time.Time // by our clock
	status  registry.ProgramStatus
}

// Registry returns what was last read; it is empty before the first read.
func (w *Watcher) Registry() *Registry { return w.registry.Load() }

// watchRegistry keeps the registry's view up to date until ctx ends.
func (w *Watcher) watchRegistry(ctx context.Context) {
	tick := time.NewTicker(registryEvery)
	defer tick.Stop()
	for {
		was := w.registry.Load()
		now := w.LookAtRegistry(ctx)
		if ctx.Err() != nil {
			return
		}
		if was.served != now.served || was.building != now.building {
			w.notify()
		}
		if now.Err != nil && was.Err == nil {
			w.log.Warn("registry not readable", "error", now.Err)
		} else if now.Err == nil && was.Err != nil {
			w.log.Info("registry readable")
		}
		if now.uptimeErr != nil && was.uptimeErr == nil {
			w.log.Warn("uptime not readable", "error", now.uptimeErr)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// LookAtRegistry reads the registry once. If PostgreSQL does not respond, the previous content stays, because the
// read models are still available.
func (w *Watcher) LookAtRegistry(ctx context.Context) *Registry {
	asking, cancel := context.WithTimeout(ctx, w.LookTimeout)
	defer cancel()
	next, now := *w.registry.Load(), w.Now()
	next.Err = next.ask(asking, w.queries, now)
	if age := now.Sub(next.uptimeAt); next.Err == nil && (age >= uptimeEvery || age < 0) {
		next.askUptime(asking, w.queries, now)
	}
	if ctx.Err() == nil {
		w.registry.Store(&next)
	}
	return &next
}

func (r *Registry) ask(ctx context.Context, queries Queries, now time.Time) error {
	generations, err := queries.ListGenerations(ctx)
	if err != nil {
		return fmt.Errorf("read the generations: %w", err)
	}
	status, err := queries.ListStatus(ctx)
	if err != nil {
		return fmt.Errorf("read the status of the programs: %w", err)
	}
	r.choose(generations, now)
	r.logs = make(map[int32]string, len(generations))
	for _, g := range generations {
		r.logs[g.ID] = hex.EncodeToString(g.LogID)
	}
	r.programs = nil
	for _, s := range status {
		p := programStatus{program: s.Program, at: now.Add(-time.Duration(s.AgeMs) * time.Millisecond)}
		if err := json.Unmarshal(s.Status, &p.status); err != nil {
			p.status = registry.ProgramStatus{} // a report that cannot be parsed counts as none
		}
		r.programs = append(r.programs, p)
	}
	r.rememberIngest(now)
	r.Known, r.Answered = true, now
	return nil
}

// askUptime reads the uptime. If that fails, which is no reason to stop serving, the previous one stays.
func (r *Registry) askUptime(ctx context.Context, queries Queries, now time.Time) {
	r.uptimeAt = now
	uptime, err := queries.ListUptime(ctx)
	if r.uptimeErr = err; err == nil {
		r.uptime = uptime
	}
}

// Uptime returns the recorded uptime of the last 90 days, at most 10 s old. It must not be modified.
func (r *Registry) Uptime() []db.ListUptimeRow { return r.uptime }

// rememberIngest keeps the reports of ingest while they are trusted, and while ingest follows or backfills one log.
// In any other state it drops all of them: when ingest is frozen, a final block is no longer part of the chain, and a
// starting ingest still reports an earlier state.
func (r *Registry) rememberIngest(now time.Time) {
	newest := r.newest(registry.Ingest, now)
	if newest == nil || newest.status.LogID == "" ||
		newest.status.State != registry.Following && newest.status.State != registry.Backfilling {
		r.ingest = nil
		return
	}
	kept := make([]programStatus, 0, len(r.ingest)+1) // not in place, because earlier views share the old slice
	for _, p := range r.ingest {
		if p.status.LogID == newest.status.LogID && p.status.Seq < newest.status.Seq && now.Sub(p.at) <= TrustedFor {
			kept = append(kept, p)
		}
	}
	r.ingest = append(kept, *newest)
}

// IngestUpTo returns the newest report of ingest that covers its log up to seq at most: its final block and vaults
// hold for a read model that has the log up to seq. It returns nil if no report is trusted (Report), if ingest
// neither follows nor backfills, or if all trusted reports cover more of the log.
func (r *Registry) IngestUpTo(seq uint64, now time.Time) *registry.ProgramStatus {
	for i := len(r.ingest) - 1; i >= 0; i-- {
		p := &r.ingest[i]
		if age := now.Sub(p.at); p.status.Seq <= seq && age <= TrustedFor && age >= -TrustedFor {
			return &p.status
		}
	}
	return nil
}

// choose decides which generation is served: the live one or, if there has been none yet, the newest one that is being
// built. When a generation of another schema is made live, the one that was live before is served a little longer,
// because it still is a standby that a projector writes and nothing drops while an instance serves it.
func (r *Registry) choose(generations []db.ListGenerationsRow, now time.Time) {
	was := *r
	r.served, r.building, r.records, r.fault, r.until = 0, false, nil, "", time.Time{}
	live := slices.IndexFunc(generations, func(g db.ListGenerationsRow) bool { return g.State == registry.Live })
	switch {
	case live >= 0 && generations[live].Schema != readmodel.Schema():
		r.fault = fmt.Sprintf("generation %d is live and has the tables of schema %s; this program reads schema %s: run "+
			"the version that made it, or `navlog projection rebuild`",
			generations[live].ID, generations[live].Schema, readmodel.Schema())
		if !was.building && slices.ContainsFunc(generations, func(g db.ListGenerationsRow) bool {
			return g.ID == was.served && g.State == registry.Standby && g.Schema == readmodel.Schema()
		}) {
			r.served, r.records, r.until = was.served, was.records, was.until
			if was.fault == "" {
				r.until = now.Add(handover)
			}
		}
		return
	case live >= 0:
		r.served, r.records = generations[live].ID, generations[live].Vaults
		return
	}
	for _, g := range generations {
		if g.State == registry.Building && g.Schema == readmodel.Schema() {
			r.served, r.building, r.records = g.ID, true, g.Vaults
		}
	}
	if !r.building {
		r.fault = "no generation is live: `navlog project` makes the first one"
	}
}

// Fault returns why no generation can be served from now on, or "". The one that was live before may still be served.
func (r *Registry) Fault() string { return r.fault }

// LogOf returns the id of the log that a generation was built from, in hex, or "" if the registry does not have the
// generation.
func (r *Registry) LogOf(generation int32) string { return r.logs[generation] }

// Report returns the newest report of a program, or nil if it is older than TrustedFor or that far in the future. A
// report of a standby is used only if there is no other.
func (r *Registry) Report(program string, now time.Time) *registry.ProgramStatus {
	if p := r.newest(program, now); p != nil {
		return &p.status
	}
	return nil
}

func (r *Registry) newest(program string, now time.Time) (newest *programStatus) {
	for i := range r.programs {
		p := &r.programs[i]
		if age := now.Sub(p.at); p.program != program || age > TrustedFor || age < -TrustedFor {
			continue
		}
		works, before := p.status.State != registry.StandingBy, newest != nil && newest.status.State != registry.StandingBy
		if newest == nil || works && !before || works == before && p.at.After(newest.at) {
			newest = p
		}
	}
	return newest
}

// FirstSync returns the progress of the first generation, or nil if one is live or project does not report progress.
func (w *Watcher) FirstSync() *registry.BuildingStatus {
	r := w.registry.Load()
	if !r.building {
		return nil
	}
	if report := r.Report(registry.Project, w.Now()); report != nil && report.Building != nil &&
		report.Building.Generation == r.served {
		return report.Building
	}
	return nil
}
