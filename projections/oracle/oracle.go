// Package oracle computes the expected content of the read model: it folds the log into plain maps, slowly and
// simply. It keeps the live records, so that a retraction only removes one, and adds everything up again at each
// call. It shares no code with the projections except the mapping of logs to effects, and no SQL.
//
//	record ─▶ Fold, the live records ─▶ Lists: the rows of the table lists
//	                                 └▶ Contradictions: logs that are in no total, or contradict the state
//
// The state of a vault follows from the vault's live logs in chain order: by block and index. The first log that
// requests a withdrawal is the request, the first that ends it is the end, and logs before the request or after the
// end change nothing. navlog's first read model applied each log where it came in the log, so that a request that was
// claimed twice had twice the assets, and one that was funded after its expiry was open again.
package oracle

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
)

// Fold is the log up to a seq: the records that were appended and not retracted.
type Fold struct {
	live     map[uint64]*event.Record
	seq      uint64
	retracts bool   // a record of the current unit retracts another one
	rewrites uint64 // units with such records
	vaults   *mapping.Vaults
	keep     func(*mapping.Vaults, *event.Record) bool

	skipped         Skipped
	newest          uint64          // the newest block up to the previous unit
	lowest, highest uint64          // of the current unit: its lowest block, and the highest that it adds
	late            map[uint64]bool // seqs of block records below the newest block, in units that retract nothing
}

// Skipped is what a generation skips: the vaults that it omits, or that joined after its lists were built, and the
// blocks below the newest one that came with the history of these.
type Skipped struct {
	Vaults []common.Address // sorted
	// From is the seq of the first skipped block record; 0 for none. All later ones below the newest block are skipped
	// too, unless their unit retracts.
	From uint64
}

// New returns the fold of the empty log. vaults has the mappings that are known before the log is read; nil for none.
func New(vaults *mapping.Vaults) *Fold {
	return Sampled(vaults, func(*mapping.Vaults, *event.Record) bool { return true })
}

// Sampled returns the fold of the empty log that will keep only the records for which keep is true. keep must return
// the same for a retraction as for the record that it retracts.
func Sampled(vaults *mapping.Vaults, keep func(*mapping.Vaults, *event.Record) bool) *Fold {
	if vaults == nil {
		vaults, _ = mapping.NewVaults() // without records, so there is no error
	}
	return &Fold{live: map[uint64]*event.Record{}, vaults: vaults, keep: keep, lowest: math.MaxUint64,
		late: map[uint64]bool{}}
}

// Vaults returns the mappings of the fold.
func (f *Fold) Vaults() *mapping.Vaults { return f.vaults }

// Seq returns the seq of the last applied record.
func (f *Fold) Seq() uint64 { return f.seq }

// Apply applies the next record. It rejects a record with another seq, and a retraction of a record that is not live
// or has other content.
func (f *Fold) Apply(r *event.Record) error {
	if r.GetSeq() != f.seq+1 {
		return fmt.Errorf("record %d does not follow %d", r.GetSeq(), f.seq)
	}
	f.seq = r.GetSeq()
	f.follow(r)
	if v := r.GetVault(); v != nil && r.GetRetracts() == 0 {
		if err := f.vaults.Apply(v); err != nil {
			return fmt.Errorf("record %d: %w", r.GetSeq(), err)
		}
	}
	if !f.keep(f.vaults, r) {
		return nil
	}
	if r.GetRetracts() == 0 {
		f.live[r.GetSeq()] = r
		return nil
	}
	original := f.live[r.GetRetracts()]
	if original == nil {
		return fmt.Errorf("record %d retracts record %d, which is not live", r.GetSeq(), r.GetRetracts())
	}
	if !proto.Equal(factOnly(original), factOnly(r)) {
		return fmt.Errorf("record %d retracts record %d, but has other content", r.GetSeq(), r.GetRetracts())
	}
	delete(f.live, r.GetRetracts())
	return nil
}

