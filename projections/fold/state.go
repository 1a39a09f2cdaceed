package fold

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/schemas/readmodel"
)

// entryKey identifies an effect; with a zero place the request with a number, of which the first one counts; and with
// only vault and id all deposits of a number.
type entryKey struct {
	kind  readmodel.EffectKind
	vault common.Address
	id    uint64
	place place
}

// pair is what the lists have of a key before and after the units; nil for nothing.
type pair[T comparable] struct{ before, after *T }

// at returns the value of a key, which it adds if it is missing.
func at[K comparable, V any](all map[K]*V, key K) *V {
	if all[key] == nil {
		all[key] = new(V)
	}
	return all[key]
}

type total struct{ before, after steps }

type block struct {
	hash common.Hash
	ts   uint32
}

// Change is the change of lists by some units: their content for the keys that the units name, before and after.
type Change struct {
	// Cursor is the cursor after the units.
	Cursor readmodel.ListsCursor
	// Impossible are the events of logs that contradict the state and change no request.
	Impossible []string

	before   readmodel.ListsCursor
	ancestor uint64 // the newest block about which the units change nothing
	retracts bool
	vaults   []common.Address
	// places and numbers name the rows of entries and blocks, and of totals and members, that are not read yet;
	// reverted those of valuations and claims whose logs do not contain all amounts.
	places, numbers, reverted keys
	targets                   targets
	index                     index
	entries                   map[entryKey]*pair[entry]
	totals                    map[totalKey]*total
	members                   map[memberKey]*pair[first]
	ranks                     map[memberKey]bool // users whose position in the lists by amount may change
	blocks                    map[uint64]*pair[block]
}

func newChange(vaults []common.Address) *Change {
	return &Change{
		vaults: vaults, places: keys{}, numbers: keys{}, reverted: keys{}, index: newIndex(),
		entries: map[entryKey]*pair[entry]{}, totals: map[totalKey]*total{}, members: map[memberKey]*pair[first]{},
		ranks: map[memberKey]bool{}, blocks: map[uint64]*pair[block]{},
		targets: targets{deposits: map[entryKey]bool{}, swept: map[common.Address]uint64{},
			unowned: map[requestName][]uint64{}, groups: map[groupedKey]bool{}, lines: map[totalKey]*readmodel.Amount{}},
	}
}

// clip resets to an ancestor whatever the following unit may change.
func (s *Change) clip(ancestor uint64) {
	for _, e := range s.entries {
		if e.after != nil && !e.after.clip(ancestor) {
			e.after = nil
		}
	}
	for _, t := range s.totals {
		t.after = t.after.clip(ancestor)
	}
	for _, m := range s.members {
		if m.after != nil && m.after.block > ancestor {
			m.after = nil
		}
	}
	for n, b := range s.blocks {
		if n > ancestor {
			b.after = nil
		}
	}
	s.reindex()
}

// reindex indexes the entries to which effects refer by other means than their keys.
func (s *Change) reindex() {
	s.index = newIndex()
	for _, e := range s.entries {
		if e.after != nil && e.after.tracked() {
			s.index.add(e.after)
		}
	}
}

// fold applies the live effects of a unit, in chain order.
func (s *Change) fold(u *decode.Unit) {
	var live []logged
	for f := range u.Facts.All() {
		if f.Skipped {
			continue
		}
		if f.Kind == readmodel.BlockRecord && f.Sign > 0 {
			at(s.blocks, f.Log.Block).after = &block{f.Hash, f.Log.Time} // clip has removed the retracted ones
		}
		for i := range f.Effects {
			e := entryOf(f, i)
			switch {
			case f.Sign > 0:
				live = append(live, logged{e, f.Name()})
			case e.static():
				at(s.entries, e.key()).before = &e
			}
		}
	}
	slices.SortStableFunc(live, func(a, b logged) int { return a.compare(&b.entry) })
	for i := range live {
		e := &live[i].entry
		if e.static() {
			at(s.entries, e.key()).after = e
		}
		if !s.effect(e) {
			s.Impossible = append(s.Impossible, live[i].event)
		}
	}
}

type logged struct {
	entry
	event string
}

