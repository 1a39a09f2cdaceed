package ingest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/time/rate"

	"github.com/navlog/navlog/ingest/proof"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/chainproof"
	"github.com/navlog/navlog/schemas/mapping"
)

// schedule proves the final blocks of the log by their receipts, every chain.receiptsEvery, in parallel to all other
// work and at a limited rate of calls. While it is on, the log accepts all blocks unproven, and only a run of the
// schedule proves them.
//
// A run reads the header of each block, which must hash to the block's hash and continue the chain. A block whose bloom
// may contain a vault, or of which the log has logs, is proven by its receipts: the log must have the same logs of the
// vaults, with the same amounts. So a run finds lost logs as well as false ones.
//
// The progress is in the cursor of the next commit (coverage.proven), and the next run continues there. A run that
// finds an error in the log reports it and is the last one: the log is append-only, so only a new log can correct it.
type schedule struct {
	ingest *Ingest
	mapped *mapping.Vaults
	pace   *rate.Limiter
	atOnce uint64 // headers in a batch

	mu      sync.Mutex
	covered []coverage // as last committed
	final   uint64     // as last committed
	frozen  bool       // as last committed
	proven  map[common.Address]uint64
	ended   bool // a run has ended, and its progress is not committed
}

// disprovenError means that the log contradicts the chain.
type disprovenError struct {
	block uint64
	hash  common.Hash
	node  string
	why   string
}

func (e *disprovenError) Error() string {
	return fmt.Sprintf("block %d (%s) at %s: %s; an endpoint of chain.rpc returned wrong logs when the block was read: index the chain into a new log from another endpoint", e.block, e.hash, e.node, e.why)
}

// newSchedule returns the schedule of a session; nil if chain.receiptsEvery is 0.
func (i *Ingest) newSchedule(s *state) *schedule {
	if i.config.ReceiptsEvery == 0 {
		return nil
	}
	perSecond := i.config.ReceiptsPerSecond
	p := &schedule{ingest: i, mapped: s.mapped, atOnce: uint64(min(rpc.HeadersAtOnce, math.Ceil(perSecond))), proven: map[common.Address]uint64{}}
	p.pace = rate.NewLimiter(rate.Limit(perSecond), int(max(p.atOnce, callsOfReceipts)))
	p.committed(s)
	return p
}

// run starts one run after the other until ctx ends or the log is disproven. A run that cannot prove a block ends with
// a warning in the status, and the next one tries again.
func (p *schedule) run(ctx context.Context) {
	for ctx.Err() == nil {
		next := time.Now().Add(p.ingest.config.ReceiptsEvery)
		err := p.once(ctx)
		var disproven *disprovenError
		if errors.As(err, &disproven) {
			p.ingest.log.Error("the log contradicts the chain", "error", err)
			p.ingest.metrics.disproven.Set(1)
			p.ingest.note(func(st *Status) { st.Disproven = err.Error() })
			return
		}
		warning := ""
		if err != nil && ctx.Err() == nil {
			warning = "the proof by receipts ended: " + err.Error()
			p.ingest.log.Warn("proof by receipts ended", "error", err)
		}
		p.ingest.note(func(st *Status) { st.receiptsWarning = warning })
		_ = rpc.Sleep(ctx, time.Until(next))
	}
}

// receiptsRun is one run of the schedule. It proves what was committed when it began.
type receiptsRun struct {
	*schedule
	left  []coverage // of the vaults that are not proven up to their ends; proven moves, and to is where it ends
	index index      // nil before the log is read
	node  *rpc.Node  // proved a block that the endpoint before it could not prove; nil for the endpoint in use
	last  *rpc.Header
}

// once makes one run. It retries after errors of nodes, and returns an error if the log is disproven or a block cannot
// be proven.
func (p *schedule) once(ctx context.Context) error {
	r := p.begin()
	for wait := rpc.NewBackoff(); ctx.Err() == nil; {
		vaults, from, to := r.next()
		if len(vaults) == 0 || p.stopped() {
			break
		}
		err := r.step(ctx, vaults, from, to)
		var disproven *disprovenError
		switch {
		case errors.As(err, &disproven), unprovable(err):
			return err
		case err == nil:
			wait.Reset()
		case ctx.Err() == nil:
			p.ingest.log.Warn("proof by receipts failed, retrying", "error", err)
			r.last, r.node = nil, nil
			_ = wait.Sleep(ctx)
		}
	}
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	return nil
}

