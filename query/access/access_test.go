package access

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestClientIP(t *testing.T) {
	a := &Access{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}, Log: slog.New(slog.DiscardHandler)}
	for _, c := range []struct{ remote, forwarded, want string }{
		{"1.2.3.4:5", "", "1.2.3.4"},
		{"1.2.3.4:5", "9.9.9.9", "1.2.3.4"}, // not a proxy of ours
		{"10.0.0.1:5", "", "10.0.0.1"},
		{"10.0.0.1:5", "9.9.9.9", "9.9.9.9"},
		{"10.0.0.1:5", "6.6.6.6, 9.9.9.9", "9.9.9.9"}, // what the client made up counts not
		{"10.0.0.1:5", "9.9.9.9, 10.0.0.2", "9.9.9.9"},
		{"10.0.0.1:5", "garbage", "10.0.0.1"},
		{"10.0.0.1:5", "10.0.0.3,10.0.0.2", "10.0.0.3"},
		{"[::ffff:1.2.3.4]:5", "", "1.2.3.4"},
		{"[2001:db8:1:2:3:4:5:6]:5", "", "2001:db8:1:2::"},
		{"[fd00::1]:5", "2001:db8::9", "2001:db8::"},
		{"garbage", "", "invalid IP"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = c.remote
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		if got := a.clientIP(r).String(); got != c.want {
			t.Errorf("%s with %q is %s, should be %s", c.remote, c.forwarded, got, c.want)
		}
	}
}

// TestLimiterAgainstBucket compares the limiter with a leaky bucket that is
// counted out, request by request.
func TestLimiterAgainstBucket(t *testing.T) {
	l := newLimiter[string](10)
	now := time.Unix(1000, 0)
	const perMinute = 6 // one every 10 s
	level, last := time.Duration(0), now
	for i, pause := range []int{0, 0, 0, 0, 0, 0, 0, 3, 7, 0, 10, 25, 0, 0, 0, 61, 0, 0, 0, 0, 0, 0, 0, 9, 1} {
		now = now.Add(time.Duration(pause) * time.Second)
		level = max(0, level-now.Sub(last))
		last = now
		ok := level+10*time.Second <= time.Minute
		if ok {
			level += 10 * time.Second
		}
		got := l.take("k", perMinute, now)
		if got.ok != ok || got.remaining != int((time.Minute-level)/(10*time.Second)) || got.reset != level || got.limit != perMinute {
			t.Fatalf("request %d: %+v, should be ok %v with level %s", i, got, ok, level)
		}
		if !ok && (got.retry <= 0 || !l.look("k", perMinute, now.Add(got.retry)).ok || l.look("k", perMinute, now.Add(got.retry-1)).ok) {
			t.Fatalf("request %d: retry %s is not when the next one is granted", i, got.retry)
		}
	}
	for i := range 100 {
		l.take(fmt.Sprint(i), perMinute, now)
	}
	if len(l.full) > 10 {
		t.Errorf("%d keys remembered, should be 10 at most", len(l.full))
	}
	if q := l.take("odd", 7, now); !q.ok || q.remaining != 6 {
		t.Errorf("%+v", q)
	}
}

// TestStrangersProxyIsWarnedOf: once, by the name of the setting, and not where it is right.
func TestStrangersProxyIsWarnedOf(t *testing.T) {
	var log bytes.Buffer
	a := &Access{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Log: slog.New(slog.NewTextHandler(&log, nil))}
	ask := func(remote, forwarded string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = remote
		if forwarded != "" {
			r.Header.Set("X-Forwarded-For", forwarded)
		}
		a.clientIP(r)
	}
	ask("10.0.0.1:5", "9.9.9.9")
	ask("172.18.0.1:5", "")
	if log.Len() > 0 {
		t.Errorf("nothing is wrong, and logged is %s", log.String())
	}
	for range 3 {
		ask("172.18.0.1:5", "9.9.9.9")
	}
	if n := strings.Count(log.String(), "http.trustedProxies (NAVLOG_HTTP_TRUSTED_PROXIES)"); n != 1 || !strings.Contains(log.String(), "sender=172.18.0.1") {
		t.Errorf("warned %d times: %s", n, log.String())
	}
}
