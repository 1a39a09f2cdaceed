package fold

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/readmodel"
)

// totalKey identifies running totals: of a user (UserTotals), partner or vault (Totals) in a vault, which is the
// scope, or the number of users of a partner or of everything (scope 0).
type totalKey struct {
	list         readmodel.List
	owner, scope common.Address
}

func userIn(user, vault common.Address) totalKey {
	return totalKey{readmodel.UserTotals, user, vault}
}

func totalsOf(owner, vault common.Address) totalKey {
	return totalKey{readmodel.Totals, owner, vault}
}

// steps are the newest rows of running totals, in block order. Each holds from its block on, until that of the next
// one. rows sets what identifies a row, and where it ends.
type steps []readmodel.ListRow

func (s steps) newest() (last readmodel.ListRow) {
	if len(s) > 0 {
		last = s[len(s)-1]
	}
	return last
}

func (s steps) clip(ancestor uint64) steps {
	n := len(s)
	for n > 0 && s[n-1].Block > ancestor {
		n--
	}
	return s[:n]
}

// add changes the totals in a block that is not below the last step. If no number changes, it adds no step.
func (s steps) add(block uint64, ts uint32, change func(*readmodel.ListRow)) steps {
	before := s.newest()
	after := before
	change(&after)
	switch {
	case after == before:
		return s
	case len(s) > 0 && before.Block == block:
		s[len(s)-1] = after
		return s
	}
	after.Block, after.TS = block, ts
	return append(s, after)
}

// rows returns the rows of the steps, which are those of a key.
func (s steps) rows(k totalKey) []readmodel.ListRow {
	out := slices.Clone(s)
	for i := range out {
		row, until := &out[i], readmodel.Never
		row.List, row.Owner, row.Scope, row.ClosedTS = k.list, k.owner, k.scope, 0
		if i+1 < len(out) {
			until, row.ClosedTS = out[i+1].Block, out[i+1].TS
		}
		row.Key.SetUint64(until)
	}
	return out
}
