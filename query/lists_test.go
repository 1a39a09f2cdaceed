package query

import (
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

// TestUsersBehindManyDeadStates: every user changed often, so that most states
// at the top of the order are dead.
func TestUsersBehindManyDeadStates(t *testing.T) {
	w := newWorld(t)
	w.ledger.append(fact{kind: aBlock, block: 1})
	w.ledger.insert(t, w.writer, w.database())
	const users, changes = 30, 40
	var places [][]any
	var want []string
	for u := range users {
		address, row := common.BigToAddress(big.NewInt(int64(u+1))), uint8(0)
		place := func(users int8, list string, key, first, deposited int64) {
			places = append(places, []any{uint64(1), row, int8(1), writer, list, bucketOf(list, big.NewInt(key), address), big.NewInt(key), address.Bytes(),
				users, first, big.NewInt(deposited), new(big.Int)})
			row++
		}
		const since = 1_700_000_000
		place(1, "first", since, 0, 1000)
		place(1, "withdrawn", 0, since, 1000)
		for c := range changes { // once high, in the end low
			deposited := int64((changes - c) * 1000)
			place(1, "deposited", deposited, since, 0)
			if c < changes-1 {
				place(-1, "deposited", deposited, -since, 0)
			}
		}
		want = append(want, address.Hex()) // all tie at 1000: by address
	}
	w.insertPlaces(t, places)
	w.look()
	for _, order := range []string{"asc", "desc"} {
		for _, by := range []string{"totalDeposited", "totalWithdrawn", "firstSeen"} {
			var got []string
			for page := 1; page <= 5; page++ {
				body := w.get(fmt.Sprintf("/api/v1/users?sortBy=%s&sortOrder=%s&pageSize=7&page=%d", by, order, page)).body(t)
				same(t, "total", body["meta"].(object)["total"], users)
				for _, u := range body["data"].([]any) {
					same(t, "deposited", u.(object)["totalDeposited"], "1000")
					same(t, "first seen", u.(object)["firstSeen"], "2023-11-14T22:13:20.000Z")
					got = append(got, u.(object)["address"].(string))
				}
			}
			same(t, by+" "+order, got, want)
		}
	}
}

// TestAmountsAreExact uses the largest amounts that are counted.
func TestAmountsAreExact(t *testing.T) {
	w := newWorld(t)
	w.ledger.append(vaultMeta(vaultA, "Alpha", 1), fact{kind: aBlock, block: 1})
	w.ledger.insert(t, w.writer, w.database())
	largest := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 191), big.NewInt(1))
	sum := new(big.Int).Mul(largest, big.NewInt(3)).String()
	hash := make([]byte, 32)
	for i := range uint64(3) {
		row := []any{uint64(2), uint8(0), int8(1), uint64(0), writer, vaultA.Bytes(), i + 1, alice.Bytes(), alice.Bytes(), uint32(7), largest, largest, int8(0), uint64(1), uint32(1_700_000_012), hash, uint32(i)}
		insertRows(t, w.writer, fmt.Sprintf("INSERT INTO %s.deposits (%s)", w.database(), columns["deposits"]), [][]any{row})
		flow := []any{uint64(2), uint8(i), int8(1), writer, vaultA.Bytes(), alice.Bytes(), int8(1), largest, int8(0), new(big.Int), new(big.Int), int8(1 - min(i, 1)), int64(1_700_000_012 * (1 - min(i, 1))), uint64(1)}
		insertRows(t, w.writer, fmt.Sprintf("INSERT INTO %s.flows (%s)", w.database(), columns["flows"]), [][]any{flow})
	}
	claim := []any{uint64(2), uint8(3), int8(1), writer, vaultA.Bytes(), alice.Bytes(), int8(0), new(big.Int), int8(0), new(big.Int), largest, int8(0), int64(0), uint64(1)}
	insertRows(t, w.writer, fmt.Sprintf("INSERT INTO %s.flows (%s)", w.database(), columns["flows"]), [][]any{claim})
	place := func(row uint8, list string, key *big.Int, first int64, deposited, withdrawn *big.Int) []any {
		return []any{uint64(2), row, int8(1), writer, list, bucketOf(list, key, alice), key, alice.Bytes(), int8(1), first, deposited, withdrawn}
	}
	none, all := new(big.Int), new(big.Int).Mul(largest, big.NewInt(3))
	w.insertPlaces(t, [][]any{
		place(0, "first", big.NewInt(1_700_000_012), 0, all, largest),
		place(1, "deposited", all, 1_700_000_012, none, largest),
		place(2, "withdrawn", largest, 1_700_000_012, all, none),
	})
	w.ledger.append(fact{kind: aBlock, block: 1})
	w.publish()
	key := w.partner(7, "Seven")
	stats := w.get("/api/v1/partner/stats", "x-api-key", key).data(t).(object)
	same(t, "volume", stats["totalVolume"], sum)
	same(t, "user", w.get("/api/v1/users/" + alice.Hex()).data(t).(object)["totalDeposited"], sum)
	same(t, "users", w.get("/api/v1/users").data(t).([]any)[0], object{"address": alice.Hex(), "firstSeen": "2023-11-14T22:13:32.000Z", "totalDeposited": sum, "totalWithdrawn": largest.String()})
	same(t, "settlement", w.get("/api/v1/settlement/summary").data(t).([]any)[0].(object)["depositsToSweep"], object{"count": 3, "totalAmount": sum})
	same(t, "deposit", w.get("/api/v1/partner/deposits", "x-api-key", key).data(t).([]any)[0].(object)["assetAmount"], largest.String())
}

