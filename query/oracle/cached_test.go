package oracle

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/query/serve"
)

var cacheSeed = flag.Uint64("cacheSeed", 1,
	"seed of the history in which answers with and without the cache are compared")

// sparse is a history in which most blocks change little: a few logs of one vault, or none, so that many responses
// stay valid and some only lapse. Blocks are seconds or days apart.
type sparse struct {
	*scenario
	times map[uint64]uint32
}

func newSparse(seed uint64) *sparse {
	s := &sparse{newScenario(seed), map[uint64]uint32{0: 1_700_000_000}}
	s.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.VaultRecord(readtest.VaultB, "Beta", 1))
	s.vaults = []common.Address{readtest.VaultA, readtest.VaultB}
	for range 12 {
		s.block(2)
	}
	return s
}

// block appends one block at the head, with logs of some vaults.
func (s *sparse) block(vaults int) {
	s.head++
	now := s.times[s.head-1] + 12
	if s.pick(6) == 0 {
		now += uint32(s.pick(3 * 86400))
	}
	s.times[s.head] = now
	index := uint32(0)
	for range vaults {
		for _, f := range s.logs(s.vaults[s.pick(len(s.vaults))], s.head, &index) {
			f.Time = now
			if f.Expires != 0 {
				f.Expires = uint64(now) + uint64(12*s.pick(6))
			}
			s.Add(f, 0)
		}
	}
	end := readtest.BlockRecord(s.head)
	end.Time = now
	s.Append(end)
}

// step appends one unit: a block, a reorganisation, or a vault's new name.
func (s *sparse) step() {
	switch s.pick(12) {
	case 0, 1:
		depth := uint64(1 + s.pick(3))
		s.Retract(s.head - depth)
		s.head -= depth
		s.oneUnit(func() {
			for range depth + uint64(s.pick(2)) {
				s.block(s.pick(2))
			}
		})
	case 2:
		record := readtest.VaultRecord(readtest.VaultA, []string{"Alpha", "Alpha again"}[s.pick(2)], 1)
		s.oneUnit(func() { s.Append(record); s.block(0) })
	default:
		s.block(s.pick(2))
	}
}

// cachedPaths returns requests for every cached route; many of them read few lists.
func cachedPaths() (out []string) {
	add := func(paths ...string) { out = append(out, paths...) }
	span := "from=1700000030&to=1700000100"
	for _, v := range []string{readtest.VaultA.Hex(), readtest.VaultB.Hex()} {
		path := "/api/v1/vaults/" + v
		add(path, path+"/nav", path+"/nav?"+span, path+"/deposits", path+"/deposits?"+span, path+"/withdrawals",
			path+"/withdrawals?"+span, path+"/users", path+"/users?sortBy=totalDeposited",
			path+"/users?sortBy=totalWithdrawn&sortOrder=asc", path+"/events?pageSize=5",
			path+"/series?interval=hour&from=1700000000&to=1701000000", path+"/series", path+"/series?interval=week",
			"/api/v1/queues/withdrawals?vault="+v, "/api/v1/queues/deposits?vault="+v)
	}
	for _, u := range people[:3] {
		path := "/api/v1/users/" + u.Hex()
		add(path, path+"/deposits", path+"/deposits?pageSize=2&page=2", path+"/deposits?vault="+readtest.VaultB.Hex(),
			path+"/withdrawals", path+"/withdrawals?vault="+readtest.VaultA.Hex())
		for _, status := range []string{"queued", "claimed", "cancelled"} {
			add(path + "/withdrawals?status=" + status)
		}
		add("/api/v1/explain?of=" + path + "&field=/totalDeposited")
	}
	add("/api/v1/vaults", "/api/v1/users", "/api/v1/users?sortBy=totalDeposited",
		"/api/v1/users?sortBy=totalWithdrawn&page=2&pageSize=2", "/api/v1/queues/withdrawals",
		"/api/v1/queues/withdrawals?pageSize=1&page=2", "/api/v1/settlement/summary", "/api/v1/reorganisations",
		"/api/v1/events?retracted=true&pageSize=4",
		"/api/v1/explain?field=/meta/total&of="+url.QueryEscape("/api/v1/queues/withdrawals"),
		"/api/v1/explain?field=/0/withdrawalsToFund/totalAmount&of=/api/v1/settlement/summary",
		"/api/v1/partner/vaults", "/api/v1/partner/stats", "/api/v1/partner/deposits",
		"/api/v1/explain?field=/totalVolume&of=/api/v1/partner/stats")
	return out
}

// TestCacheChangesNoAnswer: throughout a random history, every response with the cache equals the one without it, in
// its bytes and headers, about the newest block and about past ones.
func TestCacheChangesNoAnswer(t *testing.T) {
	if testing.Short() {
		t.Skip("750 requests, each with and without the cache")
	}
	t.Logf("-cacheSeed=%d", *cacheSeed)
	const steps, each = 30, 25
	s := newSparse(*cacheSeed)
	g := readtest.New(t, enginetest.ClickHouse(t))
	g.Write(s.Log)
	made := [2]int{}
	var servers [2]*readtest.Client
	for i, cacheBytes := range []int{1 << 20, 0} {
		var counted []serve.Route
		for _, route := range routes {
			if route.Path != "/api/v1/queues/deposits" { // which is streamed
				handler := route.Get
				route.Get = func(r *serve.Request) (*serve.Answer, error) { made[i]++; return handler(r) }
			}
			counted = append(counted, route)
		}
		servers[i] = readtest.ServeBy(t, serve.New(16, cacheBytes, prometheus.NewRegistry()), g, counted...)
	}
	paths := cachedPaths()
	for step := range steps {
		for range each {
			path := paths[s.pick(len(paths))]
			if s.pick(3) == 0 {
				path = withQuery(path, fmt.Sprintf("asOfBlock=%d", s.head-s.head%5-5*uint64(s.pick(2))))
			}
			kept, fresh := reply(servers[0], path), reply(servers[1], path)
			if kept != fresh {
				t.Fatalf("step %d at block %d, seed %d: %s\nwith the cache\n%s\nand without\n%s", step, s.head, *cacheSeed, path,
					kept, fresh)
			}
		}
		s.step()
		g.Write(s.Log)
		for _, c := range servers {
			c.Look()
		}
	}
	if !s.hasReorganisation() {
		t.Error("the history has no reorganisation")
	}
	t.Logf("%d responses were made with the cache, %d without", made[0], made[1])
	if made[0] > made[1]*9/10 {
		t.Errorf("%d of %d responses were made with the cache, too few for this test", made[0], made[1])
	}
}

// reply returns everything that a client receives.
func reply(c *readtest.Client, path string) string {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("X-Request-Id", "one")
	w := httptest.NewRecorder()
	c.Handler.ServeHTTP(w, r)
	return fmt.Sprintf("%d %v\n%s", w.Code, w.Header(), w.Body)
}
