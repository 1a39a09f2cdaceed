// Package withdrawals answers about withdrawal requests: those of a user, and the queue
// of those that wait or can be claimed.
//
// What a request has come to is not written down anywhere: it is the fold of its
// events, a handful, read for the requests of a page. Which requests are on the page
// is asked first:
//
//	queue        requests that are open at the block, out of the table that says from which
//	             block to which each was; their state does not matter, for that is theirs
//	of a user    few: all of them are folded, then filtered and cut
//	             many: the engine folds just as much of them as the filter looks at
package withdrawals

import (
	"context"
	_ "embed"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
)

var (
	//go:embed user_keys.sql
	sqlUserKeys string
	//go:embed user_page.sql
	sqlUserPage string
)

// few is up to how many requests of a user are all read for a page of them.
const few = 100

// OfUser is a page of a user's requests, newest first, of all vaults or one and of
// all or one status.
func OfUser(r *httpapi.Request) (*httpapi.Answer, error) {
	user, page, vault := r.PathAddress(), r.Params.Page(), r.Params.Vault()
	status := r.Params.OneOf("status", "", queued, claimed, cancelled)
	return r.Pinned(func(ctx context.Context, p *pin.Pin) (*httpapi.Answer, error) {
		args := pin.Args{"user": user, "vault": common.Address{}}
		if vault != nil {
			if _, known := p.Vault(*vault); !known {
				return r.List([]requestJSON{}, page, 0), nil
			}
			args["vault"] = *vault
		}
		var now uint64
		var keys []key
		err := pin.Together(
			func() (err error) { now, err = p.Now(ctx); return },
			func() (err error) { keys, err = newestKeys(ctx, p, args); return },
		)
		if err != nil {
			return nil, err
		}
		many := len(keys) > few
		total := int64(0)
		if many {
			if keys, total, err = pageOfMany(ctx, p, page, args, status, now); err != nil {
				return nil, err
			}
		}
		requests, err := read(ctx, p, keys)
		if err != nil {
			return nil, err
		}
		requests = ownRequests(requests, user, status, now)
		if !many {
			total = int64(len(requests))
			requests = httpapi.PageOf(requests, page)
		}
		return r.List(inJSON(p, requests, now), page, total), nil
	})
}

// newestKeys are the requests that a user made last, few and one more at most.
func newestKeys(ctx context.Context, p *pin.Pin, args pin.Args) ([]key, error) {
	args["limit"] = uint64(few) + 1
	return pin.Ask[key](ctx, p, sqlUserKeys, args)
}

// pageOfMany is a page of the requests of a user who has many, and how many these are.
func pageOfMany(ctx context.Context, p *pin.Pin, page httpapi.Page, args pin.Args, status string, now uint64) (keys []key, total int64, err error) {
	type row struct {
		key
		Total uint64 `ch:"total"` // of all pages
	}
	args["status"], args["now"] = status, now
	if status == "" {
		args["status"] = "any"
	}
	args["limit"], args["offset"] = uint64(page.Size), page.Offset()
	rows, err := pin.Ask[row](ctx, p, sqlUserPage, args)
	if err == nil && len(rows) == 0 && page.Number > 1 { // past the end no row says how many there are
		args["limit"], args["offset"] = uint64(1), uint64(0)
		rows, err = pin.Ask[row](ctx, p, sqlUserPage, args)
		if len(rows) > 0 {
			return nil, int64(rows[0].Total), err
		}
	}
	for _, r := range rows {
		keys, total = append(keys, r.key), int64(r.Total)
	}
	return keys, total, err
}

func inJSON(p *pin.Pin, requests []request, now uint64) []requestJSON {
	out := make([]requestJSON, len(requests))
	for i := range requests {
		out[i] = requests[i].json(p, now)
	}
	return out
}
