// Package vaults serves the vaults: their properties, their current and past value, the flows through them, and what
// must be settled. A vault's properties are part of the pin; its newest NAV and its last sweep are part of its totals.
package vaults

import (
	"context"
	"embed"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/state"
)

//go:embed *.sql
var files embed.FS

type vaultJSON struct {
	Address      string    `json:"address"`
	Name         string    `json:"name" file:"foreign"`
	Symbol       string    `json:"symbol" file:"foreign"`
	ChainID      uint64    `json:"chainId"`
	Decimals     uint32    `json:"decimals"`
	Asset        assetJSON `json:"asset"`
	TotalAssets  *string   `json:"totalAssets"`
	TotalSupply  *string   `json:"totalSupply"`
	NavPerShare  *string   `json:"navPerShare"`
	NavUpdatedAt *string   `json:"navUpdatedAt" file:"time"`
	StartBlock   string    `json:"startBlock" file:"number"`
	// Capabilities are the kinds of data that the vault's logs contain. Other data is null elsewhere, never 0.
	Capabilities capabilitiesJSON `json:"capabilities" file:"-"`
	Kinds        []string         `json:"kinds" file:"-"` // of its events that have an effect
}

type capabilitiesJSON struct {
	Deposits   bool `json:"deposits"`
	Sweeps     bool `json:"sweeps"`
	Queue      bool `json:"queue"`
	Expiry     bool `json:"expiry"`
	Partners   bool `json:"partners"`
	NAV        bool `json:"nav"`
	Settlement bool `json:"settlement"`
}

type assetJSON struct {
	Address  string `json:"address"`
	Symbol   string `json:"symbol" file:"foreign"`
	Decimals uint32 `json:"decimals"`
}

type detailJSON struct {
	vaultJSON
	aboutJSON
	Stats statsJSON `json:"stats"`
}

type statsJSON struct {
	UserCount          int64   `json:"userCount"`
	PendingWithdrawals *int64  `json:"pendingWithdrawals"` // null without a queue
	LastSweepAt        *string `json:"lastSweepAt"`
	LastNavAt          *string `json:"lastNavAt"`
}

// List returns all vaults.
func List(r *serve.Request) (*serve.Answer, error) {
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) {
		navs, err := ask.NewestNavs(ctx, p)
		if err != nil {
			return nil, err
		}
		out := make([]vaultJSON, len(navs))
		for i, nav := range navs {
			out[i] = describe(p, &p.Vaults[i], nav)
		}
		return serve.Short(ctx, r, p, out)
	})
}

// Detail returns the handler of one vault, with the operator's details of it, how many users it has, how many requests
// are in its queue, and when it was last swept and valued.
func Detail(abouts Abouts) serve.Handler {
	return func(r *serve.Request) (*serve.Answer, error) {
		address := r.PathAddress()
		return r.WithVault(address, func(ctx context.Context, p *ask.Pin, v *state.Vault) (*serve.Answer, error) {
			var totals ask.AllTotals
			var queue map[common.Address]ask.Queued
			err := ask.Together(
				func() (err error) { totals, err = ask.TotalsOf(ctx, p, address); return },
				func() (err error) { queue, err = ask.Queue(ctx, p, &address); return },
			)
			if err != nil {
				return nil, err
			}
			t := totals.Of(address, address)
			out := detailJSON{vaultJSON: describe(p, v, t.NewestNav()), aboutJSON: abouts.of(address),
				Stats: statsJSON{UserCount: int64(t.Users), LastSweepAt: serve.TimeOrNull(uint64(t.LastSweep))}}
			if out.Capabilities.Queue {
				out.Stats.PendingWithdrawals = new(int64(queue[address].Total))
			}
			out.Stats.LastNavAt = out.NavUpdatedAt
			return &serve.Answer{Data: out}, nil
		})
	}
}

// describe returns the properties of a vault, and its newest NAV if it has one.
func describe(p *ask.Pin, v *state.Vault, newest *ask.NAV) vaultJSON {
	out := vaultJSON{
		Address: v.Written, Name: v.Name, Symbol: v.Symbol, ChainID: p.ChainID, Decimals: v.Decimals,
		Asset:      assetJSON{Address: v.Asset.Address.Hex(), Symbol: v.Asset.Symbol, Decimals: v.Asset.Decimals},
		StartBlock: serve.Decimal(v.StartBlock), Capabilities: capabilitiesJSON(v.Mapped.Description.Capabilities()),
		Kinds: v.Mapped.Description.Kinds(),
	}
	if newest != nil {
		out.TotalAssets, out.TotalSupply = worth(v, newest.Block, newest.LogIndex, newest.Assets.String(),
			newest.Supply.String())
		out.NavPerShare, out.NavUpdatedAt = new(newest.PerShare.String()), serve.TimeOrNull(uint64(newest.Time))
	}
	return out
}
