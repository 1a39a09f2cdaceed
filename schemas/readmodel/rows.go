package readmodel

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
)

// Amount is a signed 256-bit number in two's complement, lowest word first: ClickHouse's Int256. Amounts of assets and
// shares are in native units.
type Amount = uint256.Int

// EventRow is a row of events. The tag col declares the column: its name, its type and optionally its codec. DDL,
// inserts and verification follow from this declaration.
type EventRow struct {
	Seq      uint64     `col:"seq,UInt64,Delta"`
	Sub      uint8      `col:"sub,UInt8"` // number of the effect within its record
	Sign     int8       `col:"sign,Int8"`
	Retracts uint64     `col:"retracts,UInt64"`
	Writer   uint64     `col:"writer,UInt64"`
	Record   RecordKind `col:"record,Enum8('log' = 0, 'block' = 1, 'vault' = 2, 'decision' = 3, 'sample' = 4)"`
	// Event is the contract event as the contract emits it, "Unknown" for a log that the vault's mapping does not know,
	// and empty for a record that is not a log.
	Event string `col:"event,LowCardinality(String)"`
	// Effect is the effect of the log; none for a record without one.
	Effect EffectKind `col:"effect,Enum8('none' = 0, 'deposit' = 1, 'sweep' = 2, 'settled' = 3, 'valuation' = 4, 'requested' = 5, 'funded' = 6, 'claimed' = 7, 'cancelled' = 8, 'expired' = 9, 'priced_deposits' = 10, 'priced_requests' = 11, 'void' = 12, 'supply' = 13, 'instant' = 14)"`
	// Effects is the number of effects of the log: the last row of a record is the one with sub + 1 = effects (or
	// effects = 0).
	Effects uint8 `col:"effects,UInt8"`
	// Boundary marks the last record of a unit, on each row of the record.
	Boundary    bool `col:"boundary,Bool"`
	Quarantined bool `col:"quarantined,Bool"`
	// Passed marks a record of a vault that joined after this generation was built, or a block below the newest one
	// that came with the history of such a vault: it is in no list, but the next generation will have it.
	Passed bool           `col:"passed,Bool"`
	Block  uint64         `col:"block,UInt64,Delta"`
	Hash   common.Hash    `col:"hash,FixedString(32)"` // of the block
	TS     uint32         `col:"ts,UInt32,Delta"`      // time of the block, Unix seconds
	Vault  common.Address `col:"vault,FixedString(20)"`
	User   common.Address `col:"user,FixedString(20)"`  // owner of the effect
	Other  common.Address `col:"other,FixedString(20)"` // sender, receiver, custodian or updater
	// Partner is the partner of a deposit or request; 0 for none.
	Partner uint32 `col:"partner,UInt32"`
	// ID is the vault's number of the deposit or request; for a sweep, the first deposit that it names.
	ID uint64 `col:"id,UInt64"`
	// IDTo is the last deposit that a sweep names.
	IDTo uint64 `col:"id_to,UInt64"`
	// By is how the effect names the deposits or requests that it changes; for a request, how it is claimed.
	By By `col:"by,Enum8('none' = 0, 'id' = 1, 'source' = 2, 'owner' = 3, 'group' = 4, 'up_to_group' = 5, 'fifo' = 6, 'fifo_unfunded' = 7)"`
	// Grouped is set if the deposit or request belongs to a group, GroupID: it is priced or funded with the group.
	Grouped bool   `col:"grouped,Bool"`
	GroupID uint64 `col:"group_id,UInt64"`
	// GroupTo is the last group that the effect names.
	GroupTo uint64 `col:"group_to,UInt64"`
	// SourceID is the id of the request in the contract, zero if it has no 32-byte id.
	SourceID common.Hash `col:"source_id,FixedString(32)"`
	Matures  uint64      `col:"matures,UInt64"` // Unix seconds, 0 for at once
	// Attribution is the value by which the log names a partner, as emitted; zero if it names none.
	Attribution common.Hash `col:"attribution,FixedString(32)"`
	// NoNav, NoAssets and NoShares mark the amounts that the log does not have: the lists derive them.
	NoNav    bool `col:"no_nav,Bool"`
	NoAssets bool `col:"no_assets,Bool"`
	NoShares bool `col:"no_shares,Bool"`
	// NavDigits is the unit of a NAV that the lists derive: assets * 10^NavDigits / shares, both in native units.
	NavDigits uint8 `col:"nav_digits,UInt8"`
	// Shares is the total supply for a valuation.
	Shares Amount `col:"shares,Int256"`
	// Assets is the estimate for a request, and the total assets for a valuation.
	Assets Amount `col:"assets,Int256"`
	// Nav is assets per share with 18 decimals.
	Nav     Amount `col:"nav,Int256"`
	Expires uint64 `col:"expires,UInt64"` // Unix seconds, 0 for never
	// Tx is zero, and LogIndex is SampleIndex, in the row of a sample, which has no transaction.
	Tx       common.Hash `col:"tx,FixedString(32)"`
	LogIndex uint32      `col:"log_index,UInt32"`
	// Payload is the record's protobuf if columns cannot hold its content: vault and decision records, settled logs,
	// and quarantined logs and samples.
	Payload string `col:"payload,String"`
}

