// Package health reports the state of the program: whether it is alive, whether it can serve a proven generation and,
// on a public page, how far the whole of navlog is. Its data comes from the watcher in package state; it queries the
// read models only for the time of each vault's newest NAV.
package health

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/singleflight"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// Health reports on what the watcher saw of the engines.
type Health struct {
	Watcher *state.Watcher
	Listen  func() string // the address of the listener

	ending   atomic.Bool
	explorer *explorerJSON
	navs     lastNavs
}

// New returns a Health; listen returns the address of the listener, and /status shows explorer.
func New(watcher *state.Watcher, listen func() string, explorer Explorer) *Health {
	return &Health{Watcher: watcher, Listen: listen, explorer: explorer.public(), navs: lastNavs{read: readLastNavs}}
}

// End makes the program unready for good, because it is about to end.
func (h *Health) End() { h.ending.Store(true) }

// Probes returns the health endpoints.
func (h *Health) Probes() []serve.Probe {
	return []serve.Probe{
		{Path: "/healthz", Get: h.healthz},
		{Path: "/readyz", Get: h.readyz},
		{Path: "/status", Get: h.status, Limited: true},
	}
}

type reason struct {
	text  string
	cause error // nil: the text is complete
}

func (r reason) full() error {
	if r.cause == nil {
		return errors.New(r.text)
	}
	return fmt.Errorf("%s: %w", r.text, r.cause)
}

func (r reason) public() string {
	if plain := state.Plain(r.cause); plain != "" {
		return r.text + ": " + plain
	}
	return r.text
}

// Ready returns nil while the program can serve a proven generation and should get requests: its snapshot is younger
// than 5 s, PostgreSQL has responded within the last 5 s, no generation of another schema is live, and the program is
// not ending. Otherwise the error has a sentence for each missing condition.
func (h *Health) Ready() error {
	var all []error
	for _, r := range h.unready() {
		all = append(all, r.full())
	}
	return errors.Join(all...)
}

