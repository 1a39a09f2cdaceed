package query

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

// TestUnsweptOfEveryBlock: the deposits that no sweep has reached, of all vaults and of
// one, at every block of a chain with sweeps that leave some, blocks that are replaced
// and a vault that is filled in late: whether they are looked for among the last logs,
// among few of these or by their numbers.
func TestUnsweptOfEveryBlock(t *testing.T) {
	for _, lately := range []uint64{0, 25, pastScale.lately} {
		t.Run(fmt.Sprint("among ", lately), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.scale = scale{span: 4, apart: 12, ahead: 1000, lately: lately}
			s := &story{ledger: newLedger(testChain), random: rand.New(rand.NewPCG(6, 2))}
			w.ledger = s.ledger
			s.backfill(vaultA, "Alpha", 3, 50)
			told, other := 0, 0
			for _, happens := range s.chapters(50) {
				happens()
				w.publish()
				at := w.snapshot.Load()
				for block := uint64(12); block <= at.block; block++ {
					x, p := &exchange{ctx: t.Context(), snapshot: at}, at.pin()
					if block < at.block {
						if err := x.toBlock(p, block); err != nil {
							t.Fatal(err)
						}
					}
					for _, filter := range []*common.Address{nil, &vaultA} {
						lately, others := x.unsweptAre(t, p, filter, s.at(at.seq, block))
						told, other = told+lately, other+others
					}
				}
			}
			if (told > 20) != (lately > 0) || (other > 20) != (lately < pastScale.lately) {
				t.Errorf("%d past queues were told by the last logs, %d were not: the test proves less than it says", told, other)
			}
		})
	}
}

// TestOldUnswept: deposits that were made long before the last sweep, which did not take
// them, are found too, also where their numbers were given once to later ones that are
// gone.
func TestOldUnswept(t *testing.T) {
	deposit := func(id, block uint64) fact {
		return fact{kind: aDeposit, vault: vaultA, id: id, user: alice, other: alice, assets: int64(100 + id), shares: 1, block: block, index: uint32(id), tx: tx(byte(block))}
	}
	sweepTo := func(to, block uint64) fact {
		return fact{kind: aSweep, vault: vaultA, id: 1, to: to, block: block, tx: tx(byte(block))}
	}
	for name, tell := range map[string]func(l *ledger){
		"left over": func(l *ledger) {
			l.append(deposit(1, 10), deposit(2, 10), fact{kind: aBlock, block: 10}, deposit(3, 90), sweepTo(1, 100), deposit(4, 101))
		},
		"replaced": func(l *ledger) {
			l.append(deposit(1, 10), fact{kind: aBlock, block: 10}, deposit(2, 95), deposit(3, 96), fact{kind: aBlock, block: 96})
			l.retract(10)
			l.append(deposit(2, 11), deposit(3, 96), sweepTo(1, 100), deposit(4, 101))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ledger.append(vaultMeta(vaultA, "Alpha", 1))
			tell(w.ledger)
			w.ledger.append(fact{kind: aBlock, block: 105})
			w.publish()
			at := w.snapshot.Load()
			for _, block := range []uint64{99, 100, 103, 105} {
				x, p := &exchange{ctx: t.Context(), snapshot: at}, at.pin()
				if block < at.block {
					if err := x.toBlock(p, block); err != nil {
						t.Fatal(err)
					}
				}
				x.unsweptAre(t, p, nil, w.ledger.at(at.seq, block))
			}
		})
	}
}

