package access

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/query/serve"
)

// TestClientIP checks which address a request is counted against, given the headers that proxies send. The trusted
// proxies are in 10.0.0.0/8 and fd00::/8.
func TestClientIP(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	const unread = "a trusted proxy names no address"
	for _, c := range []struct {
		remote, want string
		warned       bool
		header       http.Header
	}{
		{"1.2.3.4:5", "1.2.3.4", false, nil},
		{"1.2.3.4:5", "1.2.3.4", false, x("9.9.9.9")}, // not a trusted proxy
		{"10.0.0.1:5", "10.0.0.1", false, nil},
		{"10.0.0.1:5", "9.9.9.9", false, x("9.9.9.9")},
		{"10.0.0.1:5", "9.9.9.9", false, x("6.6.6.6, 9.9.9.9")}, // the entry that the client made up is ignored
		{"10.0.0.1:5", "9.9.9.9", false, x("unknown, garbage, 9.9.9.9")},
		{"10.0.0.1:5", "9.9.9.9", false, x("9.9.9.9, 10.0.0.2")},
		{"10.0.0.1:5", "10.0.0.1", true, x("garbage")},
		{"10.0.0.1:5", "10.0.0.3", false, x("10.0.0.3,10.0.0.2")},
		{"[::ffff:1.2.3.4]:5", "1.2.3.4", false, nil},
		{"[2001:db8:1:2:3:4:5:6]:5", "2001:db8:1:2::", false, nil},
		{"[fd00::1]:5", "2001:db8::", false, x("2001:db8::9")},
		{"[fd00::1%eth0]:5", "2001:db8::", false, x("2001:db8::9")},
		{"garbage", "invalid IP", false, nil},

		// With a port, as Azure's gateways send it, and in other forms.
		{"10.0.0.1:5", "1.2.3.4", false, x("1.2.3.4:5678")},
		{"10.0.0.1:5", "1.2.3.4", false, x("6.6.6.6:1, 1.2.3.4:5678, 10.0.0.2:443")},
		{"10.0.0.1:5", "2001:db8:1:2::", false, x("[2001:db8:1:2::1]:443")},
		{"10.0.0.1:5", "2001:db8:1:2::", false, x("[2001:db8:1:2::1]")},
		{"10.0.0.1:5", "2001:db8:1:2::", false, x(`"[2001:db8:1:2::1]"`)},
		{"10.0.0.1:5", "2001:db8:1:2::", false, x(`"[2001:db8:1:2::1]:443"`)},
		{"10.0.0.1:5", "fe80::", false, x("fe80::1%eth0")},
		{"10.0.0.1:5", "fe80::", false, x("[fe80::1%eth0]:443")},
		{"10.0.0.1:5", "1.2.3.4", false, x("::ffff:1.2.3.4")},
		{"10.0.0.1:5", "1.2.3.4", false, x("[::ffff:1.2.3.4]:80")},
		{"10.0.0.1:5", "1.2.3.4", false, x("  1.2.3.4  ,, ,")},
		{"10.0.0.1:5", "1.2.3.4", false, http.Header{"X-Forwarded-For": {"6.6.6.6", "1.2.3.4", "10.0.0.2"}}},
		{"10.0.0.1:5", "10.0.0.1", true, x("1.2.3.4, unknown")},
		{"10.0.0.1:5", "10.0.0.1", true, x("1.2.3.4, _hidden")},
		{"10.0.0.1:5", "10.0.0.2", true, x("1.2.3.4, _hidden, 10.0.0.2")},
		{"10.0.0.1:5", "10.0.0.1", true, x("[2001:db8::1")},
		{"10.0.0.1:5", "10.0.0.1", true, x("[2001:db8::1]x")},

		// RFC 7239, which is used if there is no X-Forwarded-For.
		{"10.0.0.1:5", "1.2.3.4", false, f("for=1.2.3.4")},
		{"10.0.0.1:5", "1.2.3.4", false, f(`For="1.2.3.4:80";proto=https;by=10.0.0.9`)},
		{"10.0.0.1:5", "2001:db8:1:2::", false, f(`for="[2001:db8:1:2::1]:443"`)},
		{"10.0.0.1:5", "1.2.3.4", false, f(`for=6.6.6.6, for=1.2.3.4;host="a, for=7.7.7.7; b", for=10.0.0.2`)},
		{"10.0.0.1:5", "10.0.0.1", true, f("for=1.2.3.4, for=unknown")},
		{"10.0.0.1:5", "10.0.0.1", true, f("for=1.2.3.4, proto=https")},
		{"10.0.0.1:5", "10.0.0.1", true, f(`for="_hidden"`)},
		{"10.0.0.1:5", "1.2.3.4", false, f(`for=6.6.6.6, for=1.2.3.4;host="\\"`)},
		// A quote that the client leaves open does not hide what the proxy appends.
		{"10.0.0.1:5", "1.2.3.4", false, f(`for=6.6.6.6;x=", for=1.2.3.4`)},
		{"10.0.0.1:5", "1.2.3.4", false, f(`for=6.6.6.6;x="\, for=1.2.3.4;host="a, \"b\\"`)},
		{"10.0.0.1:5", "2001:db8:1:2::", false, f(`for=6.6.6.6;x=", for="[2001:db8:1:2::1]:443"`)},
		{"10.0.0.1:5", "10.0.0.2", true, f(`for=6.6.6.6;x=", for=10.0.0.2`)},
		{"1.2.3.4:5", "1.2.3.4", false, f("for=9.9.9.9")},
		// Forwarded: by the client
		{"10.0.0.1:5", "9.9.9.9", false, http.Header{"Forwarded": {"for=6.6.6.6"}, "X-Forwarded-For": {"9.9.9.9"}}},
	} {
		var log bytes.Buffer
		a := &Access{Proxies: proxies, Log: slog.New(slog.NewTextHandler(&log, nil))}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr, r.Header = c.remote, c.header
		for range 2 {
			if got := a.clientIP(r).String(); got != c.want {
				t.Errorf("%s with %q is %s, should be %s", c.remote, c.header, got, c.want)
			}
		}
		if n := strings.Count(log.String(), unread); n > 1 || n == 1 != c.warned {
			t.Errorf("%s with %q: %d warnings", c.remote, c.header, n)
		}
	}
	a := &Access{Proxies: proxies, ForwardedHeader: Forwarded, Log: slog.New(slog.DiscardHandler)}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr, r.Header = "10.0.0.1:5", http.Header{"Forwarded": {"for=9.9.9.9"}, "X-Forwarded-For": {"6.6.6.6"}}
	if got := a.clientIP(r).String(); got != "9.9.9.9" {
		t.Errorf("behind proxies that set Forwarded, X-Forwarded-For makes a client %s", got)
	}
}

