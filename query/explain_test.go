package query

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/oracle"
	"github.com/navlog/navlog/query/deposits"
	"github.com/navlog/navlog/query/explain"
	"github.com/navlog/navlog/query/partner"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/users"
	"github.com/navlog/navlog/schemas/mapping"
)

// explained returns the path of a number's explanation.
func explained(of, field string, more ...string) string {
	return "/api/v1/explain?" + strings.Join(append([]string{"of=" + url.QueryEscape(of),
		"field=" + url.QueryEscape(field)}, more...), "&")
}

// TestEveryNumberIsExplained: for every number of every response about the small chain, at the newest and at each
// past block, the explanation's value and its last sum equal the number.
func TestEveryNumberIsExplained(t *testing.T) {
	if testing.Short() {
		t.Skip("sends one query after the other")
	}
	w := newFixture(t)
	keys := map[string]string{"": "", "7": w.partner(7, "Seven"), "8": w.partner(8, "Eight"), "9": w.partner(9, "Nine")}
	fields := map[string]bool{}
	for _, at := range []string{"", "3", "5", "6", "7", "8", "9", "10", "11"} {
		for partner, key := range keys {
			paths := []string{"/api/v1/partner/stats"}
			if partner == "" {
				paths = w.paths()
				for _, who := range []string{bob.Hex(), carol.Hex()} {
					paths = append(paths, "/api/v1/users/"+who)
				}
				paths = append(paths, "/api/v1/vaults/"+vaultB.Hex(), "/api/v1/queues/deposits?vault="+vaultB.Hex(),
					"/api/v1/queues/withdrawals?vault="+vaultB.Hex())
			}
			for _, path := range paths {
				for _, n := range w.numbersAt(path, at, key) {
					fields[n.Field] = true
					data := w.get(explained(path, n.Field, "asOfBlock="+at), "x-api-key", key).Data(t).(object)
					what := path + n.Field + " at " + at
					if n.Value == nil {
						same(t, what, data["value"], nil)
						continue
					}
					same(t, what, data["value"], fmt.Sprint(n.Value))
					if events := data["events"].([]any); len(events) > 0 {
						same(t, what+" last sum", events[len(events)-1].(object)["sum"], data["value"])
					} else {
						same(t, what+" without logs", data["value"], "0")
					}
				}
			}
		}
	}
	if len(fields) < 30 {
		t.Errorf("%d fields were checked: %v", len(fields), fields)
	}
}

// numbersAt returns the numbers of a response at a block, or none if there is no such response.
func (w *world) numbersAt(path, at, key string) []oracle.Number {
	w.t.Helper()
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	if !oracle.Explained(path) || strings.HasSuffix(path, "/partner/stats") && key == "" {
		return nil
	}
	r := w.get(path+separator+"asOfBlock="+at, "x-api-key", key)
	if r.Code == 404 {
		for _, field := range []string{"/totalDeposited", "/firstSeen", "/holdings/deposits/0/_count",
			"/holdings/deposits/" + vaultA.Hex() + "/_count"} {
			w.get(explained(path, field, "asOfBlock="+at)).Failed(w.t, 404, "NOT_FOUND")
		}
		return nil
	}
	return oracle.Numbers(path, r.JSON(w.t))
}

