package query

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

// TestDecisionsAboutTransitions follows each request of the fixture through its blocks, and through later events.
func TestDecisionsAboutTransitions(t *testing.T) {
	withoutDetector(t)
	w := newFixture(t)
	w.chain.Append( // a foreign vault that funds after the expiry wins
		fact{Kind: readtest.Funding, Vault: vaultA, User: alice, ID: 0, Assets: 43, Block: 12, Index: 0, Tx: tx(20)},
		fact{Kind: readtest.Request, Vault: vaultA, User: carol, Other: carol, ID: 4, Assets: 9, Shares: 9,
			Expires: uint64(blockTime(13)), Block: 12, Index: 1, Tx: tx(21)},
		fact{Kind: readtest.Block, Block: 12})
	w.chain.Append(
		fact{Kind: readtest.Claim, Vault: vaultA, User: alice, Other: carol, ID: 0, Assets: 43, Block: 13, Index: 0,
			Tx: tx(22)},
		fact{Kind: readtest.Expiry, Vault: vaultA, User: carol, ID: 4, Block: 13, Index: 1, Tx: tx(23)},
		fact{Kind: readtest.Block, Block: 13})
	w.publish()
	// state returns the status of a request at a block, and whether the queue contains it.
	state := func(user string, vault string, index, block int) string {
		t.Helper()
		named := func(path string) object {
			for _, r := range w.get(fmt.Sprintf("%s?vault=%s&asOfBlock=%d", path, vault, block)).Data(t).([]any) {
				if r := r.(object); r["requestIndex"] == fmt.Sprint(index) && r["userAddress"] == user {
					return r
				}
			}
			return nil
		}
		r := named("/api/v1/users/" + user + "/withdrawals")
		if r == nil {
			return "none"
		}
		text := r["status"].(string)
		if r["claimable"] == true {
			text += " claimable"
		}
		if queued := named("/api/v1/queues/withdrawals") != nil; queued != strings.HasPrefix(text, "queued") {
			t.Errorf("%s as of block %d is %s, in the queue: %v", user, block, text, queued)
		}
		return text
	}
	t.Run("06 transitions", func(t *testing.T) {
		for _, c := range []struct {
			user, vault string
			index       int
			life        map[int]string // by block
		}{
			{bob.Hex(), vaultA.Hex(), 1, map[int]string{6: "none", 7: "queued", 8: "queued claimable", 13: "queued claimable"}},
			{bob.Hex(), vaultA.Hex(), 3, map[int]string{8: "none", 9: "queued", 10: "claimed", 13: "claimed"}},
			{carol.Hex(), vaultA.Hex(), 2, map[int]string{9: "queued", 10: "cancelled", 13: "cancelled"}},
			// The expiry follows from the time of block 9, without a log.
			{alice.Hex(), vaultA.Hex(), 0,
				map[int]string{7: "queued", 8: "queued", 9: "expired", 11: "expired", 12: "queued claimable", 13: "claimed"}},
			{carol.Hex(), vaultA.Hex(), 4, map[int]string{12: "queued", 13: "expired"}},
			{alice.Hex(), vaultB.Hex(), 0, map[int]string{9: "queued", 13: "queued"}}, // its funding was reorganised away
		} {
			for block, want := range c.life {
				same(t, fmt.Sprintf("request %d of %s as of block %d", c.index, c.user, block),
					state(c.user, c.vault, c.index, block), want)
			}
		}
		w.chain.Retract(11)
		w.chain.Append(fact{Kind: readtest.Block, Block: 12})
		w.publish()
		same(t, "funding and claim retracted", state(alice.Hex(), vaultA.Hex(), 0, 12), "expired")
		same(t, "request retracted", state(carol.Hex(), vaultA.Hex(), 4, 12), "none")
	})
}

