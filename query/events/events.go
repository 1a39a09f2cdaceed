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
	"embed"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/state"
)

//go:embed *.sql
var files embed.FS

// filter selects the logs of a page of a list.
type filter struct {
	ofPage
	vault *common.Address // nil: all
	size  int
}

// ofPage selects the logs of a page; no kinds, and a zero vault, user or transaction, match any.
type ofPage struct {
	Kinds     kinds          `ask:"kinds"`
	Vault     common.Address `ask:"vault"`
	User      common.Address `ask:"user"`
	Tx        common.Hash    `ask:"tx"`
	From      int64          `ask:"from"`
	To        int64          `ask:"to"`
	Retracted bool           `ask:"retracted"`
	Limit     uint64         `ask:"limit"`
	place
}

var logs = ask.New[ofPage, row](state.SQL(files, "page"))

// Filtered is the Expensive of the list of logs: with these filters, for which the table has no index, the engine reads
// logs until the page is full. If few match, it reads all of them. The list of a vault always has such a filter.
var Filtered = serve.Given("kind", "vault", "from", "to")

// meta is the metadata of a list whose pages are identified by a position.
type meta struct {
	PageSize    int     `json:"pageSize"`
	Next        *string `json:"next"`
	HasNextPage bool    `json:"hasNextPage"`
}

// List returns a page of the logs of all vaults or one, newest first.
func List(r *serve.Request) (*serve.Answer, error) {
	f := newFilter(r.Params)
	f.vault = r.Params.Filter("vault")
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) { return f.answer(ctx, r, p) })
}

// OfVault returns a page of a vault's logs, newest first.
func OfVault(r *serve.Request) (*serve.Answer, error) {
	address, f := r.PathAddress(), newFilter(r.Params)
	f.vault = &address
	return r.WithVault(address, func(ctx context.Context, p *ask.Pin, _ *state.Vault) (*serve.Answer, error) {
		return f.answer(ctx, r, p)
	})
}

func newFilter(params *serve.Params) *filter {
	f := &filter{ofPage: ofPage{Retracted: params.OneOf("retracted", "false", "true", "false") == "true",
		Kinds: kindsOf(params)}}
	user, tx, span := params.Filter("user"), params.Hash("tx"), params.Span()
	f.From, f.To, f.place, f.size = span.From, span.To, before(params, f.Retracted), params.PageSize()
	f.Limit = uint64(f.size) + 1
	if user != nil {
		f.User = *user
	}
	if tx != nil {
		f.Tx = *tx
	}
	if user != nil && f.User == (common.Address{}) || tx != nil && f.Tx == (common.Hash{}) {
		f.To = -1 // they stand for no user and no transaction: nothing matches
	}
	return f
}

// kinds are the names of the requested contract events; none: all that have an effect or are quarantined. The valid
// names come from the mappings of the vaults.
type kinds = []ask.Name

const mostKinds = 32

// kindsOf parses the requested kinds; absent means all.
func kindsOf(params *serve.Params) (k kinds) {
	value := params.Get("kind")
	if value == "" {
		return nil
	}
	for name := range strings.SplitSeq(value, ",") {
		switch {
		case len(k) == mostKinds: // each further one would be compared with all before it
			params.Fault("kind", fmt.Sprintf("must be at most %d names of contract events", mostKinds))
			return nil
		case !ask.IsName(name) || slices.Contains(k, ask.Name(name)):
			params.Fault("kind", "must be different names of contract events, such as DepositAccepted, joined by commas")
			return nil
		}
		k = append(k, ask.Name(name))
	}
	return k
}

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
		m.Next, m.HasNextPage = new(rows[f.size-1].place(f.Retracted).String()), true
	}
	out, err := describe(ctx, p, rows, f.Retracted)
	if err != nil {
		return nil, err
	}
	return &serve.Answer{Data: out, Meta: m}, nil
}

// page reads the logs of a page and one more, if there is one.
func (f *filter) page(ctx context.Context, p *ask.Pin) ([]row, error) {
	args := f.ofPage
	args.Vault = p.Only(f.vault)
	if f.To < 0 || args.Vault == common.MaxAddress {
		return nil, nil // nothing matches, and the engine would read every log to find that out
	}
	return logs.Rows(ctx, p, args)
}

// file returns all pages of the list. It pages with a copy of the filter, so that an earlier attempt at the answer
// has no effect.
func (f *filter) file(ctx context.Context, r *serve.Request, p *ask.Pin) (*serve.Answer, error) {
	some := *f
	return serve.Whole(ctx, r, p, func(ctx context.Context) ([]eventJSON, bool, error) {
		rows, err := some.page(ctx, p)
		if err != nil || len(rows) == 0 {
			return nil, false, err
		}
		more := len(rows) > some.size
		rows = rows[:min(len(rows), some.size)]
		some.place = rows[len(rows)-1].place(some.Retracted)
		out, err := describe(ctx, p, rows, some.Retracted)
		return out, more, err
	})
}

// place is the position at which a page ends: the next page begins before it.
type place struct {
	Block uint64 `ask:"before_block"`
	Index uint64 `ask:"before_index"`
	// Seq distinguishes logs at the same place of the chain; it is 0 in a list of live logs, which has at most one
	// there.
	Seq uint64 `ask:"before_seq"`
	// Sub distinguishes the effects of a log: a page may end between two of them.
	Sub uint8 `ask:"before_sub"`
}

var newest = place{Block: math.MaxUint64}

// before parses the parameter that requests the next page. A place with a seq is only valid in a list with retracted
// logs: in a list of live logs it would exclude the record at that place.
func before(params *serve.Params, retracted bool) place {
	value := params.Place("before")
	if value == "" {
		return newest
	}
	at, ok := parsePlace(value)
	if !ok || at.Seq != 0 && !retracted {
		params.Fault("before", "must be the meta.next of an earlier response")
		return newest
	}
	return at
}

// String encodes a place for clients, the first effect of a log without its number.
func (p place) String() string {
	var b []byte
	for _, n := range []uint64{p.Block, p.Index, p.Seq} {
		b = binary.AppendUvarint(b, n)
	}
	if p.Sub > 0 {
		b = binary.AppendUvarint(b, uint64(p.Sub))
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// parsePlace parses the output of String, and nothing else.
func parsePlace(s string) (p place, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return p, false
	}
	for _, n := range []*uint64{&p.Block, &p.Index, &p.Seq} {
		v, length := binary.Uvarint(b)
		if length <= 0 {
			return p, false
		}
		*n, b = v, b[length:]
	}
	sub, _ := binary.Uvarint(b) // 0 if there is none
	p.Sub = uint8(sub)
	return p, p.String() == s
}
