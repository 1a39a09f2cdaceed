package query

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"
)

// counter is a way to the engine that counts the questions, and those of them that
// nobody waits for.
type counter struct {
	driver.Conn
	asked, ahead atomic.Int64
}

func (c *counter) Select(ctx context.Context, to any, question string, args ...any) error {
	c.asked.Add(1)
	if isReadAhead(ctx) {
		c.ahead.Add(1)
	}
	return c.Conn.Select(ctx, to, question, args...)
}

// TestNewsAreReadOnce: whatever is prepared of a head, a block is a question for how
// far the tables are, one for what the log says, and one for each table that has
// more to say of it.
func TestNewsAreReadOnce(t *testing.T) {
	w := newFixture(t)
	w.cfg.CacheBytes = 0
	seven := w.partner(7, "Seven")
	engine := &counter{Conn: w.conn}
	w.conn = engine
	w.ledger.append(fact{kind: aBlock, block: 12})
	w.publish()
	for _, path := range []string{"/api/v1/vaults?asOfBlock=9", "/api/v1/users?asOfBlock=9", "/api/v1/vaults/" + vaultA.Hex(), "/api/v1/settlement/summary", "/api/v1/partner/stats",
		"/api/v1/users", "/api/v1/users?sortBy=totalDeposited", "/api/v1/users?sortBy=totalWithdrawn"} {
		w.get(path, "x-api-key", seven).data(t)
	}
	block := uint64(12)
	next := func(name string, want int, facts ...fact) {
		t.Helper()
		block++
		for i := range facts {
			facts[i].vault, facts[i].user, facts[i].other, facts[i].block, facts[i].index = vaultA, carol, carol, block, uint32(i)
			facts[i].tx = common.BigToHash(common.Big3)
		}
		w.ledger.append(append(facts, fact{kind: aBlock, block: block})...)
		engine.asked.Store(0)
		w.publish()
		same(t, name, int(engine.asked.Load()), want)
		o := w.ledger.at(w.ledger.seq(), 1<<62)
		asked := engine.asked.Load()
		same(t, name+": vaults", w.get("/api/v1/vaults").data(t), o.vaultList())
		same(t, name+": settlement", w.get("/api/v1/settlement/summary").data(t), o.settlement())
		same(t, name+": partner", w.get("/api/v1/partner/stats", "x-api-key", seven).data(t), o.partnerStats(7, "Seven"))
		same(t, name+": questions of these answers", engine.asked.Load(), asked)
	}
	next("an empty block", 2)
	next("a request", 2, fact{kind: aRequest, id: 40, assets: 5, shares: 5}, fact{kind: aRequest, id: 41, assets: 6, shares: 5, expires: 1 << 40})
	next("its funding and its end", 2, fact{kind: aFunding, id: 40, assets: 5}, fact{kind: aCancel, id: 41})
	next("deposits", 3, fact{kind: aDeposit, id: 40, assets: 5, shares: 5, partner: 7}, fact{kind: aDeposit, id: 41, assets: 5, shares: 5})
	next("a NAV", 3, fact{kind: aNav, price: 3, assets: 4, supply: 5})
	next("a sweep of more deposits than there are", 4, fact{kind: aSweep, id: 1, to: 60})
	next("one of these", 3, fact{kind: aDeposit, id: 45, assets: 5, shares: 5})
	same(t, "volumes of one partner", len(volumes([]newDeposit{{Sign: 1, depositRow: depositRow{Partner: 7, Assets: common.Big1}}, {Sign: 1, depositRow: depositRow{Partner: 8, Assets: common.Big1}}}, []uint32{7})), 1)
	next("all of these", 4, fact{kind: aNav, price: 3, assets: 4, supply: 6}, fact{kind: aDeposit, id: 42, assets: 5, shares: 5, partner: 8}, fact{kind: aClaim, id: 40, assets: 5})
	w.ledger.retract(block - 1)
	next("these taken back", 8) // the newest block, the first one and the NAVs are looked for
}
