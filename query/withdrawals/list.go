package withdrawals

import (
	"context"
	"math"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
	"github.com/navlog/navlog/schemas/readmodel"
)

// list is the questions for a page of some requests and for how many there are.
type list struct {
	pageOf, count string
	newestFirst   bool
}

// page gives the requests of a page, in no order, and how many are in the list.
func (l *list) page(ctx context.Context, p *pin.Pin, args pin.Args, page httpapi.Page) (requests []request, total int64, err error) {
	requests, _, err = l.part(ctx, p, args, page, func() (rows uint64, err error) {
		n, err := l.counted(ctx, p, args)
		total = n.Total
		return n.Rows, err
	})
	return requests, total, err
}

// place is where in a list a request stands.
type place struct {
	Block uint64 `ch:"at_block"`
	Log   uint32 `ch:"at_log"`
	key
}

// from has a list begin after a place, nil for its beginning.
func (l *list) from(args pin.Args, at *place) {
	if at == nil {
		at = &place{}
		if l.newestFirst {
			at.Block = math.MaxUint64
		}
	}
	args["from_block"], args["from_log"], args["from_vault"], args["from_index"] = at.Block, at.Log, httpapi.ToAddress(at.Vault), at.Index
}

// part gives the requests of a page, in no order, and where the last of them stands. rows
// tells how many rows the list has at most.
func (l *list) part(ctx context.Context, p *pin.Pin, args pin.Args, page httpapi.Page, rows func() (uint64, error)) (requests []request, last *place, err error) {
	err = pin.WholePage(page.Offset()+uint64(page.Size),
		func(most uint64) (whole bool, err error) {
			keys, err := l.keys(ctx, p, args, page, most)
			if err != nil {
				return false, err
			}
			last = nil
			of := make([]key, min(len(keys), page.Size))
			for i := range of {
				of[i], last = keys[i].key, &keys[i]
			}
			requests, err = read(ctx, p, of)
			return len(keys) > page.Size, err
		}, rows)
	return requests, last, err
}

// counted is how many requests a list has, and how many rows say so.
type counted struct {
	Total int64    `ch:"total"`
	Rows  uint64   `ch:"rows"`
	Fence []uint64 `ch:"fence"`
}

func (l *list) counted(ctx context.Context, p *pin.Pin, args pin.Args) (n counted, err error) {
	rows, err := pin.Ask[counted](ctx, p, l.count, args)
	for _, r := range rows {
		p.See(readmodel.FenceOf(r.Fence))
		n.Total, n.Rows = n.Total+r.Total, n.Rows+r.Rows
	}
	return n, err
}

// keys names the requests of a page and one more, out of the first so many rows.
func (l *list) keys(ctx context.Context, p *pin.Pin, args pin.Args, page httpapi.Page, most uint64) ([]place, error) {
	type row struct {
		place
		Fence []uint64 `ch:"fence"`
	}
	all := pin.Args{"most": most, "limit": uint64(page.Size) + 1, "offset": page.Offset()}
	for name, value := range args {
		all[name] = value
	}
	rows, err := pin.Ask[row](ctx, p, l.pageOf, all)
	if err != nil {
		return nil, err
	}
	keys := make([]place, 0, page.Size+1)
	for _, r := range rows {
		if httpapi.ToAddress(r.Vault) == (common.Address{}) {
			p.See(readmodel.FenceOf(r.Fence))
		} else {
			keys = append(keys, r.place)
		}
	}
	return keys, nil
}
