// Package partner answers what one partner brought, and how deposits are made through
// it: statistics out of running totals, which say of every block what was deposited in
// each vault up to it, and out of the list of the partner's users with the block at
// which each of them came first.
package partner

import (
	"context"
	_ "embed"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
	"github.com/navlog/navlog/schemas/readmodel"
)

var (
	//go:embed totals.sql
	sqlTotals string
	//go:embed users.sql
	sqlUsers string
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

// total is what was deposited in a vault.
type total struct {
	Vault    string   `ch:"vault"`
	Deposits int64    `ch:"deposits"`
	Volume   *big.Int `ch:"volume"`
	Fence    []uint64 `ch:"fence"`
}

// Stats is what the partner brought: deposits, their sum, and how many users.
func Stats(r *httpapi.Request) (*httpapi.Answer, error) {
	return r.Pinned(func(ctx context.Context, p *pin.Pin) (*httpapi.Answer, error) {
		var totals []total
		var users int64
		err := pin.Together(
			func() (err error) { totals, err = readTotals(ctx, p, r.Partner.ID); return },
			func() (err error) { users, err = countUsers(ctx, p, r.Partner.ID); return },
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

// readTotals gives what was deposited through a partner, in the order of the vaults.
func readTotals(ctx context.Context, p *pin.Pin, partner uint32) ([]total, error) {
	rows, err := pin.Ask[total](ctx, p, sqlTotals, pin.Args{"partner": partner})
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		p.See(readmodel.FenceOf(r.Fence))
	}
	rows = slices.DeleteFunc(rows, func(t total) bool { return t.Deposits <= 0 })
	slices.SortFunc(rows, func(a, b total) int { return p.Rank(httpapi.ToAddress(a.Vault)) - p.Rank(httpapi.ToAddress(b.Vault)) })
	return rows, nil
}

// countUsers is how many users deposited through a partner.
func countUsers(ctx context.Context, p *pin.Pin, partner uint32) (users int64, err error) {
	type row struct {
		Users int64    `ch:"users"`
		Fence []uint64 `ch:"fence"`
	}
	rows, err := pin.Ask[row](ctx, p, sqlUsers, pin.Args{"partner": partner})
	for _, r := range rows {
		p.See(readmodel.FenceOf(r.Fence))
		users += r.Users
	}
	return users, err
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
