package underload

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/query"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// Flags to try the real engine by hand: on a busy machine the figures mean little.
var (
	hostile  = flag.Duration("hostile", 0, "how long each kind of hostile crowd asks the real engine; 0: not at all")
	deposits = flag.Int("deposits", 100_000, "deposits in the read model that it asks, each of another user")
)

const (
	hostileConnections = 60
	blocksOfDeposits   = 1000
)

// bystanders records the times of normal questions, each from its own address.
type bystanders struct {
	mu      sync.Mutex
	took    []time.Duration
	refused int
}

// TestHostileCrowds prints, for sixty hostile connections of each kind, how long other clients wait: at most twice as
// long as without them, and without being rejected.
//
//	go test ./deploy/check/underload -run TestHostileCrowds -v -args -hostile 10s
func TestHostileCrowds(t *testing.T) {
	if *hostile == 0 {
		t.Skip("by hand only: -args -hostile 10s")
	}
	api := serveMany(t)
	past := func() uint64 { return 10 + rand.Uint64N(blocksOfDeposits-20) }
	one := func(int) string { return "198.51.100.7" }
	users := func(int) string {
		return fmt.Sprintf("/api/v1/users?sortBy=totalDeposited&asOfBlock=%d", past())
	}
	user := func() string { return userOf(rand.IntN(*deposits)).Hex() }
	kinds := []struct {
		name     string
		path     func(n int) string
		from     func(n int) string
		patience time.Duration // after which the client leaves; 0: it stays
	}{
		{"past-totals", users, one, 0},
		{"past-totals-of-a-48", users, func(n int) string { return fmt.Sprintf("2001:db8:1:%x::1", n%20) }, 0},
		{"past-totals-leaving", users, one, 50 * time.Millisecond},
		{"deep-pages", func(int) string {
			return fmt.Sprintf("/api/v1/users?page=%d&pageSize=100&x=%d", 500+rand.IntN(500), rand.Uint64())
		}, one, 0},
		{"files", func(int) string { return fmt.Sprintf("/api/v1/users?format=csv&asOfBlock=%d", past()) }, one, 0},
		{"explain", func(int) string {
			return fmt.Sprintf("/api/v1/explain?of=/api/v1/vaults/%s&field=/stats/userCount&x=%d", readtest.VaultA.Hex(), rand.Uint64())
		}, one, 0},
		{"streams", func(int) string { return "/api/v1/stream?after=0" }, one, 3 * time.Second},
		{"cheap", func(int) string { return fmt.Sprintf("/api/v1/users/%s?asOfBlock=%d", user(), blocksOfDeposits-1) }, one, 0},
	}
	alone, _, _ := measured(api, user)
	for _, k := range kinds {
		ctx, end := context.WithCancel(t.Context())
		var crowd sync.WaitGroup
		for n := range hostileConnections {
			crowd.Go(func() {
				client := &http.Client{Transport: &http.Transport{}}
				defer client.CloseIdleConnections()
				for ctx.Err() == nil {
					if code := get(ctx, client, api+k.path(n), k.from(n), k.patience); code == 429 || code == 503 {
						select {
						case <-ctx.Done():
						case <-time.After(50 * time.Millisecond):
						}
					}
				}
			})
		}
		p99, refused, asked := measured(api, user)
		end()
		crowd.Wait()
		bar(t, "p99-"+k.name, p99.Seconds()*1000, 2*alone.Seconds()*1000, "ms")
		bar(t, "refused-"+k.name, float64(refused), 0, fmt.Sprintf("of %d", asked))
	}
}

// bar prints a figure and its bound.
func bar(t *testing.T, name string, value, bound float64, unit string) {
	t.Helper()
	verdict := "ok"
	if value > bound {
		verdict = "short"
		t.Errorf("%s is %.0f %s and may be %.0f", name, value, unit, bound)
	}
	fmt.Printf("bar %s %.0f %.0f %s\n", name, value, bound, verdict)
}

// measured runs ten other clients for a while, and returns the 99th percentile of their latency and how many of their
// requests were rejected.
func measured(api string, user func() string) (p99 time.Duration, refused, asked int) {
	var b bystanders
	ctx, end := context.WithTimeout(context.Background(), *hostile)
	defer end()
	var group sync.WaitGroup
	for n := range 10 {
		group.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			tick := time.NewTicker(500 * time.Millisecond)
			defer tick.Stop()
			for i := n; ; i++ {
				paths := []string{"/api/v1/users/" + user(), "/api/v1/users/" + user() + "/deposits?x=" + user(),
					"/api/v1/vaults/" + readtest.VaultA.Hex() + "?x=" + user(), "/api/v1/users?x=" + user()}
				begun := time.Now()
				code := get(context.Background(), client, api+paths[i%len(paths)], fmt.Sprintf("192.0.%d.1", n), 0)
				b.mu.Lock()
				b.took = append(b.took, time.Since(begun))
				if code != 200 {
					b.refused++
				}
				b.mu.Unlock()
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
			}
		})
	}
	group.Wait()
	slices.Sort(b.took)
	return b.took[len(b.took)*99/100], b.refused, len(b.took)
}

// get sends one request from an address, and leaves after a time; 0: it stays.
func get(ctx context.Context, client *http.Client, url, from string, patience time.Duration) int {
	if patience > 0 {
		var leave context.CancelFunc
		ctx, leave = context.WithTimeout(ctx, patience)
		defer leave()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0
	}
	r.Header.Set("X-Forwarded-For", from)
	resp, err := client.Do(r)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func userOf(n int) common.Address {
	return common.BytesToAddress([]byte{0xAA, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// serveMany serves a read model of many users, with limits by cost but not by count.
func serveMany(t *testing.T) (api string) {
	t.Helper()
	g := readtest.New(t, enginetest.ClickHouse(t))
	log := readtest.NewLog(readtest.ChainID)
	log.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1))
	each := *deposits / blocksOfDeposits
	for block := range blocksOfDeposits {
		var facts []readtest.Fact
		for i := range each {
			n := block*each + i
			facts = append(facts, readtest.Fact{Kind: readtest.Deposit, Vault: readtest.VaultA, User: userOf(n), Other: readtest.Router, ID: uint64(n + 1), Assets: int64(1 + n%997), Shares: 1,
				Block: uint64(2 + block), Index: uint32(i), Tx: common.BigToHash(common.Big1)})
		}
		log.Append(append(facts, readtest.BlockRecord(uint64(2+block)))...)
	}
	g.Write(log)
	pg := registry.DefaultConfig()
	pg.URL = enginetest.Postgres(t)
	pool, err := registry.Open(t.Context(), pg)
	must(t, err)
	t.Cleanup(pool.Close)
	must(t, db.New(pool).CreateGeneration(t.Context(), db.CreateGenerationParams{ID: g.ID, LogID: make([]byte, 16), Schema: readmodel.Schema(), State: registry.Live}))
	cfg := query.DefaultConfig()
	cfg.Listen, cfg.Router, cfg.PublicRateLimit = "127.0.0.1:0", readtest.Router.Hex(), 0
	noURL := func(context.Context, string) (string, error) { return "", errors.New("no URL is in use") }
	serve := query.New(cfg, readtest.ChainID, g.Config, pool, noURL, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	(&system{}).run(t, serve.Run)
	wait.Until(t, serve.Ready)
	return "http://" + serve.Addr()
}
