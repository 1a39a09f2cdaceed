// Package counts answers numbers that several answers show: how many users there are, how many requests wait, and
// what was deposited through a partner. They are here once, so that no two answers can tell them differently.
package counts

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
	//go:embed users.sql
	sqlUsers string
	//go:embed waiting.sql
	sqlWaiting string
	//go:embed partner.sql
	sqlPartner string
)

// Users is how many users a vault has, or of how many the deposits came through a partner; of all for zeros.
func Users(ctx context.Context, p *pin.Pin, vault common.Address, partner uint32) (int64, error) {
	return pin.Count(ctx, p, sqlUsers, pin.Args{"vault": vault, "partner": partner})
}

// Waiting is how many requests are in the queue of a vault, or of all for the zero address.
func Waiting(ctx context.Context, p *pin.Pin, vault common.Address) (int64, error) {
	now, err := p.Now(ctx)
	if err != nil {
		return 0, err
	}
	return pin.Count(ctx, p, sqlWaiting, pin.Args{"vault": vault, "now": now})
}

// Brought is what was deposited through a partner in one vault.
type Brought struct {
	Vault    string   `ch:"vault"`
	Deposits int64    `ch:"deposits"`
	Volume   *big.Int `ch:"volume"`
	Fence    []uint64 `ch:"fence"`
}

// Through is what was deposited through a partner, in the order of the vaults; those with nothing are left out.
func Through(ctx context.Context, p *pin.Pin, partner uint32) ([]Brought, error) {
	rows, err := pin.Ask[Brought](ctx, p, sqlPartner, pin.Args{"partner": partner})
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		p.See(readmodel.FenceOf(r.Fence))
	}
	rows = slices.DeleteFunc(rows, func(b Brought) bool { return b.Deposits <= 0 })
	slices.SortFunc(rows, func(a, b Brought) int { return p.Rank(httpapi.ToAddress(a.Vault)) - p.Rank(httpapi.ToAddress(b.Vault)) })
	return rows, nil
}
