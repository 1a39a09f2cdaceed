package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/ingest/proof"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/telemetry"
)

// Bounds of one transaction at the head: its blocks, and the logs, or bytes of data in
// them, after which no further block is added.
const (
	blocksAtOnce = 64
	logsAtOnce   = 20_000
	bytesAtOnce  = 16 << 20
)

// advance takes the next steps (the package comment lists them) and reports whether
// more can follow at once.
func (s *session) advance(ctx context.Context) (more bool, err error) {
	n, err := s.nodes.Current(ctx)
	if err != nil {
		return false, err
	}
	tip, err := n.Latest(ctx)
	if err != nil {
		return false, err
	}
	if s.state.head != nil && tip.Number < s.state.head.Number {
		s.nodes.Next()
		s.ingest.note(func(st *Status) {
			st.Reason = fmt.Sprintf("the head at %s is block %d, below the log's block %d", n.Name, tip.Number, s.state.head.Number)
		})
		return false, nil
	}
	final, err := s.finalBlock(ctx, n, tip)
	if err != nil {
		return false, err
	}
	final = max(final, s.state.final) // what was final stays so, also under another chain.finality
	if s.state.head != nil {
		other, err := s.otherBranch(ctx, n, tip)
		if err != nil {
			return false, err
		}
		if other != nil {
			return s.believe(ctx, n, other)
		}
	}
	s.ingest.note(func(st *Status) { st.seen(tip, time.Now()) })
	s.ingest.metrics.head.Set(float64(tip.Number))
	if did, err := s.obey(ctx, n); did || err != nil {
		return true, err
	}
	if err := s.room(); err != nil {
		return false, err
	}
	if vaults := s.undescribed(); len(vaults) > 0 {
		return true, s.introduce(ctx, n, vaults)
	}
	if from, far := s.farBehind(final); far {
		s.ingest.note(func(st *Status) { st.State, st.LateVaults = Backfilling, nil })
		_, err := s.backfill(ctx, n, tip, from, final)
		return true, err
	}
	more, err = s.atHead(ctx, n, tip, final)
	return more || s.earlier != nil, err
}

// farBehind returns the block from which final blocks must be read before anything
// else happens. While the head is below the final block, that is the block above the
// head, so that the vaults that follow it never wait for late ones. If no vault at the
// head has blocks to read, it is the first block that the vaults furthest behind lack.
func (s *session) farBehind(final uint64) (from uint64, far bool) {
	leading := s.leading()
	if len(leading) > 0 && s.state.head.Number >= final {
		return 0, false
	}
	if from = lowestOf(leading) + 1; len(leading) == 0 || from > final {
		from = s.lowest() + 1
	}
	return from, from <= final
}

// leading returns the vaults that are at the head, or start above it.
func (s *session) leading() (leading []coverage) {
	for _, v := range s.ingest.watched() {
		if have := s.state.coverageOf(v.address); s.state.head != nil && have.to >= s.state.head.Number {
			leading = append(leading, *have)
		}
	}
	return leading
}

// atHead takes the steps above the final block: the head first, and then one
// step of the vaults that are late. If no next block can be taken, for example until a
// second endpoint agrees on it, blocks of the log that have become final are still
// committed as final.
func (s *session) atHead(ctx context.Context, n *rpc.Node, tip *rpc.Header, final uint64) (more bool, err error) {
	if s.state.head == nil {
		return true, s.anchor(ctx, n, tip, final)
	}
	s.ingest.note(func(st *Status) { st.State = Following })
	var climbing error
	if tip.Number > s.state.head.Number {
		more, climbing = s.climb(ctx, n, tip, final)
		var failed *commitError
		// Where endpoints contradict each other, the one that names the final block may be the wrong one.
		if ctx.Err() != nil || errors.As(climbing, &failed) || errors.Is(climbing, rpc.ErrDisagree) {
			return false, climbing
		}
	}
	late := s.late()
	s.noteLate(late)
	if len(late) > 0 && climbing == nil {
		if caught, err := s.catchUp(ctx, n, tip, late, final); caught || err != nil {
			return true, err
		}
	}
	next := *s.state
	next.final = max(s.state.final, final)
	if next.final > s.state.final || next.toldTarget(s.ingest.config.Confirmations) > s.state.told || s.proofs.saves() {
		if err := s.commit(ctx, &change{final: final}); err != nil {
			return false, err
		}
	}
	return more, climbing
}

// anchor sets the first head if no vault starts below the final block: the final block
// or, if the chain names none or it is far below, the block one window below the first
// vault's start, so that a reorganisation there can be followed.
func (s *session) anchor(ctx context.Context, n *rpc.Node, tip *rpc.Header, final uint64) error {
	begin := min(s.lowest(), tip.Number)
	h, err := n.ByNumber(ctx, max(final, begin-min(begin, s.ingest.config.Window)))
	if err == nil {
		err = s.agreed(ctx, n, h, nil, nil)
	}
	if err != nil {
		return err
	}
	return s.commit(ctx, &change{units: [][]*event.Record{{blockFact(h)}}, head: h, final: final})
}

