package query

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestHTTPBehaviour(t *testing.T) {
	w := newFixture(t)
	key := w.partner(7, "Seven")
	a := vaultA.Hex()

	t.Run("headers on every response", func(t *testing.T) {
		seq := fmt.Sprint(w.chain.Seq())
		for path, block := range map[string]string{
			"/api/v1/vaults": "11", "/api/v1/vaults?asOfBlock=9": "9", "/api/v1/partner/router": "11", "/api/v1/vaults/0x": "11",
			"/api/v1/vaults/" + unknown.Hex(): "11",
		} {
			h := w.get(path, "x-api-key", key).Header()
			for name, want := range map[string]string{
				"X-Indexed-Block": block, "X-Indexed-Seq": seq, "X-Generation": fmt.Sprint(w.g.ID), "X-Chain-State": "unknown",
				"Content-Type": "application/json; charset=utf-8", "X-Content-Type-Options": "nosniff",
			} {
				if got := h.Get(name); got != want {
					t.Errorf("%s: %s is %q, should be %q", path, name, got, want)
				}
			}
		}
	})

	t.Run("request id", func(t *testing.T) {
		for given, echoed := range map[string]bool{"abc-1.2_3": true, strings.Repeat("x", 128): true,
			strings.Repeat("x", 129): false, "a b": false, "a\"b": false, "": false} {
			got := w.get("/api/v1/vaults", "X-Request-Id", given).Header().Get("X-Request-Id")
			if (got == given) != echoed || got == "" {
				t.Errorf("%q becomes %q", given, got)
			}
		}
	})

	t.Run("etag", func(t *testing.T) {
		first := w.get("/api/v1/vaults")
		tag := first.Header().Get("ETag")
		if !strings.HasPrefix(tag, `"`) || len(tag) < 10 {
			t.Fatalf("ETag is %q", tag)
		}
		for given, status := range map[string]int{tag: 304, "W/" + tag: 304, `"other", ` + tag: 304, "*": 304, `"other"`: 200,
			strings.Trim(tag, `"`):                  200,
			strings.TrimSuffix(tag, `"`) + `-gzip"`: 304} {
			r := w.get("/api/v1/vaults", "If-None-Match", given)
			if r.Code != status {
				t.Errorf("If-None-Match %s returns %d, want %d", given, r.Code, status)
			}
			if status == 304 && (r.Body.Len() > 0 || r.Header().Get("ETag") == "" || r.Header().Get("X-Indexed-Seq") == "") {
				t.Errorf("304 with body %q and header %v", r.Body, r.Header())
			}
		}
		if other := w.get("/api/v1/vaults?asOfBlock=9").Header().Get("ETag"); other == tag {
			t.Error("two bodies have one ETag")
		}
		if r := w.get("/api/v1/vaults/0x"); r.Header().Get("ETag") != "" || r.Header().Get("Cache-Control") != "no-store" {
			t.Error("an error must not be cached")
		}
		// A partner's 304 also requires the key.
		w.get("/api/v1/partner/vaults", "If-None-Match", tag).Failed(t, 401, "UNAUTHORIZED")
		if r := w.get("/api/v1/partner/vaults", "If-None-Match", tag, "x-api-key", key); r.Code != 304 {
			t.Errorf("partner: %d", r.Code)
		}
	})

	t.Run("gzip", func(t *testing.T) {
		path := "/api/v1/queues/withdrawals"
		plain := w.get(path)
		zipped := w.get(path, "Accept-Encoding", "gzip")
		if zipped.Header().Get("Content-Encoding") != "gzip" ||
			!strings.Contains(zipped.Header().Get("Vary"), "Accept-Encoding") {
			t.Fatalf("not compressed: %v", zipped.Header())
		}
		reader, err := gzip.NewReader(zipped.Body)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(reader); err != nil || !bytes.Equal(got, plain.Body.Bytes()) {
			t.Errorf("%v: %s", err, got)
		}
		tag := zipped.Header().Get("ETag")
		if tag == plain.Header().Get("ETag") || !strings.HasSuffix(tag, `-gzip"`) {
			t.Errorf("ETag of the compressed response is %s", tag)
		}
		if r := w.get(path, "Accept-Encoding", "gzip", "If-None-Match", tag); r.Code != 304 || r.Header().Get("ETag") != tag {
			t.Errorf("%d with %s", r.Code, r.Header().Get("ETag"))
		}
	})

	t.Run("methods", func(t *testing.T) {
		get, head := w.get("/api/v1/vaults"), w.Do("HEAD", "/api/v1/vaults", nil)
		for _, name := range []string{"ETag", "Content-Type", "X-Indexed-Block", "Content-Length"} {
			if get.Header().Get(name) != head.Header().Get(name) || head.Header().Get(name) == "" {
				t.Errorf("HEAD: %s is %q, with GET %q", name, head.Header().Get(name), get.Header().Get(name))
			}
		}
		for path, allow := range map[string]string{
			"/api/v1/vaults": "GET, HEAD, OPTIONS", "/api/v1/users/" + a: "GET, HEAD, OPTIONS",
			"/api/v1/partner/stats":    "GET, HEAD",
			"/api/v1/partner/webhooks": "GET, HEAD, POST", certificatesPath: "GET, HEAD, POST", "/healthz": "GET, HEAD, OPTIONS",
			"/readyz": "GET, HEAD, OPTIONS", "/status": "GET, HEAD, OPTIONS",
		} {
			for _, method := range []string{"PUT", "DELETE", "PATCH", "BREW"} {
				r := w.Do(method, path, nil, "x-api-key", key)
				r.Failed(t, 405, "METHOD_NOT_ALLOWED")
				if r.Header().Get("Allow") != allow {
					t.Errorf("%s %s: Allow is %q, should be %q", method, path, r.Header().Get("Allow"), allow)
				}
			}
		}
		w.Do("POST", "/api/v1/vaults", nil).Failed(t, 405, "METHOD_NOT_ALLOWED")
		w.Do("OPTIONS", "/api/v1/partner/stats", nil).Failed(t, 405, "METHOD_NOT_ALLOWED")
	})

	t.Run("unknown paths", func(t *testing.T) {
		for _, path := range []string{"/nothing", "/api/v1", "/api/v2/vaults", "/api/v1/vaults/", "/api/v1//vaults",
			"/api/v1/vaults/../claims", "/API/v1/vaults", "/api/v1/partner", "/api/v1/vaults/" + a + "/navs"} {
			w.get(path).Failed(t, 404, "NOT_FOUND")
		}
	})

	t.Run("cors", func(t *testing.T) { w.testCORS(t, key) })
}

