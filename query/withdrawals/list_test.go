package withdrawals

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/readtest"
)

// TestPageAmidUnit: a unit that does not affect the block of an answer changes rows of its list, after the requests
// were counted and before a page is read. The queue at the newest block no longer contains the requests that the unit
// closed, so that page is discarded and read again.
func TestPageAmidUnit(t *testing.T) {
	const requests, size = 100, 50
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	w.Gen.Exec("SYSTEM STOP MERGES lists")
	w.Log.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.BlockRecord(1))
	fact := func(kind readtest.Kind, id, block uint64) readtest.Fact {
		return readtest.Fact{Kind: kind, Vault: readtest.VaultA, User: readtest.Alice, Other: readtest.Alice, ID: id,
			Assets: 1, Shares: 1, Block: block, Index: uint32(id), Tx: readtest.Tx(byte(block))}
	}
	for id := range uint64(requests) {
		w.Log.Add(fact(readtest.Request, id, 2), 0)
	}
	w.Log.Append(readtest.BlockRecord(2))
	w.Write()
	s, block := w.Look(), uint64(2)
	unit := func(kind readtest.Kind, id func(n int) uint64) {
		block++
		for n := range 30 {
			w.Log.Add(fact(kind, id(n), block), 0)
		}
		w.Log.Append(readtest.BlockRecord(block))
		w.Write()
	}
	forwards, backwards := func(n int) uint64 { return uint64(n) }, func(n int) uint64 { return uint64(requests - 1 - n) }
	for _, c := range []struct {
		name string
		id   func(n int) uint64
		kind readtest.Kind
		read func(context.Context, *ask.Pin) ([]request, error)
		want error
	}{
		{"queue as of its block", forwards, readtest.Funding, func(ctx context.Context, p *ask.Pin) ([]request, error) {
			return pastQueuePage.Read(ctx, p, inQueue{}, 0, size)
		}, nil},
		{"queue as of its block, closed", forwards, readtest.Cancel,
			func(ctx context.Context, p *ask.Pin) ([]request, error) {
				return pastQueuePage.Read(ctx, p, inQueue{}, 0, size)
			}, nil},
		{"queue", forwards, readtest.Expiry, func(ctx context.Context, p *ask.Pin) ([]request, error) {
			return queuePage.Read(ctx, p, inQueue{}, 0, size)
		}, ask.ErrRewritten},
		{"user", backwards, readtest.Claim, func(ctx context.Context, p *ask.Pin) ([]request, error) {
			return userPage.Read(ctx, p, ofUser{User: readtest.Alice, Status: queued}, 0, size)
		}, nil},
		{"vault", backwards, readtest.Expiry, func(ctx context.Context, p *ask.Pin) ([]request, error) {
			return vaultPage.Read(ctx, p, ofVault{Vault: readtest.VaultA, Blocks: ask.Blocks{Last: 2}}, 0, size)
		}, nil},
	} {
		p, err := ask.At(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		queue, err := ask.Queue(t.Context(), p, nil)
		if n := queue[readtest.VaultA].Total; err != nil || n != requests {
			t.Fatalf("%s: %d requests, %v", c.name, n, err)
		}
		unit(c.kind, c.id)
		rows, err := c.read(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Settled(t.Context(), w.Watcher); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if c.want != nil {
			continue
		}
		if len(rows) != size {
			t.Errorf("%s: %d requests", c.name, len(rows))
		}
		for n, r := range rows {
			if r.Index != c.id(n) || r.status(p.Block, s.Time) != queued {
				t.Errorf("%s: request %d is at place %d, %s", c.name, r.Index, n, r.status(p.Block, s.Time))
			}
		}
	}
	tries := 0
	_, err := ask.Answer(t.Context(), w.Watcher, s, nil, func(ctx context.Context, p *ask.Pin) error {
		tries++
		rows, err := queuePage.Read(ctx, p, inQueue{}, 0, requests)
		if p.Seq != s.Seq && len(rows) != 40 { // 0 to 29 were closed, and 70 to 99
			t.Errorf("%d requests are in the queue", len(rows))
		}
		return err
	})
	if err != nil || tries != 2 {
		t.Errorf("the queue takes %d tries: %v", tries, err)
	}
}

// TestFarPages: a page far from the beginning of a list, which is found first, is the one that a walk reaches, whatever
// the list leaves out: claimed and lapsed requests, those of another vault, and those of other blocks.
func TestFarPages(t *testing.T) {
	const requests = 1500
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	w.Log.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.VaultRecord(readtest.VaultB, "Beta", 1),
		readtest.BlockRecord(1))
	for id := range uint64(requests) {
		f := readtest.Fact{Kind: readtest.Request, Vault: readtest.VaultA, User: readtest.Alice, Other: readtest.Alice,
			ID: id, Assets: 1, Shares: 1, Block: 2 + id/100, Index: uint32(id % 100), Tx: readtest.Tx(byte(id))}
		switch {
		case id%11 == 0:
			f.Vault = readtest.VaultB
		case id%7 == 0:
			f.Expires = uint64(readtest.BlockTime(19))
		}
		if w.Log.Add(f, 0); id%100 == 99 {
			w.Log.Append(readtest.BlockRecord(f.Block))
		}
	}
	for id := uint64(0); id < requests; id += 5 {
		vault := readtest.VaultA
		if id%11 == 0 {
			vault = readtest.VaultB
		}
		w.Log.Add(readtest.Fact{Kind: readtest.Claim, Vault: vault, User: readtest.Alice, Other: readtest.Alice, ID: id,
			Block: 20, Index: uint32(id), Tx: readtest.Tx(1)}, 0)
	}
	w.Log.Append(readtest.BlockRecord(20))
	w.Write()
	p, err := ask.At(w.Look(), nil)
	if err != nil {
		t.Fatal(err)
	}
	farPages(t, p, "queue", queuePage, inQueue{})
	farPages(t, p, "queue of a vault", queuePage, inQueue{readtest.VaultA})
	farPages(t, p, "user", userPage, ofUser{User: readtest.Alice, Vault: readtest.VaultA})
	farPages(t, p, "status", userPage, ofUser{User: readtest.Alice, Status: queued})
	farPages(t, p, "vault", vaultPage, ofVault{readtest.VaultA, ask.Blocks{First: 4, Last: 15}})
	if err := p.Settled(t.Context(), w.Watcher); err != nil {
		t.Error(err)
	}
}

func farPages[A any](t *testing.T, p *ask.Pin, name string, page *ask.Page[A, request], args A) {
	t.Helper()
	all, _, err := page.After(t.Context(), p, args, nil, 2000)
	if err != nil || len(all) < 900 || len(all) == 1500 {
		t.Fatalf("%s: %d requests, %v", name, len(all), err)
	}
	for _, offset := range []int{500, 777, len(all) - 1} {
		rows, err := page.Read(t.Context(), p, args, uint64(offset), 20)
		if want := all[offset:min(offset+20, len(all))]; err != nil || !slices.Equal(rows, want) {
			t.Errorf("%s: %d requests after %d, %v; want %d", name, len(rows), offset, err, len(want))
		}
	}
}
