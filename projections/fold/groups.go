package fold

import (
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"

	"github.com/navlog/navlog/schemas/readmodel"
)

// groupedKey identifies the deposits or the requests of a vault, or of a user in it.
type groupedKey struct {
	kind        readmodel.EffectKind
	user, vault common.Address
	whole       bool // all users of the vault; user is not set. The zero address may be a user.
}

func groupsOfUser(kind readmodel.EffectKind, user, vault common.Address) groupedKey {
	return groupedKey{kind: kind, user: user, vault: vault}
}

func groupsOfVault(kind readmodel.EffectKind, vault common.Address) groupedKey {
	return groupedKey{kind: kind, vault: vault, whole: true}
}

// requestName is how an effect identifies a request: by its number or its 32-byte id.
type requestName struct {
	vault  common.Address
	by     readmodel.By
	id     uint64
	source common.Hash
}

// targets are the deposits and requests to which effects refer, except by the numbers and ids of requests.
type targets struct {
	deposits map[entryKey]bool         // voided and retracted deposits, by their vaults and numbers
	swept    map[common.Address]uint64 // the highest number that sweeps name, by vault; 0 if all of them are retracted
	unowned  map[requestName][]uint64  // requests with claims that name no owner, and the blocks of these claims
	groups   map[groupedKey]bool
	// lines are users in a vault whose oldest requests are claimed, by their totals, with the shares of all these claims,
	// retracted ones included.
	lines map[totalKey]*readmodel.Amount
}

// addLine records the shares that an effect takes out of the line of its user.
func (s *Change) addLine(e *entry) {
	shares := at(s.targets.lines, userIn(e.User, e.Vault))
	shares.Add(shares, &e.Shares)
	s.addTotals(userIn(e.User, e.Vault))
}

func (s *Change) addRequest(e *entry) {
	at(s.entries, requestKey(e.Vault, e.ID))
	s.places.add(placesOf("requests", "requested", e.Vault)+" AND key", e.ID)
}

func (s *Change) addDeposits(e *entry) {
	s.targets.deposits[entryKey{vault: e.Vault, id: e.ID}] = true
	s.places.add(placesOf("vault_events", "deposit", e.Vault)+" AND key", e.ID)
}

// addGroups records entries that wait for their price or funding, or stopped waiting above the ancestor.
func (s *Change) addGroups(k groupedKey) {
	s.targets.groups[k] = true
	owner, scope := k.vault, common.Address{}
	if !k.whole {
		owner, scope = k.user, k.vault
	}
	s.places.add(fmt.Sprintf("list = 'groups' AND kind = '%s' AND key > %d AND (owner, scope)", k.kind, s.ancestor),
		tuple(owner, scope))
}

// addTarget records the deposits or requests to which an effect refers.
func (s *Change) addTarget(e *entry) {
	kind := readmodel.Requested
	if e.Kind == readmodel.PricedDeposits || e.Kind == readmodel.Void {
		kind = readmodel.Deposit
	}
	switch e.By {
	case readmodel.ByID:
		if kind == readmodel.Deposit {
			s.addDeposits(e)
		} else {
			s.addRequest(e)
		}
	case readmodel.BySource:
		var key readmodel.Amount
		key.SetBytes32(e.SourceID[:])
		s.places.add(placesOf("request_sources", "requested", e.Vault)+" AND key", signed(key))
	case readmodel.ByOwner:
		if e.Kind == readmodel.Claimed {
			s.addLine(e)
		} else {
			s.addGroups(groupsOfUser(kind, e.User, e.Vault))
		}
	case readmodel.Fifo:
		s.addLine(e)
	case readmodel.ByGroup, readmodel.ByUpToGroup:
		s.addGroups(groupsOfVault(kind, e.Vault))
		s.addTotals(totalsOf(e.Vault, e.Vault))
	}
}

// addKeysOfFound records the keys that follow from the entries that the look-up found.
func (s *Change) addKeysOfFound() {
	for _, p := range s.entries {
		for _, e := range []*entry{p.before, p.after} {
			switch {
			case e == nil:
			case e.Kind == readmodel.Deposit:
				if e.Grouped && (s.targets.deposits[entryKey{vault: e.Vault, id: e.ID}] ||
					s.targets.groups[groupsOfUser(e.Kind, e.User, e.Vault)]) {
					s.addRank(e)
					s.addTotals(e.totals()...)
				}
			case e.Kind == readmodel.Requested:
				if e.By == readmodel.Fifo || e.By == readmodel.FifoUnfunded {
					s.addTotals(userIn(e.User, e.Vault))
				}
				s.addOwner(e)
			}
		}
	}
}

