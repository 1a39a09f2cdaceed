package query

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/registrytest"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// TestEnginesGone kills PostgreSQL and then ClickHouse while a world is serving.
func TestEnginesGone(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	dir, err := engines.TempDir("query")
	if err != nil {
		t.Fatal(err)
	}
	postgres, err := engines.StartPostgres(ctx, filepath.Join(dir, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer postgres.Kill()
	clickHouse, err := engines.StartClickHouse(ctx, filepath.Join(dir, "clickhouse"))
	if err != nil {
		t.Fatal(err)
	}
	defer clickHouse.Kill()
	w := newWorldOn(t, clickHouse.Addr, postgres.URL)
	w.chain = readtest.SmallChain()
	w.publish()
	key := w.partner(7, "Seven")
	w.get("/api/v1/partner/stats", "x-api-key", key).Data(t)
	w.get("/readyz").Data(t)

	postgres.Kill()
	var r reply
	wait.For(t, "its last backends have exited", func() bool {
		w.clock.add(2 * time.Second)
		r = w.get("/api/v1/partner/stats", "x-api-key", key)
		return r.Code != 200
	})
	r.Failed(t, 503, "UNAVAILABLE")
	if w.watcher.LookAtRegistry(ctx).Err == nil {
		t.Fatal("the registry responds")
	}
	if r.Header().Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
	w.get("/api/v1/vaults").Data(t)
	w.clock.add(6 * time.Second)
	if err := w.watcher.Look(ctx); err != nil { // the last known generation is still read
		t.Fatal(err)
	}
	reasons := w.get("/readyz").Failed(t, 503, "UNAVAILABLE").(object)["reasons"].([]any)
	if len(reasons) != 1 || !strings.Contains(reasons[0].(string), "PostgreSQL") {
		t.Errorf("reasons are %v", reasons)
	}
	w.get("/api/v1/vaults").Data(t)
	w.get("/status").Data(t)

	clickHouse.Kill()
	r = w.get("/api/v1/users")
	r.Failed(t, 503, "UNAVAILABLE")
	if r.Header().Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
	vaults := w.get("/status").Data(t).(object)["vaults"].([]any) // the last known vaults are shown
	if vaults[0].(object)["lastNavAt"] == nil {
		t.Errorf("vaults are %v", vaults)
	}
	if w.metric("navlog_query_nav_timestamp_seconds", vaultA.Hex()) == 0 {
		t.Error("the metric lost the time of the newest NAV")
	}
	w.get("/api/v1/vaults").Data(t)
	if err := w.watcher.Look(ctx); err == nil {
		t.Error("the read models respond")
	}
	w.clock.add(6 * time.Second)
	if err := w.watcher.Look(ctx); err == nil {
		t.Error("the read models respond")
	}
	reasons = w.get("/readyz").Failed(t, 503, "UNAVAILABLE").(object)["reasons"].([]any)
	if len(reasons) != 2 {
		t.Errorf("reasons are %v", reasons)
	}
	for _, address := range []string{clickHouse.Addr, "127.0.0.1", "user="} { // these are only for operators
		if strings.Contains(fmt.Sprint(reasons), address) || !strings.Contains(w.Ready().Error(), clickHouse.Addr) {
			t.Errorf("reasons are %v, and in full %v", reasons, w.Ready())
		}
	}
	w.get("/healthz").Data(t)
	if w.health.Status().State != "unready" {
		t.Errorf("status is %+v", w.health.Status())
	}
	for _, secret := range []string{key, postgres.URL} {
		if strings.Contains(w.logged.String(), secret) {
			t.Error("a secret is in the log")
		}
	}
}

// TestNoSnapshot covers the reasons for a missing snapshot.
func TestNoSnapshot(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	refused := func(part string) {
		t.Helper()
		w.watcher.LookAtRegistry(ctx)
		err := w.watcher.Look(ctx)
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the check reports %v, want %q", err, part)
		}
	}
	if err := w.watcher.Look(ctx); err == nil || !strings.Contains(err.Error(), "which generation is live") {
		t.Errorf("before the first read of the registry: %v", err)
	}
	key := w.partner(7, "Seven")
	r := w.get("/api/v1/vaults")
	r.Failed(t, 503, "UNAVAILABLE")
	if r.Header().Get("Retry-After") == "" || r.Header().Get("X-Indexed-Block") != "" ||
		r.Header().Get("X-Chain-State") != "unknown" {
		t.Errorf("header %v", r.Header())
	}
	w.get("/api/v1/vaults/x").Failed(t, 400, "INVALID_ADDRESS")
	w.get("/api/v1/partner/router", "x-api-key", key).Data(t)
	w.get("/readyz").Failed(t, 503, "UNAVAILABLE")
	w.get("/healthz").Data(t)
	w.get("/status").Data(t)

	refused("holds no indexed block yet")
	same(t, "reasons", w.get("/readyz").Failed(t, 503, "UNAVAILABLE").(object)["reasons"],
		[]any{"there is no snapshot of the read models in ClickHouse yet: " + w.g.Database +
			" holds no indexed block yet: ingest and project must index one first"})
	w.chain.Append(readtest.BlockRecord(1))
	w.publish()
	w.get("/api/v1/vaults").Data(t)

	// A reorganisation retracts every block, which the first request finds.
	w.chain.Retract(0)
	w.chain.Entries[len(w.chain.Entries)-1].Boundary = true
	w.g.Write(w.chain)
	w.get("/api/v1/users").Failed(t, 503, "UNAVAILABLE")
	refused("holds no indexed block yet")
	w.get("/api/v1/vaults").Failed(t, 503, "UNAVAILABLE")
	w.chain.Append(readtest.BlockRecord(1))
	w.publish()
	w.get("/api/v1/vaults").Data(t)

	// A vault of another chain.
	w.chain.ChainID++
	w.chain.Append(readtest.VaultRecord(vaultA, "Alpha", 1), readtest.BlockRecord(2))
	w.g.Write(w.chain)
	refused("is of chain 31338 and this program serves chain 31337")
	w.get("/api/v1/vaults").Data(t) // the last snapshot is still served

	set := func(state, schema string) { w.exec(`UPDATE generation SET state = '%s', schema = '%s'`, state, schema) }
	set("live", "older")
	refused("this program reads schema")
	w.get("/api/v1/vaults").Failed(t, 503, "UNAVAILABLE")
	set("bad", "older")
	refused("no generation is live")
}

// TestFirstSync: while the first generation is built, the decoded log is served as far as it is there, and all other
// routes respond with the progress.
func TestFirstSync(t *testing.T) {
	g := readtest.New(t, enginetest.ClickHouse(t))
	w := newWorldOf(t, g, registrytest.Postgres(t))
	w.register(g, registry.Building)
	key := w.partner(7, "Seven")
	w.deliveries() // one of the paths needs a delivery
	project := func(building string) {
		t.Helper()
		status := fmt.Sprintf(`{"state":"building","building":%s}`, building)
		if err := db.New(w.pool).PutStatus(t.Context(),
			db.PutStatusParams{Program: registry.Project, Instance: "a", Status: []byte(status)}); err != nil {
			t.Fatal(err)
		}
		w.clock.ns.Store(time.Now().UnixNano())
		if r := w.watcher.LookAtRegistry(t.Context()); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	progress := func(seq int, eta string, phase string) object {
		var n any
		if eta != "null" {
			n = 60
		}
		return object{"generation": g.ID, "seq": seq, "recordsLeft": 100 - seq, "etaSeconds": n, "phase": phase}
	}
	reports := func(seq int, eta, phase string) {
		t.Helper()
		project(fmt.Sprintf(`{"generation":%d,"seq":%d,"recordsLeft":%d,"etaSeconds":%s,"phase":"%s"}`, g.ID, seq, 100-seq,
			eta, phase))
	}
	// Nothing is indexed yet.
	reports(0, "null", registry.PhaseFacts)
	if err := w.watcher.Look(t.Context()); err == nil {
		t.Error("an empty generation is shown")
	}
	details := w.get("/api/v1/vaults").Failed(t, 503, "UNAVAILABLE")
	same(t, "progress", details.(object)["progress"], progress(0, "null", "facts"))
	shown := w.get("/api/v1/users", "X-Request-Id", "my-request-1")
	golden(t, "error_first_sync", generationNumber.ReplaceAll(shown.Body.Bytes(), []byte(`"generation":1`)))
	same(t, "firstSync", w.get("/status").Data(t).(object)["firstSync"], progress(0, "null", "facts"))

	// Events are indexed.
	w.chain = readtest.SmallChain()
	g.WriteEvents(w.chain)
	reports(42, "60", registry.PhaseDeriving)
	if err := w.watcher.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/v1/events?kind=NavUpdated",
		"/api/v1/vaults/" + vaultA.Hex() + "/events?kind=NavUpdated"} {
		r := w.get(path)
		if n := len(r.Data(t).([]any)); n != 2 || r.Header().Get("X-Indexed-Block") != "11" {
			t.Errorf("%s: %d entries with %v", path, n, r.Header())
		}
	}
	w.get("/api/v1/vaults/"+unknown.Hex()+"/events").Failed(t, 404, "NOT_FOUND")
	same(t, "reorganisations", len(w.get("/api/v1/reorganisations").Data(t).([]any)), 1)
	for _, path := range w.paths() {
		if strings.Contains(path, "/webhooks") || strings.Contains(path, "/events") ||
			strings.HasSuffix(path, "/reorganisations") || strings.Contains(path, "/router") {
			continue
		}
		r := w.get(path, "x-api-key", key)
		same(t, path, r.Failed(t, 503, "UNAVAILABLE").(object)["progress"], progress(42, "60", "deriving"))
		if r.Header().Get("Retry-After") != "10" {
			t.Errorf("%s: Retry-After is %q", path, r.Header().Get("Retry-After"))
		}
	}
	w.get("/api/v1/users?page=0").Failed(t, 400, "INVALID_PARAMETER")
	same(t, "firstSync", w.get("/status").Data(t).(object)["firstSync"], progress(42, "60", "deriving"))
	reasons := w.get("/readyz").Failed(t, 503, "UNAVAILABLE").(object)["reasons"]
	same(t, "reasons", reasons, []any{fmt.Sprintf("no generation is live, and generation %d is being built", g.ID)})

	// The generation is live.
	g.WriteLists(w.chain)
	w.exec(`UPDATE generation SET state = 'live'`)
	defer w.final(11)() // statements are of final blocks
	for _, path := range w.paths() {
		if r := w.get(path, "x-api-key", key); r.Code != 200 {
			t.Errorf("%s: %d %s", path, r.Code, r.Body)
		}
	}
	same(t, "firstSync", w.get("/status").Data(t).(object)["firstSync"], nil)
	w.get("/readyz").Data(t)
}

// TestEventsAhead: a reorganisation is written to events, and the projector dies before it writes lists. Every
// endpoint responds with the state of the log up to the cursor of lists, about the newest block and about past ones,
// and recovers when the lists are written.
func TestEventsAhead(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.CacheBytes, c.PartnerRateLimit = 0, 100_000 })
	key := w.partner(7, "Seven")
	w.deliveries() // one of the paths needs a delivery
	whole := readtest.SmallChain()
	start := uint64(0) // of the last unit, which goes back to block 9
	for _, e := range whole.Entries[:whole.Seq()-1] {
		if e.Boundary {
			start = e.Seq
		}
	}
	w.chain.Entries = whole.Entries[:start]
	w.publish()
	// final blocks
	paths := slices.DeleteFunc(w.paths(), func(path string) bool { return strings.Contains(path, "/statement") })
	for _, by := range []string{"firstSeen", "totalDeposited", "totalWithdrawn"} {
		paths = append(paths, "/api/v1/users?sortBy="+by)
	}
	for _, list := range []string{"/users", "/queues/withdrawals", "/users/" + alice.Hex() + "/withdrawals"} {
		paths = append(paths, "/api/v1"+list+"?format=csv")
	}
	body := func(path string) string {
		t.Helper()
		r := w.get(path, "x-api-key", key, "X-Request-Id", "same")
		return fmt.Sprintf("%d %s %s", r.Code, r.Header().Get("X-Indexed-Block"), r.Body)
	}
	want := map[string]string{}
	for _, path := range paths {
		want[path] = body(path)
		for _, x := range []uint64{3, 9, 10, 11} {
			want[asOf(path, x)] = body(asOf(path, x))
		}
	}
	w.chain.Entries = whole.Entries
	w.g.WriteEvents(w.chain)
	w.look()
	for path, was := range want {
		same(t, path, body(path), was)
	}
	w.g.WriteLists(w.chain)
	changed := 0
	for _, path := range paths { // the watcher does not look: each request must detect that its snapshot is outdated
		got := body(path)
		if !strings.HasPrefix(got, "200 11") {
			t.Errorf("%s afterwards: %s", path, got)
		}
		if got != want[path] {
			changed++
		}
	}
	if changed < 5 {
		t.Errorf("only %d responses changed, too few for this test", changed)
	}
}

