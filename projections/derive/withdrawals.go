package derive

import (
	"context"
	_ "embed"
	"math/big"

	"github.com/ClickHouse/clickhouse-go/v2/ext"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/schemas/readmodel"
)

// Withdrawal is a request as withdrawals has it: a row in each of its lists.
//
//	requested ──▶ funded ──▶ closed: claimed, cancelled or expired by a log
//	    └────────────────────▲
//
// The first request of an index wins, the first end is final, and what comes
// before the request or after its end changes nothing.
type Withdrawal struct {
	Vault                    common.Address
	Index                    uint64
	Owner                    common.Address
	Estimate                 decode.Amount // native units
	Expires                  uint64        // Unix seconds, 0 for never
	RequestedBlock           uint64
	RequestedLog             uint32
	FundedBlock, ClosedBlock uint64            // readmodel.Never: not yet
	ClosedBy                 decode.EffectKind // 0: nothing yet
}

type requestKey struct {
	vault common.Address
	index uint64
}

// ends are what the table calls the effects that end a request.
var ends = map[string]decode.EffectKind{
	"claimed": decode.Claimed, "cancelled": decode.Cancelled, "expired": decode.Expired,
}

var (
	//go:embed withdrawals.sql
	liveWithdrawals string
	//go:embed withdrawals_known.sql
	knownWithdrawals string
)

// Withdrawals gives what units change in withdrawals. before is the seq up to which
// withdrawal_events has all, had are the units from there on which withdrawals has
// already: none of them takes anything back. ignored hears of each appended log that
// changes nothing, because it cannot be.
func Withdrawals(ctx context.Context, conn driver.Conn, before uint64, had, units []decode.Unit, ignored func(*decode.Fact)) (Difference[Withdrawal], error) {
	rows, err := readWithdrawals(ctx, conn, units)
	if err != nil {
		return Difference[Withdrawal]{}, failed(readmodel.Withdrawals, err)
	}
	known, err := knownRequests(ctx, conn, units, before)
	if err != nil {
		return Difference[Withdrawal]{}, failed(readmodel.WithdrawalEvents, err)
	}
	for i := range had {
		for f, e := range had[i].Facts.Effects() {
			if e.Kind == decode.Requested {
				known[requestKey{f.Log.Vault, e.ID}] = true
			}
		}
	}
	old, state := map[Withdrawal]bool{}, map[requestKey]*Withdrawal{}
	for _, w := range rows {
		old[w] = true
		state[requestKey{w.Vault, w.Index}] = &w
	}
	for i := range units {
		if units[i].Rewrites {
			clipWithdrawals(state, units[i].Ancestor())
		}
		for f, e := range units[i].Facts.Effects() {
			if f.Sign > 0 && e.Kind.Withdrawal() && !foldWithdrawal(state, known, f, e) {
				ignored(f)
			}
		}
	}
	now := map[Withdrawal]bool{}
	for _, w := range state {
		now[*w] = true
	}
	return between(old, now), nil
}

// clipWithdrawals takes back what happened above a block.
func clipWithdrawals(state map[requestKey]*Withdrawal, block uint64) {
	for key, w := range state {
		if w.RequestedBlock > block {
			delete(state, key)
			continue
		}
		if w.FundedBlock > block {
			w.FundedBlock = readmodel.Never
		}
		if w.ClosedBlock > block {
			w.ClosedBlock, w.ClosedBy = readmodel.Never, 0
		}
	}
}

// foldWithdrawal takes the next effect, and says whether it changed anything.
func foldWithdrawal(state map[requestKey]*Withdrawal, known map[requestKey]bool, f *decode.Fact, e *decode.Effect) bool {
	key := requestKey{f.Log.Vault, e.ID}
	w := state[key]
	if e.Kind == decode.Requested {
		if w != nil || known[key] {
			return false
		}
		state[key] = &Withdrawal{Vault: key.vault, Index: key.index, Owner: e.Owner, Estimate: e.Assets, Expires: e.Expires,
			RequestedBlock: f.Log.Block, RequestedLog: f.Log.Index, FundedBlock: readmodel.Never, ClosedBlock: readmodel.Never}
		return true
	}
	if w == nil || w.ClosedBlock != readmodel.Never {
		return false
	}
	if e.Kind != decode.Funded {
		w.ClosedBlock, w.ClosedBy = f.Log.Block, e.Kind
		return true
	}
	if w.FundedBlock != readmodel.Never {
		return false
	}
	w.FundedBlock = f.Log.Block
	return true
}

// readWithdrawals reads the rows of the requests that units touch, as far as units
// can change them: those that are open, or were at the ancestor.
func readWithdrawals(ctx context.Context, conn driver.Conn, units []decode.Unit) (out []Withdrawal, err error) {
	keys := map[requestKey]bool{}
	var wanted [][]any
	for i := range units {
		for f, e := range units[i].Facts.Effects() {
			key := requestKey{f.Log.Vault, e.ID}
			if e.Kind.Withdrawal() && !keys[key] {
				keys[key] = true
				wanted = append(wanted, []any{key.vault.Bytes(), key.index})
			}
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	t, err := table(wanted, ext.Column("vault", "FixedString(20)"), ext.Column("request_index", "UInt64"))
	if err != nil {
		return nil, err
	}
	var vault, owner []byte
	err = ask(ctx, conn, liveWithdrawals, map[string]uint64{"ancestor": ancestor(units)}, t, func(rows driver.Rows) error {
		var w Withdrawal
		var estimate big.Int
		var closedBy string
		if err := rows.Scan(&vault, &w.Index, &owner, &estimate, &w.Expires, &w.RequestedBlock, &w.RequestedLog, &w.FundedBlock, &w.ClosedBlock, &closedBy); err != nil {
			return err
		}
		w.Vault, w.Owner, w.Estimate, w.ClosedBy = address(vault), address(owner), amountOf(&estimate), ends[closedBy]
		out = append(out, w)
		return nil
	})
	return out, err
}

// knownRequests tells which of the indexes that units ask for were asked for up to
// the ancestor already.
func knownRequests(ctx context.Context, conn driver.Conn, units []decode.Unit, before uint64) (map[requestKey]bool, error) {
	keys, known := map[requestKey]bool{}, map[requestKey]bool{}
	var wanted [][]any
	for i := range units {
		for f, e := range units[i].Facts.Effects() {
			key := requestKey{f.Log.Vault, e.ID}
			if f.Sign > 0 && e.Kind == decode.Requested && !keys[key] {
				keys[key] = true
				wanted = append(wanted, []any{key.vault.Bytes(), key.index})
			}
		}
	}
	if len(wanted) == 0 {
		return known, nil
	}
	t, err := table(wanted, ext.Column("vault", "FixedString(20)"), ext.Column("request_index", "UInt64"))
	if err != nil {
		return nil, err
	}
	var vault []byte
	err = ask(ctx, conn, knownWithdrawals, map[string]uint64{"ancestor": ancestor(units), "before": before}, t, func(rows driver.Rows) error {
		var index uint64
		if err := rows.Scan(&vault, &index); err != nil {
			return err
		}
		known[requestKey{address(vault), index}] = true
		return nil
	})
	return known, err
}
