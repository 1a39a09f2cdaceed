package query

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/schemas/registry"
)

// Tests for the rows of the project's table of decisions that an HTTP client can observe, by number. Every response
// is also checked against the OpenAPI document.

func keysOf(v any) string {
	var names []string
	for name := range v.(object) {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func sorted(fields string) string {
	names := strings.Fields(strings.ReplaceAll(fields, ",", " "))
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestDecisionsAboutResources(t *testing.T) {
	withoutDetector(t)
	w := newFixture(t)
	key := w.partner(7, "Seven")
	a, u := vaultA.Hex(), alice.Hex()
	first := func(path string) object { t.Helper(); return w.get(path, "x-api-key", key).Data(t).([]any)[0].(object) }

	t.Run("01 Vault", func(t *testing.T) {
		fields := sorted("address, name, symbol, chainId, decimals, asset, totalAssets, totalSupply, navPerShare, " +
			"navUpdatedAt, startBlock, capabilities, kinds")
		same(t, "fields", keysOf(first("/api/v1/vaults")), fields)
		same(t, "detail", keysOf(w.get("/api/v1/vaults/"+a).Data(t)),
			sorted(fields+" description managementFee performanceFee link stats"))
		same(t, "asset", keysOf(first("/api/v1/vaults")["asset"]), sorted("address, symbol, decimals"))
		b := w.get("/api/v1/vaults/" + vaultB.Hex()).Data(t).(object) // has no NAV yet
		for _, name := range []string{"totalAssets", "totalSupply", "navPerShare", "navUpdatedAt"} {
			same(t, name+" before the first NAV", b[name], nil)
		}
	})
	t.Run("02 NavHistory", func(t *testing.T) {
		nav := first("/api/v1/vaults/" + a + "/nav")
		same(t, "fields", keysOf(nav),
			sorted("id, vaultAddress, vaultName, navPerShare, totalAssets, totalSupply, timestamp, blockNumber, txHash, "+
				"logIndex"))
		same(t, "1.05", nav["navPerShare"], "1050000000000000000")
	})
	t.Run("03 Deposit", func(t *testing.T) {
		fields := "id, vaultAddress, vaultName, userAddress, senderAddress, assetAmount, shares, sweptAt, txHash, " +
			"blockNumber, logIndex, timestamp"
		same(t, "attributed", keysOf(first("/api/v1/users/"+u+"/deposits")), sorted(fields+", partnerId"))
		same(t, "not attributed", keysOf(first("/api/v1/users/"+bob.Hex()+"/deposits")), sorted(fields))
	})
	t.Run("04 WithdrawalRequest", func(t *testing.T) {
		fields := "id, vaultAddress, vaultName, userAddress, receiverAddress, requestIndex, shares, assetsEstimate, " +
			"status, claimable, assetsClaimable, assetsClaimed, requestedAt, expiresAt, fundedAt, claimedAt, cancelledAt, " +
			"expiredAt, txHash, blockNumber, logIndex, timestamp"
		r := first("/api/v1/users/" + carol.Hex() + "/withdrawals")
		same(t, "fields", keysOf(r), sorted(fields))
		same(t, "timestamp", r["timestamp"], r["requestedAt"])
		same(t, "unknown times", []any{r["expiresAt"], r["fundedAt"], r["claimedAt"], r["expiredAt"]},
			[]any{nil, nil, nil, nil})
	})
	t.Run("05 status values", func(t *testing.T) {
		seen := map[string]bool{}
		for _, user := range []string{u, bob.Hex(), carol.Hex()} {
			for _, r := range w.get("/api/v1/users/" + user + "/withdrawals").Data(t).([]any) {
				seen[r.(object)["status"].(string)] = true
				if r.(object)["claimable"] == true && r.(object)["status"] != "queued" {
					t.Errorf("claimable although %v", r.(object)["status"])
				}
			}
		}
		if len(seen) != 4 {
			t.Errorf("%v", seen)
		}
	})
	t.Run("07 ids", func(t *testing.T) {
		d := first("/api/v1/users/" + u + "/deposits")
		same(t, "id", d["id"], fmt.Sprintf("%s-%s", d["txHash"], d["logIndex"]))
	})
	t.Run("08 numbers", func(t *testing.T) {
		r := first("/api/v1/users/" + bob.Hex() + "/withdrawals")
		for _, name := range []string{"requestIndex", "blockNumber", "shares", "assetsEstimate"} {
			if _, ok := r[name].(string); !ok {
				t.Errorf("%s is %T", name, r[name])
			}
		}
		if r["logIndex"] != jsonNumber("2") {
			t.Errorf("logIndex is %v", r["logIndex"])
		}
	})
	t.Run("17 address in, 18 address out", func(t *testing.T) {
		for _, in := range []string{strings.ToLower(u), "0x" + strings.ToUpper(u[2:]), u} {
			same(t, in, w.get("/api/v1/users/" + in).Data(t).(object)["address"], u)
		}
		same(t, "EIP-55", first("/api/v1/vaults")["address"], a)
	})
	t.Run("23 never", func(t *testing.T) {
		stats := w.get("/api/v1/vaults/" + vaultB.Hex()).Data(t).(object)["stats"].(object)
		same(t, "times", []any{stats["lastSweepAt"], stats["lastNavAt"]}, []any{nil, nil})
	})
	t.Run("24 sums over vaults", func(t *testing.T) {
		// 100 in one vault, 70 in the other
		same(t, "alice", w.get("/api/v1/users/" + u).Data(t).(object)["totalDeposited"], "170")
	})
	t.Run("25 empty groups", func(t *testing.T) {
		same(t, "every vault", len(w.get("/api/v1/settlement/summary?asOfBlock=3").Data(t).([]any)), 2)
		same(t, "none without deposits", w.get("/api/v1/queues/deposits?asOfBlock=3").Data(t), []any{})
	})
}

func TestDecisionsAboutParameters(t *testing.T) {
	if testing.Short() {
		t.Skip("sends one query after the other")
	}
	w := newFixture(t)
	a, u := vaultA.Hex(), alice.Hex()
	lists := []string{"/api/v1/vaults/" + a + "/nav", "/api/v1/users", "/api/v1/users/" + u + "/deposits",
		"/api/v1/users/" + u + "/withdrawals", "/api/v1/queues/withdrawals"}

	t.Run("11 past the end", func(t *testing.T) {
		for _, path := range lists {
			body := w.get(path + "?page=900").JSON(t)
			same(t, path, body["data"], []any{})
			same(t, path, body["meta"].(object)["hasNextPage"], false)
		}
	})
	t.Run("13 sortBy, sortOrder", func(t *testing.T) {
		same(t, "default", w.get("/api/v1/users").Data(t), w.get("/api/v1/users?sortBy=firstSeen&sortOrder=desc").Data(t))
		for _, by := range []string{"firstSeen", "totalDeposited", "totalWithdrawn"} {
			w.get("/api/v1/users?sortOrder=asc&sortBy=" + by).JSON(t)
		}
		for _, bad := range []string{"sortBy=address", "sortBy=firstseen", "sortOrder=ASC", "sortOrder=random",
			"sortBy=firstSeen%20"} {
			w.get("/api/v1/users?"+bad).Failed(t, 400, "INVALID_PARAMETER")
		}
	})
	t.Run("14 order", func(t *testing.T) {
		blocks := func(path string) (numbers []int) {
			for _, row := range w.get(path).Data(t).([]any) {
				var n int
				_, _ = fmt.Sscan(row.(object)["blockNumber"].(string), &n)
				numbers = append(numbers, n)
			}
			return numbers
		}
		for _, path := range []string{"/api/v1/vaults/" + a + "/nav", "/api/v1/users/" + u + "/deposits",
			"/api/v1/users/" + u + "/withdrawals"} {
			got := blocks(path)
			if slices.Reverse(got); !slices.IsSorted(got) || len(got) < 2 {
				t.Errorf("%s is not newest first: %v", path, got)
			}
		}
		if got := blocks("/api/v1/queues/withdrawals"); !slices.IsSorted(got) || len(got) < 2 {
			t.Errorf("the queue is not oldest first: %v", got)
		}
	})
	t.Run("15 walks", func(t *testing.T) {
		block := w.get("/api/v1/users").Header().Get("X-Indexed-Block")
		one, two := w.get("/api/v1/users?pageSize=2&asOfBlock="+block).Data(t).([]any),
			w.get("/api/v1/users?pageSize=2&page=2&asOfBlock="+block).Data(t).([]any)
		same(t, "walk", append(one, two...), w.get("/api/v1/users").Data(t))
		r := w.get("/api/v1/vaults?asOfBlock=9")
		same(t, "X-Indexed-Block", r.Header().Get("X-Indexed-Block"), "9")
	})
	t.Run("16 from, to", func(t *testing.T) {
		w.get(lists[0]+"?from=2&to=1").Failed(t, 400, "INVALID_PARAMETER")
		same(t, "both ends", w.get(lists[0] +
			"?from=2023-11-14T22:15:20Z&to=2023-11-14T22:15:20Z").JSON(t)["meta"].(object)["total"], 1)
		same(t, "the end of that day", w.get(lists[0] + "?to=2023-11-14").JSON(t)["meta"].(object)["total"], 2)
	})
	t.Run("22 status", func(t *testing.T) {
		for _, status := range []string{"queued", "claimed", "cancelled"} {
			for _, r := range w.get("/api/v1/users/" + bob.Hex() + "/withdrawals?status=" + status).Data(t).([]any) {
				same(t, status, r.(object)["status"], status)
			}
		}
		w.get(lists[3]+"?status=expired").Failed(t, 400, "INVALID_PARAMETER")
		same(t, "without it", len(w.get(lists[3]).Data(t).([]any)), 2) // one of them expired
		same(t, "queued only", len(w.get(lists[3]+"?status=queued").Data(t).([]any)), 1)
	})
}

func TestDecisionsAboutErrorsAndKeys(t *testing.T) {
	withoutDetector(t)
	w := newFixture(t, func(c *Config) { c.PublicRateLimit = 600 })
	key := w.partner(7, "Seven")
	const stats = "/api/v1/partner/stats"

	t.Run("26 error body, 27 codes", func(t *testing.T) {
		r := w.get("/api/v1/vaults/x", "X-Request-Id", "mine")
		same(t, "body", readtest.Decode(t, r.Body.Bytes()),
			object{"ok": false, "error": object{"code": "INVALID_ADDRESS", "message": "An address is not valid.",
				"requestId": "mine", "details": []any{object{"field": "address",
					"reason": "must be 0x and 40 hexadecimal digits"}}}})
	})
	t.Run("28 key", func(t *testing.T) {
		var bodies []string
		for _, bad := range []string{"", "x", strings.Repeat("k", 5000), registry.NewAPIKey(true), key + "x",
			" " + key[:10]} {
			r := w.get(stats, "x-api-key", bad, "X-Request-Id", "same")
			r.Failed(t, 401, "UNAUTHORIZED")
			bodies = append(bodies, r.Body.String())
		}
		if slices.Sort(bodies); bodies[0] != bodies[len(bodies)-1] {
			t.Errorf("%v", bodies)
		}
	})
	t.Run("30 POST webhooks", func(t *testing.T) {
		post := func(body, kind string) reply {
			w.clock.add(6 * time.Second)
			return w.Do("POST", webhooksPath, strings.NewReader(body), "x-api-key", key, "Content-Type", kind)
		}
		same(t, "registered", post(`{"url":"https://a.example/","x":1}`, "application/json").JSON(t),
			object{"ok": true, "data": object{"webhookUrl": "https://a.example/"}})
		post(`{"url":"http://a.example/"}`, "application/json").Failed(t, 400, "INVALID_WEBHOOK_URL")
		post(`{"url":1}`, "application/json").Failed(t, 400, "INVALID_BODY")
		post(`{"url":"https://a.example/"}`, "text/plain").Failed(t, 415, "UNSUPPORTED_MEDIA_TYPE")
		post(strings.Repeat("x", 16<<10+1), "application/json").Failed(t, 413, "PAYLOAD_TOO_LARGE")
	})
	t.Run("31 rate limits", func(t *testing.T) {
		r := w.get(stats, "x-api-key", key)
		same(t, "policy", r.Header().Get("RateLimit-Policy"), `"partner";q=120;w=60`)
		r = w.get("/api/v1/vaults")
		same(t, "policy", r.Header().Get("RateLimit-Policy"), `"public";q=600;w=60`)
		for _, name := range []string{"RateLimit", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
			if r.Header().Get(name) == "" {
				t.Errorf("no %s", name)
			}
		}
	})
	t.Run("32 order of checks", func(t *testing.T) {
		w.exec(`UPDATE partner SET rate_limit = 1 WHERE id = 7`)
		w.clock.add(time.Minute)
		// the key is checked first
		w.get("/api/v1/partner/vaults/x/nav?page=x").Failed(t, 401, "UNAUTHORIZED")
		w.get("/api/v1/partner/vaults/x/nav?page=x", "x-api-key", key).Failed(t, 400, "INVALID_ADDRESS") // then parameters
		// the limit before parameters
		w.get("/api/v1/partner/vaults/x/nav?page=x", "x-api-key", key).Failed(t, 429, "RATE_LIMITED")
		w.clock.add(time.Minute)
		// then the look-up
		w.get("/api/v1/partner/vaults/"+unknown.Hex()+"/nav?page=x", "x-api-key", key).Failed(t, 400, "INVALID_PARAMETER")
		w.exec(`UPDATE partner SET rate_limit = NULL WHERE id = 7`)
		w.clock.add(time.Minute)
	})
	t.Run("33 API key", func(t *testing.T) {
		if !strings.HasPrefix(key, "nk_test_") || len(key) != len("nk_test_")+38 {
			t.Errorf("%d characters", len(key))
		}
	})
	t.Run("46 pull stream", func(t *testing.T) {
		w.deliveries()
		for query, ok := range map[string]bool{"": true, "?after=0": true, "?after=9223372036854775807": true,
			"?after=9223372036854775808": false, "?after=-1": false, "?limit=0": false, "?limit=100": true,
			"?limit=101": false} {
			r := w.get("/api/v1/partner/events"+query, "x-api-key", key)
			if ok != (r.Code == http.StatusOK) {
				t.Errorf("%s: %d", query, r.Code)
			}
		}
	})
}

func TestDecisionsAboutHTTP(t *testing.T) {
	withoutDetector(t)
	w := newFixture(t)
	key := w.partner(7, "Seven")
	w.deliveries()
	t.Run("41 every route", func(t *testing.T) {
		defer w.final(11)() // statements are of final blocks
		for _, e := range w.routes() {
			path := pathOf(e)
			allow := strings.Join(methods(e), ", ")
			for _, method := range []string{"PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "get", "FOO"} {
				r := w.Do(method, path, nil, "x-api-key", key)
				r.Failed(t, 405, "METHOD_NOT_ALLOWED")
				same(t, "Allow", r.Header().Get("Allow"), allow)
			}
			if e.Get == nil || e.Live {
				continue
			}
			get, head := w.get(path, "x-api-key", key), w.Do("HEAD", path, nil, "x-api-key", key)
			same(t, "HEAD "+path, []string{head.Header().Get("ETag"), head.Header().Get("Content-Length")},
				[]string{get.Header().Get("ETag"), get.Header().Get("Content-Length")})
			same(t, "304 "+path, w.get(path, "x-api-key", key, "If-None-Match", get.Header().Get("ETag")).Code, 304)
			same(t, "CORS "+path, get.Header().Get("Access-Control-Allow-Origin"),
				map[bool]string{false: "*", true: ""}[e.Partner])
			same(t, "request id "+path, w.get(path, "x-api-key", key, "X-Request-Id", "abc").Header().Get("X-Request-Id"), "abc")
			zipped := w.get(path, "x-api-key", key, "Accept-Encoding", "gzip")
			if zipped.Header().Get("Content-Encoding") == "gzip" {
				same(t, "gzip "+path, string(readtest.Gunzip(zipped.Body.Bytes())), get.Body.String())
			} else if get.Body.Len() > 2000 {
				t.Errorf("%s: %d bytes not compressed", path, get.Body.Len())
			}
		}
	})
	t.Run("41 documents", func(t *testing.T) {
		for path, kind := range map[string]string{"/openapi.json": "application/json", "/openapi.yaml": "application/yaml",
			"/docs": "text/html", "/docs/docs.js": "text/javascript", "/docs/docs.css": "text/css"} {
			r := w.Do("GET", path, nil)
			if r.Code != 200 || !strings.HasPrefix(r.Header().Get("Content-Type"), kind) || r.Header().Get("ETag") == "" {
				t.Errorf("%s: %d %v", path, r.Code, r.Header())
			}
			same(t, path, w.get(path, "If-None-Match", r.Header().Get("ETag")).Code, 304)
		}
	})
}

// TestOrphanedBlocks: blocks that the chain lost cannot be requested any more.
func TestOrphanedBlocks(t *testing.T) {
	w := newWorld(t)
	w.chain.Append(readtest.VaultRecord(vaultA, "Alpha", 1))
	for number := uint64(1); number <= 5; number++ {
		w.chain.Append(readtest.BlockRecord(number))
	}
	w.publish()
	w.get("/api/v1/vaults?asOfBlock=5").Data(t)
	w.chain.Retract(2)
	w.chain.Append(readtest.BlockRecord(3))
	w.publish()
	w.get("/api/v1/vaults?asOfBlock=3").Data(t)
	w.get("/api/v1/vaults?asOfBlock=5").Failed(t, 400, "INVALID_PARAMETER")
}
