package query

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/webhook"
)

// newFixture is a world with a small chain that shows every state there is,
// written out by hand: blocks 3 to 11, of which 10 and 11 were reorganised.
func newFixture(t testing.TB, change ...func(*Config)) *world {
	w := newWorld(t, change...)
	w.fill()
	return w
}

func tx(n byte) (h common.Hash) { h[0], h[31] = 0xee, n; return h }

func (w *world) fill() {
	l := w.ledger
	block := func(number uint64) fact { return fact{kind: aBlock, block: number} }
	l.append(vaultMeta(vaultB, "Beta", 2))
	l.append(vaultMeta(vaultA, "Alpha", 1))
	l.append(
		fact{kind: aNav, vault: vaultA, price: 1_000_000_000_000_000_000, assets: 1000, supply: 1000, block: 3, index: 0, tx: tx(1)}, block(3))
	l.append(
		fact{kind: aDeposit, vault: vaultA, user: alice, other: router, partner: 7, id: 1, assets: 100, shares: 99, block: 5, index: 2, tx: tx(2)},
		fact{kind: aDeposit, vault: vaultA, user: bob, other: bob, id: 2, assets: 250, shares: 249, block: 5, index: 4, tx: tx(3)}, block(5))
	l.append(fact{kind: aDeposit, vault: vaultB, user: alice, other: router, partner: 8, id: 1, assets: 70, shares: 70, block: 6, index: 0, tx: tx(4)}, block(6))
	l.append(
		fact{kind: aRequest, vault: vaultA, user: alice, other: carol, id: 0, assets: 44, shares: 40, expires: uint64(blockTime(9)), block: 7, index: 0, tx: tx(5)},
		fact{kind: aRequest, vault: vaultA, user: bob, other: bob, partner: 7, id: 1, assets: 60, shares: 55, block: 7, index: 1, tx: tx(6)}, block(7))
	l.append(
		fact{kind: aFunding, vault: vaultA, user: bob, id: 1, assets: 61, block: 8, index: 0, tx: tx(7)},
		fact{kind: aSweep, vault: vaultA, id: 1, to: 1, assets: 100, block: 8, index: 3, tx: tx(8)}, block(8))
	l.append(
		fact{kind: aRequest, vault: vaultA, user: carol, other: carol, id: 2, assets: 10, shares: 9, block: 9, index: 0, tx: tx(9)},
		fact{kind: aRequest, vault: vaultB, user: alice, other: alice, id: 0, assets: 30, shares: 30, expires: uint64(blockTime(99)), block: 9, index: 1, tx: tx(10)},
		fact{kind: aRequest, vault: vaultA, user: bob, other: bob, id: 3, assets: 5, shares: 5, block: 9, index: 2, tx: tx(11)}, block(9))
	ten := []fact{
		{kind: aCancel, vault: vaultA, user: carol, id: 2, block: 10, index: 0, tx: tx(12)},
		{kind: aFunding, vault: vaultA, user: bob, id: 3, assets: 6, block: 10, index: 1, tx: tx(13)},
		{kind: aClaim, vault: vaultA, user: bob, other: bob, id: 3, assets: 6, block: 10, index: 2, tx: tx(14)},
		{kind: aNav, vault: vaultA, price: 1_050_000_000_000_000_000, assets: 1050, supply: 1000, block: 10, index: 3, tx: tx(15)}, block(10)}
	l.append(ten...)
	l.append(
		fact{kind: aDeposit, vault: vaultA, user: nobody, other: router, partner: 7, id: 3, assets: 999_999, shares: 1, block: 11, index: 0, tx: tx(16)},
		fact{kind: aFunding, vault: vaultB, user: alice, id: 0, assets: 30, block: 11, index: 1, tx: tx(17)}, block(11))
	// Back to 9, then the same block 10 again and another block 11.
	l.retract(9)
	for _, f := range ten {
		l.add(f, 0)
	}
	l.append(
		fact{kind: aDeposit, vault: vaultA, user: carol, other: router, partner: 7, id: 3, assets: 30, shares: 29, block: 11, index: 0, tx: tx(18)}, block(11))
	w.publish()
}

