package oracle

import (
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/testkit/oracle"
	"github.com/navlog/navlog/query/readtest"
)

// explained returns the paths of all responses that contain numbers.
func (o *Oracle) explained(t *testing.T) (out []string) {
	for _, path := range o.vaults(t) {
		vault := vaultOf(path).Hex()
		out = append(out, path, path+"/users", "/api/v1/queues/withdrawals?vault="+vault,
			"/api/v1/queues/deposits?vault="+vault)
	}
	for _, u := range o.list(t, "/api/v1/users") {
		out = append(out, "/api/v1/users/"+u.(object)["address"].(string))
	}
	return append(out, "/api/v1/queues/withdrawals", "/api/v1/queues/deposits", "/api/v1/settlement/summary",
		"/api/v1/partner/stats")
}

// explain reads the explanation of every number, in pages of a given size.
func (a *asked) explain(o *Oracle, pinned string, size int) (numbers, events int) {
	a.t.Helper()
	for _, path := range o.explained(a.t) {
		answer := a.Get(withQuery(path, pinned)).JSON(a.t)
		for _, n := range oracle.Numbers(path, answer) {
			numbers++
			live := a.walkExplanation(path, n, pinned, size, false)
			both := a.walkExplanation(path, n, pinned, size, true)
			shown := slices.DeleteFunc(slices.Clone(both), func(e object) bool { return e["state"] == "retracted" })
			same(a.t, path+n.Field+" with the retracted and without", append([]object{}, shown...), append([]object{}, live...))
			events += len(both)
		}
	}
	return numbers, events
}

// walkExplanation reads the logs behind a number, page by page, and adds them up.
func (a *asked) walkExplanation(path string, n oracle.Number, pinned string, size int, retracted bool) (all []object) {
	a.t.Helper()
	what := withQuery(fmt.Sprintf("/api/v1/explain?of=%s&field=%s&retracted=%t&pageSize=%d", url.QueryEscape(path),
		url.QueryEscape(n.Field), retracted, size), pinned)
	sum := new(big.Int)
	for number := 1; ; number++ {
		got := a.Get(what + "&page=" + strconv.Itoa(number)).JSON(a.t)
		data, meta := got["data"].(object), got["meta"].(object)
		if want := n.Value; want == nil {
			same(a.t, what+" value", data["value"], nil)
		} else {
			same(a.t, what+" value", data["value"], fmt.Sprint(want))
		}
		for _, one := range data["events"].([]any) {
			e := one.(object)
			if !strings.HasSuffix(n.Field, "/firstSeen") { // firstSeen has a single log, whose time is the value
				change, ok := new(big.Int).SetString(e["change"].(string), 10)
				if !ok {
					a.t.Fatalf("%s: the change is %v", what, e["change"])
				}
				same(a.t, what+" sum", e["sum"], sum.Add(sum, change).String())
			}
			a.isInTheLog(what, e)
			all = append(all, e)
		}
		if !meta["hasNextPage"].(bool) {
			same(a.t, what+" total", meta["total"], len(all))
			break
		}
	}
	if live := slices.DeleteFunc(slices.Clone(all), func(e object) bool { return e["state"] != "live" }); len(live) > 0 {
		same(a.t, what+" last sum", all[len(all)-1]["sum"], fmt.Sprint(n.Value))
	} else if n.Value != nil {
		same(a.t, what+" without live logs", fmt.Sprint(n.Value), "0")
	}
	if !slices.IsSortedFunc(all, func(x, y object) int { return slices.Compare(place(x), place(y)) }) {
		a.t.Fatalf("%s: not oldest first: %v", what, all)
	}
	return all
}

// place returns the position of an event in the list.
func place(e object) (out []int) {
	for _, field := range []string{"blockNumber", "logIndex", "seq"} {
		n, err := strconv.Atoi(fmt.Sprint(e[field]))
		if err != nil {
			panic(err)
		}
		out = append(out, n)
	}
	return out
}

