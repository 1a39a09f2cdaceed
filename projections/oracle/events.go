package oracle

import (
	"math"
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
)

// Rows is what the table events holds of a record, whose bytes in the log are value:
// one row, for no event of the reference contracts has more than one effect. A record
// of a vault that the generation passes over is passed.
func Rows(r *event.Record, value []byte, passed bool) readmodel.EventRow {
	name, quarantined := Named(r)
	row := readmodel.EventRow{Seq: r.GetSeq(), Sign: 1, Retracts: r.GetRetracts(), Event: name, Boundary: r.GetBoundary(),
		Quarantined: quarantined, Passed: passed}
	if r.GetRetracts() != 0 {
		row.Sign = -1
	}
	switch {
	case r.GetLog() != nil:
		l := r.GetLog()
		row.Record, row.Block, row.TS = readmodel.LogRecord, l.GetBlockNumber(), seconds(l.GetBlockTime())
		row.Hash, row.Vault = common.BytesToHash(l.GetBlockHash()), common.BytesToAddress(l.GetAddress())
		row.Tx, row.LogIndex = common.BytesToHash(l.GetTxHash()), l.GetLogIndex()
		if counted, counts, _ := Read(r); counts {
			effect(counted.Event, &row)
		}
		if quarantined || row.Effect == readmodel.Settled {
			row.Payload = string(value)
		}
	case r.GetBlock() != nil:
		row.Record, row.Block = readmodel.BlockRecord, r.GetBlock().GetNumber()
		row.Hash, row.TS = common.BytesToHash(r.GetBlock().GetHash()), seconds(r.GetBlock().GetTime())
	case r.GetVault() != nil:
		row.Record, row.Payload = readmodel.VaultRecord, string(value)
		row.Vault = common.BytesToAddress(r.GetVault().GetAddress())
	default:
		row.Record, row.Payload = readmodel.DecisionRecord, string(value)
	}
	return row
}

func seconds(t uint64) uint32 { return uint32(min(t, math.MaxUint32)) }

// effect sets what the log of an event does.
func effect(e contracts.Event, row *readmodel.EventRow) {
	amount := func(v *big.Int) (a readmodel.Amount) { a.SetFromBig(v); return a }
	row.Effects = 1
	about := func(kind readmodel.EffectKind, index *big.Int, owner common.Address, shares, assets *big.Int) {
		row.Effect, row.ID, row.User, row.Shares, row.Assets = kind, index.Uint64(), owner, amount(shares), amount(assets)
	}
	switch e.(type) {
	case contracts.WithdrawalFunded, contracts.WithdrawalClaimed, contracts.WithdrawalCancelled, contracts.WithdrawalExpired:
		row.By = readmodel.ByID
	}
	switch e := e.(type) {
	case contracts.DepositAccepted:
		about(readmodel.Deposit, e.DepositID, e.Owner, e.Shares, e.Assets)
		row.Other, row.Partner = e.Sender, e.PartnerID
	case contracts.WithdrawalRequested:
		about(readmodel.Requested, e.RequestIndex, e.Owner, e.Shares, e.AssetsEstimate)
		row.Other, row.Partner, row.Expires = e.Receiver, e.PartnerID, e.ExpiresAt
	case contracts.WithdrawalFunded:
		about(readmodel.Funded, e.RequestIndex, e.Owner, e.Shares, e.Assets)
	case contracts.WithdrawalClaimed:
		about(readmodel.Claimed, e.RequestIndex, e.Owner, e.Shares, e.Assets)
		row.Other = e.Receiver
	case contracts.WithdrawalCancelled:
		about(readmodel.Cancelled, e.RequestIndex, e.Owner, e.Shares, new(big.Int))
	case contracts.WithdrawalExpired:
		about(readmodel.Expired, e.RequestIndex, e.Owner, e.Shares, new(big.Int))
	case contracts.NavUpdated:
		row.Effect, row.Other = readmodel.Valuation, e.Updater
		row.Nav, row.Assets, row.Shares = amount(e.NavPerShare), amount(e.TotalAssets), amount(e.TotalSupply)
	case contracts.DepositsSwept:
		row.Effect, row.Other, row.Assets = readmodel.Sweep, e.Custodian, amount(e.Assets)
		row.ID, row.IDTo = e.FromDepositID.Uint64(), e.ToDepositID.Uint64()
	case contracts.WithdrawalsSettled:
		row.Effect, row.Other = readmodel.Settled, e.Funder
		row.Shares, row.Assets, row.Nav = amount(e.Shares), amount(e.Assets), amount(e.NavPerShare)
	}
}
