package projections

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/contracts"
)

// folding is one batch on its way from facts to rows. It changes state, knows
// no clock and no chance, and gives the same rows for the same facts however
// they are cut into batches, progress rows aside.
type folding struct {
	state *state
	out   *output
	// Told about each appended log that cannot be, or cannot be counted.
	impossible  func(event string)
	quarantined func(event string)
}

// fold turns the facts of a batch into rows. The state must hold all keys of
// the facts that exist (load). An error means that the log takes back what is
// not there: the generation and the log do not belong together.
func (f *folding) fold(facts []fact) error {
	for i := range facts {
		if err := f.apply(&facts[i]); err != nil {
			r := facts[i].record
			return fmt.Errorf("fold record %d (%s %s, retracts %d): %w: compare with `navlog verify`, then `navlog projection rebuild`", r.GetSeq(), facts[i].kind, facts[i].name, r.GetRetracts(), err)
		}
	}
	if n := len(facts); n > 0 {
		f.out.progress(facts[n-1].record.GetSeq())
	}
	return nil
}

var errNothing = errors.New("there is nothing left to take back")

func (f *folding) apply(x *fact) error {
	if err := f.record(x); err != nil {
		return err
	}
	if x.quarantined && x.sign > 0 {
		f.quarantined(x.name)
	}
	switch e := x.event.(type) {
	case contracts.DepositAccepted:
		return f.deposit(x, e)
	case contracts.WithdrawalRequested:
		if err := f.request(x, e.RequestIndex); err != nil {
			return err
		}
		return f.flow(x, e.Owner, flowRow{requests: x.sign, estimated: signed(x.sign, e.AssetsEstimate)}, true)
	case contracts.WithdrawalClaimed:
		if err := f.request(x, e.RequestIndex); err != nil {
			return err
		}
		return f.flow(x, e.Owner, flowRow{withdrawn: signed(x.sign, e.Assets)}, false)
	case contracts.WithdrawalFunded:
		return f.request(x, e.RequestIndex)
	case contracts.WithdrawalCancelled:
		return f.request(x, e.RequestIndex)
	case contracts.WithdrawalExpired:
		return f.request(x, e.RequestIndex)
	case contracts.NavUpdated:
		f.out.navs = append(f.out.navs, navRow{id: x.id(), retracts: x.record.GetRetracts(), log: x.log,
			navPerShare: e.NavPerShare, totalAssets: e.TotalAssets, totalSupply: e.TotalSupply})
	case contracts.DepositsSwept:
		f.sweep(x, e)
	}
	return nil
}

func (x *fact) id() id { return id{seq: x.record.GetSeq(), sign: x.sign} }

func (f *folding) record(x *fact) error {
	r := x.record
	row := recordRow{id: x.id(), retracts: r.GetRetracts(), kind: x.kind, event: x.name,
		boundary: r.GetBoundary(), quarantined: x.quarantined, log: x.log}
	switch {
	case r.GetLog() != nil:
		row.hash = common.BytesToHash(r.GetLog().GetBlockHash())
	case r.GetBlock() != nil:
		b := r.GetBlock()
		row.log.block, row.log.ts, row.hash = b.GetNumber(), seconds(b.GetTime()), common.BytesToHash(b.GetHash())
	case r.GetVault() != nil:
		row.log.vault = common.BytesToAddress(r.GetVault().GetAddress())
	}
	if x.quarantined || x.kind == "vault" || x.kind == "decision" {
		payload, err := proto.MarshalOptions{Deterministic: true}.Marshal(r)
		if err != nil {
			return fmt.Errorf("encode it again: %w", err)
		}
		row.payload = payload
	}
	f.out.records = append(f.out.records, row)
	return nil
}