// TestExplainByVault: an entry of a list of vaults can be named by its index in the response or by the vault.
func TestExplainByVault(t *testing.T) {
	withoutDetector(t)
	w := newFixture(t)
	key := w.partner(7, "Seven")
	value := func(of, field string) any {
		t.Helper()
		return w.get(explained(of, field), "x-api-key", key).Data(t).(object)["value"]
	}
	user, lower := "/api/v1/users/"+alice.Hex(), strings.ToLower(vaultB.Hex())
	same(t, "by index", value(user, "/holdings/deposits/1/_sum/assetAmount"), "70")
	same(t, "by address", value(user, "/holdings/deposits/"+vaultB.Hex()+"/_sum/assetAmount"), "70")
	same(t, "in any case", value(user, "/holdings/deposits/"+lower+"/_sum/assetAmount"), "70")
	same(t, "of a user in any case", value(strings.ToLower(user), "/totalDeposited"), "170")
	same(t, "to sweep", value("/api/v1/settlement/summary", "/"+vaultA.Hex()+"/depositsToSweep/totalAmount"), "280")
	same(t, "of a queue", value("/api/v1/queues/deposits?vault="+lower, "/0/count"), "1")
	same(t, "of a user in a vault",
		[]any{value("/api/v1/vaults/"+vaultA.Hex()+"/users", "/"+strings.ToLower(alice.Hex())+"/totalDeposited"),
			value("/api/v1/vaults/"+lower+"/users", "/"+alice.Hex()+"/totalDeposited")}, []any{"100", "70"})
	same(t, "of a partner", value("/api/v1/partner/stats", "/byVault/"+vaultA.Hex()+"/totalVolume"), "130")
	for of, fields := range map[string][]string{
		user: {"/holdings/deposits/2/_count",
			"/holdings/deposits/" + vaultC.Hex() + "/_count", "/holdings/withdrawals/9/_sum/assetsEstimate",
			"/holdings/deposits/0x0000000000000000000000000000000000000000/_count"},
		"/api/v1/settlement/summary": {"/2/depositsToSweep/count",
			"/" + vaultC.Hex() + "/withdrawalsToFund/count"},
		"/api/v1/queues/deposits": {"/2/count"},
		"/api/v1/partner/stats": {"/byVault/1/depositCount",
			"/byVault/" + vaultB.Hex() + "/depositCount"},
		"/api/v1/vaults/" + user[14:]:            {"/navPerShare", "/stats/userCount"},
		"/api/v1/vaults/" + user[14:] + "/users": {"/" + alice.Hex() + "/totalDeposited"},
		"/api/v1/vaults/" + vaultB.Hex() + "/users": {"/" + carol.Hex() + "/totalDeposited",
			"/" + vaultA.Hex() + "/firstSeen"},
		"/api/v1/queues/deposits?vault=" + vaultC.Hex():             {"/0/count"},
		"/api/v1/queues/deposits?vault=" + vaultA.Hex():             {"/1/count", "/" + vaultB.Hex() + "/count"},
		"/api/v1/users/0x0000000000000000000000000000000000000000":  {"/totalDeposited", "/holdings/deposits/0/_count"},
		"/api/v1/vaults/0x0000000000000000000000000000000000000000": {"/navPerShare"},
		"/api/v1/users/" + vaultA.Hex() /* never deposited */ :      {"/totalWithdrawn", "/firstSeen"},
		"/api/v1/users/" + unknown.Hex() /* deposit orphaned */ :    {"/totalDeposited", "/firstSeen"},
	} {
		for _, field := range fields {
			w.get(explained(of, field), "x-api-key", key).Failed(t, 404, "NOT_FOUND")
		}
	}
	for _, vault := range []string{vaultC.Hex(), "0x0000000000000000000000000000000000000000"} {
		// an unknown vault has no queue
		got := w.get(explained("/api/v1/queues/withdrawals?vault="+vault, "/meta/total")).JSON(t)
		same(t, "of an unknown vault",
			[]any{got["data"].(object)["value"], got["data"].(object)["events"], got["meta"].(object)["total"]},
			[]any{"0", []any{}, 0})
	}
}

