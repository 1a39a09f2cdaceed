// Package logoracle folds the log of a chain and checks what holds for every log, whatever the chain is. It shares no
// code with ingest except the schemas: names of topics, types of records and the ABI of the reference contracts.
package logoracle

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
)

// A Log is what was folded.
type Log struct {
	ChainID uint64
	Fault   func(format string, a ...any) // is called with each fault that is found
	Unit    func(unit []*event.Record)    // if not nil, is called with each well-formed unit after it was folded

	All  []*event.Record
	Live map[uint64]*event.Record // by seq, without retractions and retracted ones
}

// Fold folds all committed records of the log's topic. The seqs are contiguous, only the first record has an origin, a
// retraction repeats a live record in full, and the last record ends a unit.
func (l *Log) Fold(records []*kgo.Record) {
	l.Live = map[uint64]*event.Record{}
	var unit []*event.Record
	for _, k := range records {
		r := new(event.Record)
		if err := proto.Unmarshal(k.Value, r); err != nil {
			l.Fault("record %d of the log is invalid: %v", len(l.All)+1, err)
			continue
		}
		l.All = append(l.All, r)
		if want := uint64(len(l.All)); r.GetSeq() != want || r.GetChainId() != l.ChainID {
			l.Fault("record %d of the log has seq %d and chain %d", want, r.GetSeq(), r.GetChainId())
		}
		if (r.GetOrigin() != nil) != (r.GetSeq() == 1) {
			l.Fault("record %d has the origin %v", r.GetSeq(), r.GetOrigin())
		}
		if original := r.GetRetracts(); original == 0 {
			l.Live[r.GetSeq()] = r
		} else {
			l.retract(r, original)
		}
		if unit = append(unit, r); r.GetBoundary() {
			l.checkUnit(unit)
			unit = nil
		}
	}
	if len(unit) > 0 {
		l.Fault("the log ends with record %d in the middle of a unit", len(l.All))
	}
}

func (l *Log) retract(r *event.Record, original uint64) {
	was := l.Live[original]
	if was == nil {
		l.Fault("record %d retracts record %d, which is not live", r.GetSeq(), original)
		return
	}
	if !proto.Equal(&event.Record{Fact: was.GetFact()}, &event.Record{Fact: r.GetFact()}) {
		l.Fault("record %d retracts record %d with another fact:\n%v\n%v", r.GetSeq(), original, r, was)
	}
	delete(l.Live, original)
}

// unitShape: vault records; or the logs and samples of blocks, followed by the last of these blocks or by each after
// its logs, or such a branch after retractions; or a decision; or what a decision retracts.
var unitShape = regexp.MustCompile(`^(v+|-*([ls]*b)+|d|-+)$`)

// checkUnit checks that retractions go from newest to oldest, and leave no earlier record live above the ancestor.
func (l *Log) checkUnit(unit []*event.Record) {
	shape, first, last := "", unit[0].GetSeq(), unit[len(unit)-1].GetSeq()
	lowest := uint64(math.MaxUint64)
	for i, before := 0, first; i < len(unit); i++ {
		r, kind := unit[i], chainlog.TypeOf(unit[i])[:1]
		if original := r.GetRetracts(); original != 0 {
			kind = "-"
			if original >= before {
				l.Fault("record %d retracts record %d after a later one of the same unit: the newest comes first", r.GetSeq(),
					original)
			}
			before = original
		}
		if n, _, ofBlock := BlockOf(r); ofBlock {
			lowest = min(lowest, n)
		}
		shape += kind
	}
	if !unitShape.MatchString(shape) {
		l.Fault("the unit that record %d ends has the shape %s", last, shape)
		return
	}
	if shape[0] == '-' {
		for seq, r := range l.Live {
			if n, _, ofBlock := BlockOf(r); ofBlock && seq < first && n >= lowest {
				l.Fault("the retractions from record %d on begin with block %d, and leave record %d of block %d live", first,
					lowest, seq, n)
			}
		}
	}
	if l.Unit != nil {
		l.Unit(unit)
	}
}

// Sorted returns the live records in the order of the log.
func (l *Log) Sorted() []*event.Record {
	return slices.SortedFunc(maps.Values(l.Live),
		func(a, b *event.Record) int { return cmp.Compare(a.GetSeq(), b.GetSeq()) })
}

// Compare compares the live logs with those that each vault has in the chain, in its order. It returns how many are
// live, how many of those of the chain are missing, and how many should not be there.
func (l *Log) Compare(chain map[common.Address][]*event.Log) (live, lost, doubled int) {
	got, all := map[common.Address][]*event.Log{}, maps.Clone(chain)
	for _, r := range l.Sorted() {
		if log := r.GetLog(); log != nil {
			vault := common.Address(log.GetAddress())
			got[vault], all[vault] = append(got[vault], log), chain[vault]
			live++
		}
	}
	for vault, want := range all {
		balance := map[string]int{}
		for i := range max(len(got[vault]), len(want)) {
			there, right := "nothing", "nothing"
			if i < len(got[vault]) {
				there = Name(got[vault][i])
				balance[there]--
			}
			if i < len(want) {
				right = Name(want[i])
				balance[right]++
			}
			if i >= len(got[vault]) || i >= len(want) || !proto.Equal(got[vault][i], want[i]) {
				l.Fault("vault %s has %d live logs and the chain %d; at %d the log has %s, the chain %s", vault, len(got[vault]),
					len(want), i, there, right)
			}
		}
		for _, n := range balance {
			lost, doubled = lost+max(0, n), doubled+max(0, -n)
		}
	}
	return live, lost, doubled
}

// Name describes a log by its place in the chain.
func Name(l *event.Log) string {
	return fmt.Sprintf("log %d of block %d (0x%x)", l.GetLogIndex(), l.GetBlockNumber(), l.GetBlockHash())
}

// BlockOf returns the block that a record belongs to.
func BlockOf(r *event.Record) (number uint64, hash []byte, ok bool) {
	switch fact := r.GetFact().(type) {
	case *event.Record_Log:
		return fact.Log.GetBlockNumber(), fact.Log.GetBlockHash(), true
	case *event.Record_Block:
		return fact.Block.GetNumber(), fact.Block.GetHash(), true
	case *event.Record_Sample:
		return fact.Sample.GetBlockNumber(), fact.Sample.GetBlockHash(), true
	}
	return 0, nil, false
}

// Attribution returns the partner that a log of a reference vault names, and the topic of its referral, as go-ethereum
// decodes the log; "" if it names none.
func Attribution(chainID uint64, l *event.Log) (topic string, partner uint32) {
	var topics []common.Hash
	for _, t := range l.GetTopics() {
		topics = append(topics, common.Hash(t))
	}
	decoded, _ := devchain.Decode(topics, l.GetData())
	switch e := decoded.(type) {
	case contracts.DepositAccepted:
		topic, partner = chainlog.ReferralDeposits(chainID), e.PartnerID
	case contracts.WithdrawalRequested:
		topic, partner = chainlog.ReferralWithdrawals(chainID), e.PartnerID
	}
	if partner == 0 {
		return "", 0
	}
	return topic, partner
}
