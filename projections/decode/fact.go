// Package decode decodes the bytes of the log: a record becomes a Fact, by a pure function of the record and of its
// vault's mapping.
//
//	bytes ──▶ log, block, vault, decision or sample ──▶ of a log or sample: its effects, or quarantined
//
// Package schemas/mapping turns a log into effects (mapping.Kind), from which the rows of the read model are made: the
// rows do not depend on any contract's events. The vault records of the log contain the mapping of each vault. If a
// vault's mapping has companions, its logs are mapped when their unit is complete.
//
// A rebuild decodes every record, so this package has its own decoder. proto.Unmarshal on its own takes four times as
// long as decoding and mapping take here (BenchmarkLibrary, BenchmarkAll), and it allocates ten objects for each
// record. A test compares the results with those of proto.Unmarshal and the oracle.
//
// A log that has the topic of a mapped event but cannot be counted is quarantined: the mapping rejects it, or it is not
// as the EVM emits logs. It keeps its raw bytes and counts in no total.
package decode

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
)

// Fact is a record of the log, decoded.
type Fact struct {
	Seq, Retracts uint64
	Offset        int64
	Boundary      bool
	Sign          int8 // -1 if the record retracts another one, which it repeats
	Kind          readmodel.RecordKind
	// Named is the event's name in the mapping; empty for a record that is not a log, and for an event that the
	// mapping lacks.
	Named       string
	Quarantined bool
	Removed     bool // in a vault record: the vault was removed
	Differs     bool // in a vault record: it has another mapping than the one by which the vault's logs are decoded
	Log         Log
	Hash        common.Hash      // of the block
	Effects     []mapping.Effect // effects of the log or sample; none if quarantined
	Raw         []byte           // the bytes of the record, if the tables keep them
	// Skipped is set by the writer of a generation that skips the record: it is in events, marked, and in no list.
	Skipped bool
}

// OfVault reports whether the record belongs to a vault, Log.Vault.
func (f *Fact) OfVault() bool {
	return f.Kind == readmodel.LogRecord || f.Kind == readmodel.VaultRecord || f.Kind == readmodel.SampleRecord
}

// Name is the Solidity event name, "Unknown", or "" for a record that is not a log.
func (f *Fact) Name() string {
	if f.Kind != readmodel.LogRecord {
		return ""
	}
	return cmp.Or(f.Named, "Unknown")
}

// Known reports whether a log is a known event, including quarantined logs.
func (f *Fact) Known() bool { return f.Kind == readmodel.LogRecord && f.Named != "" }

// String describes the record, so that records with the same seq in different logs differ.
func (f *Fact) String() string {
	text := fmt.Sprintf("%s %s of block %d %x, log %d of vault %x, time %d, retracts seq %d, boundary %t",
		f.Kind, f.Name(), f.Log.Block, f.Hash, f.Log.Index, f.Log.Vault, f.Log.Time, f.Retracts, f.Boundary)
	if f.Kind == readmodel.VaultRecord || f.Kind == readmodel.DecisionRecord { // no block's hash stands for their content
		text += fmt.Sprintf(", SHA-256 %x", sha256.Sum256(f.Raw))
	}
	return text
}

func (f *Fact) has(kind mapping.Kind) bool {
	for i := range f.Effects {
		if f.Effects[i].Kind == kind {
			return true
		}
	}
	return false
}

// Log is the origin and time of a log. For a block record it has Block and Time, for a vault record Vault.
type Log struct {
	Vault common.Address
	Block uint64
	Time  uint32 // Unix seconds
	Tx    common.Hash
	Index uint32
}

// seconds fits a block time into a ts column: later times than the year 2106 are capped.
func seconds(t uint64) uint32 { return uint32(min(t, math.MaxUint32)) }
