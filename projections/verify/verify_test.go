package verify

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/testkit/histories"
	"github.com/navlog/navlog/projections/oracle"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
)

// TestMovingWriter: a generation equals the log at any moment while it is written.
func TestMovingWriter(t *testing.T) {
	t.Parallel()
	s := unrestored(rand.New(rand.NewPCG(5, 1)), 40)
	units := histories.Units(s.Records)
	begin := len(slices.Concat(units[:10]...))
	g := filled(t, s.Records[:begin])
	var writer sync.WaitGroup
	written := make(chan struct{})
	writer.Go(func() {
		defer close(written)
		g.live(t, s.Records[begin:])
	})
	defer writer.Wait()
	for proofs := 0; ; proofs++ {
		if fault := g.compared(t, s.Records).Err(); fault != nil {
			t.Fatal(fault)
		}
		must(t, Audit(t.Context(), g.conn))
		select {
		case <-written:
			g.equal(t, s.Records)
			t.Logf("%d proofs beside the writer", proofs)
			return
		default:
		}
	}
}

// watched is a connection that reports queries before they are sent.
type watched struct {
	driver.Conn
	sees func(question string)
}

func (w watched) QueryRow(ctx context.Context, question string, args ...any) driver.Row {
	w.sees(question)
	return w.Conn.QueryRow(ctx, question, args...)
}

func (w watched) Exec(ctx context.Context, statement string, args ...any) error {
	w.sees(statement)
	return w.Conn.Exec(ctx, statement, args...)
}

func (w watched) Query(ctx context.Context, question string, args ...any) (driver.Rows, error) {
	w.sees(question)
	return w.Conn.Query(ctx, question, args...)
}

// TestMovingLists: if the lists advance between reading their cursor and the query for the fold of the log, the query
// is repeated; if they advance before the definitions are derived, they are compared as of their previous seq.
func TestMovingLists(t *testing.T) {
	if testing.Short() {
		t.Skip("verifies again and again")
	}
	t.Parallel()
	s := everyEvent()
	units := histories.Units(s.Records)
	for kind, times := range map[string]int{"CREATE TEMPORARY TABLE live": 1, "optimize_aggregation_in_order": 3} {
		rest := slices.Clone(units[len(units)-times:])
		begin := len(s.Records) - len(slices.Concat(rest...))
		g := filled(t, s.Records[:begin])
		session, err := g.ch.OpenSession(g.ch.Database(g.id)) // g updates lists through its own session
		must(t, err)
		defer session.Close()
		questions := 0
		sees := func(question string) {
			if strings.Contains(question, kind) && len(rest) > 0 {
				questions++
				g.live(t, rest[0])
				rest = rest[1:]
			}
		}
		v := newVerifier(connections{watched{g.conn, sees}, watched{session, sees}}, recordsLog(s.Records), Options{})
		must(t, v.tables(t.Context()))
		if r := v.report; r.Err() != nil || r.Seq != uint64(begin) || len(rest) > 0 {
			t.Errorf("after %d questions want all equal at seq %d, got\n%s", questions, begin, r)
		}
	}
}

// recording returns a Progress, and a function that returns its last values for a name.
func recording() (lastOf func(what string) (last [2]uint64, is bool), progress Progress) {
	var mu sync.Mutex
	all := map[string][2]uint64{}
	lastOf = func(what string) (last [2]uint64, is bool) {
		mu.Lock()
		defer mu.Unlock()
		last, is = all[what]
		return last, is
	}
	return lastOf, func(what string, done, of uint64) {
		mu.Lock()
		defer mu.Unlock()
		all[what] = [2]uint64{done, of}
	}
}

