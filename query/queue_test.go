package query

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

// TestPagesOfBuckets: whatever blocks the requests of the queue were made in, those
// around a page hold the page, and as many are before them as it says. Some are of
// one block, and of some the block is not known.
func TestPagesOfBuckets(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	left := 0
	for range 2000 {
		queue, made := make(buckets), map[requestKey]uint64{} // places: block and log index
		unknown := random.IntN(4)
		for number := range random.IntN(4) {
			key := bucketKey{"v", uint64(number)}
			var it bucket
			for i := range uint64(bucketSize) {
				if random.IntN(30) > 0 {
					continue
				}
				it.queued[i/64] |= 1 << (i % 64)
				block := 1 + random.Uint64N(12)
				made[requestKey{"v", key.number*bucketSize + i}] = 1000*block + uint64(len(made)) // no two at one place
				if unknown > 0 {
					block, unknown = 0, unknown-1
				}
				it.made = append(it.made, block)
			}
			queue[key] = it
		}
		oldest := func(keys []requestKey) []requestKey {
			slices.SortFunc(keys, func(a, b requestKey) int { return cmp.Compare(made[a], made[b]) })
			return keys
		}
		sorted := oldest(slices.Collect(maps.Keys(made)))
		all, unknowns := queue.queue(0).buckets(nil)
		for number := range 8 {
			p := page{number + 1, 1 + random.IntN(5)}
			keys, before := around(all, unknowns, p)
			left += len(sorted) - len(keys)
			some := oldest(keys)
			for i := p.offset(); i < min(p.offset()+uint64(p.size), uint64(len(sorted))); i++ {
				if i < before || i-before >= uint64(len(some)) || some[i-before] != sorted[i] {
					t.Fatalf("place %d of %d is not around page %+v: %v after %d of %v", i, len(sorted), p, some, before, sorted)
				}
			}
		}
	}
	if left < 100_000 {
		t.Errorf("only %d requests were left out", left)
	}
}

// TestLongQueue: more buckets in which something had its time than are asked
// about at once, and then more requests around a page than that; the vaults have
// requests of the same numbers.
func TestLongQueue(t *testing.T) {
	w := newWorld(t)
	w.ledger.append(vaultMeta(vaultA, "Alpha", 1), vaultMeta(vaultB, "Beta", 1), fact{kind: aBlock, block: 1 << 13})
	w.ledger.insert(t, w.writer, w.database())
	const each = keysAtOnce/2 + 500 // buckets of a vault
	now := uint64(blockTime(1 << 13))
	type made struct {
		block uint64
		index uint32
		vault common.Address
		id    uint64
	}
	var rows [][]any
	var want []made // those that are in the queue
	waiting := map[common.Address]int{}
	request := func(vault common.Address, number, id, block uint64, expires uint64) {
		index := uint32(number)
		if vault == vaultB {
			index += each
		}
		rows = append(rows, []any{uint64(2), uint8(0), int8(1), uint64(0), writer, vault.Bytes(), id, "requested", alice.Bytes(), alice.Bytes(), uint32(0), big.NewInt(1), new(big.Int),
			big.NewInt(10), expires, int8(1), int8(1), block, blockTime(block), make([]byte, 32), index})
		if expires == 0 || expires > now {
			want = append(want, made{block, index, vault, id})
			waiting[vault]++
		}
	}
	for i := range uint64(each) {
		request(vaultA, i, i*bucketSize, 1+i, []uint64{0, now, now + 1, now - 1}[i%4]) // each in a bucket of its own
		request(vaultB, i, i*bucketSize, 1+i, []uint64{now, now - 1, 0}[i%3])
		for j := uint64(1); j <= 3; j++ { // in blocks that are far apart
			request(vaultB, i+j*each, i*bucketSize+j, 1+(i+j*each/4)%each, 0)
		}
	}
	insertRows(t, w.writer, fmt.Sprintf("INSERT INTO %s.requests (%s)", w.database(), columns["requests"]), rows)
	w.look()
	slices.SortFunc(want, func(a, b made) int { return cmp.Or(cmp.Compare(a.block, b.block), cmp.Compare(a.index, b.index)) })
	const size = 100
	for number := 1; number <= len(want)/size+1; number += 7 {
		body := w.get(fmt.Sprintf("/api/v1/queues/withdrawals?pageSize=%d&page=%d", size, number)).body(t)
		same(t, "total", body["meta"].(object)["total"], len(want))
		got := body["data"].([]any)
		wanted := want[min((number-1)*size, len(want)):min(number*size, len(want))]
		if len(got) != len(wanted) {
			t.Fatalf("page %d has %d requests, should have %d", number, len(got), len(wanted))
		}
		for i, r := range wanted {
			if o := got[i].(object); o["vaultAddress"] != r.vault.Hex() || o["requestIndex"] != fmt.Sprint(r.id) {
				t.Fatalf("page %d, place %d: %v, should be %+v", number, i, o, r)
			}
		}
	}
	for i, vault := range []common.Address{vaultA, vaultB} {
		fund := w.get("/api/v1/settlement/summary").data(t).([]any)[i].(object)["withdrawalsToFund"]
		same(t, "to fund "+vault.Hex(), fund, object{"count": waiting[vault], "totalAmount": fmt.Sprint(10 * waiting[vault])})
	}
}

