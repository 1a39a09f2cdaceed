// Package withdrawals answers about withdrawal requests: those of a user, of a vault, and the queue
// of those that wait or can be claimed.
//
// What a request has come to is not written down anywhere: it is the fold of its
// events, a handful, read for the requests of a page. Which requests are on the page
// is asked first, of the table that says from which block to which each was open:
//
//	list of a user or the queue ──▶ keys of a page ──▶ their events ──▶ what each has come to
//	                        └─────▶ how many there are
//
// Those of a vault are named by their indexes, which are the order of the events, so that
// table is asked itself.
package withdrawals

import (
	"context"
	_ "embed"
	"maps"
	"math"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
)

var (
	//go:embed user.sql
	sqlUser string
	//go:embed user_count.sql
	sqlUserCount string
	//go:embed vault.sql
	sqlVault string
	//go:embed vault_count.sql
	sqlVaultCount string
	//go:embed queue.sql
	sqlQueue string
)

// OfUser is a page of a user's requests, newest first, of all vaults or one and of
// all or one status.
func OfUser(r *httpapi.Request) (*httpapi.Answer, error) {
	user := r.PathAddress()
	status := r.Params.OneOf("status", "any", queued, claimed, cancelled)
	return answer(r, ofUser, pin.Args{"user": user, "status": status})
}

// OfVault is a page of a vault's requests, newest first, as the vault numbers them.
func OfVault(r *httpapi.Request) (*httpapi.Answer, error) {
	vault, page, span := r.PathAddress(), r.Params.Page(), r.Params.Span()
	return r.Pinned(func(ctx context.Context, p *pin.Pin) (*httpapi.Answer, error) {
		if _, known := p.Vault(vault); !known {
			return nil, httpapi.NoSuchVault()
		}
		type count struct {
			Total int64 `ch:"total"`
		}
		args := pin.Args{"vault": vault, "from": span.From, "to": span.To, "limit": uint64(page.Size), "offset": page.Offset(), "up_to": uint64(math.MaxUint64)}
		if r.AsFile() {
			return vaultFile(ctx, r, p, args)
		}
		var requests []request
		var n count
		var now uint64
		err := pin.Together(
			func() (err error) {
				keys, err := pin.Ask[key](ctx, p, sqlVault, args)
				if err == nil {
					requests, err = read(ctx, p, keys)
				}
				return err
			},
			func() (err error) { n, _, err = pin.AskOne[count](ctx, p, sqlVaultCount, args); return },
			func() (err error) { now, err = p.Now(ctx); return },
		)
		if err != nil {
			return nil, err
		}
		lastFirst(requests)
		return r.List(written(requests, p, now), page, n.Total), nil
	})
}

// Queue is a page of the requests that wait or can be claimed, oldest first, of all
// vaults or one.
func Queue(r *httpapi.Request) (*httpapi.Answer, error) {
	return answer(r, queue, pin.Args{})
}

// answer is a page of a list, of all vaults or one.
func answer(r *httpapi.Request, l list, args pin.Args) (*httpapi.Answer, error) {
	page, vault := r.Params.Page(), r.Params.Vault()
	return r.Pinned(func(ctx context.Context, p *pin.Pin) (*httpapi.Answer, error) {
		args := maps.Clone(args)
		l.from(args, nil)
		args["vault"] = common.Address{}
		if vault != nil {
			if _, known := p.Vault(*vault); !known {
				if r.AsFile() {
					return httpapi.Whole(ctx, r, p, columns, httpapi.Once[requestJSON](nil))
				}
				return r.List([]requestJSON{}, page, 0), nil
			}
			args["vault"] = *vault
		}
		now, err := p.Now(ctx)
		if err != nil {
			return nil, err
		}
		args["now"] = now
		if r.AsFile() {
			return l.file(ctx, r, p, args, page, now)
		}
		requests, total, err := l.page(ctx, p, args, page)
		if err != nil {
			return nil, err
		}
		l.sort(requests)
		return r.List(written(requests, p, now), page, total), nil
	})
}

// written are some requests as answers have them.
func written(requests []request, p *pin.Pin, now uint64) []requestJSON {
	out := make([]requestJSON, len(requests))
	for i := range requests {
		out[i] = requests[i].json(p, now)
	}
	return out
}
