package fold

import (
	"maps"
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

// story is a request or deposit before and after the units.
type story struct{ old, now *entry }

// total is running totals before and after the units.
type total struct {
	old, now steps
	read     bool
}

// block is a block in the list of blocks.
type block struct {
	hash common.Hash
	ts   uint32
}

// state is the content of the lists for the keys that units name, before and after the units.
type state struct {
	vaults   []common.Address
	requests map[entryKey]*story
	deposits map[entryKey]*story
	unswept  map[common.Address][]*entry // deposits that no sweep has reached
	// derived are valuations and claims with amounts that their logs do not contain.
	derived map[entryKey]*story
	named   named
	index   index
	logs    map[entry]int // other effects with rows: added (1) and removed (-1)
	totals  map[totalKey]*total
	members map[memberKey]*member
	ranks   map[memberKey]bool // users whose position in the lists by amount may change
	blocks  map[uint64]*struct{ old, now *block }
	// impossible are the events of logs that contradict the state and change no request.
	impossible []string
}

func newState(vaults []common.Address) *state {
	return &state{
		vaults: vaults, requests: map[entryKey]*story{}, deposits: map[entryKey]*story{},
		unswept: map[common.Address][]*entry{}, derived: map[entryKey]*story{}, named: newNamed(), index: newIndex(),
		logs: map[entry]int{}, totals: map[totalKey]*total{}, members: map[memberKey]*member{}, ranks: map[memberKey]bool{},
		blocks: map[uint64]*struct{ old, now *block }{},
	}
}

// clip resets to an ancestor whatever the following unit may change.
func (s *state) clip(ancestor uint64) {
	for _, all := range []map[entryKey]*story{s.requests, s.deposits, s.derived} {
		for _, e := range all {
			if e.now != nil && !e.now.clip(ancestor) {
				e.now = nil
			}
		}
	}
	for _, t := range s.totals {
		t.now = t.now.clip(ancestor)
	}
	for _, m := range s.members {
		if m.now != nil && m.now.block > ancestor {
			m.now = nil
		}
	}
	for n, b := range s.blocks {
		if n > ancestor {
			b.now = nil
		}
	}
	s.waiting()
}

// waiting collects the deposits that no sweep has reached, and indexes the entries that effects refer to by other
// means.
func (s *state) waiting() {
	clear(s.unswept)
	s.index = newIndex()
	for k, d := range s.deposits {
		if d.now == nil {
			continue
		}
		if d.now.open() && !d.now.Grouped {
			s.unswept[k.vault] = append(s.unswept[k.vault], d.now)
		}
		s.index.add(d.now)
	}
	for _, q := range s.requests {
		if q.now != nil {
			s.index.add(q.now)
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
			s.block(f)
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

// logged is an effect with the event that it comes from.
type logged struct {
	entry
	event string
}

// block applies the record of a live block. Retracted blocks were removed by clip.
func (s *state) block(f *decode.Fact) {
	b := s.blocks[f.Log.Block]
	if b == nil {
		b = new(struct{ old, now *block })
		s.blocks[f.Log.Block] = b
	}
	b.now = &block{f.Hash, f.Log.Time}
}

// log records the row that the effect itself has in some lists. The rows of deposits follow from their story.
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
		s.add(totalsOf(e.Vault, e.Vault), e, func(n *readmodel.ListRow) { n.Supply.Add(&n.Supply, &e.Shares) })
	case readmodel.PricedDeposits, readmodel.PricedRequests:
		s.priced(e)
	case readmodel.Void:
		return s.void(e)
	case readmodel.Instant:
		s.seen(e, false)
		s.claims(e, &e.Assets)
	case readmodel.Requested:
		s.seen(e, false)
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

// count changes the totals of the given keys.
func (s *state) count(e *entry, of []totalKey, change func(*readmodel.ListRow)) {
	for _, k := range of {
		s.add(k, e, change)
	}
}

func (s *state) add(k totalKey, e *entry, change func(*readmodel.ListRow)) {
	t := s.totals[k]
	t.now = t.now.add(e.Block, e.TS, change)
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
	s.seen(e, true)
	s.count(e, e.totals(), func(n *readmodel.ListRow) {
		n.Deposits++
		n.Deposited.Add(&n.Deposited, &e.Assets)
	})
	d := e.fresh()
	k := entryKey{e.Vault, e.ID, e.place()}
	if s.deposits[k] == nil {
		s.deposits[k] = new(story)
	}
	s.deposits[k].now = d
	if s.index.add(d); d.Grouped {
		return
	}
	if to := s.totals[totalsOf(e.Vault, e.Vault)].now.newest().SweptTo; to == 0 || e.ID > to {
		s.unswept[e.Vault] = append(s.unswept[e.Vault], d)
		return
	}
	s.swept(d, e)
}

// swept marks a deposit as swept: by a sweep, or by the deposit itself if a sweep has reached its number before.
func (s *state) swept(d, by *entry) {
	d.close(by, readmodel.Amount{})
	d.ClosedBy = readmodel.Sweep
	s.add(totalsOf(d.Vault, d.Vault), by, func(n *readmodel.ListRow) {
		n.Swept++
		n.SweptAssets.Add(&n.SweptAssets, &d.Assets)
	})
}

// sweep applies a sweep: a deposit is swept by the first sweep whose last number is at least its own.
func (s *state) sweep(e *entry) {
	s.add(totalsOf(e.Vault, e.Vault), e, func(n *readmodel.ListRow) { n.SweptBlock, n.SweptTS = e.Block, e.TS })
	if e.IDTo <= s.totals[totalsOf(e.Vault, e.Vault)].now.newest().SweptTo {
		return
	}
	s.add(totalsOf(e.Vault, e.Vault), e, func(n *readmodel.ListRow) { n.SweptTo = e.IDTo })
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
	if q.now != nil {
		return false
	}
	q.now = e.fresh()
	s.count(e, e.totals(), func(n *readmodel.ListRow) {
		n.Requests++
		n.Estimated.Add(&n.Estimated, &e.Assets)
	})
	if e.By == readmodel.FifoUnfunded {
		s.queueUp(q.now, e)
	}
	s.index.add(q.now)
	return true
}

// membersOf returns the scopes of which a deposit or request makes its user a member, each with the totals that count
// its users.
func membersOf(e *entry, deposit bool) map[memberKey]totalKey {
	out := map[memberKey]totalKey{
		{user: e.User}:                 totalsOf(common.Address{}, common.Address{}),
		{owner: e.Vault, user: e.User}: totalsOf(e.Vault, e.Vault),
	}
	if deposit && e.Partner > 0 {
		p := readmodel.PartnerOwner(e.Partner)
		out[memberKey{owner: p, user: e.User}] = totalsOf(p, common.Address{})
		out[memberKey{owner: p, scope: e.Vault, user: e.User}] = totalsOf(p, e.Vault)
	}
	return out
}

// seen makes the user of an effect a member of its scopes.
func (s *state) seen(e *entry, deposit bool) {
	for k, counted := range membersOf(e, deposit) {
		if m := s.members[k]; m.now == nil {
			m.now = &first{e.Block, e.TS}
			s.add(counted, e, func(n *readmodel.ListRow) { n.Users++ })
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
	entries := func(all map[entryKey]*story, rows func(*entry, func(readmodel.ListRow))) {
		for _, e := range all {
			if one := only(sign, e.old, e.now); one != nil {
				rows(one, add)
			}
		}
	}
	entries(s.requests, (*entry).requestRows)
	entries(s.deposits, (*entry).depositRows)
	entries(s.derived, (*entry).logRows)
	for e, signs := range s.logs {
		if signs*int(sign) > 0 {
			e.logRows(add)
		}
	}
	for k, t := range s.totals {
		rows, others := t.old.rows(k), t.now.rows(k)
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
		k.rows(only(sign, m.old, m.now), add)
	}
	for k := range s.ranks {
		m := s.members[k]
		old := s.rank(k, m.old, func(t *total) steps { return t.old })
		now := s.rank(k, m.now, func(t *total) steps { return t.now })
		k.rankedRows(only(sign, old, now), add)
	}
	for n, b := range s.blocks {
		if one := only(sign, b.old, b.now); one != nil {
			add(one.row(n))
		}
	}
}

// only returns what is true only before (sign -1) or only after the units (sign 1); nil if both are equal.
func only[T comparable](sign int8, old, now *T) *T {
	switch {
	case old != nil && now != nil && *old == *now:
		return nil
	case sign < 0:
		return old
	}
	return now
}

func (b *block) row(number uint64) readmodel.ListRow {
	row := readmodel.ListRow{List: readmodel.Blocks, Block: number, TS: b.ts, Hash: b.hash}
	row.Key.SetUint64(number)
	return row
}

// newest returns the newest of the blocks that the units name.
func (s *state) newest() (number uint64, b *block) {
	for n, x := range s.blocks {
		if x.now != nil && (b == nil || n > number) {
			number, b = n, x.now
		}
	}
	return number, b
}

// userTotals returns the keys of a user's totals in each vault, from which the lists by amount follow.
func (s *state) userTotals(user common.Address) (out []totalKey) {
	for _, v := range s.vaults {
		out = append(out, userIn(user, v))
	}
	return out
}

// ranked records the keys on which the position of an entry's user in the lists by amount depends.
func (s *state) ranked(e *entry) {
	for _, k := range s.userTotals(e.User) {
		s.total(k)
	}
	for _, k := range []memberKey{{user: e.User}, {owner: e.Vault, user: e.User}} {
		s.ranks[k] = true
		if s.members[k] == nil {
			s.members[k] = new(member)
		}
	}
}

// name records the keys that an effect touches.
func (s *state) name(e *entry) {
	request := func() {
		k := entryKey{vault: e.Vault, id: e.ID}
		if s.requests[k] == nil {
			s.requests[k] = new(story)
		}
	}
	totals := func(keys ...totalKey) {
		for _, k := range keys {
			s.total(k)
		}
	}
	ranks := func() { s.ranked(e) }
	switch e.Kind {
	case readmodel.Deposit, readmodel.Requested:
		ranks()
		totals(e.totals()...)
		of := membersOf(e, e.Kind == readmodel.Deposit)
		totals(slices.Collect(maps.Values(of))...)
		for k := range of {
			if s.members[k] == nil {
				s.members[k] = new(member)
			}
		}
		if e.Kind == readmodel.Requested {
			request()
		}
	case readmodel.Claimed:
		ranks()
		totals(totalsOf(e.Vault, e.Vault))
		s.name1(e, request)
	case readmodel.Instant:
		ranks()
		totals(totalsOf(e.Vault, e.Vault))
		for k, counted := range membersOf(e, false) {
			totals(counted)
			if s.members[k] == nil {
				s.members[k] = new(member)
			}
		}
	case readmodel.Funded, readmodel.Cancelled, readmodel.Expired:
		s.name1(e, request)
	case readmodel.PricedDeposits, readmodel.PricedRequests, readmodel.Void:
		s.name1(e, func() { s.named.ids[entryKey{vault: e.Vault, id: e.ID}] = true })
	case readmodel.Sweep, readmodel.Valuation, readmodel.Supply:
		totals(totalsOf(e.Vault, e.Vault))
	}
	if e.unowned() {
		name := requestName{vault: e.Vault, by: e.By, id: e.ID, source: e.SourceID}
		s.named.unowned[name] = append(s.named.unowned[name], e.Block)
	}
	if e.derived() {
		s.derived[entryKey{vault: e.Vault, place: e.place()}] = new(story)
		s.named.derived[derivedKey{e.Vault, e.User, e.Kind, e.Block}] = true
	}
}

// total records the key of running totals.
func (s *state) total(k totalKey) {
	if s.totals[k] == nil {
		s.totals[k] = new(total)
	}
}
