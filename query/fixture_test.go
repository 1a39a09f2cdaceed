package query

import (
	"fmt"
	"os"
	"strings"

	"github.com/navlog/navlog/schemas/webhook"
)

// certificates stores certificates of partner 7 for its URL in deliveries, with a key that cannot be decrypted.
func (w *world) certificates() {
	w.t.Helper()
	pem := func(name string) string {
		text, err := os.ReadFile("testdata/certificates/" + name + ".pem")
		if err != nil {
			w.t.Fatal(err)
		}
		return string(text)
	}
	w.exec(`INSERT INTO endpoint_certificates (partner_id, url, authorities, authorities_expire, client, client_key, client_expires, client_fingerprint, changed_at)
		VALUES (7, 'https://seven.example/hook', '%s', '2033-11-01', '%s', 'sealed', '2025-11-01', '', '2024-01-01T00:00:00Z')`, pem("authority"), pem("client"))
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
	w.exec(`UPDATE delivery SET corrected_at = '2024-01-02T00:05:00Z', revision = 1 WHERE partner_id = 7 AND sequence = 1`)
	w.exec(`INSERT INTO delivery (event_id, partner_id, sequence, type, body, state) VALUES ('00000000-0000-5000-8000-0000000000ff', 8, 1, 'deposit.referral', '%s', 'pending')`, eventBody(8, 1))
	w.exec(`INSERT INTO delivery (event_id, partner_id, type, body, state, created_at, due_at) VALUES ('00000000-0000-5000-8000-0000000000aa', 7, 'webhook.test', '{}', 'parked', '2024-01-01T00:00:00Z', '2024-01-01T00:00:09Z')`)
	attempt := `INSERT INTO attempt (event_id, number, url, endpoint_version, started_at, duration_ms, status, error)
		VALUES ('00000000-0000-5000-8000-00000000000%d', %d, 'https://seven.example/hook', 2, '2024-01-02T00:0%d:00.25Z', 17, %s, %s)`
	w.exec(attempt, 1, 1, 0, "200", "NULL")
	w.exec(attempt, 2, 1, 1, "500", "NULL")
	w.exec(attempt, 2, 2, 2, "NULL", "'timeout'")
}

// eventBody returns a webhook's body: an event of the fixture's chain.
func eventBody(partner uint32, n int) []byte {
	at := webhook.FormatTime(uint64(blockTime(5)))
	e := webhook.Envelope{ID: webhook.EventID(testChain, tx(byte(n)), 2, webhook.DepositReferral, partner),
		Version: webhook.Version,
		Type:    webhook.DepositReferral, CreatedAt: at, PartnerID: partner,
		Data: webhook.DepositData{VaultAddress: vaultA.Hex(), UserAddress: alice.Hex(), Assets: "100", Shares: "99",
			TxHash: tx(byte(n)).Hex(), BlockNumber: "5", LogIndex: 2, Timestamp: at}}
	if n%2 == 0 {
		e.ID, e.Type = webhook.EventID(testChain, tx(byte(n)), 2, webhook.WithdrawalReferral, partner),
			webhook.WithdrawalReferral
		e.Data = webhook.WithdrawalData{VaultAddress: vaultA.Hex(), UserAddress: alice.Hex(), Shares: "40",
			AssetsEstimate: "44", RequestIndex: "0", TxHash: tx(byte(n)).Hex(), BlockNumber: "5", LogIndex: 2, Timestamp: at}
	}
	body, err := e.Body()
	if err != nil {
		panic(err)
	}
	return body
}

// storedEvent returns an event in bytes that none of our JSON encoders would write.
func storedEvent(n int) string {
	return strings.Replace(strings.Replace(string(eventBody(7, n)), `"version":1`, `"version" :  1`, 1), `"partnerId":7`,
		`"\u0070artnerId":7`, 1)
}
