package query

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/query/partner"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/schemas/registry/db"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

const webhooksPath = "/api/v1/partner/webhooks"

func TestRegisterWebhook(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.PartnerRateLimit = 1000 }) // without a snapshot, which webhooks do not need
	key := w.partner(7, "Seven")
	post := func(body, contentType string) reply {
		t.Helper()
		w.clock.add(6 * time.Second) // the limit is ten per minute
		return w.Do("POST", webhooksPath, strings.NewReader(body), "x-api-key", key, "Content-Type", contentType)
	}
	stored := func() string {
		t.Helper()
		p, err := db.New(w.pool).GetPartner(context.Background(), 7)
		if err != nil {
			t.Fatal(err)
		}
		if p.Url == nil {
			return ""
		}
		return *p.Url
	}
	const json = "application/json"

	same(t, "first", post(`{"url":"https://Example.com/Hook","more":[1]}`, json).JSON(t),
		object{"ok": true, "data": object{"webhookUrl": "https://example.com/hook"}})
	same(t, "again", post(`{"url":"https://b.example"}`, "application/json; charset=utf-8").Data(t),
		object{"webhookUrl": "https://b.example"})
	if stored() != "https://b.example" {
		t.Errorf("the stored URL is %q", stored())
	}
	same(t, "current", w.get(webhooksPath, "x-api-key", key).Data(t).(object)["webhookUrl"], "https://b.example")

	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/jsonp"} {
		post(`{"url":"https://c.example"}`, kind).Failed(t, 415, "UNSUPPORTED_MEDIA_TYPE")
	}
	w.clock.add(6 * time.Second)
	w.Do("POST", webhooksPath, strings.NewReader("x"), "x-api-key", key, "Content-Type", json, "Content-Encoding",
		"br").Failed(t, 415, "UNSUPPORTED_MEDIA_TYPE")

	for _, body := range []string{"", "null", "[]", `"https://c.example"`, `{"url":`, `{"url":"https://c.example"} x`,
		`{}`, `{"URL":"https://c.example"}`, `{"url":null}`, `{"url":""}`,
		`{"url":7}`, `{"url":["https://c.example"]}`, "{\"url\":\"https://c.example/\xff\"}"} {
		post(body, json).Failed(t, 400, "INVALID_BODY")
	}
	exact := `{"url":"https://c.example","pad":"` + strings.Repeat("x", (16<<10))
	exact = exact[:(16<<10)-2] + `"}`
	post(exact, json).JSON(t)
	post(exact+" ", json).Failed(t, 413, "PAYLOAD_TOO_LARGE")

	same(t, "refused", post(`{"url":"http://c.example"}`, json).Failed(t, 400, "INVALID_WEBHOOK_URL"),
		object{"reason": "scheme"})
	long := "https://c.example/" + strings.Repeat("é", 2048-18)
	post(`{"url":"`+long+`"}`, json).JSON(t)
	same(t, "too long", post(`{"url":"`+long+`e"}`, json).Failed(t, 400, "INVALID_WEBHOOK_URL"),
		object{"reason": "syntax"})
	if stored() != long {
		t.Errorf("a refused URL changed the stored one")
	}

	w.checkURL = func(context.Context, string) (string, error) { return "", errors.New("no resolver") }
	post(`{"url":"https://c.example"}`, json).Failed(t, 503, "UNAVAILABLE")
	w.exec(`DELETE FROM endpoint`)
	w.checkURL = acceptHTTPS
	post(`{"url":"https://c.example"}`, json).Failed(t, 500, "INTERNAL_ERROR")
	for _, part := range []string{"c.example", "b.example", key} {
		if strings.Contains(w.logged.String(), part) {
			t.Errorf("%s is in the log", part)
		}
	}
}