// TestExplainPlaces: the index of a vault in a list is that in the response, also if the vault's number is zero, or if
// the response leaves the vault out although it has logs.
func TestExplainPlaces(t *testing.T) {
	g, l := readtest.New(t, enginetest.ClickHouse(t)), readtest.NewLog(readtest.ChainID)
	block := uint64(3)
	log := func(kind readtest.Kind, vault common.Address, group uint64) {
		block++
		l.Append(readtest.Fact{Kind: kind, Vault: vault, User: alice, Other: alice, Partner: 7, ID: 1, Group: group,
			Assets: 5, Shares: 5, Block: block, Tx: readtest.Tx(byte(block))},
			readtest.BlockRecord(block))
	}
	l.Append(readtest.PresetRecord(t, vaultA, "Alpha", 1, "lagoon-v0.6"), readtest.VaultRecord(vaultB, "Beta", 2),
		readtest.VaultRecord(vaultC, "Gamma", 3), readtest.BlockRecord(block))
	log(readtest.Deposit, vaultA, 1)
	log(readtest.Void, vaultA, 1) // its only deposit
	log(readtest.Request, vaultB, 0)
	log(readtest.Deposit, vaultC, 0)
	log(readtest.Request, vaultC, 0)
	log(readtest.Funding, vaultC, 0)
	log(readtest.Claim, vaultC, 0)
	g.Write(l)
	paths := []string{"/api/v1/users/" + alice.Hex(), "/api/v1/queues/deposits", "/api/v1/partner/stats"}
	c := readtest.Serve(t, g, serve.Route{Path: "/api/v1/users/{address}", Get: users.Detail},
		serve.Route{Path: paths[1], Get: deposits.Queue}, serve.Route{Path: paths[2], Get: partner.Stats, Partner: true},
		serve.Route{Path: "/api/v1/explain", Get: explain.New(nil).Explain, Partner: true})
	fields := 0
	for _, path := range paths {
		answer := c.Get(path).JSON(t)
		for _, n := range oracle.Numbers(path, answer) {
			parts := strings.Split(n.Field, "/")
			i := slices.Index(parts, "0")
			if i < 0 {
				i = slices.Index(parts, "1")
			}
			if i < 0 { // it is in no list
				continue
			}
			fields++
			list := answer["data"]
			for _, name := range parts[1:i] {
				list = list.(object)[name]
			}
			place, _ := strconv.Atoi(parts[i])
			same(t, path+n.Field, c.Get(explained(path, n.Field)).Data(t).(object)["value"], fmt.Sprint(n.Value))
			parts[i] = list.([]any)[place].(object)["vaultAddress"].(string)
			byAddress := strings.Join(parts, "/")
			same(t, path+byAddress, c.Get(explained(path, byAddress)).Data(t).(object)["value"], fmt.Sprint(n.Value))
			parts[i] = vaultA.Hex()
			c.Get(explained(path, strings.Join(parts, "/"))).Failed(t, 404, "NOT_FOUND")
		}
	}
	same(t, "fields in lists", fields, 2+2*3+1+2)
}

// TestUsersOfOtherVaultsAreExplained: totals of a user are not explained if single logs do not show them in one of its
// vaults, even if nothing of it is left there; a vault in which it has no logs does not matter.
func TestUsersOfOtherVaultsAreExplained(t *testing.T) {
	g, l := readtest.New(t, enginetest.ClickHouse(t)), readtest.NewLog(readtest.ChainID)
	block := uint64(3)
	log := func(kind readtest.Kind, vault, user common.Address, id, group uint64) {
		block++
		l.Append(readtest.Fact{Kind: kind, Vault: vault, User: user, Other: user, ID: id, Group: group, Assets: 5, Shares: 5,
			Block: block, Tx: readtest.Tx(byte(block))}, readtest.BlockRecord(block))
	}
	// The claims of midas lack the amount.
	l.Append(readtest.PresetRecord(t, vaultA, "Alpha", 1, "midas", mapping.Source{Role: "deposits", Address: vaultC}),
		readtest.VaultRecord(vaultB, "Beta", 2), readtest.BlockRecord(block))
	log(readtest.Deposit, vaultA, alice, 1, 1)
	log(readtest.Void, vaultA, alice, 1, 0) // its only deposit there
	log(readtest.Deposit, vaultB, alice, 1, 0)
	log(readtest.Deposit, vaultB, bob, 2, 0)
	g.Write(l)
	ofAlice, ofBob := "/api/v1/users/"+alice.Hex(), "/api/v1/users/"+bob.Hex()
	c := readtest.Serve(t, g, serve.Route{Path: "/api/v1/users/{address}", Get: users.Detail},
		serve.Route{Path: "/api/v1/explain", Get: explain.New(nil).Explain})
	explains := func(of, field string) {
		t.Helper()
		want := c.Get(of).Data(t).(object)[field[1:]]
		same(t, of+field, c.Get(explained(of, field)).Data(t).(object)["value"], fmt.Sprint(want))
	}
	explains(ofBob, "/totalDeposited")
	explains(ofBob, "/totalWithdrawn")
	explains(ofAlice, "/totalDeposited")
	c.Get(explained(ofAlice, "/totalWithdrawn")).Failed(t, 404, "NOT_FOUND")
}

