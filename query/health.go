package query

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/webhook"
)

// plainError is a reason in words of our own, which anybody may read: an
// engine's name addresses and users.
type plainError string

func (e plainError) Error() string { return string(e) }

// reason is why the program is not ready.
type reason struct {
	text  string
	cause error // nil: the text says it
}

func (r reason) full() error {
	if r.cause == nil {
		return errors.New(r.text)
	}
	return fmt.Errorf("%s: %w", r.text, r.cause)
}

func (r reason) public() string {
	var plain plainError
	if errors.As(r.cause, &plain) {
		return r.text + ": " + string(plain)
	}
	return r.text
}

// Ready is nil while the program can serve a proven generation: its snapshot
// is younger than 5 s and PostgreSQL has answered within 5 s. Otherwise the
// error says in a sentence each what is missing.
func (q *Query) Ready() error {
	var all []error
	for _, r := range q.unready() {
		all = append(all, r.full())
	}
	return errors.Join(all...)
}

func (q *Query) unready() []reason {
	var reasons []reason
	now := q.now()
	if s := q.snapshot.Load(); s == nil || now.Sub(s.seen) > trustedFor {
		r := reason{text: "there is no snapshot of the read models yet"}
		if s != nil {
			r.text = fmt.Sprintf("the read models were last seen %s ago", now.Sub(s.seen).Round(time.Second))
		}
		if why := q.snapshotErr.Load(); why != nil {
			r.cause = *why
		}
		reasons = append(reasons, r)
	}
	if v := q.registry.Load(); v == nil || !v.known || now.Sub(v.answered) > trustedFor {
		r := reason{text: "PostgreSQL did not answer within 5 s"}
		if v != nil {
			r.cause = v.err
		}
		reasons = append(reasons, r)
	}
	return reasons
}

// Status is what the program says of itself.
type Status struct {
	State        string  `json:"state"` // serving or unready
	Listen       string  `json:"listen"`
	Generation   int32   `json:"generation"`
	Seq          uint64  `json:"seq"`
	IndexedBlock uint64  `json:"indexedBlock"`
	IndexedAt    *string `json:"indexedAt"`
	SnapshotAge  int64   `json:"snapshotAgeMs"`
	Reason       string  `json:"reason,omitempty"`
	// Leaving is the generations that answers begun earlier may still be reading.
	Leaving []LeavingGeneration `json:"leaving,omitempty"`
}

// LeavingGeneration is a generation that is read for at most ForMs more.
type LeavingGeneration struct {
	Generation int32 `json:"generation"`
	ForMs      int64 `json:"forMs"`
}

// Status may be called at any time.
func (q *Query) Status() any {
	out := Status{State: "serving", Listen: q.Addr(), Leaving: q.leaving.still(q.now(), q.cfg.WriteTimeout)}
	if err := q.Ready(); err != nil {
		out.State, out.Reason = "unready", err.Error()
	}
	if s := q.snapshot.Load(); s != nil {
		out.Generation, out.Seq, out.IndexedBlock, out.IndexedAt = s.id, s.seq, s.block, timeOrNull(s.time)
		out.SnapshotAge = q.now().Sub(s.seen).Milliseconds()
	}
	return out
}

func (q *Query) healthz(w http.ResponseWriter, r *http.Request) {
	q.writeOrFail(w, r, map[string]string{"status": "ok"})
}

func (q *Query) readyz(w http.ResponseWriter, r *http.Request) {
	reasons := q.unready()
	if len(reasons) == 0 {
		q.writeOrFail(w, r, map[string]string{"status": "ready"})
		return
	}
	texts := make([]string, len(reasons))
	for i, r := range reasons {
		texts[i] = r.public()
	}
	f := unavailable("Not ready.", nil)
	f.details = map[string][]string{"reasons": texts}
	q.fail(w, r, f)
}