// unprovable reports whether an error means that a block cannot be proven although no party is wrong.
func unprovable(err error) bool {
	var unprovable *chainproof.UnprovableError
	return errors.As(err, &unprovable) || errors.Is(err, rpc.ErrNoReceipts)
}

// known returns the current coverage of the indexed vaults.
func (p *schedule) known() []coverage {
	p.mu.Lock()
	defer p.mu.Unlock()
	var known []coverage
	for _, v := range p.ingest.watched() {
		for _, have := range p.covered {
			if have.address == v.address {
				have.proven = max(have.proven, p.proven[v.address])
				known = append(known, have)
			}
		}
	}
	return known
}

// stopped reports whether the log is frozen: then the chain has other blocks than the log, and an operator decides.
func (p *schedule) stopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.frozen
}

// begin returns a run over the blocks that are final and not proven. Other blocks are not proven: if a node has
// replaced one and the log has not yet, that is no error in the log, and a proof of it would not apply to the block that
// replaces it.
func (p *schedule) begin() *receiptsRun {
	r := &receiptsRun{schedule: p}
	p.mu.Lock()
	final := p.final
	p.mu.Unlock()
	for _, c := range p.known() {
		if c.proven = c.provenTo(); c.proven < min(c.believed, final) {
			c.to = min(c.believed, final)
			r.left = append(r.left, c)
		}
	}
	return r
}

// next returns the vaults that are furthest behind, and the blocks to prove for them: until they meet the next vault,
// or up to the end of one.
func (r *receiptsRun) next() (vaults []common.Address, from, to uint64) {
	from, to = math.MaxUint64, math.MaxUint64
	for _, c := range r.left {
		from = min(from, c.proven+1)
	}
	for _, c := range r.left {
		if c.proven+1 == from {
			vaults, to = append(vaults, c.address), min(to, c.to)
		} else {
			to = min(to, c.proven)
		}
	}
	return vaults, from, to
}

// step proves a few blocks from `from`. If an endpoint fails to prove a block, the others are called for it, so one
// wrong endpoint neither stops the proof nor disproves the log.
func (r *receiptsRun) step(ctx context.Context, vaults []common.Address, from, to uint64) error {
	if r.index == nil {
		if err := r.read(ctx); err != nil {
			return err
		}
	}
	nodes, n := r.ingest.nodes, r.node
	if n == nil {
		var err error
		if n, err = nodes.Current(ctx); err != nil {
			return err
		}
	}
	at, err := r.prove(ctx, n, vaults, from, min(to, from+r.atOnce-1))
	if err == nil || ctx.Err() != nil {
		return err
	}
	var disproven *disprovenError
	for _, other := range nodes.Others(n) {
		if nodes.Identified(ctx, other) != nil {
			continue
		}
		r.last = nil
		_, again := r.prove(ctx, other, vaults, at, at)
		if again == nil {
			r.ingest.log.Warn("endpoint could not prove a block, another one proved it", "block", at, "endpoint", n.Name, "other", other.Name, "error", err)
			r.node = other
			return nil
		}
		if errors.As(again, &disproven) {
			err = again
		}
	}
	return err
}