// TestVoidDepositsAreExplained: at past blocks, the explanation of deposited amounts leaves out the deposits that are
// void there, as the numbers do: by id or by owner and group, before the first price of the group, and not retracted.
func TestVoidDepositsAreExplained(t *testing.T) {
	withoutDetector(t)
	g, l := readtest.New(t, enginetest.ClickHouse(t)), readtest.NewLog(readtest.ChainID)
	rng := rand.New(rand.NewPCG(1, 2))
	l.Append(readtest.PresetRecord(t, vaultA, "Alpha", 1, "lagoon-v0.6"),
		readtest.PresetRecord(t, vaultB, "Beta", 1, "lagoon-v0.6"), readtest.BlockRecord(1))
	block, id, none := uint64(1), uint64(0), common.Address{}
	for step := range 90 {
		if block++; step%30 == 29 { // a reorganisation of three blocks
			block -= 3
			l.Retract(block - 1)
		}
		for index := range uint32(3) {
			f := readtest.Fact{Vault: []common.Address{vaultA, vaultB}[rng.IntN(2)],
				User: []common.Address{alice, bob}[rng.IntN(2)], Group: 1 + rng.Uint64N(4), Assets: 1 << rng.IntN(30),
				Shares: 1 + rng.Int64N(9), Block: block, Index: index, Tx: readtest.Tx(byte(block))}
			switch rng.IntN(4) {
			case 0:
				f.Kind, f.User, f.To = readtest.Price, none, f.Group
			case 1:
				f.Kind, f.User = readtest.Price, none
			case 2:
				if f.Kind = readtest.Void; id > 4 && rng.IntN(2) == 0 {
					f.ID, f.Group = id-rng.Uint64N(4), 0
				}
			default:
				id++
				f.Kind, f.ID, f.Other, f.Partner = readtest.Deposit, id, f.User, 7+uint32(rng.IntN(2))
			}
			l.Add(f, 0)
		}
		l.Append(readtest.BlockRecord(block))
	}
	g.Write(l)
	stats := "/api/v1/partner/stats"
	c := readtest.Serve(t, g, serve.Route{Path: "/api/v1/users/{address}", Get: users.Detail},
		serve.Route{Path: stats, Get: partner.Stats, Partner: true},
		serve.Route{Path: "/api/v1/explain", Get: explain.New(nil).Explain, Partner: true})
	numbers := 0
	for at := block; at > 10; at -= 12 {
		for _, path := range []string{"/api/v1/users/" + alice.Hex(), "/api/v1/users/" + bob.Hex(), stats} {
			answer := c.Get(path + "?asOfBlock=" + fmt.Sprint(at))
			if answer.Code != 200 {
				continue
			}
			for _, n := range oracle.Numbers(path, answer.JSON(t)) {
				if !strings.Contains(n.Field, "eposit") && !strings.Contains(n.Field, "olume") {
					continue
				}
				got := c.Get(explained(path, n.Field, "asOfBlock="+fmt.Sprint(at), "retracted=true")).Data(t)
				same(t, fmt.Sprintf("%s%s at %d", path, n.Field, at), got.(object)["value"], fmt.Sprint(n.Value))
				numbers++
			}
		}
	}
	if numbers < 90 {
		t.Errorf("%d numbers were compared", numbers)
	}
}