// climb appends the blocks above the head, one unit each, in one transaction.
// If the node fails on the way, the blocks that it returned before are appended: so a node
// that fails now and then slows ingest down and does not stop it.
func (s *session) climb(ctx context.Context, n *rpc.Node, tip *rpc.Header, final uint64) (more bool, err error) {
	ctx, span := telemetry.Begin(ctx, telemetry.Internal, "ingest blocks")
	defer func() { telemetry.End(span, err) }()
	c := &change{final: final, head: s.state.head}
	var logs, bytes int
	var unsealed uint64 // the last block whose header is not sealed
	for c.head.Number < tip.Number && len(c.units) < blocksAtOnce && logs < logsAtOnce && bytes < bytesAtOnce {
		h, unit, err := s.unitAbove(ctx, n, c.head, tip)
		if err != nil && (len(c.units) == 0 || ctx.Err() != nil) {
			return false, err
		}
		if err != nil {
			s.ingest.log.InfoContext(ctx, "block above the head not readable, appending those before it", "from", c.head.Number+1, "error", err)
			break
		}
		if unit == nil {
			break // the chain is being reorganised: the next look decides
		}
		c.units, c.head, logs, bytes = append(c.units, unit), h, logs+len(unit)-1, bytes+dataOf(unit)
		if !h.Sealed {
			unsealed = h.Number
		}
	}
	if len(c.units) == 0 {
		return false, nil
	}
	if s.ingest.config.Finality.Depth > 0 {
		c.final = max(c.final, rpc.Finality(s.ingest.config.Finality).Below(c.head.Number))
	}
	c.covered = s.moved(c.head.Number, unsealed)
	s.noteUnsealed(unsealed)
	if err := s.commit(ctx, c); err != nil {
		return false, err
	}
	return c.head.Number < tip.Number, nil
}

// dataOf returns the size of the data in the logs of a unit, in bytes.
func dataOf(unit []*event.Record) (bytes int) {
	for _, r := range unit {
		bytes += len(r.GetLog().GetData())
	}
	return bytes
}

// unitAbove makes the unit of the next block; nil if the node has no such block.
func (s *session) unitAbove(ctx context.Context, n *rpc.Node, below, tip *rpc.Header) (h *rpc.Header, unit []*event.Record, err error) {
	ctx, span := telemetry.Child(ctx, telemetry.Internal, "read block")
	defer func() { telemetry.End(span, err) }()
	telemetry.Number(span, telemetry.BlockNumber, below.Number+1)
	h = tip
	if below.Number+1 < tip.Number {
		if h, err = n.ByNumber(ctx, below.Number+1); err != nil {
			return nil, nil, err
		}
	}
	if h.Parent != below.Hash {
		return h, nil, nil
	}
	unit, err = s.unitOf(ctx, n, h, s.joined(h.Number))
	return h, unit, err
}

// unitOf makes the unit of one block: its logs, the samples of NAV and then the block itself.
func (s *session) unitOf(ctx context.Context, n *rpc.Node, h *rpc.Header, addresses []common.Address) ([]*event.Record, error) {
	logs, err := s.factsOf(ctx, n, h, addresses)
	if err != nil {
		return nil, err
	}
	return append(logs, blockFact(h)), nil
}

// factsOf returns the vaults' logs in one block and the samples of their NAV as records, once as many endpoints
// agree on them as chain.agreement requires.
func (s *session) factsOf(ctx context.Context, n *rpc.Node, h *rpc.Header, vaults []common.Address) (facts []*event.Record, err error) {
	from := n
	if len(vaults) > 0 {
		logs, answered, err := s.logsOfBlock(ctx, n, h, s.state.mapped.Contracts(vaults))
		if err != nil {
			return nil, err
		}
		from = answered
		for _, l := range s.state.mapped.Belonging(vaults, logs) {
			facts = append(facts, logFact(l))
		}
	}
	if err := s.agreed(ctx, from, h, vaults, facts); err != nil {
		return nil, err
	}
	samples, err := s.samplesOf(ctx, n, h, vaults)
	return append(facts, samples...), err
}

// joined returns the vaults whose logs are read in a block above the final one:
// those that are covered up to the head, from their start block on. It leaves out a vault
// that is not in the log yet, because a reorganisation may come before it.
func (s *session) joined(number uint64) (addresses []common.Address) {
	for _, v := range s.ingest.watched() {
		if have := s.state.coverageOf(v.address); have != nil && have.to >= s.state.head.Number && have.start <= number {
			addresses = append(addresses, v.address)
		}
	}
	return addresses
}

// noteUnsealed logs a warning about a block whose header is not sealed; 0 for none.
func (s *session) noteUnsealed(number uint64) {
	warning := ""
	if number > 0 && s.ingest.config.Proof != proof.None {
		warning = fmt.Sprintf("the fields of the header of block %d do not hash to its hash, so its bloom proves nothing and provenTo does not move: the chain hashes its headers in a way of its own, or an endpoint changes them", number)
	}
	s.ingest.note(func(st *Status) { st.sealWarning = warning })
}

// unproven returns the last of the blocks up to number that are accepted unproven: the last one whose header is not
// sealed, or all of them if blooms prove nothing or a schedule proves all blocks by their receipts.
func (i *Ingest) unproven(number, unsealed uint64) uint64 {
	if i.config.Proof == proof.None || i.config.ReceiptsEvery > 0 {
		return number
	}
	return unsealed
}

// moved returns the coverage of the joined vaults with the head at number. unsealed is the
// last block whose header is not sealed; 0 for none.
func (s *session) moved(number, unsealed uint64) (moved []coverage) {
	for _, address := range s.joined(number) {
		have := *s.state.coverageOf(address)
		have.believe(have.to, s.ingest.unproven(number, unsealed))
		have.to = number
		moved = append(moved, have)
	}
	return moved
}