func (f *folding) deposit(x *fact, e contracts.DepositAccepted) error {
	row := depositRow{id: x.id(), retracts: x.record.GetRetracts(), log: x.log, depositID: e.DepositID.Uint64(),
		user: e.Owner, sender: e.Sender, partner: e.PartnerID, assets: e.Assets, shares: e.Shares}
	if e.PartnerID != 0 {
		edge, ok := count(&f.state.partner(partnerKey{e.PartnerID, e.Owner}).deposits, x.sign)
		if !ok {
			return errNothing
		}
		row.partnerUser = edge
	}
	f.out.deposits = append(f.out.deposits, row)
	return f.flow(x, e.Owner, flowRow{deposits: x.sign, deposited: signed(x.sign, e.Assets)}, true)
}

// count moves a count of live things by sign. edge is +1 when it becomes 1, -1
// when it becomes 0; ok is false when there is nothing to take back.
func count(n *uint32, sign int8) (edge int8, ok bool) {
	switch {
	case sign > 0:
		*n++
		if *n == 1 {
			edge = 1
		}
	case *n == 0:
		return 0, false
	default:
		*n--
		if *n == 0 {
			edge = -1
		}
	}
	return edge, true
}

// flow writes what a log did to a user in a vault, and the user's change of
// state over all vaults where there is one. live says that the log is a deposit
// or a request, which make somebody a user.
func (f *folding) flow(x *fact, owner common.Address, row flowRow, live bool) error {
	u := f.state.user(owner)
	before, was := u.totals()
	row.id, row.vault, row.user, row.block = x.id(), x.log.vault, owner, x.log.block
	if live {
		v := u.in(x.log.vault)
		edge, ok := count(&v.live, x.sign)
		switch {
		case !ok:
			return errNothing
		case edge > 0:
			v.first = x.log.ts
			row.vaultUser, row.firstTs = 1, int64(v.first)
		case edge < 0:
			row.vaultUser, row.firstTs = -1, -int64(v.first)
		}
	}
	if row.deposited != nil {
		u.deposited = add(u.deposited, 1, row.deposited)
	}
	if row.withdrawn != nil {
		u.withdrawn = add(u.withdrawn, 1, row.withdrawn)
	}
	f.out.flows = append(f.out.flows, row)
	after, is := u.totals()
	if was && is && before.equal(after) {
		return nil
	}
	if was {
		f.out.users = append(f.out.users, userRow{id{row.seq, 0, -1}, owner, u.since, before})
		u.since = 0
	}
	if is {
		u.since = row.seq
		f.out.users = append(f.out.users, userRow{id{row.seq, 1, 1}, owner, u.since, after})
	}
	return nil
}

// request moves a withdrawal request: its old state is written with sign -1,
// the new one with sign +1, each where it exists.
func (f *folding) request(x *fact, index *big.Int) error {
	key := requestKey{x.log.vault, index.Uint64()}
	known := f.state.request(key)
	before := known.request
	if x.sign > 0 {
		if before.impossible(x.event) {
			f.impossible(x.name)
		}
		known.made(x.record.GetSeq())
	} else {
		if before.since != x.record.GetRetracts() {
			return errNothing // not the newest log of this request
		}
		known.unmade()
	}
	if !known.apply(x.event, x.sign, x.log) {
		return errNothing
	}
	if before.since != 0 {
		f.out.requests = append(f.out.requests, requestRow{id{x.record.GetSeq(), 0, -1}, key, before, x.log.block})
	}
	if known.since != 0 {
		f.out.requests = append(f.out.requests, requestRow{id{x.record.GetSeq(), 1, 1}, key, known.request, x.log.block})
	}
	return nil
}

// sweep writes a sweep as it was said. That ranges follow each other is left
// to verify; a range that is none at all is noticed here.
func (f *folding) sweep(x *fact, e contracts.DepositsSwept) {
	row := sweepRow{id: x.id(), retracts: x.record.GetRetracts(), log: x.log,
		from: e.FromDepositID.Uint64(), to: e.ToDepositID.Uint64(), assets: e.Assets}
	if x.sign > 0 && (row.from == 0 || row.from > row.to) {
		f.impossible(x.name)
	}
	f.out.sweeps = append(f.out.sweeps, row)
}

func signed(sign int8, v *big.Int) *big.Int {
	if sign < 0 {
		return new(big.Int).Neg(v)
	}
	return v
}