// testCORS: a page can read every public response, including errors, and may send what browsers, libraries and
// tracing tools add; it can do nothing on partner routes.
func (w *world) testCORS(t *testing.T, key string) {
	readable := func(what string, h http.Header) {
		t.Helper()
		exposed := ", " + strings.ToLower(h.Get("Access-Control-Expose-Headers")) + ","
		for _, name := range []string{"*", "ETag", "Link", "Retry-After", "RateLimit", "RateLimit-Policy",
			"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset",
			"X-Indexed-Block", "X-Indexed-Seq", "X-Generation", "X-Chain-State", "X-Request-Id", "Content-Disposition"} {
			if h.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(exposed, ", "+strings.ToLower(name)+",") {
				t.Errorf("%s: a page cannot read %s: %v", what, name, h)
			}
		}
	}
	closed := func(what string, h http.Header) {
		t.Helper()
		for name := range h {
			if strings.HasPrefix(name, "Access-Control") {
				t.Errorf("%s has the CORS header %s", what, name)
			}
		}
	}
	const origin = "https://example.com"
	for path, status := range map[string]int{
		"/api/v1/vaults": 200, "/api/v1/vaults/0x": 400, "/api/v1/vaults/" + unknown.Hex(): 404, "/api/v1/nothing": 404,
		"/nothing": 404, "/api/v1/partners": 404,
		"/status": 200, "/healthz": 200, "/readyz": 200, "/.well-known/navlog-statements": 200, "/openapi.json": 200,
		"/api/v1/users?page=0": 400,
	} {
		r := w.get(path, "Origin", origin)
		if r.Code != status {
			t.Errorf("%s: %d, should be %d", path, r.Code, status)
		}
		readable(path, r.Header())
		for _, sent := range []string{"Cache-Control", "traceparent", "tracestate", "sentry-trace", "baggage", "content-type",
			"if-none-match", "x-request-id", "last-event-id", "pragma", "x-requested-with"} {
			pre := w.Do("OPTIONS", path, nil, "Origin", origin, "Access-Control-Request-Method", "GET",
				"Access-Control-Request-Headers", sent)
			allowed := ", " + strings.ToLower(pre.Header().Get("Access-Control-Allow-Headers")) + ","
			if pre.Code != 204 || pre.Header().Get("Access-Control-Allow-Methods") != "GET, HEAD" ||
				pre.Header().Get("Access-Control-Allow-Origin") != "*" ||
				!strings.Contains(allowed, ", "+strings.ToLower(sent)+",") {
				t.Errorf("%s: a page may not send %s: %d %v", path, sent, pre.Code, pre.Header())
			}
		}
	}
	for _, path := range []string{"/api/v1/vaults", "/status"} {
		readable("POST "+path, w.Do("POST", path, strings.NewReader("{}"), "Origin", origin, "Content-Type",
			"application/json").Header())
	}
	tag := w.get("/api/v1/vaults").Header().Get("ETag")
	readable("304", w.get("/api/v1/vaults", "If-None-Match", tag).Header())
	for _, path := range []string{"/api/v1/partner/stats", "/api/v1/partner/nothing", "/api/v1/partner",
		"/api/v1/explain?of=/api/v1/partner/stats&field=/totalVolume"} {
		for _, k := range []string{key, ""} {
			closed(path, w.get(path, "x-api-key", k, "Origin", origin).Header())
		}
		pre := w.Do("OPTIONS", path, nil, "Origin", origin, "Access-Control-Request-Method", "GET",
			"Access-Control-Request-Headers", "x-api-key")
		if pre.Code < 400 {
			t.Errorf("%s: a page may call it: %d", path, pre.Code)
		}
		closed("OPTIONS "+path, pre.Header())
	}

	limited := newFixture(t, func(c *Config) { c.PublicRateLimit = 1 })
	limited.get("/api/v1/vaults").Data(t)
	for _, path := range []string{"/api/v1/vaults", "/status"} {
		r := limited.get(path, "Origin", origin)
		r.Failed(t, 429, "RATE_LIMITED")
		readable("429 "+path, r.Header())
	}
	empty := newWorld(t)
	r := empty.get("/api/v1/users", "Origin", origin)
	r.Failed(t, 503, "UNAVAILABLE")
	readable("503", r.Header())
}

