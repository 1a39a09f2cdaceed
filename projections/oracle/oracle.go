// Package oracle says what the read model must hold: the log folded into plain
// maps, slow and obvious. It keeps the records that are live, which is all there is
// to a retraction, and adds everything up anew each time that it is asked. It
// shares no code with the projections but the mapping of logs to effects, and no SQL.
//
//	record ─▶ Fold, the live records ─▶ Books: withdrawals, users, members, totals of partners
//
// What it knows of a vault it has from the vault's live logs, one after the other
// as the chain has them: by block and index. The first log that asks for a
// withdrawal is the request, the first that ends it is the end, and what comes
// before the request or after the end changes nothing; navlog's first read model
// let each log count where it stood, so that a request that was claimed twice had
// twice the assets, and one that was funded after its expiry was open again.
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

// Fold is the log up to a seq: the records that were appended and not taken back.
type Fold struct {
	live   map[uint64]*event.Record
	seq    uint64
	vaults *mapping.Vaults
	keep   func(*mapping.Vaults, *event.Record) bool
}

// New is the fold of the empty log. vaults says how its logs are mapped before the log
// says anything; nil for nothing.
func New(vaults *mapping.Vaults) *Fold {
	return Sampled(vaults, func(*mapping.Vaults, *event.Record) bool { return true })
}

// Sampled is the fold of the empty log that will hold only the records for
// which keep is true. keep must judge a retraction like the record that it
// takes back.
func Sampled(vaults *mapping.Vaults, keep func(*mapping.Vaults, *event.Record) bool) *Fold {
	if vaults == nil {
		vaults, _ = mapping.NewVaults() // of no record, so none is wrong
	}
	return &Fold{live: map[uint64]*event.Record{}, vaults: vaults, keep: keep}
}

// Vaults is how the logs of the fold are mapped.
func (f *Fold) Vaults() *mapping.Vaults { return f.vaults }

// Seq of the last record applied.
func (f *Fold) Seq() uint64 { return f.seq }

// Apply takes the next record. It refuses one that is not the next, and one
// that takes back a record that is not live or says another thing.
func (f *Fold) Apply(r *event.Record) error {
	if r.GetSeq() != f.seq+1 {
		return fmt.Errorf("record %d does not follow %d", r.GetSeq(), f.seq)
	}
	f.seq = r.GetSeq()
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
		return fmt.Errorf("record %d takes back record %d, which is not live", r.GetSeq(), r.GetRetracts())
	}
	if !proto.Equal(bare(original), bare(r)) {
		return fmt.Errorf("record %d takes back record %d and says another thing", r.GetSeq(), r.GetRetracts())
	}
	delete(f.live, r.GetRetracts())
	return nil
}

// WithoutData is the seqs of live logs of which the log has the length and the hash of their data alone.
func (f *Fold) WithoutData() (seqs []uint64) {
	for seq, r := range f.live {
		if r.GetLog().Omitted() {
			seqs = append(seqs, seq)
		}
	}
	slices.Sort(seqs)
	return seqs
}

// bare is a record's fact alone.
func bare(r *event.Record) *event.Record { return &event.Record{Fact: r.GetFact()} }

// Records is the live records in the order of seq.
func (f *Fold) Records() []*event.Record {
	out := make([]*event.Record, 0, len(f.live))
	for _, seq := range slices.Sorted(maps.Keys(f.live)) {
		out = append(out, f.live[seq])
	}
	return out
}

// Log is what a live log does: one effect of it.
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

// Reading is what a record that is a log or a sample says.
type Reading struct {
	// Name is the event that the log says it is, "Unknown" for one that the mapping does not know, and empty for a sample.
	Name string
	// Effects are what it does; none of a log that is in no total.
	Effects []Log
	// Quarantined says that it is in no total because something in it is too large, it is not
	// laid out as its event must be, or the read model cannot hold what it does.
	Quarantined bool
}

// Read reads records that are logs, by the transactions of each vault, and samples. It gives what each record
// says, by its seq.
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

// transactions are the logs that one transaction has for one vault, in the order of the chain.
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
		reading.Effects = append(reading.Effects, Log{r.GetSeq(), sources.Address, l.GetBlockNumber(), min(l.GetBlockTime(), math.MaxUint32),
			common.Hash(l.GetTxHash()), l.GetLogIndex(), uint8(len(reading.Effects)), e})
	}
	quarantine, _ := errors.AsType[mapping.Quarantine](err)
	for _, fault := range quarantine {
		out[of[fault.Log].GetSeq()].Quarantined = true
	}
	for _, r := range of {
		if reading := out[r.GetSeq()]; !held(reading.Effects) {
			reading.Effects, reading.Quarantined = nil, true
		}
	}
}

// held tells whether the read model can hold what a log does.
func held(effects []Log) bool {
	needs := map[mapping.Kind]mapping.Fields{
		mapping.Deposit:   mapping.ID | mapping.Owner | mapping.Assets,
		mapping.Requested: mapping.ID | mapping.Owner | mapping.Shares,
		mapping.Sweep:     mapping.To | mapping.Assets,
		mapping.Priced:    mapping.SideField | mapping.Assets | mapping.Shares,
		mapping.Supply:    mapping.Shares,
		mapping.Instant:   mapping.Owner | mapping.Assets | mapping.Shares,
		mapping.Sample:    mapping.Nav,
	}
	for i := range effects {
		e := &effects[i]
		tooMany := e.Kind == mapping.Priced && e.Present(mapping.Group|mapping.GroupTo) && e.GroupTo-e.Group >= 1000
		nothing := e.Kind == mapping.Requested && e.Present(mapping.Fifo) && e.Shares.IsZero()
		if !e.Present(needs[e.Kind]) || tooMany || nothing {
			return false
		}
	}
	return len(effects) <= math.MaxUint8
}

// logs are the effects of live logs of blocks up to and including one, in the order of the
// chain, without those of some vaults; quarantined are the seqs of those that are in no total.
func (f *Fold) logs(block uint64, without []common.Address) (logs []Log, quarantined []uint64) {
	var records []*event.Record
	for _, r := range f.Records() {
		l, s := r.GetLog(), r.GetSample()
		if l != nil && l.GetBlockNumber() <= block && !slices.Contains(without, mapping.VaultOf(l)) ||
			s != nil && s.GetBlockNumber() <= block && !slices.Contains(without, common.BytesToAddress(s.GetVault())) {
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
		return cmp.Or(cmp.Compare(x.Block, y.Block), cmp.Compare(x.Index, y.Index), cmp.Compare(x.Seq, y.Seq), cmp.Compare(x.Sub, y.Sub))
	})
	slices.Sort(quarantined)
	return logs, quarantined
}
