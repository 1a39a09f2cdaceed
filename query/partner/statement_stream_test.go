package partner

import (
	"context"
	"crypto/ed25519"
	"io"
	"net/http"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/schemas/registry"
)

// TestEachPageReadsAboutItsOwnRows: the rows read for a statement are proportional to its length. Each page reads
// about as many rows as the previous one, including the last one, and together they read each row about once.
func TestEachPageReadsAboutItsOwnRows(t *testing.T) {
	if testing.Short() {
		t.Skip("many rows")
	}
	g := readtest.New(t, enginetest.ClickHouse(t))
	log := readtest.NewLog(readtest.ChainID)
	log.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.BlockRecord(1))
	// 40 events of two partners in each block, half of them requests that are claimed later.
	const perBlock, last, later = 40, 2000, 1000
	for block := range uint64(last) {
		for i := range uint64(perBlock) {
			f := readtest.Fact{Kind: readtest.Deposit, Vault: readtest.VaultA, User: readtest.Alice, Other: readtest.Alice,
				Partner: 7 + uint32(i%2), ID: block*perBlock + i, Assets: 5, Shares: 5,
				Block: 2 + block, Index: uint32(i), Tx: readtest.Tx(byte(i))}
			if i >= perBlock/2 {
				f.Kind = readtest.Request
			}
			log.Add(f, 0)
			if f.Kind == readtest.Request && block >= later {
				f.Kind, f.ID, f.Index = readtest.Claim, f.ID-later*perBlock, f.Index+perBlock
				log.Add(f, 0)
			}
		}
		log.Append(readtest.BlockRecord(2 + block))
	}
	log.Append(readtest.BlockRecord(2+last), readtest.BlockRecord(3+last))
	g.Write(log)
	g.Merge("events", "lists")
	client := readtest.Serve(t, g)
	p, err := ask.At(client.Watcher.Snapshot(), nil)
	if err != nil {
		t.Fatal(err)
	}
	read := uint64(0)
	ctx := clickhouse.Context(t.Context(), clickhouse.WithProgress(func(p *clickhouse.Progress) { read += p.Rows }))
	span := serve.Span{From: int64(readtest.BlockTime(2)), To: int64(readtest.BlockTime(1 + last))}
	b, err := beginStatement(ctx, nil, p, 7, span, &registry.ProgramStatus{State: registry.Following})
	if err != nil {
		t.Fatal(err)
	}
	if read > 4*last {
		t.Errorf("finding its place in the log reads %d rows, of %d blocks", read, last)
	}
	total, found := uint64(0), 0
	for page := 1; ; page++ {
		read = 0
		some, err := b.next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(some) == 0 {
			break
		}
		own := read
		places := make([]ask.InChain, len(some))
		for i := range some {
			places[i] = ask.InChain{Block: some[i].Block, LogIndex: some[i].LogIndex}
		}
		if _, err := ask.LiveBlockHashes(ctx, p, places); err != nil {
			t.Fatal(err)
		}
		t.Logf("page %d: %d events, %d rows, with the hashes of their blocks %d", page, len(some), own, read)
		// At most two pages of rows of each kind are read ahead.
		if own > 8*atOnce || read > 12*atOnce {
			t.Errorf("page %d of %d events reads %d rows, with the hashes of their blocks %d",
				page, len(some), own, read)
		}
		found, total = found+len(some), total+read
	}
	const events = perBlock * last
	if found != events/2 {
		t.Errorf("%d events, want %d", found, events/2)
	}
	if total > 6*events {
		t.Errorf("%d rows are read for %d events of %d", total, found, events)
	}
}

// TestStatementOfRetractedEvents: a statement is not completed if its events are retracted while it is made, also if
// none of them remains.
func TestStatementOfRetractedEvents(t *testing.T) {
	g, l := readtest.New(t, enginetest.ClickHouse(t)), readtest.NewLog(readtest.ChainID)
	l.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.BlockRecord(1))
	l.Append(readtest.Fact{Kind: readtest.Deposit, Vault: readtest.VaultA, User: readtest.Alice, Other: readtest.Alice,
		Partner: 7, ID: 1, Assets: 5, Shares: 5, Block: 2, Tx: readtest.Tx(2)}, readtest.BlockRecord(2))
	l.Append(readtest.BlockRecord(3))
	g.Write(l)
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	span := serve.Span{From: int64(readtest.BlockTime(1)), To: int64(readtest.BlockTime(2))}
	c := readtest.Serve(t, g,
		serve.Route{Path: "/statement", Partner: true, IsFile: true, Get: func(r *serve.Request) (*serve.Answer, error) {
			return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) {
				b, err := beginStatement(ctx, r, p, 7, span, &registry.ProgramStatus{State: registry.Following})
				if err != nil {
					return nil, err
				}
				return &serve.Answer{Stream: func(ctx context.Context, w io.Writer) error {
					l.Retract(1)
					l.Append(readtest.BlockRecord(2), readtest.BlockRecord(3))
					g.Write(l)
					return b.write(ctx, w, key)
				}}, nil
			})
		}})
	c.Serve("/statement").Failed(t, http.StatusServiceUnavailable, "UNAVAILABLE")
}
