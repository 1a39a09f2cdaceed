package expect

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/readmodel"
)

// named returns the request that an effect identifies by its number or its 32-byte id; nil if there is none.
func (l *lists) named(row readmodel.ListRow, e readmodel.EventRow) *readmodel.ListRow {
	switch e.By {
	case readmodel.ByID:
		return l.requests[requestKey{row.Vault, row.ID}]
	case readmodel.BySource:
		for _, q := range l.requestsOf[row.Vault] {
			if q.SourceID == e.SourceID && q.SourceID != (common.Hash{}) {
				return q
			}
		}
	}
	return nil
}

// reach returns the highest group that an effect and those before it reach.
func (l *lists) reach(row readmodel.ListRow, e readmodel.EventRow, of func(*readmodel.ListRow) *uint64) uint64 {
	last := l.newest(ofVault(row.Vault))
	if e.GroupTo > *of(&last) {
		l.step(ofVault(row.Vault), row.Block, row.TS, func(t *readmodel.ListRow) { *of(t) = e.GroupTo })
	}
	return max(*of(&last), e.GroupTo)
}

// price sets the price of entries that wait in groups.
func (l *lists) price(row readmodel.ListRow, e readmodel.EventRow) {
	from, to := e.GroupID, e.GroupTo
	if e.By == readmodel.ByUpToGroup {
		from, to = 0, l.reach(row, e, func(t *readmodel.ListRow) *uint64 {
			if row.Kind == readmodel.PricedDeposits {
				return &t.DepositsTo
			}
			return &t.RequestsTo
		})
	}
	of := l.requestsOf[row.Vault]
	if row.Kind == readmodel.PricedDeposits {
		of = l.deposits[row.Vault]
	}
	for _, d := range of {
		waits := d.Grouped && d.PricedBlock == readmodel.Never && d.ClosedBlock == readmodel.Never && d.GroupID >= from &&
			d.GroupID <= to
		switch {
		case waits && d.Kind == readmodel.Deposit:
			d.PricedBlock, d.Shares = row.Block, times(d.Assets, row.Shares, row.Assets)
		case waits && d.FundedBlock == readmodel.Never:
			d.PricedBlock, d.PricedAssets = row.Block, times(d.Shares, row.Assets, row.Shares)
		}
	}
}

func (l *lists) void(row readmodel.ListRow, e readmodel.EventRow) {
	for _, d := range l.deposits[row.Vault] {
		selected := d.User == row.User && d.GroupID == e.GroupID
		if e.By == readmodel.ByID {
			selected = d.ID == row.ID
		}
		if !selected || !d.Grouped || d.PricedBlock != readmodel.Never || d.ClosedBlock != readmodel.Never {
			continue
		}
		d.ClosedBlock, d.ClosedTS, d.ClosedBy = row.Block, row.TS, readmodel.Void
		for _, owner := range owners(*d) {
			l.step(owner, row.Block, row.TS,
				func(t *readmodel.ListRow) { t.Deposits--; t.Deposited.Sub(&t.Deposited, &d.Assets) })
		}
		for _, owner := range []common.Address{everything, row.Vault} {
			m := l.member(member{scope{owner: owner}, true, d.User})
			m.Deposited.Sub(&m.Deposited, &d.Assets)
		}
	}
}

func (l *lists) queueUp(q *readmodel.ListRow, at readmodel.ListRow) {
	l.step(owned{readmodel.UserTotals, scope{q.User, q.Vault}}, at.Block, at.TS, func(t *readmodel.ListRow) {
		q.CumFrom = t.FundedShares
		t.FundedShares.Add(&t.FundedShares, &q.Shares)
		q.CumTo = t.FundedShares
	})
}

// take removes shares from the queue of an owner.
func (l *lists) take(row readmodel.ListRow) {
	k := owned{readmodel.UserTotals, scope{row.User, row.Vault}}
	line := l.newest(k)
	before, claimed := line.ClaimedShares, line.ClaimedShares
	if claimed.Add(&claimed, &row.Shares); claimed.Gt(&line.FundedShares) {
		claimed = line.FundedShares
	}
	if claimed == before {
		return
	}
	l.step(k, row.Block, row.TS, func(t *readmodel.ListRow) { t.ClaimedShares = claimed })
	for _, q := range l.requestsOf[row.Vault] {
		if q.User != row.User || q.ClosedBlock != readmodel.Never || q.CumTo.IsZero() || q.CumTo.Gt(&claimed) {
			continue
		}
		q.ClosedBlock, q.ClosedTS, q.ClosedBy = row.Block, row.TS, row.Kind
		if row.Kind != readmodel.Cancelled {
			q.ClosedAssets = worth(q)
		}
	}
}

// worth is the amount paid for a request whose claim does not contain it.
func worth(q *readmodel.ListRow) readmodel.Amount {
	if q.FundedBlock != readmodel.Never {
		return q.FundedAssets
	}
	return q.Assets
}

// value fills in the amounts of a valuation that its log does not contain.
func (l *lists) value(row *readmodel.ListRow, e readmodel.EventRow) {
	var unit readmodel.Amount
	unit.SetFromBig(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(e.NavDigits)), nil))
	if supply := l.newest(ofVault(row.Vault)).Supply; e.NoShares {
		switch {
		case !e.NoNav && !e.NoAssets:
			row.Shares = times(row.Assets, unit, row.Nav)
		case supply.Sign() > 0 && supply.ToBig().Cmp(readmodel.MaxAmount) < 0:
			row.Shares = supply
		}
	}
	if e.NoNav {
		row.Nav = times(row.Assets, unit, row.Shares)
	}
	if e.NoAssets {
		row.Assets = times(row.Nav, row.Shares, unit)
	}
}

// times is a*b/c, rounded down, and 0 if the result is not a valid amount.
func times(a, b, c readmodel.Amount) (out readmodel.Amount) {
	if c.IsZero() {
		return out
	}
	q := new(big.Int).Mul(a.ToBig(), b.ToBig())
	if q.Quo(q, c.ToBig()); q.Cmp(readmodel.MaxAmount) < 0 {
		out.SetFromBig(q)
	}
	return out
}

// grouped adds the rows of an entry of a group, by the block in which it stopped waiting.
func (l *lists) grouped(row readmodel.ListRow, left uint64) {
	if !row.Grouped {
		return
	}
	row.Key.SetUint64(left)
	l.put(readmodel.Groups, row.Vault, row)
	row.Scope = row.Vault
	l.put(readmodel.Groups, row.User, row)
}
