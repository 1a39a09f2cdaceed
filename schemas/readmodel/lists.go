package readmodel

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
)

// RecordKind is the kind of a record of the log.
type RecordKind uint8

// The kinds of records, with their numbers in the column record.
const (
	LogRecord RecordKind = iota
	BlockRecord
	VaultRecord
	DecisionRecord
	SampleRecord
)

// SampleIndex is the log index of a sample: it comes after the logs of its block, and no log has it.
const SampleIndex uint32 = math.MaxUint32

func (k RecordKind) String() string { return nameOf(EventsTable.Columns, "record", k) }

// EffectKind is an effect, with its number in the columns effect, kind and closed_by.
type EffectKind uint8

// The effects in the read model.
const (
	NoEffect EffectKind = iota
	Deposit
	Sweep
	Settled
	Valuation
	Requested
	Funded
	Claimed
	Cancelled
	Expired
	PricedDeposits
	PricedRequests
	Void
	Supply
	Instant
)

func (k EffectKind) String() string { return nameOf(EventsTable.Columns, "effect", k) }

// By is how an effect names deposits or requests, with its number in the column by.
type By uint8

// The ways to name a deposit or request, and the ways in which a request is claimed.
const (
	ByNone      By = iota
	ByID           // its number
	BySource       // its id of 32 bytes
	ByOwner        // all that its owner has in a group; for a claim, the owner's oldest
	ByGroup        // the groups GroupID to GroupTo
	ByUpToGroup    // everything up to the group GroupTo
	// Fifo is a request that is claimed first in, first out: it gets its place in the line when it is funded.
	Fifo
	// FifoUnfunded is one whose vault reports no funding: it gets its place in the line when it is requested.
	FifoUnfunded
)

func (b By) String() string { return nameOf(EventsTable.Columns, "by", b) }

// List is a list, with its number in the column list.
type List uint8

func (l List) String() string { return nameOf(ListsTable.Columns, "list", l) }

func nameOf[T ~uint8](columns []Column, column string, number T) string {
	for name, n := range enum[T](columns, column) {
		if n == number {
			return name
		}
	}
	return fmt.Sprint(uint8(number))
}

// The lists. A place is (block, log_index, sub) of an effect. Owners and scopes are addresses: that of a vault or user,
// PartnerOwner for a partner, and zero for everything.
//
//	list            owner           scope  kind         key           one live row for each
//	vault_events    vault           0      deposit      id            deposit
//	                vault           0      sweep        0             sweep
//	                vault           0      valuation    0             valuation
//	                vault           0      instant      0             instant withdrawal
//	user_events     user            0      deposit      0             deposit
//	                user            0      claimed      0             claim
//	                user            0      instant      0             instant withdrawal
//	partner_events  partner         0      deposit      0             deposit
//	                partner         0      requested    0             log that requests a withdrawal
//	queue           0               0      requested    closed_block  request
//	requests        vault           0      requested    id            request
//	user_requests   user            0      requested    0             request
//	request_sources vault           0      requested    source id     request that has one
//	groups          vault           0      deposit      left_block    grouped deposit
//	                vault           0      requested    left_block    grouped request
//	                user            vault  the same     left_block    the same
//	fifo            user            vault  requested    cum_to        request with a place in the line
//	user_totals     user            vault  none         until_block   step of the running totals
//	totals          vault, partner  vault  none         until_block   step of the running totals
//	                0, partner      0      none         until_block   step of the number of users
//	members         0, vault        0      none         user          user
//	                partner         0      none         user          user through the partner
//	                partner         vault  none         user          user through the partner in the vault
//	first_seen      as members             none         first block   user
//	deposited       0, vault        0      none         amount        user (newest block only)
//	withdrawn       0, vault        0      none         amount        user (newest block only)
//	blocks          0               0      none         block         block record
//	touched         0               0      none         seq           unit (or batch)
//	cursor          0               0      none         0             the cursor; cursor_end repeats it behind all lists
//
// Rows with a place have the block, log_index and sub of their effect in the sort key. user is the effect's owner (zero
// for none); vault, other, partner, id, shares, assets, ts and hash (of the transaction) are those of the effect.
//
// Deposits: closed_block and closed_ts are the time of the sweep of the deposit: the first sweep, in the order of the
// chain, whose last number is at least the deposit's number; a deposit whose number was swept before it came is swept
// in its own block. Then closed_by is sweep; before, closed_block is Never. All lists with the deposit have the same
// values.
//
// Requests: assets is the estimate. The first request of an id counts; the first of claimed, cancelled and expired
// after it closes it (closed_block, closed_ts, closed_by, closed_assets: the assets of that log); the first funding
// between the two funds it (funded_block, funded_ts, funded_assets). Until then the blocks are Never.
//
// Totals: a row holds from block Block until before block Key (Never: it still holds); ts is the time of block Block
// and closed_ts that of block Key (0: it still holds). For a user, partner or vault in a vault: deposits and their
// assets, requests (the first of each id) and their estimates, claims and their assets (every claim on the chain; none
// for partners), users (for vaults and partners). For a vault also the number of its swept deposits, their assets, the
// highest number that a sweep named, the number of its valuations, the newest valuation (shares, assets, nav,
// valued_block, valued_log, valued_ts) and the last sweep (swept_block, swept_ts). Scope 0 of owner 0 and of partners
// has only users. A block in which an effect changed a number has a row, even if another effect changed it back; before
// the first row all numbers are 0. Users have their own list, because anyone can deposit for the address of a vault, or
// for one that looks like a partner's number.
//
// Members and first_seen: block is the first block in which the user deposited or requested in the scope (through a
// partner: deposited), ts its time. Deposited and withdrawn: key is the sum of the assets of the deposits or claims, ts
// the time of the user's first block in that scope as in members, and block is 0, so that users with equal amounts are
// in the order of their addresses; every member has one row in each.
//
// Cursor: seq is the end of the newest complete unit, block is the newest indexed block, ts is the time of the newest
// one in the list of blocks, rewrites is the number of units so far that retracted records, and writer is the id of the
// writer. Touched: key and seq are the seq at the end of the batch, touched has the keys of its rows, and for a unit
// that retracts, id is the first block about which an answer may change (0: nothing was retracted).
const (
	CursorList    List = 0
	VaultEvents   List = 1
	UserEvents    List = 2
	PartnerEvents List = 3
	Queue         List = 4
	Requests      List = 5
	UserRequests  List = 6
	Totals        List = 7
	Members       List = 8
	FirstSeen     List = 9
	Deposited     List = 10
	Withdrawn     List = 11
	Blocks        List = 12
	TouchedList   List = 13
	UserTotals    List = 14
	Groups        List = 15
	Sources       List = 16
	FifoList      List = 17
	CursorEnd     List = 127
)

