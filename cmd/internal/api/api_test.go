package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/navlog/navlog/cmd/internal/api"
	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/schemas/client"
)

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func dial(t *testing.T, c api.Config) *client.Client {
	t.Helper()
	public, err := api.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return public
}

const vaults = `{"ok":true,"data":[{"address":"0xA1","totalAssets":"115792089237316195423570985008687907853269984665640564039457584007913129639935","totalSupply":null}]}`

// A request carries a user agent and the key, works below any path prefix, and every digit of an amount arrives.
func TestRead(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.String() != "/behind/api/v1/vaults?asOfBlock=9" || r.Header.Get("x-api-key") != "nk_test_key" ||
			!strings.HasPrefix(r.UserAgent(), "navlog/") {
			t.Errorf("requested %s with %v", r.URL, r.Header)
		}
		w.Header().Set("X-Indexed-Block", "9")
		fmt.Fprint(w, vaults)
	})
	public := dial(t, api.Config{URL: address + "/behind", Key: "nk_test_key"})
	answer, err := api.Read[[]client.Vault](public.Get(t.Context(), "/api/v1/vaults", url.Values{"asOfBlock": {"9"}}))
	if err != nil || answer.Header.Get("X-Indexed-Block") != "9" || len(answer.Data) != 1 {
		t.Fatalf("%+v, %v", answer, err)
	}
	if v := answer.Data[0]; len(*v.TotalAssets) != 78 || v.TotalSupply != nil {
		t.Errorf("the vault is %+v", v)
	}
}

// Numbers without a declared type do not become floats.
func TestReadKeepsNumbers(t *testing.T) {
	public := dial(t, api.Config{URL: serve(t,
		func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":9007199254740993}`) })})
	answer, err := api.Read[any](public.Get(t.Context(), "/status", nil))
	if err != nil || answer.Data != json.Number("9007199254740993") {
		t.Errorf("%+v, %v", answer, err)
	}
}

// Every failure is reported in one sentence and with the right exit code.
func TestErrorResponses(t *testing.T) {
	var status int
	var body string
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if status == http.StatusMovedPermanently {
			w.Header().Set("Location", "https://navlog.example/status")
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	})
	public := dial(t, api.Config{URL: address, MaxBytes: 100})
	const errorBody = `{"ok":false,"error":{"code":"X","message":"Invalid.","requestId":"1"%s}}`
	for _, c := range []struct {
		status  int
		body    string
		code    cli.Code
		message string
	}{
		{400, fmt.Sprintf(errorBody, `,"details":[{"field":"to"}]`), cli.Usage,
			address + `/status responded with 400: Invalid. [{"field":"to"}]`},
		{401, fmt.Sprintf(errorBody, ""), cli.Configuration, address + "/status responded with 401: Invalid."},
		{403, fmt.Sprintf(errorBody, ""), cli.Configuration, "responded with 403: Invalid."},
		{404, fmt.Sprintf(errorBody, ""), cli.Failed, "responded with 404: Invalid."},
		{503, fmt.Sprintf(errorBody, ""), cli.Unreachable, "responded with 503: Invalid."},
		{502, "<html>", cli.Unreachable,
			"responded with 502: is that the API of navlog? If it is, navlog is not running, or the proxy in front of it cannot reach it"},
		{503, "down for maintenance", cli.Unreachable, "responded with 503: is that the API of navlog?"},
		{500, "<html>", cli.Failed, "responded with 500: is that the API of navlog?"},
		{200, "<html>", cli.Failed, "did not send a response of navlog"},
		{200, strings.Repeat(" ", 101), cli.Failed, "sent more than 100 bytes"},
		{301, "", cli.Usage, "has moved to https://navlog.example/status: use that address as --url"},
	} {
		status, body = c.status, c.body
		_, err := api.Read[client.Status](public.Get(t.Context(), "/status", nil))
		if cli.CodeOf(err) != c.code || !strings.Contains(fmt.Sprint(err), c.message) ||
			strings.HasSuffix(fmt.Sprint(err), " ") {
			t.Errorf("response %d %q: exit code %d: %v", c.status, c.body, cli.CodeOf(err), err)
		}
	}
	for _, address := range []string{"navlog.example", "ftp://navlog.example", "http://", "http://%"} {
		if _, err := api.New(api.Config{URL: address}); cli.CodeOf(err) != cli.Usage {
			t.Errorf("--url %s: %v", address, err)
		}
	}
}

// The key is sent to the given address only, never to the target of a redirect.
func TestKeyIsNotSentToRedirectTarget(t *testing.T) {
	target := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the redirect's target got the headers %v", r.Header)
	})
	public := dial(t, api.Config{Key: "nk_test_key", URL: serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, target+r.URL.Path, http.StatusTemporaryRedirect)
	})})
	if _, err := api.Text(public.Get(t.Context(), "/api/v1/partner/stats", nil)); cli.CodeOf(err) != cli.Usage {
		t.Error(err)
	}
}

