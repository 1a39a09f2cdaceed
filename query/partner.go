package query

import (
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

type partnerStatsJSON struct {
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

type routerJSON struct {
	RouterAddress string `json:"routerAddress"`
	ChainID       uint64 `json:"chainId"`
}

func (q *Query) partnerStats(x *exchange) (*answer, error) {
	p, err := x.pin()
	if err != nil {
		return nil, err
	}
	rows, users, err := x.volumes(p)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b volumeRow) int { return p.rank(toAddress(a.Vault)) - p.rank(toAddress(b.Vault)) })
	out := partnerStatsJSON{PartnerID: x.caller.id, PartnerName: x.caller.name, UniqueUsers: users, ByVault: []vaultVolumeJSON{}}
	volume := new(big.Int)
	for _, r := range rows {
		out.TotalDeposits += r.Deposits
		volume.Add(volume, r.Volume)
		out.ByVault = append(out.ByVault, vaultVolumeJSON{toAddress(r.Vault).Hex(), r.Deposits, r.Volume.String()})
	}
	out.TotalVolume = volume.String()
	return &answer{data: out}, nil
}

type volumeRow struct {
	Vault    string   `ch:"vault"`
	Deposits int64    `ch:"deposits"`
	Volume   *big.Int `ch:"volume"`
	Users    int64    `ch:"users"` // of the newest state only
}

// volumes are what was deposited through the caller, by vault, and how many
// users did.
func (x *exchange) volumes(p *pin) ([]volumeRow, int64, error) {
	partner := named("partner", x.caller.id)
	rows, ok, err := newest[volumeRow](x, p, "deposits", sqlPartnerStatsNewest, partner)
	if err != nil {
		return nil, 0, err
	}
	if ok {
		users := int64(0)
		for _, r := range rows {
			users += r.Users
		}
		return slices.DeleteFunc(rows, func(r volumeRow) bool { return r.Deposits <= 0 }), max(users, 0), nil
	}
	if rows, err = pinned[volumeRow](x, p, sqlPartnerStats, partner); err != nil {
		return nil, 0, err
	}
	users, err := total(x, p, sqlPartnerUsers, partner)
	return rows, users, err
}

func (q *Query) listPartnerDeposits(x *exchange) (*answer, error) {
	page := x.params.page()
	p, err := x.pin()
	if err != nil {
		return nil, err
	}
	partner := named("partner", x.caller.id)
	count, err := newestTotal(x, p, "deposits", sqlPartnerCountNewest, sqlPartnerCount, partner)
	if err != nil {
		return nil, err
	}
	rows, err := pinned[depositRow](x, p, sqlPartnerDeps, append(page.args(), partner)...)
	if err != nil {
		return nil, err
	}
	out, err := x.deposits(p, rows)
	if err != nil {
		return nil, err
	}
	return x.list(out, page, count), nil
}

func (q *Query) getRouter(x *exchange) (*answer, error) {
	return &answer{data: routerJSON{RouterAddress: common.HexToAddress(q.cfg.Router).Hex(), ChainID: q.chainID}}, nil
}
