package withdrawals

import (
	"log/slog"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
	"github.com/navlog/navlog/query/readtest"
)

// TestPageAmidUnit: a unit that changes nothing about the block of an answer adds rows to its
// list, after somebody was told how many requests it has and before a page is read.
func TestPageAmidUnit(t *testing.T) {
	const requests, size = 100, 50
	g := readtest.New(t, enginetest.ClickHouse(t))
	g.Exec("SYSTEM STOP MERGES withdrawals")
	l := readtest.NewLog(readtest.ChainID)
	l.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.BlockRecord(1))
	fact := func(kind readtest.Kind, id, block uint64) readtest.Fact {
		return readtest.Fact{Kind: kind, Vault: readtest.VaultA, User: readtest.Alice, Other: readtest.Alice, ID: id, Assets: 1, Shares: 1, Block: block, Index: uint32(id), Tx: readtest.Tx(byte(block))}
	}
	for id := range uint64(requests) {
		l.Add(fact(readtest.Request, id, 2), 0)
	}
	l.Append(readtest.BlockRecord(2))
	g.Write(l)
	w := pin.New(readtest.ChainID, 4, time.Minute, g.Config, nil, slog.New(slog.NewTextHandler(t.Output(), nil)))
	w.LookTimeout = time.Minute
	w.Only(g.ID)
	defer w.Close()
	if err := w.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, of := range []struct {
		list
		args pin.Args
		adds readtest.Kind
	}{
		{queue, pin.Args{}, readtest.Funding},
		{ofUser, pin.Args{"user": readtest.Alice, "status": "any"}, readtest.Cancel},
	} {
		p, err := w.Snapshot().At(nil)
		if err != nil {
			t.Fatal(err)
		}
		of.args["vault"], of.args["now"] = common.Address{}, uint64(readtest.BlockTime(2))
		of.from(of.args, nil)
		total, err := of.total(t.Context(), p, of.args)
		if err != nil || total != requests {
			t.Fatalf("list %d has %d requests, %v", i, total, err)
		}
		nth := func(n int) uint64 { // the index of the n-th request of the list
			if of.newestFirst {
				return uint64(requests - 1 - n)
			}
			return uint64(n)
		}
		block := uint64(3 + i)
		for n := range 60 {
			l.Add(fact(of.adds, nth(n), block), 0)
		}
		l.Append(readtest.BlockRecord(block))
		g.Write(l)
		places, read, err := of.part(t.Context(), p, of.args, httpapi.Page{Number: 1, Size: size}, func() (int64, error) { return total, nil })
		if err != nil || len(places) != size || len(read) != size {
			t.Fatalf("list %d: %d places and %d requests, %v", i, len(places), len(read), err)
		}
		for n, at := range places {
			if at.Index != nth(n) {
				t.Errorf("list %d: request %d is at place %d", i, at.Index, n)
			}
		}
	}
}
