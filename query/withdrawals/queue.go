package withdrawals

import (
	"context"
	_ "embed"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
	"github.com/navlog/navlog/schemas/readmodel"
)

var (
	//go:embed queue.sql
	sqlQueue string
	//go:embed queue_count.sql
	sqlQueueCount string
)

// spareRows is how many rows are read at first beside those before a page and on it,
// and moreRows by how much more each time that a page is not whole.
const (
	spareRows = 64
	moreRows  = 8
)

// Queue is a page of the requests that wait or can be claimed, oldest first, of all
// vaults or one.
//
// The rows of the table may stand there in pairs that cancel each other, side by side.
// So a page is read out of the first so many rows: only the last of these may lack its
// other one, and one request more than the page has proves that the page is whole.
func Queue(r *httpapi.Request) (*httpapi.Answer, error) {
	page, vault := r.Params.Page(), r.Params.Vault()
	return r.Pinned(func(ctx context.Context, p *pin.Pin) (*httpapi.Answer, error) {
		args := pin.Args{"vault": common.Address{}}
		if vault != nil {
			if _, known := p.Vault(*vault); !known {
				return r.List([]requestJSON{}, page, 0), nil
			}
			args["vault"] = *vault
		}
		now, err := p.Now(ctx)
		if err != nil {
			return nil, err
		}
		args["now"] = now
		requests, total, err := queuePage(ctx, p, args, page)
		if err != nil {
			return nil, err
		}
		return r.List(inJSON(p, requests, now), page, total), nil
	})
}

// queuePage gives the requests of a page, and tells how many are in the queue.
func queuePage(ctx context.Context, p *pin.Pin, args pin.Args, page httpapi.Page) (requests []request, total int64, err error) {
	type counted struct {
		Total int64    `ch:"total"`
		Rows  uint64   `ch:"rows"`
		Fence []uint64 `ch:"fence"`
	}
	var n counted
	whole, most := false, page.Offset()+uint64(page.Size)+spareRows
	readPage := func() error {
		keys, err := queueKeys(ctx, p, args, page, most)
		if err != nil {
			return err
		}
		whole = len(keys) > page.Size
		requests, err = read(ctx, p, keys[:min(len(keys), page.Size)])
		return err
	}
	err = pin.Together(
		readPage,
		func() (err error) {
			if n, _, err = pin.AskOne[counted](ctx, p, sqlQueueCount, args); err == nil {
				see(p, n.Fence)
			}
			return
		},
	)
	for err == nil && !whole && most < n.Rows {
		most *= moreRows
		err = readPage()
	}
	oldestFirst(requests)
	return requests, n.Total, err
}

// queueKeys names the requests of a page and one more, out of the first so many rows.
func queueKeys(ctx context.Context, p *pin.Pin, args pin.Args, page httpapi.Page, most uint64) ([]key, error) {
	type row struct {
		key
		Fence []uint64 `ch:"fence"`
	}
	rows, err := pin.Ask[row](ctx, p, sqlQueue, pin.Args{"vault": args["vault"], "now": args["now"],
		"most": most, "limit": uint64(page.Size) + 1, "offset": page.Offset()})
	if err != nil {
		return nil, err
	}
	keys := make([]key, 0, page.Size+1)
	for _, r := range rows {
		if httpapi.ToAddress(r.Vault) == (common.Address{}) {
			see(p, r.Fence)
		} else {
			keys = append(keys, r.key)
		}
	}
	return keys, nil
}

func see(p *pin.Pin, fence []uint64) {
	p.See(readmodel.Fence{Seq: fence[0], Block: fence[1], Before: fence[2]})
}
