package decode

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/contracts"
)

// Numbers of fields in event.proto; those of varints have a bit of their own,
// for a field of another type than the protocol's is none of it.
const (
	varint = 1 << 30

	recordRetracts = varint | 2
	recordLog      = 8
	recordBlock    = 9
	recordVault    = 10
	recordDecision = 11

	logAddress = 1
	logTopics  = 2
	logData    = 3
	logBlock   = varint | 4
	logHash    = 5
	logTime    = varint | 6
	logTx      = 7
	logIndex   = varint | 9

	blockNumber = varint | 1
	blockHash   = 2
	blockTime   = varint | 4

	vaultAddress = 1
	vaultRemoved = varint | 7
)

var errMangled = errors.New("it is not the protobuf of a record")

// One reads a record of the log. The fact keeps the bytes of those that no
// table says otherwise.
func One(in chainlog.Raw) (f Fact, err error) {
	f = Fact{Seq: in.Seq, Boundary: in.Boundary, Offset: in.Offset, Sign: 1}
	var body []byte
	var kind protowire.Number
	err = fields(in.Value, func(n protowire.Number, v uint64, b []byte) {
		switch n {
		case recordRetracts:
			if f.Retracts = v; v != 0 {
				f.Sign = -1
			}
		case recordLog, recordBlock, recordVault, recordDecision:
			kind, body = n, b
		}
	})
	if err != nil {
		return f, err
	}
	switch kind {
	case recordLog:
		f.Kind = LogKind
		err = f.decodeLog(body)
	case recordBlock:
		f.Kind = BlockKind
		err = fields(body, func(n protowire.Number, v uint64, b []byte) {
			switch n {
			case blockNumber:
				f.Log.Block = v
			case blockHash:
				f.Hash = common.BytesToHash(b)
			case blockTime:
				f.Log.Time = seconds(v)
			}
		})
	case recordVault:
		f.Kind = VaultKind
		err = fields(body, func(n protowire.Number, v uint64, b []byte) {
			switch n {
			case vaultAddress:
				f.Log.Vault = common.BytesToAddress(b)
			case vaultRemoved:
				f.Removed = v != 0
			}
		})
	case recordDecision:
		f.Kind = DecisionKind
	default:
		err = errMangled
	}
	if f.Quarantined || f.Event == contracts.KindWithdrawalsSettled || f.Kind == VaultKind || f.Kind == DecisionKind {
		f.Raw = in.Value
	}
	return f, err
}

// fields gives each field of a protobuf message to see: v of a varint, b of bytes.
func fields(m []byte, see func(n protowire.Number, v uint64, b []byte)) error {
	for len(m) > 0 {
		number, kind, n := protowire.ConsumeTag(m)
		if n < 0 {
			return errMangled
		}
		m = m[n:]
		switch kind {
		case protowire.VarintType:
			v, n := protowire.ConsumeVarint(m)
			if n < 0 {
				return errMangled
			}
			see(varint|number, v, nil)
			m = m[n:]
		case protowire.BytesType:
			b, n := protowire.ConsumeBytes(m)
			if n < 0 {
				return errMangled
			}
			see(number, 0, b)
			m = m[n:]
		default:
			n := protowire.ConsumeFieldValue(number, kind, m)
			if n < 0 {
				return errMangled
			}
			m = m[n:]
		}
	}
	return nil
}

// maxTopics is how many topics a log of the EVM can have.
const maxTopics = 4