// exec runs SQL in the test's Postgres.
func (w *world) exec(format string, args ...any) {
	w.t.Helper()
	if _, err := w.pool.Exec(context.Background(), fmt.Sprintf(format, args...)); err != nil {
		w.t.Fatal(err)
	}
}

// deliveries gives partner 7 a URL, an open breaker, four events and a test event.
func (w *world) deliveries() {
	w.exec(`UPDATE endpoint SET url = 'https://seven.example/hook', updated_at = '2024-01-01T00:00:00Z' WHERE partner_id = 7`)
	w.exec(`INSERT INTO breaker (partner_id, endpoint_version, url, state, opened_at, open_until, open_ms) VALUES (7, 1, 'https://seven.example/hook', 'open', '2024-01-02T00:00:00Z', '2024-01-02T00:00:05Z', 5000)`)
	for i, state := range []string{"delivered", "failed", "pending", "no_endpoint"} {
		finished := "NULL"
		if state == "delivered" || state == "failed" {
			finished = fmt.Sprintf("'2024-01-02T00:0%d:01Z'", i)
		}
		body := storedEvent(i + 1)
		w.exec(`INSERT INTO delivery (event_id, partner_id, sequence, type, body, state, attempts, due_at, created_at, finished_at)
			VALUES ('00000000-0000-5000-8000-00000000000%d', 7, %d, 'deposit.referral', '\x%x', '%s', 1, '2024-01-03T00:00:00Z', '2024-01-02T00:00:00Z', %s)`, i+1, i+1, body, state, finished)
	}
	w.exec(`INSERT INTO delivery (event_id, partner_id, sequence, type, body, state) VALUES ('00000000-0000-5000-8000-0000000000ff', 8, 1, 'deposit.referral', '%s', 'pending')`, eventBody(8, 1))
	w.exec(`INSERT INTO delivery (event_id, partner_id, type, body, state, created_at, due_at) VALUES ('00000000-0000-5000-8000-0000000000aa', 7, 'webhook.test', '{}', 'parked', '2024-01-01T00:00:00Z', '2024-01-01T00:00:09Z')`)
	attempt := `INSERT INTO attempt (event_id, number, url, endpoint_version, started_at, duration_ms, status, error)
		VALUES ('00000000-0000-5000-8000-00000000000%d', %d, 'https://seven.example/hook', 2, '2024-01-02T00:0%d:00.25Z', 17, %s, %s)`
	w.exec(attempt, 1, 1, 0, "200", "NULL")
	w.exec(attempt, 2, 1, 1, "500", "NULL")
	w.exec(attempt, 2, 2, 2, "NULL", "'timeout'")
}

// eventBody is a webhook's body: an event of the fixture's chain.
func eventBody(partner uint32, n int) []byte {
	at := webhook.FormatTime(uint64(blockTime(5)))
	e := webhook.Envelope{ID: webhook.EventID(testChain, tx(byte(n)), 2, webhook.DepositReferral, partner), Version: webhook.Version,
		Type: webhook.DepositReferral, CreatedAt: at, PartnerID: partner,
		Data: webhook.DepositData{VaultAddress: vaultA.Hex(), UserAddress: alice.Hex(), Assets: "100", Shares: "99", TxHash: tx(byte(n)).Hex(), BlockNumber: "5", LogIndex: 2, Timestamp: at}}
	if n%2 == 0 {
		e.ID, e.Type = webhook.EventID(testChain, tx(byte(n)), 2, webhook.WithdrawalReferral, partner), webhook.WithdrawalReferral
		e.Data = webhook.WithdrawalData{VaultAddress: vaultA.Hex(), UserAddress: alice.Hex(), Shares: "40", AssetsEstimate: "44", RequestIndex: "0", TxHash: tx(byte(n)).Hex(), BlockNumber: "5", LogIndex: 2, Timestamp: at}
	}
	body, err := e.Body()
	if err != nil {
		panic(err)
	}
	return body
}

// storedEvent is an event in bytes that no JSON encoder of ours would write.
func storedEvent(n int) string {
	return strings.Replace(strings.Replace(string(eventBody(7, n)), `"version":1`, `"version" :  1`, 1), `"partnerId":7`, `"\u0070artnerId":7`, 1)
}
