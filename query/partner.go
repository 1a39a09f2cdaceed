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

// foldVolumes gives the vaults with deposits, one row each.
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
		out[i].Volume.Add(out[i].Volume, r.Volume)
	}
	return slices.DeleteFunc(out, func(r volumeRow) bool { return r.Deposits <= 0 })
}

// scanBeyond is how many rows of a signed list are looked at beyond those of a
// page: a few of them take others back.
const scanBeyond = 256

func (q *Query) listPartnerDeposits(x *exchange) (*answer, error) {
	page := x.params.page()
	p, err := x.pin()
	if err != nil {
		return nil, err
	}
	counted := func() (count int64, err error) {
		volumes, _, err := x.volumes(p)
		for _, r := range volumes {
			count += r.Deposits
		}
		return count, err
	}
	var rows []depositRow
	var count int64
	var swept *sweeps
	err = together(
		func() (err error) {
			rows, count, err = signedPage[depositRow](x, p, sqlPartnerDeps, page, counted, named("partner", x.caller.id))
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

// signedPage asks for a page with a question that looks at the first rows of a
// list, and at more of them until the page is full, which it is when it holds
// what count says of the list. Meanwhile it counts.
func signedPage[T any](x *exchange, p *pin, question string, page page, count func() (int64, error), args ...any) (rows []T, total int64, err error) {
	scan := page.offset() + uint64(page.size) + scanBeyond
	look := func() (err error) {
		rows, err = pinned[T](x, p, question, slices.Concat(page.args(), []any{named("scan", scan)}, args)...)
		return err
	}
	if err := together(look, func() (err error) { total, err = count(); return }); err != nil {
		return nil, 0, err
	}
	for page.offset()+uint64(len(rows)) < min(page.offset()+uint64(page.size), uint64(total)) && scan <= math.MaxUint64/64 {
		scan *= 8
		if err := look(); err != nil {
			return nil, 0, err
		}
	}
	return rows, total, nil
}

func (q *Query) getRouter(x *exchange) (*answer, error) {
	return &answer{data: routerJSON{RouterAddress: common.HexToAddress(q.cfg.Router).Hex(), ChainID: q.chainID}}, nil
}
