// Package expect computes the expected content of the table lists from effects: in Go, slowly and simply, without SQL
// and without the code of the programs. `navlog verify` compares lists with it, and tests fill tables from it.
//
//	effects, in chain order ─▶ Lists, the rows ─▶ Table, the changes from what a table has
package expect

import (
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/readmodel"
)

// Lists returns the rows of lists for live effects, which must be in chain order: all lists but blocks, touched and
// the cursor.
func Lists(effects []readmodel.EventRow) []readmodel.ListRow {
	l := lists{
		deposits: map[common.Address][]*readmodel.ListRow{}, requests: map[requestKey]*readmodel.ListRow{},
		requestsOf: map[common.Address][]*readmodel.ListRow{}, members: map[member]*readmodel.ListRow{},
		totals: map[owned][]readmodel.ListRow{},
	}
	for _, e := range effects {
		l.add(e)
	}
	return l.all()
}

// lists is built from effects, one after the other in chain order.
type lists struct {
	rows       []readmodel.ListRow // rows that never change
	deposits   map[common.Address][]*readmodel.ListRow
	requests   map[requestKey]*readmodel.ListRow
	requestsOf map[common.Address][]*readmodel.ListRow // the requests, in chain order
	members    map[member]*readmodel.ListRow
	totals     map[owned][]readmodel.ListRow // the steps, oldest first
}

type requestKey struct {
	vault common.Address
	id    uint64
}

type scope struct{ owner, vault common.Address }

// owned identifies totals: those of users are in a separate list.
type owned struct {
	list readmodel.List
	scope
}

// member is a user in a scope; ranked if the scope ranks its users by amount.
type member struct {
	scope
	ranked bool
	user   common.Address
}

// everything is the owner of the lists of all vaults.
var everything common.Address

func (l *lists) add(e readmodel.EventRow) {
	row := readmodel.ListRow{
		Kind: e.Effect, Block: e.Block, LogIndex: e.LogIndex, Sub: e.Sub, TS: e.TS, Hash: e.Tx,
		User: e.User, Vault: e.Vault, Other: e.Other, Partner: e.Partner, ID: e.ID, IDTo: e.IDTo,
		Shares: e.Shares, Assets: e.Assets, Nav: e.Nav, Expires: e.Expires,
	}
	if row.Kind == readmodel.Deposit || row.Kind == readmodel.Requested {
		row.By, row.Grouped, row.GroupID, row.SourceID, row.Matures = e.By, e.Grouped, e.GroupID, e.SourceID, e.Matures
	}
	switch row.Kind {
	case readmodel.Deposit:
		l.deposit(row)
	case readmodel.Requested:
		l.request(row)
	case readmodel.Sweep:
		l.put(readmodel.VaultEvents, row.Vault, row)
		l.sweep(row)
	case readmodel.Valuation:
		l.value(&row, e)
		l.put(readmodel.VaultEvents, row.Vault, row)
		l.step(ofVault(row.Vault), row.Block, row.TS, func(t *readmodel.ListRow) {
			t.Valuations++
			t.Shares, t.Assets, t.Nav = row.Shares, row.Assets, row.Nav
			t.ValuedBlock, t.ValuedLog, t.ValuedTS = row.Block, row.LogIndex, row.TS
		})
	case readmodel.Supply:
		if !row.Shares.IsZero() {
			l.step(ofVault(row.Vault), row.Block, row.TS, func(t *readmodel.ListRow) { t.Supply.Add(&t.Supply, &row.Shares) })
		}
	case readmodel.PricedDeposits, readmodel.PricedRequests:
		l.price(row, e)
	case readmodel.Void:
		l.void(row, e)
	case readmodel.Instant:
		l.put(readmodel.VaultEvents, row.Vault, row)
		l.seen(row)
		l.paid(row)
	case readmodel.Claimed:
		q := l.named(row, e)
		if e.NoAssets && q != nil {
			row.Assets = worth(q)
		}
		if row.User == (common.Address{}) && q != nil { // only the request is named
			row.User = q.User
		}
		l.paid(row)
		if e.By == readmodel.ByOwner {
			l.take(row)
		} else {
			l.change(q, row, e)
		}
	case readmodel.Cancelled:
		switch e.By {
		case readmodel.Fifo:
			l.take(row)
		case readmodel.ByOwner:
			for _, q := range l.requestsOf[row.Vault] {
				if q.User == row.User && q.Grouped && q.GroupID == e.GroupID && q.FundedBlock == readmodel.Never {
					l.change(q, row, e)
				}
			}
		default:
			l.change(l.named(row, e), row, e)
		}
	case readmodel.Funded:
		if e.By == readmodel.ByUpToGroup {
			to := l.reach(row, e, func(t *readmodel.ListRow) *uint64 { return &t.FundedTo })
			for _, q := range l.requestsOf[row.Vault] {
				if q.Grouped && q.GroupID <= to {
					l.change(q, row, readmodel.EventRow{NoAssets: true})
				}
			}
			return
		}
		l.change(l.named(row, e), row, e)
	case readmodel.Expired:
		l.change(l.named(row, e), row, e)
	}
}

