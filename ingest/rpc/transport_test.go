package rpc

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// answering returns an endpoint whose server responds with a handler, which gets the id of the call.
func answering(t *testing.T, handler func(w http.ResponseWriter, id string)) *Node {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var q struct{ ID json.RawMessage }
		body, _ := io.ReadAll(req.Body)
		_ = json.Unmarshal(body, &q)
		handler(w, string(q.ID))
	}))
	t.Cleanup(server.Close)
	n := noPool(wallClock).newNode(Endpoint{URL: server.URL + "/v3/secretkey"}, server.URL)
	t.Cleanup(n.close)
	return n
}

func TestWrongAnswers(t *testing.T) {
	text := func(s string) func(http.ResponseWriter, string) {
		return func(w http.ResponseWriter, id string) { fmt.Fprint(w, strings.ReplaceAll(s, "ID", id)) }
	}
	status := func(code int, body string, headers ...string) func(http.ResponseWriter, string) {
		return func(w http.ResponseWriter, _ string) {
			for i := 0; i < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}
	}
	for name, c := range map[string]struct {
		handler func(http.ResponseWriter, string)
		want    error  // nil for any
		says    string // text in the error
		refused bool   // whether the node itself returned it
		healthy bool   // after the call
	}{
		"an error in a 200": {text(`{"id":ID,"error":{"code":-32602,"message":"block range is too wide"}}`), nil,
			"block range is too wide", true, true},
		"HTML in a 200":  {text("<html>\n<h1>Sign   in</h1>"), errNotJSON, "<h1>Sign in</h1>", false, false},
		"foreign JSON":   {text(`{"message":"no such key"}`), errForeign, "no such key", false, false},
		"another id":     {text(`{"id":99999,"result":1}`), errWrongCall, "99999", false, false},
		"truncated JSON": {text(`{"id":ID,"result":[{"da`), errTruncated, "", false, false},
		"empty body":     {text(``), errTruncated, "", false, false},
		"closed connection": {func(w http.ResponseWriter,
			_ string) {
			w.Header().Set("Content-Length", "900")
			fmt.Fprint(w, "{")
		}, errTruncated, "after 1 bytes", false, false},
		"500 with an error": {status(500, `{"id":1,"error":{"code":-32000,"message":"query timeout exceeded"}}`), nil,
			"query timeout exceeded", true, true},
		"400 without an error": {status(400, `range too large`), nil, "HTTP 400 Bad Request: range too large", false, true},
		"413":                  {status(413, ``), nil, "HTTP 413", false, true},
		"502": {status(502, `<html>bad gateway</html>`), nil, "HTTP 502 Bad Gateway: <html>bad gateway",
			false, false},
		"403 with an error": {status(403,
			`{"id":1,"error":{"code":-32002,"message":"Archive requests are not available on your plan"}}`), nil,
			"Archive requests", true, true},
		"403 with a limit": {status(403,
			`{"id":1,"error":{"code":-32600,"message":"eth_getLogs is limited to a 500 block range on this plan"}}`), nil,
			"500 block range", true, true},
		"403 about the key": {status(403, `{"id":1,"error":{"code":-32000,"message":"invalid api key"}}`), nil,
			"HTTP 403", false, false},
		"403 without an error": {status(403, `{"error":{"message":null}`), nil, "HTTP 403", false, false},
		"401":                  {status(401, `{"error":"unknown key"}`), nil, "unknown key", false, false},
		"a redirect": {status(307, ``, "Location", "http://127.0.0.1:1/"), nil, "redirects are not followed",
			false, false},
		"length above the bound": {func(w http.ResponseWriter,
			_ string) {
			w.Header().Set("Content-Length", fmt.Sprint(maxAnswer+1))
		}, errAnswerTooLong, "more than 65536 KiB", false, true},
		"long error message": {text(`{"id":ID,"error":{"code":1,"message":"` + strings.Repeat("x", 5000) + `"}}`), nil, "xxx",
			true, true},
	} {
		t.Run(name, func(t *testing.T) {
			n := answering(t, c.handler)
			_, err := n.exchange(t.Context(), call{method: "eth_test"})
			switch {
			case err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says):
				t.Fatalf("the error is %v, want %v with %q", err, c.want, c.says)
			case !strings.Contains(err.Error(), "eth_test at "+n.Name) || strings.Contains(err.Error(), "secretkey") ||
				len(err.Error()) > 600:
				t.Errorf("the error is %v, want the method and the endpoint, no key, and a short text", err)
			case refused(err) != c.refused:
				t.Errorf("refused is %v for %v", refused(err), err)
			case n.health.is(usable) != c.healthy:
				t.Errorf("the endpoint is usable: %t after %v", n.health.is(usable), err)
			}
		})
	}
}

