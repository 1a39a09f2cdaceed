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
	Priced     = mapping.Priced
	Void       = mapping.Void
	Sweep      = mapping.Sweep
	GroupPrice = mapping.Settled
	NAV        = mapping.Valuation
	Supply     = mapping.Supply
	Requested  = mapping.Requested
	Funded     = mapping.Funded
	Claimed    = mapping.Claimed
	Cancelled  = mapping.Cancelled
	Expired    = mapping.Expired
	Instant    = mapping.Instant
	Sample     = mapping.Sample
)

// heldFields are the fields without which the tables cannot hold an effect, besides those that say what it is about. An
// effect that is not here is held by none.
var heldFields = [mapping.Sample + 1]mapping.Fields{
	Deposit:    mapping.ID | mapping.Owner | mapping.Assets,
	Priced:     mapping.SideField | mapping.Assets | mapping.Shares,
	Void:       about,
	Sweep:      mapping.To | mapping.Assets,
	GroupPrice: about,
	NAV:        about,
	Supply:     mapping.Shares,
	Requested:  mapping.ID | mapping.Owner | mapping.Shares,
	Funded:     about,
	Claimed:    about,
	Cancelled:  about,
	Expired:    about,
	Instant:    mapping.Owner | mapping.Assets | mapping.Shares,
	Sample:     mapping.Nav,
}

// about is no field: the effect needs none beyond those by which a mapping is checked.
const about mapping.Fields = 1 << 31

// MaxGroups is how many groups one log can give a price to by naming the first and the last.
const MaxGroups = 1000

// held reports whether the tables can hold what a log does: effects of kinds that they have, with the fields that they
// have, and no more of them than rows of one record can be told apart. A request of no shares that is claimed first in,
// first out has no place in the line.
func held(effects []Effect) bool {
	if len(effects) > math.MaxUint8 {
		return false
	}
	for i := range effects {
		e := &effects[i]
		want := heldFields[e.Kind]
		if want == 0 || !e.Present(want&^about) {
			return false
		}
		switch {
		case e.Kind == Priced && e.Present(mapping.Group|mapping.GroupTo):
			if e.GroupTo < e.Group || e.GroupTo-e.Group >= MaxGroups {
				return false
			}
		case e.Kind == Requested && e.Present(mapping.Fifo) && e.Shares.IsZero():
			return false
		}
	}
	return true
}