type publicStatusJSON struct {
	ChainID      uint64            `json:"chainId"`
	ChainState   string            `json:"chainState"`
	FrozenReason *string           `json:"frozenReason"`
	Generation   *int32            `json:"generation"`
	Seq          *uint64           `json:"seq"`
	IndexedBlock *string           `json:"indexedBlock"`
	IndexedAt    *string           `json:"indexedAt"`
	HeadBlock    *string           `json:"headBlock"`
	FinalBlock   *string           `json:"finalBlock"`
	LagBlocks    *uint64           `json:"lagBlocks"`
	LagSeconds   *uint64           `json:"lagSeconds"`
	ETASeconds   *uint64           `json:"etaSeconds"`
	Programs     map[string]string `json:"programs"`
	Endpoints    []endpointJSON    `json:"endpoints"`
	Vaults       []vaultStatusJSON `json:"vaults"`
}

// endpointJSON leaves out the words of providers, which are for operators.
type endpointJSON struct {
	Name      string   `json:"name"`
	State     string   `json:"state"`
	InUse     bool     `json:"inUse"`
	LatencyMs *float64 `json:"latencyMs"`
	HeadBlock *string  `json:"headBlock"`
}

type vaultStatusJSON struct {
	Address   string  `json:"address"`
	Name      string  `json:"name"`
	LastNavAt *string `json:"lastNavAt"`
}

// status tells the public how far everything is. What no program said within
// 5 s is null or unknown.
func (q *Query) status(w http.ResponseWriter, r *http.Request) {
	x := &exchange{ctx: r.Context(), request: r, header: w.Header()}
	if err := q.admit(x, endpoint{}); err != nil { // limited like any public route
		q.fail(w, r, err)
		return
	}
	out := publicStatusJSON{ChainID: q.chainID, ChainState: q.chainState(), Programs: map[string]string{}, Endpoints: []endpointJSON{}, Vaults: []vaultStatusJSON{}}
	q.describePrograms(&out)
	if s := q.snapshot.Load(); s != nil {
		block := decimal(s.block)
		out.Generation, out.Seq, out.IndexedBlock, out.IndexedAt = &s.id, &s.seq, &block, timeOrNull(s.time)
		s.describeVaults(&out)
	}
	q.writeOrFail(w, r, out)
}

func (q *Query) describePrograms(out *publicStatusJSON) {
	view := q.registry.Load()
	for _, program := range registry.Programs {
		out.Programs[program] = "unknown"
		if view == nil {
			continue
		}
		report := view.report(program, q.now())
		if report == nil || report.State == "" {
			continue
		}
		out.Programs[program] = report.State
		if program == registry.Ingest {
			head, final := decimal(report.HeadBlock), decimal(report.FinalBlock)
			out.HeadBlock, out.FinalBlock = &head, &final
			out.LagBlocks, out.LagSeconds, out.ETASeconds = report.LagBlocks, report.LagSeconds, report.ETASeconds
			if report.State == "frozen" {
				out.FrozenReason = &report.Reason
			}
			for _, e := range report.Endpoints {
				one := endpointJSON{Name: e.Name, State: e.State, InUse: e.InUse, LatencyMs: e.LatencyMs}
				if e.HeadBlock > 0 {
					head := decimal(e.HeadBlock)
					one.HeadBlock = &head
				}
				out.Endpoints = append(out.Endpoints, one)
			}
		}
	}
}

func (s *snapshot) describeVaults(out *publicStatusJSON) {
	for _, v := range s.vaults {
		entry := vaultStatusJSON{Address: v.written, Name: v.name}
		if nav, ok := s.navs[v.address]; ok {
			at := webhook.FormatTime(uint64(nav.Time))
			entry.LastNavAt = &at
		}
		out.Vaults = append(out.Vaults, entry)
	}
}

func (q *Query) writeOrFail(w http.ResponseWriter, r *http.Request, data any) {
	if err := q.write(w, r, &answer{data: data}); err != nil {
		q.fail(w, r, err)
	}
}