// effect applies the next live effect. It returns false if the effect is impossible.
func (s *Change) effect(e *entry) bool {
	switch e.Kind {
	case readmodel.Deposit:
		s.deposit(e)
	case readmodel.Sweep:
		s.sweep(e)
	case readmodel.Valuation:
		s.valuation(e)
	case readmodel.Supply:
		s.add(e, func(n *readmodel.ListRow) { n.Supply.Add(&n.Supply, &e.Shares) }, totalsOf(e.Vault, e.Vault))
	case readmodel.PricedDeposits, readmodel.PricedRequests:
		s.setPrice(e)
	case readmodel.Void:
		return s.voidDeposits(e)
	case readmodel.Instant:
		s.addMemberships(e)
		s.claims(e, &e.Assets)
	case readmodel.Requested:
		s.addMemberships(e)
		return s.request(e)
	case readmodel.Claimed:
		return s.claim(e)
	case readmodel.Funded:
		return s.applyFunding(e)
	case readmodel.Cancelled, readmodel.Expired:
		return s.cancelled(e)
	}
	return true
}

// add changes totals in the block of an effect.
func (s *Change) add(e *entry, change func(*readmodel.ListRow), of ...totalKey) {
	for _, k := range of {
		t := s.totals[k]
		t.after = t.after.add(e.Block, e.TS, change)
	}
}

// totals returns the keys of the totals of an effect's user, vault and partner.
func (e *entry) totals() []totalKey {
	out := []totalKey{userIn(e.User, e.Vault), totalsOf(e.Vault, e.Vault)}
	if e.Partner > 0 {
		out = append(out, totalsOf(readmodel.PartnerOwner(e.Partner), e.Vault))
	}
	return out
}

func (s *Change) deposit(e *entry) {
	s.addMemberships(e)
	s.add(e, func(n *readmodel.ListRow) {
		n.Deposits++
		n.Deposited.Add(&n.Deposited, &e.Assets)
	}, e.totals()...)
	d := e.fresh()
	at(s.entries, e.key()).after = d
	if to := s.totals[totalsOf(e.Vault, e.Vault)].after.newest().SweptTo; !d.Grouped && to > 0 && e.ID <= to {
		s.swept(d, e)
	}
	s.index.add(d)
}

// swept marks a deposit as swept: by a sweep, or by the deposit itself if a sweep has reached its number before.
func (s *Change) swept(d, by *entry) {
	d.close(by, readmodel.Amount{})
	d.ClosedBy = readmodel.Sweep
	s.add(by, func(n *readmodel.ListRow) {
		n.Swept++
		n.SweptAssets.Add(&n.SweptAssets, &d.Assets)
	}, totalsOf(d.Vault, d.Vault))
}

// sweep applies a sweep: a deposit is swept by the first sweep whose last number is at least its own.
func (s *Change) sweep(e *entry) {
	vault := totalsOf(e.Vault, e.Vault)
	s.add(e, func(n *readmodel.ListRow) { n.SweptBlock, n.SweptTS = e.Block, e.TS }, vault)
	if e.IDTo <= s.totals[vault].after.newest().SweptTo {
		return
	}
	s.add(e, func(n *readmodel.ListRow) { n.SweptTo = e.IDTo }, vault)
	s.index.unswept[e.Vault] = slices.DeleteFunc(s.index.unswept[e.Vault], func(d *entry) bool {
		if d.ID > e.IDTo {
			return false
		}
		s.swept(d, e)
		return true
	})
}

// request applies a request. The first one of an id wins.
func (s *Change) request(e *entry) bool {
	q := s.entries[requestKey(e.Vault, e.ID)]
	if q.after != nil {
		return false
	}
	q.after = e.fresh()
	s.add(e, func(n *readmodel.ListRow) {
		n.Requests++
		n.Estimated.Add(&n.Estimated, &e.Assets)
	}, e.totals()...)
	if e.By == readmodel.FifoUnfunded {
		s.placeInQueue(q.after, e)
	}
	s.index.add(q.after)
	return true
}

// membersOf returns the scopes of which a deposit or request makes its user a member, each with the totals that count
// its users.
func membersOf(e *entry) map[memberKey]totalKey {
	out := map[memberKey]totalKey{
		{user: e.User}:                 totalsOf(common.Address{}, common.Address{}),
		{owner: e.Vault, user: e.User}: totalsOf(e.Vault, e.Vault),
	}
	if e.Kind == readmodel.Deposit && e.Partner > 0 {
		p := readmodel.PartnerOwner(e.Partner)
		out[memberKey{owner: p, user: e.User}] = totalsOf(p, common.Address{})
		out[memberKey{owner: p, scope: e.Vault, user: e.User}] = totalsOf(p, e.Vault)
	}
	return out
}

// addMemberships makes the user of an effect a member of its scopes.
func (s *Change) addMemberships(e *entry) {
	for k, counted := range membersOf(e) {
		if m := s.members[k]; m.after == nil {
			m.after = &first{e.Block, e.TS}
			s.add(e, func(n *readmodel.ListRow) { n.Users++ }, counted)
		}
	}
}

