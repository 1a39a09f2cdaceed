package oracle

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"

	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/schemas/readmodel"
)

// walk reads a list page by page, up to one page past its end, and compares it with the oracle.
func (a *asked) walk(o *Oracle, path, pinned string, size int) {
	a.t.Helper()
	want := o.list(a.t, path)
	path = withQuery(path, pinned)
	for number := 1; number <= len(want)/size+2; number++ {
		page := withQuery(path, fmt.Sprintf("pageSize=%d&page=%d", size, number))
		got := a.Get(page).JSON(a.t)
		from := min(len(want), (number-1)*size)
		same(a.t, page, got["data"], want[from:min(len(want), from+size)])
		same(a.t, page+" total", got["meta"].(object)["total"], len(want))
	}
}

// crowd adds users that deposit, request and claim, many of them with equal sums or none.
func crowd(s *scenario, write func()) {
	var users []common.Address
	for u := range 30 {
		a := common.BigToAddress(big.NewInt(int64(u + 1)))
		a[0] = []byte{0, 0x20, 0xff}[u%3]
		users = append(users, a)
	}
	amounts := []int64{0, 0, 1, 2, 127, 128, 1_000_000, 1_000_000, 1_000_001, 1 << 50, 1<<50 - 1}
	vaults := []common.Address{readtest.VaultA, readtest.VaultB}
	s.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.VaultRecord(readtest.VaultB, "Beta", 1),
		readtest.BlockRecord(1))
	numbers := map[common.Address]uint64{}
	day := func(block uint64) {
		for range 15 {
			s.txs++
			f := readtest.Fact{Vault: vaults[s.pick(len(vaults))], User: users[s.pick(len(users))], Other: readtest.Router,
				Assets: amounts[s.pick(len(amounts))], Shares: 1, Block: block, Index: uint32(s.txs),
				Tx: common.BigToHash(new(big.Int).SetUint64(s.txs))}
			f.Kind = []readtest.Kind{readtest.Deposit, readtest.Deposit, readtest.Request, readtest.Claim}[s.pick(4)]
			if f.Kind == readtest.Claim {
				f.ID = s.txs * 1000 // of no request
			} else {
				numbers[f.Vault]++
				f.ID, f.Partner = numbers[f.Vault], uint32(7*s.pick(2))
			}
			s.Add(f, 0)
		}
		s.Append(readtest.BlockRecord(block))
		write()
	}
	for n := range uint64(8) {
		day(10 * (n + 1))
	}
	s.Retract(60)
	for n := range uint64(4) {
		day(65 + 10*(n+1))
	}
}

// TestEveryPage reads the lists in every order, in pages that begin and end anywhere, while unmerged pairs of rows
// remain.
func TestEveryPage(t *testing.T) {
	if testing.Short() {
		t.Skip("sends one query after the other")
	}
	s := newScenario(5)
	var a *asked
	crowd(s, func() {
		if a == nil {
			a = startAPI(t, s.Log)
			a.gen.Exec("SYSTEM STOP MERGES lists")
			return
		}
		a.gen.Write(s.Log)
	})
	a.Look()
	if pairs := a.gen.Count("lists WHERE list IN ('first_seen', 'deposited', 'withdrawn') AND sign = -1"); pairs < 20 {
		t.Fatalf("%d rows are retracted, too few for this test", pairs)
	}
	for pinned, o := range map[string]*Oracle{"": newest(t, s.Log), "asOfBlock=55": At(t, s.Log, s.Seq(), 55),
		"asOfBlock=85": At(t, s.Log, s.Seq(), 85)} {
		for _, field := range []string{"firstSeen", "totalDeposited", "totalWithdrawn"} {
			for _, order := range []string{"asc", "desc"} {
				users := "/users?sortBy=" + field + "&sortOrder=" + order
				a.walk(o, "/api/v1"+users, pinned, 11)
				a.walk(o, "/api/v1/vaults/"+readtest.VaultB.Hex()+users, pinned, 11)
			}
		}
		a.walk(o, "/api/v1/queues/withdrawals", pinned, 7)
		a.walk(o, "/api/v1/queues/withdrawals?vault="+readtest.VaultB.Hex(), pinned, 3)
		a.walk(o, "/api/v1/partner/deposits", pinned, 9)
	}
}

