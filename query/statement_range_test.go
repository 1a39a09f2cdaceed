package query

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/statement"
)

// asking requests statements of partner 7 by blocks: from the time of one to the time of another.
type asking struct {
	*world
	key string
}

func (s asking) ask(from, to uint64, header ...string) reply {
	s.t.Helper()
	path := fmt.Sprintf("/api/v1/partner/statement?from=%d&to=%d", blockTime(from), blockTime(to))
	return s.get(path, append(header, "x-api-key", s.key)...)
}

func (s asking) signed(from, to uint64) *statement.Document {
	s.t.Helper()
	r := s.ask(from, to)
	d, err := statement.Parse(r.Body.Bytes())
	if err != nil || !d.Signed() {
		s.t.Fatalf("blocks %d to %d: %d %v %s", from, to, r.Code, err, r.Body)
	}
	return d
}

func (s asking) refused(from, to uint64, status int, parts ...string) {
	s.t.Helper()
	r := s.ask(from, to)
	for _, part := range parts {
		if r.Code != status || !strings.Contains(r.Body.String(), part) {
			s.t.Errorf("blocks %d to %d: %d %s; want %d and %q", from, to, r.Code, r.Body, status, part)
		}
	}
}

func listed(d *statement.Document) (out []string) {
	for _, v := range d.Header.Vaults {
		out = append(out, v.Address)
	}
	return out
}

func depositOf(vault common.Address, block uint64) fact {
	return fact{
		Kind: readtest.Deposit, Vault: vault, User: alice, Other: router, Partner: 7, ID: block, Assets: int64(block),
		Shares: 1,
		Block:  block, Index: uint32(vault[0]), Tx: tx(byte(block)),
	}
}

// removal returns the record that removes a vault.
func removal(vault common.Address, start uint64) fact {
	return fact{Kind: readtest.Vault, Meta: &event.Vault{Address: vault.Bytes(), StartBlock: start, Removed: true}}
}

// passed marks a fact that the generation is built without.
func passed(f fact) fact { f.Passed = true; return f }

// A statement of a range has the same bytes whenever it is requested: after more blocks, after a vault has joined
// with older events, and after one has left. Once the read model has no data of one of its vaults, the response is an
// error that explains this.
func TestStatementOfARangeStaysTheSame(t *testing.T) {
	withoutDetector(t)
	w := asking{world: newWorld(t)}
	w.key = w.partner(7, "Seven")
	history := func(l *readtest.Log, withoutA bool) {
		a := func(f fact) fact {
			if withoutA {
				return passed(f)
			}
			return f
		}
		l.Append(a(readtest.VaultRecord(vaultA, "Alpha", 1)))
		l.Append(readtest.VaultRecord(vaultB, "Beta", 2))
		for block := uint64(1); block <= 4; block++ {
			l.Append(a(depositOf(vaultA, block)), readtest.BlockRecord(block))
		}
	}
	history(w.chain, false)
	w.publish()
	end := w.final(4)
	w.refused(1, 4, 400, "must be before") // another block may have the time of block 4
	first := w.ask(1, 3)
	if d := w.signed(1, 3); len(d.Events) != 3 || d.Header.Block.Number != "4" {
		t.Fatalf("%d events at %+v", len(d.Events), d.Header.Block)
	}
	same := func(when string) {
		t.Helper()
		if r := w.ask(1, 3); !bytes.Equal(r.Body.Bytes(), first.Body.Bytes()) {
			t.Errorf("%s the statement differs: %d\n%s\nwant\n%s", when, r.Code, r.Body, first.Body)
		}
	}
	end()
	for block := uint64(5); block <= 6; block++ {
		w.chain.Append(depositOf(vaultB, block), readtest.BlockRecord(block))
	}
	w.publish()
	end = w.final(6)
	same("after more blocks")
	end()

	// C joins late, with events in the range and a record about an old block.
	w.chain.Append(readtest.VaultRecord(vaultC, "Gamma", 2))
	w.chain.Append(depositOf(vaultC, 2), readtest.BlockRecord(5))
	w.chain.Append(readtest.BlockRecord(7))
	w.publish()
	end = w.final(7)
	same("after a vault has joined")
	if got := listed(w.signed(1, 6)); !equal(got, vaultA, vaultB, vaultC) {
		t.Errorf("after the vault has joined it is missing in %v", got)
	}
	end()

	// A leaves after block 7.
	w.chain.Append(removal(vaultA, 1))
	w.chain.Append(readtest.BlockRecord(8))
	w.chain.Append(depositOf(vaultB, 9), readtest.BlockRecord(9))
	w.chain.Append(readtest.BlockRecord(10))
	w.publish()
	end = w.final(10)
	same("after a vault has left")
	if got := listed(w.signed(1, 7)); !equal(got, vaultA, vaultB, vaultC) {
		t.Errorf("up to the block at which it left, the vault is missing in %v", got)
	}
	if got := listed(w.signed(8, 9)); !equal(got, vaultB, vaultC) {
		t.Errorf("the vault left before the range, but the statement has %v", got)
	}
	w.refused(1, 8, 400, vaultA.Hex(), "left", "2023-11-14T22:14:44.000Z") // the time of block 7
	end()

	// A returns after block 10: earlier ranges do not include it again.
	w.chain.Append(readtest.VaultRecord(vaultA, "Alpha", 1))
	w.chain.Append(depositOf(vaultA, 11), readtest.BlockRecord(11))
	w.chain.Append(readtest.BlockRecord(12))
	w.publish()
	defer w.final(12)()
	same("after the vault has come back")
	if got := listed(w.signed(8, 9)); !equal(got, vaultB, vaultC) {
		t.Errorf("the vault was absent, but the statement has %v", got)
	}
	w.refused(1, 8, 400, vaultA.Hex())
	if got := listed(w.signed(1, 11)); !equal(got, vaultA, vaultB, vaultC) {
		t.Errorf("the vault is back, but the statement has %v", got)
	}
}

