// Package withdrawals serves withdrawal requests: those of a user, of a vault, and the queue of those that are
// pending or claimable.
//
// Each row of a list is a complete request: when it was requested, funded and closed, and by what. Its status at a
// block follows from the row, by ignoring what happened after that block.
package withdrawals

import (
	"context"
	"embed"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/mapping"
)

//go:embed *.sql
var files embed.FS

type ofUser struct {
	User   common.Address `ask:"user" reads:"user_requests"`
	Vault  common.Address `ask:"vault"`  // zero: all
	Status ask.Word       `ask:"status"` // empty: any
}

type ofVault struct {
	Vault common.Address `ask:"vault" reads:"requests"`
	ask.Blocks
}

// inQueue selects the queue of a vault, or of all if it is zero.
type inQueue struct {
	Vault common.Address `ask:"vault" reads:"queue"`
}

type counted struct {
	ask.Mark
	Total  uint64 `ch:"total"`
	Lapses uint64 `ch:"lapses"`
}

const anyStatus = "any"

var (
	userPage  = ask.NewPage[ofUser, request]("user_requests", state.SQL(files, "user"), ask.NewestFirst).Deep()
	userCount = ask.New[ofUser, counted](state.SQL(files, "user_count"))
	vaultPage = ask.NewPage[ofVault, request]("requests", state.SQL(files, "vault"), ask.NewestFirst).Deep().Long()
	chainPage = ask.NewPage[ofVault, request]("requests", state.SQL(files, "chain"), ask.NewestFirst).Long()
	// A request that a later unit closes is missing from the list of open ones, so the page is only valid for
	// the newest block.
	queuePage = ask.NewPage[inQueue, request]("queue", state.SQL(files, "queue"), ask.OldestFirst).
			Newest().Deep().Long()
	pastQueuePage = ask.NewPage[inQueue, request]("queue", state.SQL(files, "queue_past"), ask.OldestFirst)
)

// OfUser returns a page of a user's requests, newest first, in all vaults or in one, and with any status or with one.
func OfUser(r *serve.Request) (*serve.Answer, error) {
	user, page, vault := r.PathAddress(), r.Params.Page(), r.Params.Filter("vault")
	status := r.Params.OneOf("status", anyStatus, queued, claimed, cancelled)
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) {
		args := ofUser{User: user, Vault: p.Only(vault)}
		if status != anyStatus {
			args.Status = ask.Word(status)
		}
		return list(ctx, r, p, page, userPage, args, func() (int64, error) {
			if status == anyStatus {
				totals, err := ask.UserTotals(ctx, p, user)
				return int64(totals.Sum(user, vault).Requests), err
			}
			n, _, err := userCount.One(ctx, p, args)
			p.Lapses(n.Lapses)
			return int64(n.Total), err
		})
	})
}

// OfVault returns a page of a vault's requests, newest first: in the order of their numbers, if these grow along the
// chain, because the list is in that order.
func OfVault(r *serve.Request) (*serve.Answer, error) {
	vault, page, span := r.PathAddress(), r.Params.Page(), r.Params.Span()
	return r.WithVault(vault, func(ctx context.Context, p *ask.Pin, v *state.Vault) (*serve.Answer, error) {
		args, err := ofVault{Vault: vault}, error(nil)
		if args.Blocks, err = p.Blocks(ctx, span.From, span.To); err != nil {
			return nil, err
		}
		question := vaultPage
		if !v.Mapped.Description.OneNumbering(mapping.Requested) {
			question = chainPage
		}
		return list(ctx, r, p, page, question, args, func() (int64, error) {
			return ask.Growth(ctx, p, ask.Whose{Owners: []common.Address{vault}}, args.Blocks,
				func(s *ask.Sums) uint64 { return s.Owners.Of(vault, vault).Requests })
		})
	})
}

// Queue returns a page of the requests that are pending or claimable, oldest first, of all vaults or of one.
func Queue(r *serve.Request) (*serve.Answer, error) {
	page, vault := r.Params.Page(), r.Params.Filter("vault")
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) {
		question := queuePage
		if p.AsOf || r.AsFile() { // a file stays at its block, however long it takes to send
			question = pastQueuePage
		}
		return list(ctx, r, p, page, question, inQueue{p.Only(vault)}, func() (total int64, err error) {
			vaults, err := ask.Queue(ctx, p, vault)
			for _, v := range vaults {
				total += int64(v.Total)
			}
			return total, err
		})
	})
}

// list returns a list of requests. count returns the total.
func list[A any](ctx context.Context, r *serve.Request, p *ask.Pin, page serve.Page, question *ask.Page[A, request],
	args A,
	count func() (int64, error)) (*serve.Answer, error) {
	now, err := p.Now(ctx)
	if err != nil {
		return nil, err
	}
	return serve.Listed(ctx, r, p, page, question, args, count, func(q *request) requestJSON { return q.json(p, now) })
}
