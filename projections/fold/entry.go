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

// entry is an effect as a row of lists, without the list, its owner and its key. A deposit or request includes its
// life.
type entry struct {
	readmodel.ListRow
	groupTo uint64
	lacks   lacks
}

func (e *entry) place() place { return place{e.Block, e.LogIndex, e.Sub} }

func (e *entry) compare(other *entry) int {
	return cmp.Or(cmp.Compare(e.Block, other.Block), cmp.Compare(e.LogIndex, other.LogIndex),
		cmp.Compare(e.Sub, other.Sub))
}

// lacks records which amounts the log of an effect does not contain, and how its NAV is scaled (NavDigits).
type lacks struct {
	nav, assets, shares bool
	navDigits           uint8
}

// key identifies the effect.
func (e *entry) key() entryKey { return entryKey{e.Kind, e.Vault, e.ID, e.place()} }

// requestKey identifies the request with a number.
func requestKey(vault common.Address, id uint64) entryKey {
	return entryKey{kind: readmodel.Requested, vault: vault, id: id}
}

// static reports whether the rows of the effect itself follow from its log only.
func (e *entry) static() bool { return e.Kind != readmodel.Deposit && !e.derived() }

// derived reports whether the lists store an amount of the effect that its log does not contain.
func (e *entry) derived() bool {
	return e.Kind == readmodel.Valuation && (e.lacks.nav || e.lacks.assets || e.lacks.shares) ||
		e.Kind == readmodel.Claimed && e.lacks.assets || e.unowned()
}

// unowned reports whether a claim names only its request; the owner of the request was paid.
func (e *entry) unowned() bool {
	return e.Kind == readmodel.Claimed && e.User == (common.Address{}) &&
		(e.By == readmodel.ByID || e.By == readmodel.BySource)
}

// fresh returns a new request or deposit, to which nothing has happened.
func (e entry) fresh() *entry {
	e.ClosedBlock = readmodel.Never
	if e.Kind == readmodel.Requested {
		e.FundedBlock = readmodel.Never
	}
	if e.Grouped {
		e.PricedBlock = readmodel.Never
	}
	return &e
}

// clip undoes everything that happened above a block. It returns false if the entry itself is above it.
func (e *entry) clip(ancestor uint64) bool {
	if e.Block > ancestor {
		return false
	}
	if e.ClosedBlock > ancestor {
		e.ClosedBlock, e.ClosedTS, e.ClosedBy, e.ClosedAssets = readmodel.Never, 0, readmodel.NoEffect, readmodel.Amount{}
	}
	if e.Kind == readmodel.Requested && e.FundedBlock > ancestor {
		e.FundedBlock, e.FundedTS, e.FundedAssets = readmodel.Never, 0, readmodel.Amount{}
		if e.By == readmodel.Fifo {
			e.CumFrom, e.CumTo = readmodel.Amount{}, readmodel.Amount{}
		}
	}
	if e.Grouped && e.PricedBlock > ancestor {
		e.PricedBlock, e.PricedAssets = readmodel.Never, readmodel.Amount{}
		if e.Kind == readmodel.Deposit {
			e.Shares = readmodel.Amount{}
		}
	}
	return true
}

func (e *entry) open() bool { return e.ClosedBlock == readmodel.Never }

// pending reports whether the entry waits for its group to be priced or funded.
func (e *entry) pending() bool { return e.Grouped && e.pendingUntil() == readmodel.Never }

// pendingUntil is the block in which a grouped entry stopped waiting for its group.
func (e *entry) pendingUntil() uint64 {
	if e.Kind == readmodel.Deposit {
		return min(e.PricedBlock, e.ClosedBlock)
	}
	return min(e.FundedBlock, e.ClosedBlock)
}

// inQueue reports whether a request has a place in the queue of requests that are claimed first in, first out.
func (e *entry) inQueue() bool { return !e.CumTo.IsZero() }

// close closes a request, or marks a deposit as swept or void.
func (e *entry) close(by *entry, assets readmodel.Amount) {
	e.ClosedBlock, e.ClosedTS, e.ClosedBy, e.ClosedAssets = by.Block, by.TS, by.Kind, assets
}

// lives reports whether the entry has a life: later effects change it.
func (e *entry) lives() bool { return e.Kind == readmodel.Deposit || e.Kind == readmodel.Requested }

func (e *entry) row(list readmodel.List, owner common.Address, key uint64) readmodel.ListRow {
	row := e.ListRow
	row.List, row.Owner = list, owner
	row.Key.SetUint64(key)
	if !e.lives() {
		row.By, row.Grouped, row.GroupID, row.SourceID, row.Matures = readmodel.ByNone, false, 0, common.Hash{}, 0
	}
	return row
}

// tracked reports whether the entry is a deposit or request with its life, and not only its log.
func (e *entry) tracked() bool { return e.ClosedBlock > 0 }

func (e *entry) rows(add func(readmodel.ListRow)) {
	if e.Kind == readmodel.Requested && e.tracked() {
		e.requestRows(add)
	} else {
		e.logRows(add)
	}
}

// logRows adds the rows of the effect itself, for a deposit with its life.
func (e *entry) logRows(add func(readmodel.ListRow)) {
	switch e.Kind {
	case readmodel.Deposit:
		add(e.row(readmodel.VaultEvents, e.Vault, e.ID))
		add(e.row(readmodel.UserEvents, e.User, 0))
		e.groupRows(add)
	case readmodel.Sweep, readmodel.Valuation:
		add(e.row(readmodel.VaultEvents, e.Vault, 0))
	case readmodel.Instant:
		add(e.row(readmodel.VaultEvents, e.Vault, 0))
		add(e.row(readmodel.UserEvents, e.User, 0))
	case readmodel.Claimed:
		add(e.row(readmodel.UserEvents, e.User, 0))
	}
	if e.Partner > 0 && e.lives() {
		add(e.row(readmodel.PartnerEvents, readmodel.PartnerOwner(e.Partner), 0))
	}
}

func (e *entry) requestRows(add func(readmodel.ListRow)) {
	add(e.row(readmodel.Queue, common.Address{}, e.ClosedBlock))
	add(e.row(readmodel.Requests, e.Vault, e.ID))
	add(e.row(readmodel.UserRequests, e.User, 0))
	e.groupRows(add)
	if e.SourceID != (common.Hash{}) {
		row := e.row(readmodel.Sources, e.Vault, 0)
		row.Key.SetBytes32(e.SourceID[:])
		add(row)
	}
	if e.inQueue() {
		row := e.row(readmodel.FifoList, e.User, 0)
		row.Scope, row.Key = e.Vault, e.CumTo
		add(row)
	}
}

// groupRows adds the rows of a grouped entry, by the block in which it stops waiting: for the vault, which prices and
// funds groups, and for the owner, who may cancel entries of a group.
func (e *entry) groupRows(add func(readmodel.ListRow)) {
	if !e.Grouped {
		return
	}
	add(e.row(readmodel.Groups, e.Vault, e.pendingUntil()))
	row := e.row(readmodel.Groups, e.User, e.pendingUntil())
	row.Scope = e.Vault
	add(row)
}
