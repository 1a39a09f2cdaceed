package users

import (
	"context"
	_ "embed"
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
)

var (
	//go:embed deposits.sql
	sqlDeposits string
	//go:embed withdrawals.sql
	sqlWithdrawals string
)

type detailJSON struct {
	userJSON
	Holdings holdingsJSON `json:"holdings"`
}

type holdingsJSON struct {
	Deposits    []depositsJSON    `json:"deposits"`
	Withdrawals []withdrawalsJSON `json:"withdrawals"`
}

type depositsJSON struct {
	VaultAddress string `json:"vaultAddress"`
	Sum          struct {
		AssetAmount string `json:"assetAmount"`
	} `json:"_sum"`
	Count int64 `json:"_count"`
}

type withdrawalsJSON struct {
	VaultAddress string `json:"vaultAddress"`
	Sum          struct {
		AssetsEstimate string `json:"assetsEstimate"`
	} `json:"_sum"`
	Count int64 `json:"_count"`
}

// deposited is what a user put into a vault.
type deposited struct {
	Vault  string   `ch:"vault"`
	Count  int64    `ch:"count"`
	Amount *big.Int `ch:"amount"`
}

// withdrawn is what a user asked back from a vault, and got.
type withdrawn struct {
	Vault   string   `ch:"vault"`
	Count   int64    `ch:"count"`
	Amount  *big.Int `ch:"amount"` // asked for
	Claimed *big.Int `ch:"claimed"`
}

// Detail is one user with what was deposited and asked for in each vault.
func Detail(r *httpapi.Request) (*httpapi.Answer, error) {
	address := r.PathAddress()
	return r.Pinned(func(ctx context.Context, p *pin.Pin) (*httpapi.Answer, error) {
		u := []user{{Address: string(address[:]), Deposited: new(big.Int), Withdrawn: new(big.Int)}}
		var deposits map[common.Address]deposited
		var withdrawals map[common.Address]withdrawn
		err := pin.Together(
			func() error { return addFirstSeen(ctx, p, u, allVaults) },
			func() (err error) { deposits, err = depositsOf(ctx, p, address); return },
			func() (err error) { withdrawals, err = withdrawalsOf(ctx, p, address); return },
		)
		if err != nil {
			return nil, err
		}
		holdings := holdingsJSON{Deposits: []depositsJSON{}, Withdrawals: []withdrawalsJSON{}}
		for _, v := range p.Vaults {
			if d := deposits[v.Address]; d.Count > 0 {
				out := depositsJSON{VaultAddress: v.Written, Count: d.Count}
				out.Sum.AssetAmount = d.Amount.String()
				holdings.Deposits = append(holdings.Deposits, out)
				u[0].Deposited.Add(u[0].Deposited, d.Amount)
			}
			w := withdrawals[v.Address]
			if w.Count > 0 {
				out := withdrawalsJSON{VaultAddress: v.Written, Count: w.Count}
				out.Sum.AssetsEstimate = w.Amount.String()
				holdings.Withdrawals = append(holdings.Withdrawals, out)
			}
			if w.Claimed != nil {
				u[0].Withdrawn.Add(u[0].Withdrawn, w.Claimed)
			}
		}
		if len(holdings.Deposits)+len(holdings.Withdrawals) == 0 {
			return nil, httpapi.NotFound("There is no such user.")
		}
		return &httpapi.Answer{Data: detailJSON{u[0].json(), holdings}}, nil
	})
}

func depositsOf(ctx context.Context, p *pin.Pin, user common.Address) (map[common.Address]deposited, error) {
	rows, err := pin.Ask[deposited](ctx, p, sqlDeposits, pin.Args{"user": user})
	out := make(map[common.Address]deposited, len(rows))
	for _, r := range rows {
		out[httpapi.ToAddress(r.Vault)] = r
	}
	return out, err
}

func withdrawalsOf(ctx context.Context, p *pin.Pin, user common.Address) (map[common.Address]withdrawn, error) {
	rows, err := pin.Ask[withdrawn](ctx, p, sqlWithdrawals, pin.Args{"user": user})
	out := make(map[common.Address]withdrawn, len(rows))
	for _, r := range rows {
		out[httpapi.ToAddress(r.Vault)] = r
	}
	return out, err
}
