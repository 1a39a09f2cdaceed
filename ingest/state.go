package ingest

import (
	"fmt"
	"math"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
)

// state is the position of the writer, from the newest cursor and the tail of the log. A
// commit changes it before the broker has the transaction. If that fails, the session ends
// and its state with it, so no step starts from something that was not committed.
type state struct {
	logID   []byte
	genesis common.Hash
	seq     uint64
	offset  int64       // of record seq
	head    *rpc.Header // newest indexed block, nil before the first
	final   uint64
	told    uint64 // the referrals of blocks up to this one were written
	covered []coverage
	window  window
	floor   uint64 // the window is complete above this block
	frozen  string
	// withoutData counts the live logs that have the length and the hash of their data instead of the data.
	withoutData uint64
	// mapped reads and maps the logs of the vaults. records holds the newest record of each vault that is in the log.
	mapped  *mapping.Vaults
	records map[common.Address]*event.Vault
}

// coverage is the block range of one vault that is in the log. A removed vault keeps its coverage, and has a record of
// its removal.
type coverage struct {
	address common.Address
	start   uint64
	to      uint64 // the last block that is in the log; start-1 before the first
	name    string // the configured display name in its newest record, empty for the contract's own
	// believed is the last block whose logs were accepted unproven. proven is the last block up to which such logs have
	// since been proven by their receipts; in the cursor of an earlier version, compared with headers. 0 for none.
	believed, proven uint64
	// sampledFrom is the first block from which NAV is sampled, if earlier blocks were read without samples or no
	// endpoint had their state; 0 if no sample is missing.
	sampledFrom uint64
	removed     bool // its newest record says that it was removed
	// record is the seq of its newest record that is not a removal, and offset the position of that record in the
	// topic; 0 if the cursor does not have it.
	record uint64
	offset int64
	// introduced is that record until it has a seq.
	introduced *event.Record
}

// provenTo returns the last block up to which the vault's logs were compared with the headers of their blocks, or
// proven by their receipts.
func (c coverage) provenTo() uint64 {
	if c.proven >= c.believed {
		return c.to
	}
	return max(c.proven, c.start-1)
}

// believe notes that the logs of blocks above have, up to number, were accepted without a proof. Blocks below them that
// were proven stay proven.
func (c *coverage) believe(have, number uint64) {
	if number <= c.believed {
		return
	}
	if c.proven >= c.believed {
		c.proven = have
	}
	c.believed = number
}

// prove notes that blocks that were accepted without a proof have been proven since, up to number.
func (c *coverage) prove(number uint64) { c.proven = max(c.proven, min(number, c.believed)) }

func (s *state) coverageOf(address common.Address) *coverage {
	for i := range s.covered {
		if s.covered[i].address == address {
			return &s.covered[i]
		}
	}
	return nil
}

// indexed returns the coverage of the vaults that were not removed.
func (s *state) indexed() (vaults []coverage) {
	for _, v := range s.covered {
		if !v.removed {
			vaults = append(vaults, v)
		}
	}
	return vaults
}

// lowestOf returns the block up to which all of these vaults are covered.
func lowestOf(vaults []coverage) uint64 {
	lowest := uint64(math.MaxUint64)
	for _, v := range vaults {
		lowest = min(lowest, v.to)
	}
	return lowest
}

// hashAt returns the hash of a block that is the head or in the window.
func (s *state) hashAt(number uint64) (hash common.Hash, known bool) {
	if s.head != nil && s.head.Number == number {
		return s.head.Hash, true
	}
	return s.window.hashAt(number)
}

// change holds the effect of one transaction on the state.
type change struct {
	units    [][]*event.Record // facts (and retracts); seq and boundary are given by the writer
	head     *rpc.Header       // the new head, nil to keep it
	ancestor *uint64           // of a reorganisation: blocks above it are gone
	reopens  bool              // by an operator's decision, blocks above the ancestor are no longer final
	final    uint64            // raises the final block if it is higher
	covered  []coverage        // vaults whose coverage is new or moved
	frozen   string
	earlier  []referral // referrals of blocks that were already passed, to write now
	// claim is true if only the writer changes, before the log was compared with
	// the chain.
	claim bool
	// parent is the trace context that its records carry.
	parent string
}

