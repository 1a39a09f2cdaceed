// Package events serves the decoded log: the logs of all vaults or one, newest first, optionally with those that a
// reorganisation retracted, and a stream of them.
//
// The table events has a row for each effect of a log, in the order of the blocks, so the newest page is read in
// reverse order. A page is identified by the position before which it begins, because page numbers would shift with
// each block.
//
// The stream sends the same logs in the order of the log, with their retractions and the ends of units, for as long
// as the client stays connected:
//
//	snapshot ──▶ records after a seq ──▶ frames
//	             near the end read once for all streams (Feed), further back by each for itself
//
// A client's position is only a seq, so any instance and any generation can continue where another stopped. If a
// generation is behind, the stream waits for it.
package events

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/serve"
)

//go:embed page.sql
var sqlPage string

// filter selects the logs of a list.
type filter struct {
	kinds     kinds
	vault     *common.Address
	user      *common.Address
	tx        *common.Hash
	span      serve.Span
	retracted bool
	before    place
	size      int
}

// meta is the metadata of a list whose pages are identified by a position.
type meta struct {
	PageSize    int     `json:"pageSize"`
	Next        *string `json:"next"`
	HasNextPage bool    `json:"hasNextPage"`
}

// List returns a page of the logs of all vaults or one, newest first.
func List(r *serve.Request) (*serve.Answer, error) {
	f := newFilter(r.Params)
	f.vault = r.Params.Vault()
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) { return f.answer(ctx, r, p) })
}

// OfVault returns a page of a vault's logs, newest first.
func OfVault(r *serve.Request) (*serve.Answer, error) {
	address, f := r.PathAddress(), newFilter(r.Params)
	f.vault = &address
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) {
		if _, ok := p.Vault(address); !ok {
			return nil, serve.NoSuchVault()
		}
		return f.answer(ctx, r, p)
	})
}

func newFilter(params *serve.Params) *filter {
	retracted := params.OneOf("retracted", "false", "true", "false") == "true"
	return &filter{
		kinds: kindsOf(params), user: params.Filter("user"), tx: params.Hash("tx"), span: params.Span(),
		retracted: retracted, before: before(params, retracted), size: params.PageSize(),
	}
}

// kinds are the requested contract events: some, or all that have an effect or are quarantined. The valid names come
// from the mappings of the vaults.
type kinds struct {
	all   bool
	names []ask.Name
}

// mostKinds is the maximum number of kinds in a query.
const mostKinds = 32

// kindsOf parses the requested kinds; absent means all.
func kindsOf(params *serve.Params) kinds {
	value := params.Get("kind")
	if value == "" {
		return kinds{all: true}
	}
	k := kinds{}
	for name := range strings.SplitSeq(value, ",") {
		if !ask.IsName(name) || slices.Contains(k.names, ask.Name(name)) {
			params.Fault("kind", "must be different names of contract events, such as DepositAccepted, joined by commas")
			return kinds{}
		}
		k.names = append(k.names, ask.Name(name))
	}
	if len(k.names) > mostKinds {
		params.Fault("kind", fmt.Sprintf("must be at most %d names of contract events", mostKinds))
	}
	return k
}

// have reports whether a row that has an effect or is quarantined was requested.
func (k kinds) have(name ask.Name) bool { return k.all || slices.Contains(k.names, name) }

// answer returns a page, or all pages as a file.
func (f *filter) answer(ctx context.Context, r *serve.Request, p *ask.Pin) (*serve.Answer, error) {
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
	return &serve.Answer{Data: out, Meta: m}, nil
}

// ofPage selects the logs of a page; a zero vault, user or transaction matches any.
type ofPage struct {
	Kinds       []ask.Name     `ask:"kinds"`
	All         bool           `ask:"all"`
	Vault       common.Address `ask:"vault"`
	User        common.Address `ask:"user"`
	Tx          common.Hash    `ask:"tx"`
	From        int64          `ask:"from"`
	To          int64          `ask:"to"`
	BeforeBlock uint64         `ask:"before_block"`
	BeforeIndex uint64         `ask:"before_index"`
	BeforeSeq   uint64         `ask:"before_seq"`
	BeforeSub   uint8          `ask:"before_sub"`
	Retracted   bool           `ask:"retracted"`
	Limit       uint64         `ask:"limit"`
}

var logs = ask.New[ofPage, row](sqlPage)

// page reads the logs of a page and one more, if there is one.
func (f *filter) page(ctx context.Context, p *ask.Pin) ([]row, error) {
	args := ofPage{
		Kinds: f.kinds.names, All: f.kinds.all, From: f.span.From, To: f.span.To,
		BeforeBlock: f.before.block, BeforeIndex: f.before.index, BeforeSeq: f.before.seq, BeforeSub: f.before.sub,
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
			return nil, nil // the zero address, which stands for no user
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

// file returns all pages of the list. It pages with a copy of the filter, so that an earlier attempt at the answer
// has no effect.
func (f *filter) file(ctx context.Context, r *serve.Request, p *ask.Pin) (*serve.Answer, error) {
	some := *f
	return serve.Whole(ctx, r, p, func(ctx context.Context) ([]eventJSON, error) {
		rows, err := some.page(ctx, p)
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		rows = rows[:min(len(rows), some.size)]
		some.before = rows[len(rows)-1].place(some.retracted)
		return describe(ctx, p, rows, some.retracted)
	})
}
