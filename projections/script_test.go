package projections

import (
	"math/rand/v2"

	"github.com/navlog/navlog/deploy/histories"
)

// The histories of the tests are those of deploy/histories, under short names.
type (
	script = histories.Script
	said   = histories.Said
)

var (
	vaultAt, userAt = histories.VaultAt, histories.UserAt
	whole, power    = histories.Whole, histories.Power
	logOf, units    = histories.LogOf, histories.Units
	anything        = histories.Anything
)

func newScript() *script { return histories.New(chainID) }

func randomHistory(rng *rand.Rand, steps int) *script { return histories.Random(rng, chainID, steps) }
