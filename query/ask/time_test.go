package ask_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/readtest"
)

// TestBlocksOfATime: the blocks of a time range divide the logs exactly by their times, even if a block has no record,
// or one of an orphaned branch.
func TestBlocksOfATime(t *testing.T) {
	w, random := readtest.NewWorld(t, enginetest.ClickHouse(t)), rand.New(rand.NewPCG(3, 3))
	id := uint64(0)
	grow := func(from, to uint64) {
		for n := from; n <= to; n++ {
			if random.IntN(3) > 0 {
				id++
				w.Log.Add(readtest.Fact{Kind: readtest.Deposit, Vault: readtest.VaultA, User: readtest.Alice, ID: id, Assets: 1,
					Block: n, Tx: readtest.Tx(byte(id))}, 0)
			}
			if n%6 == 0 || n == to {
				w.Log.Append(readtest.BlockRecord(n))
			}
		}
	}
	w.Log.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.BlockRecord(1))
	grow(2, 22)
	w.Log.Retract(15)
	grow(17, 25)
	w.Write()
	s := w.Look()
	check := func(p *ask.Pin, from, to int64) {
		t.Helper()
		in, err := p.Blocks(t.Context(), from, to)
		if err != nil || in.Last > p.Block {
			t.Fatalf("from %d to %d: %+v, %v", from, to, in, err)
		}
		for _, e := range w.Log.Live(s.Seq, p.Block) {
			within := int64(e.At()) >= from && int64(e.At()) <= to
			if e.Kind == readtest.Deposit && within != (e.Block >= in.First && e.Block <= in.Last) {
				t.Errorf("of block %d, from %d to %d: block %d is in %+v: %t", p.Block, from, to, e.Block, in, !within)
			}
		}
	}
	const late = int64(1) << 40
	for _, asOf := range []*uint64{nil, block(20)} {
		p := pinned(t, s, asOf)
		for n := uint64(1); n <= 26; n++ {
			at := int64(readtest.BlockTime(n))
			check(p, 0, at-int64(n%2))
			check(p, at+int64(n%2), late)
		}
		check(p, -5, -1)
		check(p, late, late)
		check(p, int64(readtest.BlockTime(9)), int64(readtest.BlockTime(8)))
	}
}

// TestTimesOfALongChain: the blocks of a time range, and a vault's newest NAV update up to a time, are found without
// reading the blocks and updates in between.
func TestTimesOfALongChain(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	const count = 50_000
	w.Log.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.BlockRecord(1), readtest.BlockRecord(count))
	w.Write()
	w.Gen.Exec(fmt.Sprintf("INSERT INTO lists (list, key, block, ts, sign) SELECT 'blocks', number, number, %d + 12 * "+
		"number, 1 FROM numbers(2, %d)", readtest.BlockTime(0), count-2))
	w.Gen.Exec(fmt.Sprintf("INSERT INTO lists (list, owner, kind, block, ts, sign) SELECT 'vault_events', x'%x', "+
		"'valuation', number, %d + 12 * number, 1 FROM numbers(2, %d)", readtest.VaultA, readtest.BlockTime(0), count-2))
	p := pinned(t, w.Look(), nil)
	rows := uint64(0)
	ctx := clickhouse.Context(t.Context(), clickhouse.WithProgress(func(p *clickhouse.Progress) { rows += p.Rows }))
	in, err := p.Blocks(ctx, int64(readtest.BlockTime(10_000)), int64(readtest.BlockTime(30_000))+11)
	if err != nil || in != (ask.Blocks{First: 10_000, Last: 30_000}) {
		t.Errorf("blocks %+v, %v", in, err)
	}
	if rows > 10_000 {
		t.Errorf("%d rows were read to find two of %d blocks", rows, count)
	}
	rows = 0
	found, err := ask.VaultEvents.FirstOfEach(ctx, p,
		[]ask.OfVault{{Vault: readtest.VaultA, Kind: ask.Valuation, Blocks: ask.Blocks{Last: p.Block}, Timed: true,
			At: int64(readtest.BlockTime(20_000))}})
	if err != nil || found[0] == nil || found[0].Block != 20_000 {
		t.Errorf("the newest update: %+v, %v", found, err)
	}
	if rows > 10_000 {
		t.Errorf("%d rows were read to find one of %d updates", rows, count)
	}
}