func TestValidation(t *testing.T) {
	w := newFixture(t)
	a, u := vaultA.Hex(), alice.Hex()
	// Every list of the public API, with every invalid parameter that it reads.
	for path, wrong := range map[string][]string{
		"/api/v1/vaults":                 {},
		"/api/v1/vaults/" + a:            {},
		"/api/v1/vaults/" + a + "/users": {"page=0", "pageSize=101", "sortBy=address", "sortOrder=up"},
		"/api/v1/vaults/" + a + "/nav":   {"page=0", "pageSize=101", "from=x", "to=x"},
		"/api/v1/users": {"page=x", "pageSize=0", "sortBy=address", "sortBy=FIRSTSEEN", "sortOrder=up",
			"sortOrder=DESC"},
		"/api/v1/users/" + u:               {},
		"/api/v1/users/" + u + "/deposits": {"page=-1", "pageSize=x", "vault=x", "from=x", "to=x"},
		"/api/v1/users/" + u + "/withdrawals": {"page=1.5", "pageSize=1000", "vault=x", "status=expired", "status=Queued",
			"status=all"},
		"/api/v1/queues/withdrawals": {"page=x", "pageSize=x", "vault=x"},
		"/api/v1/queues/deposits":    {"vault=x"},
		"/api/v1/settlement/summary": {},
		"/api/v1/reorganisations":    {"width=0", "width=x"},
	} {
		wrong = append(wrong, "asOfBlock=x", "asOfBlock=-1", "asOfBlock=12", "asOfBlock=2", "asOfBlock=0", "asOfBlock=0x3",
			"asOfBlock=99999999999999999999", "x=%zz", "x=1;y=2")
		for _, query := range wrong {
			field, _, _ := strings.Cut(query, "=")
			code := "INVALID_PARAMETER"
			switch {
			case field == "vault":
				code = "INVALID_ADDRESS"
			case field == "x":
				field = "query"
			}
			details, _ := w.get(path+"?"+query).Failed(t, 400, code).([]any)
			if len(details) != 1 || details[0].(object)["field"] != field || details[0].(object)["reason"] == "" {
				t.Errorf("%s?%s: details %v", path, query, details)
			}
		}
		// Unknown parameters are ignored, empty ones are absent, and the first value of a repeated one counts.
		if r := w.get(path + "?foo=bar&foo=%00&bar&page=&pageSize=&vault=&from=&to=&status=&sortBy=&sortOrder=&asOfBlock=&page=x&vault=x&asOfBlock=x"); r.Code != 200 {
			t.Errorf("%s with empty parameters: %d %s", path, r.Code, r.Body)
		}
	}
	all, _ := w.get("/api/v1/users/"+u+"/deposits?page=0&pageSize=0&from=x&to=y&asOfBlock=z").Failed(t, 400,
		"INVALID_PARAMETER").([]any)
	if len(all) != 5 {
		t.Errorf("want all five invalid fields in the details: %v", all)
	}
	for _, path := range []string{"/api/v1/vaults/x", "/api/v1/vaults/" + a[:41], "/api/v1/vaults/" + a + "00",
		"/api/v1/vaults/x/nav", "/api/v1/users/x", "/api/v1/users/x/deposits",
		"/api/v1/users/x/withdrawals", "/api/v1/users/%00", "/api/v1/users/a%2Fb", "/api/v1/vaults/0X" + a[2:]} {
		w.get(path).Failed(t, 400, "INVALID_ADDRESS")
	}
	for _, path := range []string{"/api/v1/vaults/" + unknown.Hex(), "/api/v1/vaults/" + unknown.Hex() + "/nav",
		"/api/v1/vaults/" + unknown.Hex() + "/users", "/api/v1/users/" + unknown.Hex()} {
		w.get(path).Failed(t, 404, "NOT_FOUND")
	}
	for _, path := range []string{"/api/v1/users/" + unknown.Hex() + "/deposits",
		"/api/v1/users/" + unknown.Hex() + "/withdrawals", "/api/v1/users/" + u + "/deposits?vault=" + unknown.Hex(),
		"/api/v1/users/" + u + "/withdrawals?vault=" + unknown.Hex(), "/api/v1/queues/withdrawals?vault=" + unknown.Hex(),
		"/api/v1/queues/deposits?vault=" + unknown.Hex(),
		"/api/v1/users?page=9", "/api/v1/queues/withdrawals?page=9"} {
		same(t, path, w.get(path).Data(t), []any{})
	}
	// Any case, and percent-encoding, identify the same vault.
	want := w.get("/api/v1/vaults/" + a).Data(t)
	for _, path := range []string{"/api/v1/vaults/" + strings.ToLower(a), "/api/v1/vaults/0x" + strings.ToUpper(a[2:]),
		"/api/v1/vaults/%30x" + a[2:]} {
		same(t, path, w.get(path).Data(t), want)
	}
	file := func(vault string) string {
		return w.get("/api/v1/vaults/" + vault + "/deposits?format=csv").Header().Get("Content-Disposition")
	}
	same(t, "file name", file("%30x"+a[2:]), file(a))
	key := w.partner(7, "Seven")
	w.deliveries()
	event := func(id string) any {
		return w.get(webhooksPath+"/deliveries/"+id, "x-api-key", key).Data(t)
	}
	const id = "00000000-0000-5000-8000-000000000001"
	same(t, "an event", event("%30"+id[1:]), event(id))
}

