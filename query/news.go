package query

import (
	"cmp"
	"math/big"
	"slices"

	"github.com/navlog/navlog/schemas/contracts"
)

// news is what the log says after the snapshot before. It is read once, with all
// that the records say of what logs did, and what the head knows is moved on by
// it: a question to each of the tables would read the same few rows again.
type news struct {
	since  uint64 // seq of the snapshot before
	logs   []newRecord
	oldest uint64 // of the blocks that were indexed, the highest number for none; 0: blocks were taken back

	deposits *lazy[[]newDeposit]
}

// newsAtMost is how many seqs are read as news. After more of them, when the
// program or the chain stood still, the snapshot is read whole.
const newsAtMost = 1 << 13

// newRecord is a record of the log.
type newRecord struct {
	vaultRecord
	blockRow
	Kind  string `ch:"kind"`
	Event string `ch:"event"` // of a log

	// What a log did.
	VaultAddress string   `ch:"vault"`
	RequestIndex uint64   `ch:"request_index"`
	Open         int8     `ch:"open"`
	Waiting      int8     `ch:"waiting"`
	Estimate     *big.Int `ch:"estimate"`
	Expires      uint64   `ch:"expires_ts"`
	VaultUser    int8     `ch:"vault_user"`

	FirstLeft       uint32 `ch:"first_left"`
	FirstJoined     uint32 `ch:"first_joined"`
	DepositedLeft   uint32 `ch:"deposited_left"`
	DepositedJoined uint32 `ch:"deposited_joined"`
	WithdrawnLeft   uint32 `ch:"withdrawn_left"`
	WithdrawnJoined uint32 `ch:"withdrawn_joined"`
}

// after gives the logs after a seq, or false where the news do not go back to it.
func (n *news) after(seq uint64) ([]newRecord, bool) {
	if n == nil || seq < n.since {
		return nil, false
	}
	from, _ := slices.BinarySearchFunc(n.logs, seq+1, func(r newRecord, seq uint64) int { return cmp.Compare(r.Seq, seq) })
	return n.logs[from:], true
}

// above says that all blocks of the news are above one, and none was taken back.
func (n *news) above(block uint64) bool { return n != nil && n.oldest > block }

// silent says that there is no log of an event after a seq, so that the table
// about these has nothing new.
func (n *news) silent(seq uint64, event contracts.Kind) bool {
	logs, ok := n.after(seq)
	return ok && !slices.ContainsFunc(logs, func(r newRecord) bool { return r.Event == event.String() })
}

// moves are what the logs after a seq did to the vaults.
func (n *news) moves(seq uint64) ([]vaultMove, bool) {
	logs, ok := n.after(seq)
	var moves []vaultMove
	for i := range logs {
		if r := &logs[i]; r.Open != 0 || r.Waiting != 0 || r.VaultUser != 0 {
			moves = append(moves, r.move())
		}
	}
	return moves, ok
}

func (r *newRecord) move() vaultMove {
	m := vaultMove{vault: r.VaultAddress, bucket: r.RequestIndex / bucketSize, users: int64(r.VaultUser)}
	m.add(&logMove{
		block: r.Block, index: r.RequestIndex, expires: r.Expires, open: int(r.Open), waiting: int(r.Waiting),
		made: r.Event == contracts.KindWithdrawalRequested.String() && r.Open > 0, amount: signed(r.Estimate),
	})
	return m
}

// crossings are how many users the logs after a seq brought into buckets of a list, or
// out of them: what users_moved.sql says of other logs.
func (n *news) crossings(seq uint64, by string) ([]rankedBucket, bool) {
	logs, ok := n.after(seq)
	users := make(map[uint32]int32)
	for i := range logs {
		left, joined := logs[i].crossing(by)
		if left != 0 {
			users[left-1]--
		}
		if joined != 0 {
			users[joined-1]++
		}
	}
	var out []rankedBucket
	for bucket, n := range users {
		if n != 0 {
			out = append(out, rankedBucket{Bucket: bucket, Users: n})
		}
	}
	slices.SortFunc(out, func(a, b rankedBucket) int { return cmp.Compare(a.Bucket, b.Bucket) })
	return out, ok
}

// crossing is from which bucket of a list the log's user went to which one,
// counted from 1; 0 for none.
func (r *newRecord) crossing(by string) (left, joined uint32) {
	switch by {
	case "firstSeen":
		return r.FirstLeft, r.FirstJoined
	case "totalDeposited":
		return r.DepositedLeft, r.DepositedJoined
	default:
		return r.WithdrawnLeft, r.WithdrawnJoined
	}
}

// spans are those of the logs after a seq.
func (n *news) spans(seq, span uint64) ([]spanRow, bool) {
	logs, ok := n.after(seq)
	var rows []spanRow
	for i := range logs {
		rows = append(rows, spanRow{Number: logs[i].Block / span, Low: logs[i].Seq, High: logs[i].Seq, Logs: 1})
	}
	return rows, ok
}

// newDeposit is a deposit, or with sign -1 what takes one back.
type newDeposit struct {
	depositRow
	Sign        int8 `ch:"sign"`
	PartnerUser int8 `ch:"partner_user"`
}

// volume is what it adds to a sum.
func (d *newDeposit) volume() *big.Int { return new(big.Int).Mul(big.NewInt(int64(d.Sign)), d.Assets) }

// newDeposits are those after a seq, or false where that is not the one of the
// snapshot before.
func (x *exchange) newDeposits(p *pin, seq uint64) ([]newDeposit, bool, error) {
	n := x.snapshot.news
	if n == nil || seq != n.since || p.head == nil {
		return nil, false, nil
	}
	if n.silent(seq, contracts.KindDepositAccepted) {
		return nil, true, nil
	}
	rows, err := n.deposits.get(x.ctx, func() ([]newDeposit, error) {
		return pinned[newDeposit](x, p, sqlNewDeposits, named("since", n.since))
	})
	return rows, true, err
}
