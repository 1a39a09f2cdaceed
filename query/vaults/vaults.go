// Package vaults answers what the vaults are, what they are worth, and what they were
// worth before. What a vault is stands in the pin; its newest NAV is asked for vault by
// vault, at once, for each question stops at the first row that it finds, whether that
// is of the last block or years old.
package vaults

import (
	"context"
	_ "embed"
	"math"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/counts"
	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/navs"
	"github.com/navlog/navlog/query/pin"
)

var (
	//go:embed navs.sql
	sqlNavs string
	//go:embed navs_count.sql
	sqlNavsCount string
	//go:embed last_sweep.sql
	sqlLastSweep string
)

type vaultJSON struct {
	Address      string    `json:"address"`
	Name         string    `json:"name"`
	Symbol       string    `json:"symbol"`
	ChainID      uint64    `json:"chainId"`
	Decimals     uint32    `json:"decimals"`
	Asset        assetJSON `json:"asset"`
	TotalAssets  *string   `json:"totalAssets"`
	TotalSupply  *string   `json:"totalSupply"`
	NavPerShare  *string   `json:"navPerShare"`
	NavUpdatedAt *string   `json:"navUpdatedAt"`
	StartBlock   string    `json:"startBlock"`
}

type assetJSON struct {
	Address  string `json:"address"`
	Symbol   string `json:"symbol"`
	Decimals uint32 `json:"decimals"`
}

type detailJSON struct {
	vaultJSON
	Stats statsJSON `json:"stats"`
}

type statsJSON struct {
	UserCount          int64   `json:"userCount"`
	PendingWithdrawals int64   `json:"pendingWithdrawals"`
	LastSweepAt        *string `json:"lastSweepAt"`
	LastNavAt          *string `json:"lastNavAt"`
}

// List is all vaults.
func List(r *httpapi.Request) (*httpapi.Answer, error) {
	return r.Pinned(func(ctx context.Context, p *pin.Pin) (*httpapi.Answer, error) {
		vaults := p.Vaults
		out, asking := make([]vaultJSON, len(vaults)), make([]func() error, len(vaults))
		for i := range vaults {
			asking[i] = func() error {
				nav, err := navs.Newest(ctx, p, vaults[i].Address, math.MaxInt64)
				out[i] = describe(p, &vaults[i], nav)
				return err
			}
		}
		if err := pin.Together(asking...); err != nil {
			return nil, err
		}
		if r.AsFile() {
			return httpapi.Whole(ctx, r, p, columns, httpapi.Once(out))
		}
		return &httpapi.Answer{Data: out}, nil
	})
}

// Detail is one vault with how many users it has, how many requests are in its queue,
// and when it was last swept and valued.
func Detail(r *httpapi.Request) (*httpapi.Answer, error) {
	address := r.PathAddress()
	return r.Pinned(func(ctx context.Context, p *pin.Pin) (*httpapi.Answer, error) {
		v, ok := p.Vault(address)
		if !ok {
			return nil, httpapi.NoSuchVault()
		}
		var newest *navs.Nav
		var stats statsJSON
		err := pin.Together(
			func() (err error) { newest, err = navs.Newest(ctx, p, address, math.MaxInt64); return },
			func() (err error) { stats.UserCount, err = counts.Users(ctx, p, address, 0); return },
			func() (err error) { stats.PendingWithdrawals, err = counts.Waiting(ctx, p, address); return },
			func() (err error) { stats.LastSweepAt, err = lastSweep(ctx, p, address); return },
		)
		if err != nil {
			return nil, err
		}
		out := detailJSON{describe(p, v, newest), stats}
		out.Stats.LastNavAt = out.NavUpdatedAt
		return &httpapi.Answer{Data: out}, nil
	})
}

// Navs is a page of the NAVs of a vault, newest first.
func Navs(r *httpapi.Request) (*httpapi.Answer, error) {
	address, page, span := r.PathAddress(), r.Params.Page(), r.Params.Span()
	return r.Pinned(func(ctx context.Context, p *pin.Pin) (*httpapi.Answer, error) {
		v, ok := p.Vault(address)
		if !ok {
			return nil, httpapi.NoSuchVault()
		}
		type count struct {
			Total int64 `ch:"total"`
		}
		args := pin.Args{"vault": address, "from": span.From, "to": span.To, "limit": uint64(page.Size), "offset": page.Offset(),
			"before_block": uint64(math.MaxUint64), "before_log": uint32(math.MaxUint32)}
		if r.AsFile() {
			return navsFile(ctx, r, p, v, args)
		}
		var rows []navs.Nav
		var n count
		err := pin.Together(
			func() (err error) { rows, err = pin.Ask[navs.Nav](ctx, p, sqlNavs, args); return },
			func() (err error) { n, _, err = pin.AskOne[count](ctx, p, sqlNavsCount, args); return },
		)
		if err != nil {
			return nil, err
		}
		out := make([]navs.JSON, len(rows))
		for i := range rows {
			out[i] = rows[i].JSON(v)
		}
		return r.List(out, page, n.Total), nil
	})
}

// lastSweep is when a vault was last swept, nil for never.
func lastSweep(ctx context.Context, p *pin.Pin, vault common.Address) (*string, error) {
	type row struct {
		Time uint32 `ch:"ts"`
	}
	r, _, err := pin.AskOne[row](ctx, p, sqlLastSweep, pin.Args{"vault": vault})
	return httpapi.TimeOrNull(uint64(r.Time)), err
}

// describe is what a vault is, and its newest NAV where it has one.
func describe(p *pin.Pin, v *pin.Vault, newest *navs.Nav) vaultJSON {
	out := vaultJSON{
		Address: v.Written, Name: v.Name, Symbol: v.Symbol, ChainID: p.ChainID, Decimals: v.Decimals,
		Asset:      assetJSON{Address: v.Asset.Address.Hex(), Symbol: v.Asset.Symbol, Decimals: v.Asset.Decimals},
		StartBlock: httpapi.Decimal(v.StartBlock),
	}
	if newest != nil {
		assets, supply, price := newest.TotalAssets.String(), newest.TotalSupply.String(), newest.NavPerShare.String()
		out.TotalAssets, out.TotalSupply, out.NavPerShare, out.NavUpdatedAt = &assets, &supply, &price, httpapi.TimeOrNull(uint64(newest.Time))
	}
	return out
}