func (h *Health) unready() []reason {
	var reasons []reason
	if h.ending.Load() {
		reasons = append(reasons, reason{"the program is ending", nil})
	}
	now := h.Watcher.Now()
	seen, fault := h.Watcher.Seen()
	switch s := h.Watcher.Snapshot(); {
	case s == nil:
		reasons = append(reasons, reason{"there is no snapshot of the read models in ClickHouse yet", fault})
	case now.Sub(seen) > state.TrustedFor:
		reasons = append(reasons, reason{"ClickHouse has not shown the read models since " + instant(seen), fault})
	case h.Watcher.Registry().Fault() != "": // a balancer still has time to move the requests to other instances
		reasons = append(reasons, reason{h.Watcher.Registry().Fault(), nil})
	case s.Partial:
		reasons = append(reasons,
			reason{fmt.Sprintf("no generation is live, and generation %d is being built", s.Generation), nil})
	}
	if v := h.Watcher.Registry(); !v.Known || now.Sub(v.Answered) > state.TrustedFor {
		text := "PostgreSQL has not answered yet"
		if v.Known {
			text = "PostgreSQL has not answered since " + instant(v.Answered)
		}
		reasons = append(reasons, reason{text, v.Err})
	}
	return reasons
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Status is the state that the program reports about itself.
type Status struct {
	State        string  `json:"state"` // serving or unready
	Listen       string  `json:"listen"`
	Generation   int32   `json:"generation"`
	Seq          uint64  `json:"seq"`
	IndexedBlock uint64  `json:"indexedBlock"`
	IndexedAt    *string `json:"indexedAt"`
	SnapshotAge  int64   `json:"snapshotAgeMs"`
	Reason       string  `json:"reason,omitempty"`
	// Leaving are the generations that unfinished responses may still be reading.
	Leaving []LeavingGeneration `json:"leaving,omitempty"`
}

// LeavingGeneration is a generation that is read for at most ForMs longer.
type LeavingGeneration struct {
	Generation int32 `json:"generation"`
	ForMs      int64 `json:"forMs"`
}

// Status returns the current status. It is safe to call at any time.
func (h *Health) Status() Status {
	out := Status{State: registry.Serving, Listen: h.Listen()}
	s := h.Watcher.Snapshot()
	leaving := h.Watcher.Leaving() // after the snapshot, so that a generation that is no longer current is included
	for _, id := range slices.Sorted(maps.Keys(leaving)) {
		out.Leaving = append(out.Leaving, LeavingGeneration{id, leaving[id].Milliseconds()})
	}
	if err := h.Ready(); err != nil {
		out.State, out.Reason = "unready", err.Error()
	}
	if s != nil {
		out.Generation, out.Seq, out.IndexedBlock, out.IndexedAt = s.Generation, s.Seq, s.Block, serve.TimeOrNull(s.Time)
		seen, _ := h.Watcher.Seen()
		out.SnapshotAge = h.Watcher.Now().Sub(seen).Milliseconds()
	}
	return out
}

func (h *Health) healthz(*serve.Request) (*serve.Answer, error) {
	return &serve.Answer{Data: map[string]string{"status": "ok"}}, nil
}

func (h *Health) readyz(*serve.Request) (*serve.Answer, error) {
	reasons := h.unready()
	if len(reasons) == 0 {
		return &serve.Answer{Data: map[string]string{"status": "ready"}}, nil
	}
	texts := make([]string, len(reasons))
	for i, r := range reasons {
		texts[i] = r.public()
	}
	f := serve.Unavailable("Not ready.", nil)
	f.Details = map[string][]string{"reasons": texts}
	return nil, f
}

type statusJSON struct {
	ChainID      uint64                   `json:"chainId"`
	ChainState   string                   `json:"chainState"`
	ChainReason  *string                  `json:"chainReason"`
	FrozenReason *string                  `json:"frozenReason"`
	Generation   *int32                   `json:"generation"`
	Seq          *uint64                  `json:"seq"`
	IndexedBlock *string                  `json:"indexedBlock"`
	IndexedAt    *string                  `json:"indexedAt"`
	HeadBlock    *string                  `json:"headBlock"`
	FinalBlock   *string                  `json:"finalBlock"`
	ProvenTo     *string                  `json:"provenTo"`
	WithoutData  *uint64                  `json:"logsWithoutData"`
	LagBlocks    *uint64                  `json:"lagBlocks"`
	LagSeconds   *uint64                  `json:"lagSeconds"`
	ETASeconds   *uint64                  `json:"etaSeconds"`
	Endpoints    []endpointJSON           `json:"endpoints"`
	FirstSync    *registry.BuildingStatus `json:"firstSync"`
	Programs     map[string]string        `json:"programs"`
	Vaults       []vaultJSON              `json:"vaults"`
	Explorer     *explorerJSON            `json:"explorer"`
	Uptime       *uptimeJSON              `json:"uptime"`
}

// endpointJSON counts the calls to one node since ingest started. It identifies the node only by its position in
// chain.rpc, not by name.
type endpointJSON struct {
	Calls uint64 `json:"calls"`
	Units uint64 `json:"units"`
}

type vaultJSON struct {
	Address   string   `json:"address"`
	Name      string   `json:"name"`
	LastNavAt *string  `json:"lastNavAt"`
	State     string   `json:"state"`
	Warnings  []string `json:"warnings"`
}

// States of a vault: whether the served generation contains it, and whether it is configured. If only one is true,
// the next generation changes that.
const (
	vaultServed  = "served"
	vaultJoining = "joining"
	vaultLeaving = "leaving"
	vaultRemoved = "removed"
)

// vaultsOf returns all vaults of the log, with the warnings that the programs reported about them.
func vaultsOf(s *state.Snapshot, navs map[common.Address]uint64, warnings []registry.VaultWarning) []vaultJSON {
	out := []vaultJSON{}
	list := func(vaults []state.Vault, configured, removed string) {
		for _, v := range vaults {
			now := configured
			if v.Removed {
				now = removed
			}
			texts := []string{}
			for _, w := range warnings {
				if w.Address == v.Written {
					texts = append(texts, w.Warning)
				}
			}
			out = append(out, vaultJSON{v.Written, v.Name, serve.TimeOrNull(navs[v.Address]), now, texts})
		}
	}
	list(s.Vaults, vaultServed, vaultLeaving)
	list(s.Absent, vaultJoining, vaultRemoved)
	return out
}

// status returns the public status. What no program reported within the last 5 s is null or unknown. The nodes and
// their states are only shown to operators, by `navlog status`.
func (h *Health) status(r *serve.Request) (*serve.Answer, error) {
	s, chain := h.Watcher.Snapshot(), h.Watcher.Chain()
	out := statusJSON{ChainID: h.Watcher.ChainID, ChainState: chain.State, ChainReason: serve.OrNull(chain.Reason),
		FirstSync: h.Watcher.FirstSync(), Endpoints: []endpointJSON{}, Programs: map[string]string{}, Vaults: []vaultJSON{},
		Explorer: h.explorer}
	warnings := h.describePrograms(&out, s)
	out.Uptime = describeUptime(h.Watcher.Registry().Uptime())
	out.LagBlocks, out.LagSeconds = chain.Lag(s)
	out.ETASeconds = chain.ETA(s)
	if s != nil {
		out.Generation, out.Seq = &s.Generation, &s.Seq
		out.IndexedBlock, out.IndexedAt = new(serve.Decimal(s.Block)), serve.TimeOrNull(s.Time)
		out.Vaults = vaultsOf(s, h.navs.at(r.Context, s), warnings)
	}
	return &serve.Answer{Data: out}, nil
}

// describePrograms adds what the programs reported, and returns their warnings about vaults.
func (h *Health) describePrograms(out *statusJSON, s *state.Snapshot) (warnings []registry.VaultWarning) {
	view := h.Watcher.Registry()
	for _, program := range registry.Programs {
		out.Programs[program] = registry.Unknown
		report := view.Report(program, h.Watcher.Now())
		if report == nil || report.State == "" {
			continue
		}
		out.Programs[program] = report.State
		warnings = append(warnings, report.VaultWarnings...)
		if program == registry.Ingest {
			describeIngest(report, s, out)
		}
	}
	return warnings
}

// describeIngest adds what ingest reported within the last seconds. A block is in the tables milliseconds before
// ingest reports it, so the head is at least the served block.
func describeIngest(report *registry.ProgramStatus, s *state.Snapshot, out *statusJSON) {
	out.HeadBlock, out.FinalBlock = known(report.HeadBlock), known(report.FinalBlock)
	if s != nil && report.HeadBlock > 0 && s.Block > report.HeadBlock {
		out.HeadBlock = known(s.Block)
	}
	if report.State == registry.Frozen {
		out.FrozenReason = &report.Reason
	}
	out.ProvenTo, out.WithoutData = known(report.ProvenTo), &report.LogsWithoutData
	for _, e := range report.Endpoints {
		out.Endpoints = append(out.Endpoints, endpointJSON{e.Calls, e.Units})
	}
}

// known returns a block number as text, or nil for 0, which means that it is not known yet.
func known(block uint64) *string {
	if block == 0 {
		return nil
	}
	return new(serve.Decimal(block))
}

// navsWithin is how long /status and a scrape of the metrics wait for the times of the newest NAVs.
const navsWithin = 2 * time.Second

// lastNavs caches what /status and the metrics read from the read models. They are queried once for each snapshot,
// however many clients request /status, so the query needs no slot; while ClickHouse is down, the last known values are
// shown.
type lastNavs struct {
	read   func(context.Context, *state.Snapshot) (map[common.Address]uint64, error)
	asking singleflight.Group
	seen   atomic.Pointer[navTimes]
}

// navTimes are the times of the newest NAV of each vault at a snapshot.
type navTimes struct {
	of    *state.Snapshot
	times map[common.Address]uint64
}

func (n *lastNavs) at(ctx context.Context, s *state.Snapshot) map[common.Address]uint64 {
	if seen := n.seen.Load(); seen != nil && seen.of == s {
		return seen.times
	}
	asked := n.asking.DoChan("", func() (any, error) {
		if seen := n.seen.Load(); seen != nil && seen.of == s {
			return nil, nil // read by a call that ended just before
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), navsWithin)
		defer cancel()
		times, err := n.read(ctx, s)
		if err == nil {
			n.seen.Store(&navTimes{s, times})
		}
		return nil, err
	})
	select {
	case <-asked:
	case <-ctx.Done():
	}
	if seen := n.seen.Load(); seen != nil {
		return seen.times
	}
	return nil
}