// TestNextPageOutOfReach: a page that cannot be asked for is no next page.
func TestNextPageOutOfReach(t *testing.T) {
	for number, next := range map[int]bool{maxReach/100 - 1: true, maxReach / 100: false} {
		x := &exchange{header: http.Header{}, params: newParams(""), request: httptest.NewRequest(http.MethodGet, "/api/v1/users", nil)}
		meta := x.list([]any{}, page{number, 100}, 2*maxReach).meta.(pageMeta)
		same(t, fmt.Sprint("page ", number), meta.HasNextPage, next)
		same(t, "Link", strings.Contains(x.header.Get("Link"), `rel="next"`), next)
	}
}

func TestVaultRecords(t *testing.T) {
	record := func(seq uint64, v vault) vaultRecord { return vaultRecord{Seq: seq, Sign: 1, vault: v} }
	first, renamed := vault{address: vaultA, name: "Old", startBlock: 9}, vault{address: vaultA, name: "New", startBlock: 9}
	b, c := vault{address: vaultB, name: "B", startBlock: 9}, vault{address: vaultC, name: "C", startBlock: 1}
	records := []vaultRecord{record(1, first), record(4, b), record(6, renamed), record(7, c), {Seq: 9, Sign: -1, Retracts: 6, vault: renamed}}
	for seq, want := range map[uint64]string{0: "", 1: "Old ", 5: "Old B ", 6: "New B ", 7: "C New B ", 8: "C New B ", 9: "C Old B "} {
		got := ""
		for _, v := range vaultsAt(records, seq) {
			got += v.name + " "
		}
		if got != want {
			t.Errorf("at seq %d: %q, should be %q", seq, got, want)
		}
	}
}

// TestNewestWhileATableIsAhead: the totals that the engine holds know no seq,
// so an answer must not use them when a table has already moved on.
func TestNewestWhileATableIsAhead(t *testing.T) {
	w := newFixture(t)
	w.cfg.CacheBytes = 0
	key := w.partner(7, "Seven")
	paths := []string{"/api/v1/partner/stats", "/api/v1/partner/deposits", "/api/v1/users", "/api/v1/vaults/" + vaultA.Hex()}
	before := map[string]any{}
	for _, path := range paths {
		before[path] = w.get(path, "x-api-key", key).body(t)
	}
	w.ledger.append(fact{kind: aDeposit, vault: vaultA, user: nobody, other: router, partner: 7, id: 4, assets: 1000, shares: 1, block: 12, index: 0, tx: tx(41)}, fact{kind: aBlock, block: 12})
	w.ledger.insert(t, w.writer, w.database())
	for _, path := range paths {
		same(t, path, w.get(path, "x-api-key", key).body(t), before[path])
	}
	w.look()
	same(t, "stats", w.get(paths[0], "x-api-key", key).data(t).(object)["totalVolume"], "1130")
	same(t, "users", w.get(paths[2]).body(t)["meta"].(object)["total"], 4)
}

