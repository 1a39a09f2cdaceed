package projections

import (
	"math"
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
)

// fact is a record of the log, decoded. For a log, event is nil when the log
// is none of navlog's or is quarantined.
type fact struct {
	record      *event.Record
	sign        int8
	kind        string // log, block, vault, decision
	name        string // Solidity event name, "Unknown", or "" when kind is not log
	event       contracts.Event
	quarantined bool
	log         logged
}

// logged is where and when a log was emitted.
type logged struct {
	vault common.Address
	block uint64
	ts    uint32
	tx    common.Hash
	index uint32
}

func decode(r *event.Record) fact {
	f := fact{record: r, sign: chainlog.Sign(r), kind: chainlog.TypeOf(r)}
	l := r.GetLog()
	if l == nil {
		return f
	}
	f.log = logged{
		vault: common.BytesToAddress(l.GetAddress()),
		block: l.GetBlockNumber(),
		ts:    seconds(l.GetBlockTime()),
		tx:    common.BytesToHash(l.GetTxHash()),
		index: l.GetLogIndex(),
	}
	topics := make([]common.Hash, len(l.GetTopics()))
	for i, t := range l.GetTopics() {
		topics[i] = common.BytesToHash(t)
	}
	name := contracts.KindUnknown
	if len(topics) > 0 {
		name = contracts.KindOf(topics[0])
	}
	f.name = name.String()
	e, err := contracts.Decode(topics, l.GetData())
	f.quarantined = err != nil || e != nil && !countable(l, e)
	if !f.quarantined {
		f.event = e
	}
	return f
}

// countable tells whether the tables can hold a log: no amount is 2^191 or
// more, no id is 2^64 or more, and addresses and hashes have their length.
func countable(l *event.Log, e contracts.Event) bool {
	if len(l.GetAddress()) != common.AddressLength || len(l.GetTxHash()) != common.HashLength {
		return false
	}
	for _, t := range l.GetTopics() {
		if len(t) != common.HashLength {
			return false
		}
	}
	ids, amounts := numbers(e)
	for _, id := range ids {
		if !id.IsUint64() {
			return false
		}
	}
	for _, amount := range amounts {
		if amount.Cmp(readmodel.MaxAmount) >= 0 {
			return false
		}
	}
	return true
}

// numbers lists the ids and the amounts of e that reach a column.
func numbers(e contracts.Event) (ids, amounts []*big.Int) {
	switch e := e.(type) {
	case contracts.DepositAccepted:
		return []*big.Int{e.DepositID}, []*big.Int{e.Assets, e.Shares}
	case contracts.WithdrawalRequested:
		return []*big.Int{e.RequestIndex}, []*big.Int{e.Shares, e.AssetsEstimate}
	case contracts.WithdrawalFunded:
		return []*big.Int{e.RequestIndex}, []*big.Int{e.Shares, e.Assets}
	case contracts.WithdrawalClaimed:
		return []*big.Int{e.RequestIndex}, []*big.Int{e.Shares, e.Assets}
	case contracts.WithdrawalCancelled:
		return []*big.Int{e.RequestIndex}, []*big.Int{e.Shares}
	case contracts.WithdrawalExpired:
		return []*big.Int{e.RequestIndex}, []*big.Int{e.Shares}
	case contracts.NavUpdated:
		return nil, []*big.Int{e.NavPerShare, e.TotalAssets, e.TotalSupply}
	case contracts.DepositsSwept:
		return []*big.Int{e.FromDepositID, e.ToDepositID}, []*big.Int{e.Assets}
	case contracts.WithdrawalsSettled:
		return nil, []*big.Int{e.Shares, e.Assets, e.NavPerShare}
	}
	return nil, nil
}

// seconds fits a block time into a ts column: a chain that claims to live
// after 2106 stays there.
func seconds(t uint64) uint32 { return uint32(min(t, math.MaxUint32)) }
