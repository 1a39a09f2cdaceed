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

// TestLimiterAgainstCount compares the limiter with windows that are counted out, request
// by request: whenever they come, one of a minute grants the limit and no more.
func TestLimiterAgainstCount(t *testing.T) {
	l := newLimiter[string](10)
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

// TestLimiterForgets what says nothing any more, and nothing sooner.
func TestLimiterForgets(t *testing.T) {
	l := newLimiter[string](1000)
	now := time.Unix(1000, 0)
	const limit = 2
	for step := range 500 { // each key twice in its window, and once refused half a minute later
		now = now.Add(time.Second)
		key := fmt.Sprint(step)
		l.take(key, limit, now)
		if q := l.take(key, limit, now); !q.ok || q.remaining != 0 {
			t.Fatalf("%+v", q)
		}
		if old := step - 59; old >= 0 && l.take(fmt.Sprint(old), limit, now).ok {
			t.Fatalf("key %d is forgotten before its window ends", old)
		}
		if n := len(l.recent) + len(l.older); n > 121 {
			t.Fatalf("%d keys are remembered of the %d of a minute", n, 60)
		}
	}
}

// TestLimiterUnderAFlood of addresses none of which comes twice: a request costs the same
// however many are remembered, or this would not end. A thousand times a hundred thousand
// looks took minutes.
func TestLimiterUnderAFlood(t *testing.T) {
	l := newLimiter[int](maxAddresses)
	now := time.Unix(1000, 0)
	for i := range 10 * maxAddresses {
		if q := l.take(i, 1, now); !q.ok {
			t.Fatalf("%+v", q)
		}
		if n := len(l.recent) + len(l.older); n > maxAddresses {
			t.Fatalf("%d addresses are remembered", n)
		}
	}
	if q := l.take(10*maxAddresses-1, 1, now); q.ok {
		t.Error("the newest address is forgotten")
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