func x(value string) http.Header { return http.Header{"X-Forwarded-For": {value}} }
func f(value string) http.Header { return http.Header{"Forwarded": {value}} }

// TestLimitsOfPrefixes: the /64s of one /48 share a limit because they belong to one customer; the addresses of a /24
// may belong to many customers.
func TestLimitsOfPrefixes(t *testing.T) {
	now := time.Unix(1000, 0)
	granted := func(of func(n int) string) (n int) {
		l := newLimiter[netip.Prefix](maxAddresses, window)
		for i := range 10_000 {
			if takeOf(l, netip.MustParseAddr(of(i)), requestsOf(10), now).ok {
				n++
			}
		}
		return n
	}
	for name, c := range map[string]struct {
		of   func(n int) string
		want int
	}{
		"an address":          {func(int) string { return "198.51.100.7" }, 10},
		"a /24":               {func(n int) string { return fmt.Sprintf("198.51.100.%d", n%256) }, 160},
		"a /56":               {func(n int) string { return fmt.Sprintf("2001:db8:0:%x::", n%256) }, 40},
		"a /48":               {func(n int) string { return fmt.Sprintf("2001:db8:0:%x::", n%65536) }, 160},
		"unrelated addresses": {func(n int) string { return fmt.Sprintf("198.%d.%d.7", 18+n/256%100, n%256) }, 10_000},
		"customers of a /32":  {func(n int) string { return fmt.Sprintf("2001:db8:%x::", n) }, 10_000},
	} {
		if got := granted(c.of); got != c.want {
			t.Errorf("%s was granted %d requests, should be %d", name, got, c.want)
		}
	}
}

