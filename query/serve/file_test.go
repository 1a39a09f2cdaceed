package serve_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/query/serve"
)

type named struct {
	Name string `json:"name"`
}

// TestFileCutOff: a query that fails after the first rows ends the connection, so that no client mistakes the partial
// file for a complete one.
func TestFileCutOff(t *testing.T) {
	g := readtest.New(t, enginetest.ClickHouse(t))
	g.Write(readtest.SmallChain())
	parts := 0
	c := readtest.ServeBy(t, serve.New(16, 0, prometheus.NewRegistry()), g,
		serve.Route{Path: "/list", AsFile: true, Get: func(r *serve.Request) (*serve.Answer, error) {
			failAt := r.Params.Integer("failAt", 1<<20, 0, 1<<30, "")
			return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) {
				parts = 0
				return serve.Whole(ctx, r, p, func(context.Context) ([]named, bool, error) {
					if parts++; uint64(parts) == failAt {
						return nil, false, errors.New("the engine is gone")
					}
					if parts > 5 {
						return nil, false, nil
					}
					noise := make([]byte, serve.StreamChunk) // random bytes do not compress, so they do not stay in a buffer
					for i := range noise {
						noise[i] = byte('!' + rand.IntN(90))
					}
					return []named{{string(noise)}}, true, nil
				})
			})
		}})
	server := httptest.NewServer(c.Handler)
	defer server.Close()
	get := func(query string) (status int, body []byte, err error) {
		t.Helper()
		resp, err := http.Get(server.URL + "/list?" + query)
		if err != nil {
			return 0, nil, err
		}
		defer resp.Body.Close()
		body, err = io.ReadAll(resp.Body)
		return resp.StatusCode, body, err
	}
	for _, format := range []string{"csv", "parquet"} {
		if status, body, err := get("format=" + format); status != 200 || err != nil || len(body) == 0 {
			t.Errorf("%s: %d, %d bytes, %v", format, status, len(body), err)
		}
		// The writer of Parquet collects rows before it writes the first ones.
		if status, _, err := get("failAt=4&format=" + format); err == nil && (status != 500 || format == "csv") {
			t.Errorf("%s: %d without an error, although the fourth part fails", format, status)
		}
		if status, _, err := get("failAt=1&format=" + format); status != 500 || err != nil {
			t.Errorf("%s: %d, %v, although the first part fails", format, status, err)
		}
	}
	old := httptest.NewRequest("GET", "/list?format=csv", nil)
	old.Proto, old.ProtoMajor, old.ProtoMinor = "HTTP/1.0", 1, 0
	rec := httptest.NewRecorder()
	c.Handler.ServeHTTP(rec, old)
	readtest.Reply{ResponseRecorder: rec, Path: "over HTTP/1.0"}.Failed(t, 400, "INVALID_PARAMETER")
}

// TestFileTimeout: a file may take longer than any other response, but not longer than its own limit.
func TestFileTimeout(t *testing.T) {
	g := readtest.New(t, enginetest.ClickHouse(t))
	g.Write(readtest.SmallChain())
	const others, long = 100 * time.Millisecond, 300 * time.Millisecond
	c := readtest.ServeBy(t, serve.New(16, 0, prometheus.NewRegistry()), g,
		serve.Route{Path: "/list", AsFile: true, Get: func(r *serve.Request) (*serve.Answer, error) {
			return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) {
				first, last := true, time.Now().Add(long)
				return serve.Whole(ctx, r, p, func(ctx context.Context) ([]named, bool, error) {
					if !first {
						select {
						case <-ctx.Done():
							return nil, false, ctx.Err()
						case <-time.After(time.Until(last)): // past the timeout of other responses, however slow the machine is
							return nil, false, nil
						}
					}
					first = false
					return []named{{strings.Repeat("x", serve.StreamChunk)}}, true, nil
				})
			})
		}}, serve.Route{Path: "/document", IsFile: true, Get: func(r *serve.Request) (*serve.Answer, error) {
			return r.Pinned(func(context.Context, *ask.Pin) (*serve.Answer, error) {
				return &serve.Answer{Stream: func(ctx context.Context, w io.Writer) error {
					for range 2 {
						if _, err := io.WriteString(w, strings.Repeat("x", serve.StreamChunk)); err != nil {
							return err
						}
						select {
						case <-ctx.Done():
							return ctx.Err()
						case <-time.After(long):
						}
					}
					return nil
				}}, nil
			})
		}})
	c.Server.WriteTimeout = others
	whole := func(path string, within time.Duration) error {
		c.Server.FileTimeout = within
		server := httptest.NewUnstartedServer(c.Handler)
		server.Config.WriteTimeout = others
		server.Start()
		defer server.Close() // no code reads its settings after that
		resp, err := http.Get(server.URL + path)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if _, err = io.Copy(io.Discard, resp.Body); err == nil && resp.StatusCode != http.StatusOK {
			err = errors.New(resp.Status)
		}
		return err
	}
	for _, path := range []string{"/list?format=csv", "/document"} {
		if err := whole(path, time.Minute); err != nil {
			t.Errorf("%s of %s within a minute: %v", path, long, err)
		}
		// The first rows are compressed, and not sent before the rest: so an error can still be reported.
		if err := whole(path, others); err == nil || err.Error() != "500 Internal Server Error" {
			t.Errorf("%s of %s within %s: %v", path, long, others, err)
		}
	}
}
