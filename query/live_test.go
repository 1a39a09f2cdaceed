package query

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/query/readtest"
)

// history is a log that grows while it is read.
type history struct {
	mu  sync.Mutex
	log *readtest.Log
}

// counted are values of the log at a seq and a block, counted by hand.
type counted struct{ users, seven, queued int }

func (h *history) at(seq, block uint64) (c counted) {
	h.mu.Lock()
	l := &readtest.Log{Entries: h.log.Entries[:seq]}
	h.mu.Unlock()
	users, open := map[string]bool{}, map[uint64]bool{}
	for _, e := range l.Live(seq, block) {
		switch e.Kind {
		case readtest.Deposit:
			users[e.User.Hex()] = true
			if e.Fact.Partner == 7 {
				c.seven++
			}
		case readtest.Request:
			users[e.User.Hex()] = true
			open[e.ID] = true
		case readtest.Claim:
			delete(open, e.ID)
		}
	}
	c.users, c.queued = len(users), len(open)
	return c
}

// TestReadersWhileUnitsAreWritten: readers request the newest block and past ones while blocks and reorganisations
// are written, and events are sometimes ahead of lists. Each response names a state, and matches exactly what the log
// contains in that state.
func TestReadersWhileUnitsAreWritten(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.CacheBytes, c.PartnerRateLimit = 0, 1_000_000 })
	key := w.partner(7, "Seven")
	w.setClock(time.Now)
	h := &history{log: w.chain}
	random := rand.New(rand.NewPCG(1, 2))
	requests := uint64(0)
	unit := func(n uint64) []readtest.Fact {
		var facts []readtest.Fact
		for i := range uint32(1 + random.IntN(3)) {
			user := []readtest.Fact{{User: alice}, {User: bob}, {User: carol}, {User: unknown}}[random.IntN(4)].User
			user[19] = byte(random.IntN(8))
			f := fact{Vault: vaultA, User: user, Other: user, Block: n, Index: i, Assets: 10, Shares: 10, Tx: tx(byte(n))}
			switch random.IntN(3) {
			case 0:
				f.Kind, f.ID, f.Partner = readtest.Deposit, n*10+uint64(i), uint32(7*random.IntN(2))
			case 1:
				requests++
				f.Kind, f.ID = readtest.Request, requests
			case 2:
				f.Kind, f.ID = readtest.Claim, uint64(random.IntN(int(requests)+1))
			}
			facts = append(facts, f)
		}
		return append(facts, readtest.BlockRecord(n))
	}
	h.log.Append(readtest.VaultRecord(vaultA, "Alpha", 1))
	head := uint64(10)
	for n := uint64(1); n <= head; n++ {
		h.log.Append(unit(n)...)
	}
	w.publish()

	ctx, stop := context.WithCancel(t.Context())
	watching := make(chan struct{})
	go func() { _ = w.watcher.Run(ctx); close(watching) }()
	var asked, past, refused atomic.Int64
	var readers sync.WaitGroup
	for r := range 3 {
		readers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(r), 7))
			for ctx.Err() == nil {
				query := ""
				if random.IntN(2) == 0 {
					query = fmt.Sprintf("&asOfBlock=%d", 1+random.IntN(int(w.watcher.Snapshot().Block)))
				}
				which := random.IntN(4)
				path := []string{"/api/v1/users?sortBy=firstSeen", "/api/v1/users?sortBy=totalDeposited", "/api/v1/partner/stats?",
					"/api/v1/queues/withdrawals?"}[which] + query
				request := httptest.NewRequest("GET", path, nil)
				request.Header.Set("x-api-key", key)
				rec := httptest.NewRecorder()
				w.Client.Handler.ServeHTTP(rec, request)
				if rec.Code == 503 || rec.Code == 400 && query != "" { // the block may just have been retracted
					refused.Add(1)
					continue
				}
				if rec.Code != 200 {
					t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
					return
				}
				seq, _ := strconv.ParseUint(rec.Header().Get("X-Indexed-Seq"), 10, 64)
				block, _ := strconv.ParseUint(rec.Header().Get("X-Indexed-Block"), 10, 64)
				want, body, got := h.at(seq, block), readtest.Decode(t, rec.Body.Bytes()), ""
				var expected int
				switch which {
				case 0, 1:
					got, expected = fmt.Sprint(body["meta"].(object)["total"]), want.users
				case 2:
					got, expected = fmt.Sprint(body["data"].(object)["totalDeposits"]), want.seven
				case 3:
					got, expected = fmt.Sprint(body["meta"].(object)["total"]), want.queued
				}
				if got != fmt.Sprint(expected) {
					t.Errorf("%s at seq %d, block %d: %s, should be %d", path, seq, block, got, expected)
				}
				asked.Add(1)
				if query != "" {
					past.Add(1)
				}
			}
		})
	}
	for n := 0; n < 12 || asked.Load() < 50; n++ {
		h.mu.Lock()
		if n%2 == 1 { // retract some blocks, and append as many others and one more
			fork := head - uint64(1+random.IntN(4))
			h.log.Retract(fork)
			for b := fork + 1; b <= head; b++ {
				for _, f := range unit(b) {
					h.log.Add(f, 0)
				}
			}
		}
		head++
		h.log.Append(unit(head)...)
		now := &readtest.Log{ChainID: h.log.ChainID, Entries: h.log.Entries}
		h.mu.Unlock()
		w.g.WriteEvents(now)
		if n%4 == 3 { // the lists are written late
			before := asked.Load()
			wait.For(t, "5 responses meanwhile", func() bool { return asked.Load() >= before+5 })
		}
		w.g.WriteLists(now)
	}
	stop()
	readers.Wait()
	<-watching
	if past.Load() == 0 || refused.Load() > asked.Load() {
		t.Errorf("%d responses, %d about past blocks, %d rejected", asked.Load(), past.Load(), refused.Load())
	}
}