// TestGenerationSwitch: the served generation follows the pointer.
func TestGenerationSwitch(t *testing.T) {
	ctx := context.Background()
	w := newFixture(t)
	total := func() any { return w.get("/api/v1/users").JSON(t)["meta"].(object)["total"] }
	same(t, "users", total(), 3)
	old := w.g
	w.g, w.chain = readtest.New(t, enginetest.ClickHouse(t)), readtest.NewLog(testChain)
	w.register(w.g, registry.Building)
	w.chain.Append(readtest.BlockRecord(4))
	w.publish()
	same(t, "the generation before the switch", w.get("/api/v1/users").Header().Get("X-Generation"), fmt.Sprint(old.ID))
	queries := db.New(w.pool)
	for _, step := range []db.SetGenerationStateParams{{ID: old.ID, OldState: "live", NewState: "standby"},
		{ID: w.g.ID, OldState: "building", NewState: "live"}} {
		if n, err := queries.SetGenerationState(ctx, step); err != nil || n != 1 {
			t.Fatal(n, err)
		}
	}
	w.look()
	r := w.get("/api/v1/users")
	if r.Header().Get("X-Generation") != fmt.Sprint(w.g.ID) || r.Header().Get("X-Indexed-Block") != "4" {
		t.Errorf("after the switch: %v %s", r.Header(), r.Body)
	}
	same(t, "users after the switch", total(), 0)
}

