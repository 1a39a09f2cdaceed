package query

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/schemas/registry/db"
)

func jsonNumber(s string) json.Number { return json.Number(s) }

// TestRun serves over a socket, with the real clock and all loops.
func TestRun(t *testing.T) {
	w := newFixture(t)
	w.serve()
	w.setClock(time.Now)
	if w.Addr() != "" {
		t.Errorf("Addr is %q before Run", w.Addr())
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	wait.For(t, "ready", func() bool { return w.Ready() == nil && w.Addr() != "" })
	base := "http://" + w.Addr()

	read := func(method, path string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequest(method, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(b)
	}
	if resp, body := read("GET", "/api/v1/vaults"); resp.StatusCode != 200 || !strings.Contains(body, "Alpha") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if resp, body := read("HEAD", "/api/v1/vaults"); resp.StatusCode != 200 || body != "" ||
		resp.Header.Get("ETag") == "" {
		t.Errorf("HEAD: %d %q", resp.StatusCode, body)
	}
	if resp, _ := read("GET", "/readyz"); resp.StatusCode != 200 {
		t.Errorf("readyz: %d", resp.StatusCode)
	}

	// The limit applies to the header as a whole, so every header within the documented length is accepted.
	for length, want := range map[int]int{maxHeader - headerSlop - 500: 200, maxHeader + 1: 431} {
		r, err := http.NewRequest("GET", base+"/api/v1/vaults", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("If-None-Match", strings.Repeat("x", length))
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("a header of %d bytes returns %d, want %d", length, resp.StatusCode, want)
		}
	}

	// New rows are served without a request that triggers a look.
	w.chain.Append(readtest.BlockRecord(12))
	w.g.Write(w.chain)
	wait.For(t, "block 12 is served", func() bool {
		resp, _ := read("GET", "/api/v1/vaults")
		return resp.Header.Get("X-Indexed-Block") == "12"
	})

	// What ingest reports is shown until it is 5 s old.
	queries, projectState := db.New(w.pool), "following"
	headTime := fmt.Sprint(readtest.BlockTime(20))
	setIngestState := func(state string) {
		t.Helper()
		if err := queries.PutStatus(ctx,
			db.PutStatusParams{Program: "project", Instance: "b",
				Status: []byte(`{"state":"` + projectState +
					`","vaultWarnings":[{"address":"0xA1A1a1a1A1A1A1A1A1a1a1a1a1a1A1A1a1A1a1a1","warning":"it has 3 logs and none is a known event"}]}`)}); err != nil {
			t.Fatal(err)
		}
		status := []byte(`{"state":"` + state +
			`","headBlock":20,"finalBlock":10,"provenTo":7,"logsWithoutData":2,"lagBlocks":0,"lagSeconds":0,"etaSeconds":null,"instance":"private","reason":"block 9 is final","headTime":` + headTime + `,"endpoints":[{"name":"https://a.example","state":"down","inUse":true,"latencyMs":1.5,"headBlock":20,"lastError":"private","calls":42,"units":1050},{"name":"https://b.example","state":"up","calls":7}]}`)
		if err := queries.PutStatus(ctx, db.PutStatusParams{Program: "ingest", Instance: "a", Status: status}); err != nil {
			t.Fatal(err)
		}
	}
	for _, state := range []string{"following", "frozen", "backfilling"} {
		wait.For(t, state, func() bool {
			setIngestState(state)
			resp, _ := read("GET", "/api/v1/vaults")
			return resp.Header.Get("X-Chain-State") == state
		})
	}
	var status struct{ Data map[string]any }
	wait.For(t, "the status of query", func() bool {
		setIngestState("backfilling")
		_, body := read("GET", "/status")
		if err := json.Unmarshal([]byte(body), &status); err != nil {
			t.Fatal(err)
		}
		programs := status.Data["programs"].(map[string]any)
		return programs["serve"] == "serving" && programs["ingest"] == "backfilling" && programs["dispatch"] == "unknown"
	})
	for name, want := range map[string]any{"headBlock": "20", "finalBlock": "10", "provenTo": "7", "logsWithoutData": 2.0,
		"lagBlocks": 8.0, "lagSeconds": 96.0, "indexedBlock": "12", "chainState": "backfilling",
		"generation": float64(w.g.ID)} {
		if status.Data[name] != want {
			t.Errorf("/status: %s is %v, should be %v", name, status.Data[name], want)
		}
	}
	for _, v := range status.Data["vaults"].([]any) {
		v := v.(map[string]any)
		if warned := len(v["warnings"].([]any)) == 1; warned != (v["address"] == "0xA1A1a1a1A1A1A1A1A1a1a1a1a1a1A1A1a1A1a1a1") {
			t.Errorf("/status: the warnings of vault %v are %v", v["address"], v["warnings"])
		}
	}
	asked := []any{map[string]any{"calls": 42.0, "units": 1050.0}, map[string]any{"calls": 7.0, "units": 0.0}}
	if got := status.Data["endpoints"]; !reflect.DeepEqual(got, asked) {
		t.Errorf("/status: the calls of its two nodes are %v, want %v", got, asked)
	}
	if status.Data["frozenReason"] != nil {
		t.Errorf("/status: frozenReason is %v", status.Data["frozenReason"])
	}
	wait.For(t, "the reason of the freeze", func() bool {
		setIngestState("frozen")
		_, body := read("GET", "/status")
		return strings.Contains(body, `"frozenReason":"block 9 is final"`)
	})
	if _, body := read("GET", "/status"); strings.Contains(body, "private") || strings.Contains(body, "a.example") ||
		strings.Contains(body, "latency") {
		t.Errorf("/status reveals internal details: %s", body)
	}
	// The read model does not follow: that is worse than the state that ingest reports.
	for _, state := range []string{"bad", "retrying"} {
		projectState = state
		wait.For(t, "the state of a project that is "+state, func() bool {
			setIngestState("following")
			resp, _ := read("GET", "/api/v1/vaults")
			_, body := read("GET", "/status")
			return resp.Header.Get("X-Chain-State") == "stalled" && strings.Contains(body, `"chainState":"stalled"`) &&
				strings.Contains(body, `"lagBlocks":8`) && strings.Contains(body, `"project":"`+state+`"`)
		})
	}
	projectState = "following"
	wait.For(t, "the chain is followed again", func() bool {
		setIngestState("following")
		resp, _ := read("GET", "/api/v1/vaults")
		return resp.Header.Get("X-Chain-State") == "following"
	})
	if _, err := w.pool.Exec(ctx,
		`UPDATE program_status SET at = now() - interval '6 seconds' WHERE program = 'ingest'`); err != nil {
		t.Fatal(err)
	}
	wait.For(t, "unknown", func() bool {
		resp, _ := read("GET", "/api/v1/vaults")
		return resp.Header.Get("X-Chain-State") == "unknown"
	})
	if resp, _ := read("GET", "/metrics"); resp.StatusCode != 404 {
		t.Errorf("/metrics is for operators, but the port of the API returns %d", resp.StatusCode)
	}
	if w.metric("navlog_query_requests_total", "GET", "/api/v1/vaults", "200") == 0 ||
		w.metric("navlog_query_indexed_block") != 12 {
		t.Error("the metrics do not show what was served")
	}
	// The NAV is older than this process. The other vault has none.
	const navTime = "navlog_query_nav_timestamp_seconds"
	if a, b := w.metric(navTime, vaultA.Hex()), w.metric(navTime, vaultB.Hex()); a != float64(blockTime(10)) || b != 0 {
		t.Errorf("the times of the newest NAVs are %v and %v, want that of block 10 and none", a, b)
	}

	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run returned %v", err)
	}
}

// TestRunFinishesOpenRequests: a request that is being handled at shutdown is completed.
func TestRunFinishesOpenRequests(t *testing.T) {
	w := newFixture(t)
	w.setClock(time.Now)
	entered, release := make(chan struct{}), make(chan struct{})
	w.checkURL = func(context.Context, string) (string, error) {
		close(entered)
		<-release
		return "https://late.example", nil
	}
	key := w.partner(7, "Seven")
	ctx, cancel := context.WithCancel(context.Background())
	done, answered := make(chan error, 1), make(chan string, 1)
	go func() { done <- w.Run(ctx) }()
	wait.For(t, "ready", func() bool { return w.Ready() == nil && w.Addr() != "" })
	go func() {
		r, _ := http.NewRequest("POST", "http://"+w.Addr()+webhooksPath, strings.NewReader(`{"url":"https://x"}`))
		r.Header.Set("x-api-key", key)
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			answered <- err.Error()
			return
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		answered <- string(b)
	}()
	<-entered
	cancel()
	wait.For(t, "the listener is closed", func() bool {
		c, err := net.Dial("tcp", w.Addr())
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	close(release)
	if got := <-answered; !strings.Contains(got, "https://late.example") {
		t.Errorf("the open request returned %q", got)
	}
	if err := <-done; err != nil {
		t.Errorf("Run returned %v", err)
	}
}

// After a signal to end, a balancer sees that the program is not ready, and requests that it still sends are served.
func TestRunDrains(t *testing.T) {
	w := newFixture(t)
	w.serve(func(c *Config) { c.Drain = 3 * time.Second })
	w.setClock(time.Now)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	wait.For(t, "ready", func() bool { return w.Ready() == nil && w.Addr() != "" })
	cancel()
	wait.For(t, "not ready", func() bool { return w.Ready() != nil })
	for path, want := range map[string]int{"/readyz": 503, "/api/v1/vaults": 200} {
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + w.Addr() + path)
		if err != nil {
			t.Fatalf("a new connection is rejected: %v", err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, resp.StatusCode, want)
		}
	}
	if err := <-done; err != nil {
		t.Errorf("Run returned %v", err)
	}
}

func TestRunRefusesATakenPort(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	w := newWorld(t, func(c *Config) { c.Listen = listener.Addr().String() })
	err = w.Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), listener.Addr().String()) ||
		!strings.Contains(err.Error(), "choose another") {
		t.Errorf("%v", err)
	}
}