// TouchedKey identifies rows of a list that a unit changed: the list's number, then its owner. Rows of vault_events,
// user_events and partner_events are identified by their kind, too: a deposit leaves the valuations of its vault
// unchanged. Rows of queue are also identified by their vault, and rows of members by their user, for responses about
// one vault and one user.
type TouchedKey [21]byte

// TouchedAll stands for every key: a unit that changed too many rows to list.
var TouchedAll = TouchedKey(bytes.Repeat([]byte{0xff}, len(TouchedKey{})))

// Compare compares the bytes of two keys.
func (k TouchedKey) Compare(other TouchedKey) int { return bytes.Compare(k[:], other[:]) }

// TouchedKeys are keys, one after the other: as a text, so that rows can be compared.
type TouchedKeys string

// JoinTouched joins keys, in their order.
func JoinTouched(keys iter.Seq[TouchedKey]) TouchedKeys {
	var b strings.Builder
	for _, k := range slices.SortedFunc(keys, TouchedKey.Compare) {
		b.Write(k[:])
	}
	return TouchedKeys(b.String())
}

// split returns the keys as the texts that the driver inserts.
func (k TouchedKeys) split() []string {
	texts := make([]string, 0, len(k)/len(TouchedKey{}))
	for key := range slices.Chunk([]byte(k), len(TouchedKey{})) {
		texts = append(texts, string(key))
	}
	return texts
}

// Touch returns the key of a list and an owner.
func Touch(list List, owner common.Address) (k TouchedKey) {
	k[0] = byte(list)
	copy(k[1:], owner[:])
	return k
}

// ByKind reports whether the touched keys of a list include the kind.
func (l List) ByKind() bool { return l >= VaultEvents && l <= PartnerEvents }

// TouchKind returns the key of a kind and an owner in a list of events (ByKind). Its first byte is above the numbers of
// all lists, with 16 kinds for each list.
func TouchKind(list List, kind EffectKind, owner common.Address) TouchedKey {
	return Touch(0x80|(list-VaultEvents)<<4|List(kind), owner)
}

// Touches returns the keys that identify a row.
func (r *ListRow) Touches() []TouchedKey {
	if r.List.ByKind() {
		return []TouchedKey{TouchKind(r.List, r.Kind, r.Owner)}
	}
	keys := []TouchedKey{Touch(r.List, r.Owner)}
	switch r.List {
	case Queue:
		keys = append(keys, Touch(r.List, r.Vault))
	case Members:
		keys = append(keys, Touch(r.List, r.User))
	}
	return keys
}

// PartnerOwner returns a partner as the owner of lists: its number in the last four bytes.
func PartnerOwner(partner uint32) (owner common.Address) {
	owner[16], owner[17], owner[18], owner[19] = byte(partner>>24), byte(partner>>16), byte(partner>>8), byte(partner)
	return owner
}

// ListNamed returns the list with a name in the column list.
func ListNamed(name string) (List, bool) {
	list, ok := listNames[name]
	return list, ok
}

// KindNamed returns the effect with a name in the column kind.
func KindNamed(name string) (EffectKind, bool) {
	kind, ok := kindNames[name]
	return kind, ok
}

var (
	listNames = enum[List](ListsTable.Columns, "list")
	kindNames = enum[EffectKind](ListsTable.Columns, "kind")
)