// TestSwitchToAnotherSchema: no request fails when a generation of another schema is made live. This instance is
// unready at once, and serves its generation for as long as a balancer may take to notice, if the generation is still a
// standby.
func TestSwitchToAnotherSchema(t *testing.T) {
	w := newFixture(t)
	other := readtest.New(t, enginetest.ClickHouse(t))
	w.register(other, registry.Standby)
	w.exec(`UPDATE generation SET schema = 'other' WHERE id = %d`, other.ID)
	to := func(state string) {
		w.exec(`UPDATE generation SET state = '%s' WHERE id = %d`, state, w.g.ID)
		w.exec(`UPDATE generation SET state = 'live' WHERE id = %d`, other.ID)
	}
	back := func() {
		w.exec(`UPDATE generation SET state = 'standby' WHERE id = %d`, other.ID)
		w.exec(`UPDATE generation SET state = 'live' WHERE id = %d`, w.g.ID)
		w.look()
		w.get("/readyz").Data(t)
	}
	unready := func() {
		t.Helper()
		reasons := w.get("/readyz").Failed(t, 503, "UNAVAILABLE").(object)["reasons"].([]any)
		if len(reasons) != 1 || !strings.Contains(reasons[0].(string), "has the tables of schema other") {
			t.Errorf("reasons are %v", reasons)
		}
	}
	refused := func() {
		t.Helper()
		w.watcher.LookAtRegistry(t.Context())
		if err := w.watcher.Look(t.Context()); err == nil || w.watcher.Snapshot() != nil {
			t.Errorf("%v, and %v is served", err, w.watcher.Snapshot())
		}
		w.get("/api/v1/users").Failed(t, 503, "UNAVAILABLE")
	}
	to(registry.Standby)
	w.look()
	unready()
	same(t, "users", w.get("/api/v1/users").JSON(t)["meta"].(object)["total"], 3)

	// The old projector still writes it, and the answers follow.
	w.clock.add(29 * time.Second)
	w.chain.Append(readtest.BlockRecord(12))
	w.publish()
	r := w.get("/api/v1/users")
	if h := r.Header(); h.Get("X-Generation") != fmt.Sprint(w.g.ID) || h.Get("X-Indexed-Block") != "12" {
		t.Errorf("after the switch: %v %s", h, r.Body)
	}
	unready()
	if state := w.watcher.Chain(); strings.Contains(state.Reason, "schema") {
		t.Errorf("responses about the newest block are reported as %+v", state)
	}
	if got := w.health.Status(); got.Generation != w.g.ID { // which keeps the generation from being dropped
		t.Errorf("generation %d is reported as served", got.Generation)
	}
	w.clock.add(time.Second)
	refused()
	back()

	to(registry.Bad) // its responses may be wrong
	refused()
	back()
}

