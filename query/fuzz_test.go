package query

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/schemas/registry/db"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

// For any input the response is a defined one: never a 5xx, never a panic, and always valid by the OpenAPI document.
// `make fuzz` searches for counterexamples.

// fuzzed parses raw bytes as net/http does and serves the request. What net/http rejects never reaches the handler.
func (w *world) fuzzed(t *testing.T, raw string) {
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
	if err != nil {
		return
	}
	r.RemoteAddr = "192.0.2.1:1234"
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		body = nil
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	w.clock.add(time.Minute) // so that no rate limit applies
	rec := httptest.NewRecorder()
	w.Client.Handler.ServeHTTP(rec, r)
	if rec.Code >= 500 || rec.Code < 200 {
		t.Fatalf("%q: %d %s", raw, rec.Code, rec.Body)
	}
	if rec.Code >= 400 {
		reply{ResponseRecorder: rec, Path: r.URL.String()}.Failed(t, rec.Code,
			readtest.Decode(t, rec.Body.Bytes())["error"].(object)["code"].(string))
	}
	if r.Method != http.MethodConnect { // the target of CONNECT is not a path
		readtest.TheContract().Judge(t, r, body, rec)
	}
}

// line keeps the characters that a client can send in one line of a header.
func line(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f || r == utf8.RuneError {
			return -1
		}
		return r
	}, s)
}

func FuzzPath(f *testing.F) {
	w := newFixture(f)
	w.server.EndLive() // live responses end at once
	key := w.partner(7, "Seven")
	for _, e := range w.routes() {
		f.Add("GET", strings.Replace(e.Path, "{address}", vaultA.Hex(), 1))
		f.Add("POST", strings.Replace(e.Path, "{eventId}", "00000000-0000-5000-8000-000000000001", 1))
	}
	for _, path := range []string{"/", "*", "//", "/%", "/%2f", "/api/v1/users/%00", "/api/v1/users/%E2%82%AC",
		"/api/v1/vaults/..", "/api/v1/vaults/0x" + strings.Repeat("f", 9999),
		"/api/v1/users/a%2Fb/deposits", "http://other.example/api/v1/vaults", "/docs/../api/v1/vaults", "/api/v1/vaults?",
		"/api/v1/vaults#x", "/API/V1/VAULTS", "/healthz/", "/api/v1/partner/webhooks/deliveries/%FF/replay"} {
		f.Add("GET", path)
		f.Add("OPTIONS", path)
	}
	f.Fuzz(func(t *testing.T, method, path string) {
		w.fuzzed(t, method+" "+path+" HTTP/1.1\r\nHost: navlog\r\nx-api-key: "+key+"\r\n\r\n")
	})
}

func FuzzQuery(f *testing.F) {
	w := newFixture(f)
	key := w.partner(7, "Seven")
	paths := []string{"/api/v1/vaults/" + vaultA.Hex() + "/nav", "/api/v1/users",
		"/api/v1/users/" + alice.Hex() + "/deposits", "/api/v1/users/" + alice.Hex() + "/withdrawals",
		"/api/v1/queues/withdrawals", "/api/v1/queues/deposits", "/api/v1/partner/webhooks/deliveries",
		"/api/v1/partner/events", "/api/v1/partner/stats", "/api/v1/explain", "/api/v1/events", "/api/v1/reorganisations",
		"/api/v1/block", "/api/v1/vaults/" + vaultA.Hex() + "/series", "/api/v1/vaults/" + vaultA.Hex() + "/funding",
		"/api/v1/vaults/" + vaultA.Hex() + "/deposits", "/api/v1/vaults/" + vaultA.Hex() + "/withdrawals",
		"/api/v1/vaults/" + vaultA.Hex() + "/users", "/api/v1/partner/webhooks/health"}
	for _, name := range []string{"page", "pageSize", "vault", "from", "to", "sortBy", "sortOrder", "status", "asOfBlock",
		"after", "limit", ""} {
		for _, value := range []string{"", "1", "-1", "9223372036854775808", "99999999999999999999999999", "0x1", "1e9",
			"NaN", "null", "%00", "%zz", "'; DROP TABLE users", "2023-11-14", "9999-12-31",
			"2023-11-14T22:15:20Z", "9999999999999", "queued", "asc", "{seq:UInt64}", "\u0661", "a&" + name + "=2", "a;b",
			strings.Repeat("9", 5000)} {
			f.Add(uint8(len(name)), name+"="+value)
		}
	}
	const explain = 9 // of paths
	for _, of := range paths {
		for _, field := range []string{"/totalDeposited", "/0/count", "/meta/total", "/totalVolume",
			"/0/depositsToSweep/count", "/holdings/deposits/" + vaultA.Hex() + "/_count", "/~0", "", "//", "/-1/count"} {
			f.Add(uint8(explain), "of="+of+"&field="+field+"&retracted=true")
			f.Add(uint8(explain), "of="+of+"%3Fvault%3D"+vaultA.Hex()+"&field="+field)
		}
	}
	for which := explain + 1; which < len(paths); which++ {
		for _, query := range []string{"before=_____________wEAAA", "kind=A,B&retracted=true", "width=9223372036854775807",
			"time=0000-01-01", "interval=week&from=0000-01-01&to=9999-12-31T23:59:59-14:00", "asOfBlock=00011&format=csv",
			"from=2023-11-14T22:13:20.5Z&to=1969-12-31", "vault=0x0000000000000000000000000000000000000000",
			"tx=0x" + strings.Repeat("0", 64), "sortBy=totalDeposited&asOfBlock=7&page=99999"} {
			f.Add(uint8(which), query)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, query string) {
		query = strings.ReplaceAll(line(query), " ", "%20")
		w.fuzzed(t, "GET "+paths[int(which)%len(paths)]+"?"+query+" HTTP/1.1\r\nHost: navlog\r\nx-api-key: "+key+"\r\n\r\n")
	})
}