// TestCancelledRowsBeforeAPage: the rows before those of a page cancel each other, in any order, and there are more of
// them than the first read returns.
func TestCancelledRowsBeforeAPage(t *testing.T) {
	if testing.Short() {
		t.Skip("many rows, and one query after the other")
	}
	s := newScenario(6)
	var a *asked
	crowd(s, func() {})
	a = startAPI(t, s.Log)
	a.gen.Exec("SYSTEM STOP MERGES lists")
	const dead = 400
	huge := new(uint256.Int).Lsh(uint256.NewInt(1), 100)
	o := newest(t, s.Log)
	asker, most := common.Address{}, 1
	for _, e := range s.Log.Entries {
		if n := len(o.list(t, "/api/v1/users/"+e.User.Hex()+"/withdrawals")); n > most {
			asker, most = e.User, n
		}
	}
	if most < 2 {
		t.Fatal("a single request fills no pages")
	}
	for i, sign := range []int8{1, 1, -1, -1} { // one insert each, because the engine removes pairs within an insert
		was := uint32(i % 2) // the two removed versions differ
		var rows []readmodel.ListRow
		for n := range uint64(dead) {
			absent := common.BigToAddress(new(big.Int).SetUint64(1_000_000 + n))
			for list, keys := range map[readmodel.List][]*uint256.Int{readmodel.FirstSeen: {new(uint256.Int),
				uint256.NewInt(99)},
				readmodel.Deposited: {new(uint256.Int), huge}, readmodel.Withdrawn: {new(uint256.Int), huge}} {
				for _, key := range keys {
					rows = append(rows, readmodel.ListRow{List: list, Key: *key, User: absent, Sign: sign, TS: was})
				}
			}
			request := readmodel.ListRow{List: readmodel.Queue, Kind: readmodel.Requested, Key: *uint256.NewInt(readmodel.Never),
				Block: 2, LogIndex: uint32(n), User: absent, Sign: sign, Vault: readtest.VaultA, ID: 1_000_000 + n, TS: was,
				FundedBlock: readmodel.Never, ClosedBlock: readmodel.Never}
			rows = append(rows, request)
			request.List, request.Owner, request.Key, request.Block, request.User = readmodel.UserRequests, asker,
				readmodel.Amount{}, 105, asker
			rows = append(rows, request)
		}
		a.gen.InsertLists(rows)
	}
	for _, field := range []string{"firstSeen", "totalDeposited", "totalWithdrawn"} {
		for _, order := range []string{"asc", "desc"} {
			a.walk(o, "/api/v1/users?sortBy="+field+"&sortOrder="+order, "", 17)
		}
	}
	a.walk(o, "/api/v1/users", "", 2)
	a.walk(o, "/api/v1/users?sortOrder=asc", "", 2)
	a.walk(o, "/api/v1/queues/withdrawals", "", 17)
	a.walk(o, "/api/v1/queues/withdrawals", "", 2)
	a.walk(o, "/api/v1/users/"+asker.Hex()+"/withdrawals", "", 2)
	a.walk(o, "/api/v1/users/"+asker.Hex()+"/withdrawals", "", 1)
	a.compare(o, "")
}

