package rpc

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/telemetry"
)

const (
	// A commit of parts without a block costs one header, that of its last block, so it waits for many parts, but not
	// longer than commitEvery: blocks that were not committed are read again after a crash, and a query as of an old
	// block uses the time of the last block that has a record.
	MaxParts    = 16
	commitEvery = 20 * time.Second
	// CommitBytes is roughly the size of the responses that one commit contains.
	CommitBytes = 8 << 20
)

// Pipeline reads ranges of final blocks ahead of their commit. Only the session uses it; its jobs touch only their
// state.
type Pipeline struct {
	reader *Reader
	ctx    context.Context
	stop   context.CancelFunc
	wg     sync.WaitGroup

	from uint64 // where it began
	at   uint64 // the first block that is not committed
	next uint64 // the first block that is in no job
	jobs []*job // in the order of their blocks

	ready []*Part // read without a gap from block at, and not committed
	held  int     // bytes in them
	since time.Time

	forked bool // the parts come from more than one chain
}

func NewPipeline(ctx context.Context, r *Reader, from uint64) *Pipeline {
	p := &Pipeline{reader: r, from: from, at: from, next: from}
	p.ctx, p.stop = context.WithCancel(ctx)
	return p
}

// Serves reports whether the pipeline reads these vaults from block from, and nothing beyond to.
func (p *Pipeline) Serves(vaults []common.Address, from, to uint64) bool {
	return p != nil && !p.forked && p.at == from && p.next <= to+1 && slices.Equal(p.reader.vaults, vaults)
}

// Close cancels the jobs in flight.
func (p *Pipeline) Close() {
	if p == nil {
		return
	}
	p.stop()
	p.wg.Wait()
}

// Fill starts jobs for the blocks up to to until the maximum is in flight, and continues jobs that have stopped, each
// at the endpoint with the fewest jobs among n, which returned to, and the others that have the blocks. Blocks from
// recordFrom are recorded, and logs from headersFrom are compared with the headers.
func (p *Pipeline) Fill(n *Node, to, recordFrom, headersFrom uint64) {
	for _, j := range p.jobs {
		if j.running != nil && j.ended() && p.canContinue(n, j) {
			j.running, j.err = nil, nil
		}
		if j.running == nil && !j.done() {
			p.start(n, j)
		}
	}
	l, flight := n.limits, p.reader.inFlight
	if !l.widthKnown(p.reader.maxBlocks) {
		flight = 1
	}
	for len(p.jobs) < flight && p.next <= to {
		width := l.next(p.reader.maxBlocks)
		j := &job{next: p.next, to: min(to, p.next+width-1), recordFrom: recordFrom, headersFrom: headersFrom}
		p.next = j.to + 1
		p.jobs = append(p.jobs, j)
		p.start(n, j)
	}
}

func (p *Pipeline) start(n *Node, j *job) {
	running := make(chan struct{})
	j.running, j.err, j.node, j.had = running, nil, p.nextNode(n, j), len(j.parts)
	p.wg.Go(func() {
		defer close(running)
		ctx, span := telemetry.Begin(p.ctx, telemetry.Internal, "read range")
		j.err = p.reader.run(ctx, j.node, j)
		telemetry.Number(span, telemetry.BlockNumber, j.next-1)
		telemetry.End(span, j.err)
		j.node.health.readRange(p.ctx, len(j.parts) > j.had, j.err)
		for _, part := range j.parts[j.had:] {
			part.node, part.parent = j.node, telemetry.Parent(ctx)
		}
	})
}

// Parents returns the trace contexts in which the ready parts were read.
func (p *Pipeline) Parents() (parents []string) {
	for _, part := range p.ready {
		parents = telemetry.Parents(parents, part.parent)
	}
	return parents
}

// nextNode returns the endpoint for a job: the one with the fewest jobs that has not failed at it; n if all have.
func (p *Pipeline) nextNode(n *Node, j *job) *Node {
	busy := map[*Node]int{}
	for _, other := range p.jobs {
		if other.running != nil && other != j && !other.ended() {
			busy[other.node]++
		}
	}
	var best *Node
	for _, o := range p.reader.pool.sharing(n, j.to) {
		if !j.failed[o] && (best == nil || busy[o] < busy[best]) {
			best = o
		}
	}
	if best == nil {
		j.failed = nil
		return n
	}
	return best
}

// canContinue reports whether a job that ended with an error can continue at an endpoint that has not failed at it.
func (p *Pipeline) canContinue(n *Node, j *job) bool {
	if j.err == nil {
		return false
	}
	if len(j.parts) > j.had || j.failed == nil {
		j.failed = map[*Node]bool{}
	}
	j.failed[j.node] = true
	return slices.ContainsFunc(p.reader.pool.sharing(n, j.to), func(o *Node) bool { return !j.failed[o] })
}

func (j *job) ended() bool {
	select {
	case <-j.running:
		return true
	default:
		return false
	}
}