// TestMalformedQuery: a query string that cannot be parsed is an error of every request that may have parameters, even
// if its route has none.
func TestMalformedQuery(t *testing.T) {
	withoutDetector(t)
	w := newFixture(t)
	key := w.partner(7, "Seven")
	for _, route := range w.routes() {
		if route.Get == nil {
			continue
		}
		path := strings.NewReplacer("{address}", vaultA.Hex(), "{eventId}", "00000000-0000-5000-8000-000000000001").Replace(
			route.Path)
		for _, query := range []string{"%zz", "x=1;y=2", "page=1&%"} {
			details := w.get(path+"?"+query, "x-api-key", key).Failed(t, 400, "INVALID_PARAMETER")
			same(t, path, details, []any{object{"field": "query",
				"reason": "must be name=value pairs joined by & and percent-encoded"}})
		}
	}
}

func TestTimeRangeFilters(t *testing.T) {
	withoutDetector(t)
	w := newFixture(t)
	total := func(path string) string { return fmt.Sprint(w.get(path).JSON(t)["meta"].(object)["total"]) }
	nav := "/api/v1/vaults/" + vaultA.Hex() + "/nav?" // NAVs at 22:13:56 and 22:15:20 of 2023-11-14, which is 1700000120
	for query, want := range map[string]string{
		"": "2", "from=2023-11-14": "2", "to=2023-11-14": "2", "from=2023-11-15": "0", "to=2023-11-13": "0",
		"from=1700000036": "2", "from=1700000037": "1", "from=1700000036001": "1", "from=1700000036000": "2",
		"to=1700000036": "1", "to=1700000035999": "0",
		"from=1700000037&to=1700000119": "0", "from=2023-11-14T22:15:20Z&to=2023-11-14T22:15:20Z": "1",
		"from=2023-11-14T23:15:20%2B01:00": "1",
	} {
		if got := total(nav + query); got != want {
			t.Errorf("NAVs with %s: %s, should be %s", query, got, want)
		}
	}
	deposits := "/api/v1/users/" + alice.Hex() + "/deposits?" // blocks 5 and 6: 1700000060 and 1700000072
	for query, want := range map[string]string{"": "2", "from=1700000061": "1", "to=1700000060": "1",
		"from=1700000060&to=1700000072": "2", "vault=" + vaultB.Hex(): "1"} {
		if got := total(deposits + query); got != want {
			t.Errorf("deposits with %s: %s, should be %s", query, got, want)
		}
	}
}

