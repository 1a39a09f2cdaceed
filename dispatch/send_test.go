package dispatch

import (
	"compress/gzip"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// Ids computed with Python: uuid5(uuid5(NAMESPACE_URL, "https://navlog.dev/event"),
// "31337:<txHash>:3:<type>:7").
const (
	depositBody = `{"id":"6ecc99bf-ae59-5764-afa7-134e1bc7570a","version":1,"type":"deposit.referral","createdAt":"2023-11-14T22:13:21.000Z","partnerId":7,` +
		`"data":{"vaultAddress":"0x5FbDB2315678afecb367f032d93F642f64180aa3","userAddress":"0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",` +
		`"assets":"1000000","shares":"999","txHash":"0x0000000000000000000000000000000000000000000000000000000000abc001",` +
		`"blockNumber":"1001","logIndex":3,"timestamp":"2023-11-14T22:13:21.000Z"}}`
	withdrawalBody = `{"id":"715c9987-89d6-518c-a89a-e55f824f76da","version":1,"type":"withdrawal.referral","createdAt":"2023-11-14T22:13:22.000Z","partnerId":7,` +
		`"data":{"vaultAddress":"0x5FbDB2315678afecb367f032d93F642f64180aa3","userAddress":"0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",` +
		`"shares":"500","assetsEstimate":"501","requestIndex":"2","txHash":"0x0000000000000000000000000000000000000000000000000000000000abc002",` +
		`"blockNumber":"1002","logIndex":3,"timestamp":"2023-11-14T22:13:22.000Z"}}`
	depositID    = "6ecc99bf-ae59-5764-afa7-134e1bc7570a"
	withdrawalID = "715c9987-89d6-518c-a89a-e55f824f76da"
)

// signed returns the signature that the API document promises, without using navlog's code.
func signed(secret string, c call) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(c.header.Get("X-Service-Timestamp") + "."))
	mac.Write(c.body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

func (f *fixture) verify(c call, secret string) {
	f.Helper()
	if got, want := c.header.Get("X-Service-Signature"), signed(secret, c); got != want {
		f.Errorf("event %s is signed %s, want %s", c.id(), got, want)
	}
	seconds, err := strconv.ParseInt(c.header.Get("X-Service-Timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 300*time.Second {
		f.Errorf("event %s has the timestamp %q", c.id(), c.header.Get("X-Service-Timestamp"))
	}
}

func TestExactRequest(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP1": false, "HTTP2": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			r := f.receiverWith(ok, func(s *httptest.Server) { s.EnableHTTP2 = http2 })
			f.partner(7, r.url)
			f.start(nil)
			f.produce(chainlog.ReferralDeposits(testChain), encode(t, deposit(t, 7, 1)))
			f.produce(chainlog.ReferralWithdrawals(testChain), encode(t, withdrawal(t, 7, 2)))
			f.eventually("both are delivered", f.in(registry.Delivered, 2))

			want := map[string][2]string{
				depositID: {"deposit.referral", depositBody}, withdrawalID: {"withdrawal.referral", withdrawalBody},
			}
			calls := r.got()
			if len(calls) != 2 {
				t.Fatalf("%d requests for 2 events", len(calls))
			}
			for _, c := range calls {
				kind, body := want[c.id()][0], want[c.id()][1]
				if string(c.body) != body {
					t.Errorf("event %s:\n got %s\nwant %s", c.id(), c.body, body)
				}
				f.verify(c, testSecret)
				c.header.Del("Content-Length")
				headers := slices.Sorted(maps.Keys(c.header))
				if !slices.Equal(headers, []string{"Content-Type", "User-Agent",
					"Webhook-Id", "Webhook-Signature", "Webhook-Timestamp",
					"X-Service-Event-Id", "X-Service-Event-Type", "X-Service-Sequence", "X-Service-Signature",
					"X-Service-Timestamp"}) {
					t.Errorf("headers %v", headers)
				}
				if c.header.Get("X-Service-Event-Type") != kind || c.header.Get("Content-Type") != "application/json" ||
					c.header.Get("User-Agent") != "navlog/1" {
					t.Errorf("headers %v", c.header)
				}
				if n := f.number("SELECT sequence FROM delivery WHERE event_id = $1",
					c.id()); c.header.Get("X-Service-Sequence") != strconv.FormatInt(n, 10) {
					t.Errorf("event %d has sequence %q", n, c.header.Get("X-Service-Sequence"))
				}
				if c.path != "/hook?token="+urlToken {
					t.Errorf("path %s", c.path)
				}
			}
		})
	}
}