func (l *lists) paid(row readmodel.ListRow) {
	l.put(readmodel.UserEvents, row.User, row)
	row.Partner = 0
	for _, owner := range owners(row) {
		l.step(owner, row.Block, row.TS, func(t *readmodel.ListRow) { t.Claims++; t.Claimed.Add(&t.Claimed, &row.Assets) })
	}
	for _, owner := range []common.Address{everything, row.Vault} {
		m := l.member(member{scope{owner: owner}, true, row.User})
		m.Claimed.Add(&m.Claimed, &row.Assets)
	}
}

func (l *lists) put(list readmodel.List, owner common.Address, row readmodel.ListRow) {
	row.List, row.Owner = list, owner
	l.rows = append(l.rows, row)
}

func (l *lists) deposit(row readmodel.ListRow) {
	row.ClosedBlock = readmodel.Never
	if row.Grouped {
		row.PricedBlock = readmodel.Never
	}
	l.deposits[row.Vault] = append(l.deposits[row.Vault], &row)
	for _, owner := range owners(row) {
		l.step(owner, row.Block, row.TS,
			func(t *readmodel.ListRow) { t.Deposits++; t.Deposited.Add(&t.Deposited, &row.Assets) })
	}
	l.seen(row)
	if to := l.newest(ofVault(row.Vault)).SweptTo; !row.Grouped && to > 0 && row.ID <= to {
		l.close(&row, row)
	}
}

func (l *lists) sweep(row readmodel.ListRow) {
	l.step(ofVault(row.Vault), row.Block, row.TS,
		func(t *readmodel.ListRow) { t.SweptBlock, t.SweptTS = row.Block, row.TS })
	if row.IDTo <= l.newest(ofVault(row.Vault)).SweptTo {
		return
	}
	l.step(ofVault(row.Vault), row.Block, row.TS, func(t *readmodel.ListRow) { t.SweptTo = row.IDTo })
	for _, d := range l.deposits[row.Vault] {
		if !d.Grouped && d.ClosedBlock == readmodel.Never && d.ID <= row.IDTo {
			l.close(d, row)
		}
	}
}

// close marks a deposit as swept in the block of a row.
func (l *lists) close(d *readmodel.ListRow, in readmodel.ListRow) {
	d.ClosedBlock, d.ClosedTS, d.ClosedBy = in.Block, in.TS, readmodel.Sweep
	l.step(ofVault(d.Vault), in.Block, in.TS,
		func(t *readmodel.ListRow) { t.Swept++; t.SweptAssets.Add(&t.SweptAssets, &d.Assets) })
}

func (l *lists) request(row readmodel.ListRow) {
	if row.Partner != 0 {
		l.put(readmodel.PartnerEvents, readmodel.PartnerOwner(row.Partner), row)
	}
	l.seen(row)
	key := requestKey{row.Vault, row.ID}
	if l.requests[key] != nil {
		return
	}
	row.FundedBlock, row.ClosedBlock = readmodel.Never, readmodel.Never
	if row.Grouped {
		row.PricedBlock = readmodel.Never
	}
	l.requests[key] = &row
	l.requestsOf[row.Vault] = append(l.requestsOf[row.Vault], &row)
	for _, owner := range owners(row) {
		l.step(owner, row.Block, row.TS,
			func(t *readmodel.ListRow) { t.Requests++; t.Estimated.Add(&t.Estimated, &row.Assets) })
	}
	if row.By == readmodel.FifoUnfunded {
		l.queueUp(&row, row)
	}
}

// change applies an effect to the life of a request.
func (l *lists) change(q *readmodel.ListRow, row readmodel.ListRow, e readmodel.EventRow) {
	switch {
	case q == nil || q.ClosedBlock != readmodel.Never:
	case row.Kind != readmodel.Funded:
		q.ClosedBlock, q.ClosedTS, q.ClosedBy, q.ClosedAssets = row.Block, row.TS, row.Kind, row.Assets
	case q.FundedBlock == readmodel.Never:
		q.FundedBlock, q.FundedTS, q.FundedAssets = row.Block, row.TS, row.Assets
		if e.NoAssets {
			if q.FundedAssets = q.Assets; q.Grouped && q.PricedBlock != readmodel.Never {
				q.FundedAssets = q.PricedAssets
			}
		}
		if q.By == readmodel.Fifo {
			l.queueUp(q, row)
		}
	}
}

func owners(row readmodel.ListRow) []owned {
	out := []owned{{readmodel.UserTotals, scope{row.User, row.Vault}}, ofVault(row.Vault)}
	if row.Partner != 0 {
		out = append(out, owned{readmodel.Totals, scope{readmodel.PartnerOwner(row.Partner), row.Vault}})
	}
	return out
}