// TestNullIsNotExplained: numbers that are null because the protocol of a vault has no sweeps and no queue have no
// explanation, and the queues of all vaults have one.
func TestNullIsNotExplained(t *testing.T) {
	g, l := readtest.New(t, enginetest.ClickHouse(t)), readtest.NewLog(readtest.ChainID)
	l.Append(readtest.PresetRecord(t, vaultA, "Alpha", 1, "erc4626"), readtest.VaultRecord(vaultB, "Beta", 2),
		readtest.BlockRecord(3))
	deposit := readtest.Fact{Kind: readtest.Deposit, Vault: vaultA, User: alice, Other: alice, ID: 1, Assets: 5, Shares: 5,
		Block: 4, Tx: readtest.Tx(4)}
	request := readtest.Fact{Kind: readtest.Request, Vault: vaultB, User: alice, Other: alice, ID: 1, Assets: 5, Shares: 5,
		Block: 4, Index: 1, Tx: readtest.Tx(4)}
	l.Append(deposit, request, readtest.BlockRecord(4))
	g.Write(l)
	c := readtest.Serve(t, g, serve.Route{Path: "/api/v1/explain", Get: explain.New(nil).Explain})
	c.Get(explained("/api/v1/vaults/"+vaultA.Hex(), "/stats/pendingWithdrawals")).Failed(t, 404, "NOT_FOUND")
	for _, field := range []string{"/depositsToSweep/count", "/depositsToSweep/totalAmount", "/withdrawalsToFund/count",
		"/withdrawalsToFund/totalAmount"} {
		c.Get(explained("/api/v1/settlement/summary", "/"+vaultA.Hex()+field)).Failed(t, 404, "NOT_FOUND")
		same(t, field, c.Get(explained("/api/v1/settlement/summary", "/"+vaultB.Hex()+field)).Code, 200)
	}
	for path, want := range map[string]string{"/api/v1/queues/withdrawals": "1",
		"/api/v1/queues/withdrawals?vault=" + vaultA.Hex(): "0"} {
		same(t, path, c.Get(explained(path, "/meta/total")).Data(t).(object)["value"], want)
	}
}

