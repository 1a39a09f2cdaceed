package query

import (
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

// crowd makes up users who deposit and claim: many with equal sums, with none,
// and with sums on both sides of a bucket's border; most places are left again.
func crowd(l *ledger) {
	random := rand.New(rand.NewPCG(5, 7))
	var users []common.Address
	for u := range 48 {
		a := common.BigToAddress(big.NewInt(int64(u + 1)))
		a[0] = []byte{0, 0x20, 0xff}[u%3]
		users = append(users, a)
	}
	amounts := []int64{0, 0, 1, 2, 126, 127, 128, 129, 255, 256, 257, 258, 259, 1_000_000, 1_000_000, 1_000_001, 1 << 50, 1<<50 - 1}
	l.append(vaultMeta(vaultA, "Alpha", 1), vaultMeta(vaultB, "Beta", 1), fact{kind: aBlock, block: 1})
	facts := uint64(0)
	vaults := []common.Address{vaultA, vaultB}
	day := func(block uint64) {
		for range 15 {
			facts++
			f := fact{kind: []kind{aDeposit, aDeposit, aRequest, aClaim}[random.IntN(4)], vault: vaults[random.IntN(len(vaults))], user: users[random.IntN(len(users))],
				other: router, id: facts, assets: amounts[random.IntN(len(amounts))], shares: 1, block: block, index: uint32(facts), tx: common.BigToHash(new(big.Int).SetUint64(facts))}
			l.add(f, 0)
		}
		l.append(fact{kind: aBlock, block: block})
	}
	for n := range uint64(12) {
		day(500 * (n + 1)) // 100 minutes apart
	}
	l.retract(3000)
	for n := range uint64(8) {
		day(3000 + 700*(n+1))
	}
	l.append(vaultMeta(vaultC, "Gamma", 4000)) // a vault added later is read from its start
	vaults = []common.Address{vaultC}
	day(4000)
	day(4900)
}

// TestEveryPageOfTheUsers walks through the list in every order, by pages that
// begin and end anywhere in a bucket, with the rows of who came first added up, and
// out of their totals.
func TestEveryPageOfTheUsers(t *testing.T) {
	for name, many := range map[string]uint64{"few rows": usualSizes.many, "many rows": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testEveryPageOfTheUsers(t, many)
		})
	}
}

func testEveryPageOfTheUsers(t *testing.T, many uint64) {
	w := newWorld(t, func(c *Config) { c.CacheBytes = 0 })
	w.sizes.many = many
	crowd(w.ledger)
	w.publish()
	walk := func(o *oracle, size int, pinned string) {
		t.Helper()
		for _, field := range []string{"firstSeen", "totalDeposited", "totalWithdrawn"} {
			for _, order := range []string{"asc", "desc"} {
				want := o.users(field, order == "desc")
				for page := 1; page <= len(want)/size+2; page++ {
					path := fmt.Sprintf("/api/v1/users?sortBy=%s&sortOrder=%s&pageSize=%d&page=%d%s", field, order, size, page, pinned)
					got := w.get(path).body(t)
					from := min(len(want), (page-1)*size)
					same(t, path, got["data"], want[from:min(len(want), from+size)])
					same(t, path+" total", got["meta"].(object)["total"], len(want))
				}
			}
		}
	}
	seq := w.ledger.seq()
	newest := w.ledger.at(seq, 1<<62)
	if all := newest.users("totalWithdrawn", false); len(all) < 40 || all[5].(object)["totalWithdrawn"] != "0" || all[len(all)-5].(object)["totalWithdrawn"] == "0" {
		t.Fatalf("%d users are too few, or too much alike, to prove something", len(all))
	}
	walk(newest, 3, "")
	past := seq / 2
	for !w.ledger.records[past-1].boundary {
		past--
	}
	walk(w.ledger.at(past, 1<<62), 7, fmt.Sprintf("&asOfSeq=%d", past))

	// Of the first block the log had all when the later ones came, of the second not.
	for block, whole := range map[uint64]bool{2500: true, 5100: false} {
		s := w.snapshot.Load()
		p := s.pin()
		p.asOfBlock(block, s.head.spans.known())
		r, err := (&exchange{ctx: t.Context(), snapshot: s}).prefix(p)
		if err != nil || r.Seq < r.Next != whole {
			t.Fatalf("block %d: the last log up to it is %d, the first one after it %d, error %v", block, r.Seq, r.Next, err)
		}
		walk(w.ledger.at(seq, block), 7, fmt.Sprintf("&asOfBlock=%d", block))
	}

	// The tables move on, and the answers stay.
	for i := range uint64(20) {
		w.ledger.add(fact{kind: aDeposit, vault: vaultA, user: common.BigToAddress(new(big.Int).SetUint64(i + 40 + 1000*(1-i%2))), other: router, id: 1000 + i, assets: 64, shares: 1, block: 9999, index: uint32(i), tx: tx(byte(i))}, 0)
	}
	w.ledger.append(fact{kind: aBlock, block: 9999})
	w.ledger.insert(t, w.writer, w.database())
	walk(newest, 7, "")
	w.look()
	walk(w.ledger.at(w.ledger.seq(), 1<<62), 7, "")

	// The tables move on to where users are gone, and the answers stay.
	with := w.ledger.at(w.ledger.seq(), 1<<62)
	w.ledger.retract(9998)
	w.ledger.append(fact{kind: aBlock, block: 9999})
	w.ledger.insert(t, w.writer, w.database())
	walk(with, 7, "")
	w.look()

	// Blocks about which nobody asks: the lists are brought up to date from where they were read last.
	for i := range uint64(9) {
		w.ledger.add(fact{kind: []kind{aDeposit, aClaim}[i%2], vault: vaultB, user: common.BigToAddress(new(big.Int).SetUint64(5*i + 1)), other: router, id: 2000 + i, assets: 1 << 50, shares: 1, block: 10_000, index: uint32(i), tx: tx(byte(i))}, 0)
	}
	w.ledger.append(fact{kind: aBlock, block: 10_000})
	w.publish()
	for by, list := range w.snapshot.Load().head.lists {
		if list.before(w.snapshot.Load().seq) == nil {
			t.Fatalf("the list by %s is not known from earlier blocks", by)
		}
	}
	walk(w.ledger.at(w.ledger.seq(), 1<<62), 7, "")
}

