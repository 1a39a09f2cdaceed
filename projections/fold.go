package projections

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/readmodel"
)

// folding is one batch on its way from facts to rows. It changes state, knows
// no clock and no chance, and gives the same rows for the same facts however
// they are cut into batches, progress rows aside.
type folding struct {
	state *state
	out   *output
	did   effect // what the log that is folded did so far
	// Told about each appended log that cannot be, or cannot be counted.
	impossible  func(event string)
	quarantined func(event string)
}

// fold turns the facts of a batch into rows. The state must hold all keys of
// the facts that exist (load). An error means that the log takes back what is
// not there: the generation and the log do not belong together.
func (f *folding) fold(facts facts) error {
	for x := range facts.all() {
		if err := f.apply(x); err != nil {
			return fmt.Errorf("fold record %d (%s %s, retracts %d): %w: compare with `navlog verify`, then `navlog projection rebuild`", x.seq, x.kind, x.name(), x.retracts, err)
		}
	}
	f.out.progress(facts.last().seq)
	return nil
}

var errNothing = errors.New("there is nothing left to take back")

// effect is what a log did to the queue, to the users of its vault and to the
// lists of users, which its record tells too.
type effect struct {
	open, waiting int8
	request       uint64
	estimate      amount // where waiting is not 0
	expires       uint64
	vaultUser     int8
	moves         [3]crossing // by list
}

// crossing is a user's way from a bucket of a list to another one, counted from
// 1; 0 for none.
type crossing struct{ left, joined uint32 }

func (f *folding) apply(x *fact) error {
	f.did = effect{}
	if err := f.effect(x); err != nil {
		return err
	}
	f.record(x)
	return nil
}

func (f *folding) effect(x *fact) error {
	if x.quarantined && x.sign > 0 {
		f.quarantined(x.name())
	}
	switch x.event {
	case contracts.KindDepositAccepted:
		return f.deposit(x)
	case contracts.KindWithdrawalRequested:
		if err := f.request(x); err != nil {
			return err
		}
		return f.flow(x, flow{requests: x.sign, estimated: signed(x.sign, &x.args.assets)}, true)
	case contracts.KindWithdrawalClaimed:
		if err := f.request(x); err != nil {
			return err
		}
		return f.flow(x, flow{withdrawn: signed(x.sign, &x.args.assets)}, false)
	case contracts.KindWithdrawalFunded, contracts.KindWithdrawalCancelled, contracts.KindWithdrawalExpired:
		return f.request(x)
	case contracts.KindNavUpdated:
		f.nav(x)
	case contracts.KindDepositsSwept:
		f.sweep(x)
	}
	return nil
}

func (f *folding) record(x *fact) {
	t := &f.out.records
	t.row(x.seq, 0, x.sign)
	t.u64(x.retracts)
	t.u8(uint8(x.kind))
	t.u8(x.eventNumber())
	t.flag(x.boundary)
	t.flag(x.quarantined)
	t.u64(x.log.block)
	t.bytes(x.hash[:])
	t.u32(x.log.ts)
	t.u32(x.log.index)
	t.text(string(x.raw))
	var vault common.Address
	if f.did != (effect{}) {
		vault = x.log.vault
	}
	t.bytes(vault[:])
	t.u64(f.did.request)
	t.u8(uint8(f.did.open))
	t.u8(uint8(f.did.waiting))
	t.amount(&f.did.estimate)
	t.u64(f.did.expires)
	t.u8(uint8(f.did.vaultUser))
	for _, m := range f.did.moves {
		t.u32(m.left)
		t.u32(m.joined)
	}
}

// where writes the end of the rows that show a log.
func where(t *table, l *logged) {
	t.u64(l.block)
	t.u32(l.ts)
	t.bytes(l.tx[:])
	t.u32(l.index)
}