// follow applies a record to what is known of its unit and of the newest block.
func (f *Fold) follow(r *event.Record) {
	f.retracts = f.retracts || r.GetRetracts() != 0
	b := r.GetBlock()
	if b != nil && !f.retracts && b.GetNumber() < f.newest {
		f.late[r.GetSeq()] = true
	}
	if b != nil && r.GetRetracts() == 0 {
		f.highest = max(f.highest, b.GetNumber())
	}
	if b != nil || r.GetLog() != nil || r.GetSample() != nil {
		f.lowest = min(f.lowest, max(b.GetNumber(), r.GetLog().GetBlockNumber(), r.GetSample().GetBlockNumber()))
	}
	if !r.GetBoundary() {
		return
	}
	switch {
	case f.retracts && f.highest == 0:
		f.rewrites++
		f.newest = f.newestBelow(f.lowest)
	case f.retracts:
		f.rewrites++
		f.newest = f.highest
	default:
		f.newest = max(f.newest, f.highest)
	}
	f.retracts, f.lowest, f.highest = false, math.MaxUint64, 0
}

// newestBelow returns the newest live block below a number: a retraction without a new branch makes it the newest
// one. There are gaps between the records of old blocks.
func (f *Fold) newestBelow(number uint64) (newest uint64) {
	for _, r := range f.live {
		if b := r.GetBlock(); b != nil && b.GetNumber() < number {
			newest = max(newest, b.GetNumber())
		}
	}
	return newest
}

// Skip sets what the generation skips.
func (f *Fold) Skip(s Skipped) { f.skipped = s }

// Skips reports whether the generation skips a record that was applied.
func (f *Fold) Skips(r *event.Record) bool {
	var vault []byte
	switch {
	case r.GetBlock() != nil:
		return f.late[r.GetSeq()] && f.skipped.From > 0 && r.GetSeq() >= f.skipped.From
	case r.GetLog() != nil:
		address := mapping.VaultOf(r.GetLog())
		vault = address[:]
	case r.GetSample() != nil:
		vault = r.GetSample().GetVault()
	case r.GetVault() != nil:
		vault = r.GetVault().GetAddress()
	}
	return vault != nil && slices.Contains(f.skipped.Vaults, common.BytesToAddress(vault))
}

func factOnly(r *event.Record) *event.Record { return &event.Record{Fact: r.GetFact()} }

// Records returns the live records in the order of seq.
func (f *Fold) Records() []*event.Record {
	out := make([]*event.Record, 0, len(f.live))
	for _, seq := range slices.Sorted(maps.Keys(f.live)) {
		out = append(out, f.live[seq])
	}
	return out
}

// Log is one effect of a live log.
type Log struct {
	Seq   uint64
	Vault common.Address
	Block uint64
	Time  uint64 // Unix seconds, at most 2^32-1
	Tx    common.Hash
	Index uint32
	Sub   uint8 // number of the effect within its log
	mapping.Effect
}

// Reading is the meaning of a record that is a log or a sample.
type Reading struct {
	// Name is the name of the log's event, "Unknown" if the mapping does not know it, and empty for a sample.
	Name string
	// Effects are its effects; none if the log is in no total.
	Effects []Log
	// Quarantined means that it is in no total because the mapping rejects it, as for an amount that is too large, or it
	// does not have the layout of its event.
	Quarantined bool
}

// Read interprets records that are logs, by the transactions of each vault, and samples. It returns the readings by
// seq.
func Read(vaults *mapping.Vaults, records []*event.Record) map[uint64]*Reading {
	out := make(map[uint64]*Reading, len(records))
	for _, tx := range transactions(records) {
		readTransaction(vaults.Of(mapping.VaultOf(tx[0].GetLog())), tx, out)
	}
	for _, r := range records {
		if s := r.GetSample(); s != nil {
			out[r.GetSeq()] = readSample(vaults, r.GetSeq(), s)
		}
	}
	return out
}