// TestLogEndsEarlier: a log that lost its end, as after a loss of power, is an error and not waited for.
func TestLogEndsEarlier(t *testing.T) {
	t.Parallel()
	s := everyEvent()
	units := histories.Units(s.Records)
	w := newWorld(t)
	w.append(t, slices.Concat(units[:len(units)-1]...))
	w.events(t, s.Records)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := Generation(ctx, chainID, w.kafka, w.ch, 1, nil, nil, Options{})
	want := fmt.Sprintf("ends before seq %d: restore it from a replica or a backup", s.Seq())
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// TestHoleAboveTheTables: a log that lost records above those that the tables have does not keep verify from comparing
// the tables.
func TestHoleAboveTheTables(t *testing.T) {
	t.Parallel()
	s := everyEvent()
	units := histories.Units(s.Records)
	last := len(units) - 1
	kept := slices.Concat(units[:last-1]...)
	w := newWorld(t)
	w.append(t, append(slices.Clone(kept), units[last]...))
	w.events(t, kept)
	report, err := Generation(t.Context(), chainID, w.kafka, w.ch, 1, nil, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(report.Checks, func(c Check) bool { return strings.HasPrefix(c.Name, "events:") }); i < 0 ||
		report.Checks[i].Difference != "" {
		t.Errorf("the tables were not compared: %+v", report.Checks)
	}
}

// TestNotBuiltYet: missing lists are no fault while a generation is being built, but are one when it is live.
func TestNotBuiltYet(t *testing.T) {
	t.Parallel()
	s := everyEvent()
	w := newWorld(t)
	w.append(t, s.Records)
	w.events(t, s.Records)
	if _, err := Verify(t.Context(), chainID, w.kafka, w.ch, w.pool, Options{}); err == nil ||
		!strings.Contains(err.Error(), "no generation is live") {
		t.Errorf("verify reports %v", err)
	}
	database := w.ch.Database(1)
	r, err := Generation(t.Context(), chainID, w.kafka, w.ch, 1, nil, nil, Options{})
	must(t, err)
	if text := r.String(); r.Err() != nil || r.Seq != s.Seq() || !strings.Contains(text, "lists: not built yet") ||
		!strings.Contains(text, "generation 1 ("+database) || len(r.Impossible) != 0 {
		t.Errorf("a generation that is built:\n%s", text)
	}
	w.registered(t, registry.Live)
	r, err = Verify(t.Context(), chainID, w.kafka, w.ch, w.pool, Options{})
	must(t, err)
	wantError(t, r.Err(), "lists: a live generation must have lists", "`navlog projection rebuild`")
	w.build(t)
	lastOf, progress := recording()
	r, err = Verify(t.Context(), chainID, w.kafka, w.ch, w.pool, Options{Progress: progress})
	must(t, err)
	if r.Err() != nil || r.Checks[0].Compared != s.Seq() {
		t.Errorf("a live generation:\n%s", r)
	}
	for _, c := range r.Checks {
		name := c.Name
		if strings.HasSuffix(name, ": the definition") {
			name = "lists: the definitions" // one query for all lists, and one for each definition
		}
		if last, is := lastOf(name); !is || c.Compared > 0 && (last[0] == 0 || last[1] < last[0]) {
			t.Errorf("the progress of %q was %v, %t, and %d comparisons were made", c.Name, last, is, c.Compared)
		}
	}
	w.change(t, "ALTER TABLE events DELETE WHERE effect = 'valuation'")
	r, err = Verify(t.Context(), chainID, w.kafka, w.ch, w.pool, Options{})
	must(t, err)
	wantError(t, r.Err(), "no row lost or doubled: events has ", "must have", "rows were lost or doubled",
		"generation 1 is marked bad", "`navlog projection rebuild`")
}

// TestSkippedVault: the report names the vaults that the generation skips, and it is a fault if the log had one of them
// when the generation was created, unless the generation omits it.
func TestSkippedVault(t *testing.T) {
	t.Parallel()
	s := everyEvent()
	w := newWorld(t)
	w.append(t, s.Records)
	w.log.Skip(oracle.Skipped{Vaults: []common.Address{vaultA}})
	w.events(t, s.Records)
	record, err := proto.Marshal(s.Records[slices.IndexFunc(s.Records,
		func(r *event.Record) bool { return r.GetVault() != nil })].GetVault())
	must(t, err)
	for _, c := range []struct {
		vaults, without [][]byte
		fault           bool
	}{{nil, nil, false}, {[][]byte{record}, [][]byte{vaultA.Bytes()}, false}, {[][]byte{record}, nil, true}} {
		r, err := Generation(t.Context(), chainID, w.kafka, w.ch, 1, c.vaults, c.without, Options{})
		must(t, err)
		if !slices.Equal(r.Skipped, []string{vaultA.Hex()}) || !strings.Contains(r.String(), "skips vault "+vaultA.Hex()) {
			t.Errorf("the report does not name the vault:\n%s", r)
		}
		if c.fault {
			wantError(t, r.Err(), "the generation skips vault "+vaultA.Hex())
		} else if r.Err() != nil {
			t.Errorf("without %x:\n%s", c.without, r)
		}
	}
}

// TestBrokenLog: a gap in the log, and a retraction that does not repeat the retracted record, are differences.
func TestBrokenLog(t *testing.T) {
	t.Parallel()
	s := everyEvent()
	w := newWorld(t)
	w.append(t, s.Records)
	w.transaction(t, []*event.Record{{Seq: s.Seq() + 2, ChainId: chainID, Boundary: true, Fact: s.Records[1].Fact}})
	w.events(t, s.Records)
	w.change(t, fmt.Sprintf("INSERT INTO events (seq) VALUES (%d), (%d)", s.Seq()+1, s.Seq()+2))
	r, err := Generation(t.Context(), chainID, w.kafka, w.ch, 1, nil, nil, Options{})
	must(t, err)
	wantError(t, r.Err(), "log: seq contiguous", "records were lost")

	records := slices.Clone(s.Records)
	i := slices.IndexFunc(records, func(r *event.Record) bool { return r.GetRetracts() != 0 })
	records[i] = proto.Clone(records[i]).(*event.Record)
	records[i].Retracts--
	wantError(t, filled(t, s.Records).compared(t, records).Err(), "log: seq contiguous", "retracts record")
}

// TestVerifyFindsDifferences writes wrong rows, or wrong values into the rows, and checks that verify names the right
// place. In events, verify names the first difference, so the test makes one change at a time; in lists it names one of
// each list, so the test changes many at once.
func TestVerifyFindsDifferences(t *testing.T) {
	if testing.Short() {
		t.Skip("compares by SQL, one wrong row after the other")
	}
	t.Parallel()
	s := everyEvent()
	g := filled(t, s.Records)
	g.equal(t, s.Records)
	type fault struct{ name, table, change, check, words string }
	rounds := [][]fault{
		{{"doubled row", "events", "INSERT INTO events SELECT * FROM events WHERE seq = 3", "", ""}},
		{{"doubled retraction", "events", "INSERT INTO events SELECT * FROM events WHERE effect = 'deposit' AND sign = -1",
			"events: all effects of the log", "but the log gives"}},
		{{"lost row", "events", "ALTER TABLE events DELETE WHERE seq = 3", "events: all effects of the log",
			"but the log gives"}},
		{{"lost last row", "events", "ALTER TABLE events DELETE WHERE seq = (SELECT max(seq) FROM events)",
			"events: all effects of the log", "the table lacks"}},
		{{"lost retraction", "events", "ALTER TABLE events DELETE WHERE effect = 'deposit' AND sign = -1",
			"events: all effects of the log", "but the log gives"}},
		{{"row of another seq", "events",
			"INSERT INTO events SELECT * REPLACE (1 AS seq) FROM events WHERE effect = 'deposit' LIMIT 1",
			"events: all effects of the log", "the table has"}},
		{{"row of no record", "events", "INSERT INTO events (seq, sign) VALUES (0, 1)", "", ""}},
		{{"another effect", "events", "INSERT INTO events SELECT * REPLACE (1 AS sub) FROM events WHERE seq = 5", "", ""}},
		{{"block time", "events", "ALTER TABLE events UPDATE ts = ts + 1 WHERE record = 'block'", "", ""}},
		{{"block hash", "events", "ALTER TABLE events UPDATE hash = toFixedString('x', 32) WHERE record = 'block'", "", ""}},
		{{"boundary", "events", "ALTER TABLE events UPDATE boundary = NOT boundary WHERE seq = 3", "", ""}},
		{{"passed", "events", "ALTER TABLE events UPDATE passed = 1 WHERE seq = 5", "", ""}},
		{{"quarantined", "events", "ALTER TABLE events UPDATE quarantined = 1 WHERE seq = 5", "", ""}},
		{{"effects", "events", "ALTER TABLE events UPDATE effects = 2 WHERE seq = 5", "", ""}},
		{{"vault", "events", "ALTER TABLE events UPDATE payload = '' WHERE record = 'vault'", "", ""}},
		{{"event", "events", "ALTER TABLE events UPDATE event = 'Unknown' WHERE event = 'NavUpdated'", "", ""}},
		{{"log index", "events", "ALTER TABLE events UPDATE log_index = log_index + 1 WHERE event = 'NavUpdated'", "", ""}},
		{{"sign", "events", "ALTER TABLE events UPDATE sign = -1 WHERE effect = 'sweep'", "", ""}},
		{{"sweep", "events", "ALTER TABLE events UPDATE id_to = 2 WHERE effect = 'sweep'", "", ""}},
		{{"NAV", "events", "ALTER TABLE events UPDATE shares = shares + 1 WHERE effect = 'valuation'", "", ""}},
		{{"sender", "events", "ALTER TABLE events UPDATE other = user WHERE effect = 'deposit' AND sign = 1", "", ""}},
		{{"shares of a retraction", "events", "ALTER TABLE events UPDATE shares = 2 WHERE effect = 'deposit' AND sign = -1",
			"", ""}},
		{{"transaction", "events",
			"ALTER TABLE events UPDATE tx = toFixedString('x', 32) WHERE effect = 'deposit' AND sign = 1", "", ""}},
		{{"receiver", "events", "ALTER TABLE events UPDATE other = user WHERE effect = 'claimed'", "", ""}},
		{{"estimate", "events", "ALTER TABLE events UPDATE assets = assets + 1 WHERE effect = 'requested'",
			"requests: the definition", "rows differ"}},
		{{"expiry", "events", "ALTER TABLE events UPDATE expires = 1 WHERE effect = 'requested'", "", ""}},

		{
			{"lost row", "lists", "ALTER TABLE lists DELETE WHERE list = 'requests' AND id = 1", "requests: the definition",
				"which the list has 0 times and its definition 1"},
			{"lost row", "lists", "ALTER TABLE lists DELETE WHERE list = 'requests' AND id = 1", "requests: the fold of the log",
				"but the log gives"},
			{"last row lost", "lists", "ALTER TABLE lists DELETE WHERE list = 'user_requests' AND id = 3",
				"user_requests: the fold of the log", "the table lacks"},
			{"funded block", "lists", "ALTER TABLE lists UPDATE funded_block = funded_block + 1 WHERE list = 'queue' AND id = 0",
				"queue: the fold of the log", "the table has"},
			{"cursor", "lists", "ALTER TABLE lists UPDATE rewrites = rewrites + 1 WHERE list = 'cursor'",
				"cursor: the definition", "rows differ"},
			{"cursor's end", "lists", "ALTER TABLE lists UPDATE ts = ts + 1 WHERE list = 'cursor_end'",
				"cursor_end: the definition", "rows differ"},
			{"lost member", "lists", "ALTER TABLE lists DELETE WHERE list = 'members' AND owner = " +
				"unhex('0000000000000000000000000000000000000007')", "members: the definition", "which the list has 0 times"},
			{"first seen", "lists", "ALTER TABLE lists UPDATE ts = 1 WHERE list = 'first_seen'",
				"first_seen: the fold of the log", "but the log gives"},
			{"first seen", "lists", "ALTER TABLE lists UPDATE ts = 1 WHERE list = 'first_seen'", "first_seen: the definition",
				"rows differ"},
			{"lost total", "lists", "ALTER TABLE lists DELETE WHERE list = 'totals' AND owner = " +
				"unhex('0000000000000000000000000000000000000007') AND deposits = 1", "totals: the definition",
				"which the list has 0 times"},
			{"swept", "lists", "ALTER TABLE lists UPDATE closed_block = closed_block + 1 WHERE list = 'vault_events' AND " +
				"closed_by = 'sweep'", "vault_events: the fold of the log", "but the log gives"},
			{"partner's", "lists", "ALTER TABLE lists UPDATE hash = toFixedString('x', 32) WHERE list = 'partner_events'",
				"partner_events: the fold of the log", "but the log gives"},
			{"lost block", "lists", "ALTER TABLE lists DELETE WHERE list = 'blocks' AND block = 3", "blocks: the definition",
				"which the list has 0 times"},
		},
		{
			{"funded assets", "lists", "ALTER TABLE lists UPDATE funded_assets = 1 WHERE list = 'user_requests' AND id = 0",
				"user_requests: the fold of the log", "the table has"},
			{"total of another block", "lists", "ALTER TABLE lists UPDATE ts = ts + 1 WHERE list = 'totals' AND owner = scope",
				"totals: the fold of the log", "but the log gives"},
		},
		{{"lost end", "lists", "ALTER TABLE lists DELETE WHERE list = 'cursor_end'", "cursor_end: the definition",
			"which the list has 0 times"}},
		{
			{"doubled row", "lists", "INSERT INTO lists SELECT * FROM lists WHERE list = 'queue' AND id = 1",
				"queue: the definition", "which the list has 2 times and its definition 1"},
			{"doubled row", "lists", "INSERT INTO lists SELECT * FROM lists WHERE list = 'queue' AND id = 1",
				"queue: the fold of the log", `2", but the log gives`},
			{"a pair that does not cancel", "lists",
				"INSERT INTO lists SELECT * REPLACE (-1 AS sign, assets + 1 AS assets) FROM lists WHERE id = 3 AND list = " +
					"'user_requests'", "user_requests: the definition", "which the list has -1 times and its definition 0"},
			{"a pair that does not cancel", "lists",
				"INSERT INTO lists SELECT * REPLACE (-1 AS sign, assets + 1 AS assets) FROM lists WHERE id = 3 AND list = " +
					"'user_requests'", "user_requests: the fold of the log", `-1", but the log has nothing more`},
			{"withdrawn", "lists", "INSERT INTO lists SELECT * REPLACE (key + 1 AS key, -sign AS sign) FROM lists WHERE list " +
				"= 'withdrawn'", "withdrawn: the definition", "has -1 times and its definition 0"},
			{"deposited", "lists", "INSERT INTO lists SELECT * REPLACE (ts + 1 AS ts) FROM lists WHERE list = 'deposited'",
				"deposited: the fold of the log", "the table has"},
			{"deposited in all", "lists",
				"INSERT INTO lists SELECT * REPLACE (deposited + 1 AS deposited) FROM lists WHERE list = 'totals' AND owner = " +
					"scope AND deposits = 2", "totals: the definition", "which the list has 1 times and its definition 0"},
			{"doubled cursor", "lists", "INSERT INTO lists SELECT * FROM lists WHERE list = 'cursor'", "cursor: the definition",
				"which the list has 2 times"},
		},
		{{"unknown request", "lists",
			"INSERT INTO lists (sign, list, owner, vault, id) SELECT 1, 'user_requests', toFixedString(repeat('z', 20), 20), " +
				"vault, 99 FROM lists WHERE id = 3 AND list = 'user_requests'", "user_requests: the fold of the log",
			"nothing more"}},
		{{"older cursor", "lists", "INSERT INTO lists SELECT * REPLACE (seq - 1 AS seq) FROM lists WHERE list = 'cursor'",
			"cursor: the definition", "which the list has 1 times and its definition 0"}},
	}
	session, err := g.ch.OpenSession(g.ch.Database(g.id))
	must(t, err)
	defer session.Close()
	unchanged := newDefinitions(session) // for all changes of lists, which change no events
	for _, wants := range rounds {
		c := wants[0]
		if c.check == "" {
			wants[0].check, wants[0].words = "events: all effects of the log", "the table has"
		}
		t.Run(c.table+"/"+c.name, func(t *testing.T) {
			g.restores(t, c.table)
			if strings.HasPrefix(c.change, "INSERT") {
				g.change(t, "SYSTEM STOP MERGES "+c.table) // merges would remove a pair; mutations need them
			}
			for i, want := range wants {
				if i == 0 || want.change != wants[i-1].change {
					g.change(t, want.change)
				}
			}
			v := newVerifier(connections{g.conn, g.session}, recordsLog(s.Records), Options{})
			if c.table == "lists" { // events were compared above
				v.report.Checks, v.definitions = []Check{{Name: "log: seq contiguous"}}, unchanged
				must(t, v.lists(t.Context()))
			} else {
				_, err := v.events(t.Context())
				must(t, err)
				if slices.ContainsFunc(wants, func(w fault) bool { return !strings.HasPrefix(w.check, "events: ") }) {
					// the lists take longest
					must(t, v.lists(t.Context()))
				}
			}
			r := v.report
			for _, want := range wants {
				if found := check(t, r.Checks, want.check); !strings.Contains(found.Difference, want.words) {
					t.Errorf("want %q under %s, got\n%s", want.words, want.check, r)
				}
			}
			if r.Err() == nil || !strings.Contains(r.String(), "DIFFERENT") {
				t.Errorf("nothing is found:\n%s", r)
			}
		})
	}
	g.equal(t, s.Records)
}

// restores restores the rows of a table at the test's end.
func (g *generation) restores(t *testing.T, table string) {
	t.Helper()
	g.change(t, "DROP TABLE IF EXISTS sound", "CREATE TABLE sound CLONE AS "+table)
	t.Cleanup(func() {
		g.change(t, "EXCHANGE TABLES sound AND "+table, "DROP TABLE sound SYNC")
	})
}

// TestLongLog: the rows of the differing thousand are compared one by one, wherever it is.
func TestLongLog(t *testing.T) {
	if testing.Short() {
		t.Skip("many rows, one after the other")
	}
	t.Parallel()
	s := histories.New(chainID)
	s.Vault(histories.VaultAt(0))
	rng := rand.New(rand.NewPCG(1, 9))
	for s.Seq() < 2*perPrint+100 {
		var logs []emitted
		for range 20 {
			logs = append(logs, histories.Anything(rng, 1, 5))
		}
		s.Mine(logs...)
	}
	w := newWorld(t)
	w.append(t, s.Records)
	w.events(t, s.Records)
	w.change(t, "ALTER TABLE events UPDATE shares = shares + 1 WHERE seq = (SELECT min(seq) FROM events WHERE seq > "+
		"1500 AND effect = 'deposit')")
	r, err := Generation(t.Context(), chainID, w.kafka, w.ch, 1, nil, nil, Options{})
	must(t, err)
	var first uint64
	must(t, w.conn.QueryRow(t.Context(),
		"SELECT min(seq) FROM events WHERE seq > 1500 AND effect = 'deposit'").Scan(&first))
	if c := check(t, r.Checks, "events: all effects of the log"); c.Compared != first-1 ||
		!strings.Contains(c.Difference, "but the log gives") {
		t.Errorf("%d records before the difference, got\n%s", first-1, r)
	}
}

// TestSkippedRecords: the records of a vault that joined after the lists were built are in events and in no list, which
// is no difference; in a list they are one.
func TestSkippedRecords(t *testing.T) {
	if testing.Short() {
		t.Skip("compares one history after the other")
	}
	t.Parallel()
	s := histories.New(chainID)
	rng := rand.New(rand.NewPCG(4, 4))
	s.Vault(histories.VaultAt(0))
	mine := func(vaults int) {
		for range 12 {
			var logs []emitted
			for range 4 {
				logs = append(logs, histories.Anything(rng, vaults, 4))
			}
			s.Mine(logs...)
		}
	}
	mine(1)
	// As after a backfill, the log has no record of block 2, with which the history of the other vault ends.
	s.Records = slices.DeleteFunc(s.Records, func(r *event.Record) bool { return r.GetBlock().GetNumber() == s.First+1 })
	for i, r := range s.Records {
		r.Seq = uint64(i + 1)
	}
	derived := s.Seq()
	s.Vault(histories.VaultAt(1))
	s.Backfill(s.First, emitted{Vault: histories.VaultAt(1), Event: histories.Anything(rng, 1, 4).Event})
	ended := s.Seq()
	mine(2)
	g := filled(t, s.Records[:derived])
	g.log.Skip(oracle.Skipped{Vaults: []common.Address{histories.VaultAt(1)}, From: ended})
	g.live(t, s.Records[derived:])
	g.equal(t, s.Records)
	must(t, Audit(t.Context(), g.conn))

	fresh := another(t, g.ch, 2)
	fresh.events(t, s.Records)
	fresh.build(t)
	fresh.equal(t, s.Records)
	p, err := Compare(t.Context(), g.ch, 1, 2, nil)
	must(t, err)
	if p.Err() != nil || !slices.Equal(p.SkippedByLive, []string{histories.VaultAt(1).Hex()}) || p.SkippedByNew != nil ||
		!strings.Contains(p.String(), "only generation 1 skips vault") {
		t.Errorf("a generation without a vault and one with it:\n%s", p)
	}
	g.change(t, fmt.Sprintf("ALTER TABLE events UPDATE passed = 1 WHERE seq = %d", derived)) // a block above all others
	wantError(t, g.compared(t, s.Records).Err(), "events: all effects of the log")
	g.change(t, fmt.Sprintf("ALTER TABLE events UPDATE passed = 0 WHERE seq = %d", derived))
	g.change(t, "INSERT INTO lists (sign, list, owner, kind, vault) SELECT 1, 'vault_events', vault, 'valuation', "+
		"vault FROM events WHERE passed AND event = 'NavUpdated' LIMIT 1")
	wantError(t, g.compared(t, s.Records).Err(), "vault_events: the fold of the log: the table has",
		"vault_events: the definition")
	wantError(t, Audit(t.Context(), g.conn), "lists come to", "rows were lost or doubled")
}

// TestSample: every sample finds a sound generation equal, and together the samples find every fault.
func TestSample(t *testing.T) {
	if testing.Short() {
		t.Skip("compares one history after the other")
	}
	t.Parallel()
	s := unrestored(rand.New(rand.NewPCG(31, 3)), 40)
	g := filled(t, s.Records)
	definitions := newDefinitions(g.session)
	samples := func() (faults int, compared uint64) {
		for k := range uint64(3) {
			v := newVerifier(connections{g.conn, g.session}, recordsLog(s.Records), Options{})
			v.sample, v.definitions = sample{3, k}, definitions
			v.fold = oracle.Sampled(nil, v.sample.includes)
			must(t, v.tables(t.Context()))
			for _, c := range v.report.Checks {
				if !strings.HasSuffix(c.Name, ": the fold of the log") || c.Name == "blocks: the fold of the log" {
					continue
				}
				compared += c.Compared
				if c.Difference != "" {
					faults++
				}
			}
		}
		return faults, compared
	}
	// Each row is in one sample, except those of vaults' sweeps and valuations, which are in all samples, and totals
	// of vaults and of all users, which are in none.
	g.equal(t, s.Records)
	var rows uint64
	must(t, g.conn.QueryRow(t.Context(),
		`SELECT toUInt64(sum(multiIf(list = 'vault_events' AND kind != 'deposit', 3, list = 'totals' AND (owner = scope OR owner = toFixedString('', 20)), 0, 1)))
		FROM lists WHERE list NOT IN ('cursor', 'cursor_end', 'blocks')`).Scan(&rows))
	if faults, compared := samples(); faults != 0 || compared != rows {
		t.Errorf("%d differences in 3 samples, which compared %d rows of %d", faults, compared, rows)
	}
	g.change(t, "INSERT INTO lists (sign, list, user) VALUES (1, 'first_seen', "+
		"unhex('00000000000000000000000000000000000b0001'))")
	if faults, _ := samples(); faults != 1 {
		t.Errorf("%d of 3 samples find the wrong row, want 1", faults)
	}
}

// TestSampleOfAnotherOwner: a claim may name no owner; then the owner of the request was paid, and each sample with
// this owner has the claim.
func TestSampleOfAnotherOwner(t *testing.T) {
	t.Parallel()
	s := histories.New(chainID)
	s.Vault(vaultA)
	for index := range int64(3) {
		i, n := whole(index), whole(12)
		s.Mine(emitted{vaultA, contracts.WithdrawalRequested{RequestIndex: i, Owner: bob, Receiver: alice, Shares: n,
			AssetsEstimate: n}},
			emitted{vaultA, contracts.WithdrawalFunded{RequestIndex: i, SettlementID: n, Shares: n, Assets: n}},
			emitted{vaultA, contracts.WithdrawalClaimed{RequestIndex: i, Receiver: alice, Shares: n, Assets: n}})
	}
	g := filled(t, s.Records)
	for k := range uint64(3) {
		v := newVerifier(connections{g.conn, g.session}, recordsLog(s.Records), Options{})
		v.sample = sample{3, k}
		v.fold = oracle.Sampled(nil, v.sample.includes)
		must(t, v.tables(t.Context()))
		if err := v.report.Err(); err != nil {
			t.Errorf("sample %d of 3: %v", k, err)
		}
	}
}

// TestSlices: one duplicate among many rows is found in its slice and reported, and so is a row with wrong content,
// even if the right one has the same slice, so that the number of rows is correct.
func TestSlices(t *testing.T) {
	if testing.Short() {
		t.Skip("compares one history after the other")
	}
	t.Parallel()
	s := unrestored(rand.New(rand.NewPCG(31, 7)), 50)
	g := filled(t, s.Records)
	r := g.equal(t, s.Records)
	g.change(t, "SYSTEM STOP MERGES lists") // merges would remove duplicates
	// without one cursor, the seq is unknown
	cursors := func(list string) bool { return strings.HasPrefix(list, "cursor") }
	for _, list := range definedLists() {
		if check(t, r.Checks, list+": the definition").Compared < 2 && !cursors(list) &&
			!of(list, readmodel.Groups, readmodel.Sources, readmodel.FifoList) {
			t.Errorf("%s has too few rows for this test", list)
		}
		if !cursors(list) {
			g.change(t, "INSERT INTO lists SELECT * FROM lists WHERE list = '"+list+"' ORDER BY owner DESC, key DESC LIMIT 1")
		}
	}
	checks, err := newDefinitions(g.session).compare(t.Context(), g.conn, nil)
	must(t, err)
	for _, c := range checks {
		if r := check(t, r.Checks, c.Name); !cursors(c.Name) && r.Compared > 0 &&
			(!strings.Contains(c.Difference, "in 1 of 1024 slices of the list; one such row") ||
				!strings.Contains(c.Difference, "which the list has 2 times and its definition 1")) {
			t.Errorf("a row of %s is doubled: %+v", c.Name, c)
		}
	}
	g = filled(t, s.Records)
	g.change(t, "ALTER TABLE lists UPDATE ts = ts + 1 WHERE 1 SETTINGS mutations_sync = 2")
	one := newDefinitions(g.session)
	one.pieces = 1
	checks, err = one.compare(t.Context(), g.conn, nil)
	must(t, err)
	for _, c := range checks {
		if r := check(t, r.Checks, c.Name); r.Compared > 0 &&
			!strings.Contains(c.Difference, "in 1 of 1 slices of the list; one such row") {
			t.Errorf("all rows of %s are changed: %+v", c.Name, c)
		}
	}
}

func of(list string, some ...readmodel.List) bool {
	return slices.ContainsFunc(some, func(l readmodel.List) bool { return l.String() == list })
}

// TestAuditOfMillions: a missing row, a duplicate, and one in another's place are found, and the memory of the audit
// does not grow with the table.
func TestAuditOfMillions(t *testing.T) {
	if testing.Short() {
		t.Skip("compares millions of rows by SQL")
	}
	t.Parallel()
	g := newGeneration(t)
	const last = 3_000_000
	little := clickhouse.Context(t.Context(), clickhouse.WithSettings(clickhouse.Settings{"max_memory_usage": 40 << 20}))
	for i, c := range []struct{ name, seqs string }{
		{"sound", "[number + 1]"},
		{"missing", "if(number = 123456, [], [number + 1])"},
		{"doubled", "if(number = 2000000, [number + 1, number + 1], [number + 1])"},
		{"exchanged", "if(number = 7, [2999999], [number + 1])"},
	} {
		g.change(t, "TRUNCATE TABLE events",
			fmt.Sprintf("INSERT INTO events (seq, sign, writer, record) SELECT arrayJoin(%s), 1, %d, 'block' FROM numbers(%d)",
				c.seqs, i, last))
		if err := g.conn.QueryRow(little, "SELECT uniqExact(seq) FROM events").Scan(new(uint64)); err == nil {
			t.Fatal("a set of all seqs fits into the memory, so the test is incomplete")
		}
		if err := Audit(little, g.conn); c.name == "sound" && err != nil || c.name != "sound" && !isBroken(err) {
			t.Errorf("%s: the audit reports %v", c.name, err)
		}
	}
}

// TestOrderOfKeys: the rows of the fold have the same order as those of the table, even if a 32-byte key is a
// negative number there.
func TestOrderOfKeys(t *testing.T) {
	t.Parallel()
	g := newGeneration(t)
	var keys []string
	rows := []readmodel.ListRow{}
	for _, first := range []byte{0x00, 0x7f, 0x80, 0xff} {
		var id common.Hash
		id[0], id[31] = first, 1
		row := readmodel.ListRow{List: readmodel.Sources}
		row.Key.SetBytes(id[:])
		rows = append(rows, row)
		keys = append(keys, fmt.Sprintf("reinterpretAsInt256(reverse(unhex('%x')))", id[:]))
	}
	slices.SortFunc(rows, compareRows)
	var got, want []string
	for _, row := range rows {
		got = append(got, row.Key.Hex())
	}
	for text, err := range texts(t.Context(), g.conn,
		"SELECT lower(hex(k)) FROM (SELECT arrayJoin(["+strings.Join(keys, ", ")+"]) AS k) ORDER BY k", nil) {
		must(t, err)
		want = append(want, "0x"+strings.TrimLeft(text, "0"))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the fold orders keys %v, and the table %v", got, want)
	}
}