// rank returns a user's row in the lists by amount.
func (s *Change) rank(k memberKey, f *first, of func(*total) steps) *ranked {
	if f == nil {
		return nil
	}
	out := &ranked{first: *f}
	vaults := s.vaults
	if k.owner != (common.Address{}) {
		vaults = []common.Address{k.owner}
	}
	for _, v := range vaults {
		if t := s.totals[userIn(k.user, v)]; t != nil {
			n := of(t).newest()
			out.deposited.Add(&out.deposited, &n.Deposited)
			out.claimed.Add(&out.claimed, &n.Claimed)
		}
	}
	return out
}

// difference calls add with sign -1 for each row that is no longer live, and then with 1 for each new live row: of
// rows with the same key, the engine keeps the last.
func (s *Change) difference(add func(sign int8, row readmodel.ListRow)) {
	for _, sign := range []int8{-1, 1} {
		s.changed(sign, func(row readmodel.ListRow) { add(sign, row) })
	}
}

// changed calls add for each row that is live only before (sign -1) or only after the units (sign 1).
func (s *Change) changed(sign int8, add func(readmodel.ListRow)) {
	for _, e := range s.entries {
		if one := e.only(sign); one != nil {
			one.rows(add)
		}
	}
	for k, t := range s.totals {
		rows, others := t.before.rows(k), t.after.rows(k)
		if sign > 0 {
			rows, others = others, rows
		}
		for _, r := range rows {
			if !slices.Contains(others, r) {
				add(r)
			}
		}
	}
	for k, m := range s.members {
		k.rows(m.only(sign), add)
	}
	for k := range s.ranks {
		m := s.members[k]
		rank := pair[ranked]{s.rank(k, m.before, func(t *total) steps { return t.before }),
			s.rank(k, m.after, func(t *total) steps { return t.after })}
		k.rankedRows(rank.only(sign), add)
	}
	for n, b := range s.blocks {
		if one := b.only(sign); one != nil {
			add(one.row(n))
		}
	}
}

// only returns what is true only before (sign -1) or only after the units (sign 1); nil if both are equal.
func (p pair[T]) only(sign int8) *T {
	switch {
	case p.before != nil && p.after != nil && *p.before == *p.after:
		return nil
	case sign < 0:
		return p.before
	}
	return p.after
}

func (b *block) row(number uint64) readmodel.ListRow {
	row := readmodel.ListRow{List: readmodel.Blocks, Block: number, TS: b.ts, Hash: b.hash}
	row.Key.SetUint64(number)
	return row
}

// newest returns the newest of the blocks that the units name.
func (s *Change) newest() (number uint64, b *block) {
	for n, x := range s.blocks {
		if x.after != nil && (b == nil || n > number) {
			number, b = n, x.after
		}
	}
	return number, b
}

// addKeys records the keys that an effect of a log with this sign touches.
func (s *Change) addKeys(e *entry, sign int8) {
	vault := totalsOf(e.Vault, e.Vault)
	switch e.Kind {
	case readmodel.Deposit, readmodel.Requested, readmodel.Instant:
		s.addRank(e)
		s.addTotals(e.totals()...)
		for k, counted := range membersOf(e) {
			s.addMember(k)
			s.addTotals(counted)
		}
		if e.Kind == readmodel.Requested {
			s.addRequest(e)
		}
		if e.Kind == readmodel.Deposit && sign < 0 {
			s.addDeposits(e)
		}
	case readmodel.Claimed:
		s.addRank(e)
		s.addTotals(vault)
		s.addTarget(e)
	case readmodel.Funded, readmodel.Cancelled, readmodel.Expired,
		readmodel.PricedDeposits, readmodel.PricedRequests, readmodel.Void:
		s.addTarget(e)
	case readmodel.Sweep:
		s.addTotals(vault)
		to := s.targets.swept[e.Vault]
		if sign > 0 {
			to = max(to, e.IDTo)
		}
		s.targets.swept[e.Vault] = to
	case readmodel.Valuation, readmodel.Supply:
		s.addTotals(vault)
	}
	if e.unowned() {
		name := requestName{vault: e.Vault, by: e.By, id: e.ID, source: e.SourceID}
		s.targets.unowned[name] = append(s.targets.unowned[name], e.Block)
	}
	if e.derived() {
		at(s.entries, e.key())
		s.addDerived(e.Kind, e.Vault, e.User, e.Block)
	}
}

// addRank records the keys on which the position of an entry's user in the lists by amount depends.
func (s *Change) addRank(e *entry) {
	for _, v := range s.vaults {
		s.addTotals(userIn(e.User, v))
	}
	for _, k := range []memberKey{{user: e.User}, {owner: e.Vault, user: e.User}} {
		s.ranks[k] = true
		s.addMember(k)
	}
}
