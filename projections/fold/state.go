package fold

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/schemas/readmodel"
)

// entryKey identifies a request (with a zero place, because the first request of an id wins), a deposit, or with a zero
// place all deposits of a number.
type entryKey struct {
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

type total struct {
	before, after steps
	read          bool
}

type block struct {
	hash common.Hash
	ts   uint32
}

// state is the content of the lists for the keys that units name, before and after the units.
type state struct {
	vaults   []common.Address
	requests map[entryKey]*pair[entry]
	deposits map[entryKey]*pair[entry]
	unswept  map[common.Address][]*entry // deposits that no sweep has reached
	// derived are valuations and claims with amounts that their logs do not contain.
	derived map[entryKey]*pair[entry]
	targets targets
	index   index
	logs    map[entry]int // other effects with rows: added (1) and removed (-1)
	totals  map[totalKey]*total
	members map[memberKey]*member
	ranks   map[memberKey]bool // users whose position in the lists by amount may change
	blocks  map[uint64]*pair[block]
	// impossible are the events of logs that contradict the state and change no request.
	impossible []string
}

func newState(vaults []common.Address) *state {
	return &state{
		vaults: vaults, requests: map[entryKey]*pair[entry]{}, deposits: map[entryKey]*pair[entry]{},
		unswept: map[common.Address][]*entry{}, derived: map[entryKey]*pair[entry]{},
		index: newIndex(), logs: map[entry]int{}, totals: map[totalKey]*total{}, members: map[memberKey]*member{},
		ranks: map[memberKey]bool{}, blocks: map[uint64]*pair[block]{},
		targets: targets{deposits: map[entryKey]bool{}, swept: map[common.Address]uint64{},
			unowned: map[requestName][]uint64{}, sources: map[requestName]bool{}, groups: map[groupedKey]bool{},
			lines: map[totalKey]*readmodel.Amount{}, derived: map[string]bool{}},
	}
}

// clip resets to an ancestor whatever the following unit may change.
func (s *state) clip(ancestor uint64) {
	for _, all := range []map[entryKey]*pair[entry]{s.requests, s.deposits, s.derived} {
		for _, e := range all {
			if e.after != nil && !e.after.clip(ancestor) {
				e.after = nil
			}
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

// reindex collects the deposits that no sweep has reached, and indexes the entries that effects refer to by other
// means.
func (s *state) reindex() {
	clear(s.unswept)
	s.index = newIndex()
	for k, d := range s.deposits {
		if d.after == nil {
			continue
		}
		if d.after.open() && !d.after.Grouped {
			s.unswept[k.vault] = append(s.unswept[k.vault], d.after)
		}
		s.index.add(d.after)
	}
	for _, q := range s.requests {
		if q.after != nil {
			s.index.add(q.after)
		}
	}
}

// fold applies the live effects of a unit, in chain order.
func (s *state) fold(u *decode.Unit) {
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
			if f.Sign < 0 {
				s.log(&e, -1)
			} else {
				live = append(live, logged{e, f.Name()})
			}
		}
	}
	slices.SortStableFunc(live, func(a, b logged) int { return a.compare(&b.entry) })
	for i := range live {
		s.log(&live[i].entry, 1)
		if !s.effect(&live[i].entry) {
			s.impossible = append(s.impossible, live[i].event)
		}
	}
}

type logged struct {
	entry
	event string
}

// log records the row that the effect itself has in some lists. The rows of deposits follow from their life.
func (s *state) log(e *entry, sign int) {
	if e.Kind == readmodel.Deposit || e.derived() {
		return
	}
	has := false
	e.logRows(func(readmodel.ListRow) { has = true })
	if has {
		s.logs[*e] += sign
	}
}

// effect applies the next live effect. It returns false if the effect is impossible.
func (s *state) effect(e *entry) bool {
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
		s.priced(e)
	case readmodel.Void:
		return s.void(e)
	case readmodel.Instant:
		s.seen(e)
		s.claims(e, &e.Assets)
	case readmodel.Requested:
		s.seen(e)
		return s.request(e)
	case readmodel.Claimed:
		return s.claim(e)
	case readmodel.Funded:
		return s.funded(e)
	case readmodel.Cancelled, readmodel.Expired:
		return s.cancelled(e)
	}
	return true
}

// add changes totals in the block of an effect.
func (s *state) add(e *entry, change func(*readmodel.ListRow), of ...totalKey) {
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

func (s *state) deposit(e *entry) {
	s.seen(e)
	s.add(e, func(n *readmodel.ListRow) {
		n.Deposits++
		n.Deposited.Add(&n.Deposited, &e.Assets)
	}, e.totals()...)
	d := e.fresh()
	at(s.deposits, entryKey{e.Vault, e.ID, e.place()}).after = d
	if s.index.add(d); d.Grouped {
		return
	}
	if to := s.totals[totalsOf(e.Vault, e.Vault)].after.newest().SweptTo; to == 0 || e.ID > to {
		s.unswept[e.Vault] = append(s.unswept[e.Vault], d)
		return
	}
	s.swept(d, e)
}

// swept marks a deposit as swept: by a sweep, or by the deposit itself if a sweep has reached its number before.
func (s *state) swept(d, by *entry) {
	d.close(by, readmodel.Amount{})
	d.ClosedBy = readmodel.Sweep
	s.add(by, func(n *readmodel.ListRow) {
		n.Swept++
		n.SweptAssets.Add(&n.SweptAssets, &d.Assets)
	}, totalsOf(d.Vault, d.Vault))
}

// sweep applies a sweep: a deposit is swept by the first sweep whose last number is at least its own.
func (s *state) sweep(e *entry) {
	vault := totalsOf(e.Vault, e.Vault)
	s.add(e, func(n *readmodel.ListRow) { n.SweptBlock, n.SweptTS = e.Block, e.TS }, vault)
	if e.IDTo <= s.totals[vault].after.newest().SweptTo {
		return
	}
	s.add(e, func(n *readmodel.ListRow) { n.SweptTo = e.IDTo }, vault)
	s.unswept[e.Vault] = slices.DeleteFunc(s.unswept[e.Vault], func(d *entry) bool {
		if d.ID > e.IDTo {
			return false
		}
		s.swept(d, e)
		return true
	})
}

// request applies a request. The first one of an id wins.
func (s *state) request(e *entry) bool {
	q := s.requests[entryKey{vault: e.Vault, id: e.ID}]
	if q.after != nil {
		return false
	}
	q.after = e.fresh()
	s.add(e, func(n *readmodel.ListRow) {
		n.Requests++
		n.Estimated.Add(&n.Estimated, &e.Assets)
	}, e.totals()...)
	if e.By == readmodel.FifoUnfunded {
		s.queueUp(q.after, e)
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

// seen makes the user of an effect a member of its scopes.
func (s *state) seen(e *entry) {
	for k, counted := range membersOf(e) {
		if m := s.members[k]; m.after == nil {
			m.after = &first{e.Block, e.TS}
			s.add(e, func(n *readmodel.ListRow) { n.Users++ }, counted)
		}
	}
}

// rank returns a user's row in the lists by amount.
func (s *state) rank(k memberKey, f *first, of func(*total) steps) *ranked {
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
func (s *state) difference(add func(sign int8, row readmodel.ListRow)) {
	for _, sign := range []int8{-1, 1} {
		s.changed(sign, func(row readmodel.ListRow) { add(sign, row) })
	}
}

// changed calls add for each row that is live only before (sign -1) or only after the units (sign 1).
func (s *state) changed(sign int8, add func(readmodel.ListRow)) {
	entries := func(all map[entryKey]*pair[entry], rows func(*entry, func(readmodel.ListRow))) {
		for _, e := range all {
			if one := e.only(sign); one != nil {
				rows(one, add)
			}
		}
	}
	entries(s.requests, (*entry).requestRows)
	entries(s.deposits, (*entry).logRows)
	entries(s.derived, (*entry).logRows)
	for e, signs := range s.logs {
		if signs*int(sign) > 0 {
			e.logRows(add)
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
func (s *state) newest() (number uint64, b *block) {
	for n, x := range s.blocks {
		if x.after != nil && (b == nil || n > number) {
			number, b = n, x.after
		}
	}
	return number, b
}

// addKeys records the keys that an effect of a log with this sign touches.
func (s *state) addKeys(e *entry, sign int8) {
	vault := totalsOf(e.Vault, e.Vault)
	switch e.Kind {
	case readmodel.Deposit, readmodel.Requested, readmodel.Instant:
		s.addRank(e)
		s.addTotals(e.totals())
		for k, counted := range membersOf(e) {
			at(s.members, k)
			at(s.totals, counted)
		}
		if e.Kind == readmodel.Requested {
			at(s.requests, entryKey{vault: e.Vault, id: e.ID})
		}
		if e.Kind == readmodel.Deposit && sign < 0 {
			s.targets.deposits[entryKey{vault: e.Vault, id: e.ID}] = true
		}
	case readmodel.Claimed:
		s.addRank(e)
		at(s.totals, vault)
		s.addTarget(e)
	case readmodel.Funded, readmodel.Cancelled, readmodel.Expired,
		readmodel.PricedDeposits, readmodel.PricedRequests, readmodel.Void:
		s.addTarget(e)
	case readmodel.Sweep:
		at(s.totals, vault)
		to := s.targets.swept[e.Vault]
		if sign > 0 {
			to = max(to, e.IDTo)
		}
		s.targets.swept[e.Vault] = to
	case readmodel.Valuation, readmodel.Supply:
		at(s.totals, vault)
	}
	if e.unowned() {
		name := requestName{vault: e.Vault, by: e.By, id: e.ID, source: e.SourceID}
		s.targets.unowned[name] = append(s.targets.unowned[name], e.Block)
	}
	if e.derived() {
		at(s.derived, entryKey{vault: e.Vault, place: e.place()})
		s.targets.derived[derivedRow(e.Kind, e.Vault, e.User, e.Block)] = true
	}
}

func (s *state) addTotals(keys []totalKey) {
	for _, k := range keys {
		at(s.totals, k)
	}
}

// addRank records the keys on which the position of an entry's user in the lists by amount depends.
func (s *state) addRank(e *entry) {
	for _, v := range s.vaults {
		at(s.totals, userIn(e.User, v))
	}
	for _, k := range []memberKey{{user: e.User}, {owner: e.Vault, user: e.User}} {
		s.ranks[k] = true
		at(s.members, k)
	}
}
