package derive

import (
	"context"
	_ "embed"
	"math/big"

	"github.com/ClickHouse/clickhouse-go/v2/ext"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/schemas/readmodel"
)

// PartnerTotal is a row of partner_totals: what was deposited in a vault through a
// partner, true from a block up to and without another.
type PartnerTotal struct {
	Partner               uint32
	Vault                 common.Address
	FromBlock, UntilBlock uint64 // readmodel.Never: still true
	Deposits              uint64
	Volume                decode.Amount // native units
}

type partnerVault struct {
	partner uint32
	vault   common.Address
}

//go:embed partner_totals.sql
var livePartnerTotals string

// PartnerTotals gives what units change in partner_totals.
func PartnerTotals(ctx context.Context, conn driver.Conn, units []decode.Unit) (Difference[PartnerTotal], error) {
	rows, err := readPartnerTotals(ctx, conn, units)
	if err != nil {
		return Difference[PartnerTotal]{}, failed(readmodel.PartnerTotals, err)
	}
	old, now := map[PartnerTotal]bool{}, map[PartnerTotal]bool{}
	for _, p := range rows {
		old[p], now[p] = true, true
	}
	newest := newestTotals(now)
	for i := range units {
		if units[i].Rewrites {
			now = clipPartnerTotals(now, units[i].Ancestor())
			newest = newestTotals(now)
		}
		for f, e := range units[i].Facts.Effects() {
			if f.Sign > 0 && viaPartner(e) {
				foldPartnerTotal(now, newest, f, e)
			}
		}
	}
	return between(old, now), nil
}

// viaPartner tells whether an effect is a deposit through a partner.
func viaPartner(e *decode.Effect) bool {
	return e.Kind == decode.Deposit && e.Partner > 0
}

// clipPartnerTotals takes back what was deposited above a block.
func clipPartnerTotals(rows map[PartnerTotal]bool, block uint64) map[PartnerTotal]bool {
	out := make(map[PartnerTotal]bool, len(rows))
	for p := range rows {
		if p.FromBlock > block {
			continue
		}
		if p.UntilBlock > block {
			p.UntilBlock = readmodel.Never
		}
		out[p] = true
	}
	return out
}

// newestTotals are the rows that are still true.
func newestTotals(rows map[PartnerTotal]bool) map[partnerVault]PartnerTotal {
	newest := map[partnerVault]PartnerTotal{}
	for p := range rows {
		if p.UntilBlock == readmodel.Never {
			newest[partnerVault{p.Partner, p.Vault}] = p
		}
	}
	return newest
}

// foldPartnerTotal takes the next deposit through a partner.
func foldPartnerTotal(rows map[PartnerTotal]bool, newest map[partnerVault]PartnerTotal, f *decode.Fact, e *decode.Effect) {
	key := partnerVault{e.Partner, f.Log.Vault}
	before, ok := newest[key]
	after := PartnerTotal{Partner: key.partner, Vault: key.vault, FromBlock: f.Log.Block, UntilBlock: readmodel.Never, Deposits: before.Deposits + 1}
	after.Volume.Add(&before.Volume, &e.Assets)
	if ok {
		delete(rows, before)
		if before.FromBlock < f.Log.Block {
			before.UntilBlock = f.Log.Block
			rows[before] = true
		}
	}
	rows[after], newest[key] = true, after
}

// readPartnerTotals reads the rows of the partners and vaults that units touch, as
// far as units can change them: those that are still true, or were at the ancestor.
func readPartnerTotals(ctx context.Context, conn driver.Conn, units []decode.Unit) (out []PartnerTotal, err error) {
	keys := map[partnerVault]bool{}
	var wanted [][]any
	for i := range units {
		for f, e := range units[i].Facts.Effects() {
			key := partnerVault{e.Partner, f.Log.Vault}
			if viaPartner(e) && !keys[key] {
				keys[key] = true
				wanted = append(wanted, []any{key.partner, key.vault.Bytes()})
			}
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	t, err := table(wanted, ext.Column("partner", "UInt32"), ext.Column("vault", "FixedString(20)"))
	if err != nil {
		return nil, err
	}
	var vault []byte
	err = ask(ctx, conn, livePartnerTotals, map[string]uint64{"ancestor": ancestor(units)}, t, func(rows driver.Rows) error {
		var p PartnerTotal
		var volume big.Int
		if err := rows.Scan(&p.Partner, &vault, &p.FromBlock, &p.UntilBlock, &p.Deposits, &volume); err != nil {
			return err
		}
		p.Vault, p.Volume = address(vault), amountOf(&volume)
		out = append(out, p)
		return nil
	})
	return out, err
}
