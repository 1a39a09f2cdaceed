package operate

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
)

// index is the part of the log that a comparison with receipts needs, by block.
type index map[uint64]*held

// held is a block that has logs in the log.
type held struct {
	hash common.Hash // from the newest record
	logs []digest
}

// digest identifies a log by its contents.
type digest struct {
	vault   common.Address
	address common.Address // of the contract
	topic   common.Hash    // the first one, zero if there is none
	index   uint32
	sum     uint64 // hash of everything else
}

// seed prevents a contract from crafting two logs with the same digest.
var seed = maphash.MakeSeed()

func digestOf(l *event.Log) digest {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, topic := range l.GetTopics() {
		h.Write(topic)
	}
	bounded := event.Log{Data: l.GetData(), DataLength: l.GetDataLength(), DataHash: l.GetDataHash()}
	if !bounded.Omitted() {
		bounded.SetData(l.GetData()) // a record of an earlier version may hold a little more
	}
	h.Write(bounded.Data)
	h.Write(bounded.DataHash)
	h.Write(l.GetTxHash())
	_ = binary.Write(&h, binary.BigEndian, l.GetBlockTime())
	d := digest{vault: mapping.VaultOf(l), address: common.Address(l.GetAddress()), index: l.GetLogIndex(), sum: h.Sum64()}
	if len(l.GetTopics()) > 0 {
		d.topic = common.BytesToHash(l.GetTopics()[0])
	}
	return d
}

// index reads the whole log, and keeps the records that a proof compares.
func (l Log) index(ctx context.Context, compared func(chainlog.Entry) bool) (index, error) {
	x := index{}
	err := chainlog.ReadAfter(ctx, l.ChainID, chainlog.Position{}, func(e chainlog.Entry) error {
		if compared(e) {
			x.apply(e)
		}
		return nil
	}, l.Kafka.Options()...)
	if err != nil {
		return nil, fmt.Errorf("read the log for a proof by receipts: %w", err)
	}
	return x, nil
}

// apply folds the next record of the log into the index.
func (x index) apply(e chainlog.Entry) {
	l := e.GetLog()
	if l == nil {
		return
	}
	number, d := l.GetBlockNumber(), digestOf(l)
	have := x[number]
	if original := e.GetRetracts(); original != 0 {
		if have != nil {
			if i := slices.Index(have.logs, d); i >= 0 {
				have.logs = slices.Delete(have.logs, i, i+1)
			}
			if len(have.logs) == 0 {
				delete(x, number)
			}
		}
		return
	}
	if have == nil {
		have = &held{}
		x[number] = have
	}
	have.hash, have.logs = common.Hash(l.GetBlockHash()), append(have.logs, d)
}