// decodeLog reads a log. One that cannot be counted is quarantined: it has
// lengths that no EVM gives, is not laid out like the event that it announces,
// or names a number that the tables cannot hold.
func (f *Fact) decodeLog(m []byte) error {
	var topics [maxTopics][]byte
	var data []byte
	count, odd := 0, false
	addressLength, txLength := 0, 0
	err := fields(m, func(n protowire.Number, v uint64, b []byte) {
		switch n {
		case logAddress:
			addressLength, f.Log.Vault = len(b), common.BytesToAddress(b)
		case logTopics:
			odd = odd || len(b) != common.HashLength
			if count < maxTopics {
				topics[count] = b
			}
			count++
		case logData:
			data = b
		case logBlock:
			f.Log.Block = v
		case logHash:
			f.Hash = common.BytesToHash(b)
		case logTime:
			f.Log.Time = seconds(v)
		case logTx:
			txLength, f.Log.Tx = len(b), common.BytesToHash(b)
		case logIndex:
			f.Log.Index = uint32(v)
		}
	})
	if err != nil {
		return err
	}
	f.Event = contracts.KindUnknown
	if count > 0 {
		f.Event = contracts.KindOf(common.BytesToHash(topics[0]))
	}
	f.Named = f.Event
	if f.Event == contracts.KindUnknown {
		return nil
	}
	wanted, words := f.Event.Layout()
	if odd || addressLength != common.AddressLength || txLength != common.HashLength ||
		count != wanted || len(data) != 32*words || !f.arguments(topics[1:], data) {
		f.Event, f.Quarantined, f.Args = contracts.KindUnknown, true, Args{}
	}
	return nil
}

// arguments reads what the tables show of an event whose lengths were checked;
// false when a value does not fit its type or its column.
func (f *Fact) arguments(topics [][]byte, data []byte) bool {
	a, ok := &f.Args, true
	id := func(w []byte) uint64 { v, fits := low(w, 8); ok = ok && fits; return v }
	short := func(w []byte, n int) uint64 { v, fits := low(w, n); ok = ok && fits; return v }
	address := func(w []byte) common.Address { ok = ok && empty(w[:12]); return common.Address(w[12:32]) }
	sum := func(z *Amount, w []byte) { z.SetBytes32(w[:32]); ok = ok && z.BitLen() <= amountBits }
	word := func(i int) []byte { return data[32*i : 32*i+32] }
	var unseen Amount
	switch f.Event {
	case contracts.KindDepositAccepted:
		a.ID, a.Owner, a.Partner = id(topics[0]), address(topics[1]), uint32(short(topics[2], 4))
		a.Other = address(word(0))
		sum(&a.Assets, word(1))
		sum(&a.Shares, word(2))
	case contracts.KindWithdrawalRequested:
		a.ID, a.Owner, a.Partner = id(topics[0]), address(topics[1]), uint32(short(topics[2], 4))
		a.Other = address(word(0))
		sum(&a.Shares, word(1))
		sum(&a.Assets, word(2))
		a.Expires = short(word(3), 8)
	case contracts.KindWithdrawalFunded:
		a.ID, a.Owner = id(topics[0]), address(topics[1])
		sum(&a.Shares, word(0))
		sum(&a.Assets, word(1))
	case contracts.KindWithdrawalClaimed:
		a.ID, a.Owner, a.Other = id(topics[0]), address(topics[1]), address(topics[2])
		sum(&a.Shares, word(0))
		sum(&a.Assets, word(1))
	case contracts.KindWithdrawalCancelled, contracts.KindWithdrawalExpired:
		a.ID, a.Owner = id(topics[0]), address(topics[1])
		sum(&a.Shares, word(0))
	case contracts.KindNavUpdated:
		a.Other = address(topics[1])
		sum(&a.Nav, word(0))
		sum(&a.Assets, word(1))
		sum(&a.Shares, word(2))
	case contracts.KindDepositsSwept:
		a.Other = address(topics[1])
		a.ID, a.To = id(word(0)), id(word(1))
		sum(&a.Assets, word(2))
	case contracts.KindWithdrawalsSettled:
		a.Other = address(topics[1])
		sum(&a.Shares, word(1))
		sum(&a.Assets, word(2))
		sum(&unseen, word(3))
	}
	return ok
}

// low is the last n bytes of a word of 32, at most 8; ok says that the others are 0.
func low(w []byte, n int) (v uint64, ok bool) {
	return binary.BigEndian.Uint64(w[24:32]), empty(w[:32-n])
}

func empty(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

// All reads records one after the other. A record that is none is a
// *chainlog.CorruptError.
func All(chainID uint64, in []chainlog.Raw) ([]Fact, error) {
	out := make([]Fact, len(in))
	for i := range in {
		var err error
		if out[i], err = One(in[i]); err != nil {
			return nil, &chainlog.CorruptError{Topic: chainlog.LogTopic(chainID), Offset: in[i].Offset, Err: fmt.Errorf("seq %d: %w", in[i].Seq, err)}
		}
	}
	return out, nil
}
