package users

import (
	"context"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/serve"
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
		AssetsClaimed  string `json:"assetsClaimed"`
	} `json:"_sum"`
	Count int64 `json:"_count"`
}

// Detail returns one user with the totals in each vault.
func Detail(r *serve.Request) (*serve.Answer, error) {
	address := r.PathAddress()
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) {
		sums, err := ask.SumsOf(ctx, p, ask.Whose{Users: []common.Address{address}, Members: []ask.Member{{User: address}}})
		if err != nil {
			return nil, err
		}
		totals := sums.Users
		first, ok := sums.Seen[address]
		if !ok {
			return nil, serve.NotFound("There is no such user.")
		}
		holdings := holdingsJSON{Deposits: []depositsJSON{}, Withdrawals: []withdrawalsJSON{}}
		for _, v := range p.Vaults {
			t := totals.Of(address, v.Address)
			if ask.HasDeposits(&v, t) {
				out := depositsJSON{VaultAddress: v.Written, Count: int64(t.Deposits)}
				out.Sum.AssetAmount = t.Deposited.String()
				holdings.Deposits = append(holdings.Deposits, out)
			}
			if ask.HasWithdrawals(&v, t) {
				out := withdrawalsJSON{VaultAddress: v.Written, Count: int64(t.Requests)}
				out.Sum.AssetsEstimate, out.Sum.AssetsClaimed = t.Estimated.String(), t.Claimed.String()
				holdings.Withdrawals = append(holdings.Withdrawals, out)
			}
		}
		sum := totals.Sum(address, nil)
		return &serve.Answer{Data: detailJSON{describe(address, first, &sum.Deposited, &sum.Claimed), holdings}}, nil
	})
}