// TestMoveQueues: what is known of queues after some more deposits and sweeps.
func TestMoveQueues(t *testing.T) {
	row := func(vault common.Address, id uint64) depositRow {
		return depositRow{Vault: string(vault[:]), DepositID: id, Block: 10 * id}
	}
	added := func(vault common.Address, id uint64, sign int8) newDeposit {
		return newDeposit{depositRow: row(vault, id), Sign: sign}
	}
	counted := func(total int64, after uint64, deposits ...depositRow) unsweptRow {
		return unsweptRow{amountRow: amountRow{Total: total}, after: after, deposits: deposits}
	}
	for name, c := range map[string]struct {
		was, is unsweptRow // of vault A
		added   []newDeposit
		want    []uint64 // nil: unknown
	}{
		"nothing new":       {was: counted(2, 0, row(vaultA, 1), row(vaultA, 2)), is: counted(2, 0), want: []uint64{1, 2}},
		"swept in part":     {was: counted(2, 0, row(vaultA, 1), row(vaultA, 2)), is: counted(1, 1), want: []uint64{2}},
		"more, as they lie": {was: counted(1, 0, row(vaultA, 1)), is: counted(3, 0), added: []newDeposit{added(vaultA, 3, 1), added(vaultB, 2, 1), added(vaultA, 2, 1)}, want: []uint64{1, 2, 3}},
		"more and swept":    {was: counted(1, 0, row(vaultA, 1)), is: counted(1, 2), added: []newDeposit{added(vaultA, 2, 1), added(vaultA, 3, 1)}, want: []uint64{3}},
		"the first ones":    {was: counted(0, 4), is: counted(1, 4), added: []newDeposit{added(vaultA, 5, 1)}, want: []uint64{5}},
		"taken back":        {was: counted(2, 0, row(vaultA, 1), row(vaultA, 2)), is: counted(1, 0), added: []newDeposit{added(vaultA, 2, -1)}},
		"replaced":          {was: counted(1, 0, row(vaultA, 1)), is: counted(1, 0), added: []newDeposit{added(vaultA, 1, -1), added(vaultA, 1, 1)}},
		"not known before":  {was: counted(1, 0), is: counted(2, 0), added: []newDeposit{added(vaultA, 2, 1)}},
	} {
		queues := map[common.Address]unsweptRow{vaultA: c.is}
		moveQueues(queues, map[common.Address]unsweptRow{vaultA: c.was}, c.added)
		var got []uint64
		for _, d := range queues[vaultA].deposits {
			got = append(got, d.DepositID)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v is in the queue, should be %v", name, got, c.want)
		}
	}
}

// unsweptAre compares the queues and their counts with those of the oracle, and says how
// many of past ones that are not empty were told with their count, and how many not.
func (x *exchange) unsweptAre(t *testing.T, p *pin, filter *common.Address, o *oracle) (told, other int) {
	t.Helper()
	_, queues, err := x.unsweptQueues(p, filter)
	if err != nil {
		t.Fatal(err)
	}
	_, totals, err := x.unswept(p, filter)
	if err != nil {
		t.Fatal(err)
	}
	deposits, err := x.oldestUnswept(p, p.wanted(filter), queues)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range p.wanted(filter) {
		var want, got [][2]uint64
		sum := int64(0)
		for _, d := range o.unswept(v.address) {
			want, sum = append(want, [2]uint64{d.id, d.block}), sum+d.assets
		}
		for _, d := range deposits[v.address] {
			got = append(got, [2]uint64{d.DepositID, d.Block})
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seq %d, block %d, %s: the queue is %v, should be %v", p.seq, p.block, v.name, got, want)
		}
		for how, q := range map[string]unsweptRow{"queue": queues[v.address], "count": totals[v.address]} {
			if q.Total != int64(len(want)) || q.Amount.Int64() != sum {
				t.Fatalf("seq %d, block %d, %s: the %s says %d of %v, should be %d of %d", p.seq, p.block, v.name, how, q.Total, q.Amount, len(want), sum)
			}
		}
		switch {
		case !p.asOf || len(want) == 0:
		case queues[v.address].deposits != nil:
			told++
		default:
			other++
		}
	}
	return told, other
}