// Gather waits for the first job, and moves what the jobs have read without a gap to ready, up to about the size of a
// commit, also if it returns an error: that of the last endpoint that could take the job. A job that is not done
// continues at the next Fill.
func (p *Pipeline) Gather(ctx context.Context, n *Node) (err error) {
	for waited := false; len(p.jobs) > 0 && p.held < CommitBytes && len(p.ready) < MaxParts; waited = true {
		j := p.jobs[0]
		if !waited {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-j.running:
			}
		}
		if !j.ended() {
			return nil
		}
		if len(p.ready) == 0 {
			p.since = time.Now()
		}
		err = j.err
		if p.canContinue(n, j) {
			err = nil
		}
		p.ready, p.held = append(p.ready, j.parts...), p.held+j.bytes
		j.running, j.parts, j.bytes, j.err = nil, nil, 0, nil
		if !j.done() {
			return err
		}
		p.jobs = p.jobs[1:]
	}
	return nil
}

// Due reports whether a commit is worthwhile: if the header of the last ready block was read, if the parts are large or
// old enough, if they reach to, the last block that can be read, or if they are the first ones.
func (p *Pipeline) Due(to uint64) bool {
	if len(p.ready) == 0 {
		return false
	}
	last := p.ready[len(p.ready)-1]
	return last.End() != nil || last.To >= to || p.at == p.from || p.held >= CommitBytes ||
		len(p.ready) >= MaxParts || time.Since(p.since) >= commitEvery
}

// Empty reports whether nothing is ready.
func (p *Pipeline) Empty() bool { return len(p.ready) == 0 }

// Done reports whether all blocks up to to are committed.
func (p *Pipeline) Done(to uint64) bool { return p.at > to }

// Seal returns the ready parts as parts that each end with a block: it joins those without a block to the next one that
// has one. For the last part it reads that block, the only header that a commit of old blocks needs, and compares the
// logs of this block with it. Every other endpoint that returned a part must have the last block too. If the parts come
// from more than one chain, all of them must be read again.
func (p *Pipeline) Seal(ctx context.Context, n *Node) (sealed []*Part, err error) {
	last := p.ready[len(p.ready)-1]
	end := last.End()
	if end == nil || last.node != n {
		if end, err = n.ByNumber(ctx, last.To); err != nil {
			return nil, err
		}
	}
	for _, o := range p.others(n) {
		var own *Header
		if o == last.node {
			own = last.End()
		}
		if err := o.inChainOf(ctx, end, own); err != nil {
			p.forked = true
			return nil, err
		}
	}
	var open *Part
	for _, q := range p.ready {
		if open != nil {
			if err := open.precedes(q); err != nil {
				p.forked = true
				return nil, err
			}
			q = &Part{From: open.From, To: q.To, Parent: open.Parent, Blocks: q.Blocks, Logs: slices.Concat(open.Logs, q.Logs),
				bytes: open.bytes + q.bytes, Unproven: max(open.Unproven, q.Unproven),
				Samples: slices.Concat(open.Samples, q.Samples), NoState: max(open.NoState, q.NoState)}
		}
		if open = q; q.End() != nil {
			sealed, open = append(sealed, q), nil
		}
	}
	if open == nil {
		return sealed, nil
	}
	before, _ := slices.BinarySearchFunc(open.Logs, end.Number,
		func(l *event.Log, number uint64) int { return cmp.Compare(l.BlockNumber, number) })
	own, foreign, err := p.reader.endOf(ctx, n, end, slices.Clip(open.Logs[before:]))
	if err != nil {
		p.forked = p.forked || foreign
		return nil, err
	}
	closed := *open // the ready part stays unchanged until it is committed
	closed.Logs, closed.Blocks = append(slices.Clip(open.Logs[:before]), own...), []*Header{end}
	return append(sealed, &closed), nil
}

func (p *Pipeline) others(n *Node) (others []*Node) {
	for _, part := range p.ready {
		if part.node != n && !slices.Contains(others, part.node) {
			others = append(others, part.node)
		}
	}
	return others
}

// An otherEndpointError means that blocks are read again because an endpoint that is not in use returned some of them.
type otherEndpointError struct{ reason error }

func (e *otherEndpointError) Error() string { return e.reason.Error() + "; the blocks are read again" }

func (e *otherEndpointError) Unwrap() error { return e.reason }

// inChainOf returns nil if the chain of an endpoint goes through the last block of a commit. h is the block that the
// endpoint returned with its part; nil to read it. If this is not certain, the endpoint shares no backfill for a while.
// It has little time, and is not called if it is down, because the vaults at the head may wait.
func (n *Node) inChainOf(ctx context.Context, end, h *Header) (err error) {
	switch {
	case h != nil:
	case n.health.is(failed):
		err = fmt.Errorf("%s, which returned blocks up to %d, is down", n.Name, end.Number)
	default:
		limited, cancel := context.WithTimeout(ctx, checkWithin)
		defer cancel()
		h, err = n.ByNumber(limited, end.Number)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && h.Hash == end.Hash:
		return nil
	case err == nil:
		err = fmt.Errorf("the final block %d is %s, but %s at %s: the nodes of chain.rpc are not of one chain", end.Number,
			end.Hash, h.Hash, n.Name)
	}
	n.health.set(func(h *health) { h.ranges.begin(h.now(), lastQuarantine, lastQuarantine, err) })
	return &otherEndpointError{err}
}

// Committed discards the ready parts.
func (p *Pipeline) Committed() {
	p.at = p.ready[len(p.ready)-1].To + 1
	p.ready, p.held = nil, 0
}
