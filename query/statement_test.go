package query

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/statement"
	"github.com/navlog/navlog/schemas/webhook"
)

const statementPath = "/api/v1/partner/statement?from=2023-11-14&to="

// A statement includes only its own partner's events, within the time range, of final blocks; retracted events are in
// none.
func TestStatement(t *testing.T) {
	w := newFixture(t)
	seven, eight := w.partner(7, "Seven"), w.partner(8, "Eight")
	end11 := w.final(11)
	ids := func(key, to string) (events []uuid.UUID, d *statement.Document) {
		t.Helper()
		r := w.get(statementPath+to, "x-api-key", key)
		if r.Code != 200 {
			t.Fatalf("%d %s", r.Code, r.Body)
		}
		if disposition := r.Header().Get("Content-Disposition"); !strings.HasPrefix(disposition,
			`attachment; filename="statement-31337-`) {
			t.Errorf("Content-Disposition: %s", disposition)
		}
		d, err := statement.Parse(r.Body.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if !d.Signed() {
			t.Error("the signature is not that of the key")
		}
		for _, e := range d.Events {
			events = append(events, e.ID)
		}
		return events, d
	}
	event := func(n byte, index uint32, kind string, partner uint32) uuid.UUID {
		return webhook.EventID(testChain, tx(n), index, kind, partner)
	}
	end := "2023-11-14T22:15:31Z" // a second before block 11
	got, d := ids(seven, end)
	same(t, "partner 7", got,
		[]uuid.UUID{event(2, 2, webhook.DepositReferral, 7), event(6, 1, webhook.WithdrawalReferral, 7)})
	same(t, "header", d.Header,
		statement.Header{Statement: "navlog/1", ChainID: testChain, PartnerID: 7, From: "2023-11-14T00:00:00.000Z",
			To:     "2023-11-14T22:15:31.000Z",
			Vaults: []statement.Vault{{Address: vaultA.Hex(), StartBlock: "1"}, {Address: vaultB.Hex(), StartBlock: "2"}},
			Block:  statement.Block{Number: "11", Hash: "0x" + strings.Repeat("0", 64), Timestamp: "2023-11-14T22:15:32.000Z"}})
	got, _ = ids(eight, end)
	same(t, "partner 8", got, []uuid.UUID{event(4, 0, webhook.DepositReferral, 8)})
	got, _ = ids(seven, "2023-11-14T22:14:44Z") // the time of block 7, included
	same(t, "up to block 7", got,
		[]uuid.UUID{event(2, 2, webhook.DepositReferral, 7), event(6, 1, webhook.WithdrawalReferral, 7)})
	got, _ = ids(seven, "2023-11-14T22:14:43.9Z")
	same(t, "up to before block 7", got, []uuid.UUID{event(2, 2, webhook.DepositReferral, 7)})

	// If a block was mined twice, the events of the second one count.
	end11()
	w.chain.Append(readtest.BlockRecord(12))
	w.publish()
	defer w.final(12)()
	got, _ = ids(seven, "2023-11-14T22:15:32Z") // the time of block 11
	same(t, "up to block 11", got,
		[]uuid.UUID{event(2, 2, webhook.DepositReferral, 7), event(6, 1, webhook.WithdrawalReferral, 7),
			event(18, 0, webhook.DepositReferral, 7)})
}

// A request that cannot be fulfilled is rejected, with advice on what to do.
func TestStatementRefusals(t *testing.T) {
	withoutDetector(t)
	w := newFixture(t)
	key := w.partner(7, "Seven")
	ask := func(query string, status int, part string) {
		t.Helper()
		r := w.get("/api/v1/partner/statement"+query, "x-api-key", key)
		if r.Code != status || !strings.Contains(r.Body.String(), part) {
			t.Errorf("%s: %d %s; want %d and %q", query, r.Code, r.Body, status, part)
		}
	}
	ask("?from=2023-11-14&to=2023-11-14T22:14:44Z", 503, "Which blocks are final is not known")
	end := w.final(9)
	ask("", 400, `"to","reason":"must be given`)
	ask("?from=2023-11-15&to=2023-11-14", 400, "must not be after to")
	ask("?from=1700000000001&to=1700000000999", 400,
		"must not be after 2023-11-14T22:13:20.000Z, the last whole second up to to")
	ask("?from=1700000000001&to=1700000001000", 200, `"from":"2023-11-14T22:13:21.000Z","to":"2023-11-14T22:13:21.000Z"`)
	ask("?from=0001-01-01&to=2023-11-14", 400, `"from","reason":"must not be before 1970`)
	for range 8 { // in this order each time
		ask("?from=1900-01-01&to=1969-12-31", 400,
			`"from","reason":"must not be before 1970"},{"field":"to","reason":"must not be before 1970`)
	}
	ask("?from=2023-11-14&to=2023-11-14T22:15:09Z", 400,
		"must be before 2023-11-14T22:15:08.000Z, the time of the newest block that statements are made of")
	// another block may have that time
	ask("?from=2023-11-14&to=2023-11-14T22:15:08Z", 400, "must be before 2023-11-14T22:15:08.000Z")
	ask("?from=2023-11-14&to=2023-11-14T22:15:07Z", 200, `"root"`)
	end()
	// The report is about a log that the read models do not have yet: they may still be on another branch.
	seq := w.watcher.Snapshot().Seq
	end = w.finalUpTo(9, seq+1)
	ask("?from=2023-11-14&to=2023-11-14T22:15:07Z", 503, "The read models are behind the log")
	end()
	end = w.finalUpTo(9, seq)
	ask("?from=2023-11-14&to=2023-11-14T22:15:07Z", 200, `"root"`)
	end()
	// While ingest does not continue the log, it reports what it knew earlier: a final block may no longer be part of
	// the chain.
	for _, state := range []string{"frozen", "starting", "fenced"} {
		end = w.setIngestState(state, 9, seq)
		ask("?from=2023-11-14&to=2023-11-14T22:15:07Z", 503, "Which blocks are final is not known")
		end()
	}
	end = w.setIngestState("backfilling", 9, seq, `"backfill":{"block":8}`)
	ask("?from=2023-11-14&to=2023-11-14T22:15:07Z", 503, "still being read for some vaults")
	end()
	end = w.setIngestState("backfilling", 9, seq) // at its end: all vaults are read up to the final block
	ask("?from=2023-11-14&to=2023-11-14T22:15:07Z", 200, `"root"`)
	end()
	end = w.setIngestState("backfilling", 9, seq, `"backfill":{"block":9}`)
	ask("?from=2023-11-14&to=2023-11-14T22:15:07Z", 200, `"root"`)
	end()
	defer w.final(2)()
	ask("?from=2023-11-14&to=2023-11-14T22:14:44Z", 503, "Which blocks are final is not known")
	if r := w.get(statementPath + "2023-11-15"); r.Code != http.StatusUnauthorized {
		t.Errorf("without a key: %d", r.Code)
	}
	w.serve(func(c *Config) { c.StatementKey = "" })
	w.look()
	ask("?from=2023-11-14&to=2023-11-14T22:14:44Z", 404, "no signing key")
	if r := w.get("/.well-known/navlog-statements"); !strings.Contains(r.Body.String(), `"publicKeys":[]`) {
		t.Errorf("the keys of a program without one: %s", r.Body)
	}
	c := testConfig()
	c.StatementKey = "c2hvcnQ="
	if err := c.Validate(); err == nil ||
		!strings.Contains(err.Error(), "NAVLOG_HTTP_STATEMENT_KEY must be 32 random bytes") {
		t.Errorf("a short key: %v", err)
	}
}

// After each block the read models are behind ingest for a moment. A statement then uses the report about the log
// that they have, unless ingest has since reported that it does not follow, or another log.
func TestStatementWhileReadModelsAreBehind(t *testing.T) {
	w := newFixture(t)
	key := w.partner(7, "Seven")
	seq := w.watcher.Snapshot().Seq
	now := time.Now()
	w.watcher.Now = func() time.Time { return now }
	defer w.finalUpTo(9, seq)()
	reports := func(state string, block, seq uint64, log int) {
		t.Helper()
		status := fmt.Sprintf(`{"state":"%s","finalBlock":%d,"seq":%d,"logId":"%032x"}`, state, block, seq, log)
		w.exec(`UPDATE program_status SET at = now(), status = '%s' WHERE instance = 'final'`, status)
		w.look()
	}
	ask := func(what, to string, status int, part string) {
		t.Helper()
		r := w.get("/api/v1/partner/statement?from=2023-11-14&to="+to, "x-api-key", key)
		if r.Code != status || !strings.Contains(r.Body.String(), part) {
			t.Errorf("%s: %d %s; want %d and %q", what, r.Code, r.Body, status, part)
		}
	}
	const below, above = "2023-11-14T22:15:07Z", "2023-11-14T22:15:09Z" // of the time of block 9
	reports("following", 12, seq+3, 0)
	ask("ingest is ahead", below, 200, `"root"`)
	ask("a later block is final", above, 400, "must be before 2023-11-14T22:15:08.000Z")
	reports("following", 13, seq+5, 0)
	ask("ingest is further ahead", below, 200, `"root"`)
	now = now.Add(state.TrustedFor + time.Second)
	reports("following", 13, seq+6, 0)
	ask("for longer than a report is trusted", below, 503, "The read models are behind the log")
	reports("following", 9, seq, 0)
	reports("frozen", 9, seq, 0)
	ask("a frozen log", below, 503, "Which blocks are final is not known")
	reports("following", 12, seq+3, 0)
	ask("a log that was frozen", below, 503, "The read models are behind the log")
	reports("following", 9, seq, 0)
	reports("following", 12, seq+3, 1)
	ask("another log", below, 503, "ingest reports on another log")
	reports("following", 12, seq+3, 0)
	ask("after another log", below, 503, "The read models are behind the log")
}

// A statement that takes several reads contains each event exactly once, in chain order, even if a read ends in the
// middle of a block.
func TestLongStatement(t *testing.T) {
	if testing.Short() {
		t.Skip("checks thousands of events one after the other")
	}
	w := newWorld(t)
	key := w.partner(7, "Seven")
	w.chain.Append(readtest.VaultRecord(vaultA, "Alpha", 1))
	const blocks, each = 3, 2300
	id := uint64(0)
	for block := uint64(1); block <= blocks; block++ {
		var facts []fact
		for n := range uint32(each) {
			id++
			f := fact{Kind: readtest.Deposit, Vault: vaultA, User: alice, Other: router, Partner: 7, ID: id, Assets: int64(id),
				Shares: 1, Block: block, Index: n, Tx: tx(byte(block)), Hash: common.Hash{31: byte(block)}}
			if n%2 == 1 {
				f.Kind = readtest.Request
			}
			facts = append(facts, f)
		}
		w.chain.Append(append(facts, readtest.BlockRecord(block))...)
	}
	w.chain.Append(readtest.BlockRecord(blocks + 1))
	w.publish()
	defer w.final(blocks + 1)()
	r := w.get(statementPath+fmt.Sprint(blockTime(blocks)), "x-api-key", key)
	d, err := statement.Parse(r.Body.Bytes())
	if err != nil || !d.Signed() || len(d.Events) != blocks*each {
		t.Fatalf("%d, %v, %d events", r.Code, err, len(d.Events))
	}
	for i, e := range d.Events {
		kind := webhook.DepositReferral
		if i%2 == 1 {
			kind = webhook.WithdrawalReferral
		}
		if want := webhook.EventID(testChain, tx(byte(1+i/each)), uint32(i%each), kind, 7); e.ID != want {
			t.Fatalf("event %d is %s, should be %s", i, e.ID, want)
		}
		if want := (common.Hash{31: byte(1 + i/each)}).Hex(); e.BlockHash != want {
			t.Fatalf("event %d is in block %s, should be in %s", i, e.BlockHash, want)
		}
	}
	if !bytes.Contains(d.Body,
		fmt.Appendf(nil, `"deposits":%d,"assets":"%d"`, blocks*each/2, uint64(blocks*each/2)*uint64(blocks*each/2))) {
		// 1 + 3 + 5 + ...
		t.Errorf("the totals are wrong: %s", d.Body[len(d.Body)-300:])
	}
}
