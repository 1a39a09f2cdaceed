package rpc

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// No error and no status contains the key in a URL, even if the server repeats the path.
func TestErrorsKeepURLsSecret(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "Cannot POST "+r.URL.RequestURI(), http.StatusNotFound)
	}))
	t.Cleanup(echo.Close)
	for _, server := range []string{closed.URL, echo.URL} {
		for _, scheme := range []string{"http", "ws"} {
			u, err := url.Parse(server)
			if err != nil {
				t.Fatal(err)
			}
			u.Scheme, u.User, u.Path, u.RawQuery = scheme, url.UserPassword("someone", "hunter2"), "/v3/secretkey",
				"apikey=secret2"
			n := noPool(wallClock).newNode(Endpoint{URL: u.String()}, scheme+"://"+u.Host)
			_, err = n.chainID(t.Context())
			n.close()
			if err == nil {
				t.Fatalf("%s responds", u)
			}
			for _, secret := range []string{"hunter2", "secret", "someone"} {
				if text := err.Error() + n.health.status("").LastError; strings.Contains(text, secret) {
					t.Errorf("the error or the status of %s holds %q: %s", u, secret, text)
				}
			}
		}
	}
}

func TestBackoffGrows(t *testing.T) {
	b := new(Backoff)
	for range 20 {
		if b.next > lastPause {
			t.Fatalf("the pause is %s", b.next)
		}
		done, cancel := contextDone(t)
		_ = b.Sleep(done)
		cancel()
	}
	if b.next != lastPause {
		t.Errorf("after 20 failures the pause is %s, want %s", b.next, lastPause)
	}
	if b.Reset(); b.next != 0 {
		t.Errorf("after success the pause is %s, want %s", b.next, firstPause)
	}
}
