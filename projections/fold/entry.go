package fold

import (
	"cmp"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/readmodel"
)

// place is where an effect stands in the chain.
type place struct {
	block    uint64
	logIndex uint32
	sub      uint8
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.block, q.block), cmp.Compare(p.logIndex, q.logIndex), cmp.Compare(p.sub, q.sub))
}

// entry is an effect as the lists hold it. Of a deposit or request it has the life, too.
type entry struct {
	kind readmodel.EffectKind
	place
	user, vault, other  common.Address
	partner             uint32
	id, idTo            uint64
	shares, assets, nav readmodel.Amount
	expires             uint64
	ts                  uint32
	tx                  common.Hash
	life
}

// life is how a request was funded and closed, or how a deposit was swept.
type life struct {
	fundedBlock  uint64
	fundedTS     uint32
	fundedAssets readmodel.Amount
	closedBlock  uint64
	closedTS     uint32
	closedBy     readmodel.EffectKind
	closedAssets readmodel.Amount
}

// fresh is a request or deposit to which nothing has happened.
func (e entry) fresh() *entry {
	e.life = life{closedBlock: readmodel.Never}
	if e.kind == readmodel.Requested {
		e.fundedBlock = readmodel.Never
	}
	return &e
}

// clip undoes what happened above a block. It reports false if the entry itself lies above it.
func (e *entry) clip(ancestor uint64) bool {
	if e.block > ancestor {
		return false
	}
	if e.closedBlock > ancestor {
		e.closedBlock, e.closedTS, e.closedBy, e.closedAssets = readmodel.Never, 0, readmodel.NoEffect, readmodel.Amount{}
	}
	if e.kind == readmodel.Requested && e.fundedBlock > ancestor {
		e.fundedBlock, e.fundedTS, e.fundedAssets = readmodel.Never, 0, readmodel.Amount{}
	}
	return true
}

func (e *entry) open() bool { return e.closedBlock == readmodel.Never }

// close ends a request, or has a deposit swept.
func (e *entry) close(by *entry, assets readmodel.Amount) {
	e.closedBlock, e.closedTS, e.closedBy, e.closedAssets = by.block, by.ts, by.kind, assets
}

// row is the entry in a list.
func (e *entry) row(list readmodel.List, owner common.Address, key uint64) readmodel.ListRow {
	row := readmodel.ListRow{
		List: list, Owner: owner, Kind: e.kind, Block: e.block, LogIndex: e.logIndex, Sub: e.sub, User: e.user,
		Vault: e.vault, Other: e.other, Partner: e.partner, ID: e.id, IDTo: e.idTo,
		Shares: e.shares, Assets: e.assets, Nav: e.nav, Expires: e.expires, TS: e.ts, Hash: e.tx,
		FundedBlock: e.fundedBlock, FundedTS: e.fundedTS, FundedAssets: e.fundedAssets,
		ClosedBlock: e.closedBlock, ClosedTS: e.closedTS, ClosedBy: e.closedBy, ClosedAssets: e.closedAssets,
	}
	row.Key.SetUint64(key)
	return row
}

// logRows are the rows of an effect as such.
func (e *entry) logRows(add func(readmodel.ListRow)) {
	switch e.kind {
	case readmodel.Deposit:
		add(e.row(readmodel.VaultEvents, e.vault, e.id))
		add(e.row(readmodel.UserEvents, e.user, 0))
	case readmodel.Sweep, readmodel.Valuation:
		add(e.row(readmodel.VaultEvents, e.vault, 0))
	case readmodel.Claimed:
		add(e.row(readmodel.UserEvents, e.user, 0))
	}
	if e.partner > 0 && (e.kind == readmodel.Deposit || e.kind == readmodel.Requested) {
		add(e.row(readmodel.PartnerEvents, readmodel.PartnerOwner(e.partner), 0))
	}
}

// requestRows are the rows of a request with its life.
func (e *entry) requestRows(add func(readmodel.ListRow)) {
	add(e.row(readmodel.Queue, common.Address{}, e.closedBlock))
	add(e.row(readmodel.Requests, e.vault, e.id))
	add(e.row(readmodel.UserRequests, e.user, 0))
}