// TestQueueAcrossBuckets: requests whose numbers go over the end of a bucket and
// whose blocks over the ends of the blocks that the engine's totals are kept
// for, in every state, with a reorganisation there.
func TestQueueAcrossBuckets(t *testing.T) {
	const middle = 1 << 16 // where 32,768 blocks end, and 4,096
	w := newWorld(t)
	random := rand.New(rand.NewPCG(11, 11))
	w.ledger.append(vaultMeta(vaultA, "Alpha", 1), vaultMeta(vaultB, "Beta", 1), fact{kind: aBlock, block: 1})
	next := map[common.Address]uint64{vaultA: 240, vaultB: 500}
	txs := 0
	grow := func(from, to uint64) {
		for block := from; block <= to; block++ {
			for index := range uint32(4) {
				vault := []common.Address{vaultA, vaultB}[random.IntN(2)]
				txs++
				f := fact{kind: aRequest, vault: vault, id: next[vault], user: people[random.IntN(3)], other: carol, partner: 7, assets: int64(txs), shares: 1,
					block: block, index: index, tx: common.BytesToHash(fmt.Appendf(nil, "%d", txs))}
				switch dice := random.IntN(10); {
				case dice < 4:
					next[vault]++
					if random.IntN(2) == 0 {
						f.expires = uint64(blockTime(block + random.Uint64N(40)))
					}
				case dice == 9:
					f.kind, f.id = aDeposit, uint64(txs)
				default:
					f.kind = []kind{aFunding, aFunding, aClaim, aCancel, anExpiry}[dice-4]
					f.id = next[vault] - min(1+random.Uint64N(12), next[vault]-240)
				}
				w.ledger.add(f, 0)
			}
			w.ledger.append(fact{kind: aBlock, block: block})
		}
	}
	grow(middle-30, middle+4)
	before := w.ledger.seq()
	w.ledger.retract(middle - 3)
	grow(middle-2, middle+30)
	// A user of the partner first seen late, who was there early in a vault that
	// is filled in afterwards: the log's order is not the chain's.
	deposit := fact{kind: aDeposit, vault: vaultA, id: 1, user: nobody, other: nobody, partner: 7, assets: 1, shares: 1, block: middle + 31}
	w.ledger.append(deposit, fact{kind: aBlock, block: middle + 31})
	deposit.vault, deposit.block = vaultC, middle-25
	w.ledger.append(vaultMeta(vaultC, "Gamma", middle-30), deposit, fact{kind: aBlock, block: middle + 31})
	grow(middle+20_000, middle+20_003) // nearer to an end that the chain has not reached
	w.publish()
	seven := w.partner(7, "Seven")
	for pinned, o := range map[string]*oracle{
		"":                                                        w.ledger.at(w.ledger.seq(), 1<<62),
		fmt.Sprintf("&asOfBlock=%d", middle-9):                    w.ledger.at(w.ledger.seq(), middle-9),
		fmt.Sprintf("&asOfBlock=%d", middle-4):                    w.ledger.at(w.ledger.seq(), middle-4),
		fmt.Sprintf("&asOfBlock=%d", middle-1):                    w.ledger.at(w.ledger.seq(), middle-1),
		fmt.Sprintf("&asOfBlock=%d", middle):                      w.ledger.at(w.ledger.seq(), middle),
		fmt.Sprintf("&asOfBlock=%d", middle+9):                    w.ledger.at(w.ledger.seq(), middle+9),
		fmt.Sprintf("&asOfSeq=%d", before):                        w.ledger.at(before, 1<<62),
		fmt.Sprintf("&asOfSeq=%d&asOfBlock=%d", before, middle-6): w.ledger.at(before, middle-6),
		fmt.Sprintf("&asOfSeq=%d&asOfBlock=%d", before, middle+1): w.ledger.at(before, middle+1),
		fmt.Sprintf("&asOfBlock=%d", middle+20_001):               w.ledger.at(w.ledger.seq(), middle+20_001),
	} {
		for filter, keep := range map[string]func(entry) bool{"": nil, "&vault=" + vaultA.Hex(): inVault(vaultA)} {
			want := o.withStatus("queued", keep, false)
			var got []any
			for number := 1; number == 1 || len(got) == 9*(number-1); number++ {
				path := fmt.Sprintf("/api/v1/queues/withdrawals?pageSize=9&page=%d%s%s", number, filter, pinned)
				body := w.get(path).body(t)
				same(t, path+" total", body["meta"].(object)["total"], len(want))
				got = append(got, body["data"].([]any)...)
			}
			same(t, "the queue "+filter+pinned, got, want)
		}
		same(t, "settlement "+pinned, w.get("/api/v1/settlement/summary?"+pinned).data(t), o.settlement())
		same(t, "partner "+pinned, w.get("/api/v1/partner/stats?"+pinned, "x-api-key", seven).data(t), o.partnerStats(7, "Seven"))
		for _, v := range o.vaults {
			same(t, "vault "+pinned, w.get("/api/v1/vaults/"+v.address.Hex()+"?"+pinned).data(t), o.vaultDetail(v))
		}
	}
	if next[vaultA] < 256+5 || next[vaultB] < 512+5 {
		t.Errorf("the requests do not go over the end of a bucket: %v", next)
	}
}

// TestTimeGoesBack: a request that had its time waits again where the blocks that
// said so are taken back, though nothing is said of it or its neighbours.
func TestTimeGoesBack(t *testing.T) {
	w := newFixture(t)
	w.cfg.CacheBytes = 0
	check := func(when string, waits int64) {
		t.Helper()
		w.publish()
		o := w.ledger.at(w.ledger.seq(), 1<<62)
		same(t, when, w.get("/api/v1/settlement/summary").data(t), o.settlement())
		queue, _ := w.snapshot.Load().head.queue.get(t.Context(), nil)
		same(t, when+", in the queue of its vault", queue.vaults[vaultB].unfunded, waits)
	}
	check("before", 1)
	w.ledger.append(
		fact{kind: aRequest, vault: vaultB, user: carol, other: carol, id: 1000, assets: 5, shares: 5, expires: uint64(blockTime(15)), block: 12, tx: tx(12)},
		fact{kind: aBlock, block: 12})
	check("asked for", 2)
	for block := uint64(13); block <= 15; block++ {
		w.ledger.append(fact{kind: aBlock, block: block})
	}
	check("had its time", 1)
	w.ledger.retract(13)
	w.ledger.append(fact{kind: aBlock, block: 14})
	check("has time again", 2)
}