func readLastNavs(ctx context.Context, s *state.Snapshot) (map[common.Address]uint64, error) {
	if s.Partial {
		return nil, nil // there are no lists yet
	}
	navs, err := ask.NewestNavs(ctx, ask.Newest(s))
	times := make(map[common.Address]uint64, len(navs))
	for i, nav := range navs {
		if nav != nil {
			times[s.Vaults[i].Address] = uint64(nav.Time)
		}
	}
	return times, err
}

// uptimeDays is the number of days in /status, as ListUptime reads them.
const uptimeDays = 90

// uptimeJSON is how long the programs were up on each of the last days, UTC. A day without records is null in every
// list.
type uptimeJSON struct {
	From     string                        `json:"from"`
	To       string                        `json:"to"` // today, as recorded so far
	Programs map[string]*programUptimeJSON `json:"programs"`
}

// programUptimeJSON has a value for each day from From to To.
type programUptimeJSON struct {
	Recorded []*int64 `json:"recorded"` // recorded seconds of the day; the other lists are parts of it
	Running  []*int64 `json:"running"`
	InRole   []*int64 `json:"inRole"`
}

// describeUptime returns nil if nothing is recorded. A program without records is left out.
func describeUptime(rows []db.ListUptimeRow) *uptimeJSON {
	var out *uptimeJSON
	for _, r := range rows {
		today, err := time.Parse(time.DateOnly, r.Today)
		if err != nil || r.DaysAgo < 0 || r.DaysAgo >= uptimeDays || !slices.Contains(registry.Programs, r.Program) {
			continue
		}
		if out == nil {
			from := today.AddDate(0, 0, 1-uptimeDays).Format(time.DateOnly)
			out = &uptimeJSON{From: from, To: r.Today, Programs: map[string]*programUptimeJSON{}}
		}
		p := out.Programs[r.Program]
		if p == nil {
			p = &programUptimeJSON{make([]*int64, uptimeDays), make([]*int64, uptimeDays), make([]*int64, uptimeDays)}
			out.Programs[r.Program] = p
		}
		day := uptimeDays - 1 - r.DaysAgo
		p.Recorded[day], p.Running[day], p.InRole[day] = &r.RecordedSeconds, &r.RunningSeconds, &r.WorkingSeconds
	}
	return out
}