// TestManyRequests: the requests of a user with many of them, by status, some of which reuse an index.
func TestManyRequests(t *testing.T) {
	if testing.Short() {
		t.Skip("many rows, and one query after the other")
	}
	l, random := readtest.NewLog(readtest.ChainID), rand.New(rand.NewPCG(4, 4))
	l.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.VaultRecord(readtest.VaultB, "Beta", 1),
		readtest.BlockRecord(1))
	index := uint32(0)
	add := func(kind readtest.Kind, user common.Address, id, block uint64) {
		index++
		f := readtest.Fact{Kind: kind, Vault: []common.Address{readtest.VaultA, readtest.VaultB}[id%2], User: user, ID: id,
			Assets: int64(id) + 1, Shares: 1, Block: block, Index: index, Tx: common.BigToHash(big.NewInt(int64(index)))}
		if kind == readtest.Request {
			f.Other = user
			f.Expires = []uint64{0, uint64(readtest.BlockTime(25))}[id%2]
		}
		l.Add(f, 0)
	}
	for block := uint64(2); block <= 30; block++ {
		for range 8 {
			add(readtest.Request, []common.Address{readtest.Alice, readtest.Alice, readtest.Alice, readtest.Bob}[random.IntN(4)],
				random.Uint64N(25*block), block)
			add([]readtest.Kind{readtest.Funding, readtest.Claim, readtest.Cancel, readtest.Expiry}[random.IntN(4)],
				readtest.Alice, random.Uint64N(25*block), block)
		}
		l.Append(readtest.BlockRecord(block))
	}
	l.Retract(27)
	l.Append(readtest.BlockRecord(28))
	a := startAPI(t, l)
	for pinned, o := range a.twice(26) {
		path := "/api/v1/users/" + readtest.Alice.Hex() + "/withdrawals"
		if n := len(o.list(t, path)); n <= 100 {
			t.Fatalf("%d requests are too few", n)
		}
		a.walk(o, path, pinned, 30)
		for _, status := range []string{"queued", "claimed", "cancelled"} {
			a.walk(o, path+"?status="+status, pinned, 11)
		}
		a.compare(o, pinned)
	}
	far := a.Get("/api/v1/users/" + readtest.Alice.Hex() + "/withdrawals?page=900").JSON(t)
	same(t, "past the end", far["data"], []any{})
	for _, status := range []string{"", "queued"} { // events of a request are not in the list of the zero user
		a.expect("/api/v1/users/"+(common.Address{}).Hex()+"/withdrawals?status="+status, "", []any{})
	}
}

// TestLongDepositQueue: a long queue is truncated, marked as truncated, and shows the real count. This includes a
// past block, where more numbers are read than the first read covers.
func TestLongDepositQueue(t *testing.T) {
	if testing.Short() {
		t.Skip("many rows, and one query after the other")
	}
	l := readtest.NewLog(readtest.ChainID)
	l.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.VaultRecord(readtest.VaultB, "Beta", 1),
		readtest.BlockRecord(1))
	const count = 10_003
	deposit := func(vault common.Address, id, block uint64) {
		l.Add(readtest.Fact{Kind: readtest.Deposit, Vault: vault, User: readtest.Alice, Other: readtest.Alice, ID: id,
			Assets: 1, Shares: 1, Block: block, Index: uint32(id), Tx: common.BigToHash(new(big.Int).SetUint64(id))}, 0)
	}
	for id := uint64(1); id <= count; id++ {
		deposit(readtest.VaultA, id, 2)
	}
	l.Append(readtest.BlockRecord(2))
	deposit(readtest.VaultA, count+1, 3)
	deposit(readtest.VaultB, 20_001, 3)
	l.Append(readtest.BlockRecord(3))
	l.Append(readtest.BlockRecord(4))
	a := startAPI(t, l)
	for pinned, want := range map[string]struct{ a, groups int }{"": {count + 1, 2}, "asOfBlock=3": {count + 1, 2},
		"asOfBlock=2": {count, 1}} {
		groups := a.Get(withQuery("/api/v1/queues/deposits", pinned)).Data(t).([]any)
		group := groups[0].(object)
		deposits := group["deposits"].([]any)
		same(t, pinned, []any{len(groups), len(deposits), group["count"], group["truncated"]},
			[]any{want.groups, 10_000, want.a, true})
		same(t, pinned+" oldest first", []any{deposits[0].(object)["logIndex"], deposits[9999].(object)["logIndex"]},
			[]any{1, 10_000})
		settle := a.Get(withQuery("/api/v1/settlement/summary", pinned)).Data(t).([]any)[0].(object)["depositsToSweep"]
		same(t, pinned+" settlement", settle, object{"count": want.a, "totalAmount": fmt.Sprint(want.a)})
	}
}

