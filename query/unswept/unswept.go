// Package unswept finds the deposits that no sweep has reached: the queue of deposits
// shows them, and the settlement summary what they sum up to.
//
// A vault numbers its deposits, and a sweep takes all up to a number. So those that
// wait at a block are the deposits up to it whose number is above the highest that was
// swept up to it: one range of the table's order. At a past block the engine passes
// over the later part of that range by what it knows of the blocks of each granule.
package unswept

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
)

var (
	//go:embed swept.sql
	sqlSwept string
	//go:embed totals.sql
	sqlTotals string
)

// Range is the deposits of a vault that no sweep has reached: all up to the block of
// the pin with a number after one.
type Range struct {
	Vault  common.Address
	After  uint64
	Total  int64
	Amount *big.Int
}

// Find gives the ranges of some vaults, in their order.
func Find(ctx context.Context, p *pin.Pin, vaults []pin.Vault) ([]Range, error) {
	ranges, err := begin(ctx, p, vaults)
	if err != nil {
		return nil, err
	}
	return ranges, count(ctx, p, ranges)
}

// begin gives ranges of which only the beginning is known.
func begin(ctx context.Context, p *pin.Pin, vaults []pin.Vault) ([]Range, error) {
	type row struct {
		Vault string `ch:"vault"`
		Swept uint64 `ch:"swept"`
	}
	rows, err := pin.Ask[row](ctx, p, sqlSwept, nil)
	if err != nil {
		return nil, err
	}
	ranges := make([]Range, len(vaults))
	for i, v := range vaults {
		ranges[i] = Range{Vault: v.Address, Amount: new(big.Int)}
		if k := slices.IndexFunc(rows, func(r row) bool { return httpapi.ToAddress(r.Vault) == v.Address }); k >= 0 {
			ranges[i].After = rows[k].Swept
		}
	}
	return ranges, nil
}

// count fills in how many deposits ranges have, and what they sum up to.
func count(ctx context.Context, p *pin.Pin, ranges []Range) error {
	type row struct {
		Vault  string   `ch:"vault"`
		Total  int64    `ch:"total"`
		Amount *big.Int `ch:"amount"`
	}
	for some := range slices.Chunk(pointers(ranges), Slots) {
		rows, err := pin.Ask[row](ctx, p, sqlTotals, Args(some))
		if err != nil {
			return err
		}
		for _, r := range some {
			if i := slices.IndexFunc(rows, func(f row) bool { return httpapi.ToAddress(f.Vault) == r.Vault }); i >= 0 {
				r.Total, r.Amount = rows[i].Total, rows[i].Amount
			}
		}
	}
	return nil
}

func pointers(ranges []Range) []*Range {
	out := make([]*Range, len(ranges))
	for i := range ranges {
		out[i] = &ranges[i]
	}
	return out
}

// Slots is how many ranges a question has room for.
const Slots = 6

// Args fills in the slots of a question: vault1, after1 and so on. A slot that is not
// needed holds no deposit.
func Args(ranges []*Range) pin.Args {
	args := make(pin.Args, 2*Slots)
	for i := range Slots {
		r := &Range{After: math.MaxUint64}
		if i < len(ranges) {
			r = ranges[i]
		}
		args[fmt.Sprint("vault", i+1)], args[fmt.Sprint("after", i+1)] = r.Vault, r.After
	}
	return args
}