// TestLeavingGenerations: the status lists a generation for as long as a response that began before a switch may
// still be reading it.
func TestLeavingGenerations(t *testing.T) {
	w := newFixture(t)
	want := func(leaving string) {
		t.Helper()
		if got := fmt.Sprint(w.health.Status().Leaving); got != leaving {
			t.Errorf("leaving %s, want %s", got, leaving)
		}
	}
	want("[]")
	was, next := w.g, readtest.New(t, enginetest.ClickHouse(t))
	w.register(next, registry.Standby)
	next.Write(readtest.SmallChain())
	w.exec(`UPDATE generation SET state = 'standby'; UPDATE generation SET state = 'live' WHERE id = %d`, next.ID)
	w.look()
	limit := w.cfg.FileTimeout
	want(fmt.Sprintf("[{%d %d}]", was.ID, limit.Milliseconds()))
	w.clock.add(time.Second)
	w.exec(`UPDATE generation SET state = 'standby'`)
	w.watcher.LookAtRegistry(t.Context())
	if err := w.watcher.Look(t.Context()); err == nil { // none is live
		t.Error("there is a generation")
	}
	want(fmt.Sprintf("[{%d %d} {%d %d}]", was.ID, (limit - time.Second).Milliseconds(), next.ID, limit.Milliseconds()))
	w.clock.add(limit - time.Second)
	want(fmt.Sprintf("[{%d 1000}]", next.ID))
	w.exec(`UPDATE generation SET state = 'live' WHERE id = %d`, was.ID) // back to the generation that was left
	w.look()
	w.get("/api/v1/users").Data(t)
	w.clock.add(time.Second)
	want("[]")
}

// TestWarningAboutUnlikeAssets: the warning is logged once, and only if the decimals differ.
func TestWarningAboutUnlikeAssets(t *testing.T) {
	withoutDetector(t)
	w := newFixture(t)
	const warning = "differ in decimals"
	if strings.Contains(w.logged.String(), warning) {
		t.Error("warning about equal decimals")
	}
	third := readtest.VaultRecord(vaultC, "Gamma", 12)
	third.Meta.Asset.Decimals = 18
	w.chain.Append(third, readtest.BlockRecord(12))
	w.publish()
	w.chain.Append(readtest.BlockRecord(13))
	w.publish()
	if n := strings.Count(w.logged.String(), warning); n != 1 {
		t.Errorf("%d warnings", n)
	}
}
