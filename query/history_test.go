package query

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

// A story makes a random history: backfills of vaults one after another, the
// head, reorganisations (also back to the branch before), and logs that a
// vault of ours would never emit.
type story struct {
	*ledger
	random *rand.Rand
	vaults []common.Address
	txs    uint64
	head   uint64
}

var people = []common.Address{alice, bob, carol, common.HexToAddress("0x6666666666666666666666666666666666666666"), common.HexToAddress("0x7777777777777777777777777777777777777777")}

func (s *story) pick(n int) int { return s.random.IntN(n) }

// logs makes a few logs of one vault in a block, from what is live now.
func (s *story) logs(vault common.Address, block uint64, index *uint32) []fact {
	var out []fact
	live := s.live(s.seq(), 1<<62)
	var deposits, requests, swept uint64
	for _, e := range live {
		switch {
		case e.vault != vault:
		case e.kind == aDeposit:
			deposits++
		case e.kind == aRequest:
			requests++
		case e.kind == aSweep:
			swept = max(swept, e.to)
		}
	}
	for range s.pick(4) {
		s.txs++
		*index++
		f := fact{vault: vault, user: people[s.pick(len(people))], block: block, index: *index, tx: common.BigToHash(common.Big1)}
		f.tx[0], f.tx[1], f.tx[2] = byte(s.txs>>16), byte(s.txs>>8), byte(s.txs)
		f.assets, f.shares = int64(s.pick(5)+1)*100, int64(s.pick(1000)+1)
		switch s.pick(10) {
		case 0, 1, 2:
			deposits++
			f.kind, f.id, f.other, f.partner = aDeposit, deposits, router, []uint32{0, 7, 8}[s.pick(3)]
		case 3, 4:
			f.kind, f.id, f.other, f.partner = aRequest, requests, people[s.pick(len(people))], []uint32{0, 7}[s.pick(2)]
			f.expires = []uint64{0, uint64(blockTime(block + uint64(s.pick(30))))}[s.pick(2)]
			requests++
		case 5:
			f.kind, f.id = aFunding, uint64(s.pick(int(requests)+2))
		case 6:
			f.kind, f.id = aClaim, uint64(s.pick(int(requests)+2))
		case 7:
			f.kind, f.id = []kind{aCancel, anExpiry}[s.pick(2)], uint64(s.pick(int(requests)+2))
		case 8:
			f.kind, f.price, f.supply = aNav, int64(s.pick(1000)), int64(s.pick(1000))
			out = append(out, f) // and another one in the same block
			f.price++
			*index++
			f.index = *index
		case 9:
			if swept > 1 && s.pick(3) == 0 { // a range that was swept before
				f.kind, f.id, f.to = aSweep, 1, swept
				break
			}
			if swept >= deposits {
				continue
			}
			f.kind, f.id, f.to = aSweep, swept+1, swept+1+uint64(s.pick(int(deposits-swept)))
			swept = f.to
		}
		out = append(out, f)
	}
	return out
}

func (s *story) backfill(vault common.Address, name string, start, to uint64) {
	s.append(vaultMeta(vault, name, start))
	for from := start; from <= to; from += 10 {
		last := min(from+9, to)
		for block := from; block <= last; block++ {
			index := uint32(1000 * len(s.vaults)) // log indexes of a block differ between vaults
			for _, f := range s.logs(vault, block, &index) {
				s.add(f, 0)
			}
		}
		s.append(fact{kind: aBlock, block: last})
	}
	s.vaults = append(s.vaults, vault)
	s.head = max(s.head, to)
}

// grow appends one block at the head; with closing it ends a unit.
func (s *story) grow() {
	s.head++
	index := uint32(0)
	for _, v := range s.vaults {
		for _, f := range s.logs(v, s.head, &index) {
			s.add(f, 0)
		}
	}
	s.append(fact{kind: aBlock, block: s.head})
}

// reorganise takes back some blocks and appends others, or the same ones again.
func (s *story) reorganise(depth uint64) {
	gone := s.retract(s.head - depth)
	same := s.pick(3) == 0
	if same {
		s.append(gone...)
		return
	}
	from := s.seq()
	s.head -= depth
	for range depth + uint64(s.pick(2)) {
		s.grow()
	}
	for i := from; i < s.seq()-1; i++ {
		s.records[i].boundary = false // one unit
	}
}

