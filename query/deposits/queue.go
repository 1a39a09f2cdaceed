package deposits

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"io"
	"runtime"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/state"
)

//go:embed unswept.sql
var sqlUnswept string

// maxQueued is the most deposits that the queue shows of one vault.
const maxQueued = 10_000

// groupJSON is the deposits of one vault that no sweep has reached.
type groupJSON struct {
	VaultAddress string        `json:"vaultAddress"`
	VaultName    string        `json:"vaultName"`
	Deposits     []depositJSON `json:"deposits"`
	Count        int64         `json:"count"`
	Truncated    bool          `json:"truncated,omitempty"`
}

type unswept struct {
	Vault common.Address `ask:"vault" reads:"vault_events"`
	// Above is the highest number that a sweep named; a sweep up to 0 reaches nothing.
	Above ask.Decimal `ask:"above"`
}

var unsweptPage = ask.NewPage[unswept, deposit]("vault_events", sqlUnswept, ask.OldestFirst)

// group is the deposits of a vault that no sweep has reached.
type group struct {
	args  unswept
	total int64
}

// groups are those of some vaults that have such deposits.
func groups(ctx context.Context, p *ask.Pin, vaults []state.Vault) (out []group, err error) {
	owners := make([]common.Address, len(vaults))
	for i, v := range vaults {
		owners[i] = v.Address
	}
	totals, err := ask.TotalsOf(ctx, p, owners...)
	for _, vault := range owners {
		t := totals.Of(vault, vault)
		if total := int64(t.Deposits) - int64(t.Swept); total > 0 {
			above := ask.Decimal("-1")
			if t.SweptTo > 0 {
				above = ask.Decimal(httpapi.Decimal(t.SweptTo))
			}
			out = append(out, group{unswept{vault, above}, total})
		}
	}
	return out, err
}

// Queue is the deposits that no sweep has reached, oldest first, by vault. They are counted before
// the first byte is sent, while an error can still be told, and read while the answer is sent, one
// vault after the other, so that memory holds no more of them than are shown of one vault.
func Queue(r *httpapi.Request) (*httpapi.Answer, error) {
	filter := r.Params.Vault()
	return r.Pinned(func(ctx context.Context, p *ask.Pin) (*httpapi.Answer, error) {
		all, err := groups(ctx, p, p.Wanted(filter))
		if err != nil {
			return nil, err
		}
		if r.AsFile() {
			return queueFile(ctx, r, p, all)
		}
		return &httpapi.Answer{Stream: func(ctx context.Context, w io.Writer) error {
			out := bufio.NewWriterSize(w, httpapi.StreamChunk)
			out.WriteString(`{"ok":true,"data":[`)
			for i := range all {
				if i > 0 {
					out.WriteByte(',')
				}
				deposits, err := unsweptPage.Read(ctx, p, all[i].args, 0, maxQueued)
				if err == nil {
					err = r.Settled(ctx, p)
				}
				if err == nil {
					err = writeGroup(out, p, &all[i], deposits)
				}
				if err != nil {
					return err
				}
			}
			out.WriteString("]}\n")
			return out.Flush()
		}}, nil
	})
}

// writeGroup writes a groupJSON, some of its deposits after the other. A vault numbers its deposits
// in the order of the chain, and the group is in that order also where one does not.
func writeGroup(out *bufio.Writer, p *ask.Pin, g *group, deposits []deposit) error {
	slices.SortFunc(deposits, func(a, b deposit) int {
		return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.LogIndex, b.LogIndex))
	})
	address, name := p.Written(g.args.Vault)
	encoded, err := httpapi.Encode(groupJSON{VaultAddress: address, VaultName: name, Deposits: []depositJSON{}, Count: g.total, Truncated: g.total > int64(len(deposits))})
	if err != nil {
		return err
	}
	before, after, _ := bytes.Cut(bytes.TrimSpace(encoded), []byte(`"deposits":[`))
	out.Write(before)
	out.WriteString(`"deposits":[`)
	for i, some := range slices.Collect(slices.Chunk(deposits, encodedAtOnce)) {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := writeDeposits(out, p, some); err != nil {
			return err
		}
	}
	_, err = out.Write(after)
	return err
}

// encodedAtOnce is how many deposits are encoded before they are written.
const encodedAtOnce = 1024

// writeDeposits writes some deposits with commas between them. Each processor encodes a
// part of them. None of them was swept.
func writeDeposits(out *bufio.Writer, p *ask.Pin, deposits []deposit) error {
	each := (len(deposits) + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0)
	parts := slices.Collect(slices.Chunk(deposits, max(1, each)))
	encoded, encoding := make([][]byte, len(parts)), make([]func() error, len(parts))
	for i, part := range parts {
		encoding[i] = func() (err error) {
			list := make([]depositJSON, len(part))
			for k := range part {
				list[k] = part[k].json(p)
			}
			encoded[i], err = httpapi.Encode(list)
			return err
		}
	}
	if err := ask.Together(encoding...); err != nil {
		return err
	}
	for i, list := range encoded {
		if i > 0 {
			out.WriteByte(',')
		}
		list = bytes.TrimSpace(list)
		if _, err := out.Write(list[1 : len(list)-1]); err != nil { // without the brackets
			return err
		}
	}
	return nil
}