// A response without a length is cut off at the bound.
func TestLongAnswersAreBounded(t *testing.T) {
	var sent atomic.Int64
	n := answering(t, func(w http.ResponseWriter, id string) {
		chunk := []byte(`"` + strings.Repeat("a", 1<<20) + `",`)
		for fmt.Fprintf(w, `{"id":%s,"result":[`, id); ; {
			k, err := w.Write(chunk)
			if sent.Add(int64(k)); err != nil || sent.Load() > 4*maxAnswer {
				return
			}
		}
	})
	if _, err := n.exchange(t.Context(), call{method: "eth_getLogs"}); !errors.Is(err, errAnswerTooLong) {
		t.Errorf("the error is %v", err)
	}
	if refused(errAnswerTooLong) || !n.health.is(usable) {
		t.Errorf("the failure is counted against the endpoint, although the call asked for too much")
	}
}

// So is a response that becomes long when it is decompressed.
func TestPackedAnswersAreBounded(t *testing.T) {
	n := answering(t, func(w http.ResponseWriter, _ string) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		for range maxAnswer>>20 + 1 {
			_, _ = z.Write(make([]byte, 1<<20))
		}
		_ = z.Close()
	})
	if _, err := n.exchange(t.Context(), call{method: "eth_getLogs"}); !errors.Is(err, errAnswerTooLong) {
		t.Errorf("the error is %v", err)
	}
}

func TestHTTPErrorsKeepTheirParts(t *testing.T) {
	n := answering(t, func(w http.ResponseWriter, _ string) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusBadGateway)
		fmt.Fprint(w, strings.Repeat("long ", 1000))
	})
	_, err := n.exchange(t.Context(), call{method: "eth_test"})
	var got *httpError
	if !errors.As(err, &got) || got.Status != 502 || got.RetryAfter != 7*time.Second || len(got.Body) != 200 {
		t.Errorf("the error is %+v", got)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "3": 3 * time.Second, "0.5": 500 * time.Millisecond, "-1": 0, "soon": 0, "1e300": 0, "NaN": 0,
		"2592000":                       30 * 24 * time.Hour, // a monthly quota
		"Fri, 02 Jan 2026 03:05:05 GMT": time.Minute, "Fri, 02 Jan 2026 03:00:00 GMT": 0,
	} {
		if got := retryAfter(header, now); got != want {
			t.Errorf("Retry-After %q is %s, want %s", header, got, want)
		}
	}
}

