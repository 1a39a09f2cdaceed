package vaults

import (
	"cmp"
	"context"
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/mapping"
)

type entryJSON struct {
	VaultAddress      string     `json:"vaultAddress"`
	VaultName         string     `json:"vaultName" file:"foreign"`
	DepositsToSweep   amountJSON `json:"depositsToSweep"`
	WithdrawalsToFund amountJSON `json:"withdrawalsToFund"`
}

// amountJSON has null in both fields if the vault's logs do not contain such data.
type amountJSON struct {
	Count       *int64  `json:"count"`
	TotalAmount *string `json:"totalAmount"`
}

func amountOf(count int64, total string) amountJSON { return amountJSON{&count, &total} }

// Settlement returns what must be settled in every vault, including zeros: deposits that no sweep has reached, and
// requests that are not funded. For a vault without sweeps or without a queue the value is null.
func Settlement(r *serve.Request) (*serve.Answer, error) {
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) {
		var totals ask.AllTotals
		var queue map[common.Address]ask.Queued
		err := ask.Together(
			func() (err error) { totals, err = ask.TotalsOf(ctx, p, state.Addresses(p.Vaults)...); return },
			func() (err error) { queue, err = ask.Queue(ctx, p, nil); return },
		)
		if err != nil {
			return nil, err
		}
		out := make([]entryJSON, len(p.Vaults))
		for i := range p.Vaults {
			v := &p.Vaults[i]
			out[i] = entryOf(v, totals.Of(v.Address, v.Address), queue[v.Address])
		}
		return serve.Short(ctx, r, p, out)
	})
}

// entryOf returns what must be settled in a vault. It does not depend on the block, because a cached answer holds until
// the totals or the queue change.
func entryOf(v *state.Vault, t *ask.Totals, q ask.Queued) entryJSON {
	out, of := entryJSON{VaultAddress: v.Written, VaultName: v.Name}, v.Mapped.Description
	can := of.Capabilities()
	if can.Sweeps {
		out.DepositsToSweep = amountOf(t.Unswept(), new(big.Int).Sub(&t.Deposited, &t.SweptAssets).String())
	}
	if can.Queue {
		out.WithdrawalsToFund = amountOf(int64(q.Unfunded), cmp.Or(q.Estimate, "0"))
		if of.Lacks(mapping.Requested, mapping.Assets) {
			out.WithdrawalsToFund.TotalAmount = nil // the sum of what is unknown
		}
	}
	return out
}
