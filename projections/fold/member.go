package fold

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"

	"github.com/navlog/navlog/schemas/readmodel"
)

// memberKey identifies a user in a scope: everything (zeros), a vault, a partner, or a partner (owner) in a vault
// (scope).
type memberKey struct{ owner, scope, user common.Address }

// first is the first block in which a user deposited or requested.
type first struct {
	block uint64
	ts    uint32
}

type member struct {
	pair[first]
	read bool
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
