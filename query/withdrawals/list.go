package withdrawals

import (
	"context"
	"math"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/counts"
	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
	"github.com/navlog/navlog/schemas/readmodel"
)

// list is the question for a page of some requests, and how many there are.
type list struct {
	pageOf      string
	total       func(ctx context.Context, p *pin.Pin, args pin.Args) (int64, error)
	newestFirst bool
}

// ofUser are the requests of args' user, and queue those that wait or can be claimed, which
// other answers count too.
var (
	ofUser = list{sqlUser, func(ctx context.Context, p *pin.Pin, args pin.Args) (int64, error) {
		return pin.Count(ctx, p, sqlUserCount, args)
	}, true}
	queue = list{sqlQueue, func(ctx context.Context, p *pin.Pin, args pin.Args) (int64, error) {
		return counts.Waiting(ctx, p, args["vault"].(common.Address))
	}, false}
)

// page gives the requests of a page, in no order, and how many are in the list.
func (l *list) page(ctx context.Context, p *pin.Pin, args pin.Args, page httpapi.Page) (requests []request, total int64, err error) {
	_, requests, err = l.part(ctx, p, args, page, func() (_ int64, err error) {
		total, err = l.total(ctx, p, args)
		return total, err
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

// part gives the places of a page, and its requests in no order. total tells how many are
// in the list that args name.
func (l *list) part(ctx context.Context, p *pin.Pin, args pin.Args, page httpapi.Page, total func() (int64, error)) (places []place, requests []request, err error) {
	err = pin.WholePage(ctx, p, page.Offset(), page.Size, total, func(most uint64) (n int, err error) {
		if places, err = l.places(ctx, p, args, page, most); err != nil {
			return 0, err
		}
		keys := make([]key, len(places))
		for i := range places {
			keys[i] = places[i].key
		}
		requests, err = read(ctx, p, keys)
		return len(places), err
	})
	return places, requests, err
}

// places says which requests are on a page, out of the first so many rows.
func (l *list) places(ctx context.Context, p *pin.Pin, args pin.Args, page httpapi.Page, most uint64) ([]place, error) {
	type row struct {
		place
		Fence []uint64 `ch:"fence"`
	}
	all := pin.Args{"most": most, "limit": uint64(page.Size), "offset": page.Offset()}
	for name, value := range args {
		all[name] = value
	}
	rows, err := pin.Ask[row](ctx, p, l.pageOf, all)
	if err != nil {
		return nil, err
	}
	places := make([]place, 0, page.Size)
	for _, r := range rows {
		if httpapi.ToAddress(r.Vault) == (common.Address{}) {
			p.See(readmodel.FenceOf(r.Fence))
		} else {
			places = append(places, r.place)
		}
	}
	return places, nil
}