// apply folds a change whose records have their seqs into the state, and returns the
// referrals that become due. Offsets are not known yet. None is due while the log is frozen,
// or before it was compared with the chain after a start: confirmations may have been
// lowered meanwhile, and a block that is deep enough by the new number may have left the
// chain.
func (s *state) apply(c *change, confirmations uint64) []referral {
	before := s.seq
	for _, unit := range c.units {
		for _, r := range unit {
			s.window.apply(chainlog.Entry{Record: r, Parent: c.parent})
			s.seq = r.GetSeq()
			switch {
			case !r.GetLog().Omitted():
			case r.GetRetracts() == 0:
				s.withoutData++
			case s.withoutData > 0:
				s.withoutData--
			}
		}
	}
	if c.ancestor != nil {
		s.told = min(s.told, *c.ancestor)
	}
	if c.head != nil {
		s.head = c.head
	}
	for _, moved := range c.covered {
		if r := moved.introduced; r != nil {
			moved.record, moved.offset = r.GetSeq(), 0
			s.records[moved.address] = r.GetVault()
			if err := s.mapped.Set(r.GetVault()); err != nil {
				panic(err) // unreachable: it was decoded when it was built
			}
			moved.introduced = nil
		}
		moved.believed, moved.proven = min(moved.believed, moved.to), min(moved.proven, moved.to)
		if have := s.coverageOf(moved.address); have != nil {
			*have = moved
		} else {
			s.covered = append(s.covered, moved)
		}
	}
	if c.reopens {
		s.final = min(s.final, *c.ancestor)
	}
	s.final = max(s.final, c.final)
	s.frozen = c.frozen
	if s.frozen != "" || c.claim {
		return nil
	}
	toldBefore := s.told
	s.told = s.toldTarget(confirmations)
	return s.window.due(s.mapped, toldBefore, s.told, before)
}

// toldTarget returns the block up to which referrals are deep enough. A higher number of
// confirmations never lowers it.
func (s *state) toldTarget(confirmations uint64) uint64 {
	if s.head == nil {
		return s.told
	}
	deep := s.final
	if n := confirmations; n > 0 && s.head.Number+1 > n {
		deep = max(deep, s.head.Number+1-n)
	}
	return max(s.told, min(deep, s.head.Number))
}

// prune removes blocks that no later step needs from the window of at most size blocks:
// blocks that are final and whose referrals were published, and blocks too far below the
// head to be reorganised. If size is larger than before, the floor stays, because removed
// blocks do not come back. While the log is frozen nothing is removed: a resumption needs
// the blocks below its new head.
func (s *state) prune(size uint64) {
	if s.head == nil || s.frozen != "" {
		return
	}
	s.floor = max(s.floor, min(s.final, s.told), s.head.Number-min(s.head.Number, size))
	s.window.prune(s.mapped, s.floor, s.told)
}

// restart returns the first record that a restart must read: the oldest of the
// window, or the last of the log, to check that the log is complete.
func (s *state) restart() (seq uint64, offset int64) {
	if len(s.window.entries) == 0 {
		return s.seq, s.offset
	}
	oldest := s.window.entries[0]
	return oldest.GetSeq(), oldest.Offset
}

// cursor returns the cursor record of the state.
func (s *state) cursor(chainID uint64, instance []byte) *event.Cursor {
	c := &event.Cursor{
		LogId: s.logID, GenesisHash: s.genesis[:], ChainId: chainID, InstanceId: instance, Seq: s.seq,
		FinalBlock: s.final, ReferralBlock: s.told, Frozen: s.frozen, WindowBlock: s.floor,
		LogsWithoutData: s.withoutData,
	}
	c.WindowSeq, c.WindowOffset = s.restart()
	if s.head != nil {
		c.Head = s.head.Record()
	}
	for _, v := range s.covered {
		c.Vaults = append(c.Vaults, &event.Coverage{Address: slices.Clone(v.address[:]), StartBlock: v.start, CoveredTo: v.to, ConfiguredName: v.name, BelievedTo: v.believed, ProvenTo: v.proven, Removed: v.removed,
			RecordSeq: v.record, RecordOffset: v.offset, SampledFrom: v.sampledFrom})
	}
	return c
}

