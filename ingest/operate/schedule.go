package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/time/rate"

	"github.com/navlog/navlog/ingest/proof"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/mapping"
)

// Schedule proves the final blocks of a log by their receipts, every so often, at a limited rate of calls. A run reads
// the header of each block, which must hash to the block's hash and continue the chain. A block whose bloom may contain
// a vault, or of which the log has logs, is proven by its receipts. The writer commits the progress with its next
// cursor (Proven), and the next run continues there. If a run finds the log wrong, the next one reads that block again:
// the endpoints may have been wrong.
type Schedule struct {
	Log
	every  time.Duration
	status *status.Tracker
	log    *slog.Logger
	// advanced is called with what is proven of the vaults when more blocks were proven.
	advanced func(covered []writer.Coverage)
	pace     *rate.Limiter
	atOnce   uint64 // headers in a batch

	mu      sync.Mutex
	covered []writer.Coverage // as last committed
	final   uint64            // as last committed
	frozen  bool              // as last committed
	proven  map[common.Address]uint64
	ended   bool // a run has ended, and its progress is not committed
}

// unproven is a vault whose blocks after proven, up to to, are in the log and not proven.
type unproven struct {
	vault      common.Address
	proven, to uint64
}

// NewSchedule returns a schedule that reads so many headers and receipts a second. It does nothing before Run.
func NewSchedule(
	l Log, every time.Duration, perSecond float64, status *status.Tracker, log *slog.Logger,
	advanced func([]writer.Coverage),
) *Schedule {
	p := &Schedule{
		Log: l, every: every, status: status, log: log, advanced: advanced,
		atOnce: uint64(min(rpc.MaxBatchHeaders, math.Ceil(perSecond))), proven: map[common.Address]uint64{},
	}
	p.pace = rate.NewLimiter(rate.Limit(perSecond), int(max(p.atOnce, callsPerProof)))
	return p
}

// Run starts one run after the other until ctx ends.
func (p *Schedule) Run(ctx context.Context) {
	for ctx.Err() == nil {
		next := time.Now().Add(p.every)
		err := p.RunOnce(ctx)
		var found *Finding
		switch {
		case ctx.Err() != nil:
			return
		case errors.As(err, &found) && found.Wrong:
			err = fmt.Errorf("%w; an endpoint of chain.rpc returned wrong logs when the block was read: index the chain into "+
				"a new log from another endpoint", err)
			p.log.Error("the log contradicts the chain", "error", err)
			p.warn("")
			p.status.Note(func(st *status.Status) { st.Disproven, st.DisprovenAt = err.Error(), found.Block })
		case err != nil:
			p.log.Warn("proof by receipts ended", "error", err)
			p.warn("the proof by receipts ended: " + err.Error())
		default:
			p.warn("")
		}
		_ = rpc.Sleep(ctx, time.Until(next))
	}
}

func (p *Schedule) warn(why string) {
	p.status.Note(func(st *status.Status) { st.ReceiptsWarning = why })
}

// receiptsRun is one run over what was committed when it began.
type receiptsRun struct {
	*Schedule
	remaining []unproven // proven moves, and to is where the run ends
	logged    index      // nil before the log is read
	node      *rpc.Node  // proved a block that the endpoint before it could not prove; nil for the endpoint in use
	last      *rpc.Header
	// In so many attempts, endpoints did not prove block open, while another one only failed.
	openBlock uint64
	attempts  int
}

// maxAttempts is the number of attempts in which an endpoint may fail before the verdict of the others about a block
// counts: about half a minute.
const maxAttempts = 8

// warnAfterFailures is how many attempts in a row fail before the status reports it.
const warnAfterFailures = 3

// RunOnce makes one run. It retries after errors of nodes, and returns an error if the log is disproven or a block
// cannot be proven.
func (p *Schedule) RunOnce(ctx context.Context) error {
	r, failed := p.begin(), 0
	warned := true // perhaps by an earlier run, about the first block of this one
	for wait := new(rpc.Backoff); ctx.Err() == nil; {
		vaults, from, to := r.next()
		if len(vaults) == 0 || p.stopped() {
			break
		}
		err := r.step(ctx, vaults, from, to)
		var found *Finding
		switch {
		case errors.As(err, &found):
			return err
		case err == nil:
			if warned {
				p.warn("")
			}
			wait.Reset()
			failed, warned = 0, false
		case ctx.Err() == nil:
			p.log.Warn("proof by receipts failed, retrying", "error", err)
			if failed++; failed >= warnAfterFailures {
				p.warn("the proof by receipts waits: " + err.Error())
				warned = true
			}
			r.last, r.node = nil, nil
			_ = wait.Sleep(ctx)
		}
	}
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	return nil
}

// stopped reports whether the log is frozen: then the chain has other blocks than the log, and an operator decides.
func (p *Schedule) stopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.frozen
}

// begin returns a run over the blocks that are final and not proven. A proof of another block would not apply to the
// one that replaces it.
func (p *Schedule) begin() *receiptsRun {
	r := &receiptsRun{Schedule: p}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.coverage() {
		u := unproven{c.Address, c.ProvenTo(), min(c.Unproven, p.final)}
		if !c.Removed && c.Proven < c.Unproven && u.proven < u.to {
			r.remaining = append(r.remaining, u)
		}
	}
	return r
}

// next returns the vaults that are furthest behind, and the blocks to prove for them before they meet the next vault.
func (r *receiptsRun) next() (vaults []common.Address, from, to uint64) {
	from, to = math.MaxUint64, math.MaxUint64
	for _, u := range r.remaining {
		from = min(from, u.proven+1)
	}
	for _, u := range r.remaining {
		if u.proven+1 == from {
			vaults, to = append(vaults, u.vault), min(to, u.to)
		} else {
			to = min(to, u.proven)
		}
	}
	return vaults, from, to
}

