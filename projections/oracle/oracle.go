// Package oracle says what the read model must hold: the log folded into plain
// maps, slow and obvious. It keeps the records that are live, which is all there is
// to a retraction, and adds everything up anew each time that it is asked. It
// shares no code with the projections but the decoder of contracts, and no SQL.
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
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
)

// Fold is the log up to a seq: the records that were appended and not taken back.
type Fold struct {
	live map[uint64]*event.Record
	seq  uint64
	keep func(*event.Record) bool
}

// New is the fold of the empty log.
func New() *Fold { return Sampled(func(*event.Record) bool { return true }) }

// Sampled is the fold of the empty log that will hold only the records for
// which keep is true. keep must judge a retraction like the record that it
// takes back.
func Sampled(keep func(*event.Record) bool) *Fold {
	return &Fold{live: map[uint64]*event.Record{}, keep: keep}
}

// Seq of the last record applied.
func (f *Fold) Seq() uint64 { return f.seq }

// Apply takes the next record. It refuses one that is not the next, and one
// that takes back a record that is not live or says another thing.
func (f *Fold) Apply(r *event.Record) error {
	if r.GetSeq() != f.seq+1 {
		return fmt.Errorf("record %d does not follow %d", r.GetSeq(), f.seq)
	}
	f.seq = r.GetSeq()
	if !f.keep(r) {
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

// Log is a live log that counts.
type Log struct {
	Seq   uint64
	Vault common.Address
	Block uint64
	Time  uint64 // Unix seconds, at most 2^32-1
	Tx    common.Hash
	Index uint32
	Event contracts.Event
}

// limit is where an amount becomes too large to be summed.
var limit = new(big.Int).Exp(big.NewInt(2), big.NewInt(191), nil)

// Read gives the event of a record that is a log. counts is false when the log is
// in no total; quarantined when that is so because an amount or an id in it is too
// large, or it is not laid out as its event must be.
func Read(r *event.Record) (l Log, counts, quarantined bool) {
	raw := r.GetLog()
	topics := make([]common.Hash, 0, len(raw.GetTopics()))
	wellFormed := len(raw.GetAddress()) == 20 && len(raw.GetTxHash()) == 32 && !raw.Omitted()
	for _, t := range raw.GetTopics() {
		wellFormed = wellFormed && len(t) == 32
		topics = append(topics, common.BytesToHash(t))
	}
	e, err := contracts.Decode(topics, raw.GetData())
	if err != nil {
		return l, false, true
	}
	if e == nil {
		return l, false, false
	}
	if !wellFormed || tooLarge(e) {
		return l, false, true
	}
	return Log{r.GetSeq(), common.Address(raw.GetAddress()), raw.GetBlockNumber(), min(raw.GetBlockTime(), math.MaxUint32),
		common.Hash(raw.GetTxHash()), raw.GetLogIndex(), e}, true, false
}

// Named gives the name of the event that a log says it is, and whether it is
// quarantined; nothing of a record that is no log.
func Named(r *event.Record) (name string, quarantined bool) {
	if r.GetLog() == nil {
		return "", false
	}
	var first common.Hash
	if topics := r.GetLog().GetTopics(); len(topics) > 0 {
		first = common.BytesToHash(topics[0])
	}
	_, _, quarantined = Read(r)
	return contracts.KindOf(first).String(), quarantined
}

// Quarantines tells whether an event is in no total because an amount or an
// id in it is too large; nil is not.
func Quarantines(e contracts.Event) bool { return e != nil && tooLarge(e) }

func tooLarge(e contracts.Event) bool {
	id := func(v *big.Int) bool { return v.BitLen() > 64 }
	amount := func(v *big.Int) bool { return v.Cmp(limit) >= 0 }
	switch e := e.(type) {
	case contracts.DepositAccepted:
		return id(e.DepositID) || amount(e.Assets) || amount(e.Shares)
	case contracts.WithdrawalRequested:
		return id(e.RequestIndex) || amount(e.Shares) || amount(e.AssetsEstimate)
	case contracts.WithdrawalFunded:
		return id(e.RequestIndex) || amount(e.Shares) || amount(e.Assets)
	case contracts.WithdrawalClaimed:
		return id(e.RequestIndex) || amount(e.Shares) || amount(e.Assets)
	case contracts.WithdrawalCancelled:
		return id(e.RequestIndex) || amount(e.Shares)
	case contracts.WithdrawalExpired:
		return id(e.RequestIndex) || amount(e.Shares)
	case contracts.NavUpdated:
		return amount(e.NavPerShare) || amount(e.TotalAssets) || amount(e.TotalSupply)
	case contracts.DepositsSwept:
		return id(e.FromDepositID) || id(e.ToDepositID) || amount(e.Assets)
	case contracts.WithdrawalsSettled:
		return amount(e.Shares) || amount(e.Assets) || amount(e.NavPerShare)
	}
	return false
}
