package withdrawals

import (
	"context"

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
	err = pin.WholePage(page.Offset()+uint64(page.Size),
		func(most uint64) (whole bool, err error) {
			keys, err := l.keys(ctx, p, args, page, most)
			if err != nil {
				return false, err
			}
			requests, err = read(ctx, p, keys[:min(len(keys), page.Size)])
			return len(keys) > page.Size, err
		},
		func() (rows uint64, err error) {
			n, err := l.counted(ctx, p, args)
			total = n.Total
			return n.Rows, err
		})
	return requests, total, err
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
func (l *list) keys(ctx context.Context, p *pin.Pin, args pin.Args, page httpapi.Page, most uint64) ([]key, error) {
	type row struct {
		key
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
	keys := make([]key, 0, page.Size+1)
	for _, r := range rows {
		if httpapi.ToAddress(r.Vault) == (common.Address{}) {
			p.See(readmodel.FenceOf(r.Fence))
		} else {
			keys = append(keys, r.key)
		}
	}
	return keys, nil
}
