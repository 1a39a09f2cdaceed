// Package events answers about the decoded log: the logs of all vaults or one, newest first, the
// ones that a reorganisation retracted on request, and the stream of them.
//
// The table events has a row for each effect of a log, in the order of the blocks, so the newest
// page is that order backwards. A page is named by the place before which it begins: pages that
// are counted would move with each block.
//
// The stream sends the same logs in the order of the log, with their retractions and the ends of
// units, for as long as the client stays:
//
//	snapshot ──▶ records after a seq ──▶ frames
//	             near the end read once for all streams (Feed), behind it by each its own
//
// A client is at a seq and at nothing else, so any instance and any generation goes on where
// another left off. A generation that is behind is waited for.
package events

import (
	"context"
	_ "embed"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/schemas/contracts"
)

//go:embed page.sql
var sqlPage string

// filter says which logs a list has.
type filter struct {
	kinds     []ask.Name
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
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*httpapi.Answer, error) { return f.answer(ctx, r, p) })
}

// OfVault is a page of the logs of a vault, newest first.
func OfVault(r *httpapi.Request) (*httpapi.Answer, error) {
	address, f := r.PathAddress(), newFilter(r.Params)
	f.vault = &address
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*httpapi.Answer, error) {
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
func kinds(params *httpapi.Params) (all []ask.Name) {
	value := params.Get("kind")
	for _, k := range contracts.Kinds() {
		if value == "" || slices.Contains(strings.Split(value, ","), k.String()) {
			all = append(all, ask.Name(k.String()))
		}
	}
	if value != "" && len(all) != strings.Count(value, ",")+1 {
		params.Fault("kind", "must be different ones of "+strings.Join(names(), ", ")+", joined by commas")
	}
	return all
}

func names() (all []string) {
	for _, k := range contracts.Kinds() {
		all = append(all, k.String())
	}
	return all
}

// answer is a page, or all of them as a file.
func (f *filter) answer(ctx context.Context, r *httpapi.Request, p *ask.Pin) (*httpapi.Answer, error) {
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

// ofPage is what a page of logs is asked by; a zero vault, user and transaction stand for any.
type ofPage struct {
	Kinds       []ask.Name     `ask:"kinds"`
	Vault       common.Address `ask:"vault"`
	User        common.Address `ask:"user"`
	Tx          common.Hash    `ask:"tx"`
	From        int64          `ask:"from"`
	To          int64          `ask:"to"`
	BeforeBlock uint64         `ask:"before_block"`
	BeforeIndex uint64         `ask:"before_index"`
	BeforeSeq   uint64         `ask:"before_seq"`
	Retracted   bool           `ask:"retracted"`
	Limit       uint64         `ask:"limit"`
}

var logs = ask.New[ofPage, row](sqlPage)

// page reads the logs of a page and one more, where there is one.
func (f *filter) page(ctx context.Context, p *ask.Pin) ([]row, error) {
	args := ofPage{
		Kinds: f.kinds, From: f.span.From, To: f.span.To, BeforeBlock: f.before.block, BeforeIndex: f.before.index, BeforeSeq: f.before.seq,
		Retracted: f.retracted, Limit: uint64(f.size) + 1,
	}
	if f.vault != nil {
		if _, known := p.Vault(*f.vault); !known {
			return nil, nil
		}
		args.Vault = *f.vault
	}
	if f.user != nil {
		if *f.user == (common.Address{}) {
			return nil, nil // which stands for no user
		}
		args.User = *f.user
	}
	if f.tx != nil {
		if *f.tx == (common.Hash{}) {
			return nil, nil
		}
		args.Tx = *f.tx
	}
	return logs.Rows(ctx, p, args)
}
