package readtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/query/state"
)

// Client sends requests to a handler in a test.
type Client struct {
	T       testing.TB
	Handler http.Handler
	Watcher *state.Watcher
	Server  *serve.Server // set if Serve made the client

	live live
}

// Serve serves some routes over a generation in its current state, without keys, limits and cache. Requests on
// partner routes come from partner 7, Seven.
func Serve(t testing.TB, g *Generation, routes ...serve.Route) *Client {
	t.Helper()
	return ServeBy(t, serve.New(16, 0, prometheus.NewRegistry()), g, routes...)
}

// ServeBy is Serve with the test's own server.
func ServeBy(t testing.TB, s *serve.Server, g *Generation, routes ...serve.Route) *Client {
	t.Helper()
	s.Log, s.RequestTimeout, s.WriteTimeout, s.FileTimeout = slog.New(slog.NewTextHandler(t.Output(), nil)), time.Minute,
		time.Minute, time.Minute
	c := &Client{T: t, Server: s}
	s.Watcher = watch(t, g, nil, &c.live)
	s.Admit = func(r *serve.Request, e *serve.Route) error {
		if e.Partner {
			r.Partner = &serve.Partner{ID: 7, Name: "Seven", RateLimit: 120}
		}
		return nil
	}
	c.Watcher, c.Handler = s.Watcher, s.Handler(routes, nil, nil)
	c.Switch(g)
	return c
}

// Switch makes a generation the live one, and makes the watcher look at it.
func (c *Client) Switch(to *Generation) {
	c.T.Helper()
	c.live.serve(c.T, c.Watcher, to)
	c.Look()
}

// Look makes the watcher look at the generation.
func (c *Client) Look() {
	c.T.Helper()
	look(c.T, c.Watcher)
}

// Reply is a response.
type Reply struct {
	*httptest.ResponseRecorder
	Path string
}

// Do sends a request and checks the response against the contract; header is name, value, name, value.
func (c *Client) Do(method, path string, body io.Reader, header ...string) Reply {
	reply, r, sent := c.serve(method, path, body, header...)
	TheContract().Judge(c.T, r, sent, reply.ResponseRecorder)
	return reply
}

// Get is Do for a GET request.
func (c *Client) Get(path string, header ...string) Reply { return c.Do("GET", path, nil, header...) }

// Serve is Get for a path that is not in the contract.
func (c *Client) Serve(path string, header ...string) Reply {
	reply, _, _ := c.serve("GET", path, nil, header...)
	return reply
}

func (c *Client) serve(method, path string, body io.Reader, header ...string) (Reply, *http.Request, []byte) {
	c.T.Helper()
	var sent []byte
	if body != nil {
		var err error
		if sent, err = io.ReadAll(body); err != nil {
			c.T.Fatal(err)
		}
	}
	r := httptest.NewRequest(method, path, bytes.NewReader(sent))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	c.Handler.ServeHTTP(rec, r)
	r.Body = io.NopCloser(bytes.NewReader(sent))
	return Reply{rec, path}, r, sent
}

// JSON returns the body of a response, which must be 200 with ok true.
func (r Reply) JSON(t testing.TB) map[string]any {
	t.Helper()
	if r.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", r.Path, r.Code, r.Body)
	}
	out := Decode(t, r.Body.Bytes())
	if out["ok"] != true {
		t.Fatalf("%s: ok is %v", r.Path, out["ok"])
	}
	return out
}

// Data returns the field data of the body.
func (r Reply) Data(t testing.TB) any { t.Helper(); return r.JSON(t)["data"] }

// Failed checks an error response and returns its details.
func (r Reply) Failed(t testing.TB, status int, code string) any {
	t.Helper()
	if r.Code != status {
		t.Fatalf("%s: status is %d and should be %d: %s", r.Path, r.Code, status, r.Body)
	}
	out := Decode(t, r.Body.Bytes())
	e, _ := out["error"].(map[string]any)
	if out["ok"] != false || e["code"] != code || e["message"] == "" || e["message"] == nil {
		t.Fatalf("%s: error should be %s: %s", r.Path, code, r.Body)
	}
	if id := e["requestId"]; id == "" || id != r.Header().Get("X-Request-Id") {
		t.Fatalf("%s: requestId is %v and the header %q", r.Path, id, r.Header().Get("X-Request-Id"))
	}
	return e["details"]
}

// Decode parses JSON and keeps numbers as they are written.
func Decode(t testing.TB, b []byte) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	var out map[string]any
	if err := decoder.Decode(&out); err != nil {
		t.Fatalf("not JSON: %v: %s", err, b)
	}
	return out
}

// Same compares a response with the expected value, as JSON.
func Same(t testing.TB, what string, got, want any) {
	t.Helper()
	g, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	w, err := json.MarshalIndent(want, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if string(g) != string(w) {
		t.Fatalf("%s\n got %s\nwant %s", what, g, w)
	}
}

// Parquet reads the file of a list: its columns, and the rows in the form that CSV has.
func Parquet(t testing.TB, path string, body []byte) [][]string {
	t.Helper()
	file, err := parquet.OpenFile(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		t.Fatalf("%s: %v: %q", path, err, body)
	}
	var names []string
	for _, f := range file.Schema().Fields() {
		names = append(names, f.Name())
	}
	out := [][]string{names}
	reader := parquet.NewReader(file)
	defer reader.Close()
	for range file.NumRows() {
		rows := make([]parquet.Row, 1)
		if n, err := reader.ReadRows(rows); n != 1 {
			t.Fatal(n, err)
		}
		var line []string
		for i, f := range file.Schema().Fields() {
			v := rows[0][i]
			switch typed := f.Type().String(); {
			case v.IsNull():
				line = append(line, "")
			case strings.HasPrefix(typed, "TIMESTAMP"):
				line = append(line, time.UnixMilli(v.Int64()).UTC().Format("2006-01-02T15:04:05.000Z"))
			case typed == "BOOLEAN":
				line = append(line, fmt.Sprint(v.Boolean()))
			case typed == "STRING":
				line = append(line, string(v.ByteArray()))
			default:
				line = append(line, fmt.Sprint(v.Int64()))
			}
		}
		out = append(out, line)
	}
	return out
}
