package query

import (
	"fmt"
	"strings"
	"testing"

	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/query/serve"
)

// paths returns a path for each GET route.
func (w *world) paths() (out []string) {
	for _, e := range w.routes() {
		if e.Get != nil && !e.Live { // a live response does not end
			out = append(out, pathOf(e))
		}
	}
	return out
}

// pathOf returns a path for a route, with its required parameters.
func pathOf(e serve.Route) string {
	path := strings.NewReplacer("{address}", vaultA.Hex(), "{eventId}",
		"00000000-0000-5000-8000-000000000001").Replace(e.Path)
	switch {
	case strings.Contains(e.Path, "/users/"):
		path = strings.Replace(path, vaultA.Hex(), alice.Hex(), 1)
	case strings.HasSuffix(e.Path, "/explain"):
		path = explained("/api/v1/vaults/"+vaultA.Hex(), "/stats/userCount")
	case strings.HasSuffix(e.Path, "/statement"):
		path = statementPath + "2023-11-14T22:15:31Z" // a second before block 11
	}
	return path
}

// asOf returns the same path at a block.
func asOf(path string, block uint64) string {
	if strings.Contains(path, "?") {
		return fmt.Sprintf("%s&asOfBlock=%d", path, block)
	}
	return fmt.Sprintf("%s?asOfBlock=%d", path, block)
}

// TestCachedAnswersAreTheSame: responses are the same with and without the cache, for every route and for two
// partners.
func TestCachedAnswersAreTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("sends one query after the other")
	}
	w := newFixture(t)
	keys := []string{w.partner(7, "Seven"), w.partner(8, "Eight")}
	ask := func(w *world) map[string]string {
		out := map[string]string{}
		for _, key := range keys {
			for _, path := range w.paths() {
				for _, path := range []string{path, asOf(path, 9)} {
					r := w.get(path, "x-api-key", key, "X-Request-Id", "same")
					h := r.Header().Clone()
					for _, name := range []string{"Ratelimit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"} {
						h.Del(name)
					}
					out[key+path] = fmt.Sprint(r.Code, h, r.Body)
				}
			}
		}
		return out
	}
	first, second := ask(w), ask(w)
	if n := w.metric("navlog_query_cached_answers"); n < 15 {
		t.Errorf("%v responses in the cache", n)
	}
	bare := *w
	bare.serve(func(c *Config) { c.CacheBytes = 0 })
	bare.look()
	for path, want := range ask(&bare) {
		same(t, path, first[path], want)
		same(t, path, second[path], want)
	}
	if n := bare.metric("navlog_query_cached_answers"); n != 0 {
		t.Errorf("%v responses in a disabled cache", n)
	}
}

func TestCacheFollowsTheState(t *testing.T) {
	w := newFixture(t)
	path := "/api/v1/vaults/" + vaultA.Hex()
	before := w.get(path)
	w.get(path)
	w.chain.Append(fact{Kind: readtest.Nav, Vault: vaultA, Price: 2_000_000_000_000_000_000, Assets: 1, Supply: 1,
		Block: 12, Index: 0, Tx: tx(40)}, readtest.BlockRecord(12))
	w.publish()
	after := w.get(path)
	if after.Header().Get("X-Indexed-Block") != "12" || after.Body.String() == before.Body.String() {
		t.Errorf("%v %s", after.Header(), after.Body)
	}
	if n := w.metric("navlog_query_cached_answers"); n != 1 {
		t.Errorf("%v responses in the cache", n)
	}
}