// A vault leaves while ingest reads ranges of old blocks, so that the log does not have the block after it: another
// block may have the time of the last one. The error names a range whose statement can be made.
func TestStatementOfAVaultThatLeftDuringABackfill(t *testing.T) {
	withoutDetector(t)
	w := asking{world: newWorld(t)}
	w.key = w.partner(7, "Seven")
	w.chain.Append(readtest.VaultRecord(vaultA, "Alpha", 1), readtest.VaultRecord(vaultB, "Beta", 1))
	w.chain.Append(depositOf(vaultA, 1), readtest.BlockRecord(2))
	w.chain.Append(depositOf(vaultA, 3), readtest.BlockRecord(4))
	w.chain.Append(removal(vaultA, 1))
	w.chain.Append(depositOf(vaultB, 7), readtest.BlockRecord(8))
	w.chain.Append(readtest.BlockRecord(10))
	w.publish()
	defer w.final(10)()
	for _, to := range []uint64{7, 4} {
		w.refused(1, to, 400, "must be before 2023-11-14T22:14:08.000Z, or from after it: vault "+vaultA.Hex()+" left")
	}
	if d := w.signed(1, 3); len(d.Events) != 2 || !equal(listed(d), vaultA, vaultB) {
		t.Errorf("before block 4: %d events of %v", len(d.Events), listed(d))
	}
	if d := w.signed(5, 7); len(d.Events) != 1 || !equal(listed(d), vaultB) {
		t.Errorf("after block 4: %d events of %v", len(d.Events), listed(d))
	}
}

func equal(got []string, want ...common.Address) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range want {
		if got[i] != want[i].Hex() {
			return false
		}
	}
	return true
}

// A generation built without a vault has none of its events: a statement that includes the vault is rejected, not
// shortened. If the generation lacks a new vault, the statement becomes available later.
func TestStatementOfAVaultThatTheReadModelDoesNotHave(t *testing.T) {
	withoutDetector(t)
	for _, left := range []bool{true, false} {
		w := asking{world: newWorld(t)}
		w.key = w.partner(7, "Seven")
		w.chain.Append(passed(readtest.VaultRecord(vaultA, "Alpha", 1)))
		w.chain.Append(readtest.VaultRecord(vaultB, "Beta", 2))
		for block := uint64(1); block <= 4; block++ {
			w.chain.Append(passed(depositOf(vaultA, block)), readtest.BlockRecord(block))
		}
		if left {
			w.chain.Append(passed(removal(vaultA, 1)))
		}
		w.chain.Append(readtest.BlockRecord(5))
		w.chain.Append(readtest.BlockRecord(6))
		w.publish()
		end := w.final(6)
		if left {
			w.refused(1, 3, http.StatusBadRequest, "cannot be made any more", vaultA.Hex())
			if got := listed(w.signed(5, 5)); !equal(got, vaultB) {
				t.Errorf("after the vault left: %v", got)
			}
		} else {
			w.refused(1, 3, http.StatusServiceUnavailable, "no events of vault "+vaultA.Hex()+" yet")
		}
		end()
	}
}

