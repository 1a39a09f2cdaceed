package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/telemetry"
)

const (
	// lookAgain is how long final blocks of late vaults are appended before the head is read again for the vaults that
	// follow it. lookAgainFar is the same while no vault follows the head, when a pause only adds a few calls.
	lookAgain    = 250 * time.Millisecond
	lookAgainFar = 30 * time.Second
	// doubtsEnough is how many times in a row each endpoint may fail to prove the logs of a final block before ingest
	// ends.
	doubtsEnough = 8
)

// lowest returns the block up to which every indexed vault is covered.
func (s *session) lowest() uint64 {
	lowest := s.state.coverageOf(s.ingest.watched()[0].address).to
	for _, v := range s.ingest.watched() {
		lowest = min(lowest, s.state.coverageOf(v.address).to)
	}
	return lowest
}

// backfill appends the logs of final blocks from `from`, of all vaults that are covered up to there, followed by one
// block record. Blocks less than a window below tip that move the head get a record each, because a query as of a
// recent block needs its time, however late ingest read it. backfill returns after a while, so that the head is read
// again; blocks that were read ahead are kept for the next call. If other vaults already follow the head, it makes at
// most one commit and does not wait for a slow node. more reports whether anything was read.
func (s *session) backfill(ctx context.Context, n *rpc.Node, tip *rpc.Header, from, final uint64) (more bool, err error) {
	to, vaults := s.reach(from, final)
	recordFrom := tip.Number + 1 - min(tip.Number+1, s.ingest.config.Window)
	headersFrom := s.ingest.config.Proof.HeadersFrom(recordFrom)
	late, wait, long := s.state.head != nil && from <= s.state.head.Number, ctx, lookAgainFar
	if late {
		recordFrom, long = to+1, lookAgain
		bounded, cancel := context.WithTimeout(ctx, long)
		defer cancel()
		wait = bounded
	}
	if !s.ranges.Serves(s.state.mapped.Contracts(vaults), from, to) {
		s.ranges.Close()
		s.ranges = rpc.NewPipeline(ctx, s.ingest.reader(s.state.mapped.Contracts(vaults)).Sampled(s.sampling(vaults)), from)
	}
	for began := time.Now(); time.Since(began) < long && !s.ranges.Done(to); {
		s.ranges.Fill(n, to, recordFrom, headersFrom)
		err := s.ranges.Gather(wait, n)
		if late && err != nil && err == wait.Err() && ctx.Err() == nil { // nothing was read yet, and no job failed
			return more, nil
		}
		more = true
		if err == nil {
			s.ranges.Fill(n, to, recordFrom, headersFrom) // read ahead during the commit
		}
		if err = s.doubts.weigh(err, len(s.ingest.config.RPC)); s.ranges.Due(to) || hopeless(err) && !s.ranges.Empty() {
			if err := s.appendReady(ctx, n, vaults, final); err != nil {
				return true, s.doubts.weigh(err, len(s.ingest.config.RPC))
			}
			s.ranges.Committed()
			s.doubts.settle()
			if late && err == nil {
				return true, nil
			}
		}
		if err != nil {
			return true, err
		}
	}
	return more, nil
}

// reach returns the vaults that are covered up to the block before from, and how far they advance together: until they
// meet the next vault, the head, or the final block.
func (s *session) reach(from, final uint64) (to uint64, behind []common.Address) {
	to = final
	for _, v := range s.ingest.watched() {
		switch have := s.state.coverageOf(v.address); {
		case have.to+1 == from:
			behind = append(behind, v.address)
		case have.to >= from:
			to = min(to, have.to)
		}
	}
	if s.state.head != nil && s.state.head.Number >= from {
		to = min(to, s.state.head.Number)
	}
	return to, behind
}

// appendReady commits the ready parts.
func (s *session) appendReady(ctx context.Context, n *rpc.Node, vaults []common.Address, final uint64) (err error) {
	ctx, span := telemetry.Gather(ctx, s.ranges.Parents(), telemetry.Internal, "ingest ranges")
	defer func() { telemetry.End(span, err) }()
	parts, err := s.ranges.Seal(ctx, n)
	if err != nil {
		return err
	}
	return s.appendParts(ctx, parts, vaults, final)
}

