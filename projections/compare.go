package projections

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"

	"github.com/navlog/navlog/projections/fold"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/readmodel"
)

// comparison is a question to the tables and the lines that the fold wants as
// its answer.
type comparison struct {
	name, question string
	want           []string
}

// comparisons lists everything that is compared at the newest block.
func comparisons(b *fold.Books) []comparison {
	return append(pastComparisons(b),
		comparison{"records: quarantined", "verify_records", lines(b.Quarantined, func(seq uint64) string { return fmt.Sprint(seq) })},
		comparison{"deposits", "verify_deposits", lines(b.Deposits, depositLine)},
		comparison{"deposits: totals by partner", "verify_partners", partnerLines(b)},
		comparison{"rankings", "verify_users", userLines(b)},
		comparison{"navs", "verify_navs", lines(b.Navs, navLine)},
		comparison{"sweeps", "verify_sweeps", lines(b.Sweeps, sweepLine)},
	)
}

// pastComparisons lists what is compared at any block.
func pastComparisons(b *fold.Books) []comparison {
	return []comparison{
		{"flows: totals by vault and user", "verify_flows", flowLines(b)},
		{"requests", "verify_requests", requestLines(b)},
		{"requests: queue by vault", "verify_queue", queueLines(b)},
		{"requests: queue", "verify_waiting", waitingLines(b)},
	}
}

func lines[T any](all []T, line func(T) string) []string {
	out := make([]string, len(all))
	for i, x := range all {
		out[i] = line(x)
	}
	return out
}

func depositLine(l fold.Log) string {
	e := l.Event.(contracts.DepositAccepted)
	return fmt.Sprintf("%d %x %d %x %x %d %d %d %s", l.Seq, l.Vault[:], e.DepositID, e.Owner[:], e.Sender[:], e.PartnerID, e.Assets, e.Shares, place(l))
}

func navLine(l fold.Log) string {
	e := l.Event.(contracts.NavUpdated)
	return fmt.Sprintf("%d %x %d %d %d %s", l.Seq, l.Vault[:], e.NavPerShare, e.TotalAssets, e.TotalSupply, place(l))
}

func sweepLine(l fold.Log) string {
	e := l.Event.(contracts.DepositsSwept)
	return fmt.Sprintf("%d %x %d %d %d %s", l.Seq, l.Vault[:], e.FromDepositID, e.ToDepositID, e.Assets, place(l))
}

func place(l fold.Log) string {
	return fmt.Sprintf("%d %d %x %d", l.Block, l.Time, l.Tx[:], l.Index)
}

func partnerLines(b *fold.Books) (out []string) {
	for _, id := range slices.Sorted(maps.Keys(b.Partners)) {
		p := b.Partners[id]
		out = append(out, fmt.Sprintf("%d %d %d %d", id, p.Deposits, p.Volume, len(p.Users)))
	}
	return out
}

// userLines says twice what a user deposited, withdrew and since when: the least
// and the most that the three lists show of it are the same.
func userLines(b *fold.Books) (out []string) {
	for _, a := range slices.SortedFunc(maps.Keys(b.Users), common.Address.Cmp) {
		u := b.Users[a]
		out = append(out, fmt.Sprintf("%x 3 1 %d %d %d %d %d %d %d %d %d", a[:], u.Deposited, u.Deposited, u.Withdrawn, u.Withdrawn, u.First, u.First, readmodel.TimeBucket(uint32(u.First)),
			readmodel.AmountBucket(uint256.MustFromBig(u.Deposited), a), readmodel.AmountBucket(uint256.MustFromBig(u.Withdrawn), a)))
	}
	return out
}

func flowLines(b *fold.Books) (out []string) {
	keys := slices.SortedFunc(maps.Keys(b.Flows), func(x, y fold.VaultUser) int {
		return cmp.Or(bytes.Compare(x.Vault[:], y.Vault[:]), bytes.Compare(x.User[:], y.User[:]))
	})
	for _, k := range keys {
		f, live := b.Flows[k], 0
		if f.Deposits+f.Requests > 0 {
			live = 1
		}
		if live == 0 && f.Withdrawn.Sign() == 0 {
			continue // a claim of nothing by a stranger adds nothing
		}
		out = append(out, fmt.Sprintf("%x %x %d %d %d %d %d %d %d %d %d %d", k.Vault[:], k.User[:], f.Deposits, f.Deposited, f.Requests, f.Estimated, f.Withdrawn, live, f.First,
			int64(f.Blocks), int64(f.FirstBlock), f.BlockAmounts))
	}
	return out
}

func requestKeys(b *fold.Books) []fold.RequestKey {
	return slices.SortedFunc(maps.Keys(b.Requests), func(x, y fold.RequestKey) int {
		return cmp.Or(bytes.Compare(x.Vault[:], y.Vault[:]), cmp.Compare(x.Index, y.Index))
	})
}

func requestLines(b *fold.Books) (out []string) {
	for _, k := range requestKeys(b) {
		q := b.Requests[k]
		asked := fmt.Sprintf("%040x %040x 0 0 0 0 %d 0 0 %064x 0", 0, 0, q.Requested, 0)
		if q.Asked != nil {
			l, e := q.Asked, q.Asked.Event.(contracts.WithdrawalRequested)
			asked = fmt.Sprintf("%x %x %d %d %d %d %d %d %d %x %d", e.Owner[:], e.Receiver[:], e.PartnerID, e.Shares, e.AssetsEstimate, e.ExpiresAt,
				q.Requested, l.Time, l.Block, l.Tx[:], l.Index)
		}
		out = append(out, fmt.Sprintf("%x %d %s %d %d %d %d %d %d %d %d %d %d", k.Vault[:], k.Index, asked,
			q.Funded, q.FundedTime, q.FundedAssets, q.Claimed, q.ClaimedTime, q.ClaimedAssets,
			q.Cancelled, q.CancelledTime, q.Expired, q.ExpiredTime))
	}
	return out
}

// inQueue tells whether a request was asked for and is not over.
func inQueue(q *fold.Request) bool {
	return q.Asked != nil && q.Claimed == 0 && q.Cancelled == 0 && (q.Expired == 0 || q.Funded > 0)
}

func waitingLines(b *fold.Books) (out []string) {
	for _, k := range requestKeys(b) {
		q := b.Requests[k]
		if !inQueue(q) {
			continue
		}
		waiting := "0 0 0"
		if e := q.Asked.Event.(contracts.WithdrawalRequested); q.Funded == 0 {
			waiting = fmt.Sprintf("1 %d %d", e.AssetsEstimate, int64(e.ExpiresAt))
		}
		out = append(out, fmt.Sprintf("%x %d 1 %s", k.Vault[:], k.Index, waiting))
	}
	return out
}

func queueLines(b *fold.Books) (out []string) {
	type queue struct {
		open, waiting int
		amount        big.Int
	}
	vaults := map[common.Address]*queue{}
	for k, q := range b.Requests {
		if !inQueue(q) {
			continue
		}
		v := vaults[k.Vault]
		if v == nil {
			v = new(queue)
			vaults[k.Vault] = v
		}
		v.open++
		if q.Funded == 0 {
			v.waiting++
			v.amount.Add(&v.amount, q.Asked.Event.(contracts.WithdrawalRequested).AssetsEstimate)
		}
	}
	for _, a := range slices.SortedFunc(maps.Keys(vaults), common.Address.Cmp) {
		v := vaults[a]
		out = append(out, fmt.Sprintf("%x %d %d %d", a[:], v.open, v.waiting, &v.amount))
	}
	return out
}