// readSample reads a sample: a valuation of its vault after all logs of its block.
func readSample(vaults *mapping.Vaults, seq uint64, s *event.Sample) *Reading {
	vault := common.BytesToAddress(s.GetVault())
	effects, sound := vaults.Of(vault).Measured(s)
	reading := &Reading{Quarantined: !sound}
	for _, e := range effects {
		reading.Effects = append(reading.Effects, Log{Seq: seq, Vault: vault, Block: s.GetBlockNumber(),
			Time: min(s.GetBlockTime(), math.MaxUint32), Index: math.MaxUint32, Effect: e})
	}
	return reading
}

// transactions groups the logs by transaction and vault, in chain order.
func transactions(records []*event.Record) (out [][]*event.Record) {
	var logs []*event.Record
	for _, r := range records {
		if r.GetLog() != nil {
			logs = append(logs, r)
		}
	}
	apart := func(a, b *event.Record) int {
		x, y := a.GetLog(), b.GetLog()
		return cmp.Or(mapping.VaultOf(x).Cmp(mapping.VaultOf(y)), cmp.Compare(x.GetBlockNumber(), y.GetBlockNumber()),
			bytes.Compare(x.GetBlockHash(), y.GetBlockHash()), bytes.Compare(x.GetTxHash(), y.GetTxHash()),
			cmp.Compare(min(a.GetRetracts(), 1), min(b.GetRetracts(), 1)))
	}
	slices.SortStableFunc(logs, func(a, b *event.Record) int {
		return cmp.Or(apart(a, b), cmp.Compare(a.GetLog().GetLogIndex(), b.GetLog().GetLogIndex()))
	})
	for start, i := 0, 1; i <= len(logs); i++ {
		if i == len(logs) || apart(logs[start], logs[i]) != 0 {
			out = append(out, logs[start:i])
			start = i
		}
	}
	return out
}

func readTransaction(sources *mapping.Sources, tx []*event.Record, out map[uint64]*Reading) {
	var logs []mapping.Log
	var of []*event.Record
	for _, r := range tx {
		l, sound := sources.FromRecord(r.GetLog())
		reading := &Reading{Name: "Unknown"}
		out[r.GetSeq()] = reading
		if _, ours := sources.Role(common.BytesToAddress(r.GetLog().GetAddress())); !ours {
			continue
		}
		known := sources.Event(&l)
		if known == nil {
			continue
		}
		reading.Name = known.Name
		if reading.Quarantined = !sound; sound {
			logs, of = append(logs, l), append(of, r)
		}
	}
	effects, err := sources.Map(logs, nil)
	for _, e := range effects {
		r, l := of[e.Log], of[e.Log].GetLog()
		reading := out[r.GetSeq()]
		reading.Effects = append(reading.Effects,
			Log{r.GetSeq(), sources.Address, l.GetBlockNumber(), min(l.GetBlockTime(), math.MaxUint32),
				common.Hash(l.GetTxHash()), l.GetLogIndex(), uint8(len(reading.Effects)), e})
	}
	quarantine, _ := errors.AsType[mapping.Quarantine](err)
	for _, fault := range quarantine {
		out[of[fault.Log].GetSeq()].Quarantined = true
	}
}

// logs returns the effects of live logs and samples that the generation does not skip, in chain order; quarantined has
// the seqs of those that are in no total.
func (f *Fold) logs() (logs []Log, quarantined []uint64) {
	var records []*event.Record
	for _, r := range f.Records() {
		if (r.GetLog() != nil || r.GetSample() != nil) && !f.Skips(r) {
			records = append(records, r)
		}
	}
	for seq, reading := range Read(f.vaults, records) {
		logs = append(logs, reading.Effects...)
		if reading.Quarantined {
			quarantined = append(quarantined, seq)
		}
	}
	slices.SortFunc(logs, func(x, y Log) int {
		return cmp.Or(cmp.Compare(x.Block, y.Block), cmp.Compare(x.Index, y.Index), cmp.Compare(x.Seq, y.Seq),
			cmp.Compare(x.Sub, y.Sub))
	})
	slices.Sort(quarantined)
	return logs, quarantined
}
