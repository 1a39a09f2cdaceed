// Package unswept finds the deposits that no sweep has reached: the queue of deposits
// shows them, and the settlement summary what they sum up to.
//
// A vault numbers its deposits in the order of the chain, and a sweep takes all up to
// a number. So those that wait are a range of numbers: it begins after the highest
// number that was swept, and ends before the first deposit of a later block. Where
// that is need not be looked for at the newest block, for there is none. At a past
// block a few thousand numbers are read, more where no deposit of a later block was
// among them, and in the end all:
//
//	    swept        To
//	─────┼───────────┼────▶ numbers of deposits
//	     ░░░░░░▒▒▒▒▒▒        ░ up to the block, ▒ of later ones
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
// the pin with a number after one and up to another.
type Range struct {
	Vault     common.Address
	After, To uint64
	Total     int64
	Amount    *big.Int
}

// spans are how many numbers of deposits are looked at for the end of a range at a past
// block, one after the other until it is among them.
var spans = []uint64{4096, 1 << 17, math.MaxUint64}

// Find gives the ranges of some vaults, in their order.
func Find(ctx context.Context, p *pin.Pin, vaults []pin.Vault) ([]Range, error) {
	ranges, err := begin(ctx, p, vaults)
	if err != nil {
		return nil, err
	}
	open := make([]*Range, len(ranges))
	for i := range ranges {
		open[i] = &ranges[i]
	}
	look := spans
	if !p.AsOf {
		look = spans[len(spans)-1:]
	}
	for _, span := range look {
		for _, r := range open {
			r.To = r.After + min(span, math.MaxUint64-r.After)
		}
		if open, err = count(ctx, p, open); err != nil {
			return nil, err
		}
	}
	return ranges, nil
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

// count fills in how many deposits ranges have, and gives those whose end may be
// further.
func count(ctx context.Context, p *pin.Pin, ranges []*Range) (open []*Range, err error) {
	type row struct {
		Vault  string   `ch:"vault"`
		Total  int64    `ch:"total"`
		Amount *big.Int `ch:"amount"`
		Later  int64    `ch:"later"`
	}
	var rows []row
	for some := range slices.Chunk(ranges, Slots) {
		found, err := pin.Ask[row](ctx, p, sqlTotals, Args(some))
		if err != nil {
			return nil, err
		}
		rows = append(rows, found...)
	}
	for _, r := range ranges {
		ends := r.To == math.MaxUint64
		if i := slices.IndexFunc(rows, func(f row) bool { return httpapi.ToAddress(f.Vault) == r.Vault }); i >= 0 {
			r.Total, r.Amount = rows[i].Total, rows[i].Amount
			ends = ends || rows[i].Later > 0
		}
		if !ends {
			open = append(open, r)
		}
	}
	return open, nil
}

// Slots is how many ranges a question has room for.
const Slots = 6

// Args fills in the slots of a question: vault1, after1, to1 and so on. A slot that is
// not needed holds no deposit.
func Args(ranges []*Range) pin.Args {
	args := make(pin.Args, 3*Slots)
	for i := range Slots {
		r := &Range{}
		if i < len(ranges) {
			r = ranges[i]
		}
		args[fmt.Sprint("vault", i+1)], args[fmt.Sprint("after", i+1)], args[fmt.Sprint("to", i+1)] = r.Vault, r.After, r.To
	}
	return args
}
