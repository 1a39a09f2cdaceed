package fold

import (
	"cmp"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/readmodel"
)

// place is the position of an effect in the chain.
type place struct {
	block    uint64
	logIndex uint32
	sub      uint8
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.block, q.block), cmp.Compare(p.logIndex, q.logIndex), cmp.Compare(p.sub, q.sub))
}

// entry is an effect as stored in the lists. For a deposit or request, it includes its life.
type entry struct {
	kind readmodel.EffectKind
	place
	user, vault, other  common.Address
	partner             uint32
	id, idTo            uint64
	shares, assets, nav readmodel.Amount
	expires, matures    uint64
	ts                  uint32
	tx                  common.Hash
	by                  readmodel.By
	grouped             bool
	group, groupTo      uint64
	sourceID            common.Hash
	lacks               lacks
	life
}

// lacks records which amounts the log of an effect does not contain, and how its NAV is scaled (NavDigits).
type lacks struct {
	nav, assets, shares bool
	navDigits           uint8
}

// derived reports whether the lists store an amount of the effect that its log does not contain.
func (e *entry) derived() bool {
	return e.kind == readmodel.Valuation && (e.lacks.nav || e.lacks.assets || e.lacks.shares) ||
		e.kind == readmodel.Claimed && e.lacks.assets || e.unowned()
}

// unowned reports whether a claim names only its request; the owner of the request was paid.
func (e *entry) unowned() bool {
	return e.kind == readmodel.Claimed && e.user == (common.Address{}) && (e.by == readmodel.ByID || e.by == readmodel.BySource)
}

// life records how a request was funded and closed, or how a deposit was priced and swept or voided.
type life struct {
	pricedBlock  uint64
	pricedAssets readmodel.Amount
	cumFrom      readmodel.Amount
	cumTo        readmodel.Amount
	fundedBlock  uint64
	fundedTS     uint32
	fundedAssets readmodel.Amount
	closedBlock  uint64
	closedTS     uint32
	closedBy     readmodel.EffectKind
	closedAssets readmodel.Amount
}

// fresh returns a new request or deposit, to which nothing has happened.
func (e entry) fresh() *entry {
	e.life = life{closedBlock: readmodel.Never}
	if e.kind == readmodel.Requested {
		e.fundedBlock = readmodel.Never
	}
	if e.grouped {
		e.pricedBlock = readmodel.Never
	}
	return &e
}

// clip undoes everything that happened above a block. It returns false if the entry itself is above it.
func (e *entry) clip(ancestor uint64) bool {
	if e.block > ancestor {
		return false
	}
	if e.kind != readmodel.Deposit && e.kind != readmodel.Requested {
		return true
	}
	if e.closedBlock > ancestor {
		e.closedBlock, e.closedTS, e.closedBy, e.closedAssets = readmodel.Never, 0, readmodel.NoEffect, readmodel.Amount{}
	}
	if e.kind == readmodel.Requested && e.fundedBlock > ancestor {
		e.fundedBlock, e.fundedTS, e.fundedAssets = readmodel.Never, 0, readmodel.Amount{}
		if e.by == readmodel.Fifo {
			e.cumFrom, e.cumTo = readmodel.Amount{}, readmodel.Amount{}
		}
	}
	if e.grouped && e.pricedBlock > ancestor {
		e.pricedBlock, e.pricedAssets = readmodel.Never, readmodel.Amount{}
		if e.kind == readmodel.Deposit {
			e.shares = readmodel.Amount{}
		}
	}
	return true
}

func (e *entry) open() bool { return e.closedBlock == readmodel.Never }

// waits reports whether the entry is waiting for its group to be priced or funded.
func (e *entry) waits() bool { return e.grouped && e.left() == readmodel.Never }

// left is the block in which a grouped entry stopped waiting for its group.
func (e *entry) left() uint64 {
	if e.kind == readmodel.Deposit {
		return min(e.pricedBlock, e.closedBlock)
	}
	return min(e.fundedBlock, e.closedBlock)
}

