package oracle

import (
	"math"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
)

// Record is a record with its bytes in the log. Passed is set if the generation skips it: a record of
// a vault that joined later, or a block that came with the history of one.
type Record struct {
	*event.Record
	Value  []byte
	Passed bool
}

// Rows returns the rows of the table events for the records of a whole unit: for each record one row for each of its
// effects, or one row without an effect.
func Rows(vaults *mapping.Vaults, unit []Record) [][]readmodel.EventRow {
	records := make([]*event.Record, len(unit))
	for i, r := range unit {
		records[i] = r.Record
	}
	readings, out := Read(vaults, records), make([][]readmodel.EventRow, len(unit))
	for i, r := range unit {
		out[i] = rows(r, readings[r.GetSeq()])
	}
	return out
}

// rows returns the rows of events for one record; reading is nil if it is neither a log nor a sample.
func rows(r Record, reading *Reading) []readmodel.EventRow {
	row := readmodel.EventRow{Seq: r.GetSeq(), Sign: 1, Retracts: r.GetRetracts(), Boundary: r.GetBoundary(),
		Passed: r.Passed}
	if r.GetRetracts() != 0 {
		row.Sign = -1
	}
	switch {
	case r.GetLog() != nil:
		l := r.GetLog()
		row.Record, row.Block, row.TS = readmodel.LogRecord, l.GetBlockNumber(), seconds(l.GetBlockTime())
		row.Hash, row.Vault = common.BytesToHash(l.GetBlockHash()), mapping.VaultOf(l)
		row.Tx, row.LogIndex = common.BytesToHash(l.GetTxHash()), l.GetLogIndex()
		row.Event, row.Quarantined = reading.Name, reading.Quarantined
		if reading.Quarantined {
			row.Payload = string(r.Value)
		}
		return effects(row, r.Value, reading.Effects)
	case r.GetSample() != nil:
		sample := r.GetSample()
		row.Record, row.Block, row.TS = readmodel.SampleRecord, sample.GetBlockNumber(), seconds(sample.GetBlockTime())
		row.Hash, row.Vault = common.BytesToHash(sample.GetBlockHash()), common.BytesToAddress(sample.GetVault())
		row.LogIndex, row.Quarantined = readmodel.SampleIndex, reading.Quarantined
		if reading.Quarantined {
			row.Payload = string(r.Value)
		}
		return effects(row, r.Value, reading.Effects)
	case r.GetBlock() != nil:
		row.Record, row.Block = readmodel.BlockRecord, r.GetBlock().GetNumber()
		row.Hash, row.TS = common.BytesToHash(r.GetBlock().GetHash()), seconds(r.GetBlock().GetTime())
	case r.GetVault() != nil:
		row.Record, row.Payload = readmodel.VaultRecord, string(r.Value)
		row.Vault = common.BytesToAddress(r.GetVault().GetAddress())
	default:
		row.Record, row.Payload = readmodel.DecisionRecord, string(r.Value)
	}
	return []readmodel.EventRow{row}
}

// effects returns the rows of a log: all of them have its record if one of its effects is a settlement.
func effects(row readmodel.EventRow, value []byte, all []Log) (out []readmodel.EventRow) {
	if len(all) == 0 {
		return []readmodel.EventRow{row}
	}
	row.Effects = uint8(len(all))
	for _, l := range all {
		if l.Kind == mapping.Settled {
			row.Payload = string(value)
		}
	}
	for _, l := range all {
		one := row
		one.Sub = l.Sub
		effect(l.Effect, &one)
		out = append(out, one)
	}
	return out
}

func seconds(t uint64) uint32 { return uint32(min(t, math.MaxUint32)) }

// effect sets the effect of a row. Amounts that the log does not contain are absent.
func effect(e mapping.Effect, row *readmodel.EventRow) {
	row.Effect = map[mapping.Kind]readmodel.EffectKind{
		mapping.Deposit: readmodel.Deposit, mapping.Sweep: readmodel.Sweep, mapping.Settled: readmodel.Settled,
		mapping.Valuation: readmodel.Valuation, mapping.Requested: readmodel.Requested, mapping.Funded: readmodel.Funded,
		mapping.Claimed: readmodel.Claimed, mapping.Cancelled: readmodel.Cancelled, mapping.Expired: readmodel.Expired,
		mapping.Priced: readmodel.PricedDeposits, mapping.Void: readmodel.Void, mapping.Supply: readmodel.Supply,
		mapping.Instant: readmodel.Instant, mapping.Sample: readmodel.Valuation,
	}[e.Kind]
	row.User, row.Other, row.Partner = e.Owner, e.Other, e.Partner
	row.ID, row.IDTo, row.Expires, row.Matures = e.ID, e.To, e.Expires, e.Matures
	row.Shares, row.Assets, row.Nav = e.Shares, e.Assets, e.Nav
	row.GroupID, row.GroupTo, row.SourceID, row.Attribution = e.Group, e.GroupTo, e.SourceID, e.Attribution
	lacks := func(f mapping.Fields) bool { return !e.Present(f) }
	switch row.Effect {
	case readmodel.Deposit:
		row.Grouped = lacks(mapping.Shares)
	case readmodel.Requested:
		row.Grouped = !lacks(mapping.Group)
		if e.Present(mapping.Fifo) {
			row.By = readmodel.Fifo
		}
		if e.Present(mapping.Fifo | mapping.Unfunded) {
			row.By = readmodel.FifoUnfunded
		}
	case readmodel.Valuation:
		row.NoNav, row.NoAssets, row.NoShares = lacks(mapping.Nav), lacks(mapping.Assets), lacks(mapping.Shares)
		if row.NoNav || row.NoAssets || row.NoShares {
			row.NavDigits = e.NavDigits
		}
	case readmodel.PricedDeposits, readmodel.Void, readmodel.Funded, readmodel.Claimed, readmodel.Cancelled,
		readmodel.Expired:
		row.By = names(&e)
		row.NoAssets = (row.Effect == readmodel.Funded || row.Effect == readmodel.Claimed) && lacks(mapping.Assets)
		if row.Effect == readmodel.PricedDeposits && e.Side == mapping.RedeemSide {
			row.Effect = readmodel.PricedRequests
		}
		if row.By == readmodel.ByGroup && lacks(mapping.GroupTo) {
			row.GroupTo = e.Group
		}
		if row.Effect == readmodel.Funded && e.Present(mapping.To) {
			row.IDTo, row.GroupTo = 0, e.To
		}
	}
}

// names returns how an effect identifies deposits or requests.
func names(e *mapping.Effect) readmodel.By {
	switch has := e.Present; {
	case has(mapping.ID):
		return readmodel.ByID
	case has(mapping.SourceID):
		return readmodel.BySource
	case e.Kind == mapping.Priced && has(mapping.Group):
		return readmodel.ByGroup
	case has(mapping.To), has(mapping.GroupTo):
		return readmodel.ByUpToGroup
	case e.Kind == mapping.Cancelled && !has(mapping.Group):
		return readmodel.Fifo
	}
	return readmodel.ByOwner
}