// TestMovedBuckets: a list after some users moved is the list of those that are
// in it then, in order.
func TestMovedBuckets(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	for range 1000 {
		was, by, want := map[uint32]int32{}, map[uint32]int32{}, map[uint32]int32{}
		for range random.IntN(9) {
			was[random.Uint32N(12)] = 1 + random.Int32N(3)
		}
		for range random.IntN(9) {
			bucket := random.Uint32N(12)
			by[bucket] = random.Int32N(5) - was[bucket]
		}
		for bucket := range uint32(12) {
			if n := was[bucket] + by[bucket]; n > 0 {
				want[bucket] = n
			}
		}
		sorted := func(m map[uint32]int32) (out []rankedBucket) {
			for _, bucket := range slices.Sorted(maps.Keys(m)) {
				out = append(out, rankedBucket{Bucket: bucket, Users: m[bucket]})
			}
			return out
		}
		if got := moved(sorted(was), sorted(by), 1); !slices.Equal(got, sorted(want)) {
			t.Fatalf("%v moved by %v is %v", sorted(was), sorted(by), got)
		}
		if got := moved(sorted(want), sorted(by), -1); !slices.Equal(got, sorted(was)) {
			t.Fatalf("%v before it moved by %v was %v", sorted(want), sorted(by), got)
		}
	}
}

// TestAMovedBucketKeepsItsRows, by which its page is asked for in one way or another.
func TestAMovedBucketKeepsItsRows(t *testing.T) {
	got := moved([]rankedBucket{{1, 2, 30}, {4, 5, 60}, {7, 1, 80}}, []rankedBucket{{2, 1, 0}, {4, 1, 0}, {7, -1, 0}}, 1)
	if want := []rankedBucket{{1, 2, 30}, {2, 1, 0}, {4, 6, 60}}; !slices.Equal(got, want) {
		t.Fatalf("%v, not %v", got, want)
	}
	within, skip, rows, count := stretch(got, page{number: 2, size: 2})
	if !slices.Equal(within, []uint32{2, 4}) || skip != 0 || rows != 60 || count != 9 {
		t.Fatalf("the second page lies in %v, %d users after the first one's start, %d rows, of %d", within, skip, rows, count)
	}
}

// TestUsersOfBucketsAtAnySeq: with places on either side of the multiples of
// placesSpan, and some that are later than what is asked about.
func TestUsersOfBucketsAtAnySeq(t *testing.T) {
	w := newWorld(t)
	w.ledger.append(fact{kind: aBlock, block: 1})
	w.publish()
	random := rand.New(rand.NewPCG(5, 9))
	type place struct {
		seq    uint64
		bucket uint32
	}
	var places []place
	var rows [][]any
	for i := range 400 {
		border := []uint64{0, placesSpan / 2, placesSpan, 2 * placesSpan, 5 * placesSpan / 2}[i%5]
		p := place{max(border+random.Uint64N(9), 5) - 4, 1000 + random.Uint32N(4)}
		places = append(places, p)
		for n, list := range []string{"first", "deposited"} { // each has the other's places one bucket higher
			rows = append(rows, []any{p.seq, uint8(i/5*2 + n), int8(1), writer, list, p.bucket + uint32(n), new(big.Int), alice.Bytes(), int8(1), int64(0), new(big.Int), new(big.Int)})
		}
	}
	w.insertPlaces(t, rows)
	for _, reached := range []uint64{placesSpan + 2, 3 * placesSpan} { // what the tables of the snapshot have at least
		s := &snapshot{generation: w.snapshot.Load().generation, seq: reached, head: newHead(nil, nil, pastScale)}
		for _, at := range places[:100] {
			if at.seq > reached {
				continue
			}
			for n, by := range []string{"firstSeen", "totalDeposited"} {
				got, err := (&exchange{ctx: t.Context(), snapshot: s}).readPlaces(&pin{generation: s.generation, seq: at.seq}, by)
				if err != nil {
					t.Fatal(err)
				}
				want := map[uint32]int32{}
				for _, other := range places {
					if other.seq <= at.seq {
						want[other.bucket+uint32(n)]++
					}
				}
				for _, b := range got {
					want[b.Bucket] -= b.Users
					least, most := uint64(0), uint64(0)
					for _, other := range places {
						if other.bucket+uint32(n) != b.Bucket {
							continue
						}
						most++
						if other.seq/placesSpan < at.seq/placesSpan {
							least++
						}
					}
					if b.Rows < least || b.Rows > most {
						t.Fatalf("bucket %d by %s at seq %d of %d has %d rows, not %d to %d", b.Bucket, by, at.seq, reached, b.Rows, least, most)
					}
				}
				for bucket, off := range want {
					if off != 0 {
						t.Fatalf("bucket %d by %s at seq %d of %d: %d users off, of %v", bucket, by, at.seq, reached, off, got)
					}
				}
			}
		}
	}
}