// TestExplainRejectsInvalidRequests: a request that does not identify a number is rejected with 400 and a reason for
// each parameter.
func TestExplainRejectsInvalidRequests(t *testing.T) {
	withoutDetector(t)
	w := newFixture(t)
	user := "/api/v1/users/" + alice.Hex()
	for _, c := range []struct{ of, field, faulty string }{
		{"", "/totalDeposited", "of"},
		{"/", "/totalDeposited", "of"},
		{"/api/v1/users", "/totalDeposited", "of"},
		{"/api/v1/users/", "/totalDeposited", "of"},
		{user + "/", "/totalDeposited", "of"},
		{user + "/deposits", "/0/assetAmount", "of"},
		{user[1:], "/totalDeposited", "of"},
		{"/" + user, "/totalDeposited", "of"},
		{"https://navlog.example" + user, "/totalDeposited", "of"},
		{"/api/v1/../api/v1" + user[7:], "/totalDeposited", "of"},
		{"/API/v1" + user[7:], "/totalDeposited", "of"},
		{"/api/v1/explain", "/value", "of"},
		{"/api/v1/users/" + strings.Repeat("f", 5000), "/totalDeposited", "of"},
		{"/api/v1/users/0x12", "/totalDeposited", "of"},
		{"/api/v1/users/{address}", "/totalDeposited", "of"},
		{"/api/v1/users/%00", "/totalDeposited", "of"},
		{user + "#x", "/totalDeposited", "of"},
		{user + "?asOfBlock=9", "/totalDeposited", "of"},
		{user + "?vault=" + vaultA.Hex(), "/totalDeposited", "of"},
		{user + "?vault=%zz", "/totalDeposited", "of"},
		{"/api/v1/queues/deposits?vault=x", "/0/count", "of"},
		{"/api/v1/queues/withdrawals?page=2", "/meta/total", "of"},
		{user, "", "field"},
		{user, "totalDeposited", "field"},
		{user, "/", "field"},
		{user, "/totaldeposited", "field"},
		{user, "/address", "field"},
		{user, "/totalDeposited/", "field"},
		{user, "/holdings/deposits/-/_count", "field"},
		{user, "/holdings/deposits/01/_count", "field"},
		{user, "/holdings/deposits/-1/_count", "field"},
		{user, "/holdings/deposits/99999999999/_count", "field"},
		{user, "/holdings/deposits/0x12/_count", "field"},
		{user, "/holdings/deposits//_count", "field"},
		{user, "/navPerShare", "field"},
		{user, "/~1totalDeposited", "field"},
		{user, "/" + strings.Repeat("x/", 5000), "field"},
		{"/api/v1/settlement/summary", "/{vault}/depositsToSweep/count", "field"},
		{"/api/v1/vaults/" + vaultA.Hex() + "/users", "/0/totalDeposited", "field"},
		{"/api/v1/vaults/" + vaultA.Hex() + "/users", "/totalDeposited", "field"},
		{"/api/v1/vaults/" + vaultA.Hex() + "/users?sortBy=firstSeen", "/" + alice.Hex() + "/totalDeposited", "of"},
		{"/api/v1/queues/withdrawals", "/total", "field"},
	} {
		code := "INVALID_PARAMETER"
		if strings.Contains(c.of, "/users/0x12") || strings.Contains(c.of, "{") || strings.Contains(c.of, "%00") ||
			strings.Contains(c.of, "#") || strings.Contains(c.of, "vault=x") || c.field == "/0/totalDeposited" {
			code = "INVALID_ADDRESS"
		}
		details := w.get(explained(c.of, c.field)).Failed(t, 400, code).([]any)
		same(t, c.of+" "+c.field, details[0].(object)["field"], c.faulty)
	}
	details := w.get("/api/v1/explain?page=0&pageSize=x&retracted=1&asOfBlock=-1").Failed(t, 400,
		"INVALID_PARAMETER").([]any)
	same(t, "all at once", len(details), 5)
	w.get(explained(user, "/totalDeposited", "asOfBlock=2")).Failed(t, 400, "INVALID_PARAMETER")
}

// TestExplainOfAPartner: the numbers of a partner require its own key, and everything about the request works as on
// the partner's route itself.
func TestExplainOfAPartner(t *testing.T) {
	withoutDetector(t)
	w := newFixture(t)
	seven, eight := w.partner(7, "Seven"), w.partner(8, "Eight")
	path := explained("/api/v1/partner/stats", "/totalVolume")
	own := w.get(path, "x-api-key", seven)
	same(t, "of seven", own.Data(t).(object)["value"], "130")
	same(t, "of eight", w.get(path, "x-api-key", eight).Data(t).(object)["value"], "70")
	same(t, "of seven again, from the cache", w.get(path, "x-api-key", seven).Body.String(), own.Body.String())
	h, public := own.Header(), w.get(explained("/api/v1/users/"+alice.Hex(), "/totalDeposited")).Header()
	same(t, "headers", []string{h.Get("Cache-Control"), h.Get("Vary"), h.Get("Access-Control-Allow-Origin")},
		[]string{"private, no-cache", "Accept-Encoding, x-api-key", ""})
	same(t, "headers of the public",
		[]string{public.Get("Cache-Control"), public.Get("Vary"), public.Get("Access-Control-Allow-Origin")},
		[]string{"public, no-cache", "Accept-Encoding", "*"})
	if !strings.Contains(h.Get("RateLimit-Policy"), `"partner"`) || public.Get("RateLimit-Policy") != "" {
		t.Errorf("limits: %q, public %q", h.Get("RateLimit-Policy"), public.Get("RateLimit-Policy"))
	}
	for name, other := range map[string]string{
		"no field":                   "/api/v1/explain?of=/api/v1/partner/stats",
		"an invalid query and field": explained("/api/v1/partner/stats?x=y", "/z"),
		"percent-encoded":            "/api/v1/explain?of=%2Fapi%2Fv1%2Fpartner%2Fstat%73&field=/totalVolume",
		"the first of two":           path + "&of=/api/v1/settlement/summary",
		"with another name":          "/api/v1/explain?o%66=/api/v1/partner/stats&field=/totalVolume", "the number": path,
	} {
		without := w.get(other)
		without.Failed(t, 401, "UNAUTHORIZED")
		same(t, name+": like the explained response", without.Header().Get("WWW-Authenticate"),
			w.get("/api/v1/partner/stats").Header().Get("WWW-Authenticate"))
	}
	// In the opposite order the second value is ignored, and the first needs no key.
	w.get(explained("/api/v1/users/"+alice.Hex(), "/totalVolume")+"&of=/api/v1/partner/stats").Failed(t, 400,
		"INVALID_PARAMETER")
	w.get("/api/v1/explain?of=&of=/api/v1/partner/stats&field=/totalVolume").Failed(t, 400, "INVALID_PARAMETER")
	if code := w.Do("OPTIONS", path, nil).Code; code != 401 && code != 405 {
		t.Errorf("OPTIONS of a partner's numbers is %d", code)
	}
	w.exec(`UPDATE partner SET disabled = true WHERE id = 8`)
	w.clock.add(2e9)
	w.get(path, "x-api-key", eight).Failed(t, 403, "FORBIDDEN")
}

