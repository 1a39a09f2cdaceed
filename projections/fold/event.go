package fold

import (
	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/schemas/readmodel"
)

// kinds are the effects that the read model holds, by those of decode.
var kinds = map[decode.EffectKind]readmodel.EffectKind{
	decode.Deposit:    readmodel.Deposit,
	decode.Sweep:      readmodel.Sweep,
	decode.GroupPrice: readmodel.Settled,
	decode.NAV:        readmodel.Valuation,
	decode.Requested:  readmodel.Requested,
	decode.Funded:     readmodel.Funded,
	decode.Claimed:    readmodel.Claimed,
	decode.Cancelled:  readmodel.Cancelled,
	decode.Expired:    readmodel.Expired,
}

// Events gives the rows of events of a record to add: one for each effect, or one for a
// record without effects.
func Events(f *decode.Fact, writer uint64, passed bool, add func(*readmodel.EventRow)) {
	row := recordOf(f)
	row.Writer, row.Passed = writer, passed
	if len(f.Effects) == 0 {
		add(&row)
	}
	for i := range f.Effects {
		effect := row
		addEffect(&effect, i, &f.Effects[i])
		add(&effect)
	}
}

// recordOf is the row of a record without its effects.
func recordOf(f *decode.Fact) readmodel.EventRow {
	return readmodel.EventRow{
		Seq: f.Seq, Sign: f.Sign, Retracts: f.Retracts, Boundary: f.Boundary,
		Record: readmodel.RecordKind(f.Kind), Event: f.Name(), Effects: uint8(len(f.Effects)), Quarantined: f.Quarantined,
		Block: f.Log.Block, Hash: f.Hash, TS: f.Log.Time, Vault: f.Log.Vault, Tx: f.Log.Tx, LogIndex: f.Log.Index,
		Payload: string(f.Raw),
	}
}

// addEffect gives a row its effect. Only this function reads the fields of decode.Effect.
func addEffect(row *readmodel.EventRow, sub int, e *decode.Effect) {
	row.Sub, row.Effect = uint8(sub), kinds[e.Kind]
	row.User, row.Other, row.Partner, row.Expires = e.Owner, e.Other, e.Partner, e.Expires
	row.ID, row.IDTo = e.ID, e.To
	row.Assets, row.Shares, row.Nav = e.Assets, e.Shares, e.Nav
}

// ImpossibleSweep reports whether a record has a sweep that names no range of deposits.
func ImpossibleSweep(f *decode.Fact) bool {
	for i := range f.Effects {
		if e := entryOf(f, i); e.kind == readmodel.Sweep && (e.id == 0 || e.id > e.idTo) {
			return true
		}
	}
	return false
}

// entryOf is the i-th effect of a record as an entry of lists.
func entryOf(f *decode.Fact, i int) entry {
	row := recordOf(f)
	addEffect(&row, i, &f.Effects[i])
	return entry{
		kind: row.Effect, place: place{row.Block, row.LogIndex, row.Sub},
		user: row.User, vault: row.Vault, other: row.Other, partner: row.Partner, id: row.ID, idTo: row.IDTo,
		shares: row.Shares, assets: row.Assets, nav: row.Nav, expires: row.Expires, ts: row.TS, tx: row.Tx,
	}
}