// shorten takes back some blocks and appends one, so that time goes back.
func (s *story) shorten(depth uint64) {
	s.retract(s.head - depth)
	from := s.seq()
	s.head -= depth
	s.grow()
	for i := from; i < s.seq()-1; i++ {
		s.records[i].boundary = false // one unit
	}
}

// chapters are what happens after the first vault was filled in up to a block: nothing,
// a late vault, blocks that are replaced, fewer blocks, and more.
func (s *story) chapters(to uint64) []func() {
	return []func(){
		func() {},
		func() { s.backfill(vaultB, "Beta", 20, to) },
		func() { s.grow(); s.reorganise(7); s.grow() },
		func() { s.shorten(9) },
		func() {
			for range 9 {
				s.grow()
			}
		},
	}
}

func tell(seed uint64) *story {
	s := &story{ledger: newLedger(testChain), random: rand.New(rand.NewPCG(seed, seed))}
	s.backfill(vaultA, "Alpha", 1, 20)
	s.backfill(vaultB, "Beta", 5, 20)
	for range 15 {
		s.grow()
	}
	s.reorganise(3)
	s.grow()
	s.backfill(vaultC, "Gamma", 2, s.head)
	for range 12 {
		s.grow()
		if s.pick(3) == 0 {
			s.reorganise(1 + uint64(s.pick(5)))
		}
	}
	return s
}

// TestAnswersEqualOracle compares every endpoint with the oracle, at the
// newest state, at past blocks, at a past seq, and at both.
func TestAnswersEqualOracle(t *testing.T) {
	for seed := uint64(1); seed <= 2; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if seed == 2 { // some of the users have more, and some of the buckets
				w.sizes = sizes{few: 12, many: 12}
			}
			s := tell(seed)
			w.ledger = s.ledger
			w.publish()
			seven := w.partner(7, "Seven")
			if len(s.live(s.seq(), 1<<62)) == int(s.seq()) {
				t.Fatal("the story has no reorganisation")
			}
			w.compare(t, s.at(s.seq(), 1<<62), "", seven)
			for _, block := range []uint64{20, s.head - 3} {
				w.compare(t, s.at(s.seq(), block), fmt.Sprintf("asOfBlock=%d", block), seven)
			}
			seq := s.seq()/3 + uint64(s.pick(int(s.seq()*2/3)))
			whole := seq
			for !s.records[whole-1].boundary {
				whole--
			}
			w.compare(t, s.at(whole, 1<<62), fmt.Sprintf("asOfSeq=%d", seq), seven)
			w.compare(t, s.at(whole, 15), fmt.Sprintf("asOfSeq=%d&asOfBlock=15", seq), seven)
		})
	}
}

func (w *world) compare(t *testing.T, o *oracle, pinned, key string) {
	t.Helper()
	check := func(path string, want any) {
		t.Helper()
		separator := "?"
		for _, c := range path {
			if c == '?' {
				separator = "&"
			}
		}
		path += separator + pinned
		got := w.get(path, "x-api-key", key).body(t)
		if list, ok := want.([]any); ok && got["meta"] != nil {
			same(t, path+" total", got["meta"].(object)["total"], len(list))
			want = list[:min(len(list), 100)]
		}
		same(t, path, got["data"], want)
	}
	check("/api/v1/vaults", o.vaultList())
	check("/api/v1/partner/vaults", o.vaultList())
	for _, v := range o.vaults {
		check("/api/v1/vaults/"+v.address.Hex(), o.vaultDetail(v))
		check("/api/v1/vaults/"+v.address.Hex()+"/nav?pageSize=100", o.navs(v))
		check("/api/v1/partner/vaults/"+v.address.Hex()+"/nav?pageSize=100", o.navs(v))
		check("/api/v1/queues/withdrawals?pageSize=100&vault="+v.address.Hex(), o.withStatus("queued", inVault(v.address), false))
		check("/api/v1/queues/deposits?vault="+v.address.Hex(), o.depositQueue(v))
	}
	for _, field := range []string{"firstSeen", "totalDeposited", "totalWithdrawn"} {
		check("/api/v1/users?pageSize=100&sortOrder=desc&sortBy="+field, o.users(field, true))
		check("/api/v1/users?pageSize=100&sortOrder=asc&sortBy="+field, o.users(field, false))
	}
	for _, u := range o.userAddresses() {
		path := "/api/v1/users/" + u.Hex()
		check(path, o.user(u))
		check(path+"/deposits?pageSize=100", o.depositsNewestFirst(ofUser(u)))
		check(path+"/deposits?pageSize=100&vault="+vaultB.Hex(), o.depositsNewestFirst(func(e entry) bool { return e.user == u && e.vault == vaultB }))
		for _, status := range []string{"", "queued", "claimed", "cancelled"} {
			check(path+"/withdrawals?pageSize=100&status="+status, o.withStatus(status, ofUser(u), true))
		}
	}
	check("/api/v1/queues/withdrawals?pageSize=100", o.withStatus("queued", nil, false))
	check("/api/v1/queues/deposits", o.depositQueue(o.vaults...))
	check("/api/v1/settlement/summary", o.settlement())
	check("/api/v1/partner/stats", o.partnerStats(7, "Seven"))
	check("/api/v1/partner/deposits?pageSize=100", o.depositsNewestFirst(func(e entry) bool { return e.partner == 7 }))
}

