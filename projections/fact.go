package projections

import (
	"fmt"
	"iter"
	"math"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/readmodel"
)

// amount is a signed number of 256 bits, in two's complement and with the
// lowest word first: what Int256 is in ClickHouse.
type amount = uint256.Int

// amountBits is how long an amount that can be summed may be.
var amountBits = readmodel.MaxAmount.BitLen() - 1

// fact is a record of the log, decoded.
type fact struct {
	seq, retracts uint64
	offset        int64
	boundary      bool
	sign          int8
	kind          kind
	// named is the event that the log says it is; event is KindUnknown for what
	// is no log, none of navlog's, or quarantined.
	named, event contracts.Kind
	quarantined  bool
	log          logged
	hash         common.Hash // of the block
	args         args
	raw          []byte // the record as the log has it, where the tables keep it
}

// name is the Solidity event name, "Unknown", or "" of what is no log.
func (f *fact) name() string {
	if f.kind != aLog {
		return ""
	}
	return f.named.String()
}

// line says what the record is, as the question `record` says it of its row.
func (f *fact) line() string {
	return fmt.Sprintf("%s %s of block %d %x, log %d, time %d, takes back seq %d, boundary %t",
		f.kind, f.name(), f.log.block, f.hash, f.log.index, f.log.ts, f.retracts, f.boundary)
}

// facts is records of the log in their order, as they were read: in pieces, for
// nothing is gained by copying them into one.
type facts [][]fact

func (f facts) all() iter.Seq[*fact] {
	return func(yield func(*fact) bool) {
		for _, piece := range f {
			for i := range piece {
				if !yield(&piece[i]) {
					return
				}
			}
		}
	}
}

func (f facts) len() (n int) {
	for _, piece := range f {
		n += len(piece)
	}
	return n
}

func (f facts) first() *fact { return &f[0][0] }

func (f facts) last() *fact {
	piece := f[len(f)-1]
	return &piece[len(piece)-1]
}

// kind is what a record tells, by the numbers that the table records gives them.
type kind uint8

const (
	aLog kind = iota
	aBlock
	aVault
	aDecision
)

func (k kind) String() string { return [...]string{"log", "block", "vault", "decision"}[k] }

// eventNumber is what the table records calls the event of a log; 0 for what is
// no log. It keeps the name of a quarantined one.
func (f *fact) eventNumber() uint8 {
	if f.kind != aLog {
		return 0
	}
	return 1 + uint8(f.named)
}

// logged is where and when a log was emitted. A block record has block and ts,
// a vault record vault.
type logged struct {
	vault common.Address
	block uint64
	ts    uint32
	tx    common.Hash
	index uint32
}

// args are what the tables show of an event's arguments. Amounts are in native units.
type args struct {
	id      uint64         // of the deposit or request; the first id of a sweep
	to      uint64         // last id of a sweep
	owner   common.Address // user
	other   common.Address // sender of a deposit, receiver of a request
	partner uint32
	expires uint64 // Unix seconds, 0 for never
	assets  amount // estimate of a request; total assets of a valuation
	shares  amount // total supply of a valuation
	nav     amount // per share, 18 decimals
}

// seconds fits a block time into a ts column: a chain that claims to live
// after 2106 stays there.
func seconds(t uint64) uint32 { return uint32(min(t, math.MaxUint32)) }