// addOwner records the keys of a request's owner if claims of the units name the request but no owner.
func (s *Change) addOwner(q *entry) {
	for _, name := range []requestName{{vault: q.Vault, by: readmodel.ByID, id: q.ID},
		{vault: q.Vault, by: readmodel.BySource, source: q.SourceID}} {
		for _, block := range s.targets.unowned[name] {
			s.addRank(q)
			s.addDerived(readmodel.Claimed, q.Vault, q.User, block)
		}
	}
}

// index finds deposits and requests by the ways in which effects refer to them.
type index struct {
	sources map[requestName]*entry      // the first request with an id
	pending map[groupedKey][]*entry     // entries that wait for their group, of vaults and of users in them
	deposit map[entryKey][]*entry       // grouped deposits
	lines   map[totalKey][]*entry       // requests with a place in the queue of a user in a vault
	unswept map[common.Address][]*entry // deposits that no sweep has reached
}

func newIndex() index {
	return index{map[requestName]*entry{}, map[groupedKey][]*entry{}, map[entryKey][]*entry{}, map[totalKey][]*entry{},
		map[common.Address][]*entry{}}
}

func (x *index) add(e *entry) {
	if e.pending() {
		for _, k := range []groupedKey{groupsOfVault(e.Kind, e.Vault), groupsOfUser(e.Kind, e.User, e.Vault)} {
			x.pending[k] = append(x.pending[k], e)
		}
	}
	if e.Kind == readmodel.Deposit {
		if k := (entryKey{vault: e.Vault, id: e.ID}); e.Grouped {
			x.deposit[k] = append(x.deposit[k], e)
		} else if e.open() {
			x.unswept[e.Vault] = append(x.unswept[e.Vault], e)
		}
		return
	}
	if e.SourceID != (common.Hash{}) {
		k := requestName{vault: e.Vault, by: readmodel.BySource, source: e.SourceID}
		if first := x.sources[k]; first == nil || e.compare(first) < 0 {
			x.sources[k] = e
		}
	}
	if e.inQueue() && e.open() {
		x.line(e)
	}
}

// waiting returns the selected entries that wait for their group, oldest first, and removes those that no longer wait.
func (x *index) waiting(k groupedKey, selected func(*entry) bool) (out []*entry) {
	x.pending[k] = slices.DeleteFunc(x.pending[k], func(e *entry) bool {
		if !e.pending() {
			return true
		}
		if selected(e) {
			out = append(out, e)
		}
		return false
	})
	slices.SortFunc(out, func(a, b *entry) int { return a.compare(b) })
	return out
}

// highestGroup returns the highest group that an effect reaches, which is at least the highest that earlier effects
// of its vault reached. So an entry that joins a group after its settlement takes part in the next one.
func (s *Change) highestGroup(e *entry, of func(*readmodel.ListRow) *uint64) uint64 {
	k := totalsOf(e.Vault, e.Vault)
	s.add(e, func(n *readmodel.ListRow) { *of(n) = max(*of(n), e.groupTo) }, k)
	n := s.totals[k].after.newest()
	return *of(&n)
}

// setPrice sets the price of the deposits or requests of groups; the first price counts.
func (s *Change) setPrice(e *entry) {
	k := groupsOfVault(readmodel.Deposit, e.Vault)
	to := func(n *readmodel.ListRow) *uint64 { return &n.DepositsTo }
	if e.Kind == readmodel.PricedRequests {
		k.kind = readmodel.Requested
		to = func(n *readmodel.ListRow) *uint64 { return &n.RequestsTo }
	}
	first, last := e.GroupID, e.groupTo
	if e.By == readmodel.ByUpToGroup {
		first, last = 0, s.highestGroup(e, to)
	}
	for _, d := range s.index.waiting(k, func(d *entry) bool { return d.GroupID >= first && d.GroupID <= last }) {
		switch {
		case d.PricedBlock != readmodel.Never:
		case d.Kind == readmodel.Deposit:
			d.PricedBlock, d.Shares = e.Block, quotient(&d.Assets, &e.Shares, &e.Assets)
		default:
			d.PricedBlock, d.PricedAssets = e.Block, quotient(&d.Shares, &e.Assets, &e.Shares)
		}
	}
}

