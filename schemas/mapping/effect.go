package mapping

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
)

// Amount is a signed 256-bit number in two's complement, lowest word first: ClickHouse's Int256.
type Amount = uint256.Int

// Decimal formats an amount as a signed decimal number.
func Decimal(a *Amount) string {
	if a.Sign() < 0 {
		return "-" + new(Amount).Neg(a).Dec()
	}
	return a.Dec()
}

// amountBits is the length of the longest amount that can be summed: an Int256 holds the sum of 2^64 of them.
const amountBits = 191

// MaxAmount is the smallest amount that is too large to be summed safely: 2^191. A log with such an amount is
// quarantined. Callers must not change the value.
var MaxAmount = new(big.Int).Lsh(big.NewInt(1), amountBits)

// maxGroups is the maximum number of groups that one log can price by naming the first and the last.
const maxGroups = 1000

// Kind is what an effect does to the books of a vault.
type Kind uint8

// The effects: everything that a read model can learn from a log. The set is closed.
const (
	// Deposit: Owner deposited Assets for Shares, paid by Other. Without shares, the Priced of its Group sets them.
	Deposit Kind = 1 + iota
	// Priced: the deposits or requests (Side) of the groups Group to GroupTo total Assets and Shares. Without Group,
	// everything up to GroupTo that has no price yet.
	Priced
	// Void: the deposit ID, or the deposits of Owner in Group, were withdrawn before they were priced.
	Void
	// Sweep: the deposits up to To were moved to the custodian Other, in total Assets. With ID, only the deposits from ID.
	Sweep
	// Settled: a settlement with the totals Assets, Shares and Count, at Nav, paid by Other. It changes no row.
	Settled
	// Valuation: a share is worth Nav; the vault has Assets and a supply of Shares. Missing values follow from the
	// others and from Supply.
	Valuation
	// Supply: Shares were minted, or burned if negative.
	Supply
	// Requested: Owner requests that Other is paid for Shares, worth Assets now; claimable from Matures until Expires.
	Requested
	// Funded: the request ID, every request up to To, or every request up to the group GroupTo can be claimed, for Assets.
	Funded
	// Claimed: the request ID was paid to Other; without a key, the oldest requests of Owner, for Shares and Assets.
	// Without an owner, the request's owner was paid, and without assets, what the request was funded for.
	Claimed
	// Cancelled: Owner cancelled the request ID, or everything that is open in Group; without ID and Group, Shares of
	// its oldest requests, if requests are claimed first in, first out.
	Cancelled
	// Expired: the request ID was closed after its expiry.
	Expired
	// Instant: Owner was paid Assets for Shares, to Other, without a request in the queue.
	Instant
	// Sample: a valuation that ingest measured with eth_call. It has a record but no log, so no mapping emits it.
	Sample

	kindCount
)

// String returns the effect's name in the mapping language.
func (k Kind) String() string {
	if k == 0 || k >= kindCount {
		return fmt.Sprintf("effect %d", uint8(k))
	}
	return effects[k].name
}

// Side is the side of a vault that a Priced is about.
type Side uint8

// The sides of a vault.
const (
	DepositSide Side = 1 + iota
	RedeemSide
)

// Effect is one effect of a log. Kind determines the meaning of its fields. Has is the set of those that are present,
// because an absent field differs from one that is zero. Amounts are in native units.
type Effect struct {
	Kind Kind
	Side Side
	// Log is the index of the log in the input of Map; Sub counts the effects of one log from 0.
	Log, Sub uint32
	Has      Fields
	Partner  uint32 // 0 for none
	// ID is a key; To is the last key of a range, included.
	ID, To uint64
	// Group is a group of deposits or requests; GroupTo is the last group of a range, included.
	Group, GroupTo uint64
	Matures        uint64 // Unix seconds
	Expires        uint64 // Unix seconds, 0 for never
	Count          uint64
	Owner          common.Address
	Other          common.Address
	Asset          common.Address
	Assets         Amount
	Shares         Amount
	Nav            Amount // per share, 18 decimals
	// NavDigits is the unit of NAV: with assets and shares in native units, NAV is assets * 10^NavDigits / shares. No
	// rule sets it: it follows from the decimals of the shares and of the asset in the vault's record.
	NavDigits uint8
	// SourceID is the id of a request as the contract emits it.
	SourceID common.Hash
	// Attribution is the value by which the log names a partner, as emitted: an alias maps it to a partner id.
	Attribution common.Hash
}

// Fields is a set of fields of an effect, each of which is a bit.
type Fields uint32

// The fields of an effect.
const (
	ID Fields = 1 << iota
	To
	Group
	GroupTo
	Matures
	Expires
	Count
	Owner
	Other
	Asset
	Assets
	Shares
	Nav
	SourceID
	Attribution
	Partner
	SideField
	// Fifo is set on a Requested that is claimed first in, first out: the mapping's claims name an owner but no request.
	Fifo
	// Unfunded is set on a Requested whose mapping has no Funded: no log reports when the request can be claimed.
	Unfunded
)

// Present reports whether all fields of want are present.
func (e *Effect) Present(want Fields) bool { return e.Has&want == want }

// form is the kind of value of a field.
type form uint8

const (
	formNumber  form = iota // at most 64 bits, or 32 for a partner
	formAmount              // below MaxAmount
	formSigned              // an amount that may be negative
	formAddress             // an address
	formWord                // a word as emitted
	formSide                // deposit or redeem
)

var formNames = [...]string{"a number of at most 64 bits", "an amount", "a signed amount", "an address",
	"a value of one word", "deposit or redeem"}