// stateOf is the inverse of cursor, without the window and the records of the vaults.
func stateOf(c *event.Cursor) *state {
	s := &state{
		logID: c.GetLogId(), genesis: common.Hash(c.GetGenesisHash()), seq: c.GetSeq(), final: c.GetFinalBlock(), told: c.GetReferralBlock(),
		frozen: c.GetFrozen(), floor: c.GetWindowBlock(), withoutData: c.GetLogsWithoutData(),
	}
	if c.GetHead() != nil {
		s.head = rpc.HeaderOf(c.GetHead())
	}
	for _, v := range c.GetVaults() {
		s.covered = append(s.covered, coverage{
			address: common.Address(v.GetAddress()), start: v.GetStartBlock(), to: v.GetCoveredTo(), name: v.GetConfiguredName(),
			believed: v.GetBelievedTo(), proven: v.GetProvenTo(), removed: v.GetRemoved(),
			record: v.GetRecordSeq(), offset: v.GetRecordOffset(), sampledFrom: v.GetSampledFrom(),
		})
	}
	return s
}

// possible returns an error that names a contradiction within a cursor.
func possible(c *event.Cursor) error {
	switch {
	case len(c.GetLogId()) != 16 || len(c.GetGenesisHash()) != common.HashLength:
		return fmt.Errorf("its log id has %d bytes and its genesis hash %d", len(c.GetLogId()), len(c.GetGenesisHash()))
	case c.GetWindowSeq() > c.GetSeq() || c.GetWindowOffset() < 0:
		return fmt.Errorf("its window begins at record %d, offset %d, of %d records", c.GetWindowSeq(), c.GetWindowOffset(), c.GetSeq())
	case c.GetHead() != nil && !whole(c.GetHead()):
		return fmt.Errorf("the hashes of its head, block %d, have %d and %d bytes", c.GetHead().GetNumber(), len(c.GetHead().GetHash()), len(c.GetHead().GetParentHash()))
	}
	seen := map[common.Address]bool{}
	for _, v := range c.GetVaults() {
		address := common.BytesToAddress(v.GetAddress())
		if len(v.GetAddress()) != common.AddressLength || seen[address] || v.GetStartBlock() == 0 || v.GetCoveredTo() < v.GetStartBlock()-1 {
			return fmt.Errorf("it covers the vault 0x%x from block %d to block %d", v.GetAddress(), v.GetStartBlock(), v.GetCoveredTo())
		}
		seen[address] = true
	}
	return nil
}

// whole reports whether the hashes of a block have the length of hashes.
func whole(b *event.Block) bool {
	return len(b.GetHash()) == common.HashLength && len(b.GetParentHash()) == common.HashLength
}

func logFact(l *event.Log) *event.Record { return logFacts([]*event.Log{l})[0] }

// logFacts returns logs as records, in one allocation, because a history has millions.
func logFacts(logs []*event.Log) []*event.Record {
	made := make([]struct {
		record event.Record
		fact   event.Record_Log
	}, len(logs))
	facts := make([]*event.Record, len(logs))
	for i, l := range logs {
		m := &made[i]
		m.fact.Log, m.record.Fact = l, &m.fact
		facts[i] = &m.record
	}
	return facts
}

func blockFact(h *rpc.Header) *event.Record {
	return &event.Record{Fact: &event.Record_Block{Block: h.Record()}}
}

func vaultFact(v *event.Vault) *event.Record {
	return &event.Record{Fact: &event.Record_Vault{Vault: v}}
}

// retraction returns the record that retracts another: the whole fact again, with the seq of the retracted one.
func retraction(e chainlog.Entry) *event.Record {
	return &event.Record{Retracts: e.GetSeq(), Fact: e.GetFact()}
}