// TestExplainNeedsItsKey: if a route forgets to require the key, nothing is revealed.
func TestExplainNeedsItsKey(t *testing.T) {
	w := newFixture(t)
	c := readtest.Serve(t, w.g, serve.Route{Path: "/api/v1/explain", Get: explain.New(nil).Explain})
	c.Get(explained("/api/v1/partner/stats", "/totalVolume")).Failed(t, 500, "INTERNAL_ERROR")
}

// TestExplainedUser: an event shows the user that it names, or null if it names none: a NAV update of any preset.
func TestExplainedUser(t *testing.T) {
	w := newWorld(t)
	w.chain.Append(readtest.VaultRecord(vaultA, "Alpha", 1),
		fact{Kind: readtest.Deposit, Vault: vaultA, User: alice, Other: router, ID: 1, Assets: 100, Shares: 100, Block: 2,
			Tx: tx(1)},
		readtest.BlockRecord(2))
	w.publish()
	user := func(of, field string) any {
		t.Helper()
		events := w.get(explained(of, field)).Data(t).(object)["events"].([]any)
		return events[len(events)-1].(object)["userAddress"]
	}
	same(t, "of a deposit", user("/api/v1/users/"+alice.Hex(), "/totalDeposited"), alice.Hex())
	for i, event := range []string{"NavUpdated", "TotalAssetsUpdated", "SettleRedeem", "AnswerUpdated",
		"ExchangeRateUpdated"} {
		block := uint64(3 + i)
		nav := fact{Kind: readtest.Nav, Event: event, Vault: vaultA, Price: 2, Assets: 3, Supply: 4, Block: block,
			Tx: tx(byte(block))}
		w.chain.Append(nav, readtest.BlockRecord(block))
		w.publish()
		same(t, "of a "+event, user("/api/v1/vaults/"+vaultA.Hex(), "/totalAssets"), nil)
	}
}