type field struct {
	name  string
	field Fields
	form  form
}

// effect is one effect of the language: its fields, the sets of fields of which at least one is required, and the sets
// of which at most one field may be given, because their fields are alternatives.
type effect struct {
	name      string
	fields    []field
	needs     []Fields
	atMostOne []Fields
}

// effects is the language's closed set.
var effects = [kindCount]effect{
	Deposit: {"deposit", []field{
		key, owner, {"sender", Other, formAddress}, assets, shares, {"asset", Asset, formAddress}, group,
		attribution, partner},
		[]Fields{ID | Owner | Assets | Shares, ID | Owner | Assets | Group}, []Fields{Partner | Attribution}},
	Priced: {"priced", []field{
		{"side", SideField, formSide}, group, {"to_group", GroupTo, formNumber}, upToGroup, assets, shares},
		[]Fields{SideField | Group | Assets | Shares, SideField | GroupTo | Assets | Shares}, nil},
	Void: {"void", []field{key, owner, group},
		[]Fields{ID, Owner | Group}, []Fields{ID | Group}},
	Sweep: {"sweep", []field{
		{"from_key", ID, formNumber}, upToKey, assets, {"custodian", Other, formAddress}},
		[]Fields{To | Assets}, nil},
	Settled: {"settled", []field{
		group, assets, shares, {"count", Count, formNumber}, {"nav", Nav, formAmount}, {"funder", Other, formAddress}},
		[]Fields{Assets, Shares, Count}, nil},
	Valuation: {"valuation", []field{
		{"nav", Nav, formAmount}, {"total_assets", Assets, formAmount}, {"total_supply", Shares, formAmount},
		{"updater", Other, formAddress}},
		[]Fields{Nav, Assets}, nil},
	Supply: {"supply", []field{{"shares", Shares, formSigned}},
		[]Fields{Shares}, nil},
	Requested: {"requested", []field{
		key, sourceID, owner, receiver, shares, {"estimate", Assets, formAmount}, group,
		{"matures", Matures, formNumber}, {"expires", Expires, formNumber}, attribution, partner},
		[]Fields{ID | Owner | Shares}, []Fields{Partner | Attribution}},
	Funded: {"funded", []field{key, sourceID, upToKey, upToGroup, owner, assets, shares},
		[]Fields{ID, SourceID, To, GroupTo}, []Fields{ID | SourceID | To | GroupTo}},
	Claimed: {"claimed", []field{key, sourceID, owner, receiver, assets, shares},
		[]Fields{ID, SourceID, Owner | Assets | Shares}, []Fields{ID | SourceID}},
	Cancelled: {"cancelled", []field{key, sourceID, owner, group, shares},
		[]Fields{ID, SourceID, Owner | Group, Owner | Shares}, []Fields{ID | SourceID | Group}},
	Expired: {"expired", []field{key, sourceID, owner, shares},
		[]Fields{ID, SourceID}, []Fields{ID | SourceID}},
	Instant: {"instant", []field{owner, receiver, shares, assets},
		[]Fields{Owner | Shares | Assets}, nil},
	Sample: {name: "sample"},
}

// Fields that several effects share.
var (
	key         = field{"key", ID, formNumber}
	sourceID    = field{"source_id", SourceID, formWord}
	owner       = field{"owner", Owner, formAddress}
	receiver    = field{"receiver", Other, formAddress}
	assets      = field{"assets", Assets, formAmount}
	shares      = field{"shares", Shares, formAmount}
	group       = field{"group", Group, formNumber}
	upToKey     = field{"up_to_key", To, formNumber}
	upToGroup   = field{"up_to_group", GroupTo, formNumber}
	attribution = field{"attribution", Attribution, formWord}
	partner     = field{"partner", Partner, formNumber}
)

// kindOf returns the effect with a name in the language, 0 for none.
func kindOf(name string) Kind {
	for k := Deposit; k < kindCount; k++ {
		if effects[k].name == name {
			return k
		}
	}
	return 0
}

// names lists fields by their names in the language: "owner and group".
func (e *effect) names(fields Fields, word string) string {
	var out []string
	for _, f := range e.fields {
		if fields&f.field != 0 {
			out = append(out, "`"+f.name+"`")
		}
	}
	return series(out, word)
}

func (e *effect) field(name string) (field, bool) {
	for _, f := range e.fields {
		if f.name == name {
			return f, true
		}
	}
	return field{}, false
}

// series joins words as in a sentence.
func series(words []string, word string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " " + word + " " + words[last]
}

// Value is a field of an effect as text, by its name in the language.
type Value struct{ Name, Text string }

// Values returns the fields that are present, in the order of the language.
func (e *Effect) Values() (out []Value) {
	if e.Kind >= kindCount {
		return nil
	}
	for _, f := range effects[e.Kind].fields {
		if e.Kind == Priced && f.field == GroupTo && (f.name == upToGroup.name) == e.Present(Group) {
			continue // two names of one field
		}
		if e.Has&f.field != 0 {
			out = append(out, Value{f.name, e.text(f)})
		}
	}
	return out
}

func (e *Effect) text(f field) string {
	switch f.form {
	case formSide:
		return [...]string{"", "deposit", "redeem"}[e.Side]
	case formAddress:
		return e.address(f.field).Hex()
	case formWord:
		if f.field == SourceID {
			return e.SourceID.Hex()
		}
		return e.Attribution.Hex()
	case formAmount, formSigned:
		return Decimal(e.amount(f.field))
	}
	if f.field == Partner {
		return strconv.FormatUint(uint64(e.Partner), 10)
	}
	return strconv.FormatUint(*e.number(f.field), 10)
}