// voidDeposits voids deposits that have no price yet.
func (s *Change) voidDeposits(e *entry) bool {
	var gone []*entry
	if e.By == readmodel.ByID {
		for _, d := range s.index.deposit[entryKey{vault: e.Vault, id: e.ID}] {
			if d.pending() {
				gone = append(gone, d)
			}
		}
	} else {
		gone = s.index.waiting(groupsOfUser(readmodel.Deposit, e.User, e.Vault),
			func(d *entry) bool { return d.GroupID == e.GroupID })
	}
	for _, d := range gone {
		d.close(e, readmodel.Amount{})
		s.add(e, func(n *readmodel.ListRow) {
			n.Deposits--
			n.Deposited.Sub(&n.Deposited, &d.Assets)
		}, d.totals()...)
	}
	return len(gone) > 0
}

// requestOf returns the request that an effect identifies by a number or by its 32-byte id; nil if there is none.
func (s *Change) requestOf(e *entry) *entry {
	if e.By == readmodel.BySource {
		return s.index.sources[requestName{vault: e.Vault, by: readmodel.BySource, source: e.SourceID}]
	}
	return s.entries[requestKey(e.Vault, e.ID)].after
}

// applyFunding applies the funding of one request, or of all requests up to a group.
func (s *Change) applyFunding(e *entry) bool {
	if e.By == readmodel.ByUpToGroup {
		last := s.highestGroup(e, func(n *readmodel.ListRow) *uint64 { return &n.FundedTo })
		for _, q := range s.index.waiting(groupsOfVault(readmodel.Requested, e.Vault),
			func(q *entry) bool { return q.GroupID <= last }) {
			s.fund(q, e, true)
		}
		return true
	}
	q := s.requestOf(e)
	if q == nil || !q.open() || q.FundedBlock != readmodel.Never {
		return false
	}
	s.fund(q, e, e.lacks.assets)
	return true
}

// fund marks a request as funded. If the log does not contain the assets, they follow from the group's price, or else
// are the estimate.
func (s *Change) fund(q, e *entry, derive bool) {
	q.FundedBlock, q.FundedTS, q.FundedAssets = e.Block, e.TS, e.Assets
	switch {
	case !derive:
	case q.Grouped && q.PricedBlock != readmodel.Never:
		q.FundedAssets = q.PricedAssets
	default:
		q.FundedAssets = q.Assets
	}
	if q.By == readmodel.Fifo {
		s.placeInQueue(q, e)
		s.index.line(q)
	}
}

func (x *index) line(q *entry) {
	k := userIn(q.User, q.Vault)
	x.lines[k] = append(x.lines[k], q)
}

// placeInQueue gives a request its place in its owner's queue, by an effect.
func (s *Change) placeInQueue(q, by *entry) {
	s.add(by, func(n *readmodel.ListRow) {
		q.CumFrom = n.FundedShares
		n.FundedShares.Add(&n.FundedShares, &q.Shares)
		q.CumTo = n.FundedShares
	}, userIn(q.User, q.Vault))
}

func (s *Change) claims(e *entry, assets *readmodel.Amount) {
	s.add(e, func(n *readmodel.ListRow) {
		n.Claims++
		n.Claimed.Add(&n.Claimed, assets)
	}, userIn(e.User, e.Vault), totalsOf(e.Vault, e.Vault))
}

// claim applies a claim of one request, or of the oldest shares of an owner. A claim beyond the funded shares claims
// nothing.
func (s *Change) claim(e *entry) bool {
	if e.By != readmodel.ByOwner {
		q := s.requestOf(e)
		possible := q != nil && q.open()
		if e.derived() {
			paid := *e
			if q != nil && e.lacks.assets {
				paid.Assets = q.amountPaid()
			}
			if q != nil && e.unowned() {
				paid.User = q.User
			}
			s.derive(&paid)
			e = &paid
		}
		s.claims(e, &e.Assets)
		if possible {
			q.close(e, e.Assets)
		}
		return possible
	}
	s.claims(e, &e.Assets)
	return s.consume(e)
}

