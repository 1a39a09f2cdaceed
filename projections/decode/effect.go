package decode

import (
	"math"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/mapping"
)

// Mapping says what the logs of a kind of vault do: a log in, its effects out. It is a pure function, and the only
// thing that knows the events of a protocol: what comes after it knows effects alone.
//
// It appends the effects to some, in their order. named is the event that the log says it is, KindUnknown for a log
// that the tables have no name for. ok is false if the log is quarantined: what is appended then is dropped. It keeps
// nothing of the log.
type Mapping func(l *mapping.Log, some []Effect) (named contracts.Kind, effects []Effect, ok bool)

// Of returns the Mapping of a compiled vault. Its events have the numbers that the tables give their names.
func Of(v *mapping.Vault) Mapping {
	kinds := make([]contracts.Kind, len(v.Events()))
	for i, e := range v.Events() {
		kinds[i] = contracts.KindOf(e.Topic)
	}
	return func(l *mapping.Log, some []Effect) (contracts.Kind, []Effect, bool) {
		event, effects, fault := v.One(l, some)
		if event == nil {
			return contracts.KindUnknown, effects, true
		}
		return kinds[event.Number], effects, fault == nil
	}
}

// Effect is one thing that a log does, and EffectKind what it is.
type (
	Effect     = mapping.Effect
	EffectKind = mapping.Kind
)

// The effects that the tables hold.
const (
	Deposit    = mapping.Deposit
	Sweep      = mapping.Sweep
	GroupPrice = mapping.Settled
	NAV        = mapping.Valuation
	Requested  = mapping.Requested
	Funded     = mapping.Funded
	Claimed    = mapping.Claimed
	Cancelled  = mapping.Cancelled
	Expired    = mapping.Expired
)

// heldFields are the fields without which the tables cannot hold an effect. A Settled has the record itself, and no
// other table. An effect that is not here is held by none.
var heldFields = [mapping.Sample + 1]mapping.Fields{
	Deposit:    mapping.ID | mapping.Owner | mapping.Assets | mapping.Shares,
	Sweep:      mapping.ID | mapping.To | mapping.Assets,
	GroupPrice: mapping.Assets | mapping.Shares | mapping.Nav,
	NAV:        mapping.Assets | mapping.Shares | mapping.Nav,
	Requested:  mapping.ID | mapping.Owner | mapping.Shares | mapping.Assets,
	Funded:     mapping.ID | mapping.Owner | mapping.Assets | mapping.Shares,
	Claimed:    mapping.ID | mapping.Owner | mapping.Assets | mapping.Shares,
	Cancelled:  mapping.ID | mapping.Owner | mapping.Shares,
	Expired:    mapping.ID | mapping.Owner | mapping.Shares,
}

// held reports whether the tables can hold what a log does: effects of kinds that they have, with the fields that they
// have, and no more of them than rows of one record can be told apart.
func held(effects []Effect) bool {
	if len(effects) > math.MaxUint8 {
		return false
	}
	for i := range effects {
		want := heldFields[effects[i].Kind]
		if want == 0 || !effects[i].Present(want) {
			return false
		}
	}
	return true
}
