// Package readtest provides a generation for tests of query: it replaces ingest and project, which query does not
// depend on.
//
//	Log          facts, appended and retracted as ingest does it
//	Generation   the database that project would build from them, on a real engine
//	Serve        some routes over a generation, without keys and limits
//	Judge        checks every response against the OpenAPI document
//
// The content of lists is that of schemas/readmodel/expect, which project's tests compare with the lists that project
// writes. The changes between two writes are rows that cancel old ones and rows that add new ones, as in project.
package readtest

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/event"
)

// Kind is the kind of a fact.
type Kind string

const (
	Block   Kind = "block"
	Vault   Kind = "vault"
	Deposit Kind = "deposit"
	Void    Kind = "void"
	Price   Kind = "price" // of the deposits of a group, or (To) of those up to a group
	Request Kind = "request"
	Funding Kind = "funding"
	Claim   Kind = "claim"
	Cancel  Kind = "cancel"
	Expiry  Kind = "expiry"
	Nav     Kind = "nav"
	Sweep   Kind = "sweep"
	// Settlement closes the fundings of its transaction.
	Settlement Kind = "settlement"
)

// Fact is the content of a log, a block or a vault record; only the fields of its kind are set.
type Fact struct {
	Kind        Kind
	Vault       common.Address
	User, Other common.Address // owner; sender or receiver
	Partner     uint32
	ID, To      uint64 // deposit id, request index, first of a sweep; last of a sweep
	// of a deposit that is priced later (0: it is not); the one in which a void takes the user's deposits (0: the one with
	// its ID), or that a price is for
	Group          uint64
	Assets, Shares int64
	Price, Supply  int64 // of a NAV; a settlement has Price, too
	Expires        uint64
	Block          uint64
	Index          uint32
	Event          string // name of the log in its contract; empty: that of the reference vault
	Tx             common.Hash
	Time           uint32      // of the block; 0: BlockTime
	Hash           common.Hash // of the block, if a test needs it
	Meta           *event.Vault
	Quarantined    bool // a log that cannot be counted
	Sampled        bool // of a NAV: measured by ingest, so it has a price and no log
	Passed         bool // of a vault that the generation does not contain
	Largest        bool // its assets and shares are the largest that are counted, 2^191-1
	// Also are users of further effects of the log: each cancels NoRequest.
	Also []common.Address
	// Late is set if these effects come before that of the fact.
	Late bool
}

// NoRequest is the index of a request that does not exist.
const NoRequest = 1 << 40

// Entry is a record of the log.
type Entry struct {
	Fact
	Seq, Retracts uint64
	Boundary      bool
	Sub           uint8 // number of the effect, if the entry is one of Effects
	Cancels       bool  // it is one of Also
}

// Effects returns the entry once for each effect of its log, and once if it has none.
func (e Entry) Effects() []Entry {
	out := make([]Entry, 0, 1+len(e.Also))
	if !e.Late {
		out = append(out, e)
	}
	for _, user := range e.Also {
		also := e
		also.Cancels, also.User = true, user
		out = append(out, also)
	}
	if e.Late {
		out = append(out, e)
	}
	for i := range out {
		out[i].Sub = uint8(i)
	}
	return out
}

// Log is a log of records. Entries[i] has seq i+1.
type Log struct {
	ChainID uint64
	Entries []Entry
}

// NewLog returns an empty log.
func NewLog(chainID uint64) *Log { return &Log{ChainID: chainID} }

// BlockTime returns the time of a block whose facts do not set one.
func BlockTime(block uint64) uint32 { return uint32(1_700_000_000 + 12*block) }

// At returns the time of the fact's block.
func (f Fact) At() uint32 {
	if f.Time != 0 {
		return f.Time
	}
	return BlockTime(f.Block)
}

// Seq returns the last seq.
func (l *Log) Seq() uint64 { return uint64(len(l.Entries)) }

// Append adds facts; the last record becomes the end of a unit.
func (l *Log) Append(facts ...Fact) {
	for _, f := range facts {
		l.Add(f, 0)
	}
	l.Entries[len(l.Entries)-1].Boundary = true
}

// Add adds a fact, or the retraction of the one at seq retracts, without ending a unit.
func (l *Log) Add(f Fact, retracts uint64) {
	l.Entries = append(l.Entries, Entry{Fact: f, Seq: l.Seq() + 1, Retracts: retracts})
}

// Retract retracts every live fact of blocks above fork, newest first, and returns them, oldest first. It does not
// end the unit, because the new branch belongs to it.
func (l *Log) Retract(fork uint64) []Fact {
	var gone []Fact
	for _, e := range slices.Backward(l.Live(l.Seq(), 1<<62)) {
		if e.Block > fork && e.Kind != Vault {
			l.Add(e.Fact, e.Seq)
			gone = append(gone, e.Fact)
		}
	}
	slices.Reverse(gone)
	return gone
}

// Live returns the facts that are live at a seq and up to a block, in the order of the log.
func (l *Log) Live(seq, block uint64) []Entry {
	taken := map[uint64]bool{}
	for _, e := range l.Entries[:seq] {
		if e.Retracts != 0 {
			taken[e.Retracts] = true
		}
	}
	var out []Entry
	for _, e := range l.Entries[:seq] {
		if e.Retracts == 0 && !taken[e.Seq] && e.Block <= block {
			out = append(out, e)
		}
	}
	return out
}
