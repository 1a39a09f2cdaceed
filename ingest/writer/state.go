package writer

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

// State is the position of the writer. A commit changes it before the broker has the transaction. If that fails, the
// session ends and its state with it.
type State struct {
	logID     []byte
	genesis   common.Hash
	Seq       uint64
	offset    int64       // of record seq
	Head      *rpc.Header // newest indexed block, nil before the first
	Final     uint64
	published uint64 // the referrals of blocks up to this one were written
	Covered   []Coverage
	Window    Window
	floor     uint64 // the window is complete above this block
	Frozen    string
	// withoutData counts the live logs that have the length and the hash of their data instead of the data.
	withoutData uint64
	// Mapped reads and maps the logs of the vaults. Records holds the newest record of each vault that is in the log.
	Mapped  *mapping.Vaults
	Records map[common.Address]*event.Vault
}

// Coverage is the block range of one vault that is in the log. A removed vault keeps its coverage, and has a record of
// its removal.
type Coverage struct {
	Address common.Address
	Start   uint64
	To      uint64 // the last block that is in the log; start-1 before the first
	Name    string // the configured display name in its newest record, empty for the contract's own
	// Unproven is the last block whose logs were accepted unproven. Proven is the last block up to which such logs have
	// since been proven by their receipts; in the cursor of an earlier version, compared with headers. 0 for none.
	Unproven, Proven uint64
	// SampledFrom is the first block from which NAV is sampled, if earlier blocks have no samples; 0 if none is missing.
	SampledFrom uint64
	Removed     bool // its newest record says that it was removed
	// record is the seq of its newest record that is not a removal, and offset that record's position; 0 if unknown.
	record uint64
	offset int64
	// NewRecord is that record until it has a seq.
	NewRecord *event.Record
}

// ProvenTo returns the last block up to which the vault's logs were compared with the headers of their blocks, or
// proven by their receipts.
func (c Coverage) ProvenTo() uint64 {
	if c.Proven >= c.Unproven {
		return c.To
	}
	return max(c.Proven, c.Start-1)
}

// acceptUnproven notes that the logs of blocks above have, up to number, were accepted without a proof. Blocks below
// them that were proven stay proven.
func (c *Coverage) acceptUnproven(have, number uint64) {
	if number <= c.Unproven {
		return
	}
	if c.Proven >= c.Unproven {
		c.Proven = have
	}
	c.Unproven = number
}

// Prove notes that blocks that were accepted without a proof have been proven since, up to number.
func (c *Coverage) Prove(number uint64) { c.Proven = max(c.Proven, min(number, c.Unproven)) }

// CoverageOf returns the coverage of a vault, which the caller may not change; nil if the log does not have the vault.
func (s *State) CoverageOf(address common.Address) *Coverage {
	i := slices.IndexFunc(s.Covered, func(c Coverage) bool { return c.Address == address })
	if i < 0 {
		return nil
	}
	return &s.Covered[i]
}

// Indexed returns the coverage of the vaults that were not removed.
func (s *State) Indexed() []Coverage {
	return slices.DeleteFunc(slices.Clone(s.Covered), func(v Coverage) bool { return v.Removed })
}

// Lowest returns the block up to which all of these vaults are covered.
func Lowest(vaults []Coverage) uint64 {
	lowest := uint64(math.MaxUint64)
	for _, v := range vaults {
		lowest = min(lowest, v.To)
	}
	return lowest
}

// HashAt returns the hash of a block that is the head or in the window.
func (s *State) HashAt(number uint64) (hash common.Hash, known bool) {
	if s.Head != nil && s.Head.Number == number {
		return s.Head.Hash, true
	}
	for _, e := range slices.Backward(s.Window.entries) {
		if b := e.GetBlock(); b != nil && b.GetNumber() == number {
			return common.Hash(b.GetHash()), true
		}
	}
	return hash, false
}