// TestLongBodies: every POST of the document rejects a body that is too long, also if it does not use a body.
func TestLongBodies(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.PartnerRotation = true })
	key := w.partner(7, "Seven")
	posts := 0
	for path, item := range readtest.TheContract().Doc.Paths.Map() {
		if item.Post == nil {
			continue
		}
		posts++
		w.clock.add(time.Minute) // so that no rate limit applies
		path = strings.Replace(path, "{eventId}", "00000000-0000-5000-8000-000000000001", 1)
		body := strings.NewReader(strings.Repeat(" ", partner.MaxCertificates+1))
		w.Do("POST", path, body, "x-api-key", key, "Content-Type", "application/json").Failed(t, 413, "PAYLOAD_TOO_LARGE")
	}
	if posts < 7 {
		t.Errorf("only %d POSTs are documented", posts)
	}
}

func TestRegisterWebhookWithTheGuard(t *testing.T) {
	g, err := guard.New(guard.Config{})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.checkURL = g.CheckURL
	key := w.partner(7, "Seven")
	for url, reason := range map[string]string{
		"http://8.8.8.8/": "scheme", "https://127.0.0.1/": "forbidden_address", "https://10.1.2.3/": "forbidden_address",
		"https://169.254.169.254/": "forbidden_address",
		"https://[::1]/":           "forbidden_address", "https://a:b@8.8.8.8/": "credentials",
		"https://8.8.8.8:8443/": "port", "https://": "syntax", "::": "syntax",
	} {
		r := w.Do("POST", webhooksPath, strings.NewReader(`{"url":"`+url+`"}`), "x-api-key", key, "Content-Type",
			"application/json")
		same(t, url, r.Failed(t, 400, "INVALID_WEBHOOK_URL"), object{"reason": reason})
	}
	r := w.Do("POST", webhooksPath, strings.NewReader(`{"url":"https://8.8.8.8/hook"}`), "x-api-key", key, "Content-Type",
		"application/json")
	same(t, "public", r.Data(t), object{"webhookUrl": "https://8.8.8.8/hook"})
}

// TestRegistrationRevealsNoInternalNames: a name that does not resolve and one that resolves to a forbidden address
// get the same response, byte for byte; only the operator's log shows the difference.
func TestRegistrationRevealsNoInternalNames(t *testing.T) {
	w := newWorld(t)
	key := w.partner(7, "Seven")
	answers := map[string]bool{}
	for _, reason := range []string{guard.Unresolvable, guard.ForbiddenAddress} {
		w.checkURL = func(context.Context, string) (string, error) { return "", &guard.Refusal{Reason: reason} }
		r := w.Do("POST", webhooksPath, strings.NewReader(`{"url":"https://a.example/"}`), "x-api-key", key, "Content-Type",
			"application/json", "X-Request-Id", "same")
		r.Failed(t, 400, "INVALID_WEBHOOK_URL")
		answers[r.Body.String()] = true
	}
	if len(answers) != 1 {
		t.Errorf("the responses reveal which internal names exist: %v", answers)
	}
	for _, part := range []string{"reason=unresolvable", "reason=forbidden_address", "partner=7"} {
		if !strings.Contains(w.logged.String(), part) {
			t.Errorf("the log lacks %s: %s", part, w.logged)
		}
	}
	if strings.Contains(w.logged.String(), ".example") {
		t.Error("the log has a part of a URL")
	}
}

func TestPostsAreLimited(t *testing.T) {
	w := newWorld(t)
	key := w.partner(7, "Seven")
	post := func() reply {
		return w.Do("POST", webhooksPath, strings.NewReader(`{"url":"https://a.example"}`), "x-api-key", key, "Content-Type",
			"application/json")
	}
	for range 10 {
		post().JSON(t)
	}
	r := post()
	r.Failed(t, 429, "RATE_LIMITED")
	if r.Header().Get("RateLimit-Policy") != `"webhooks";q=10;w=60` || r.Header().Get("Retry-After") != "60" {
		t.Errorf("%v", r.Header())
	}
	w.get(webhooksPath, "x-api-key", key).Data(t)
}