// TestExplainedWithRetractedLogs: a retracted log is not the first one of its user. It is listed on request, and counts
// in nothing.
func TestExplainedWithRetractedLogs(t *testing.T) {
	w := newWorld(t)
	deposit := func(block uint64, n byte) fact {
		return fact{Kind: readtest.Deposit, Vault: vaultA, User: alice, Other: router, Partner: 7, ID: 1, Assets: 5, Shares: 5,
			Block: block, Tx: tx(n)}
	}
	request := func(block uint64, n byte) fact {
		return fact{Kind: readtest.Request, Vault: vaultB, User: bob, Other: bob, ID: 1, Assets: 5, Shares: 5, Block: block,
			Index: 1, Tx: tx(n)}
	}
	w.chain.Append(readtest.VaultRecord(vaultA, "Alpha", 1), readtest.VaultRecord(vaultB, "Beta", 1),
		readtest.BlockRecord(1))
	w.chain.Append(deposit(2, 1), request(2, 2), readtest.BlockRecord(2))
	w.chain.Retract(1)
	w.chain.Append(readtest.BlockRecord(2), deposit(3, 3), request(3, 4), readtest.BlockRecord(3))
	w.publish()
	key := w.partner(7, "Seven")
	for of, field := range map[string]string{"/api/v1/users/" + alice.Hex(): "/firstSeen",
		"/api/v1/vaults/" + vaultA.Hex(): "/stats/userCount", "/api/v1/partner/stats": "/uniqueUsers",
		"/api/v1/users/" + bob.Hex(): "/holdings/withdrawals/" + vaultB.Hex() + "/_count"} {
		for _, retracted := range []string{"false", "true"} {
			why := w.get(explained(of, field, "retracted="+retracted), "x-api-key", key).JSON(t)
			var got []string
			for _, e := range why["data"].(object)["events"].([]any) {
				got = append(got, fmt.Sprint(e.(object)["blockNumber"], " ", e.(object)["state"]))
			}
			want := []string{"3 live"}
			if retracted == "true" {
				want = []string{"2 retracted", "3 live"}
			}
			if !slices.Equal(got, want) || fmt.Sprint(why["meta"].(object)["total"]) != strconv.Itoa(len(want)) {
				t.Errorf("%s%s, retracted=%s: %q, want %q; %v", of, field, retracted, got, want, why["meta"])
			}
		}
	}
}

// TestExplainedRequestOfTwoEffects: if a log makes a request twice, the first one counts, as in the lists.
func TestExplainedRequestOfTwoEffects(t *testing.T) {
	w := newWorld(t)
	w.chain.Append(readtest.VaultRecord(vaultA, "Alpha", 1),
		fact{Kind: readtest.Request, Vault: vaultA, User: alice, Other: alice, ID: 1, Assets: 7, Shares: 6, Block: 2,
			Tx: tx(1)},
		readtest.BlockRecord(2))
	w.g.WriteEvents(w.chain)
	w.g.Exec("INSERT INTO events SELECT * REPLACE (1 AS sub) FROM events WHERE effect = 'requested'")
	w.publish()
	for field, want := range map[string]string{"_count": "1", "_sum/assetsEstimate": "7"} {
		why := w.get(explained("/api/v1/users/"+alice.Hex(),
			"/holdings/withdrawals/"+vaultA.Hex()+"/"+field)).Data(t).(object)
		same(t, field, []any{why["value"], len(why["events"].([]any))}, []any{want, 1})
	}
}

// TestExplainPages: pages work as in other lists, and sums continue across pages.
func TestExplainPages(t *testing.T) {
	withoutDetector(t)
	w := newFixture(t)
	path := explained("/api/v1/users/"+alice.Hex(), "/totalDeposited", "pageSize=1", "nonsense=1")
	second := w.get(path + "&page=2")
	event := second.Data(t).(object)["events"].([]any)[0].(object)
	same(t, "second page", []any{event["change"], event["sum"]}, []any{"70", "170"})
	same(t, "value past the end", w.get(path + "&page=3").Data(t).(object)["value"], "170")
	same(t, "events past the end", w.get(path + "&page=3").Data(t).(object)["events"], []any{})
	link := second.Header().Get("Link")
	if !strings.Contains(link, "of=%2Fapi%2Fv1%2Fusers%2F"+alice.Hex()) ||
		!strings.Contains(link, "field=%2FtotalDeposited") || strings.Contains(link, "nonsense") {
		t.Errorf("Link is %s", link)
	}
	same(t, "HEAD", w.Do("HEAD", path, nil).Code, 200)
}