func TestBatches(t *testing.T) {
	var reply func(w io.Writer, ids []string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var questions []struct {
			Version string `json:"jsonrpc"`
			ID      json.RawMessage
			Method  string
			Params  []any
		}
		body, err := io.ReadAll(req.Body)
		if err = errors.Join(err, json.Unmarshal(body, &questions)); err != nil {
			t.Error(err)
		}
		var ids []string
		for i, q := range questions {
			if q.Version != "2.0" || q.Method != "m" || len(q.Params) != 2 || q.Params[0] != float64(i) || q.Params[1] != false {
				t.Errorf("call %d is %+v", i, q)
			}
			ids = append(ids, string(q.ID))
		}
		reply(w, ids)
	}))
	t.Cleanup(server.Close)
	n := noPool(wallClock).newNode(Endpoint{URL: server.URL}, server.URL)
	t.Cleanup(n.close)
	three := [][]any{{0, false}, {1, false}, {2, false}}

	reply = func(w io.Writer, ids []string) {
		fmt.Fprintf(w, `[{"id":%s,"result":"c"},{"id":%s,"result":"a"},{"id":%s,"result":"b"}]`, ids[2], ids[0], ids[1])
	}
	results := make([][]byte, len(three))
	batch := func(params [][]any) error {
		return n.request(t.Context(), call{method: "m"}, params, func(i int, result []byte) error { results[i] = result; return nil })
	}
	if err := batch(three); err != nil || fmt.Sprintf("%s", results) != `["a" "b" "c"]` {
		t.Errorf("the batch returns %s and %v", results, err)
	}
	for _, c := range []struct {
		reply, says string
		refused     bool
	}{
		{`{"id":null,"error":{"code":-32600,"message":"batches are too long"}}`, "batches are too long", true},
		{`[{"id":null,"error":{"code":-32600,"message":"batches are too long"}}]`, "batches are too long", true},
		{`[{"id":A,"result":1},{"id":B,"error":{"code":1,"message":"no such block"}},{"id":C,"result":1}]`, "no such block",
			true},
		{`[{"id":A,"result":1}]`, "1 responses to a batch of 3", false},
		{`[{"id":A,"result":1},{"id":A,"result":1},{"id":B,"result":1}]`, "3 responses to a batch of 3", false},
		{`[{"id":123456,"result":1}]`, errWrongCall.Error(), false},
		{`[{"id":A,"result":1},`, errTruncated.Error(), false},
		{`[1,2,3]`, errForeign.Error(), false},
	} {
		reply = func(w io.Writer, ids []string) {
			fmt.Fprint(w, strings.NewReplacer("A", ids[0], "B", ids[1], "C", ids[2]).Replace(c.reply))
		}
		if err := batch(three); err == nil || !strings.Contains(err.Error(), c.says) || refused(err) != c.refused {
			t.Errorf("%s returns %v", c.reply, err)
		}
	}
	if err := n.callInBatches(t.Context(), "m", nil, nil); err != nil {
		t.Errorf("a batch without calls returns %v", err)
	}
}

// A call that its caller cancels does not count as a failure of the node.
func TestCallerCancels(t *testing.T) {
	asked := make(chan struct{}, 1)
	released := make(chan struct{})
	n := answering(t, func(http.ResponseWriter, string) { asked <- struct{}{}; <-released })
	t.Cleanup(func() { close(released) })
	ctx, leave := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { _, err := n.exchange(ctx, call{method: "eth_test"}); done <- err }()
	<-asked
	leave()
	if err := <-done; !errors.Is(err, context.Canceled) || !n.health.is(usable) {
		t.Errorf("the error is %v, and the endpoint is usable: %t", err, n.health.is(usable))
	}
}

// Between machines responses are compressed; the bound is on their decompressed size.
func TestCompressedAnswers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.Contains(req.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			fmt.Fprint(z, `{"id":1,"result":"packed"}`)
			_ = z.Close()
			return
		}
		fmt.Fprint(w, `{"id":1,"result":"plain"}`)
	}))
	t.Cleanup(server.Close)
	for host, want := range map[string]string{"127.0.0.1": `"plain"`, "node.invalid": `"packed"`} {
		n := noPool(wallClock).newNode(Endpoint{URL: "http://" + host}, host)
		through := n.http.client.Transport.(*http.Transport)
		through.DialContext = server.Client().Transport.(*http.Transport).DialContext
		n.http.url = server.URL
		if got, err := n.exchange(t.Context(), call{method: "m"}); err != nil || string(got) != want {
			t.Errorf("%s returns %s and %v, want %s", host, got, err, want)
		}
		n.close()
	}
}