func TestRetriesUntilAcknowledged(t *testing.T) {
	f := newFixture(t)
	r := f.partner7(func(w http.ResponseWriter, n, _ int) {
		w.WriteHeader([]int{500, 404, 302, 200}[n-1])
		_, _ = w.Write([]byte("answer " + strconv.Itoa(n)))
	})
	f.start(func(d *Dispatch) { d.shared.Timing.Retries[0] = 1100 * time.Millisecond }) // the timestamp has seconds
	f.deposits(7, 1, 2)
	f.eventually("delivered", f.in(registry.Delivered, 1))
	calls := r.got()
	if len(calls) != 4 {
		t.Fatalf("%d requests", len(calls))
	}
	for _, c := range calls {
		f.verify(c, testSecret)
		if c.id() != depositID || string(c.body) != depositBody {
			t.Errorf("id %s, body %s", c.id(), c.body)
		}
	}
	if calls[0].header.Get("X-Service-Timestamp") == calls[1].header.Get("X-Service-Timestamp") {
		t.Error("the retry has the timestamp of the first attempt")
	}
	if calls[0].header.Get("X-Service-Signature") == calls[1].header.Get("X-Service-Signature") {
		t.Error("the retry has the signature of the first attempt")
	}
	if got := f.number(`SELECT count(*) FROM attempt WHERE response = convert_to('answer ' || number, 'UTF8')
		AND status = (ARRAY[500,404,302,200])[number] AND error IS NULL`); got != 4 {
		t.Errorf("%d of 4 attempts are stored correctly", got)
	}
}

func TestFailsAfterFourAttempts(t *testing.T) {
	f := newFixture(t)
	r := f.partner7(status(http.StatusGone))
	d := f.start(nil)
	f.deposits(7, 1, 2)
	f.eventually("failed", f.in(registry.Failed, 1))
	if n := len(r.got()); n != 4 {
		t.Errorf("%d attempts, want 1 and 3 retries", n)
	}
	// A replay starts with all attempts, and sends the same bytes.
	r.script(ok)
	f.replay(7, deliveryID(t))
	f.eventually("replayed", f.in(registry.Delivered, 1))
	if c := r.got()[4]; c.id() != depositID || string(c.body) != depositBody {
		t.Errorf("replayed as %s %s", c.id(), c.body)
	}
	if got := testutil.ToFloat64(d.shared.Metrics.Attempts.WithLabelValues("refused")); got != 4 {
		t.Errorf("the metric counts %v refused attempts", got)
	}
}

// A response that does not come in time, for any reason, is a failure; a body that does not end is not.
func TestHostileBodies(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for bodies that are slow on purpose")
	}
	for name, c := range map[string]struct {
		answer  func(f *fixture, w http.ResponseWriter)
		outcome string
	}{
		"silence":       {func(f *fixture, _ http.ResponseWriter) { <-f.released }, "timeout"},
		"endless body":  {slowBody, "accepted"},
		"flood":         {endlessBody, "accepted"},
		"packed":        {compressedBody, "accepted"},
		"huge headers":  {hugeHeaders, "network"},
		"cut":           {func(*fixture, http.ResponseWriter) { panic(http.ErrAbortHandler) }, "network"},
		"switching":     {switching, "error"},
		"redirect":      {redirect("https://127.0.0.1:1/elsewhere"), "redirect"},
		"bad redirect":  {redirect("https://%zz"), "redirect"},
		"throttled":     {always(http.StatusTooManyRequests), "throttled"},
		"unavailable":   {always(http.StatusServiceUnavailable), "error"},
		"unauthorized":  {always(http.StatusUnauthorized), "refused"},
		"early answers": {earlyHints, "network"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			r := f.partner7(func(w http.ResponseWriter, _, _ int) { c.answer(f, w) })
			deadline := time.Minute
			if c.outcome == "timeout" || name == "endless body" { // these wait for the deadline
				deadline = 3 * time.Second
			}
			d := f.start(func(d *Dispatch) { d.shared.Timing.Retries, d.shared.Timing.Deadline = nil, deadline })
			f.deposits(7, 1, 2)
			end := registry.Failed
			if c.outcome == "accepted" {
				end = registry.Delivered
			}
			f.eventually(end, f.in(end, 1))
			if got := testutil.ToFloat64(d.shared.Metrics.Attempts.WithLabelValues(c.outcome)); got != 1 {
				t.Errorf("%v attempts were %s\n%s", got, c.outcome, f.logged)
			}
			if n := len(r.got()); n != 1 {
				t.Errorf("%d requests on the wire for one attempt", n)
			}
			if kept := f.number("SELECT coalesce(max(octet_length(response)), 0) FROM attempt"); kept > 4096 {
				t.Errorf("%d bytes of the response are kept", kept)
			}
		})
	}
}