// step proves a few blocks from `from`. If an endpoint fails to prove a block, the others are called for it, and one
// that proves it is right. Otherwise the block is disproven, or cannot be proven, only once every endpoint reports
// this, or the others have failed in maxAttempts attempts.
func (r *receiptsRun) step(ctx context.Context, vaults []common.Address, from, to uint64) error {
	if r.logged == nil {
		var err error
		if r.logged, err = r.index(ctx, r.compares); err != nil {
			return err
		}
	}
	n := r.node
	if n == nil {
		var err error
		if n, err = r.Nodes.Current(ctx); err != nil {
			return err
		}
	}
	at, err := r.blocks(ctx, n, vaults, from, min(to, from+r.atOnce-1))
	if err == nil || ctx.Err() != nil {
		return err
	}
	by, findings, open := r.proveAtOthers(ctx, n, err, func(other *rpc.Node) error {
		r.last = nil
		_, err := r.blocks(ctx, other, vaults, at, at)
		return err
	})
	switch {
	case by != nil:
		r.log.Warn("endpoint could not prove a block, another one proved it", "block", at, "endpoint", n.Name, "other",
			by.Name, "error", err)
		r.node = by
		return nil
	case len(findings) == 0 || ctx.Err() != nil:
		return err
	}
	if r.openBlock != at {
		r.openBlock, r.attempts = at, 0
	}
	if r.attempts++; open && r.attempts < maxAttempts {
		// %v: no verdict yet
		return fmt.Errorf("an endpoint fails that may prove block %d; of another one: %v", at, worstFinding(findings))
	}
	return worstFinding(findings)
}

// blocks proves consecutive blocks at one endpoint. After an error, at is the block that is not proven.
func (r *receiptsRun) blocks(
	ctx context.Context, n *rpc.Node, vaults []common.Address, from, to uint64,
) (at uint64, err error) {
	if err := r.pace.WaitN(ctx, int(to-from+1)); err != nil {
		return from, err
	}
	headers, err := n.Headers(ctx, from, to)
	if err != nil {
		return from, err
	}
	if r.last != nil && r.last.Number+1 == from && headers[0].Parent != r.last.Hash {
		return from, fmt.Errorf("block %d at %s has the parent %s, but block %d is %s: the nodes of chain.rpc are not of "+
			"one chain", from, n.Name, headers[0].Parent, r.last.Number, r.last.Hash)
	}
	for _, h := range headers {
		if err := r.block(ctx, n, h, vaults); err != nil {
			return h.Number, err
		}
		r.last = h
		r.advance(vaults, h.Number)
	}
	return to, nil
}

func (r *receiptsRun) block(ctx context.Context, n *rpc.Node, h *rpc.Header, vaults []common.Address) error {
	if err := cmp.Or(checkSealed(n, h), n.HasBloom(h)); err != nil {
		return err
	}
	var ours []digest
	if have := r.logged[h.Number]; have != nil {
		if have.hash != h.Hash {
			return &Finding{h.Number, h.Hash.Hex(), n.Name, true, fmt.Sprintf("the log has it with the hash %s", have.hash)}
		}
		for _, d := range have.logs {
			if slices.Contains(vaults, d.vault) {
				ours = append(ours, d)
			}
		}
	}
	contracts := r.Mapped.Contracts(vaults)
	if len(ours) == 0 && !proof.MayHold(&h.Bloom, contracts) {
		return nil
	}
	if err := r.pace.WaitN(ctx, callsPerProof); err != nil {
		return err
	}
	return r.prove(ctx, n, h.Number, h.Hash, vaults, ours)
}

func (r *receiptsRun) advance(vaults []common.Address, number uint64) {
	r.mu.Lock()
	for _, address := range vaults {
		r.proven[address] = number
	}
	known := r.coverage()
	r.mu.Unlock()
	for i := range r.remaining {
		if slices.Contains(vaults, r.remaining[i].vault) {
			r.remaining[i].proven = number
		}
	}
	r.remaining = slices.DeleteFunc(r.remaining, func(u unproven) bool { return u.proven >= u.to })
	r.advanced(known)
}

func (r *receiptsRun) compares(e chainlog.Entry) bool {
	l := e.GetLog()
	if l == nil {
		return false
	}
	vault, number := mapping.VaultOf(l), l.GetBlockNumber()
	return slices.ContainsFunc(r.remaining,
		func(u unproven) bool { return u.vault == vault && u.proven < number && number <= u.to })
}

// Proven returns the last block of a vault that this schedule has proven; 0 for none.
func (p *Schedule) Proven(vault common.Address) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.proven[vault]
}

// Committed notes a state that was committed, or read.
func (p *Schedule) Committed(s *writer.State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.covered, p.final, p.frozen = slices.Clone(s.Covered), s.Final, s.Frozen != ""
	p.ended = p.ended && p.unsaved()
}

// coverage returns the coverage of the vaults with the progress of the schedule.
func (p *Schedule) coverage() []writer.Coverage {
	known := slices.Clone(p.covered)
	for i := range known {
		known[i].Prove(p.proven[known[i].Address])
	}
	return known
}

// unsaved reports whether the newest cursor lacks progress.
func (p *Schedule) unsaved() bool {
	for i, c := range p.coverage() {
		if !c.Removed && c.Proven > p.covered[i].Proven {
			return true
		}
	}
	return false
}

// HasUnsavedRun reports whether a run has ended whose progress is worth a commit that contains only the cursor.
func (p *Schedule) HasUnsavedRun() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended && p.unsaved()
}