// inLine reports whether a request has a place in the queue of requests that are claimed first in, first out.
func (e *entry) inLine() bool { return !e.cumTo.IsZero() }

// close closes a request, or marks a deposit as swept or void.
func (e *entry) close(by *entry, assets readmodel.Amount) {
	e.closedBlock, e.closedTS, e.closedBy, e.closedAssets = by.block, by.ts, by.kind, assets
}

// row returns the entry's row in a list.
func (e *entry) row(list readmodel.List, owner common.Address, key uint64) readmodel.ListRow {
	row := readmodel.ListRow{
		List: list, Owner: owner, Kind: e.kind, Block: e.block, LogIndex: e.logIndex, Sub: e.sub, User: e.user,
		Vault: e.vault, Other: e.other, Partner: e.partner, ID: e.id, IDTo: e.idTo,
		Shares: e.shares, Assets: e.assets, Nav: e.nav, Expires: e.expires, TS: e.ts, Hash: e.tx,
		FundedBlock: e.fundedBlock, FundedTS: e.fundedTS, FundedAssets: e.fundedAssets,
		ClosedBlock: e.closedBlock, ClosedTS: e.closedTS, ClosedBy: e.closedBy, ClosedAssets: e.closedAssets,
		PricedBlock: e.pricedBlock, PricedAssets: e.pricedAssets, CumFrom: e.cumFrom, CumTo: e.cumTo,
	}
	if e.kind == readmodel.Deposit || e.kind == readmodel.Requested {
		row.By, row.Grouped, row.GroupID, row.SourceID, row.Matures = e.by, e.grouped, e.group, e.sourceID, e.matures
	}
	row.Key.SetUint64(key)
	return row
}

// logRows adds the rows of the effect itself.
func (e *entry) logRows(add func(readmodel.ListRow)) {
	switch e.kind {
	case readmodel.Deposit:
		add(e.row(readmodel.VaultEvents, e.vault, e.id))
		add(e.row(readmodel.UserEvents, e.user, 0))
	case readmodel.Sweep, readmodel.Valuation:
		add(e.row(readmodel.VaultEvents, e.vault, 0))
	case readmodel.Instant:
		add(e.row(readmodel.VaultEvents, e.vault, 0))
		add(e.row(readmodel.UserEvents, e.user, 0))
	case readmodel.Claimed:
		add(e.row(readmodel.UserEvents, e.user, 0))
	}
	if e.partner > 0 && (e.kind == readmodel.Deposit || e.kind == readmodel.Requested) {
		add(e.row(readmodel.PartnerEvents, readmodel.PartnerOwner(e.partner), 0))
	}
}

// depositRows adds the rows of a deposit and its life.
func (e *entry) depositRows(add func(readmodel.ListRow)) {
	e.logRows(add)
	e.groupRows(add)
}

// requestRows adds the rows of a request and its life.
func (e *entry) requestRows(add func(readmodel.ListRow)) {
	add(e.row(readmodel.Queue, common.Address{}, e.closedBlock))
	add(e.row(readmodel.Requests, e.vault, e.id))
	add(e.row(readmodel.UserRequests, e.user, 0))
	e.groupRows(add)
	if e.sourceID != (common.Hash{}) {
		row := e.row(readmodel.Sources, e.vault, 0)
		row.Key.SetBytes32(e.sourceID[:])
		add(row)
	}
	if e.inLine() {
		row := e.row(readmodel.FifoList, e.user, 0)
		row.Scope, row.Key = e.vault, e.cumTo
		add(row)
	}
}

// groupRows adds the rows of a grouped entry, by the block in which it stops waiting: for the vault, which prices and
// funds groups, and for the owner, who may cancel entries of a group.
func (e *entry) groupRows(add func(readmodel.ListRow)) {
	if !e.grouped {
		return
	}
	add(e.row(readmodel.Groups, e.vault, e.left()))
	row := e.row(readmodel.Groups, e.user, e.left())
	row.Scope = e.vault
	add(row)
}
