package decode

import "github.com/navlog/navlog/schemas/mapping"

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
