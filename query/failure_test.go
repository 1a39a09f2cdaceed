package query

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/local"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// TestEnginesGone kills PostgreSQL and then ClickHouse under a serving world.
func TestEnginesGone(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	dir := sharedDir(t)
	postgres, err := local.StartPostgres(ctx, filepath.Join(dir, "postgres"), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer postgres.Kill()
	clickHouse, err := local.StartClickHouse(ctx, filepath.Join(dir, "clickhouse"), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer clickHouse.Kill()
	w := newWorldOn(t, clickHouse.Addr, postgres.URL)
	w.fill()
	key := w.partner(7, "Seven")
	w.get("/api/v1/partner/stats", "x-api-key", key).data(t)
	w.get("/readyz").data(t)

	postgres.Kill()
	var r reply
	eventually(t, "its last backends are gone too", func() bool {
		w.clock.add(2 * time.Second)
		r = w.get("/api/v1/partner/stats", "x-api-key", key)
		return r.Code != 200
	})
	r.failed(t, 503, "UNAVAILABLE")
	w.registry.Store(w.askRegistry(ctx, w.registry.Load()))
	if w.registry.Load().err == nil {
		t.Fatal("the registry answers")
	}
	if r.Header().Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
	w.get("/api/v1/vaults").data(t)
	w.clock.add(6 * time.Second)
	if err := w.refresh(ctx, w.conn); err != nil { // the generation last known is still read
		t.Fatal(err)
	}
	reasons := w.get("/readyz").failed(t, 503, "UNAVAILABLE").(object)["reasons"].([]any)
	if len(reasons) != 1 || !strings.Contains(reasons[0].(string), "PostgreSQL") {
		t.Errorf("reasons are %v", reasons)
	}
	w.get("/api/v1/vaults").data(t)
	w.get("/status").data(t)

	clickHouse.Kill()
	r = w.get("/api/v1/users")
	r.failed(t, 503, "UNAVAILABLE")
	if r.Header().Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
	w.get("/status").data(t) // what was seen last is known
	w.get("/api/v1/vaults").data(t)
	if err := w.refresh(ctx, w.conn); err == nil {
		t.Error("the read models answer")
	}
	w.clock.add(6 * time.Second)
	err = w.refresh(ctx, w.conn)
	w.snapshotErr.Store(&err)
	reasons = w.get("/readyz").failed(t, 503, "UNAVAILABLE").(object)["reasons"].([]any)
	if len(reasons) != 2 {
		t.Errorf("reasons are %v", reasons)
	}
	for _, address := range []string{clickHouse.Addr, "127.0.0.1", "user="} { // are for operators
		if strings.Contains(fmt.Sprint(reasons), address) || !strings.Contains(w.Ready().Error(), clickHouse.Addr) {
			t.Errorf("reasons are %v, and in full %v", reasons, w.Ready())
		}
	}
	w.get("/healthz").data(t)
	if w.Status().(Status).State != "unready" {
		t.Errorf("status is %+v", w.Status())
	}
	for _, secret := range []string{key, postgres.URL} {
		if strings.Contains(w.log.String(), secret) {
			t.Error("a secret is in the log")
		}
	}
}

// TestNoSnapshot goes through the reasons why there is none.
func TestNoSnapshot(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	refused := func(part string) {
		t.Helper()
		w.registry.Store(w.askRegistry(ctx, w.registry.Load()))
		err := w.refresh(ctx, w.conn)
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("refresh says %v, should say %q", err, part)
		}
	}
	if err := w.refresh(ctx, w.conn); err == nil || !strings.Contains(err.Error(), "which generation is live") {
		t.Errorf("before the registry has answered: %v", err)
	}
	key := w.partner(7, "Seven")
	r := w.get("/api/v1/vaults")
	r.failed(t, 503, "UNAVAILABLE")
	if r.Header().Get("Retry-After") == "" || r.Header().Get("X-Indexed-Block") != "" || r.Header().Get("X-Chain-State") != "unknown" {
		t.Errorf("header %v", r.Header())
	}
	w.get("/api/v1/vaults/x").failed(t, 400, "INVALID_ADDRESS")
	w.get("/api/v1/partner/router", "x-api-key", key).data(t)
	w.get("/readyz").failed(t, 503, "UNAVAILABLE")
	w.get("/healthz").data(t)
	w.get("/status").data(t)

	refused("holds no indexed block yet")
	err := w.refresh(ctx, w.conn)
	w.snapshotErr.Store(&err)
	same(t, "reasons", w.get("/readyz").failed(t, 503, "UNAVAILABLE").(object)["reasons"],
		[]any{"there is no snapshot of the read models yet: " + w.database() + " holds no indexed block yet: ingest and project have to get there first"})
	w.ledger.append(fact{kind: aBlock, block: 1})
	w.publish()
	w.get("/api/v1/vaults").data(t)

	// Another chain's vault, and a payload that is no vault.
	w.ledger.chainID++
	w.ledger.append(vaultMeta(vaultA, "Alpha", 1), fact{kind: aBlock, block: 2})
	w.ledger.insert(t, w.writer, w.database())
	refused("is of chain 31338 and this program serves chain 31337")
	w.get("/api/v1/vaults").data(t) // what was proven goes on

	set := func(state, schema string) { w.exec(`UPDATE generation SET state = '%s', schema = '%s'`, state, schema) }
	set("live", "older")
	refused("this program reads schema")
	w.get("/api/v1/vaults").failed(t, 503, "UNAVAILABLE")
	set("bad", "older")
	refused("no generation is live")
	if err := (&vaultRecord{Payload: "\xff"}).decode(testChain); err == nil || !strings.Contains(err.Error(), "cannot be decoded") {
		t.Errorf("a corrupt payload: %v", err)
	}
	if err := (&vaultRecord{}).decode(testChain); err == nil || !strings.Contains(err.Error(), "names no vault") {
		t.Errorf("an empty payload: %v", err)
	}
}

// TestGenerationSwitch follows the pointer, and falls back with the cursor.
func TestGenerationSwitch(t *testing.T) {
	ctx := context.Background()
	w := newFixture(t)
	if got := w.get("/api/v1/users").body(t)["meta"].(object)["total"]; got != jsonNumber("3") {
		t.Fatalf("%v users", got)
	}
	old, next := w.gen, generations.Add(1)
	w.gen, w.ledger = next, newLedger(testChain)
	createGeneration(t, w, registry.Building)
	w.ledger.append(fact{kind: aBlock, block: 4})
	w.ledger.insert(t, w.writer, w.database())
	w.look()
	if got := w.get("/api/v1/users").Header().Get("X-Generation"); got != itoa(old) {
		t.Errorf("generation %s is served before the switch", got)
	}
	queries := db.New(w.pool)
	for _, step := range []db.SetGenerationStateParams{{ID: old, OldState: "live", NewState: "standby"}, {ID: next, OldState: "building", NewState: "live"}} {
		if n, err := queries.SetGenerationState(ctx, step); err != nil || n != 1 {
			t.Fatal(n, err)
		}
	}
	w.look()
	r := w.get("/api/v1/users")
	if r.Header().Get("X-Generation") != itoa(next) || r.Header().Get("X-Indexed-Block") != "4" || r.body(t)["meta"].(object)["total"] != jsonNumber("0") {
		t.Errorf("after the switch: %v %s", r.Header(), r.Body)
	}
}