// appendParts commits consecutive blocks, as units that each end with a block. The parts may come from several
// endpoints, so each must continue the one before it; otherwise everything that was read ahead is read again.
func (s *session) appendParts(ctx context.Context, parts []*rpc.Part, vaults []common.Address, final uint64) error {
	c, before, believed := &change{final: final}, s.appended, uint64(0)
	for _, p := range parts {
		if err := s.continues(p, before); err != nil {
			s.readAgain()
			return err
		}
		unit := unitOfPart(p, s.state.mapped.Belonging(vaults, p.Logs), s.sampleFacts(p.Samples))
		c.units, before, believed = append(c.units, unit), p.End(), max(believed, p.Believed)
		for _, address := range vaults {
			if p.NoState > 0 && s.state.mapped.Of(address).Description.Samples() {
				s.noState[address] = p.NoState
			}
		}
	}
	for _, address := range vaults {
		have := *s.state.coverageOf(address)
		have.believe(have.to, s.ingest.unproven(before.Number, believed))
		have.to = before.Number
		c.covered = append(c.covered, have)
	}
	if s.state.head == nil || before.Number > s.state.head.Number {
		c.head = before
	}
	if err := s.commit(ctx, c); err != nil {
		return err
	}
	s.appended = before
	return nil
}

// readAgain discards everything that was read ahead.
func (s *session) readAgain() {
	s.ranges.Close()
	s.ranges = nil
}

// continues compares both ends of a part with the block before it and with the blocks that the state knows. For the
// first part of a late vault in a session, neither may be known.
func (s *session) continues(p *rpc.Part, before *rpc.Header) error {
	below, known := s.state.hashAt(p.From - 1)
	if before != nil && before.Number+1 == p.From {
		below, known = before.Hash, true
	}
	if known && p.Parent != (common.Hash{}) && p.Parent != below {
		return fmt.Errorf("the final block %d was given with the parent %s, but block %d is %s: the nodes of chain.rpc are not of one chain; the blocks are read again", p.From, p.Parent, p.From-1, below)
	}
	end := p.End()
	if ours, known := s.state.hashAt(end.Number); known && ours != end.Hash {
		return fmt.Errorf("the final block %d was given as %s, but it is %s in the log: the nodes of chain.rpc are not of one chain; the blocks are read again", end.Number, end.Hash, ours)
	}
	for _, sample := range p.Samples {
		ours, known := s.state.hashAt(sample.Number)
		if sample.Number == end.Number {
			ours, known = end.Hash, true
		}
		if known && ours != sample.At.Hash {
			return fmt.Errorf("NAV was sampled at the final block %d with the hash %s, but it is %s: the nodes of chain.rpc are not of one chain; the blocks are read again",
				sample.Number, sample.At.Hash, ours)
		}
	}
	return nil
}

// unitOfPart returns the records of a part as a unit: the logs of each block, then its samples, then the block if it is
// recorded.
func unitOfPart(p *rpc.Part, ours []*event.Log, samples []*event.Record) []*event.Record {
	unit, logs := make([]*event.Record, 0, len(p.Blocks)+len(ours)+len(samples)), logFacts(ours)
	logsUpTo := func(number uint64) {
		for len(logs) > 0 && logs[0].GetLog().GetBlockNumber() <= number {
			unit, logs = append(unit, logs[0]), logs[1:]
		}
	}
	for _, h := range p.Blocks {
		for len(samples) > 0 && samples[0].GetSample().GetBlockNumber() <= h.Number {
			logsUpTo(samples[0].GetSample().GetBlockNumber())
			unit, samples = append(unit, samples[0]), samples[1:]
		}
		logsUpTo(h.Number)
		unit = append(unit, blockFact(h))
	}
	return unit
}

// doubts counts how many times in a row the logs of one final block were not proven.
type doubts struct {
	block uint64
	count int
}

func (d *doubts) settle() { *d = doubts{} }

// weigh returns an error that ends ingest if no endpoint can prove the logs of a final block.
func (d *doubts) weigh(err error, endpoints int) error {
	var unproven *rpc.UnprovenError
	if !errors.As(err, &unproven) {
		return err
	}
	if d.block != unproven.Block {
		*d = doubts{block: unproven.Block}
	}
	if d.count++; d.count < doubtsEnough*endpoints {
		return err
	}
	return rpc.Refuse("%v; no endpoint of chain.rpc gave them in %d tries, so the nodes have pruned or lost the logs of block %d: add an archive node to chain.rpc (where the chain's blooms do not cover all logs, set chain.proof to none); nothing of this block was appended",
		unproven, d.count, unproven.Block)
}

// reader returns a reader of the logs of these contracts.
func (i *Ingest) reader(contracts []common.Address) *rpc.Reader {
	return i.nodes.NewReader(contracts, i.config.Proof, i.config.BatchBlocks, i.config.RangesInFlight, i.partsAtOnce)
}