// The time limit covers the whole response, even if its header arrives at once. How long a machine takes to send the
// header is unknown: an attempt that was too short is repeated with twice the time.
func TestWithin(t *testing.T) {
	for within := 50 * time.Millisecond; ; within *= 2 {
		over := make(chan struct{})
		public := dial(t, api.Config{Within: within, URL: serve(t, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"ok":`)
			w.(http.Flusher).Flush()
			<-over
		})})
		response, err := public.Get(t.Context(), "/status", nil)
		headless := err != nil
		_, err = api.Text(response, err)
		close(over)
		if cli.CodeOf(err) != cli.Unreachable {
			t.Fatal(err)
		}
		if headless {
			continue
		}
		if !strings.Contains(err.Error(), "read the response of http://") {
			t.Error(err)
		}
		break
	}
	away := dial(t, api.Config{URL: "http://127.0.0.1:1"})
	if _, err := api.Text(away.Get(t.Context(), "/status", nil)); cli.CodeOf(err) != cli.Unreachable {
		t.Errorf("an API that is down: %v", err)
	}
}

// A caller that cancels does not get Unreachable, neither before the response nor in the middle of it.
func TestCancelledCaller(t *testing.T) {
	requested, over := make(chan struct{}), make(chan struct{})
	public := dial(t, api.Config{URL: serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/vaults" {
			fmt.Fprint(w, `{"ok":`)
			w.(http.Flusher).Flush()
		} else {
			close(requested)
		}
		<-over
	})})
	defer close(over)
	ctx, giveUp := context.WithCancel(t.Context())
	go func() { <-requested; giveUp() }()
	if _, err := public.Get(ctx, "/status", nil); cli.CodeOf(err) != cli.Failed || !errors.Is(err, context.Canceled) ||
		strings.Contains(err.Error(), "check --url") {
		t.Errorf("cancelled before a response, the exit code is %d: %v", cli.CodeOf(err), err)
	}
	ctx, leave := context.WithCancel(t.Context())
	response, err := public.Get(ctx, "/api/v1/vaults", nil)
	leave()
	if _, err = api.Text(response, err); cli.CodeOf(err) != cli.Failed || !errors.Is(err, context.Canceled) ||
		!strings.Contains(err.Error(), "read the response of http://") {
		t.Errorf("cancelled in the middle of a response, the exit code is %d: %v", cli.CodeOf(err), err)
	}
}

// A patient client retries when the API asks for it, a limited number of times, and only GET requests.
func TestRetries(t *testing.T) {
	var requested atomic.Int32
	busy, after := int32(2), "0"
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if requested.Add(1) <= busy {
			w.Header().Set("Retry-After", after)
			w.WriteHeader(http.StatusTooManyRequests)
		}
		fmt.Fprint(w, vaults)
	})
	patient := dial(t, api.Config{URL: address, Patient: true})
	list := func(c *client.Client) error {
		requested.Store(0)
		_, err := api.Text(c.Get(t.Context(), "/api/v1/vaults", nil))
		return err
	}
	if err := list(patient); err != nil || requested.Load() != 3 {
		t.Errorf("sent %d requests: %v", requested.Load(), err)
	}
	if err := list(dial(t, api.Config{URL: address})); err == nil || requested.Load() != 1 {
		t.Errorf("a client without retries sent %d requests: %v", requested.Load(), err)
	}
	requested.Store(0)
	if _, err := api.Text(patient.Post(t.Context(), "/api/v1/partner/webhooks/test", nil)); err == nil ||
		requested.Load() != 1 {
		t.Errorf("a request that changes something is sent %d times: %v", requested.Load(), err)
	}
	busy = 1000
	if err := list(patient); err == nil || requested.Load() != 20 {
		t.Errorf("to an API that is always busy, it sent %d requests: %v", requested.Load(), err)
	}
	for _, after = range []string{"86400", "18446744074", "-1", "soon", ""} {
		if err := list(patient); err == nil || requested.Load() != 1 {
			t.Errorf("with Retry-After %q it sent %d requests: %v", after, requested.Load(), err)
		}
	}
}