func always(code int) func(*fixture, http.ResponseWriter) {
	return func(_ *fixture, w http.ResponseWriter) { w.WriteHeader(code) }
}

func slowBody(f *fixture, w http.ResponseWriter) {
	w.WriteHeader(http.StatusOK)
	for range 3 {
		_, _ = w.Write(make([]byte, 1000))
		w.(http.Flusher).Flush()
	}
	<-f.released
}

// endlessBody never stops writing.
func endlessBody(_ *fixture, w http.ResponseWriter) {
	for chunk := make([]byte, 64<<10); ; {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// compressedBody is small, but 50 MB when decompressed.
func compressedBody(f *fixture, w http.ResponseWriter) {
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	for range 800 {
		_, err := z.Write(make([]byte, 64<<10))
		if err != nil {
			return // the sender has read enough
		}
	}
	_ = z.Close()
}

func switching(f *fixture, w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		f.Error(err)
		return
	}
	defer conn.Close()
	_, _ = conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"))
	<-f.released // the connection stays open
}

func earlyHints(_ *fixture, w http.ResponseWriter) {
	for range 5000 {
		w.Header().Set("Link", strings.Repeat("x", 100))
		w.WriteHeader(http.StatusEarlyHints)
	}
}

// Redirects are never followed, with any code and target: one request, and none to the address in it.
func TestRedirects(t *testing.T) {
	f := newFixture(t)
	elsewhere := f.receiver(ok)
	codes := []int{301, 302, 303, 307, 308}
	targets := []string{
		elsewhere.url, "http://127.0.0.1/", "https://169.254.169.254/latest/meta-data", "/hook", elsewhere.url,
	}
	r := f.partner7(func(w http.ResponseWriter, n, _ int) {
		w.Header().Set("Location", targets[n-1])
		w.WriteHeader(codes[n-1])
	})
	f.start(func(d *Dispatch) { d.shared.Timing.Retries, d.shared.Concurrency = nil, 1 })
	f.deposits(7, 0, len(codes))
	f.eventually("failed", f.in(registry.Failed, len(codes)))
	if here, there := len(r.got()), len(elsewhere.got()); here != len(codes) || there != 0 {
		t.Errorf("%d requests to the receiver and %d to the target", here, there)
	}
	if n := f.number("SELECT count(DISTINCT status) FROM attempt WHERE status BETWEEN 301 AND 308"); n != int64(len(codes)) {
		t.Errorf("%d codes are stored", n)
	}
}

// unusualBody is JSON that hardly any two encoders write in the same way.
const unusualBody = "{\"<&>\":\"\u2028 \U0001F600 \\u0000\",\"n\":9223372036854775808,\"n\":1}"

// unusualDelivery inserts a delivery that was delivered 30 days ago.
func (f *fixture) unusualDelivery(partner int64) uuid.UUID {
	f.Helper()
	id := uuid.New()
	f.exec(`INSERT INTO delivery (event_id, partner_id, sequence, type, body, state, created_at, due_at, finished_at)
		VALUES ($1, $2, 1, 'deposit.referral', $3, 'delivered', now() - interval '30 days',
			now() - interval '30 days', now() - interval '30 days')`, id, partner, []byte(unusualBody))
	f.exec("INSERT INTO stream (partner_id, last_sequence) VALUES ($1, 1)", partner)
	return id
}

// A body is signed byte for byte as it is stored, and a replay long after has a fresh
// signature, within the tolerance, over the same bytes.
func TestSignatureBytesAndClocks(t *testing.T) {
	f := newFixture(t)
	r := f.partner7(ok)
	id := f.unusualDelivery(7)
	f.start(nil)
	f.replay(7, id)
	f.eventually("sent", func() bool { return len(r.got()) == 1 })
	c := r.got()[0]
	f.verify(c, testSecret)
	if string(c.body) != unusualBody {
		t.Errorf("sent %q, stored %q", c.body, unusualBody)
	}
}

func redirect(to string) func(*fixture, http.ResponseWriter) {
	return func(_ *fixture, w http.ResponseWriter) {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
}

// Partners that never respond do not slow down the others: all events of the others arrive before a single attempt to
// the dead ones has ended, and the sockets of the dead ones are bounded. `make bench-dispatch` measures the latency.
func TestOneDeadPartner(t *testing.T) {
	for name, dead := range map[string]int{"one of two": 1, "three of four": 3} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			hole := f.receiver(func(http.ResponseWriter, int, int) { <-f.released })
			healthy := f.receiver(ok)
			for p := range dead {
				f.partner(int64(p+2), hole.url)
			}
			f.partner(1, healthy.url)
			f.start(nil)
			for p := range dead {
				f.deposits(uint32(p+2), 40*p, 40*p+40)
			}
			full := dead * DefaultConfig().PerPartnerConcurrency
			f.eventually("the dead partners have all their sockets", func() bool { return len(hole.got()) == full })
			f.deposits(1, 200, 220)
			f.eventually("the healthy partner has all its events", f.in(registry.Delivered, 20))
			if n := f.number("SELECT count(*) FROM attempt a JOIN delivery d USING (event_id) WHERE d.partner_id > 1"); n != 0 {
				t.Errorf("%d attempts to dead partners had ended by then", n)
			}
			if n := hole.accepted.Load(); n != int64(full) {
				t.Errorf("%d sockets lead to dead partners, not %d", n, full)
			}
			f.release()
		})
	}
}