// ListRow is a row of lists: an entry of one list, valid from block Block. The meaning of the fields depends on the
// list: see List. Fields that a list does not use are zero.
type ListRow struct {
	List     List           `col:"list,Enum8('cursor' = 0, 'vault_events' = 1, 'user_events' = 2, 'partner_events' = 3, 'queue' = 4, 'requests' = 5, 'user_requests' = 6, 'totals' = 7, 'members' = 8, 'first_seen' = 9, 'deposited' = 10, 'withdrawn' = 11, 'blocks' = 12, 'touched' = 13, 'user_totals' = 14, 'groups' = 15, 'request_sources' = 16, 'fifo' = 17, 'cursor_end' = 127)"`
	Owner    common.Address `col:"owner,FixedString(20)"`
	Scope    common.Address `col:"scope,FixedString(20)"`
	Kind     EffectKind     `col:"kind,Enum8('none' = 0, 'deposit' = 1, 'sweep' = 2, 'settled' = 3, 'valuation' = 4, 'requested' = 5, 'funded' = 6, 'claimed' = 7, 'cancelled' = 8, 'expired' = 9, 'priced_deposits' = 10, 'priced_requests' = 11, 'void' = 12, 'supply' = 13, 'instant' = 14)"`
	Key      Amount         `col:"key,Int256"`
	Block    uint64         `col:"block,UInt64"`
	LogIndex uint32         `col:"log_index,UInt32"`
	Sub      uint8          `col:"sub,UInt8"`
	User     common.Address `col:"user,FixedString(20)"`

	Sign int8 `col:"sign,Int8"`

	Vault   common.Address `col:"vault,FixedString(20)"`
	Other   common.Address `col:"other,FixedString(20)"`
	Partner uint32         `col:"partner,UInt32"`
	ID      uint64         `col:"id,UInt64"`
	IDTo    uint64         `col:"id_to,UInt64"`
	Shares  Amount         `col:"shares,Int256"`
	Assets  Amount         `col:"assets,Int256"`
	Nav     Amount         `col:"nav,Int256"`
	Expires uint64         `col:"expires,UInt64"`
	TS      uint32         `col:"ts,UInt32"`
	Hash    common.Hash    `col:"hash,FixedString(32)"` // of the transaction; in blocks, of the block

	// Life cycle of a request; ClosedBlock and ClosedTS are also those of a deposit's sweep.
	FundedBlock  uint64     `col:"funded_block,UInt64"` // Never: not yet
	FundedTS     uint32     `col:"funded_ts,UInt32"`
	FundedAssets Amount     `col:"funded_assets,Int256"`
	ClosedBlock  uint64     `col:"closed_block,UInt64"` // Never: not yet
	ClosedTS     uint32     `col:"closed_ts,UInt32"`
	ClosedBy     EffectKind `col:"closed_by,Enum8('none' = 0, 'deposit' = 1, 'sweep' = 2, 'settled' = 3, 'valuation' = 4, 'requested' = 5, 'funded' = 6, 'claimed' = 7, 'cancelled' = 8, 'expired' = 9, 'priced_deposits' = 10, 'priced_requests' = 11, 'void' = 12, 'supply' = 13, 'instant' = 14)"`
	ClosedAssets Amount     `col:"closed_assets,Int256"`

	// How a request is claimed (By), and the group of a request or deposit (Grouped, GroupID).
	By       By          `col:"by,Enum8('none' = 0, 'id' = 1, 'source' = 2, 'owner' = 3, 'group' = 4, 'up_to_group' = 5, 'fifo' = 6, 'fifo_unfunded' = 7)"`
	Grouped  bool        `col:"grouped,Bool"`
	GroupID  uint64      `col:"group_id,UInt64"`
	SourceID common.Hash `col:"source_id,FixedString(32)"`
	Matures  uint64      `col:"matures,UInt64"`
	// PricedBlock is the block in which the group of the entry was priced: Never before that, 0 without a group. The
	// price sets the Shares of a deposit, and the PricedAssets of a request.
	PricedBlock  uint64 `col:"priced_block,UInt64"`
	PricedAssets Amount `col:"priced_assets,Int256"`
	// CumFrom and CumTo are the sums of the owner's shares in the vault that are claimed before this request, and
	// including it.
	CumFrom Amount `col:"cum_from,Int256"`
	CumTo   Amount `col:"cum_to,Int256"`

	// Running totals, in the list totals.
	Deposits    uint64 `col:"deposits,UInt64"`
	Deposited   Amount `col:"deposited,Int256"`
	Requests    uint64 `col:"requests,UInt64"`
	Estimated   Amount `col:"estimated,Int256"`
	Claims      uint64 `col:"claims,UInt64"`
	Claimed     Amount `col:"claimed,Int256"`
	Users       uint64 `col:"users,UInt64"`
	Swept       uint64 `col:"swept,UInt64"`
	SweptAssets Amount `col:"swept_assets,Int256"`
	SweptTo     uint64 `col:"swept_to,UInt64"`
	Valuations  uint64 `col:"valuations,UInt64"`
	// ValuedBlock, ValuedLog and ValuedTS are the block, log index and time of the vault's newest valuation, which the
	// Shares, Assets and Nav of the totals belong to; SweptBlock and SweptTS are those of its last sweep.
	ValuedBlock uint64 `col:"valued_block,UInt64"`
	ValuedLog   uint32 `col:"valued_log,UInt32"`
	ValuedTS    uint32 `col:"valued_ts,UInt32"`
	SweptBlock  uint64 `col:"swept_block,UInt64"`
	SweptTS     uint32 `col:"swept_ts,UInt32"`
	// Supply is the sum of the mints and burns of the vault's shares.
	Supply Amount `col:"supply,Int256"`
	// FundedShares and ClaimedShares are those of the user's requests that are claimed first in, first out.
	FundedShares  Amount `col:"funded_shares,Int256"`
	ClaimedShares Amount `col:"claimed_shares,Int256"`
	// FundedTo, DepositsTo and RequestsTo are the highest groups up to which the vault funded, priced deposits, and
	// priced requests.
	FundedTo   uint64 `col:"funded_to,UInt64"`
	DepositsTo uint64 `col:"deposits_to,UInt64"`
	RequestsTo uint64 `col:"requests_to,UInt64"`

	// For the cursor; Seq also for touched.
	Seq      uint64 `col:"seq,UInt64"`
	Rewrites uint64 `col:"rewrites,UInt64"`
	Writer   uint64 `col:"writer,UInt64"`
	// Touched are the keys of what a unit changed: see TouchedKey.
	Touched TouchedKeys `col:"touched,Array(FixedString(21))"`
}
