package partner

import (
	"context"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/schemas/readmodel"
)

type statsJSON struct {
	PartnerID     uint32            `json:"partnerId"`
	PartnerName   string            `json:"partnerName"`
	TotalDeposits int64             `json:"totalDeposits"`
	TotalVolume   string            `json:"totalVolume"`
	UniqueUsers   int64             `json:"uniqueUsers"`
	ByVault       []vaultVolumeJSON `json:"byVault"`
}

type vaultVolumeJSON struct {
	VaultAddress string `json:"vaultAddress"`
	DepositCount int64  `json:"depositCount"`
	TotalVolume  string `json:"totalVolume"`
}

// Stats returns the partner's totals: deposits, their sum, and the number of users.
func Stats(r *serve.Request) (*serve.Answer, error) {
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) {
		owner := readmodel.PartnerOwner(r.Partner.ID)
		totals, err := ask.TotalsOf(ctx, p, owner)
		if err != nil {
			return nil, err
		}
		sum := totals.Sum(owner, nil)
		out := statsJSON{PartnerID: r.Partner.ID, PartnerName: r.Partner.Name, TotalDeposits: int64(sum.Deposits),
			TotalVolume: sum.Deposited.String(), UniqueUsers: int64(totals.Of(owner, common.Address{}).Users),
			ByVault: []vaultVolumeJSON{}}
		for _, v := range p.Vaults {
			if t := totals.Of(owner, v.Address); ask.HasDeposits(&v, t) {
				out.ByVault = append(out.ByVault, vaultVolumeJSON{v.Written, int64(t.Deposits), t.Deposited.String()})
			}
		}
		return &serve.Answer{Data: out}, nil
	})
}

type routerJSON struct {
	RouterAddress string `json:"routerAddress"`
	ChainID       uint64 `json:"chainId"`
}

// Router returns the handler for the contract that partners' deposits go through.
func Router(address string, chainID uint64) serve.Handler {
	return func(r *serve.Request) (*serve.Answer, error) {
		if address == "" {
			return nil, serve.NotFound("This deployment has no deposit router: deposits are attributed by the vaults " +
				"themselves.")
		}
		return &serve.Answer{Data: routerJSON{common.HexToAddress(address).Hex(), chainID}}, nil
	}
}