// query returns the id of a test event before the event exists: the delivery has that id.
func TestTestEvent(t *testing.T) {
	f := newFixture(t)
	r := f.partner7(ok)
	f.start(nil)
	promised := uuid.New()
	_, err := f.queries.CreateCommand(t.Context(), db.CreateCommandParams{PartnerID: 7, Kind: "test", EventID: &promised})
	f.check(err)
	f.eventually("delivered", f.in(registry.Delivered, 1))
	c := r.got()[0]
	f.verify(c, testSecret)
	if c.header.Get("X-Service-Event-Type") != "webhook.test" || c.id() != promised.String() ||
		c.header.Get("X-Service-Sequence") != "" {
		t.Errorf("%s was promised, and the request has the headers %v", promised, c.header)
	}
	at := f.text("SELECT substring(convert_from(body, 'UTF8') FROM '\"createdAt\":\"([^\"]+)\"') FROM delivery")
	if want := `{"id":"` + c.id() + `","version":1,"type":"webhook.test","createdAt":"` + at +
		`","partnerId":7,"data":{}}`; string(c.body) != want {
		t.Errorf("body %s, want %s", c.body, want)
	}
	if f.number("SELECT count(*) FROM delivery WHERE sequence IS NULL AND event_id = $1", promised) != 1 {
		t.Error("a test event has a sequence or another id")
	}
	if f.number("SELECT count(*) FROM command WHERE done_at IS NULL") != 0 {
		t.Error("the command is not done")
	}
}

func TestReplayCommand(t *testing.T) {
	f := newFixture(t)
	r := f.partner7(ok)
	f.partner(8, r.url)
	f.start(nil)
	f.deposits(7, 1, 2)
	f.eventually("delivered", f.in(registry.Delivered, 1))
	f.exec("INSERT INTO command (partner_id, kind, event_id) VALUES (8, 'replay', $1), (7, 'replay', "+
		"gen_random_uuid()), (7, 'replay', NULL), (7, 'replay', $1)", depositID)
	f.eventually("sent again", func() bool { return len(r.got()) == 2 && f.states()[registry.Delivered] == 1 })
	f.eventually("commands done",
		func() bool { return f.number("SELECT count(*) FROM command WHERE done_at IS NULL") == 0 })
	if a, b := r.got()[0], r.got()[1]; a.id() != b.id() || string(a.body) != string(b.body) {
		t.Errorf("replayed as %s %s", b.id(), b.body)
	}
	if f.replays(8, deliveryID(t)) {
		t.Error("another partner's event was replayed")
	}
}