func TestLinksAndPages(t *testing.T) {
	w := newFixture(t)
	path := "/api/v1/users?sortBy=totalDeposited&sortOrder=asc&pageSize=1&x=%3E%0A&page="
	var seen []string
	for page := 1; page <= 4; page++ {
		r := w.get(fmt.Sprint(path, page))
		body := r.JSON(t)
		for _, u := range body["data"].([]any) {
			seen = append(seen, u.(object)["totalDeposited"].(string))
		}
		same(t, "meta", body["meta"],
			object{"page": page, "pageSize": 1, "total": 3, "totalPages": 3, "hasNextPage": page < 3})
		link := func(n int, rel string) string {
			// x is unknown
			return fmt.Sprintf(`</api/v1/users?page=%d&pageSize=1&sortBy=totalDeposited&sortOrder=asc>; rel="%s"`, n, rel)
		}
		want := []string{link(1, "first")}
		if page > 1 {
			want = append(want, link(page-1, "prev"))
		}
		if page < 3 {
			want = append(want, link(page+1, "next"))
		}
		if got := r.Header().Get("Link"); got != strings.Join(append(want, link(3, "last")), ", ") {
			t.Errorf("page %d: Link is %s", page, got)
		}
	}
	same(t, "walk", seen, []string{"30", "170", "250"})
}

// TestStatusNamesTheExplorer: /status contains the operator's explorer, because the pages have no separate
// settings.
func TestStatusNamesTheExplorer(t *testing.T) {
	w := newFixture(t, func(c *Config) {
		c.Explorer.Tx, c.Explorer.Block = "https://explorer.example/tx/{tx}", "http://explorer.example/?b={block}"
	})
	explorer := w.get("/status").Data(t).(map[string]any)["explorer"]
	same(t, "the explorer", fmt.Sprint(explorer),
		"map[address:<nil> block:http://explorer.example/?b={block} tx:https://explorer.example/tx/{tx}]")
}

// TestStatusHasTheUptime: /status contains the recorded days, and no others. If they cannot be read, serving
// continues.
func TestStatusHasTheUptime(t *testing.T) {
	w := newFixture(t)
	uptime := func() any {
		t.Helper()
		w.clock.add(time.Minute)
		w.look()
		return w.get("/status").Data(t).(object)["uptime"]
	}
	if got := uptime(); got != nil {
		t.Errorf("without records the uptime is %v", got)
	}
	w.exec(`INSERT INTO uptime (program, day, began_at, running_at, running_ms, working_ms)
		SELECT 'ingest', (now() AT TIME ZONE 'UTC')::date - n, '2020-01-01', '2020-01-01', 86399500, 43200000 FROM unnest(ARRAY[1, 3, 95]) n`)
	check := func() {
		t.Helper()
		got := uptime().(object)
		from, err := time.Parse(time.DateOnly, got["from"].(string))
		if err != nil || from.AddDate(0, 0, 89).Format(time.DateOnly) != got["to"] {
			t.Errorf("from %v to %v (%v)", got["from"], got["to"], err)
		}
		programs := got["programs"].(object)
		if len(programs) != 1 {
			t.Fatalf("programs are %v", programs)
		}
		for field, want := range map[string]string{"recorded": "86400", "running": "86399", "inRole": "43200"} {
			days := programs["ingest"].(object)[field].([]any)
			for day, seconds := range days {
				if recorded := day == 86 || day == 88; recorded && fmt.Sprint(seconds) != want || !recorded && seconds != nil {
					t.Errorf("%s of day %d of %d is %v", field, day, len(days), seconds)
				}
			}
		}
	}
	check()
	w.exec("ALTER TABLE uptime RENAME TO elsewhere")
	check() // the last known values
	if err := w.Ready(); err != nil {
		t.Errorf("not ready: %v", err)
	}
}