// queuedDeposit is the row of a deposit of 1, whose log index is its number, or (sign
// -1) of what takes back the one of the seq before.
func queuedDeposit(seq uint64, sign int8, id, block uint64) []any {
	retracts := uint64(0)
	if sign < 0 {
		retracts = seq - 1
	}
	hash := common.BigToHash(new(big.Int).SetUint64(id))
	return []any{seq, uint8(0), sign, retracts, writer, vaultA.Bytes(), id, alice.Bytes(), alice.Bytes(), uint32(0), big.NewInt(1), big.NewInt(1), int8(0), block, blockTime(block), hash.Bytes(), uint32(id)}
}

// insertDeposits writes rows of deposits, and records that tell of as many logs.
func (w *world) insertDeposits(t testing.TB, rows [][]any) {
	t.Helper()
	insertRows(t, w.writer, fmt.Sprintf("INSERT INTO %s.deposits (%s)", w.database(), columns["deposits"]), rows)
	records := make([][]any, len(rows))
	for i, r := range rows {
		records[i] = []any{r[0], r[1], r[2], writer, "log", r[13]}
	}
	insertRows(t, w.writer, fmt.Sprintf("INSERT INTO %s.records (seq, row, sign, writer, kind, block)", w.database()), records)
}

// TestLongDepositQueue is cut, and says so, and how many there really are.
func TestLongDepositQueue(t *testing.T) {
	w := newWorld(t)
	w.ledger.append(vaultMeta(vaultA, "Alpha", 1), fact{kind: aBlock, block: 9}, fact{kind: aBlock, block: 10})
	w.ledger.insert(t, w.writer, w.database())
	const count = maxUnswept + 3
	rows := make([][]any, count)
	for i := range rows {
		rows[i] = queuedDeposit(2, 1, uint64(i+1), 9)
	}
	w.insertDeposits(t, rows)
	w.look()
	group := w.get("/api/v1/queues/deposits").data(t).([]any)[0].(object)
	deposits := group["deposits"].([]any)
	if len(deposits) != maxUnswept || group["count"] != jsonNumber(fmt.Sprint(count)) || group["truncated"] != true {
		t.Errorf("%d deposits, count %v, truncated %v", len(deposits), group["count"], group["truncated"])
	}
	for i, want := range map[int]string{0: "1", maxUnswept - 1: fmt.Sprint(maxUnswept)} {
		if got := deposits[i].(object)["logIndex"]; got != jsonNumber(want) {
			t.Errorf("deposit %d has log index %v: the oldest should come first", i, got)
		}
	}
	past := w.get("/api/v1/queues/deposits?asOfBlock=9").data(t).([]any)[0].(object)
	same(t, "the same in the past", past, group)
}

// TestDepositQueueTakenBack: more deposits than are looked at at once were taken
// back, before the ones that are there.
func TestDepositQueueTakenBack(t *testing.T) {
	w := newWorld(t)
	const gone, live = unsweptScan + 10, 3
	w.ledger.append(vaultMeta(vaultA, "Alpha", 1))
	for i := range uint64(2 * (gone + live)) {
		w.ledger.append(fact{kind: aBlock, block: 9 + i})
	}
	w.ledger.insert(t, w.writer, w.database())
	var rows [][]any
	for id := uint64(1); id <= gone+live; id++ {
		rows = append(rows, queuedDeposit(2*id-1, 1, id, 9))
		if id <= gone {
			rows = append(rows, queuedDeposit(2*id, -1, id, 9))
		}
	}
	w.insertDeposits(t, rows)
	w.look()
	group := w.get("/api/v1/queues/deposits").data(t).([]any)[0].(object)
	deposits := group["deposits"].([]any)
	same(t, "how many", []any{len(deposits), group["count"]}, []any{live, jsonNumber("3")})
	same(t, "the oldest", deposits[0].(object)["logIndex"], jsonNumber(fmt.Sprint(gone+1)))
}

