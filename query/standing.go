package query

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
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
	vault    string
	bucket   uint64
	queued   uint256.Int // set of those that came into the queue less those that left it
	unfunded int64
	amount   uint256.Int
	users    int64
	made     []madeAt   // requests that were made
	waits    []waitMove // requests that began to wait until a time, or do no longer
}

type madeAt struct{ index, block uint64 }

type waitMove struct {
	wait
	sign int // 1 or -1
}

// moveRow is a move as vault_moves.sql gives it, with its lists as text: the driver
// takes as long for a few lists as the engine for the question.
type moveRow struct {
	Vault    string   `ch:"vault"`
	Bucket   uint64   `ch:"bucket"`
	Queued   *big.Int `ch:"queued"`
	Unfunded int64    `ch:"unfunded"`
	Amount   *big.Int `ch:"amount"`
	Users    int64    `ch:"users"`
	Made     string   `ch:"made"`
	Waits    string   `ch:"waits"`
}

// moves are what some logs did.
func (x *exchange) moves(p *pin, args ...param) ([]vaultMove, error) {
	rows, err := pinned[moveRow](x, p, sqlVaultMoves, args...)
	if err != nil {
		return nil, err
	}
	moves := make([]vaultMove, len(rows))
	for i, r := range rows {
		if moves[i], err = r.move(); err != nil {
			return nil, fmt.Errorf("read what logs did to vault %s: %w", toAddress(r.Vault).Hex(), err)
		}
	}
	return moves, nil
}

func (r *moveRow) move() (vaultMove, error) {
	m := vaultMove{vault: r.Vault, bucket: r.Bucket, queued: signed(r.Queued), unfunded: r.Unfunded, amount: signed(r.Amount), users: r.Users}
	made := tupleReader{rest: r.Made}
	for made.more() {
		m.made = append(m.made, madeAt{made.number(), made.number()})
	}
	waits := tupleReader{rest: r.Waits}
	for waits.more() {
		m.waits = append(m.waits, waitMove{wait{waits.number(), waits.number(), waits.wide()}, waits.sign()})
	}
	return m, cmp.Or(made.err, waits.err)
}

// tupleReader reads a list of tuples of whole numbers as the engine writes it as
// text: [(1,2),(3,-4)].
type tupleReader struct {
	rest string
	err  error // of the first number that is none
}

// more tells whether another number follows.
func (r *tupleReader) more() bool {
	r.rest = strings.TrimLeft(r.rest, "[(,)]")
	return r.rest != "" && r.err == nil
}

func (r *tupleReader) next() string {
	r.more()
	end := strings.IndexAny(r.rest, ",)")
	if end < 0 {
		end = len(r.rest)
	}
	number := r.rest[:end]
	r.rest = r.rest[end:]
	return number
}

func (r *tupleReader) number() uint64 {
	v, err := strconv.ParseUint(r.next(), 10, 64)
	r.err = cmp.Or(r.err, err)
	return v
}

func (r *tupleReader) sign() int {
	v, err := strconv.ParseInt(r.next(), 10, 8)
	r.err = cmp.Or(r.err, err)
	return int(v)
}

func (r *tupleReader) wide() (v uint256.Int) {
	r.err = cmp.Or(r.err, v.SetFromDecimal(r.next()))
	return v
}

// waiting are the waits of a bucket after a move. It does not know (false) where one
// ended that was not there.
func (m *vaultMove) waiting(was []wait) ([]wait, bool) {
	if len(m.waits) == 0 {
		return was, true
	}
	out := slices.Clone(was)
	var owed []wait // that end here and did not begin yet
	for _, w := range m.waits {
		from, to := &owed, &out
		if w.sign < 0 {
			from, to = to, from
		}
		if i := slices.Index(*from, w.wait); i >= 0 {
			*from = slices.Delete(*from, i, i+1)
		} else {
			*to = append(*to, w.wait)
		}
	}
	return out, len(owed) == 0
}

// movedUsers are the users of vaults after some moves.
func movedUsers(users map[common.Address]int64, moves []vaultMove) map[common.Address]int64 {
	out := maps.Clone(users)
	if out == nil {
		out = make(map[common.Address]int64)
	}
	for _, m := range moves {
		if m.users != 0 {
			out[toAddress(m.vault)] += m.users
		}
	}
	return out
}

// movesSince are those of the logs after a seq.
func (x *exchange) movesSince(p *pin, seq uint64) ([]vaultMove, error) {
	if moves, ok := x.snapshot.news.moves(seq); ok {
		return moves, nil
	}
	return x.moves(p, named("from", uint64(0)), named("to", uint64(math.MaxUint64)), named("since", seq))
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
		moves, kept, err := x.keptMoves(p, between)
		if err == nil && !kept {
			moves, err = x.moves(p, named("from", between.from), named("to", between.to), named("since", uint64(0)))
		}
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