func FuzzHeaders(f *testing.F) {
	w := newFixture(f, func(c *Config) { c.PublicRateLimit, c.TrustedProxies = 600, []string{"192.0.2.0/24"} })
	for _, name := range []string{"x-api-key", "X-Request-Id", "If-None-Match", "Accept-Encoding", "X-Forwarded-For",
		"Content-Type", "Content-Length", "Transfer-Encoding", "Range", "If-Modified-Since", "Expect", "Origin",
		"Connection"} {
		for _, value := range []string{"", "x", "*", `W/"a", "b`, ",,,,", "gzip;q=0, *", "gzip;q=9e9",
			"1.2.3.4, ::1, [::1]:1", "fe80::1%eth0", "-1", "chunked", "bytes=0-1", "nk_test_" + strings.Repeat("0", 38),
			strings.Repeat("a,", 5000)} {
			f.Add(name, value)
		}
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		for _, path := range []string{"/api/v1/vaults", "/api/v1/partner/router", "/status", "/openapi.json"} {
			w.fuzzed(t, "GET "+path+" HTTP/1.1\r\nHost: navlog\r\n"+line(name)+": "+line(value)+"\r\n\r\n")
		}
	})
}

func FuzzBody(f *testing.F) {
	w := newFixture(f)
	g, err := guard.New(guard.Config{Resolver: &net.Resolver{PreferGo: true,
		Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.DNSError{IsNotFound: true} // the fuzzer does not use a name server
		}}})
	if err != nil {
		f.Fatal(err)
	}
	w.checkURL = g.CheckURL
	key := w.partner(7, "Seven")
	for _, body := range []string{"", "{}", "[]", "null", "1", `"x"`, `{"url":"https://a.example/"}`,
		`{"url":"https://8.8.8.8/?\u20ac"}`, `{"url":null}`, `{"url":1}`, `{"url":{}}`,
		`{"url":"` + strings.Repeat("x", 3000) + `"}`, `{"url":"https://a.example/","url":"x"}`,
		`{"url":"\ud800"}`, "{\"url\":\"\xff\"}", "\xef\xbb\xbf{}", strings.Repeat("[", 10000),
		strings.Repeat(`{"url":`, 2000), `{"url":"https://a.example/"}{}`, strings.Repeat(" ", 20000),
		`{"url":"https://[::1/"}`, "{\"url\":\"https://a.example/\\u0000\"}"} {
		f.Add("application/json", body)
		f.Add("application/json; charset=\"", body)
	}
	f.Fuzz(func(t *testing.T, kind, body string) {
		w.t, w.T = t, t
		rec := w.Do("POST", webhooksPath, strings.NewReader(body), "x-api-key", key, "Content-Type", line(kind))
		w.clock.add(time.Minute)
		if rec.Code >= 500 {
			t.Fatalf("%q: %d %s", body, rec.Code, rec.Body)
		}
		stored, err := db.New(w.pool).GetPartner(t.Context(), 7)
		if err != nil {
			t.Fatal(err)
		}
		if stored.Url != nil && (!strings.HasPrefix(*stored.Url, "https://") || len(*stored.Url) > 2048) {
			t.Fatalf("%q was stored", *stored.Url)
		}
	})
}