// TestPastDepositQueue: the end of a past queue is found, whether it is looked for among
// the deposits since the last sweep or by their numbers, in the next ones or after
// them, and whatever was there that was taken back.
func TestPastDepositQueue(t *testing.T) {
	const long = unsweptSpan + 5
	for name, c := range map[string]struct {
		queued, later uint64
		gone          bool   // a later deposit had the first number before
		sweep         uint64 // up to which number the next sweep takes deposits
		first         uint64 // a number less than the first one
	}{
		"short": {queued: 7, later: 3}, "as long as the look": {queued: unsweptSpan, later: 3}, "one less": {queued: unsweptSpan - 1, later: 3},
		"long": {queued: long, later: 3}, "long, nothing later": {queued: long}, "long, later ones gone": {queued: long, gone: true}, "nothing yet": {later: 3},
		"swept": {queued: 7, later: 3, sweep: 8}, "swept in part": {queued: 200, later: 3, sweep: 4}, "long, swept in part": {queued: long, later: 3, sweep: 4},
		"first ones never seen": {queued: 7, later: 3, first: 1}, "many never seen": {queued: 7, later: 3, first: long},
	} {
		for _, lately := range []uint64{0, pastScale.lately} {
			t.Run(fmt.Sprintf("%s, lately %d", name, lately), func(t *testing.T) {
				w := newWorld(t)
				w.scale.lately = lately
				w.ledger.append(vaultMeta(vaultA, "Alpha", 1), fact{kind: aBlock, block: 9}, fact{kind: aBlock, block: 13})
				if c.sweep > 0 {
					w.ledger.append(fact{kind: aSweep, vault: vaultA, id: 1, to: c.sweep, block: 14, tx: tx(1)}, fact{kind: aBlock, block: 14})
				}
				w.ledger.insert(t, w.writer, w.database())
				var rows [][]any
				for id := c.first + 1; id <= c.first+c.queued+c.later; id++ {
					block := uint64(9)
					if id > c.first+c.queued {
						block = 13
					}
					rows = append(rows, queuedDeposit(3, 1, id, block))
				}
				if c.gone {
					rows = append(rows, queuedDeposit(1, 1, 1, 12), queuedDeposit(2, -1, 1, 12))
				}
				w.insertDeposits(t, rows)
				w.look()
				same(t, "settlement", w.get("/api/v1/settlement/summary?asOfBlock=9").data(t).([]any)[0].(object)["depositsToSweep"], object{"count": c.queued, "totalAmount": fmt.Sprint(c.queued)})
				groups := w.get("/api/v1/queues/deposits?asOfBlock=9").data(t).([]any)
				if c.queued == 0 {
					same(t, "groups", len(groups), 0)
					return
				}
				deposits := groups[0].(object)["deposits"].([]any)
				same(t, "deposits", []any{len(deposits), deposits[0].(object)["logIndex"], deposits[len(deposits)-1].(object)["logIndex"]},
					[]any{int(c.queued), jsonNumber(fmt.Sprint(c.first + 1)), jsonNumber(fmt.Sprint(c.first + c.queued))})
			})
		}
	}
}

// TestBatches: the vaults with a queue, in their order, no more deposits at once than
// are shown of one, but where one has more.
func TestBatches(t *testing.T) {
	var vaults []vault
	queues := make(map[common.Address]unsweptRow)
	for i, total := range []int64{7, 0, maxUnswept - 8, 1, 1, maxUnswept + 1, 2, maxUnswept} {
		v := vault{address: common.BigToAddress(big.NewInt(int64(i)))}
		vaults, queues[v.address] = append(vaults, v), unsweptRow{amountRow: amountRow{Total: total}}
	}
	want := [][]vault{{vaults[0], vaults[2], vaults[3]}, {vaults[4]}, {vaults[5]}, {vaults[6]}, {vaults[7]}}
	if got := batches(vaults, queues); !reflect.DeepEqual(got, want) {
		t.Errorf("batches are %v, should be %v", got, want)
	}
}