// TestDecisionsAboutEvents covers what the API shows of webhooks. What only a receiver can see is listed in
// observedElsewhere.
func TestDecisionsAboutEvents(t *testing.T) {
	withoutDetector(t)
	w := newFixture(t)
	key := w.partner(7, "Seven")
	w.deliveries()
	get := func(path string) reply { t.Helper(); return w.get(path, "x-api-key", key) }
	post := func(path, body string) reply {
		w.clock.add(6 * time.Second) // the limit is ten per minute
		return w.Do("POST", path, strings.NewReader(body), "x-api-key", key, "Content-Type", "application/json")
	}
	events := func() []any { t.Helper(); return get("/api/v1/partner/events").Data(t).([]any) }
	deliveries := func() []any { t.Helper(); return get(webhooksPath + "/deliveries").Data(t).([]any) }
	inState := func(state string) (found object) {
		t.Helper()
		for _, d := range deliveries() {
			if d := d.(object); d["state"] == state {
				found = d
			}
		}
		if found == nil {
			t.Fatalf("no delivery is %s", state)
		}
		return found
	}
	replay := func(d object) int {
		return post(fmt.Sprintf("%s/deliveries/%s/replay", webhooksPath, d["eventId"]), "").Code
	}

	t.Run("09 withdrawal.referral data", func(t *testing.T) {
		e := events()[1].(object)
		same(t, "type", e["type"], "withdrawal.referral")
		same(t, "data", keysOf(e["data"]),
			sorted("vaultAddress, userAddress, shares, assetsEstimate, requestIndex, txHash, blockNumber, logIndex, timestamp"))
	})
	t.Run("29 rejected webhook URL", func(t *testing.T) {
		g, err := guard.New(guard.Config{Resolver: &net.Resolver{PreferGo: true,
			Dial: func(context.Context, string, string) (net.Conn, error) {
				return nil, errors.New("no name server in this test")
			}}})
		if err != nil {
			t.Fatal(err)
		}
		was := w.checkURL
		w.checkURL = g.CheckURL
		defer func() { w.checkURL = was }()
		for url, reason := range map[string]string{
			"http://8.8.8.8/": "scheme", "https://a b/": "syntax", "https://nowhere.example/": "forbidden_address",
			"https://10.0.0.1/":    "forbidden_address",
			"https://a:b@8.8.8.8/": "credentials", "https://8.8.8.8:8443/": "port",
		} {
			same(t, url, post(webhooksPath, `{"url":"`+url+`"}`).Failed(t, 400, "INVALID_WEBHOOK_URL"), object{"reason": reason})
		}
		same(t, "the registered URL", get(webhooksPath).Data(t).(object)["webhookUrl"], "https://seven.example/hook")
	})
	t.Run("34 signing secret", func(t *testing.T) {
		w.exec(`UPDATE endpoint SET secret = 'whsec_sealed' WHERE partner_id = 7`)
		for _, e := range w.routes() {
			if e.Partner && e.Get != nil {
				if r := get(strings.ReplaceAll(e.Path, "{address}", vaultA.Hex())); strings.Contains(r.Body.String(), "sealed") {
					t.Errorf("%s shows the secret", e.Path)
				}
			}
		}
	})
	t.Run("35 timestamp", func(t *testing.T) {
		before := get("/api/v1/partner/events").Body.String()
		same(t, "replay", replay(inState("delivered")), http.StatusAccepted)
		same(t, "id, body and createdAt after a replay", get("/api/v1/partner/events").Body.String(), before)
	})
	t.Run("36 event id", func(t *testing.T) {
		for _, e := range events() {
			e, data := e.(object), e.(object)["data"].(object)
			name := fmt.Sprintf("%d:%s:%s:%s:%s", testChain, data["txHash"], data["logIndex"], e["type"], e["partnerId"])
			same(t, name, e["id"], uuid5("fb2278cfec625c5eab9387d662a5be5b", name))
		}
	})
	t.Run("37 when to notify", func(t *testing.T) {
		d := inState("no_endpoint")
		same(t, "attempts", d["nextAttemptAt"], nil)
		same(t, "replay", replay(d), http.StatusAccepted)
	})
	t.Run("38 attempts", func(t *testing.T) {
		d := inState("failed")
		for i, a := range d["attempts"].([]any) {
			same(t, "number", a.(object)["number"], jsonNumber(fmt.Sprint(i+1)))
		}
		same(t, "attempts", len(d["attempts"].([]any)), 2)
		same(t, "over", []any{d["nextAttemptAt"], d["finishedAt"] != nil}, []any{nil, true})
		same(t, "replay", replay(d), http.StatusAccepted)
		w.exec(`UPDATE delivery SET partner_id = 8 WHERE event_id = '%s'`, d["eventId"])
		same(t, "replay of another partner's", replay(d), http.StatusNotFound)
	})
	t.Run("39 createdAt", func(t *testing.T) {
		for _, e := range events() {
			same(t, "createdAt", e.(object)["createdAt"], e.(object)["data"].(object)["timestamp"])
		}
	})
	t.Run("40 versions", func(t *testing.T) {
		for _, e := range w.routes() {
			if !strings.HasPrefix(e.Path, "/api/v1/") {
				t.Errorf("%s has no version", e.Path)
			}
		}
		for _, e := range events() {
			same(t, "version", e.(object)["version"], jsonNumber("1"))
		}
		for _, name := range []string{"Deprecation", "Sunset"} { // nothing in version 1 is deprecated
			if value, ok := get("/api/v1/vaults").Header()[name]; ok {
				t.Errorf("%s: %s", name, value)
			}
		}
	})
	t.Run("43 breaker", func(t *testing.T) {
		same(t, "open", get(webhooksPath).Data(t).(object)["breaker"],
			object{"state": "open", "openUntil": "2024-01-02T00:00:05.000Z"})
		post(webhooksPath, `{"url":"https://other.example/hook"}`).JSON(t) // a breaker belongs to a partner and a URL
		same(t, "of another URL", get(webhooksPath).Data(t).(object)["breaker"], object{"state": "closed", "openUntil": nil})
	})
	t.Run("44 test events", func(t *testing.T) {
		r := post(webhooksPath+"/test", "")
		if id, _ := readtest.Decode(t, r.Body.Bytes())["data"].(object)["eventId"].(string); r.Code != http.StatusAccepted ||
			len(id) != 36 || id[14] != '4' {
			t.Errorf("%d %s: want a random id", r.Code, r.Body)
		}
		d := inState("parked")
		same(t, "a test event in the log", []any{d["type"], d["sequence"]}, []any{"webhook.test", nil})
		for _, e := range events() {
			if e.(object)["type"] == "webhook.test" {
				t.Error("a test event is in the stream")
			}
		}
	})
}

// uuid5 returns the name-based UUID of RFC 9562, section 5.5; space is in hex.
func uuid5(space, name string) string {
	id, err := hex.DecodeString(space)
	if err != nil {
		panic(err)
	}
	sum := sha1.Sum(append(id, name...))
	sum[6], sum[8] = sum[6]&0x0f|0x50, sum[8]&0x3f|0x80
	h := hex.EncodeToString(sum[:16])
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}
