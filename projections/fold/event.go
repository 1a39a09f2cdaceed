package fold

import (
	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
)

// kindOf returns an effect of a mapping as that of the read model, where most have the same names.
func kindOf(e *mapping.Effect) readmodel.EffectKind {
	switch {
	case e.Kind == mapping.Priced && e.Side == mapping.RedeemSide:
		return readmodel.PricedRequests
	case e.Kind == mapping.Priced:
		return readmodel.PricedDeposits
	case e.Kind == mapping.Sample:
		return readmodel.Valuation
	}
	kind, _ := readmodel.KindNamed(e.Kind.String())
	return kind
}

// Events adds the rows of the table events for a record: one for each effect, or one for a record without effects.
func Events(f *decode.Fact, writer uint64, add func(*readmodel.EventRow)) {
	row := recordOf(f)
	row.Writer, row.Passed = writer, f.Skipped
	if len(f.Effects) == 0 {
		add(&row)
	}
	for i := range f.Effects {
		effect := row
		addEffect(&effect, i, &f.Effects[i])
		add(&effect)
	}
}

func recordOf(f *decode.Fact) readmodel.EventRow {
	return readmodel.EventRow{
		Seq: f.Seq, Sign: f.Sign, Retracts: f.Retracts, Boundary: f.Boundary,
		Record: f.Kind, Event: f.Name(), Effects: uint8(len(f.Effects)), Quarantined: f.Quarantined,
		Block: f.Log.Block, Hash: f.Hash, TS: f.Log.Time, Vault: f.Log.Vault, Tx: f.Log.Tx, LogIndex: f.Log.Index,
		Payload: string(f.Raw),
	}
}

// addEffect sets the effect of a row. Only this function reads the fields of mapping.Effect.
func addEffect(row *readmodel.EventRow, sub int, e *mapping.Effect) {
	row.Sub, row.Effect = uint8(sub), kindOf(e)
	row.User, row.Other, row.Partner, row.Expires, row.Matures = e.Owner, e.Other, e.Partner, e.Expires, e.Matures
	row.ID, row.IDTo = e.ID, e.To
	row.GroupID, row.GroupTo, row.SourceID, row.Attribution = e.Group, e.GroupTo, e.SourceID, e.Attribution
	row.Assets, row.Shares, row.Nav = e.Assets, e.Shares, e.Nav
	row.By, row.Grouped = identification(e)
	has := func(f mapping.Fields) bool { return e.Present(f) }
	switch e.Kind {
	case mapping.Priced:
		if row.By == readmodel.ByGroup && !has(mapping.GroupTo) {
			row.GroupTo = e.Group
		}
	case mapping.Funded:
		if has(mapping.To) { // such a request's group is its number
			row.GroupTo, row.IDTo = e.To, 0
		}
		row.NoAssets = !has(mapping.Assets)
	case mapping.Claimed:
		row.NoAssets = !has(mapping.Assets)
	case mapping.Valuation, mapping.Sample:
		row.NoNav, row.NoAssets, row.NoShares = !has(mapping.Nav), !has(mapping.Assets), !has(mapping.Shares)
		if row.NoNav || row.NoAssets || row.NoShares {
			row.NavDigits = e.NavDigits
		}
	}
}

// identification returns how an effect identifies its deposits or requests, and whether it is an entry of a group.
func identification(e *mapping.Effect) (by readmodel.By, grouped bool) {
	has := e.Present
	switch e.Kind {
	case mapping.Deposit:
		return readmodel.ByNone, !has(mapping.Shares)
	case mapping.Requested:
		switch {
		case has(mapping.Unfunded):
			by = readmodel.FifoUnfunded
		case has(mapping.Fifo):
			by = readmodel.Fifo
		}
		return by, has(mapping.Group)
	case mapping.Priced, mapping.Void, mapping.Funded, mapping.Claimed, mapping.Cancelled, mapping.Expired:
		switch {
		case has(mapping.ID):
			return readmodel.ByID, false
		case has(mapping.SourceID):
			return readmodel.BySource, false
		case e.Kind == mapping.Priced && has(mapping.Group):
			return readmodel.ByGroup, false
		case has(mapping.GroupTo), has(mapping.To):
			return readmodel.ByUpToGroup, false
		case e.Kind == mapping.Cancelled && !has(mapping.Group):
			return readmodel.Fifo, false
		}
		return readmodel.ByOwner, false
	}
	return readmodel.ByNone, false
}

// ImpossibleSweep reports whether a record has a sweep that names no range of deposits.
func ImpossibleSweep(f *decode.Fact) bool {
	for i := range f.Effects {
		if e := &f.Effects[i]; e.Kind == mapping.Sweep && e.Present(mapping.ID) && (e.ID == 0 || e.ID > e.To) {
			return true
		}
	}
	return false
}

func entryOf(f *decode.Fact, i int) entry {
	row := recordOf(f)
	addEffect(&row, i, &f.Effects[i])
	return entry{
		ListRow: readmodel.ListRow{
			Kind: row.Effect, Block: row.Block, LogIndex: row.LogIndex, Sub: row.Sub, User: row.User, Vault: row.Vault,
			Other: row.Other, Partner: row.Partner, ID: row.ID, IDTo: row.IDTo, Shares: row.Shares, Assets: row.Assets,
			Nav: row.Nav, Expires: row.Expires, Matures: row.Matures, TS: row.TS, Hash: row.Tx, By: row.By,
			Grouped: row.Grouped, GroupID: row.GroupID, SourceID: row.SourceID,
		},
		groupTo: row.GroupTo, lacks: lacks{row.NoNav, row.NoAssets, row.NoShares, row.NavDigits},
	}
}
