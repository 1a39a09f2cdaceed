// Package settlement answers what has to be settled: how many deposits of each vault
// wait for a sweep and how many requests for money, and for how much. The deposits are
// counted in the facts (see unswept), the requests in the table that says from which
// block to which each of them waited.
package settlement

import (
	"context"
	_ "embed"
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/files"
	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
	"github.com/navlog/navlog/query/unswept"
	"github.com/navlog/navlog/schemas/readmodel"
)

//go:embed unfunded.sql
var sqlUnfunded string

type entryJSON struct {
	VaultAddress      string     `json:"vaultAddress"`
	VaultName         string     `json:"vaultName"`
	DepositsToSweep   amountJSON `json:"depositsToSweep"`
	WithdrawalsToFund amountJSON `json:"withdrawalsToFund"`
}

type amountJSON struct {
	Count       int64  `json:"count"`
	TotalAmount string `json:"totalAmount"`
}

// columns are those of a file: a row for each vault, as the summary has an entry.
var columns = []files.Column[entryJSON]{
	files.Text("vaultAddress", func(e *entryJSON) string { return e.VaultAddress }),
	files.Foreign("vaultName", func(e *entryJSON) string { return e.VaultName }),
	files.Count("depositsToSweep.count", func(e *entryJSON) int64 { return e.DepositsToSweep.Count }),
	files.Text("depositsToSweep.totalAmount", func(e *entryJSON) string { return e.DepositsToSweep.TotalAmount }),
	files.Count("withdrawalsToFund.count", func(e *entryJSON) int64 { return e.WithdrawalsToFund.Count }),
	files.Text("withdrawalsToFund.totalAmount", func(e *entryJSON) string { return e.WithdrawalsToFund.TotalAmount }),
}

// Summary is what has to be settled of every vault, zeros included.
func Summary(r *httpapi.Request) (*httpapi.Answer, error) {
	return r.Pinned(func(ctx context.Context, p *pin.Pin) (*httpapi.Answer, error) {
		var deposits []unswept.Range
		var requests map[common.Address]amountJSON
		err := pin.Together(
			func() (err error) { deposits, err = unswept.Find(ctx, p, p.Vaults); return },
			func() (err error) { requests, err = unfunded(ctx, p); return },
		)
		if err != nil {
			return nil, err
		}
		out := make([]entryJSON, len(p.Vaults))
		for i, v := range p.Vaults {
			waiting, ok := requests[v.Address]
			if !ok {
				waiting = amountJSON{0, "0"}
			}
			out[i] = entryJSON{v.Written, v.Name, amountJSON{deposits[i].Total, deposits[i].Amount.String()}, waiting}
		}
		if r.AsFile() {
			return httpapi.Whole(ctx, r, p, columns, httpapi.Once(out))
		}
		return &httpapi.Answer{Data: out}, nil
	})
}

// unfunded counts the requests that wait for money, by vault.
func unfunded(ctx context.Context, p *pin.Pin) (map[common.Address]amountJSON, error) {
	type row struct {
		Vault  string   `ch:"vault"`
		Total  int64    `ch:"total"`
		Amount *big.Int `ch:"amount"`
		Fence  []uint64 `ch:"fence"`
	}
	now, err := p.Now(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := pin.Ask[row](ctx, p, sqlUnfunded, pin.Args{"now": now})
	if err != nil {
		return nil, err
	}
	out := make(map[common.Address]amountJSON, len(rows))
	for _, r := range rows {
		p.See(readmodel.FenceOf(r.Fence))
		out[httpapi.ToAddress(r.Vault)] = amountJSON{r.Total, r.Amount.String()}
	}
	return out, nil
}