// TestDeliveriesOfAMillisecond: the range from and to the createdAt of a delivery contains it, and ends with its
// millisecond. PostgreSQL has microseconds.
func TestDeliveriesOfAMillisecond(t *testing.T) {
	w := newWorld(t)
	key := w.partner(7, "Seven")
	w.deliveries()
	w.exec(`UPDATE delivery SET created_at = '2024-01-02T00:00:00.123999Z' WHERE partner_id = 7 AND sequence = 2`)
	w.exec(`UPDATE delivery SET created_at = '2024-01-02T00:00:00.124Z' WHERE partner_id = 7 AND sequence = 3`)
	for at, sequence := range map[string]string{"2024-01-02T00:00:00.123Z": "2", "2024-01-02T00:00:00.124Z": "3"} {
		list := w.get(webhooksPath+"/deliveries?from="+at+"&to="+at, "x-api-key", key).Data(t).([]any)
		if len(list) != 1 || fmt.Sprint(list[0].(object)["sequence"]) != sequence || list[0].(object)["createdAt"] != at {
			t.Errorf("from and to %s: %v", at, list)
		}
	}
}

// TestEventsAreTheStoredBytes: signed bytes are served unchanged, without re-encoding.
func TestEventsAreTheStoredBytes(t *testing.T) {
	w := newWorld(t)
	key := w.partner(7, "Seven")
	w.partner(8, "Eight")
	w.deliveries()
	get := func(query string) string {
		return w.get("/api/v1/partner/events"+query, "x-api-key", key).Body.String()
	}
	for query, want := range map[string]string{
		"": `{"ok":true,"data":[` + storedEvent(1) + "," + storedEvent(2) + "," + storedEvent(3) + "," +
			storedEvent(4) + `],"meta":{"next":4,"hasMore":false}}`,
		"?limit=2": `{"ok":true,"data":[` + storedEvent(1) + "," + storedEvent(2) +
			`],"meta":{"next":2,"hasMore":true}}`,
		"?after=2&limit=2": `{"ok":true,"data":[` + storedEvent(3) + "," + storedEvent(4) +
			`],"meta":{"next":4,"hasMore":false}}`,
		"?after=4":  `{"ok":true,"data":[],"meta":{"next":4,"hasMore":false}}`,
		"?after=99": `{"ok":true,"data":[],"meta":{"next":99,"hasMore":false}}`,
	} {
		if got := get(query); got != want+"\n" {
			t.Errorf("%s\n got %s\nwant %s", query, got, want)
		}
	}
	for _, bad := range []string{"after=-1", "after=x", "after=9223372036854775808", "limit=0", "limit=101", "limit=x"} {
		w.get("/api/v1/partner/events?"+bad, "x-api-key", key).Failed(t, 400, "INVALID_PARAMETER")
	}
	w.get("/api/v1/partner/webhooks/deliveries?page=0", "x-api-key", key).Failed(t, 400, "INVALID_PARAMETER")
}

// TestDeliveriesAreBounded: the response is limited, however many attempts there were and however long the URL is.
func TestDeliveriesAreBounded(t *testing.T) {
	w := newWorld(t)
	key := w.partner(7, "Seven")
	w.exec(`INSERT INTO delivery (event_id, partner_id, sequence, type, body, state)
		SELECT ('00000000-0000-5000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 7, n, 'deposit.referral', '{}', 'failed' FROM generate_series(1, 101) n`)
	w.exec(`INSERT INTO attempt (event_id, number, url, endpoint_version, started_at, duration_ms, error)
		SELECT d.event_id, n, 'https://seven.example/' || repeat('x', 2026), 1, now(), 10000, repeat('e', 500) FROM delivery d, generate_series(1, 20) n`)
	r := w.get(webhooksPath+"/deliveries?pageSize=100", "x-api-key", key)
	list := r.Data(t).([]any)
	if n := r.Body.Len(); len(list) != 100 || n > 100*8*(2048+500+200) {
		t.Errorf("%d deliveries in %d bytes", len(list), n)
	}
	for _, d := range list {
		var numbers []string
		for _, a := range d.(object)["attempts"].([]any) {
			numbers = append(numbers, fmt.Sprint(a.(object)["number"]))
		}
		same(t, "attempts", numbers, []string{"13", "14", "15", "16", "17", "18", "19", "20"})
	}
}

