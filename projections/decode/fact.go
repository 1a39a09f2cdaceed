// Package decode reads the bytes of the log: a record becomes a Fact, by a pure
// function of the record and of how its vault is mapped.
//
//	bytes ──▶ log, block, vault, decision or sample ──▶ of a log or sample: its effects, or quarantined
//
// Package schemas/mapping says what a log does, in effects (EffectKind), of which the rows of the read model are made:
// they know no event of any contract. The vault records of the log say which mapping is a vault's. The logs of a vault
// whose mapping has companions are mapped when their unit is whole.
//
// Records have a decoder of their own, because a rebuild reads all of them: with a struct for each record and a big.Int
// for each number, reading would cost more than everything else. A test compares it with proto.Unmarshal and the
// bindings of the reference contracts.
//
// A log that announces an event of its mapping and cannot be counted is quarantined: the mapping says so, or no table
// can hold its effects. It keeps its raw bytes and is in no total.
package decode

import (
	"cmp"
	"fmt"
	"math"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/mapping"
)

// Amount is a signed number of 256 bits, in two's complement and with the lowest
// word first: what Int256 is in ClickHouse.
type Amount = mapping.Amount

// Fact is a record of the log, decoded.
type Fact struct {
	Seq, Retracts uint64
	Offset        int64
	Boundary      bool
	Sign          int8 // -1 where the record takes back another one, which it repeats
	Kind          Kind
	// Named is the event that the log says it is; empty for what is no log and
	// for one that the mapping does not know.
	Named       string
	Quarantined bool
	Removed     bool // of a vault record: the vault was removed
	Differs     bool // of a vault record: it names another mapping than the one by which its logs are read
	Log         Log
	Hash        common.Hash // of the block
	Effects     []Effect    // what the log or sample does; none of what is quarantined
	Raw         []byte      // the record as the log has it, where the tables keep it
}

// Name is the Solidity event name, "Unknown", or "" of what is no log.
func (f *Fact) Name() string {
	if f.Kind != LogKind {
		return ""
	}
	return cmp.Or(f.Named, "Unknown")
}

// Known reports whether a log is of an event that navlog knows, quarantined ones included.
func (f *Fact) Known() bool { return f.Kind == LogKind && f.Named != "" }

// String says what the record is.
func (f *Fact) String() string {
	return fmt.Sprintf("%s %s of block %d %x, log %d, time %d, takes back seq %d, boundary %t",
		f.Kind, f.Name(), f.Log.Block, f.Hash, f.Log.Index, f.Log.Time, f.Retracts, f.Boundary)
}

// Kind is what a record tells, by the numbers that readmodel.RecordKind has for them.
type Kind uint8

// The kinds of records.
const (
	LogKind Kind = iota
	BlockKind
	VaultKind
	DecisionKind
	SampleKind
)

func (k Kind) String() string { return [...]string{"log", "block", "vault", "decision", "sample"}[k] }

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
