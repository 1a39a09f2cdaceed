package decode

import (
	"math"

	"github.com/navlog/navlog/schemas/mapping"
)

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