func (f *folding) deposit(x *fact) error {
	var edge int8
	if x.args.partner != 0 {
		var ok bool
		if edge, ok = count(&f.state.tie(f.state.user(x.args.owner), partnerTie, x.args.partner).live, x.sign); !ok {
			return errNothing
		}
	}
	t := &f.out.deposits
	t.row(x.seq, 0, x.sign)
	t.u64(x.retracts)
	t.bytes(x.log.vault[:])
	t.u64(x.args.id)
	t.bytes(x.args.owner[:])
	t.bytes(x.args.other[:])
	t.u32(x.args.partner)
	t.amount(&x.args.assets)
	t.amount(&x.args.shares)
	t.u8(uint8(edge))
	where(t, &x.log)
	return f.flow(x, flow{deposits: x.sign, deposited: signed(x.sign, &x.args.assets)}, true)
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

// flow is what a log does to a user in a vault, as differences.
type flow struct {
	deposits, requests              int8
	deposited, estimated, withdrawn amount
}

// flow writes what a log did to a user in a vault, and the user's moves in the
// lists over all vaults. live says that the log is a deposit
// or a request, which make somebody a user.
func (f *folding) flow(x *fact, row flow, live bool) error {
	u := f.state.user(x.args.owner)
	before, was := f.state.totals(u)
	var edge int8
	var first int64
	if live {
		v := f.state.tie(u, vaultTie, f.state.vault(x.log.vault))
		var ok bool
		edge, ok = count(&v.live, x.sign)
		switch {
		case !ok:
			return errNothing
		case edge > 0:
			v.first = x.log.ts
			first = int64(v.first)
		case edge < 0:
			first = -int64(v.first)
		}
	}
	f.did.vaultUser = edge
	u.deposited.Add(&u.deposited, &row.deposited)
	u.withdrawn.Add(&u.withdrawn, &row.withdrawn)
	t := &f.out.flows
	t.row(x.seq, 0, x.sign)
	t.bytes(x.log.vault[:])
	t.bytes(x.args.owner[:])
	t.u8(uint8(row.deposits))
	t.amount(&row.deposited)
	t.u8(uint8(row.requests))
	t.amount(&row.estimated)
	t.amount(&row.withdrawn)
	t.u8(uint8(edge))
	t.u64(uint64(first))
	t.u64(x.log.block)
	f.rank(x, was, &before, u)
	return nil
}

// Lists of users, by the numbers that the table rankings gives them.
const (
	listFirst = 1 + iota
	listDeposited
	listWithdrawn
)

// rank moves a user in the lists whose key the log changed, and changes what
// the place in the others shows.
func (f *folding) rank(x *fact, was bool, before *totals, u *user) {
	after, is := f.state.totals(u)
	if was && is && *before == after {
		return
	}
	var nothing totals
	from, to := before.keys(), after.keys()
	for i := range from {
		list := uint8(listFirst + i)
		f.did.moves[i] = moved(was, is, bucketOf(list, &from[i], x.args.owner), bucketOf(list, &to[i], x.args.owner))
		if was && is && from[i] == to[i] {
			f.place(x, 2*list+1, 0, list, &to[i], before, &after)
			continue
		}
		if was {
			f.place(x, 2*list, -1, list, &from[i], before, &nothing)
		}
		if is {
			f.place(x, 2*list+1, 1, list, &to[i], &nothing, &after)
		}
	}
}

// moved is the crossing of a user who was in a bucket and is in one.
func moved(was, is bool, from, to uint32) (m crossing) {
	if was && is && from == to {
		return m
	}
	if was {
		m.left = from + 1
	}
	if is {
		m.joined = to + 1
	}
	return m
}

// bucketOf is the bucket of a place in a list.
func bucketOf(list uint8, key *amount, user common.Address) uint32 {
	if list == listFirst {
		return readmodel.TimeBucket(uint32(key.Uint64()))
	}
	return readmodel.AmountBucket(key, user)
}

// place writes what a log does to a place in a list, and how what is shown there
// beside the key changes.
func (f *folding) place(x *fact, row uint8, users int8, list uint8, key *amount, before, after *totals) {
	t := &f.out.rankings
	t.row(x.seq, row, x.sign)
	t.u8(list)
	t.u32(bucketOf(list, key, x.args.owner))
	t.amount(key)
	t.bytes(x.args.owner[:])
	t.u8(uint8(users))
	var first int64
	var deposited, withdrawn amount
	if list != listFirst {
		first = int64(after.first) - int64(before.first)
	}
	if list != listDeposited {
		deposited.Sub(&after.deposited, &before.deposited)
	}
	if list != listWithdrawn {
		withdrawn.Sub(&after.withdrawn, &before.withdrawn)
	}
	t.u64(uint64(first))
	t.amount(&deposited)
	t.amount(&withdrawn)
}

// request moves a withdrawal request, and says what that did to the queue.
func (f *folding) request(x *fact) error {
	r := f.state.request(requestKey{x.log.vault, x.args.id})
	if x.sign > 0 && r.impossible(x.event) {
		f.impossible(x.name())
	}
	opened, waited := r.open(), r.waiting()
	first, ok := r.apply(x)
	if !ok {
		return errNothing
	}
	open, waiting := edge(opened, r.open()), edge(waited, r.waiting())
	t := &f.out.requests
	t.row(x.seq, 0, x.sign)
	t.u64(x.retracts)
	t.bytes(x.log.vault[:])
	t.u64(x.args.id)
	t.u8(stepNumber(x.event))
	var none args
	var nobody common.Address
	var nothing amount
	asked, user, estimate, expires, assets := &none, &nobody, &nothing, uint64(0), &nothing
	switch x.event {
	case contracts.KindWithdrawalRequested:
		asked, estimate, expires = &x.args, &x.args.assets, x.args.expires
		if first {
			user = &x.args.owner
		}
	case contracts.KindWithdrawalFunded, contracts.KindWithdrawalClaimed:
		assets = &x.args.assets
	}
	if waiting != 0 {
		estimate, expires = &r.estimate, r.expires
		f.did.estimate, f.did.expires = r.estimate, r.expires
	}
	if open != 0 || waiting != 0 {
		f.did.open, f.did.waiting, f.did.request = open, waiting, x.args.id
	}
	t.bytes(user[:])
	t.bytes(asked.other[:])
	t.u32(asked.partner)
	t.amount(&asked.shares)
	t.amount(assets)
	t.amount(estimate)
	t.u64(expires)
	t.u8(uint8(open))
	t.u8(uint8(waiting))
	where(t, &x.log)
	return nil
}

// stepNumber is what the table requests calls an event of a request.
func stepNumber(e contracts.Kind) uint8 { return 1 + uint8(e-contracts.KindWithdrawalRequested) }

// edge is +1 for what begins to be, -1 for what ends.
func edge(was, is bool) int8 {
	switch {
	case is && !was:
		return 1
	case was && !is:
		return -1
	}
	return 0
}

func (f *folding) nav(x *fact) {
	t := &f.out.navs
	t.row(x.seq, 0, x.sign)
	t.u64(x.retracts)
	t.bytes(x.log.vault[:])
	t.amount(&x.args.nav)
	t.amount(&x.args.assets)
	t.amount(&x.args.shares)
	where(t, &x.log)
}

// sweep writes a sweep as it was said. That ranges follow each other is left
// to verify; a range that is none at all is noticed here.
func (f *folding) sweep(x *fact) {
	if x.sign > 0 && (x.args.id == 0 || x.args.id > x.args.to) {
		f.impossible(x.name())
	}
	t := &f.out.sweeps
	t.row(x.seq, 0, x.sign)
	t.u64(x.retracts)
	t.bytes(x.log.vault[:])
	t.u64(x.args.id)
	t.u64(x.args.to)
	t.amount(&x.args.assets)
	where(t, &x.log)
}

func signed(sign int8, v *amount) (out amount) {
	if sign < 0 {
		out.Neg(v)
		return out
	}
	return *v
}
