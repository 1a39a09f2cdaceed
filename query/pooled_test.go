package query

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/registrytest"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/schemas/registry"
)

// TestBehindPgBouncer runs the API on PostgreSQL sessions that change hands after each transaction. Concurrent
// partner requests are served, limits hold, and new rows are served although no notifications arrive.
func TestBehindPgBouncer(t *testing.T) {
	if testing.Short() {
		t.Skip("starts PgBouncer")
	}
	postgres := registrytest.Postgres(t)
	w := newWorldOn(t, enginetest.ClickHouse(t), postgres)
	w.chain = readtest.SmallChain()
	w.publish()
	pool, err := registry.Open(t.Context(),
		registry.Config{URL: enginetest.PgBouncer(t, postgres), MaxConns: 8, Pooled: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	w.pool = pool
	w.serve(func(c *Config) { c.PartnerRateLimit = 40 })
	w.setClock(time.Now)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	wait.For(t, "ready", func() bool { return w.Ready() == nil })

	var group sync.WaitGroup
	for id := int64(7); id < 11; id++ {
		key := w.partner(id, fmt.Sprint("Partner ", id))
		header := []string{"x-api-key", key, "Content-Type", "application/json"}
		group.Go(func() {
			w.Do("POST", webhooksPath, strings.NewReader(`{"url":"https://a.example"}`), header...).Data(t)
			if r := w.Do("POST", webhooksPath+"/test", nil, header...); r.Code != 202 {
				t.Errorf("a test: %d %s", r.Code, r.Body)
			}
			granted := 2
			for range 60 {
				switch r := w.get([]string{webhooksPath, webhooksPath + "/deliveries", "/api/v1/partner/events",
					"/api/v1/partner/stats"}[granted%4], header...); r.Code {
				case 200:
					granted++
				case 429:
				default:
					t.Errorf("%s: %d %s", r.Path, r.Code, r.Body)
				}
			}
			if granted < 40 || granted > 80 { // as many again if a second minute began
				t.Errorf("partner %d was granted %d requests", id, granted)
			}
		})
	}
	group.Wait()
	for block := uint64(12); block < 15; block++ {
		w.chain.Append(readtest.BlockRecord(block))
		w.g.Write(w.chain)
		wait.For(t, "a new block is served", func() bool {
			return w.get("/api/v1/vaults").Header().Get("X-Indexed-Block") == fmt.Sprint(block)
		})
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