// A vault that is still being read is in no statement of blocks that it lacks.
func TestStatementWaitsForALateVault(t *testing.T) {
	withoutDetector(t)
	w := asking{world: newWorld(t)}
	w.key = w.partner(7, "Seven")
	w.chain.Append(readtest.VaultRecord(vaultA, "Alpha", 1))
	w.chain.Append(readtest.BlockRecord(1))
	w.chain.Append(readtest.BlockRecord(2))
	w.chain.Append(readtest.VaultRecord(vaultB, "Beta", 1))
	for block := uint64(3); block <= 6; block++ {
		w.chain.Append(readtest.BlockRecord(block))
	}
	w.publish()
	late := func(covered int) string {
		return fmt.Sprintf(`"lateVaults":[{"address":"%s","coveredTo":%d}]`, vaultB.Hex(), covered)
	}
	end := w.setIngestState("following", 6, 0, late(3))
	w.refused(1, 4, http.StatusServiceUnavailable, "still being read for vault "+vaultB.Hex())
	if got := listed(w.signed(1, 1)); !equal(got, vaultA) { // it joined after this range
		t.Errorf("%v", got)
	}
	end()
	defer w.setIngestState("following", 6, 0, late(5))()
	if got := listed(w.signed(1, 4)); !equal(got, vaultA, vaultB) {
		t.Errorf("%v", got)
	}
}

// ingest's report only decides which blocks of the served log are final: a report about another log, or from the
// future, is ignored, and statements never include the newest blocks, whatever the report says.
func TestStatementsAreOfBlocksThatAreDeepEnough(t *testing.T) {
	withoutDetector(t)
	w := asking{world: newFixture(t, func(c *Config) { c.StatementConfirmations = 2 })}
	w.key = w.partner(7, "Seven")
	end := w.final(1_000_000)
	if d := w.signed(3, 8); d.Header.Block.Number != "9" {
		t.Errorf("the statement is made at block %s", d.Header.Block.Number)
	}
	w.refused(3, 9, 400, "must be before 2023-11-14T22:15:08.000Z") // block 9, of 11
	end()
	end = w.setIngestStatus(`"state":"following","finalBlock":9,"seq":1,"logId":"ffffffffffffffffffffffffffffffff"`)
	w.refused(3, 8, 503, "another log")
	end()
	end = w.setIngestStatus(`"state":"following","finalBlock":9,"seq":1`)
	w.refused(3, 8, 503, "another log")
	end()
	end = w.final(9)
	w.exec(`UPDATE program_status SET at = now() + interval '1 year' WHERE program = 'ingest'`)
	w.look()
	w.refused(3, 8, 503, "is not known")
	end()
	w.serve(func(c *Config) { c.StatementConfirmations = 100 })
	w.look()
	defer w.final(9)()
	w.refused(3, 8, 503, "100 blocks below")
	c := testConfig()
	c.StatementConfirmations = -1
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "http.statementConfirmations is -1") {
		t.Error(err)
	}
}

// The next key retires the previous one, which stays in the list and does not sign any more. A client that has the
// statement with the signature of the previous one gets the next one.
func TestStatementKeyIsRotated(t *testing.T) {
	w := asking{world: newFixture(t)}
	w.key = w.partner(7, "Seven")
	defer w.final(9)()
	keys := func() (current []string, retired map[string]bool) {
		t.Helper()
		data := w.get("/.well-known/navlog-statements").Data(t).(object)
		for _, k := range data["publicKeys"].([]any) {
			current = append(current, k.(string))
		}
		retired = map[string]bool{}
		for _, k := range data["keys"].([]any) {
			retired[k.(object)["publicKey"].(string)] = k.(object)["retiredAt"] != nil
		}
		return current, retired
	}
	first := w.signed(3, 7)
	tag := w.ask(3, 7).Header().Get("ETag")
	if r := w.ask(3, 7, "If-None-Match", tag); r.Code != http.StatusNotModified {
		t.Errorf("with the tag of the same key: %d", r.Code)
	}
	before, _ := keys()
	old := w.Query
	w.serve(func(c *Config) { c.StatementKey = strings.Repeat("A", 43) + "=" })
	w.look()
	second := w.signed(3, 7)
	if r := w.ask(3, 7, "If-None-Match", tag); r.Code != http.StatusOK || r.Header().Get("ETag") == tag {
		t.Errorf("with the tag of the previous key: %d, ETag %s", r.Code, r.Header().Get("ETag"))
	}
	if !bytes.Equal(first.Body, second.Body) || bytes.Equal(first.PublicKey, second.PublicKey) {
		t.Error("the next key does not sign the same bytes")
	}
	now, retired := keys()
	if len(before) != 1 || len(now) != 1 || before[0] == now[0] || len(retired) != 2 || !retired[before[0]] ||
		retired[now[0]] {
		t.Errorf("before %v, now %v, retired %v", before, now, retired)
	}
	// An instance that still has the old key does not sign.
	w.world.Query, w.Client = old, &readtest.Client{T: t, Watcher: old.watcher, Handler: old.Handler()}
	if r := w.ask(3, 7); r.Code != http.StatusServiceUnavailable || !strings.Contains(r.Body.String(), "is retired") {
		t.Errorf("with a retired key: %d %s", r.Code, r.Body)
	}
	if err := registry.UseStatementKey(t.Context(), w.pool, first.PublicKey); err == nil {
		t.Error("a retired key signs again")
	}
}

