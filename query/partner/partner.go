// Package partner answers what one partner brought, and how deposits are made through
// it: statistics out of running totals, which say of every block what was deposited in
// each vault up to it, and out of the list of the partner's users with the block at
// which each of them came first.
package partner

import (
	"context"
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/counts"
	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
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

// Stats is what the partner brought: deposits, their sum, and how many users.
func Stats(r *httpapi.Request) (*httpapi.Answer, error) {
	return r.Pinned(func(ctx context.Context, p *pin.Pin) (*httpapi.Answer, error) {
		var totals []counts.Brought
		var users int64
		err := pin.Together(
			func() (err error) { totals, err = counts.Through(ctx, p, r.Partner.ID); return },
			func() (err error) { users, err = counts.Users(ctx, p, common.Address{}, r.Partner.ID); return },
		)
		if err != nil {
			return nil, err
		}
		out := statsJSON{PartnerID: r.Partner.ID, PartnerName: r.Partner.Name, UniqueUsers: users, ByVault: []vaultVolumeJSON{}}
		volume := new(big.Int)
		for _, t := range totals {
			out.TotalDeposits += t.Deposits
			volume.Add(volume, t.Volume)
			vault, _ := p.Written(httpapi.ToAddress(t.Vault))
			out.ByVault = append(out.ByVault, vaultVolumeJSON{vault, t.Deposits, t.Volume.String()})
		}
		out.TotalVolume = volume.String()
		return &httpapi.Answer{Data: out}, nil
	})
}

type routerJSON struct {
	RouterAddress string `json:"routerAddress"`
	ChainID       uint64 `json:"chainId"`
}

// Router gives the handler that says through which contract partners' deposits go.
func Router(address common.Address, chainID uint64) httpapi.Handler {
	return func(r *httpapi.Request) (*httpapi.Answer, error) {
		return &httpapi.Answer{Data: routerJSON{address.Hex(), chainID}}, nil
	}
}
