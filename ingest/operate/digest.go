package operate

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
)

type index map[uint64]*loggedBlock

// loggedBlock is a block that has logs in the log.
type loggedBlock struct {
	number uint64
	hash   common.Hash // from the newest record
	logs   []digest
	failed bool // a proof found that the block is wrong, or could not prove it
}

// digest identifies a log by its contents.
type digest struct {
	vault common.Address
	index uint32
	sum   uint64 // hash of all its fields
}

// seed prevents a contract from crafting two logs with the same digest.
var seed = maphash.MakeSeed()

func digestOf(l *event.Log) digest {
	compared := proto.CloneOf(l)
	compared.Vault, compared.TxIndex = nil, 0 // a node may not return the index of the transaction
	if !compared.Omitted() {
		compared.SetData(l.GetData()) // a record of an earlier version may hold a little more
	}
	encoded, _ := proto.MarshalOptions{Deterministic: true}.Marshal(compared) // bytes and numbers cannot fail
	return digest{vault: mapping.VaultOf(l), index: l.GetLogIndex(), sum: maphash.Bytes(seed, encoded)}
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
		have = &loggedBlock{number: number}
		x[number] = have
	}
	have.hash, have.logs = common.Hash(l.GetBlockHash()), append(have.logs, d)
}
