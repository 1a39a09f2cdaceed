package decode

import (
	"math"

	"github.com/navlog/navlog/schemas/mapping"
)

// Effect is one effect of a log, and EffectKind its kind.
type (
	Effect     = mapping.Effect
	EffectKind = mapping.Kind
)

// The kinds of effects that the tables represent.
const (
	Deposit   = mapping.Deposit
	Priced    = mapping.Priced
	Void      = mapping.Void
	Sweep     = mapping.Sweep
	Settled   = mapping.Settled
	NAV       = mapping.Valuation
	Supply    = mapping.Supply
	Requested = mapping.Requested
	Funded    = mapping.Funded
	Claimed   = mapping.Claimed
	Cancelled = mapping.Cancelled
	Expired   = mapping.Expired
	Instant   = mapping.Instant
	Sample    = mapping.Sample
)

// heldFields are the fields that the tables require of each kind of effect, besides those that identify its subject.
// The tables cannot represent a kind that is not listed here.
var heldFields = [mapping.Sample + 1]mapping.Fields{
	Deposit:   mapping.ID | mapping.Owner | mapping.Assets,
	Priced:    mapping.SideField | mapping.Assets | mapping.Shares,
	Void:      about,
	Sweep:     mapping.To | mapping.Assets,
	Settled:   about,
	NAV:       about,
	Supply:    mapping.Shares,
	Requested: mapping.ID | mapping.Owner | mapping.Shares,
	Funded:    about,
	Claimed:   about,
	Cancelled: about,
	Expired:   about,
	Instant:   mapping.Owner | mapping.Assets | mapping.Shares,
	Sample:    mapping.Nav,
}

// about is not a field: it marks kinds that need no fields beyond those that the check of the mapping requires.
const about mapping.Fields = 1 << 31

// MaxGroups is the maximum number of groups that one log can price by naming the first and the last.
const MaxGroups = 1000

// held reports whether the tables can represent the effects of a log: only known kinds with the required fields, and
// at most as many effects as rows of one record can be distinguished. A request for no shares that is claimed first
// in, first out has no place in the queue.
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