// Change holds the effect of one transaction on the state.
type Change struct {
	Units    [][]*event.Record // facts (and retracts); seq and boundary are given by the writer
	Head     *rpc.Header       // the new head, nil to keep it
	Ancestor *uint64           // of a reorganisation: blocks above it are gone
	Reopens  bool              // by an operator's decision, blocks above the ancestor are no longer final
	Final    uint64            // raises the final block if it is higher
	Covered  []Coverage        // vaults whose coverage is new or moved
	Frozen   string
	earlier  []referral // referrals of blocks that were already passed, to write now
	// claim is true if only the writer changes, before the log was compared with the chain.
	claim bool
	// parent is the trace context that its records carry.
	parent string
}

func (c *Change) records() []*event.Record { return slices.Concat(c.Units...) }

// apply folds a change whose records have their seqs into the state, and returns the referrals that become due. None is
// due while the log is frozen, or before it was compared with the chain after a start: confirmations may have been
// lowered meanwhile, and a block that is deep enough by the new number may have left the chain.
func (s *State) apply(c *Change, confirmations uint64) []referral {
	before := s.Seq
	for _, r := range c.records() {
		s.Window.Apply(chainlog.Entry{Record: r, Parent: c.parent})
		s.Seq = r.GetSeq()
		switch {
		case !r.GetLog().Omitted():
		case r.GetRetracts() == 0:
			s.withoutData++
		case s.withoutData > 0:
			s.withoutData--
		}
	}
	if c.Ancestor != nil {
		s.published = min(s.published, *c.Ancestor)
	}
	if c.Head != nil {
		s.Head = c.Head
	}
	for _, moved := range c.Covered {
		if r := moved.NewRecord; r != nil {
			moved.record, moved.offset = r.GetSeq(), 0
			s.Records[moved.Address] = r.GetVault()
			if err := s.Mapped.Set(r.GetVault()); err != nil {
				panic(err) // unreachable: it was decoded when it was built
			}
			moved.NewRecord = nil
		}
		moved.Unproven, moved.Proven = min(moved.Unproven, moved.To), min(moved.Proven, moved.To)
		if have := s.CoverageOf(moved.Address); have != nil {
			*have = moved
		} else {
			s.Covered = append(s.Covered, moved)
		}
	}
	if c.Reopens {
		s.Final = min(s.Final, *c.Ancestor)
	}
	s.Final = max(s.Final, c.Final)
	s.Frozen = c.Frozen
	if s.Frozen != "" || c.claim {
		return nil
	}
	publishedBefore := s.published
	s.published = s.publishTarget(confirmations)
	return s.Window.due(s.Mapped, publishedBefore, s.published, before)
}

// publishTarget returns the block up to which referrals are deep enough. It never moves back.
func (s *State) publishTarget(confirmations uint64) uint64 {
	if s.Head == nil {
		return s.published
	}
	deep := s.Final
	if n := confirmations; n > 0 && s.Head.Number+1 > n {
		deep = max(deep, s.Head.Number+1-n)
	}
	return max(s.published, min(deep, s.Head.Number))
}

// prune removes blocks that are final and whose referrals were published, and blocks too far below the head to be
// reorganised. If size is larger than before, the floor stays, because removed blocks do not come back. While the log
// is frozen nothing is removed: a resumption needs the blocks below its new head.
func (s *State) prune(size uint64) {
	if s.Head == nil || s.Frozen != "" {
		return
	}
	s.floor = max(s.floor, min(s.Final, s.published), s.Head.Number-min(s.Head.Number, size))
	s.Window.prune(s.Mapped, s.floor, s.published)
}

func (s *State) cursor(chainID uint64, instance []byte) *event.Cursor {
	c := &event.Cursor{
		LogId: s.logID, GenesisHash: s.genesis[:], ChainId: chainID, InstanceId: instance, Seq: s.Seq,
		FinalBlock: s.Final, ReferralBlock: s.published, Frozen: s.Frozen, WindowBlock: s.floor,
		LogsWithoutData: s.withoutData,
	}
	// A restart reads from the oldest record of the window or, to check that the log is complete, its last one.
	c.WindowSeq, c.WindowOffset = s.Seq, s.offset
	if len(s.Window.entries) > 0 {
		c.WindowSeq, c.WindowOffset = s.Window.entries[0].GetSeq(), s.Window.entries[0].Offset
	}
	if s.Head != nil {
		c.Head = s.Head.Record()
	}
	for _, v := range s.Covered {
		c.Vaults = append(c.Vaults,
			&event.Coverage{Address: slices.Clone(v.Address[:]), StartBlock: v.Start, CoveredTo: v.To, ConfiguredName: v.Name,
				BelievedTo: v.Unproven, ProvenTo: v.Proven, Removed: v.Removed, RecordSeq: v.record, RecordOffset: v.offset,
				SampledFrom: v.SampledFrom})
	}
	return c
}

