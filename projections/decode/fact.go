// Package decode reads the bytes of the log: a record becomes a Fact, by a pure
// function that knows nothing but the record.
//
//	bytes ──▶ log, block, vault or decision ──▶ of a log: its effects, or quarantined
//
// What a log does is said by a Mapping, in effects (EffectKind), of which facts and
// derived tables are made: they know no event of any contract.
//
// What it says is what proto.Unmarshal and contracts.Decode say, which a test
// holds it to. It has a decoder of its own since a rebuild reads every record
// there is: with a struct for each record and a big.Int for each number, reading
// would be the dearest part of it.
//
// A log that announces an event of ours and cannot be counted is quarantined: it
// is not laid out like the event, or names a number that the tables cannot hold
// (readmodel.MaxAmount). It keeps its raw bytes and is in no total.
package decode

import (
	"fmt"
	"math"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/readmodel"
)

// Amount is a signed number of 256 bits, in two's complement and with the lowest
// word first: what Int256 is in ClickHouse.
type Amount = uint256.Int

// amountBits is how long an amount that can be summed may be.
var amountBits = readmodel.MaxAmount.BitLen() - 1

// Fact is a record of the log, decoded.
type Fact struct {
	Seq, Retracts uint64
	Offset        int64
	Boundary      bool
	Sign          int8 // -1 where the record takes back another one, which it repeats
	Kind          Kind
	// Named is the event that the log says it is; KindUnknown for what is no log and
	// for one that does nothing.
	Named       contracts.Kind
	Quarantined bool
	Removed     bool // of a vault record: the vault was removed
	Log         Log
	Hash        common.Hash // of the block
	Effects     []Effect    // what the log does; none of what is quarantined
	Raw         []byte      // the record as the log has it, where the tables keep it
}

// Name is the Solidity event name, "Unknown", or "" of what is no log.
func (f *Fact) Name() string {
	if f.Kind != LogKind {
		return ""
	}
	return f.Named.String()
}

// Known reports whether a log is of an event that navlog knows, quarantined ones included.
func (f *Fact) Known() bool { return f.Kind == LogKind && f.Named != contracts.KindUnknown }

// String says what the record is.
func (f *Fact) String() string {
	return fmt.Sprintf("%s %s of block %d %x, log %d, time %d, takes back seq %d, boundary %t",
		f.Kind, f.Name(), f.Log.Block, f.Hash, f.Log.Index, f.Log.Time, f.Retracts, f.Boundary)
}

// Kind is what a record tells, by the numbers that the table records gives them.
type Kind uint8

// The kinds of records.
const (
	LogKind Kind = iota
	BlockKind
	VaultKind
	DecisionKind
)

func (k Kind) String() string { return [...]string{"log", "block", "vault", "decision"}[k] }

// EventNumber is what the table records calls the event of a log; 0 for what is
// no log. It keeps the name of a quarantined one.
func (f *Fact) EventNumber() uint8 {
	if f.Kind != LogKind {
		return 0
	}
	return 1 + uint8(f.Named)
}

// Owner is whom the log is about; zero for none.
func (f *Fact) Owner() (owner common.Address) {
	if len(f.Effects) > 0 {
		owner = f.Effects[0].Owner
	}
	return owner
}

func (f *Fact) has(kind EffectKind) bool {
	for i := range f.Effects {
		if f.Effects[i].Kind == kind {
			return true
		}
	}
	return false
}

// Log is where and when a log was emitted. A block record has Block and Time, a
// vault record Vault.
type Log struct {
	Vault common.Address
	Block uint64
	Time  uint32 // Unix seconds
	Tx    common.Hash
	Index uint32
}

// seconds fits a block time into a ts column: a chain that claims to live
// after 2106 stays there.
func seconds(t uint64) uint32 { return uint32(min(t, math.MaxUint32)) }
