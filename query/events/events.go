// Package events answers what the chain said: every log of the vaults that is decoded,
// newest first, the ones that a reorganisation took back on request.
//
// The spine has a row for each record, whatever its kind, in the order of the blocks, so
// the newest page is that order backwards, and its rows say of which vault, user and
// transaction they are. What a log says stands in the table of its kind, and is read
// there for the logs of the page alone:
//
//	spine, backwards ──▶ logs of a page ──▶ deposits, withdrawal_events, navs, sweeps: amounts
//	                                   └──▶ spine: what was taken back, by which record
//
// A page is named by the place before which it begins, for pages that are counted would
// move with each block, and their sum would be the length of the log.
//
// Which reorganisations there were is what the spine takes back: records that follow each
// other in the log.
//
// The stream tells the same logs in the order of the log, with what takes them back and
// the ends of units, for as long as the client stays:
//
//	snapshot ──▶ stretch after a seq: spine by seq ──▶ amounts, as for a page ──▶ frames
//	             near the end read once for all streams (Feed), behind it by each its own
//
// A client is at a seq and at nothing else, so any instance and any generation goes on
// where another left off. A generation that is behind is waited for.
package events

import (
	"context"
	_ "embed"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
	"github.com/navlog/navlog/schemas/contracts"
)

//go:embed page.sql
var sqlPage string

// filter says which logs a list has.
type filter struct {
	kinds     []uint64 // as the spine numbers them
	vault     *common.Address
	user      *common.Address
	tx        *common.Hash
	span      httpapi.Span
	retracted bool
	before    place
	size      int
}

// meta is that of a list whose pages are named by the place before them.
type meta struct {
	PageSize    int     `json:"pageSize"`
	Next        *string `json:"next"`
	HasNextPage bool    `json:"hasNextPage"`
}

// List is a page of the logs of all vaults or one, newest first.
func List(r *httpapi.Request) (*httpapi.Answer, error) {
	f := newFilter(r.Params)
	f.vault = r.Params.Vault()
	return r.Pinned(func(ctx context.Context, p *pin.Pin) (*httpapi.Answer, error) { return f.answer(ctx, r, p) })
}

// OfVault is a page of the logs of a vault, newest first.
func OfVault(r *httpapi.Request) (*httpapi.Answer, error) {
	address, f := r.PathAddress(), newFilter(r.Params)
	f.vault = &address
	return r.Pinned(func(ctx context.Context, p *pin.Pin) (*httpapi.Answer, error) {
		if _, ok := p.Vault(address); !ok {
			return nil, httpapi.NoSuchVault()
		}
		return f.answer(ctx, r, p)
	})
}

func newFilter(params *httpapi.Params) *filter {
	retracted := params.OneOf("retracted", "false", "true", "false") == "true"
	return &filter{
		kinds: kinds(params), user: params.Filter("user"), tx: params.Hash("tx"), span: params.Span(),
		retracted: retracted, before: before(params, retracted), size: params.PageSize(),
	}
}

// kinds reads the kinds of logs that are asked for, all when absent.
func kinds(params *httpapi.Params) (numbers []uint64) {
	value := params.Get("kind")
	for _, k := range contracts.Kinds() {
		if value == "" || slices.Contains(strings.Split(value, ","), k.String()) {
			numbers = append(numbers, inSpine(k))
		}
	}
	if value != "" && len(numbers) != strings.Count(value, ",")+1 {
		params.Fault("kind", "must be different ones of "+strings.Join(names(), ", ")+", joined by commas")
	}
	return numbers
}

// inSpine is a kind as the spine numbers it, where 0 is no kind of ours.
func inSpine(k contracts.Kind) uint64 { return 1 + uint64(k) }

func names() (all []string) {
	for _, k := range contracts.Kinds() {
		all = append(all, k.String())
	}
	return all
}

// answer is a page, or all of them as a file.
func (f *filter) answer(ctx context.Context, r *httpapi.Request, p *pin.Pin) (*httpapi.Answer, error) {
	if r.AsFile() {
		return f.file(ctx, r, p)
	}
	m := meta{PageSize: f.size}
	rows, err := f.page(ctx, p)
	if err != nil {
		return nil, err
	}
	if len(rows) > f.size {
		rows = rows[:f.size]
		next := rows[f.size-1].place(f.retracted).String()
		m.Next, m.HasNextPage = &next, true
	}
	out, err := describe(ctx, p, rows, f.retracted)
	if err != nil {
		return nil, err
	}
	return &httpapi.Answer{Data: out, Meta: m}, nil
}

// page reads the logs of a page and one more, where there is one.
func (f *filter) page(ctx context.Context, p *pin.Pin) ([]row, error) {
	args := pin.Args{
		"kinds": f.kinds, "vault": common.Address{}, "user": common.Address{}, "tx": common.Hash{}, "from": f.span.From, "to": f.span.To,
		"before_block": f.before.block, "before_index": f.before.index, "before_seq": f.before.seq, "retracted": uint64(0), "limit": uint64(f.size) + 1,
	}
	if f.vault != nil {
		if _, known := p.Vault(*f.vault); !known {
			return nil, nil
		}
		args["vault"] = *f.vault
	}
	if f.user != nil {
		if *f.user == (common.Address{}) {
			return nil, nil // stands in the spine for no user
		}
		args["user"] = *f.user
	}
	if f.tx != nil {
		if *f.tx == (common.Hash{}) {
			return nil, nil
		}
		args["tx"] = *f.tx
	}
	if f.retracted {
		args["retracted"] = uint64(1)
	}
	return pin.Ask[row](ctx, p, sqlPage, args)
}
