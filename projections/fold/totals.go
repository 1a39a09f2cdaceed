package fold

import (
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

// numbers are the values of running totals.
type numbers struct {
	deposits    uint64
	deposited   readmodel.Amount
	requests    uint64
	estimated   readmodel.Amount
	claims      uint64
	claimed     readmodel.Amount
	users       uint64
	swept       uint64
	sweptAssets readmodel.Amount
	sweptTo     uint64
	valuations  uint64
	supply      readmodel.Amount
	valued      valuation
	sweptBlock  uint64 // of the last sweep
	sweptTS     uint32
	// For a user's requests that are claimed first in, first out: the shares that were funded, and those of them that
	// were claimed.
	fundedShares, claimedShares readmodel.Amount
	// The highest group that a vault has funded, priced for deposits, and priced for requests.
	fundedTo, depositsTo, requestsTo uint64
}

// valuation is the newest valuation of a vault.
type valuation struct {
	shares, assets, nav readmodel.Amount
	block               uint64
	logIndex, ts        uint32
}

// step has the totals from a block on, until the block of the next step.
type step struct {
	from uint64
	ts   uint32
	numbers
}

// steps are the newest steps of running totals, in block order.
type steps []step

// newest returns the totals after the last step.
func (s steps) newest() numbers {
	if len(s) == 0 {
		return numbers{}
	}
	return s[len(s)-1].numbers
}

// clip drops the steps above a block.
func (s steps) clip(ancestor uint64) steps {
	n := len(s)
	for n > 0 && s[n-1].from > ancestor {
		n--
	}
	return s[:n]
}

// add changes the totals in a block that is not below the last step. If no number changes, it adds no step.
func (s steps) add(block uint64, ts uint32, change func(*numbers)) steps {
	before := s.newest()
	after := before
	change(&after)
	switch {
	case after == before:
		return s
	case len(s) > 0 && s[len(s)-1].from == block:
		s[len(s)-1].numbers = after
		return s
	}
	return append(s, step{block, ts, after})
}

// totalRow is a step with the block at which it ends.
type totalRow struct {
	step
	until    uint64
	closedTS uint32
}

func (s steps) rows() []totalRow {
	out := make([]totalRow, len(s))
	for i := range s {
		out[i] = totalRow{s[i], readmodel.Never, 0}
		if i+1 < len(s) {
			out[i].until, out[i].closedTS = s[i+1].from, s[i+1].ts
		}
	}
	return out
}

func (r *totalRow) row(k totalKey) readmodel.ListRow {
	row := readmodel.ListRow{
		List: k.list, Owner: k.owner, Scope: k.scope, Block: r.from, TS: r.ts, ClosedTS: r.closedTS,
		Deposits: r.deposits, Deposited: r.deposited, Requests: r.requests, Estimated: r.estimated,
		Claims: r.claims, Claimed: r.claimed, Users: r.users,
		Swept: r.swept, SweptAssets: r.sweptAssets, SweptTo: r.sweptTo, Valuations: r.valuations,
		Supply: r.supply, FundedShares: r.fundedShares, ClaimedShares: r.claimedShares,
		FundedTo: r.fundedTo, DepositsTo: r.depositsTo, RequestsTo: r.requestsTo,
		Shares: r.valued.shares, Assets: r.valued.assets, Nav: r.valued.nav,
		ValuedBlock: r.valued.block, ValuedLog: r.valued.logIndex, ValuedTS: r.valued.ts,
		SweptBlock: r.sweptBlock, SweptTS: r.sweptTS,
	}
	row.Key.SetUint64(r.until)
	return row
}
