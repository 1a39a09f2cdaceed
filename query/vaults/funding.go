package vaults

import (
	"context"
	"math"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/state"
)

const fundingDays = 90

type fundingJSON struct {
	VaultAddress   string  `json:"vaultAddress"`
	Days           int64   `json:"days"`
	Since          string  `json:"since"`
	Requests       int64   `json:"requests"`
	Funded         int64   `json:"funded"`
	MedianSeconds  *uint64 `json:"medianSeconds"`
	LongestSeconds *uint64 `json:"longestSeconds"`
}

type ofFunding struct {
	Vault common.Address `ask:"vault" reads:"requests"`
	ask.Blocks
}

type fundingRow struct {
	ask.Mark
	Requests uint64 `ch:"requests"`
	Funded   uint64 `ch:"funded"`
	Median   uint64 `ch:"median"`
	Longest  uint64 `ch:"longest"`
}

var funding = ask.New[ofFunding, fundingRow](state.SQL(files, "funding"))

// Funding returns how long the requests of a vault waited to be funded, for requests made in the last fundingDays
// days before the block of the answer.
func Funding(r *serve.Request) (*serve.Answer, error) {
	address := r.PathAddress()
	return r.WithVault(address, func(ctx context.Context, p *ask.Pin, v *state.Vault) (*serve.Answer, error) {
		now, err := p.Now(ctx)
		if err != nil {
			return nil, err
		}
		since := max(0, int64(now)-fundingDays*day)
		args := ofFunding{Vault: address}
		if args.Blocks, err = p.Blocks(ctx, since, math.MaxInt64); err != nil {
			return nil, err
		}
		row, _, err := funding.One(ctx, p, args)
		if err != nil {
			return nil, err
		}
		p.Lapses(now + 1) // the days move with the next block
		out := fundingJSON{VaultAddress: v.Written, Days: fundingDays, Since: serve.Time(uint64(since)),
			Requests: int64(row.Requests), Funded: int64(row.Funded)}
		if row.Funded > 0 {
			out.MedianSeconds, out.LongestSeconds = &row.Median, &row.Longest
		}
		return &serve.Answer{Data: out}, nil
	})
}
