package verify

import (
	"context"
	"flag"
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
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
)

var (
	plays = flag.Int("histories", 3, "how many random histories TestRandomHistories plays")
	seed  = flag.Uint64("seed", 0, "seed of the first random history; 0: by the clock")
)

// TestRandomHistories: tables that hold what a random history says are equal to
// it: derived in the middle, and kept up unit by unit from there.
func TestRandomHistories(t *testing.T) {
	if testing.Short() {
		t.Skip("compares one history after the other")
	}
	t.Parallel()
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	for i := range uint64(*plays) {
		t.Run(fmt.Sprintf("seed=%d", first+i), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(first+i, 1))
			s := histories.Random(rng, chainID, 30)
			units := histories.Units(s.Records)
			middle := len(slices.Concat(units[:1+rng.IntN(len(units))]...))
			g := newGeneration(t)
			g.build(t, s.Records[:middle])
			g.equal(t, s.Records[:middle])
			g.derive(t)
			g.equal(t, s.Records[:middle])
			g.live(t, s.Records[middle:])
			g.equal(t, s.Records)
		})
	}
}

// TestMovingWriter: a generation is equal to the log at any moment of its writer.
func TestMovingWriter(t *testing.T) {
	t.Parallel()
	s := histories.Random(rand.New(rand.NewPCG(5, 1)), chainID, 40)
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

// watched is a connection whose questions are seen before they are asked.
type watched struct {
	driver.Conn
	sees func(question string)
}

func (w watched) QueryRow(ctx context.Context, question string, args ...any) driver.Row {
	w.sees(question)
	return w.Conn.QueryRow(ctx, question, args...)
}

func (w watched) Query(ctx context.Context, question string, args ...any) (driver.Rows, error) {
	w.sees(question)
	return w.Conn.Query(ctx, question, args...)
}

// TestAheadOfTheSpine: a derived table that is ahead of the spine is asked again
// until the spine is there, for its definition and for the fold of the log.
func TestAheadOfTheSpine(t *testing.T) {
	t.Parallel()
	s := everyEvent()
	units := histories.Units(s.Records)
	for _, kind := range []string{"AS given", "HAVING sum(sign) != 0"} {
		rest := slices.Clone(units[len(units)-3:])
		begin := len(s.Records) - len(slices.Concat(rest...))
		g := filled(t, s.Records[:begin])
		questions, looks := 0, 0
		ahead := false
		conn := watched{g.conn, func(question string) {
			switch {
			case ahead && strings.HasPrefix(question, "SELECT max(seq) FROM records"):
				if looks++; looks%3 == 0 {
					g.spine(t, rest[0])
					rest, ahead = rest[1:], false
				}
			case strings.Contains(question, "FROM withdrawals\n") && strings.Contains(question, kind) && len(rest) > 0:
				questions++
				g.facts(t, rest[0])
				for _, table := range readmodel.Derived {
					g.update(t, table, table, rest[0][len(rest[0])-1].GetSeq())
				}
				ahead = true
			}
		}}
		r, err := Records(t.Context(), conn, s.Records, Options{})
		must(t, err)
		if r.Err() != nil || r.Seq != uint64(begin) || len(rest) > 0 {
			t.Errorf("after %d questions want all equal at seq %d, got\n%s", questions, begin, r)
		}
	}
}

// hearing is a progress, and what was told last of something.
func hearing() (told func(what string) (last [2]uint64, is bool), progress Progress) {
	var mu sync.Mutex
	all := map[string][2]uint64{}
	told = func(what string) (last [2]uint64, is bool) {
		mu.Lock()
		defer mu.Unlock()
		last, is = all[what]
		return last, is
	}
	return told, func(what string, done, of uint64) {
		mu.Lock()
		defer mu.Unlock()
		all[what] = [2]uint64{done, of}
	}
}

// TestNotDerivedYet: tables that are not there are no fault while a generation is
// built, and one when it is live.
func TestNotDerivedYet(t *testing.T) {
	t.Parallel()
	s := everyEvent()
	w := newWorld(t)
	w.append(t, s.Records)
	w.build(t, s.Records)
	if _, err := Verify(t.Context(), chainID, w.kafka, w.ch, w.pool, Options{}); err == nil || !strings.Contains(err.Error(), "no generation is live") {
		t.Errorf("verify says %v", err)
	}
	database := w.ch.Database(1)
	r, err := Generation(t.Context(), chainID, w.kafka, w.conn, 1, database, Options{})
	must(t, err)
	if text := r.String(); r.Err() != nil || r.Seq != s.Seq() || !strings.Contains(text, "users: not derived yet") || !strings.Contains(text, "generation 1 ("+database) || len(r.Impossible) != 0 {
		t.Errorf("a generation that is built:\n%s", text)
	}
	w.registered(t, registry.Live)
	r, err = Verify(t.Context(), chainID, w.kafka, w.ch, w.pool, Options{})
	must(t, err)
	wantError(t, r.Err(), "users: a live generation must have this table", "withdrawals: ", "`navlog projection rebuild`")
	w.derive(t)
	told, progress := hearing()
	r, err = Verify(t.Context(), chainID, w.kafka, w.ch, w.pool, Options{Progress: progress})
	must(t, err)
	if r.Err() != nil || r.Checks[0].Compared != s.Seq() {
		t.Errorf("a live generation:\n%s", r)
	}
	for _, c := range r.Checks {
		if last, is := told(c.Name); !is || c.Compared > 0 && (last[0] == 0 || last[1] < last[0]) {
			t.Errorf("of %q was told %v, %t, and %d things were compared", c.Name, last, is, c.Compared)
		}
	}
	w.change(t, "ALTER TABLE navs DELETE WHERE 1")
	r, err = Verify(t.Context(), chainID, w.kafka, w.ch, w.pool, Options{})
	must(t, err)
	wantError(t, r.Err(), "no row lost or doubled: navs has 0 rows", "must have", "rows were lost or doubled", "generation 1 is marked bad", "`navlog projection rebuild`")
}

// TestBrokenLog: a hole in the log, and a record that takes back what it does not
// say, are differences.
func TestBrokenLog(t *testing.T) {
	t.Parallel()
	s := everyEvent()
	w := newWorld(t)
	w.append(t, s.Records)
	w.transaction(t, []*event.Record{{Seq: s.Seq() + 2, ChainId: chainID, Boundary: true, Fact: s.Records[1].Fact}})
	w.build(t, s.Records)
	w.change(t, fmt.Sprintf("INSERT INTO records (seq) VALUES (%d), (%d)", s.Seq()+1, s.Seq()+2))
	r, err := Generation(t.Context(), chainID, w.kafka, w.conn, 1, "", Options{})
	must(t, err)
	wantError(t, r.Err(), "log: seq contiguous", "records were lost")

	records := slices.Clone(s.Records)
	i := slices.IndexFunc(records, func(r *event.Record) bool { return r.GetRetracts() != 0 })
	records[i] = proto.Clone(records[i]).(*event.Record)
	records[i].Retracts--
	wantError(t, filled(t, s.Records).compared(t, records).Err(), "log: seq contiguous", "takes back record")
}

// TestVerifyFindsDifferences writes one wrong row at a time, or one wrong value into the
// rows, and looks whether verify names the right place.
func TestVerifyFindsDifferences(t *testing.T) {
	if testing.Short() {
		t.Skip("compares by SQL, one wrong row after the other")
	}
	t.Parallel()
	s := everyEvent()
	g := filled(t, s.Records)
	g.equal(t, s.Records)
	for _, c := range []struct{ name, table, change, check, words string }{
		{"doubled row", "records", "INSERT INTO records SELECT * FROM records WHERE seq = 3", "records: rows unique", "rows of"},
		{"doubled row", "deposits", "INSERT INTO deposits SELECT * FROM deposits LIMIT 1", "deposits: rows unique", "5 rows of 4 seqs"},
		{"doubled row", "sweeps", "INSERT INTO sweeps SELECT * FROM sweeps", "sweeps: all that the log says", "nothing more"},
		{"lost row", "records", "ALTER TABLE records DELETE WHERE seq = 3", "records: rows unique", "up to seq"},
		{"lost row", "records", "ALTER TABLE records DELETE WHERE seq = 3", "records: all that the log says", "where the log gives"},
		{"lost row", "navs", "ALTER TABLE navs DELETE WHERE 1", "navs: all that the log says", "the table lacks"},
		{"lost retraction", "deposits", "ALTER TABLE deposits DELETE WHERE sign = -1", "deposits: all that the log says", "the table lacks"},
		{"row of another seq", "deposits", "INSERT INTO deposits SELECT * REPLACE (1 AS seq) FROM deposits LIMIT 1", "deposits: all that the log says", "the table has"},

		{"row of no record", "navs", "INSERT INTO navs (seq, sign) VALUES (0, 1)", "", ""},
		{"row of no record", "records", "INSERT INTO records (seq, sign) VALUES (0, 1)", "records: rows unique", "rows of"},
		{"block time", "records", "ALTER TABLE records UPDATE ts = ts + 1 WHERE kind = 'block'", "", ""},
		{"block hash", "records", "ALTER TABLE records UPDATE hash = toFixedString('x', 32) WHERE kind = 'block'", "", ""},
		{"boundary", "records", "ALTER TABLE records UPDATE boundary = NOT boundary WHERE seq = 3", "", ""},
		{"passed", "records", "ALTER TABLE records UPDATE passed = 1 WHERE seq = 5", "", ""},
		{"quarantined", "records", "ALTER TABLE records UPDATE quarantined = 1 WHERE seq = 5", "", ""},
		{"vault", "records", "ALTER TABLE records UPDATE payload = '' WHERE kind = 'vault'", "", ""},
		{"event", "records", "ALTER TABLE records UPDATE event = 'Unknown' WHERE event = 'NavUpdated'", "", ""},
		{"log index", "records", "ALTER TABLE records UPDATE log_index = log_index + 1 WHERE event = 'NavUpdated'", "", ""},
		{"sign", "sweeps", "ALTER TABLE sweeps UPDATE sign = -1 WHERE 1", "", ""},
		{"sweep", "sweeps", "ALTER TABLE sweeps UPDATE to_id = 2 WHERE 1", "", ""},
		{"NAV", "navs", "ALTER TABLE navs UPDATE total_supply = total_supply + 1 WHERE 1", "", ""},
		{"sender", "deposits", "ALTER TABLE deposits UPDATE sender = user WHERE sign = 1", "", ""},
		{"shares of a retraction", "deposits", "ALTER TABLE deposits UPDATE shares = 2 WHERE sign = -1", "", ""},
		{"transaction", "deposits", "ALTER TABLE deposits UPDATE tx = toFixedString('x', 32) WHERE sign = 1", "", ""},
		{"receiver", "withdrawal_events", "ALTER TABLE withdrawal_events UPDATE receiver = user WHERE kind = 'claimed'", "", ""},
		{"estimate of a fact", "withdrawal_events", "ALTER TABLE withdrawal_events UPDATE assets = assets + 1 WHERE kind = 'requested'", "withdrawals: its definition", "rows differ"},
		{"expiry", "withdrawal_events", "ALTER TABLE withdrawal_events UPDATE expires_ts = 1 WHERE kind = 'requested'", "", ""},

		{"lost row", "withdrawals", "ALTER TABLE withdrawals DELETE WHERE request_index = 1", "withdrawals: its definition", "which the table has 0 times and its definition 1"},
		{"lost row", "withdrawals", "ALTER TABLE withdrawals DELETE WHERE request_index = 1", "withdrawals: the fold of the log", "where the log gives"},
		{"last row lost", "withdrawals", "ALTER TABLE withdrawals DELETE WHERE request_index = 3 AND list = 'user'", "withdrawals: the fold of the log", "the table lacks"},
		{"doubled row", "withdrawals", "INSERT INTO withdrawals SELECT * FROM withdrawals WHERE request_index = 1", "withdrawals: its definition", "which the table has 2 times and its definition 1"},
		{"doubled row", "withdrawals", "INSERT INTO withdrawals SELECT * FROM withdrawals WHERE request_index = 1", "withdrawals: the fold of the log", `2" where the log gives`},
		{"funded block", "withdrawals", "ALTER TABLE withdrawals UPDATE funded_block = funded_block + 1 WHERE request_index = 0 AND requested_block > 0", "withdrawals: the fold of the log", "the table has"},
		{"a pair that does not cancel", "withdrawals", "INSERT INTO withdrawals SELECT * REPLACE (-1 AS sign, estimate + 1 AS estimate) FROM withdrawals WHERE request_index = 3 AND list = 'user'", "withdrawals: its definition", "which the table has -1 times and its definition 0"},
		{"a pair that does not cancel", "withdrawals", "INSERT INTO withdrawals SELECT * REPLACE (-1 AS sign, estimate + 1 AS estimate) FROM withdrawals WHERE request_index = 3 AND list = 'user'", "withdrawals: the fold of the log", `-1" and the log has nothing more`},
		{"unknown request", "withdrawals", "INSERT INTO withdrawals (sign, list, user, vault, request_index) SELECT 1, 'user', toFixedString(repeat('z', 20), 20), vault, 99 FROM withdrawals WHERE request_index = 3 AND list = 'user'", "withdrawals: the fold of the log", "nothing more"},
		{"doubled cursor", "withdrawals", "INSERT INTO withdrawals SELECT * FROM withdrawals WHERE requested_block = 0", "withdrawals: its definition", "2 live cursor rows"},
		{"no cursor", "withdrawals", "ALTER TABLE withdrawals DELETE WHERE requested_block = 0", "withdrawals: its definition", "0 live cursor rows"},
		{"no cursor", "withdrawals", "ALTER TABLE withdrawals DELETE WHERE requested_block = 0", "withdrawals: the fold of the log", "no live cursor row"},
		{"stray fence", "withdrawals", "ALTER TABLE withdrawals UPDATE fence_seq = 7 WHERE request_index = 1", "withdrawals: its definition", "has a fence, of seq 7"},

		{"lost member", "users", "ALTER TABLE users DELETE WHERE list = 'member' AND partner = 7", "users: its definition", "which the table has 0 times"},
		{"first seen", "users", "ALTER TABLE users UPDATE first_ts = 1 WHERE list = 'first'", "users: the fold of the log", "where the log gives"},
		{"first seen", "users", "ALTER TABLE users UPDATE first_ts = 1 WHERE list = 'first'", "users: its definition", "rows differ"},
		{"withdrawn", "users", "INSERT INTO users SELECT * REPLACE (withdrawn + 1 AS withdrawn, -sign AS sign) FROM users WHERE list = 'deposited'", "users: its definition", "has -1 times and its definition 0"},
		{"doubled cursor", "users", "INSERT INTO users SELECT * REPLACE (seq - 1 AS seq) FROM users WHERE list = 'cursor'", "users: its definition", "2 live cursor rows"},
		{"lost cursor", "users", "ALTER TABLE users DELETE WHERE list = 'cursor'", "users: the fold of the log", "no live cursor row"},

		{"lost total", "partner_totals", "ALTER TABLE partner_totals DELETE WHERE partner = 7 AND deposits = 1", "partner_totals: its definition", "which the table has 0 times"},
		{"total of another block", "partner_totals", "ALTER TABLE partner_totals UPDATE from_block = from_block + 1 WHERE partner = 7", "partner_totals: the fold of the log", "where the log gives"},
		{"doubled cursor", "partner_totals", "INSERT INTO partner_totals SELECT * FROM partner_totals WHERE partner = 0", "partner_totals: its definition", "2 live cursor rows"},
		{"volume", "partner_totals", "INSERT INTO partner_totals SELECT * REPLACE (volume + 1 AS volume) FROM partner_totals WHERE partner = 7 AND deposits = 2", "partner_totals: its definition", "which the table has 1 times and its definition 0"},
	} {
		if c.check == "" {
			c.check, c.words = c.table+": all that the log says", "the table has"
		}
		t.Run(strings.Join([]string{c.table, c.name, c.check}, "/"), func(t *testing.T) {
			g.restores(t, c.table)
			if strings.HasPrefix(c.change, "INSERT") {
				g.change(t, "SYSTEM STOP MERGES "+c.table) // they would take a pair away; mutations need them
			}
			g.change(t, c.change)
			r := g.compared(t, s.Records)
			if found := check(t, r.Checks, c.check); !strings.Contains(found.Difference, c.words) {
				t.Errorf("want %q under %s, got\n%s", c.words, c.check, r)
			}
			if r.Err() == nil || !strings.Contains(r.String(), "DIFFERENT") {
				t.Errorf("nothing is found:\n%s", r)
			}
		})
	}
	g.equal(t, s.Records)
}

// restores gives a table back its rows at the test's end.
func (g *generation) restores(t *testing.T, table string) {
	t.Helper()
	g.change(t, "DROP TABLE IF EXISTS sound", "CREATE TABLE sound CLONE AS "+table)
	t.Cleanup(func() {
		g.change(t, "EXCHANGE TABLES sound AND "+table, "DROP TABLE sound SYNC")
	})
}

// TestLongLog: the rows of the thousand that differs are told apart, wherever it is.
func TestLongLog(t *testing.T) {
	if testing.Short() {
		t.Skip("many rows, one after the other")
	}
	t.Parallel()
	s := histories.New(chainID)
	s.Vault(histories.VaultAt(0))
	rng := rand.New(rand.NewPCG(1, 9))
	for s.Seq() < 2*perPrint+100 {
		var logs []said
		for range 20 {
			logs = append(logs, histories.Anything(rng, 1, 5))
		}
		s.Mine(logs...)
	}
	w := newWorld(t)
	w.append(t, s.Records)
	w.build(t, s.Records)
	w.change(t, "ALTER TABLE deposits UPDATE shares = shares + 1 WHERE seq = (SELECT min(seq) FROM deposits WHERE seq > 1500)")
	r, err := Generation(t.Context(), chainID, w.kafka, w.conn, 1, "", Options{})
	must(t, err)
	var before uint64
	must(t, w.conn.QueryRow(t.Context(), "SELECT count() FROM deposits WHERE seq <= 1500").Scan(&before))
	if c := check(t, r.Checks, "deposits: all that the log says"); c.Compared != before || !strings.Contains(c.Difference, "where the log gives") {
		t.Errorf("%d deposits before the difference, got\n%s", before, r)
	}
}

// TestPassedOver: what a vault did that joined after the tables were derived is in
// the spine alone, and no difference; in another table it is one.
func TestPassedOver(t *testing.T) {
	if testing.Short() {
		t.Skip("compares one history after the other")
	}
	t.Parallel()
	s := histories.New(chainID)
	rng := rand.New(rand.NewPCG(4, 4))
	s.Vault(histories.VaultAt(0))
	mine := func(vaults int) {
		for range 12 {
			var logs []said
			for range 4 {
				logs = append(logs, histories.Anything(rng, vaults, 4))
			}
			s.Mine(logs...)
		}
	}
	mine(1)
	derived := s.Seq()
	s.Vault(histories.VaultAt(1))
	mine(2)
	g := filled(t, s.Records[:derived])
	g.late = []common.Address{histories.VaultAt(1)}
	g.live(t, s.Records[derived:])
	g.equal(t, s.Records)
	must(t, Audit(t.Context(), g.conn))

	fresh := another(t, g.ch, 2)
	fresh.build(t, s.Records)
	fresh.derive(t)
	fresh.equal(t, s.Records)
	p, err := Compare(t.Context(), Side{1, g.conn}, Side{2, fresh.conn}, nil)
	must(t, err)
	if p.Err() != nil {
		t.Errorf("a generation without a vault and one with it:\n%s", p)
	}
	g.change(t, "INSERT INTO navs (seq, sign, vault) SELECT min(seq), 1, unhex('"+fmt.Sprintf("%x", histories.VaultAt(1).Bytes())+"') FROM records WHERE passed AND event = 'NavUpdated'")
	wantError(t, g.compared(t, s.Records).Err(), "navs: all that the log says: the table has")
	wantError(t, Audit(t.Context(), g.conn), "navs has", "rows were lost or doubled")
}

// TestSample: a sample finds nothing wrong in a sound generation, whichever it
// is, and together the samples find what is wrong.
func TestSample(t *testing.T) {
	if testing.Short() {
		t.Skip("compares one history after the other")
	}
	t.Parallel()
	s := histories.Random(rand.New(rand.NewPCG(31, 3)), chainID, 40)
	g := filled(t, s.Records)
	samples := func() (faults int, compared uint64) {
		for k := range uint64(3) {
			v := newVerifier(g.conn, recordsLog(s.Records), Options{})
			v.sample = sample{3, k}
			v.fold = oracle.Sampled(v.sample.keeps)
			must(t, v.tables(t.Context()))
			for _, table := range readmodel.Derived {
				c := check(t, v.report.Checks, table+": the fold of the log")
				compared += c.Compared
				if c.Difference != "" {
					faults++
				}
			}
		}
		return faults, compared
	}
	var rows uint64
	for _, c := range g.equal(t, s.Records).Checks {
		if strings.HasSuffix(c.Name, "the fold of the log") {
			rows += c.Compared
		}
	}
	if faults, compared := samples(); faults != 0 || compared != rows {
		t.Errorf("%d differences in 3 samples, which compared %d rows of %d", faults, compared, rows)
	}
	g.change(t, "INSERT INTO users (sign, list, user) VALUES (1, 'first', unhex('00000000000000000000000000000000000b0001'))")
	if faults, _ := samples(); faults != 1 {
		t.Errorf("%d of 3 samples find the wrong row, want 1", faults)
	}
}

// TestSlices: one row of many that is there twice is found in its slice, and told; and one that says something else, also
// where that is of the same slice, so that there are as many rows as there must be.
func TestSlices(t *testing.T) {
	if testing.Short() {
		t.Skip("compares one history after the other")
	}
	t.Parallel()
	s := histories.Random(rand.New(rand.NewPCG(31, 4)), chainID, 30)
	g := filled(t, s.Records)
	r := g.equal(t, s.Records)
	for _, table := range readmodel.Derived {
		if check(t, r.Checks, table+": its definition").Compared < 2 {
			t.Errorf("%s has too few rows to tell anything", table)
		}
		g.change(t, "INSERT INTO "+table+" SELECT * FROM "+table+" ORDER BY vault DESC LIMIT 1")
		c, err := defined(t.Context(), g.conn, table, nil)
		must(t, err)
		if !strings.Contains(c.Difference, "in 1 of 1024 slices of the table; one such row") || !strings.Contains(c.Difference, "which the table has 2 times and its definition 1") {
			t.Errorf("a row of %s is doubled: %+v", table, c)
		}
	}
	for table, another := range map[string]string{
		readmodel.Withdrawals: "estimate = estimate + 1", readmodel.Users: "first_ts = first_ts + 1", readmodel.PartnerTotals: "volume = volume + 1",
	} {
		g := filled(t, s.Records)
		g.change(t, "ALTER TABLE "+table+" UPDATE "+another+" WHERE NOT ("+readmodel.CursorRow(table)+") SETTINGS mutations_sync = 2")
		c, err := inSlices(t.Context(), g.conn, table, 1, nil)
		must(t, err)
		if !strings.Contains(c.Difference, "in 1 of 1 slices of the table; one such row") {
			t.Errorf("all rows of %s are changed: %+v", table, c)
		}
	}
}

// TestProofsOfRows: a missing row, a doubled one, and one in another's place are
// found, and the memory of the proofs does not grow with the table.
func TestProofsOfRows(t *testing.T) {
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
		g.change(t, "TRUNCATE TABLE records", fmt.Sprintf("INSERT INTO records (seq, sign, writer, kind) SELECT arrayJoin(%s), 1, %d, 'block' FROM numbers(%d) SETTINGS max_block_size = %d", c.seqs, i, last, last))
		if err := g.conn.QueryRow(little, "SELECT uniqExact(seq) FROM records").Scan(new(uint64)); err == nil {
			t.Fatal("a set of all seqs fits into the memory, the test proves nothing")
		}
		v := verifier{conn: g.conn, report: &Report{Seq: last}, atOnce: 100_000}
		must(t, v.unique(little, "records"))
		if err := v.report.Err(); (err != nil) != (c.name != "sound") {
			t.Errorf("%s: the proof of rows says %v", c.name, err)
		}
		if err := Audit(little, g.conn); c.name == "sound" && err != nil || c.name != "sound" && !isBroken(err) {
			t.Errorf("%s: the audit says %v", c.name, err)
		}
	}
}
