package contracts_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/rpc"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/printable"
)

func TestEndpointName(t *testing.T) {
	for raw, want := range map[string]string{
		"https://user:hunter2@node.example:8545/v3/key?apikey=key": "https://node.example:8545",
		"wss://node.example/key":                                   "wss://node.example",
		"key":                                                      "(no URL)",
		"http://node example/key\x00":                              "(no URL)",
	} {
		if got := contracts.EndpointName(raw); got != want {
			t.Errorf("%q is shown as %q, want %q", raw, got, want)
		}
	}
}

// A node's response is limited in size. A redirect is an error, and its target gets no request, which would contain the
// key.
func TestNodeClient(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the target of the redirect got a request with the headers %v", r.Header)
	}))
	t.Cleanup(other.Close)
	redirect := http.RedirectHandler(other.URL, http.StatusTemporaryRedirect)
	endless := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"id":1,"result":"`))
		for {
			if _, err := w.Write(bytes.Repeat([]byte("0"), 1<<20)); err != nil {
				return // the client has closed the connection
			}
		}
	})
	for want, handler := range map[string]http.Handler{
		"307 Temporary Redirect": redirect, "the response has more than 32 MiB": endless,
	} {
		node := httptest.NewServer(handler)
		t.Cleanup(node.Close)
		client, err := rpc.DialOptions(t.Context(), node.URL+"/v3/secretkey",
			rpc.WithHTTPClient(contracts.NodeClient(http.DefaultTransport)))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		err = contracts.Discreet(client.CallContext(t.Context(), nil, "eth_chainId"), node.URL+"/v3/secretkey")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the call gives %v, want %q", err, want)
		}
	}
}

// No error contains a part of a URL that may be a key, whatever its source, and the error is otherwise unchanged.
func TestDiscreet(t *testing.T) {
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "Cannot POST "+r.URL.RequestURI()+"\nof "+r.Header.Get("Authorization")+" "+
			r.URL.Query().Get("apikey")+strings.Repeat("x", 500), http.StatusNotFound)
	}))
	t.Cleanup(echo.Close)
	closed := httptest.NewServer(nil)
	closed.Close()
	for name, server := range map[string]*httptest.Server{"closed": closed, "echoing": echo} {
		host := strings.TrimPrefix(server.URL, "http://")
		for _, raw := range []string{
			"http://someone:hunter2@" + host + "/v3/secretkey", "http://" + host + "/v3/secretkey?apikey=secret+key%2F2",
			"ws://" + host + "/secretkey?apikey=secretkey",
			"http://someone:hunter2%zz@" + host, "http://" + host + ":secretkey/",
		} {
			client, err := rpc.DialContext(t.Context(), raw)
			if err == nil {
				err = client.CallContext(t.Context(), nil, "eth_chainId")
				client.Close()
			}
			if err == nil {
				t.Fatalf("%s responds successfully", raw)
			}
			text := contracts.Discreet(fmt.Errorf("request: %w", err), raw).Error()
			for _, secret := range []string{"someone", "hunter2", "secret", "key/2"} {
				if strings.Contains(text, secret) {
					t.Errorf("%s: the error about %s contains %q: %s", name, raw, secret, text)
				}
			}
			if len(text) > 400 {
				t.Errorf("%s: the error has %d bytes: %s", name, len(text), text)
			}
		}
	}

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	client, err := rpc.DialContext(t.Context(), echo.URL+"/secretkey")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	err = contracts.Discreet(client.CallContext(cancelled, nil, "eth_chainId"), echo.URL+"/secretkey")
	var inURL *url.Error
	if !errors.Is(err, context.Canceled) || !errors.As(err, &inURL) {
		t.Errorf("the error has changed: %v", err)
	}
	plain := errors.New("no funds")
	if got := contracts.Discreet(plain, echo.URL); got != plain {
		t.Errorf("an error with nothing to hide is %#v", got)
	}
	if contracts.Discreet(nil, echo.URL) != nil {
		t.Error("nil becomes an error")
	}
}

// A server may repeat a key in any form in which it got it, and a quotation of its response may end within the key.
func TestDiscreetHidesKeys(t *testing.T) {
	const key = "0123456789abcdef0123456789abcdef"
	for _, c := range []struct{ url, text, want string }{
		{"https://node.example/v3/" + key, "HTTP 404: no route to /v3/" + key[:31], "HTTP 404: no route to (hidden)"},
		{"https://node.example/v3/" + key, "unknown key " + key[:12] + "…", "unknown key (hidden)…"},
		{"https://node.example/v3/" + key, key[:12] + " and " + key + " and " + key[:20],
			"(hidden) and (hidden) and (hidden)"},
		{"https://node.example/?apikey=" + key, "no such key: " + key[:20], "no such key: (hidden)"},
		{"https://node.example/?" + key, "no such key: " + key, "no such key: (hidden)"},
		{"https://node.example/?" + key + "&v=3", "no such key: " + key, "no such key: (hidden)"},
		{"https://someone:hunter2@node.example", "not allowed: Basic c29tZW9uZTpodW50ZXIy", "not allowed: Basic (hidden)"},
		{"https://node.example/v3/secretkey", "secrets are secretkeys", "secrets are (hidden)s"},
		{"https://node.example", "no funds: Og==", "no funds: Og=="},
	} {
		if got := contracts.Discreet(errors.New(c.text), c.url).Error(); got != c.want {
			t.Errorf("%q about %s is shown as %q, want %q", c.text, c.url, got, c.want)
		}
	}
}

// A node's text is stored and shown: it is made printable and bounded, and the error is otherwise unchanged.
func TestDiscreetIsPrintable(t *testing.T) {
	cause := errors.New("HTTP 500: page\x00with\x1b[2J\xff a NUL \u202e" + strings.Repeat("\x00", 1<<20))
	err := contracts.Discreet(fmt.Errorf("eth_chainId: %w", cause), "https://node.example/v3/secretkey")
	if text := err.Error(); !strings.HasPrefix(text,
		"eth_chainId: HTTP 500: page\ufffdwith\ufffd[2J\ufffd a NUL \ufffd") || len(text) > printable.Message ||
		!errors.Is(err, cause) {
		t.Errorf("%.100q", text)
	}
}
