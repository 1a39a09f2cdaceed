package query

import (
	"math"
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
	if users < 0 {
		if users, err = total(x, p, sqlPartnerUsers, named("partner", x.caller.id)); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(rows, func(a, b volumeRow) int { return p.rank(toAddress(a.Vault)) - p.rank(toAddress(b.Vault)) })
	out := partnerStatsJSON{PartnerID: x.caller.id, PartnerName: x.caller.name, UniqueUsers: users, ByVault: []vaultVolumeJSON{}}
	volume := new(big.Int)
	for _, r := range rows {
		if r.Deposits <= 0 {
			continue
		}
		out.TotalDeposits += r.Deposits
		volume.Add(volume, r.Volume)
		out.ByVault = append(out.ByVault, vaultVolumeJSON{toAddress(r.Vault).Hex(), r.Deposits, r.Volume.String()})
	}
	out.TotalVolume = volume.String()
	return &answer{data: out}, nil
}

type volumeRow struct {
	Vault    string   `ch:"vault"`
	Side     uint8    `ch:"side"` // 0: it counts
	Deposits int64    `ch:"deposits"`
	Said     uint64   `ch:"said"` // how many rows say so
	Volume   *big.Int `ch:"volume"`
	Users    int64    `ch:"users"`
	First    uint64   `ch:"first"` // seq
	Last     uint64   `ch:"last"`
}

// volumes are what was deposited through the caller, by vault, and how many
// users did, -1 for unknown. They come from the totals that the engine keeps;
// where these hold rows that do not count, the blocks around the pin's are read
// by row; and where the other blocks' totals hold rows later than the pin too,
// all rows are.
func (x *exchange) volumes(p *pin) ([]volumeRow, int64, error) {
	partner := named("partner", x.caller.id)
	span := p.block / blocksOfTotals * blocksOfTotals
	from, to := named("from", span), named("to", uint64(math.MaxUint64))
	var rows []volumeRow
	var err error
	if !p.asOf {
		rows, err = pinned[volumeRow](x, p, sqlPartnerStatsNewest, partner)
		if err != nil {
			return nil, 0, err
		}
		if users, last, _ := counted(rows); last <= p.seq {
			return foldVolumes(rows), users, nil
		}
	} else {
		to = named("to", span+blocksOfTotals)
	}
	if rows, err = pinned[volumeRow](x, p, sqlPartnerStatsAsOf, partner, from, to); err != nil {
		return nil, 0, err
	}
	users, last, after := counted(rows)
	if last > p.seq {
		rows, err = pinned[volumeRow](x, p, sqlPartnerStats, partner)
		return foldVolumes(rows), -1, err
	}
	// Users are counted in the order of the log. That is the chain's but where a
	// vault was filled in later or blocks were replaced: then some row that counts
	// comes after one that does not.
	if last > after {
		users = -1
	}
	return foldVolumes(rows), users, nil
}

// blocksOfTotals is how many blocks share a row of the projection totals.
const blocksOfTotals = 4096

// counted adds up the users of the rows that count, and gives their last seq and
// the first one of a later block.
func counted(rows []volumeRow) (users int64, last, after uint64) {
	after = math.MaxUint64
	for _, r := range rows {
		switch r.Side {
		case 0:
			users, last = users+r.Users, max(last, r.Last)
		case 2:
			after = min(after, r.First)
		}
	}
	return users, last, after
}

// foldVolumes gives the rows that count, one for each vault.
func foldVolumes(rows []volumeRow) []volumeRow {
	var out []volumeRow
	for _, r := range rows {
		if r.Side != 0 {
			continue
		}
		i := slices.IndexFunc(out, func(o volumeRow) bool { return o.Vault == r.Vault })
		if i < 0 {
			out = append(out, r)
			continue
		}
		out[i].Deposits += r.Deposits
		out[i].Said += r.Said
		out[i].Volume.Add(out[i].Volume, r.Volume)
	}
	return out
}

func (q *Query) listPartnerDeposits(x *exchange) (*answer, error) {
	page := x.params.page()
	p, err := x.pin()
	if err != nil {
		return nil, err
	}
	counted := func() (t tally, err error) {
		volumes, _, err := x.volumes(p)
		for _, r := range volumes {
			t.Total, t.Said = t.Total+r.Deposits, t.Said+r.Said
		}
		return t, err
	}
	var rows []depositRow
	var count int64
	var swept *sweeps
	err = together(
		func() (err error) {
			rows, count, err = longPage[depositRow](x, p, sqlPartnerDeps, page, counted, named("partner", x.caller.id))
			return err
		},
		func() (err error) { swept, err = x.sweeps(); return },
	)
	if err != nil {
		return nil, err
	}
	out := make([]depositJSON, len(rows))
	for i, r := range rows {
		out[i] = r.json(p, swept)
	}
	return x.list(out, page, count), nil
}

func (q *Query) getRouter(x *exchange) (*answer, error) {
	return &answer{data: routerJSON{RouterAddress: common.HexToAddress(q.cfg.Router).Hex(), ChainID: q.chainID}}, nil
}