func ofVault(vault common.Address) owned { return owned{readmodel.Totals, scope{vault, vault}} }

// newest returns the last step of totals.
func (l *lists) newest(k owned) (last readmodel.ListRow) {
	if steps := l.totals[k]; len(steps) > 0 {
		last = steps[len(steps)-1]
	}
	return last
}

// step derives the totals of a block from the previous ones.
func (l *lists) step(k owned, block uint64, ts uint32, change func(*readmodel.ListRow)) {
	steps := l.totals[k]
	if next := l.newest(k); len(steps) == 0 || next.Block != block {
		next.List, next.Owner, next.Scope, next.Block, next.TS = k.list, k.owner, k.vault, block, ts
		steps = append(steps, next)
	}
	change(&steps[len(steps)-1])
	l.totals[k] = steps
}

// member returns the user in a scope; its block is readmodel.Never if it was not seen there. Its Deposited and Claimed
// are for the lists by amount.
func (l *lists) member(m member) *readmodel.ListRow {
	if l.members[m] == nil {
		l.members[m] = &readmodel.ListRow{Owner: m.owner, Scope: m.vault, User: m.user, Block: readmodel.Never}
	}
	return l.members[m]
}

func (l *lists) seen(row readmodel.ListRow) {
	l.seenIn(member{scope{}, true, row.User}, everything, row)
	l.seenIn(member{scope{owner: row.Vault}, true, row.User}, row.Vault, row)
	if row.Kind == readmodel.Deposit && row.Partner != 0 {
		partner := readmodel.PartnerOwner(row.Partner)
		l.seenIn(member{scope{owner: partner}, false, row.User}, everything, row)
		l.seenIn(member{scope{partner, row.Vault}, false, row.User}, row.Vault, row)
	}
}

// seenIn records the user of a row in a scope, whose number of users is in the totals of a vault.
func (l *lists) seenIn(k member, vault common.Address, row readmodel.ListRow) {
	m := l.member(k)
	if row.Kind == readmodel.Deposit {
		m.Deposited.Add(&m.Deposited, &row.Assets)
	}
	if m.Block == readmodel.Never {
		m.Block, m.TS = row.Block, row.TS
		l.step(owned{readmodel.Totals, scope{k.owner, vault}}, row.Block, row.TS, func(t *readmodel.ListRow) { t.Users++ })
	}
}

func (l *lists) all() []readmodel.ListRow {
	for _, deposits := range l.deposits {
		for _, d := range deposits {
			row := *d
			row.Key.SetUint64(d.ID)
			l.put(readmodel.VaultEvents, d.Vault, row)
			l.put(readmodel.UserEvents, d.User, *d)
			if d.Partner != 0 {
				l.put(readmodel.PartnerEvents, readmodel.PartnerOwner(d.Partner), *d)
			}
			l.grouped(*d, min(d.PricedBlock, d.ClosedBlock))
		}
	}
	for _, q := range l.requests {
		row := *q
		row.Key.SetUint64(q.ClosedBlock)
		l.put(readmodel.Queue, everything, row)
		row.Key.SetUint64(q.ID)
		l.put(readmodel.Requests, q.Vault, row)
		l.put(readmodel.UserRequests, q.User, *q)
		l.grouped(*q, min(q.FundedBlock, q.ClosedBlock))
		if q.SourceID != (common.Hash{}) {
			row.Key.SetBytes32(q.SourceID[:])
			l.put(readmodel.Sources, q.Vault, row)
		}
		if !q.CumTo.IsZero() {
			row.Key, row.Scope = q.CumTo, q.Vault
			l.put(readmodel.FifoList, q.User, row)
		}
	}
	for _, steps := range l.totals {
		for i, row := range steps {
			row.Key.SetUint64(readmodel.Never)
			if i+1 < len(steps) {
				row.Key.SetUint64(steps[i+1].Block)
				row.ClosedTS = steps[i+1].TS
			}
			l.rows = append(l.rows, row)
		}
	}
	for m, since := range l.members {
		if since.Block != readmodel.Never {
			l.rows = append(l.rows, ranked(m, *since)...)
		}
	}
	return l.rows
}

// ranked returns a user's rows in the lists by amount of a scope.
func ranked(m member, since readmodel.ListRow) (out []readmodel.ListRow) {
	deposited, claimed := since.Deposited, since.Claimed
	since.Deposited, since.Claimed = readmodel.Amount{}, readmodel.Amount{}
	put := func(list readmodel.List, key *readmodel.Amount) {
		row := since
		row.List, row.Key = list, *key
		out = append(out, row)
	}
	put(readmodel.Members, new(readmodel.Amount).SetBytes(m.user[:]))
	put(readmodel.FirstSeen, new(readmodel.Amount).SetUint64(since.Block))
	if m.ranked {
		since.Block = 0
		put(readmodel.Deposited, &deposited)
		put(readmodel.Withdrawn, &claimed)
	}
	return out
}