// TestDepositsLeftByASweep: deposits that were made before a sweep and not included in it, also if their numbers were
// first used by later deposits that were retracted.
func TestDepositsLeftByASweep(t *testing.T) {
	deposit := func(id, block uint64) readtest.Fact {
		return readtest.Fact{Kind: readtest.Deposit, Vault: readtest.VaultA, ID: id, User: readtest.Alice,
			Other: readtest.Alice, Assets: int64(100 + id), Shares: 1, Block: block, Index: uint32(id),
			Tx: readtest.Tx(byte(block))}
	}
	sweep := readtest.Fact{Kind: readtest.Sweep, Vault: readtest.VaultA, ID: 1, To: 1, Block: 100, Tx: readtest.Tx(100)}
	for name, appendTo := range map[string]func(l *readtest.Log){
		"left over": func(l *readtest.Log) {
			l.Append(deposit(1, 10), deposit(2, 10), readtest.BlockRecord(10))
			l.Append(deposit(3, 90), sweep, deposit(4, 101), readtest.BlockRecord(105))
		},
		"replaced": func(l *readtest.Log) {
			l.Append(deposit(1, 10), readtest.BlockRecord(10))
			l.Append(deposit(2, 95), deposit(3, 96), readtest.BlockRecord(96))
			l.Retract(10)
			l.Append(deposit(2, 11), deposit(3, 96), sweep, deposit(4, 101), readtest.BlockRecord(105))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := readtest.NewLog(readtest.ChainID)
			l.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1))
			appendTo(l)
			a := startAPI(t, l)
			for _, block := range []uint64{11, 99, 100, 103, 105} {
				o := At(t, l, l.Seq(), block)
				a.check(o, "/api/v1/queues/deposits", o.pinned())
				a.check(o, "/api/v1/settlement/summary", o.pinned())
			}
		})
	}
}

// TestAmountsAreExact uses the largest amounts that are counted.
func TestAmountsAreExact(t *testing.T) {
	l := readtest.NewLog(readtest.ChainID)
	l.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.BlockRecord(1))
	largest := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 191), big.NewInt(1))
	sum := new(big.Int).Mul(largest, big.NewInt(3)).String()
	fact := func(kind readtest.Kind, id uint64, index uint32) readtest.Fact {
		return readtest.Fact{Kind: kind, Vault: readtest.VaultA, User: readtest.Alice, Other: readtest.Alice, ID: id,
			Largest: true, Block: 2, Index: index}
	}
	for i := range uint32(3) {
		deposit := fact(readtest.Deposit, uint64(i)+1, i)
		deposit.Partner = 7
		l.Add(deposit, 0)
	}
	l.Append(fact(readtest.Request, 0, 4), fact(readtest.Claim, 1, 5), readtest.BlockRecord(2))
	a := startAPI(t, l)
	same(t, "volume", a.Get("/api/v1/partner/stats").Data(t).(object)["totalVolume"], sum)
	same(t, "user", a.Get("/api/v1/users/" + readtest.Alice.Hex()).Data(t).(object)["totalDeposited"], sum)
	for _, by := range []string{"firstSeen", "totalDeposited", "totalWithdrawn"} {
		for _, at := range []string{"", "&asOfBlock=2"} {
			same(t, "users", a.Get("/api/v1/users?sortBy="+by+at).Data(t),
				[]any{object{"address": readtest.Alice.Hex(), "firstSeen": "2023-11-14T22:13:44.000Z",
					"totalDeposited": sum, "totalWithdrawn": largest.String()}})
		}
	}
	settle := a.Get("/api/v1/settlement/summary").Data(t).([]any)[0].(object)
	same(t, "deposits to sweep", settle["depositsToSweep"], object{"count": 3, "totalAmount": sum})
	same(t, "withdrawals to fund", settle["withdrawalsToFund"], object{"count": 1, "totalAmount": largest.String()})
	same(t, "deposit", a.Get("/api/v1/partner/deposits").Data(t).([]any)[0].(object)["assetAmount"], largest.String())
}

// TestTablesAhead: rows in the table events that are newer than the lists change no response.
func TestTablesAhead(t *testing.T) {
	if testing.Short() {
		t.Skip("sends one query after the other")
	}
	s := newScenario(7)
	s.backfill(readtest.VaultA, "Alpha", 1, 20)
	s.backfill(readtest.VaultB, "Beta", 5, 20)
	a := startAPI(t, s.Log)
	for range 2 {
		before := newest(t, s.Log)
		s.grow()
		a.gen.WriteEvents(s.Log)
		a.compare(before, "")
		a.gen.WriteLists(s.Log)
		a.Look()
		a.compare(newest(t, s.Log), "")
	}
}