// A statement keeps a deposit that became void; the partner's list and totals leave it out from then on.
func TestStatementKeepsVoidDeposits(t *testing.T) {
	withoutDetector(t)
	w := asking{world: newWorld(t)}
	w.key = w.partner(7, "Seven")
	w.chain.Append(readtest.PresetRecord(t, vaultA, "Alpha", 1, "lagoon-v0.6"), readtest.BlockRecord(1))
	for block := uint64(2); block <= 3; block++ {
		d := depositOf(vaultA, block)
		d.Group = block
		w.chain.Append(d, readtest.BlockRecord(block))
	}
	w.chain.Append(fact{Kind: readtest.Void, Vault: vaultA, User: alice, Group: 3, Block: 4, Tx: tx(4)}, readtest.BlockRecord(4))
	w.chain.Append(readtest.BlockRecord(5))
	w.publish()
	defer w.final(5)()
	if d := w.signed(2, 4); len(d.Events) != 2 || !strings.Contains(string(d.Totals), `"deposits":2,"assets":"5"`) {
		t.Errorf("the statement has %d events, and the totals %s", len(d.Events), d.Totals)
	}
	for path, part := range map[string]string{
		"partner/stats":                           "\"totalDeposits\":1,\"totalVolume\":\"2\"",
		"partner/stats?asOfBlock=3":               "\"totalDeposits\":2,\"totalVolume\":\"5\"",
		"partner/deposits":                        "\"total\":1,",
		"partner/deposits?asOfBlock=3":            "\"total\":2,",
		"events?from=" + fmt.Sprint(blockTime(4)): "\"effect\":\"void\"",
	} {
		if r := w.get("/api/v1/"+path, "x-api-key", w.key); r.Code != 200 || !strings.Contains(r.Body.String(), part) {
			t.Errorf("%s: %d %s; want %s", path, r.Code, r.Body, part)
		}
	}
}

// The keys are for everyone, and are in PostgreSQL, which partners need too: requests for them hold a slot each, and
// end within the time of a request, however long PostgreSQL takes.
func TestKeysLeaveConnectionsToPartners(t *testing.T) {
	w := newFixture(t, func(c *Config) { c.RequestTimeout = 5 * time.Second })
	key := w.partner(7, "Seven")
	w.get("/api/v1/partner/router", "x-api-key", key).Data(t)
	locking, err := pgx.ConnectConfig(t.Context(), w.pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer locking.Close(context.Background())
	if _, err := locking.Exec(t.Context(), "BEGIN; LOCK TABLE statement_key"); err != nil {
		t.Fatal(err)
	}
	const clients = 12 // more than the pool has connections
	ended := make(chan int, clients)
	for range clients {
		go func() { ended <- w.Serve("/.well-known/navlog-statements").Code }()
	}
	wait.For(t, "a request waits for PostgreSQL", func() bool {
		var waiting int
		err := locking.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE NOT granted").Scan(&waiting)
		return err == nil && waiting > 0
	})
	w.clock.add(time.Minute) // so that the key is looked up again
	if r := w.get("/api/v1/partner/router", "x-api-key", key); r.Code != 200 {
		t.Errorf("a partner: %d %s", r.Code, r.Body)
	}
	if r := w.get("/api/v1/vaults"); r.Code != 200 {
		t.Errorf("a response that needs no PostgreSQL: %d %s", r.Code, r.Body)
	}
	for range clients {
		select {
		case code := <-ended:
			if code != 503 {
				t.Errorf("the keys: %d", code)
			}
		case <-time.After(time.Minute):
			t.Fatal("a request for the keys does not end")
		}
	}
}