// stateOf is the inverse of cursor, without the window and the records of the vaults.
func stateOf(c *event.Cursor) *State {
	s := &State{
		logID: c.GetLogId(), genesis: common.Hash(c.GetGenesisHash()), Seq: c.GetSeq(), Final: c.GetFinalBlock(),
		published: c.GetReferralBlock(),
		Frozen:    c.GetFrozen(), floor: c.GetWindowBlock(), withoutData: c.GetLogsWithoutData(),
	}
	if c.GetHead() != nil {
		s.Head = rpc.HeaderOf(c.GetHead())
	}
	for _, v := range c.GetVaults() {
		s.Covered = append(s.Covered, Coverage{
			Address: common.Address(v.GetAddress()), Start: v.GetStartBlock(), To: v.GetCoveredTo(), Name: v.GetConfiguredName(),
			Unproven: v.GetBelievedTo(), Proven: v.GetProvenTo(), Removed: v.GetRemoved(),
			record: v.GetRecordSeq(), offset: v.GetRecordOffset(), SampledFrom: v.GetSampledFrom(),
		})
	}
	return s
}

// checkCursor returns an error that names a contradiction within a cursor.
func checkCursor(c *event.Cursor) error {
	switch {
	case len(c.GetLogId()) != 16 || len(c.GetGenesisHash()) != common.HashLength:
		return fmt.Errorf("its log id has %d bytes and its genesis hash %d", len(c.GetLogId()), len(c.GetGenesisHash()))
	case c.GetWindowSeq() > c.GetSeq() || c.GetWindowOffset() < 0:
		return fmt.Errorf("its window begins at record %d, offset %d, of %d records", c.GetWindowSeq(), c.GetWindowOffset(),
			c.GetSeq())
	case c.GetHead() != nil && !isComplete(c.GetHead()):
		return fmt.Errorf("the hashes of its head, block %d, have %d and %d bytes", c.GetHead().GetNumber(),
			len(c.GetHead().GetHash()), len(c.GetHead().GetParentHash()))
	}
	seen := map[common.Address]bool{}
	for _, v := range c.GetVaults() {
		address := common.BytesToAddress(v.GetAddress())
		if len(v.GetAddress()) != common.AddressLength || seen[address] || v.GetStartBlock() == 0 ||
			v.GetCoveredTo() < v.GetStartBlock()-1 {
			return fmt.Errorf("it covers the vault 0x%x from block %d to block %d", v.GetAddress(), v.GetStartBlock(),
				v.GetCoveredTo())
		}
		seen[address] = true
	}
	return nil
}

func isComplete(b *event.Block) bool {
	return len(b.GetHash()) == common.HashLength && len(b.GetParentHash()) == common.HashLength
}

// LogFacts returns logs as records without a seq, in one allocation, because a history has millions.
func LogFacts(logs ...*event.Log) []*event.Record {
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

// BlockFact returns a block as a record without a seq.
func BlockFact(h *rpc.Header) *event.Record {
	return &event.Record{Fact: &event.Record_Block{Block: h.Record()}}
}

// VaultFact returns a vault as a record without a seq.
func VaultFact(v *event.Vault) *event.Record {
	return &event.Record{Fact: &event.Record_Vault{Vault: v}}
}

// Retraction returns the record that retracts another: the whole fact again, with the seq of the retracted one.
func Retraction(e chainlog.Entry) *event.Record {
	return &event.Record{Retracts: e.GetSeq(), Fact: e.GetFact()}
}