// TestProofCallsAreShared: no address, prefix or partner can use up a day's calls, and the public leaves half of them
// to partners.
func TestProofCallsAreShared(t *testing.T) {
	now := time.Unix(1000, 0)
	a := New(nil, 120, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	a.Now = func() time.Time { return now }
	calls := a.ProofCalls(1000)
	made := func(r func(n int) *serve.Request) (n int) {
		for i := range 2000 {
			if calls.Spend(r(i)) == nil {
				n++
			}
		}
		return n
	}
	client := func(of string) *serve.Request { return &serve.Request{Client: netip.MustParseAddr(of)} }
	partner := func(id uint32) *serve.Request { return &serve.Request{Partner: &serve.Partner{ID: id}} }
	for _, c := range []struct {
		who  string
		of   func(n int) *serve.Request
		want int
	}{
		{"an address", func(int) *serve.Request { return client("198.51.100.7") }, 50},
		{"a /48", func(n int) *serve.Request { return client(fmt.Sprintf("2001:db8:0:%x::", n)) }, 100},
		{"a /24", func(n int) *serve.Request { return client(fmt.Sprintf("203.0.113.%d", n%256)) }, 200},
		{"the public", func(n int) *serve.Request { return client(fmt.Sprintf("198.%d.%d.1", 18+n/256, n%256)) }, 150},
		{"a partner", func(int) *serve.Request { return partner(7) }, 250},
		{"all partners", func(n int) *serve.Request { return partner(uint32(100 + n)) }, 250},
	} {
		if got := made(c.of); got != c.want {
			t.Errorf("%s made %d calls, want %d", c.who, got, c.want)
		}
	}
	var f *serve.Failure
	if err := calls.Spend(client("198.51.100.7")); !errors.As(err, &f) || f.Status != 429 || f.Retry != 24*time.Hour ||
		!f.Crowd {
		t.Errorf("another address: %v", err)
	}
	now = now.Add(24 * time.Hour)
	if err := calls.Spend(client("198.51.100.7")); err != nil {
		t.Errorf("a day later: %v", err)
	}
}

// TestLimiterAgainstCount compares the limiter with a brute-force count of each window: however requests are spread,
// a window of one minute grants exactly the limit.
func TestLimiterAgainstCount(t *testing.T) {
	l := newLimiter[string](10, window)
	now := time.Unix(1000, 0)
	const perMinute = 6
	var end time.Time
	used := 0
	for i, pause := range []int{0, 0, 3, 0, 20, 0, 0, 30, 6, 1, 0, 0, 0, 0, 0, 0, 0, 59, 1, 0, 61, 0, 0} {
		now = now.Add(time.Duration(pause) * time.Second)
		if !now.Before(end) {
			end, used = now.Add(time.Minute), 0
		}
		want := quota{ok: used < perMinute, limit: perMinute, reset: end.Sub(now)}
		if want.ok {
			used++
		} else {
			want.retry = want.reset
		}
		want.remaining = perMinute - used
		if got := l.take("k", perMinute, now); got != want {
			t.Fatalf("request %d: %+v, should be %+v", i, got, want)
		}
	}
}

// TestLimiterDropsOldEntries: the limiter drops entries once they are irrelevant, and not earlier.
func TestLimiterDropsOldEntries(t *testing.T) {
	l := newLimiter[string](1000, window)
	now := time.Unix(1000, 0)
	const limit = 2
	for step := range 500 { // each key comes twice in its window, and is rejected once half a minute later
		now = now.Add(time.Second)
		key := fmt.Sprint(step)
		l.take(key, limit, now)
		if q := l.take(key, limit, now); !q.ok || q.remaining != 0 {
			t.Fatalf("%+v", q)
		}
		if old := step - 59; old >= 0 && l.take(fmt.Sprint(old), limit, now).ok {
			t.Fatalf("key %d is dropped before its window ends", old)
		}
		if n := len(l.used.recent) + len(l.used.older); n > 121 {
			t.Fatalf("%d keys are kept, want the %d of a minute", n, 60)
		}
	}
}

// TestLimiterUnderAFlood sends requests with keys that never repeat. The cost of a request must not depend on the
// number of keys remembered: a linear scan would take minutes here.
func TestLimiterUnderAFlood(t *testing.T) {
	l := newLimiter[int](maxAddresses, window)
	now := time.Unix(1000, 0)
	for i := range 10 * maxAddresses {
		if q := l.take(i, 1, now); !q.ok {
			t.Fatalf("%+v", q)
		}
		if n := len(l.used.recent) + len(l.used.older); n > maxAddresses {
			t.Fatalf("%d addresses are kept", n)
		}
	}
	if q := l.take(10*maxAddresses-1, 1, now); q.ok {
		t.Error("the newest address was dropped")
	}
}

// TestWarningAboutUnknownProxy: the warning is logged once and names the setting; a correct setup logs nothing.
func TestWarningAboutUnknownProxy(t *testing.T) {
	var log bytes.Buffer
	a := &Access{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		Log: slog.New(slog.NewTextHandler(&log, nil))}
	ask := func(remote string, header http.Header) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr, r.Header = remote, header
		a.clientIP(r)
	}
	ask("10.0.0.1:5", x("9.9.9.9"))
	ask("172.18.0.1:5", nil)
	if log.Len() > 0 {
		t.Errorf("with correct headers the log has %s", log.String())
	}
	for name, header := range map[string]http.Header{XForwardedFor: x("9.9.9.9"), Forwarded: f("for=9.9.9.9")} {
		log.Reset()
		a.forwarded = sync.Once{}
		for range 3 {
			ask("172.18.0.1:5", header)
		}
		n := strings.Count(log.String(), "http.trustedProxies (NAVLOG_HTTP_TRUSTED_PROXIES)")
		if n != 1 || !strings.Contains(log.String(), "sender=172.18.0.1 header="+name+"\n") {
			t.Errorf("%d warnings about %s: %s", n, name, log.String())
		}
	}
}