// TestBlockAfterBlock: what the head says, which of every block but the first is
// made of what it was and what is new, by the news or by questions, through new
// blocks, blocks taken back, requests that had their time and vaults that are
// filled in late.
func TestBlockAfterBlock(t *testing.T) {
	for seed := uint64(1); seed <= 2; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := &story{ledger: newLedger(testChain), random: rand.New(rand.NewPCG(seed, 9))}
			w.ledger = s.ledger
			if seed == 2 { // most blocks are more than that
				w.newsAtMost = 6
			}
			seven := w.partner(7, "Seven")
			s.backfill(vaultA, "Alpha", 3, 20)
			withNews := 0
			for step := range 40 {
				switch {
				case step == 20:
					s.backfill(vaultC, "Gamma", 2, s.head)
				case s.pick(5) == 0:
					s.reorganise(1 + uint64(s.pick(4)))
				case s.head > 15 && s.pick(5) == 0:
					s.shorten(2 + uint64(s.pick(6)))
				default:
					s.grow()
				}
				w.publish()
				w.compareHead(t, s.at(s.seq(), 1<<62), seven)
				head, seq := w.snapshot.Load().head, w.snapshot.Load().seq
				if moved := head.unswept.before(seq) != nil && head.users.before(seq) != nil && head.queue.before(seq) != nil &&
					head.brought.partner(7).before(seq) != nil; moved != (step > 0) {
					t.Fatalf("step %d: made of what it was: %v", step, moved)
				}
				if w.snapshot.Load().news != nil {
					withNews++
				}
			}
			if withNews == 0 || withNews < 39 != (seed == 2) {
				t.Errorf("%d of 40 blocks were read as news: the test proves less than it says", withNews)
			}
		})
	}
}

// compareHead compares all that is made of the head.
func (w *world) compareHead(t *testing.T, o *oracle, key string) {
	t.Helper()
	check := func(path string, want any) {
		t.Helper()
		same(t, path, w.get(path, "x-api-key", key).body(t)["data"], want)
	}
	check("/api/v1/vaults", o.vaultList())
	for _, v := range o.vaults {
		check("/api/v1/vaults/"+v.address.Hex(), o.vaultDetail(v))
	}
	check("/api/v1/settlement/summary", o.settlement())
	check("/api/v1/queues/deposits", o.depositQueue(o.vaults...))
	queue := o.withStatus("queued", nil, false)
	check("/api/v1/queues/withdrawals?pageSize=100", queue[:min(len(queue), 100)])
	check("/api/v1/partner/stats", o.partnerStats(7, "Seven"))
	for _, by := range []string{"firstSeen", "totalDeposited", "totalWithdrawn"} {
		users := o.users(by, true)
		check("/api/v1/users?pageSize=100&sortBy="+by, users[:min(len(users), 100)])
	}
	first := uint64(math.MaxUint64)
	for _, e := range o.live {
		if e.kind == aBlock {
			first = min(first, e.block)
		}
	}
	same(t, "asOfBlock before the first", w.get(fmt.Sprintf("/api/v1/vaults?asOfBlock=%d", first-1)).Code, 400)
	same(t, "asOfBlock of the first", w.get(fmt.Sprintf("/api/v1/vaults?asOfBlock=%d", first)).Code, 200)
}