// prove proves blocks at one endpoint. After an error, at is the block that is not proven.
func (r *receiptsRun) prove(ctx context.Context, n *rpc.Node, vaults []common.Address, from, to uint64) (at uint64, err error) {
	if err := r.pace.WaitN(ctx, int(to-from+1)); err != nil {
		return from, err
	}
	headers, err := n.Headers(ctx, from, to)
	if err != nil {
		return from, err
	}
	if r.last != nil && r.last.Number+1 == from && headers[0].Parent != r.last.Hash {
		return from, fmt.Errorf("block %d at %s has the parent %s, but block %d is %s: the nodes of chain.rpc are not of one chain", from, n.Name, headers[0].Parent, r.last.Number, r.last.Hash)
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

// block proves one block.
func (r *receiptsRun) block(ctx context.Context, n *rpc.Node, h *rpc.Header, vaults []common.Address) error {
	if !h.Sealed {
		return &chainproof.UnprovableError{Why: fmt.Sprintf("the fields of the header of block %d at %s do not hash to its hash", h.Number, n.Name)}
	}
	if err := n.HasBloom(h); err != nil {
		return err
	}
	var ours []digest
	if have := r.index[h.Number]; have != nil {
		if have.hash != h.Hash {
			return &disprovenError{h.Number, h.Hash, n.Name, fmt.Sprintf("the log has it with the hash %s", have.hash)}
		}
		for _, d := range have.logs {
			if slices.Contains(vaults, d.vault) {
				ours = append(ours, d)
			}
		}
	}
	contracts := contractsOf(r.mapped, vaults)
	if len(ours) == 0 && !proof.Watch(contracts).MayHold(&h.Bloom) {
		return nil
	}
	if err := r.pace.WaitN(ctx, callsOfReceipts); err != nil {
		return err
	}
	block, err := provenBlock(ctx, n, h.Hash)
	if err != nil {
		return fmt.Errorf("block %d (%s) at %s: %w", h.Number, h.Hash, n.Name, err)
	}
	why, unproven := compareWith(block, r.mapped, vaults, ours)
	if why != "" {
		return &disprovenError{h.Number, h.Hash, n.Name, why}
	}
	if unproven != nil {
		return fmt.Errorf("block %d (%s) at %s: %w", h.Number, h.Hash, n.Name, unproven)
	}
	return nil
}

// advance notes that a block of these vaults is proven.
func (r *receiptsRun) advance(vaults []common.Address, number uint64) {
	r.mu.Lock()
	for _, address := range vaults {
		r.proven[address] = number
	}
	r.mu.Unlock()
	for i := range r.left {
		if slices.Contains(vaults, r.left[i].address) {
			r.left[i].proven = number
		}
	}
	r.left = slices.DeleteFunc(r.left, func(c coverage) bool { return c.proven >= c.to })
	r.ingest.noteProven(r.known())
}

// read reads the whole log, and keeps what this run compares.
func (r *receiptsRun) read(ctx context.Context) error {
	x := index{}
	err := chainlog.ReadAfter(ctx, r.ingest.config.ID, chainlog.Position{}, func(e chainlog.Entry) error {
		r.keep(x, e)
		return nil
	}, r.ingest.kafka.Options()...)
	if err != nil {
		return fmt.Errorf("read the log for the proof by receipts: %w", err)
	}
	r.index = x
	return nil
}

// keep folds a record of the log into an index, if the run compares it.
func (r *receiptsRun) keep(x index, e chainlog.Entry) {
	l := e.GetLog()
	if l == nil {
		return
	}
	vault, number := mapping.VaultOf(l), l.GetBlockNumber()
	if slices.ContainsFunc(r.left, func(c coverage) bool { return c.address == vault && c.proven < number && number <= c.to }) {
		x.apply(e)
	}
}

// merge adds the progress of the proof to a state that is about to be committed.
func (p *schedule) merge(s *state) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range s.covered {
		c := &s.covered[i]
		c.proven = max(c.proven, min(p.proven[c.address], c.believed))
	}
}

// committed notes a committed state, and the progress in it.
func (p *schedule) committed(s *state) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.covered, p.final, p.frozen = slices.Clone(s.covered), s.final, s.frozen != ""
	p.ended = p.ended && p.unsaved()
}

// unsaved reports whether the last commit lacks progress.
func (p *schedule) unsaved() bool {
	return slices.ContainsFunc(p.covered, func(c coverage) bool { return c.proven < min(p.proven[c.address], c.believed) })
}

// saves reports whether a run has ended whose progress is worth a commit that contains only the cursor.
func (p *schedule) saves() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended && p.unsaved()
}
