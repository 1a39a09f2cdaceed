package decode

import (
	"errors"
	"fmt"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/mapping"
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
	logNoData  = 11 // the hash of data that the record does not hold

	blockNumber = varint | 1
	blockHash   = 2
	blockTime   = varint | 4

	vaultAddress = 1
	vaultRemoved = varint | 7
)

var errMangled = errors.New("it is not the protobuf of a record")

// reference is the Mapping of the reference contracts.
var reference = sync.OnceValue(func() Mapping { return Of(mapping.Reference()) })

// reader reads records of the log, and has what is made once for many of them:
// the effects of all, in one piece, and the topics of the log that is being read.
type reader struct {
	mapping Mapping
	effects []Effect
	topics  [maxTopics]common.Hash
	mapped  mapping.Log // that is being mapped
}

// one reads a record. The fact keeps the bytes of those that no table says
// otherwise.
func (r *reader) one(in chainlog.Raw) (f Fact, err error) {
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
		err = r.log(&f, body)
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
	if f.Quarantined || f.has(GroupPrice) || f.Kind == VaultKind || f.Kind == DecisionKind {
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

// log reads a log. One that cannot be counted is quarantined: it has lengths that
// no EVM gives, or data that its record does not hold, is not laid out like the event that it announces, names a number
// that the tables cannot hold, or does what they cannot hold.
func (r *reader) log(f *Fact, m []byte) error {
	var data []byte
	count, odd, omitted := 0, false, false
	addressLength, txLength := 0, 0
	var at uint64
	err := fields(m, func(n protowire.Number, v uint64, b []byte) {
		switch n {
		case logAddress:
			addressLength, f.Log.Vault = len(b), common.BytesToAddress(b)
		case logTopics:
			odd = odd || len(b) != common.HashLength || count == maxTopics
			if count < maxTopics {
				r.topics[count] = common.BytesToHash(b)
				count++
			}
		case logData:
			data = b
		case logBlock:
			f.Log.Block = v
		case logHash:
			f.Hash = common.BytesToHash(b)
		case logTime:
			at, f.Log.Time = v, seconds(v)
		case logTx:
			txLength, f.Log.Tx = len(b), common.BytesToHash(b)
		case logIndex:
			f.Log.Index = uint32(v)
		case logNoData:
			omitted = len(b) > 0
		}
	})
	if err != nil {
		return err
	}
	before := len(r.effects)
	r.mapped = mapping.Log{Place: mapping.Place(f.Log.Block, f.Log.Index), Time: at, Topics: r.topics[:count], Data: data}
	named, effects, ok := r.mapping(&r.mapped, r.effects)
	f.Named = named
	if named == contracts.KindUnknown {
		return nil
	}
	made := effects[before:len(effects):len(effects)]
	if odd || omitted || addressLength != common.AddressLength || txLength != common.HashLength || !ok || !held(made) {
		f.Quarantined = true
		return nil
	}
	r.effects, f.Effects = effects, made
	return nil
}

// All reads records one after the other. A record that is none is a
// *chainlog.CorruptError.
func All(chainID uint64, in []chainlog.Raw) ([]Fact, error) {
	out := make([]Fact, len(in))
	r := reader{mapping: reference(), effects: make([]Effect, 0, len(in))}
	for i := range in {
		var err error
		if out[i], err = r.one(in[i]); err != nil {
			return nil, &chainlog.CorruptError{Topic: chainlog.LogTopic(chainID), Offset: in[i].Offset, Err: fmt.Errorf("seq %d: %w", in[i].Seq, err)}
		}
	}
	return out, nil
}