// TestFileOfDeliveries: a row for each attempt that the list shows, and one for a delivery without attempts, of the
// caller only, in both formats.
func TestFileOfDeliveries(t *testing.T) {
	w := newWorld(t)
	seven, eight := w.partner(7, "Seven"), w.partner(8, "Eight")
	w.deliveries()
	w.exec(`UPDATE attempt SET error = '=cmd|"1, 2"' WHERE error IS NOT NULL`)
	w.server.FileRows = 8 // so that each delivery is a page
	const path = webhooksPath + "/deliveries"
	lines := []string{
		"eventId,sequence,type,state,createdAt,nextAttemptAt,finishedAt,correctedAt,attempts.number,attempts.url,attempts.startedAt,attempts.durationMs,attempts.status,attempts.error",
		"00000000-0000-5000-8000-000000000004,4,deposit.referral,no_endpoint,2024-01-02T00:00:00.000Z,,,,,,,,,",
		"00000000-0000-5000-8000-000000000003,3,deposit.referral,pending,2024-01-02T00:00:00.000Z,2024-01-03T00:00:00.000Z,,,,,,,,",
		"00000000-0000-5000-8000-000000000002,2,deposit.referral,failed,2024-01-02T00:00:00.000Z,,2024-01-02T00:01:01.000Z,,1,https://seven.example/hook,2024-01-02T00:01:00.250Z,17,500,",
		`00000000-0000-5000-8000-000000000002,2,deposit.referral,failed,2024-01-02T00:00:00.000Z,,2024-01-02T00:01:01.000Z,,2,https://seven.example/hook,2024-01-02T00:02:00.250Z,17,,"'=cmd|""1, 2"""`,
		"00000000-0000-5000-8000-000000000001,1,deposit.referral,delivered,2024-01-02T00:00:00.000Z,,2024-01-02T00:00:01.000Z,2024-01-02T00:05:00.000Z,1,https://seven.example/hook,2024-01-02T00:00:00.250Z,17,200,",
		"00000000-0000-5000-8000-0000000000aa,,webhook.test,parked,2024-01-01T00:00:00.000Z,2024-01-01T00:00:09.000Z,,,,,,,,",
	}
	text := strings.Join(lines, "\r\n") + "\r\n"
	r := w.get(path, "x-api-key", seven, "Accept", "text/csv", "If-None-Match", "*")
	if got := r.Body.String(); r.Code != 200 || got != text {
		t.Errorf("%d\n got %s\nwant %s", r.Code, got, text)
	}
	name := "attachment; filename=\"navlog-partner-webhooks-deliveries-" + w.clock.now().UTC().Format("20060102T150405Z") +
		".csv\""
	if h := r.Header(); h.Get("Content-Disposition") != name || h["Etag"] != nil ||
		h.Get("Cache-Control") != "private, no-cache" {
		t.Errorf("%v, want %s", h, name)
	}
	want, err := csv.NewReader(strings.NewReader(strings.ReplaceAll(text, "'=", "="))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	same(t, "Parquet", readtest.Parquet(t, path, w.get(path+"?format=parquet", "x-api-key", seven).Body.Bytes()), want)
	others := w.get(path+"?format=csv", "x-api-key", eight).Body.String()
	if got := strings.Split(others, "\r\n"); len(got) != 3 || got[0] != lines[0] ||
		!strings.HasPrefix(got[1], "00000000-0000-5000-8000-0000000000ff,1,") {
		t.Errorf("partner 8 has %q", got)
	}
	w.get(path+"?format=csv").Failed(t, 401, "UNAUTHORIZED")
	for _, wrong := range []string{"format=xml", "format=csv&page=1", "format=parquet&pageSize=5"} {
		w.get(path+"?"+wrong, "x-api-key", seven).Failed(t, 400, "INVALID_PARAMETER")
	}
	w.exec(`DELETE FROM delivery WHERE partner_id = 8`)
	if got := w.get(path+"?format=csv", "x-api-key", eight).Body.String(); got != lines[0]+"\r\n" {
		t.Errorf("a partner without deliveries has %q", got)
	}
}

// manyDeliveries creates 300 deliveries of partner 7, many with the same time, every seventh a test event, each with
// an attempt to a long URL. It returns them in the order of the pages.
func (w *world) manyDeliveries(key string) (ids []string) {
	w.t.Helper()
	w.exec(`INSERT INTO delivery (event_id, partner_id, sequence, type, body, state, created_at)
		SELECT md5(n::text)::uuid, 7, CASE WHEN n %% 7 > 0 THEN n END, 'deposit.referral', '{}', 'failed', timestamptz '2024-01-01' + n / 40 * interval '1 microsecond' FROM generate_series(1, 300) n`)
	w.exec(`INSERT INTO attempt (event_id, number, url, endpoint_version, started_at, duration_ms, status)
		SELECT event_id, 1, 'https://seven.example/' || repeat('x', 2000), 1, now(), 10, 500 FROM delivery`)
	for page := 1; page <= 3; page++ {
		for _, d := range w.get(fmt.Sprintf("%s/deliveries?pageSize=100&page=%d", webhooksPath, page), "x-api-key",
			key).Data(w.t).([]any) {
			ids = append(ids, d.(object)["eventId"].(string))
		}
	}
	return ids
}

// interrupted requests a file of deliveries, and calls then once the first rows are sent. ended reports whether the
// file was complete.
func (w *world) interrupted(key string, then func()) (ids []string, ended bool) {
	w.t.Helper()
	r := httptest.NewRequest("GET", webhooksPath+"/deliveries?format=csv", nil)
	r.Header.Set("x-api-key", key)
	rec := httptest.NewRecorder()
	func() {
		defer func() {
			if v := recover(); v != nil && v != http.ErrAbortHandler {
				panic(v)
			} else if v == nil {
				ended = true
			}
		}()
		w.Client.Handler.ServeHTTP(&interruptedWriter{rec, then}, r)
	}()
	for _, line := range strings.Split(strings.TrimSuffix(rec.Body.String(), "\r\n"), "\r\n")[1:] {
		ids = append(ids, strings.SplitN(line, ",", 2)[0])
	}
	return ids, ended
}

type interruptedWriter struct {
	http.ResponseWriter
	then func()
}

func (w *interruptedWriter) Write(b []byte) (int, error) {
	if w.then != nil {
		w.then()
		w.then = nil
	}
	return w.ResponseWriter.Write(b)
}

// TestFileOfDeliveriesIsKeyed: the parts of a file follow each other as the pages do, even if deliveries have the
// same time; deliveries that are attempted, added or deleted meanwhile cause neither duplicates nor gaps.
func TestFileOfDeliveriesIsKeyed(t *testing.T) {
	w := newWorld(t)
	key := w.partner(7, "Seven")
	want := w.manyDeliveries(key)
	if len(want) != 300 {
		t.Fatalf("%d deliveries", len(want))
	}
	for _, rows := range []int{8, 5 * 8, 4000} {
		w.server.FileRows = rows
		got, ended := w.interrupted(key, func() {})
		if !ended || !slices.Equal(got, want) {
			t.Errorf("%d rows at once: complete is %v, %d deliveries\n got %v\nwant %v", rows, ended, len(got), got, want)
		}
	}
	w.server.FileRows = 8
	got, ended := w.interrupted(key, func() {
		w.exec(`INSERT INTO delivery (event_id, partner_id, sequence, type, body, state) SELECT gen_random_uuid(), 7, 300 + n, 'deposit.referral', '{}', 'pending' FROM generate_series(1, 50) n`)
		w.exec(`UPDATE delivery SET state = 'delivered', finished_at = now()`)
		w.exec(`DELETE FROM delivery WHERE event_id = '%s'`, want[250])
	})
	if !ended || !slices.Equal(got, slices.Delete(slices.Clone(want), 250, 251)) {
		t.Errorf("while deliveries continue: complete is %v, %d deliveries\n got %v\nwant %v", ended, len(got), got, want)
	}
}

// TestFileOfDeliveriesCutOff: if PostgreSQL fails, a file that has begun is cut off, and one that has not is 503.
func TestFileOfDeliveriesCutOff(t *testing.T) {
	w := newWorld(t)
	key := w.partner(7, "Seven")
	w.manyDeliveries(key)
	w.server.FileRows = 8
	got, ended := w.interrupted(key, func() { w.exec(`ALTER TABLE attempt RENAME TO gone`) })
	if ended || len(got) == 0 || len(got) >= 300 {
		t.Errorf("complete is %v, with %d deliveries", ended, len(got))
	}
	w.get(webhooksPath+"/deliveries?format=csv", "x-api-key", key).Failed(t, 503, "UNAVAILABLE")
}

func TestWebhookOfANewPartner(t *testing.T) {
	w := newWorld(t)
	key := w.partner(7, "Seven")
	got := w.get(webhooksPath, "x-api-key", key).Data(t).(object)
	delete(got, "updatedAt")
	same(t, "webhook", got, object{"webhookUrl": nil, "parked": false,
		"breaker": object{"state": "closed", "openUntil": nil}, "lastSuccessAt": nil, "lastFailureAt": nil, "rotation": false})
	same(t, "deliveries", w.get(webhooksPath+"/deliveries", "x-api-key", key).Data(t), []any{})
	w.exec(`UPDATE endpoint SET held = true WHERE partner_id = 7`)
	same(t, "parked by an operator", w.get(webhooksPath, "x-api-key", key).Data(t).(object)["parked"], true)
}

// TestEndpointHealth: a partner sees the days of its own endpoint, up to the requested day.
func TestEndpointHealth(t *testing.T) {
	w := newWorld(t)
	seven, eight := w.partner(7, "Seven"), w.partner(8, "Eight")
	w.deliveries()
	const path = webhooksPath + "/health"
	busy := func(path, key string) (days []string) {
		t.Helper()
		data := w.get(path, "x-api-key", key).Data(t).(object)
		all := data["days"].([]any)
		if len(all) != 30 || all[0].(object)["day"] != data["from"] || all[29].(object)["day"] != data["to"] {
			t.Errorf("%s: %d days from %v to %v", path, len(all), data["from"], data["to"])
		}
		for _, day := range all {
			if day := day.(object); fmt.Sprint(day["attempts"]) != "0" {
				days = append(days, fmt.Sprintf("%v %v %v %v", day["day"], day["attempts"], day["failed"], day["medianMs"]))
			}
		}
		return days
	}
	for _, to := range []string{"2024-01-02", "2024-01-31", "2024-01-02T00:00:00Z", "1704240000"} {
		same(t, to, fmt.Sprint(busy(path+"?to="+to, seven)), "[2024-01-02 3 2 17]")
	}
	for _, to := range []string{"2024-01-01", "2024-02-01"} {
		same(t, to, len(busy(path+"?to="+to, seven)), 0)
	}
	same(t, "of another partner", len(busy(path+"?to=2024-01-02", eight)), 0)
	same(t, "today", len(busy(path, seven)), 0)
	for _, to := range []string{"yesterday", "1969-12-31", "9999-12-31T23:59:59-23:59"} {
		w.get(path+"?to="+to, "x-api-key", seven).Failed(t, 400, "INVALID_PARAMETER")
	}
	w.get(path).Failed(t, 401, "UNAUTHORIZED")
}
