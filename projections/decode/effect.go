package decode

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/contracts"
)

// Mapping says what the logs of a kind of vault do: a log in, its effects out. It
// is a pure function of the log's topics and data, and the only thing that knows
// the events of a protocol: what comes after it knows effects alone. Reference is
// that of the reference contracts.
//
// It appends the effects to some, in their order; a log has at most one of each
// table, for rows are known by the record that they are of. named is the event that
// the log says it is, KindUnknown for a log that does nothing. ok is false where a
// named log is not laid out like its event, or names a number that the tables cannot
// hold (readmodel.MaxAmount): what is appended then is dropped. It keeps neither
// topics nor data.
type Mapping func(topics []common.Hash, data []byte, some []Effect) (named contracts.Kind, effects []Effect, ok bool)

// EffectKind is what happened in a vault's books.
type EffectKind uint8

// The effects: all that the read model can be told. The set is closed, so that a
// protocol that is new brings a mapping, and no fact and no question of its own. A
// log with an effect that no table holds yet (Held) is quarantined: kept and
// reported, and counted in nothing.
const (
	// Deposit: Owner put in Assets for Shares, paid by Other. ID counts the vault's
	// deposits. Partner is whoever brought it, where this log says so.
	Deposit EffectKind = 1 + iota
	// Attribution: the deposit or request ID was brought by Partner, which a log of its own says.
	Attribution
	// GroupPrice: what was asked for together has a price: at Nav, all Shares of the group come to Assets.
	GroupPrice
	// Void: the deposit ID is none any more.
	Void
	// NAV: a share is worth Nav; the vault has Assets and a supply of Shares.
	NAV
	// Sweep: the deposits ID to To, both included, left for the custodian Other, in all Assets.
	Sweep
	// Requested: Owner asks for Shares to be paid out to Other, worth Assets now, until
	// Expires. ID counts the vault's requests. Partner as in Deposit.
	Requested
	// Funded: the request ID of Owner can be claimed, for Assets.
	Funded
	// Claimed: the request ID of Owner was paid to Other.
	Claimed
	// Cancelled: Owner took the request ID back.
	Cancelled
	// Expired: the request ID was closed after its time.
	Expired
	// Instant: Owner was paid Assets for Shares, to Other, without waiting in the queue.
	Instant

	effectCount
)

var effectNames = [effectCount]string{"none", "deposit", "attribution", "group price", "void", "NAV", "sweep",
	"requested", "funded", "claimed", "cancelled", "expired", "instant"}

func (k EffectKind) String() string {
	if k >= effectCount {
		return fmt.Sprintf("effect %d", uint8(k))
	}
	return effectNames[k]
}

// Held says that the read model can hold such an effect. Of a GroupPrice the spine
// has the record itself, and no other table.
func (k EffectKind) Held() bool {
	switch k {
	case Deposit, GroupPrice, NAV, Sweep, Requested, Funded, Claimed, Cancelled, Expired:
		return true
	}
	return false
}

// Withdrawal says that the effect is on a request in the queue.
func (k EffectKind) Withdrawal() bool { return k >= Requested && k <= Expired }

// Effect is one thing that a log does. What the fields mean, EffectKind says; those
// that it does not name are zero. Amounts are in native units.
type Effect struct {
	Kind    EffectKind
	ID, To  uint64
	Owner   common.Address
	Other   common.Address
	Partner uint32 // 0 for none
	Expires uint64 // Unix seconds, 0 for never
	Assets  Amount
	Shares  Amount
	Nav     Amount // per share, 18 decimals
}