// consume removes shares from an owner's requests, oldest first: those of a claim are paid, and those of a
// cancellation return to their owner. A request ends with its last share.
func (s *Change) consume(e *entry) bool {
	possible := true
	var claimed readmodel.Amount
	k := userIn(e.User, e.Vault)
	s.add(e, func(n *readmodel.ListRow) {
		n.ClaimedShares.Add(&n.ClaimedShares, &e.Shares)
		if n.ClaimedShares.Gt(&n.FundedShares) {
			possible, n.ClaimedShares = false, n.FundedShares
		}
		claimed = n.ClaimedShares
	}, k)
	s.index.lines[k] = slices.DeleteFunc(s.index.lines[k], func(q *entry) bool {
		if q.open() && !q.CumTo.Gt(&claimed) {
			if e.Kind == readmodel.Claimed {
				q.close(e, q.amountPaid())
			} else {
				q.close(e, readmodel.Amount{})
			}
		}
		return !q.open()
	})
	return possible
}

// amountPaid is the amount paid for a request whose claim does not contain it.
func (e *entry) amountPaid() readmodel.Amount {
	if e.FundedBlock != readmodel.Never {
		return e.FundedAssets
	}
	return e.Assets
}

// cancelled applies the cancellation of one request, or of all unfunded requests of its owner in a group.
func (s *Change) cancelled(e *entry) bool {
	if e.By == readmodel.Fifo {
		return s.consume(e)
	}
	if e.By == readmodel.ByOwner {
		all := s.index.waiting(groupsOfUser(readmodel.Requested, e.User, e.Vault),
			func(q *entry) bool { return q.GroupID == e.GroupID })
		for _, q := range all {
			q.close(e, readmodel.Amount{})
		}
		return len(all) > 0
	}
	q := s.requestOf(e)
	if q == nil || !q.open() {
		return false
	}
	q.close(e, e.Assets)
	return true
}

// valuation applies a valuation, with the amounts that its log does not contain.
func (s *Change) valuation(e *entry) {
	v := e
	if e.derived() {
		v = s.complete(e)
		s.derive(v)
	}
	s.add(e, func(n *readmodel.ListRow) {
		n.Valuations++
		n.Shares, n.Assets, n.Nav = v.Shares, v.Assets, v.Nav
		n.ValuedBlock, n.ValuedLog, n.ValuedTS = e.Block, e.LogIndex, e.TS
	}, totalsOf(e.Vault, e.Vault))
}

// complete returns a valuation with all amounts: the supply follows from the other two, or from earlier mints and
// burns, and NAV and assets follow from each other. A sum of mints that is not a valid amount is not used.
func (s *Change) complete(e *entry) *entry {
	v := *e
	unit := uint256.NewInt(10)
	unit.Exp(unit, uint256.NewInt(uint64(v.lacks.navDigits)))
	if v.lacks.shares {
		if !v.lacks.nav && !v.lacks.assets {
			v.Shares = quotient(&v.Assets, unit, &v.Nav)
		} else if supply := s.totals[totalsOf(v.Vault, v.Vault)].after.newest().Supply; supply.Sign() > 0 &&
			supply.BitLen() <= amountBits {
			v.Shares = supply
		}
	}
	if v.lacks.nav {
		v.Nav = quotient(&v.Assets, unit, &v.Shares)
	}
	if v.lacks.assets {
		v.Assets = quotient(&v.Nav, &v.Shares, unit)
	}
	return &v
}

// derive records an effect with the amounts that its log does not contain, in the form that the lists store.
func (s *Change) derive(e *entry) {
	row := *e
	row.By, row.GroupID, row.groupTo, row.SourceID, row.lacks = readmodel.ByNone, 0, 0, common.Hash{}, lacks{}
	s.entries[e.key()].after = &row
}

// quotient is a*b/c, rounded down; 0 if the result is not a valid amount.
func quotient(a, b, c *readmodel.Amount) (out readmodel.Amount) {
	if c.IsZero() {
		return out
	}
	if _, overflow := out.MulDivOverflow(a, b, c); overflow || out.BitLen() > amountBits {
		return readmodel.Amount{}
	}
	return out
}

// amountBits is the maximum number of bits of an amount: see readmodel.MaxAmount.
const amountBits = 191
