package deposits

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/state"
)

const (
	// maxQueued is the maximum number of deposits that the queue shows per vault.
	maxQueued = 10_000
	// maxWhole is the maximum number of deposits in a response that is built in memory; longer ones are streamed.
	maxWhole = 2048
)

type groupJSON struct {
	VaultAddress string        `json:"vaultAddress"`
	VaultName    string        `json:"vaultName"`
	Deposits     []depositJSON `json:"deposits"`
	Count        int64         `json:"count"`
	Truncated    bool          `json:"truncated,omitempty"`
}

// unswept selects the deposits that no sweep has reached, of some vaults.
type unswept struct {
	Groups []ask.Above      `ask:"groups"`
	Vaults []common.Address `ask:"vaults" reads:"page.deposit"`
	Past   bool             `ask:"past"` // most deposits with higher numbers are later: the index of blocks skips them
}

var unsweptPage = ask.NewPage[unswept, deposit]("vault_events", state.SQL(files, "unswept"), ask.OldestFirst)

// group is the deposits of a vault that no sweep has reached.
type group struct {
	ask.Above // the highest number that a sweep named; a sweep up to 0 reaches no deposit
	total     int64
}

// of returns the arguments that select the deposits of some groups.
func of(p *ask.Pin, groups ...group) (args unswept) {
	args.Past = p.AsOf
	for _, g := range groups {
		args.Groups, args.Vaults = append(args.Groups, g.Above), append(args.Vaults, g.Owner)
	}
	return args
}

// groups returns the groups of those vaults that have unswept deposits.
func groups(ctx context.Context, p *ask.Pin, vaults []state.Vault) (out []group, err error) {
	if len(vaults) == 0 {
		return nil, nil
	}
	owners := state.Addresses(vaults)
	totals, err := ask.TotalsOf(ctx, p, owners...)
	for i, vault := range owners {
		if t := totals.Of(vault, vault); ask.HasUnswept(&vaults[i], t) {
			above := ask.Decimal("-1")
			if t.SweptTo > 0 {
				above = ask.Decimal(serve.Decimal(t.SweptTo))
			}
			out = append(out, group{ask.Above{Owner: vault, Key: above}, t.Unswept()})
		}
	}
	return out, err
}

// Queue returns the deposits that no sweep has reached, oldest first, by vault. They are counted first. A long
// response is read while it is sent, one vault after another, so that memory never holds more deposits than are shown
// for one vault.
func Queue(r *serve.Request) (*serve.Answer, error) {
	filter := r.Params.Filter("vault")
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) {
		all, err := groups(ctx, p, p.VaultsMatching(filter))
		if err != nil {
			return nil, err
		}
		if r.AsFile() {
			return queueFile(ctx, r, p, all)
		}
		var total int64
		for _, g := range all {
			total += g.total
		}
		if total > maxWhole {
			return &serve.Answer{Stream: func(ctx context.Context, w io.Writer) error { return stream(ctx, w, r, p, all) }}, nil
		}
		var deposits []deposit
		if total > 0 {
			deposits, err = unsweptPage.Read(ctx, p, of(p, all...), 0, int(total))
		}
		return &serve.Answer{Data: shown(p, all, deposits)}, err
	})
}

func stream(ctx context.Context, w io.Writer, r *serve.Request, p *ask.Pin, all []group) error {
	out := bufio.NewWriterSize(w, serve.StreamChunk)
	out.WriteString(`{"ok":true,"data":[`)
	for i := range all {
		if i > 0 {
			out.WriteByte(',')
		}
		var deposits []deposit
		err := r.Turn(ctx, p, func(ctx context.Context) (err error) {
			deposits, err = unsweptPage.Read(ctx, p, of(p, all[i]), 0, maxQueued)
			return err
		})
		if err != nil {
			return err
		}
		encoded, err := serve.Encode(shown(p, all[i:i+1], deposits)[0])
		if err != nil {
			return err
		}
		out.Write(bytes.TrimSpace(encoded))
	}
	out.WriteString("]}\n")
	return out.Flush()
}

// shown returns the groups with their deposits in chain order. Vaults usually number their deposits in that order,
// but not all do.
func shown(p *ask.Pin, groups []group, deposits []deposit) []groupJSON {
	slices.SortFunc(deposits, func(a, b deposit) int {
		return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.LogIndex, b.LogIndex), cmp.Compare(a.Sub, b.Sub))
	})
	of := make(map[common.Address][]depositJSON, len(groups))
	for i := range deposits {
		of[deposits[i].Vault] = append(of[deposits[i].Vault], deposits[i].json(p, p.Block))
	}
	out := make([]groupJSON, len(groups))
	for i, g := range groups {
		address, name := p.Written(g.Owner)
		list := of[g.Owner]
		out[i] = groupJSON{VaultAddress: address, VaultName: name, Deposits: append([]depositJSON{}, list...), Count: g.total,
			Truncated: g.total > int64(len(list))}
	}
	return out
}

// queueFile returns the whole queue: vault by vault and page by page, with the deposits of each vault in the order of
// their numbers.
func queueFile(ctx context.Context, r *serve.Request, p *ask.Pin, groups []group) (*serve.Answer, error) {
	var last *ask.Place
	size := r.Params.PageSize()
	return serve.Whole(ctx, r, p, func(ctx context.Context) (_ []depositJSON, more bool, err error) {
		var rows, some []deposit
		for len(groups) > 0 && len(rows) < size {
			if some, last, err = unsweptPage.After(ctx, p, of(p, groups[0]), last, size-len(rows)); err != nil {
				return nil, false, err
			}
			if rows = append(rows, some...); len(rows) < size {
				groups, last = groups[1:], nil
			}
		}
		return serve.Each(rows, func(d *deposit) depositJSON { return d.json(p, p.Block) }), len(groups) > 0, nil
	})
}