// TestAReorganisationDeeperThanTheScan: none of the newest block records is
// live.
func TestAReorganisationDeeperThanTheScan(t *testing.T) {
	w := newWorld(t)
	for block := uint64(1); block <= placesAtOnce+10; block++ {
		w.ledger.append(fact{kind: aBlock, block: block})
	}
	w.ledger.retract(2)
	w.ledger.append(vaultMeta(vaultA, "Alpha", 1))
	w.publish()
	if got := w.get("/api/v1/vaults").Header().Get("X-Indexed-Block"); got != "2" {
		t.Errorf("the newest block is %s, should be 2", got)
	}
}

// TestNobodysWithdrawals: what happened to a request stands in rows of no user,
// and these are in no list.
func TestNobodysWithdrawals(t *testing.T) {
	w := newFixture(t)
	for _, status := range []string{"", "queued", "claimed", "cancelled"} {
		body := w.get("/api/v1/users/" + (common.Address{}).Hex() + "/withdrawals?status=" + status).body(t)
		same(t, "withdrawals "+status, body["data"], []any{})
		same(t, "total "+status, body["meta"].(object)["total"], 0)
	}
}

// TestPastTheEndIsCounted: a page that has nothing says how many there are, near
// the end and far from it.
func TestPastTheEndIsCounted(t *testing.T) {
	w := newFixture(t)
	w.cfg.CacheBytes = 0
	for _, few := range []int{usualSizes.few, 1, 0} {
		w.sizes.few = few
		for _, list := range []string{"deposits?", "withdrawals?", "withdrawals?status=queued&"} {
			path := "/api/v1/users/" + alice.Hex() + "/" + list
			all := w.get(path).body(t)["meta"].(object)["total"]
			if all == jsonNumber("0") {
				t.Fatalf("there are no %s", list)
			}
			for _, page := range []string{"2", fmt.Sprint(readAhead / defaultPageSize), fmt.Sprint(readAhead/defaultPageSize + 1), "5000"} {
				body := w.get(path + "page=" + page).body(t)
				same(t, list+" on page "+page, body["data"], []any{})
				same(t, "their number", body["meta"].(object)["total"], all)
			}
		}
	}
}

// TestListsAfterAReorganisation: what was taken back is in no page of a user's
// lists and in no number, and what came back is there once.
func TestListsAfterAReorganisation(t *testing.T) {
	w := newWorld(t)
	w.cfg.CacheBytes = 0
	l := w.ledger
	both := func(id uint64, block uint64) []fact {
		return []fact{
			{kind: aDeposit, vault: vaultA, user: alice, other: alice, id: id, assets: 10, shares: 10, block: block, index: 0, tx: tx(byte(2 * id))},
			{kind: aRequest, vault: vaultA, user: alice, other: alice, id: id - 1, assets: 5, shares: 5, block: block, index: 1, tx: tx(byte(2*id + 1))},
			{kind: aBlock, block: block},
		}
	}
	l.append(vaultMeta(vaultA, "Alpha", 1))
	l.append(both(1, 2)...)
	l.append(both(2, 3)...)
	l.append(both(3, 4)...)
	l.retract(2)
	l.append(both(2, 3)...) // as it was
	w.publish()
	for _, few := range []int{usualSizes.few, 1, 0} {
		w.sizes.few = few
		for _, list := range []string{"deposits?", "withdrawals?", "withdrawals?status=queued&"} {
			path := "/api/v1/users/" + alice.Hex() + "/" + list
			var blocks []any
			for page := 1; page <= 3; page++ {
				body := w.get(fmt.Sprintf("%spageSize=1&page=%d", path, page)).body(t)
				same(t, list, body["meta"].(object)["total"], 2)
				for _, entry := range body["data"].([]any) {
					blocks = append(blocks, entry.(object)["blockNumber"])
				}
			}
			same(t, list+" by page", blocks, []any{"3", "2"})
			far := w.get(path + "pageSize=1&page=2000").body(t)
			same(t, list+" far past the end", far["data"], []any{})
			same(t, "their number", far["meta"].(object)["total"], 2)
			same(t, list+" as of block 2", w.get(path + "asOfBlock=2").body(t)["meta"].(object)["total"], 1)
		}
	}
}
