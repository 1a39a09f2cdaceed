package query

import (
	"maps"
	"math"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// standing is how all vaults stand: their queue, and how many users each has. What
// one says is not to be changed.
type standing struct {
	queue buckets
	users map[common.Address]int64
}

// vaultMove is what some logs did to a vault: to 256 of its requests, as sums, so
// that it does not matter in which order they did, and to the number of its users.
type vaultMove struct {
	Vault    string   `ch:"vault"`
	Bucket   uint64   `ch:"bucket"`
	Queued   *big.Int `ch:"queued"` // set of those that came into the queue less those that left it
	Unfunded int64    `ch:"unfunded"`
	Amount   *big.Int `ch:"amount"`
	Users    int64    `ch:"users"`

	// The requests that were made, and in which blocks.
	Made   []uint64 `ch:"made"`
	Blocks []uint64 `ch:"blocks"`

	// The requests that began to wait until a time (sign 1), or do no longer (-1).
	Indexes []uint64   `ch:"indexes"`
	Signs   []int8     `ch:"signs"`
	Amounts []*big.Int `ch:"amounts"`
	Ends    []uint64   `ch:"ends"`
}

// waiting are the waits of a bucket after a move. It does not know (false) where one
// ended that was not there.
func (m *vaultMove) waiting(was []wait) ([]wait, bool) {
	if len(m.Indexes) == 0 {
		return was, true
	}
	moved, net := make([]wait, len(m.Indexes)), make(map[wait]int)
	for i := range moved {
		moved[i] = wait{m.Indexes[i], m.Ends[i], signed(m.Amounts[i])}
		net[moved[i]] += int(m.Signs[i])
	}
	out := slices.DeleteFunc(slices.Clone(was), func(w wait) bool {
		gone := net[w] < 0
		if gone {
			net[w]++
		}
		return gone
	})
	for _, w := range moved {
		if net[w] < 0 {
			return nil, false
		}
		if net[w] > 0 {
			out, net[w] = append(out, w), net[w]-1
		}
	}
	return out, true
}

// movedUsers are the users of vaults after some moves.
func movedUsers(users map[common.Address]int64, moves []vaultMove) map[common.Address]int64 {
	out := maps.Clone(users)
	if out == nil {
		out = make(map[common.Address]int64)
	}
	for _, m := range moves {
		if m.Users != 0 {
			out[toAddress(m.Vault)] += m.Users
		}
	}
	return out
}

// movesSince are those of the logs after a seq.
func (x *exchange) movesSince(p *pin, seq uint64) ([]vaultMove, error) {
	if moves, ok := x.snapshot.news.moves(seq); ok {
		return moves, nil
	}
	return pinned[vaultMove](x, p, sqlVaultMoves, named("from", uint64(0)), named("to", uint64(math.MaxUint64)), named("since", seq))
}

// pastStanding is how the vaults stood in the past.
var pastStanding = history[standing]{
	name: "standing", forward: true,
	read: func(x *exchange, p *pin) (s standing, err error) {
		err = together(
			func() (err error) { s.queue, err = x.readBuckets(p, nil); return },
			func() (err error) { s.users, err = x.readVaultUsers(p, nil); return },
		)
		return s, err
	},
	move: func(x *exchange, p *pin, was standing, between border) (s standing, ok bool, err error) {
		moves, err := pinned[vaultMove](x, p, sqlVaultMoves, named("from", between.from), named("to", between.to), named("since", uint64(0)))
		if err != nil {
			return s, false, err
		}
		s.queue, ok = was.queue.with(moves)
		s.users = movedUsers(was.users, moves)
		return s, ok, nil
	},
	pack: packStanding, unpack: unpackStanding,
}

// standing is how the vaults stood at a past pin, or nil where no checkpoint tells.
func (x *exchange) standing(p *pin) (*standing, error) {
	if !p.asOf {
		return nil, nil
	}
	return p.standing.get(x.ctx, func() (*standing, error) {
		s, ok, err := pastStanding.at(x, p)
		if !ok || err != nil {
			return nil, err
		}
		return &s, nil
	})
}
