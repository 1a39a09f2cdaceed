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

	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
	"github.com/navlog/navlog/query/unswept"
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

// Queue is the deposits that no sweep has reached, oldest first, by vault. They are
// counted before the first byte is sent, while an error can still be told, and read
// while the answer is sent: some vaults at once, so that memory holds no more of
// them than are shown of one vault.
func Queue(r *httpapi.Request) (*httpapi.Answer, error) {
	filter := r.Params.Vault()
	return r.Pinned(func(ctx context.Context, p *pin.Pin) (*httpapi.Answer, error) {
		ranges, err := unswept.Find(ctx, p, p.Wanted(filter))
		if err != nil {
			return nil, err
		}
		if r.AsFile() {
			return queueFile(ctx, r, p, ranges)
		}
		return &httpapi.Answer{Stream: func(ctx context.Context, w io.Writer) error {
			out := bufio.NewWriterSize(w, httpapi.StreamChunk)
			out.WriteString(`{"ok":true,"data":[`)
			for i, some := range batches(ranges) {
				if i > 0 {
					out.WriteByte(',')
				}
				if err := writeBatch(ctx, out, p, some); err != nil {
					return err
				}
			}
			out.WriteString("]}\n")
			return out.Flush()
		}}, nil
	})
}

// batches are the ranges that hold deposits, in parts that are read at once: as many
// as have no more deposits than are shown of one vault. A longer one is alone.
func batches(ranges []unswept.Range) (out [][]*unswept.Range) {
	room := int64(0)
	for i := range ranges {
		r := &ranges[i]
		if r.Total <= 0 {
			continue
		}
		if len(out) == 0 || r.Total > room || len(out[len(out)-1]) == unswept.Slots {
			out, room = append(out, nil), maxQueued
		}
		last := len(out) - 1
		out[last], room = append(out[last], r), room-r.Total
	}
	return out
}

// writeBatch reads the deposits of some ranges and writes a group for each.
func writeBatch(ctx context.Context, out *bufio.Writer, p *pin.Pin, ranges []*unswept.Range) error {
	args := unswept.Args(ranges)
	args["limit"] = uint64(maxQueued)
	from(args, nil)
	rows, err := pin.Ask[deposit](ctx, p, sqlUnswept, args)
	if err != nil {
		return err
	}
	byVault := make(map[common.Address][]deposit, len(ranges))
	for _, d := range rows {
		vault := httpapi.ToAddress(d.Vault)
		byVault[vault] = append(byVault[vault], d)
	}
	for i, r := range ranges {
		if i > 0 {
			out.WriteByte(',')
		}
		deposits := byVault[r.Vault]
		slices.SortFunc(deposits, func(a, b deposit) int {
			return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.LogIndex, b.LogIndex))
		})
		if err := writeGroup(out, p, r, deposits); err != nil {
			return err
		}
	}
	return nil
}

// writeGroup writes a groupJSON, some of its deposits after the other.
func writeGroup(out *bufio.Writer, p *pin.Pin, r *unswept.Range, deposits []deposit) error {
	address, name := p.Written(r.Vault)
	group, err := httpapi.Encode(groupJSON{VaultAddress: address, VaultName: name, Deposits: []depositJSON{}, Count: r.Total, Truncated: r.Total > int64(len(deposits))})
	if err != nil {
		return err
	}
	before, after, _ := bytes.Cut(bytes.TrimSpace(group), []byte(`"deposits":[`))
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
func writeDeposits(out *bufio.Writer, p *pin.Pin, deposits []deposit) error {
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
	if err := pin.Together(encoding...); err != nil {
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
