package fold

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"

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

// memberKey identifies a user in a scope: everything (zeros), a vault, a partner, or a partner (owner) in a vault
// (scope).
type memberKey struct{ owner, scope, user common.Address }

// first is the first block in which a user deposited or requested.
type first struct {
	block uint64
	ts    uint32
}

func (k memberKey) row(list readmodel.List, key readmodel.Amount, block uint64, f *first) readmodel.ListRow {
	return readmodel.ListRow{List: list, Owner: k.owner, Scope: k.scope, Key: key, Block: block, User: k.user, TS: f.ts}
}

// rows adds the rows of the membership itself.
func (k memberKey) rows(f *first, add func(readmodel.ListRow)) {
	if f == nil {
		return
	}
	add(k.row(readmodel.Members, addressKey(k.user), f.block, f))
	add(k.row(readmodel.FirstSeen, *uint256.NewInt(f.block), f.block, f))
}

func addressKey(a common.Address) (key readmodel.Amount) {
	key.SetBytes20(a[:])
	return key
}

// ranked is what a user deposited and claimed in a scope, and since when the user is a member of it. Users with equal
// amounts are sorted by address.
type ranked struct {
	first
	deposited, claimed readmodel.Amount
}

func (k memberKey) rankedRows(r *ranked, add func(readmodel.ListRow)) {
	if r == nil {
		return
	}
	add(k.row(readmodel.Deposited, r.deposited, 0, &r.first))
	add(k.row(readmodel.Withdrawn, r.claimed, 0, &r.first))
}