// isInTheLog compares an event with its record in the log and, if it was retracted, with the record that retracted
// it.
func (a *asked) isInTheLog(what string, e object) {
	a.t.Helper()
	entry := a.log.Entries[place(e)[2]-1]
	same(a.t, what+" event", []any{e["blockNumber"], e["txHash"], e["vaultAddress"], e["timestamp"], e["id"]},
		[]any{dec(entry.Block), entry.Tx.Hex(), entry.Fact.Vault.Hex(), iso(readtest.BlockTime(entry.Block)), id(entry)})
	switch {
	case e["kind"] == "NavUpdated":
	case entry.User == common.Address{}:
		same(a.t, what+" user", e["userAddress"], nil)
	default:
		same(a.t, what+" user", e["userAddress"], entry.User.Hex())
	}
	taken := slices.IndexFunc(a.log.Entries, func(r readtest.Entry) bool { return r.Retracts == entry.Seq })
	if taken < 0 {
		same(a.t, what+" live", []any{e["state"], e["retractedBySeq"], entry.Retracts}, []any{"live", nil, 0})
		return
	}
	same(a.t, what+" retracted", []any{e["state"], e["retractedBySeq"], e["change"], entry.Retracts},
		[]any{"retracted", dec(uint64(taken + 1)), "0", 0})
}

// TestExplanationsAddUp: the last sum of every explanation equals the number in the response, for random histories
// with reorganisations, at the newest block and at past ones.
func TestExplanationsAddUp(t *testing.T) {
	if testing.Short() {
		t.Skip("sends one query after the other")
	}
	s := randomScenario(3, func(*scenario) {})
	if !s.hasReorganisation() {
		t.Fatal("the scenario has no reorganisation")
	}
	a := startAPI(t, s.Log)
	numbers, events := a.explain(newest(t, s.Log), "", 9)
	for block := uint64(12); block < s.head; block += 9 * *stride {
		o := At(t, s.Log, s.Seq(), block)
		n, e := a.explain(o, o.pinned(), 2+int(block%9))
		numbers, events = numbers+n, events+e
	}
	t.Logf("%d numbers, %d events", numbers, events)
	if numbers < 200 || events < 1000 {
		t.Errorf("%d numbers of %d events are too few for this test", numbers, events)
	}
}

// TestClaimsWithoutOwnerAreExplained: a claim that names only its request is a payment to the owner of the first live
// request with that id, if that was made before the claim, and otherwise to the zero address.
func TestClaimsWithoutOwnerAreExplained(t *testing.T) {
	l := readtest.NewLog(readtest.ChainID)
	l.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.VaultRecord(readtest.VaultB, "Beta", 1),
		readtest.BlockRecord(1))
	amount := int64(1)
	block := func(number uint64, facts ...readtest.Fact) {
		for i, f := range facts {
			amount *= 2 // so that each subset has a different sum
			f.Other, f.Assets, f.Shares, f.Block, f.Index, f.Tx = readtest.Router, amount, 1, number, uint32(i+1),
				readtest.Tx(byte(number))
			l.Add(f, 0)
		}
		l.Append(readtest.BlockRecord(number))
	}
	request := func(vault, user common.Address, id uint64) readtest.Fact {
		return readtest.Fact{Kind: readtest.Request, Vault: vault, User: user, ID: id}
	}
	claim := func(vault, user common.Address, id uint64) readtest.Fact {
		return readtest.Fact{Kind: readtest.Claim, Vault: vault, User: user, ID: id}
	}
	a, b, none := readtest.VaultA, readtest.VaultB, common.Address{}
	block(2, request(a, readtest.Alice, 0), request(a, readtest.Bob, 1), request(a, readtest.Alice, 1),
		request(b, readtest.Bob, 0), request(b, none, 5))
	block(3, claim(a, none, 0), claim(a, none, 1), claim(b, none, 0), claim(b, none, 5), claim(a, none, 9),
		claim(a, none, 2), request(a, readtest.Bob, 2))
	block(4, claim(a, readtest.Alice, 2), claim(a, none, 2), request(b, readtest.Alice, 7))
	block(5, claim(b, none, 7), claim(b, readtest.Bob, 7))
	l.Retract(4)
	block(4, request(b, readtest.Bob, 7))
	block(5, claim(b, none, 7))
	api := startAPI(t, l)
	for pinned, o := range map[string]*Oracle{"": newest(t, l), "asOfBlock=2": At(t, l, l.Seq(), 2),
		"asOfBlock=3": At(t, l, l.Seq(), 3)} {
		api.ask(o, pinned)
		if numbers, events := api.explain(o, pinned, 3); numbers == 0 || events == 0 {
			t.Errorf("%s: %d numbers, %d events", pinned, numbers, events)
		}
	}
}
