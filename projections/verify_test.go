package projections

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
)

// TestVerifyFindsDifferences writes one wrong row at a time, or one wrong value into
// the rows, and looks whether verify names the right place.
func TestVerifyFindsDifferences(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := everyEvent()
	w.append(t, s.Records)
	p, _ := w.projector(t)
	stop := start(t, p)
	reaches(t, p, s.Seq())
	must(t, stop())
	if text := w.verify(t, s.Seq()).String(); !strings.Contains(text, "generation 1 (") || !strings.Contains(text, "equal") || strings.Contains(text, "DIFFERENT") {
		t.Errorf("the report prints\n%s", text)
	}
	for _, c := range []struct{ table, row, check, words string }{
		{"records", "(seq, row, sign) VALUES (2, 9, 1)", "records: rows unique", "rows up to seq"},
		{"deposits", "(seq, row, sign, partner) VALUES (3, 9, 1, 0)", "deposits", "the table has"},
		{"deposits", "(seq, row, sign, partner, partner_user) VALUES (3, 9, 1, 7, 1), (3, 10, -1, 7, 0)", "deposits: totals by partner", `"7 1 1000 2" where the log gives "7 1 1000 1"`},
		{"flows", "(seq, row, sign, withdrawn) VALUES (3, 9, 1, 1)", "flows: totals by vault and user", "the table has"},
		{"rankings", "(seq, row, sign, list, user, users) VALUES (3, 9, 1, 'first', 'x', 1)", "rankings", "nothing more"},
		{"rankings", "(seq, row, sign, list, bucket, key, user, deposited) SELECT 3, 9, 1, list, bucket, key, user, 5 FROM {db}.rankings WHERE list = 'first' AND users = 1 ORDER BY seq LIMIT 1",
			"rankings", "where the log gives"},
		{"requests", "(seq, row, sign, kind) VALUES (3, 9, 1, 'funded')", "requests", "the table has"},
		{"requests", "(seq, row, sign, open) VALUES (3, 9, 1, 1), (3, 10, -1, 0)", "requests: queue by vault", "the table has"},
		{"navs", "(seq, row, sign) VALUES (3, 9, 1)", "navs", "the table has"},
		{"sweeps", "(seq, row, sign, retracts) SELECT 3, 9, -1, seq FROM {db}.sweeps WHERE sign = 1", "sweeps", "the table lacks"},
		{"rankings", "SELECT * REPLACE(sign AS sign) FROM {db}.rankings WHERE sign != 0 LIMIT 1", "rankings: rows unique", "different"},
	} {
		t.Run(c.check, func(t *testing.T) {
			database := w.cloned(t)
			into := strings.ReplaceAll(c.row, "{db}", database)
			must(t, w.conn.Exec(t.Context(), "INSERT INTO "+database+"."+c.table+" "+into))
			w.finds(t, database, c.check, c.words)
		})
	}
	for _, c := range []struct{ name, change, check string }{
		{"block time", "ALTER TABLE {db}.records UPDATE ts = ts + 1 WHERE kind = 'block'", "records: all they say"},
		{"block hash", "ALTER TABLE {db}.records UPDATE hash = toFixedString('x', 32) WHERE kind = 'block'", "records: all they say"},
		{"boundary", "ALTER TABLE {db}.records UPDATE boundary = NOT boundary WHERE seq = 3", "records: all they say"},
		{"vault", "ALTER TABLE {db}.records UPDATE payload = '' WHERE kind = 'vault'", "records: all they say"},
		{"event", "ALTER TABLE {db}.records UPDATE event = 'Unknown' WHERE event = 'NavUpdated'", "records: all they say"},
		{"log index", "ALTER TABLE {db}.records UPDATE log_index = log_index + 1 WHERE event = 'NavUpdated'", "records: all they say"},
		{"expiry of what waits", "ALTER TABLE {db}.requests UPDATE expires_ts = 1 WHERE kind != 'requested' AND waiting != 0", "requests: queue"},
		{"block of flows", "TRUNCATE TABLE {db}.flows; INSERT INTO {db}.flows SELECT * REPLACE (if(sign = 0, block, block + 1) AS block) FROM {sound}.flows", "flows: totals by vault and user"},
		{"block of claims", "TRUNCATE TABLE {db}.flows; INSERT INTO {db}.flows SELECT * REPLACE (if(withdrawn = 0, block, block + 1) AS block) FROM {sound}.flows", "flows: totals by vault and user"},
	} {
		t.Run(c.name, func(t *testing.T) {
			database := w.cloned(t)
			change := strings.NewReplacer("{db}", database, "{sound}", w.ch.Database(1)).Replace(c.change)
			for statement := range strings.SplitSeq(change, ";") {
				must(t, w.conn.Exec(clickhouse.Context(t.Context(), clickhouse.WithSettings(clickhouse.Settings{"mutations_sync": 2})), statement))
			}
			w.finds(t, database, c.check, "the table has")
		})
	}
	t.Run("log", func(t *testing.T) { // goes last: the log is broken from here on
		w.transaction(t, []*event.Record{{Seq: s.Seq() + 2, ChainId: chainID, Boundary: true, Fact: s.Records[1].Fact}}, kgo.TryCommit)
		database := w.ch.Database(2)
		for _, table := range []string{"records", "deposits", "flows", "rankings", "requests", "navs", "sweeps"} {
			must(t, w.conn.Exec(t.Context(), fmt.Sprintf("INSERT INTO %s.%s (seq) VALUES (%d)", database, table, s.Seq()+2)))
		}
		r, err := verifyGeneration(t.Context(), chainID, w.kafka, w.conn, 2, database, VerifyOptions{})
		must(t, err)
		if err := r.Err(); err == nil || !strings.Contains(err.Error(), "records were lost") {
			t.Errorf("a hole in the log: %v", err)
		}
	})
}

// cloned makes a copy of generation 1, in the place of generation 2.
func (w *world) cloned(t *testing.T) (database string) {
	t.Helper()
	database = w.ch.Database(2)
	must(t, w.conn.Exec(t.Context(), "DROP DATABASE IF EXISTS "+database))
	must(t, w.conn.Exec(t.Context(), "CREATE DATABASE "+database+" ENGINE = Atomic"))
	for _, table := range readmodel.Tables {
		must(t, w.conn.Exec(t.Context(), fmt.Sprintf("CREATE TABLE %s.%s CLONE AS %s.%s", database, table, w.ch.Database(1), table)))
	}
	return database
}

// finds fails the test unless verify tells the difference with these words under
// the name of that check.
func (w *world) finds(t *testing.T, database, check, words string) {
	t.Helper()
	r, err := verifyGeneration(t.Context(), chainID, w.kafka, w.conn, 2, database, VerifyOptions{})
	must(t, err)
	i := slices.IndexFunc(r.Checks, func(found Check) bool { return found.Name == check })
	if i < 0 || !strings.Contains(r.Checks[i].Difference, words) {
		t.Errorf("want %q under %s, got\n%s", words, check, r)
	}
	if r.Err() == nil || !strings.Contains(r.String(), "DIFFERENT") {
		t.Errorf("nothing is found:\n%s", r)
	}
}

// TestProofsOfRows: a missing row, a doubled one, and one in another's place are
// found, and the memory of the proofs does not grow with the table.
func TestProofsOfRows(t *testing.T) {
	t.Parallel()
	conn, database := newGeneration(t)
	const last = 3_000_000
	records := database + ".records"
	little := clickhouse.Context(t.Context(), clickhouse.WithSettings(clickhouse.Settings{"max_memory_usage": 40 << 20}))
	for i, c := range []struct{ name, seqs string }{
		{"sound", "[number + 1]"},
		{"missing", "if(number = 123456, [], [number + 1])"},
		{"doubled", "if(number = 2000000, [number + 1, number + 1], [number + 1])"},
		{"exchanged", "if(number = 7, [2999999], [number + 1])"},
	} {
		must(t, conn.Exec(t.Context(), "TRUNCATE TABLE "+records))
		must(t, conn.Exec(t.Context(), fmt.Sprintf("INSERT INTO %s (seq, sign, writer) SELECT arrayJoin(%s), 1, %d FROM numbers(%d) SETTINGS max_block_size = %d", records, c.seqs, i, last, last)))
		if err := conn.QueryRow(little, "SELECT uniqExact(seq) FROM "+records).Scan(new(uint64)); err == nil {
			t.Fatal("a set of all seqs fits into the memory, the test proves nothing")
		}
		v := verifier{conn: conn, report: &Report{Database: database, Seq: last}, span: 100_000}
		must(t, v.rows(little, "records"))
		var broken *brokenError
		err := checkContiguous(little, conn, database)
		if found := errors.As(err, &broken); err != nil && !found || found != (c.name != "sound") {
			t.Errorf("%s: the proof of seqs says %v", c.name, err)
		}
		if err := v.report.Err(); (err != nil) != (c.name != "sound") {
			t.Errorf("%s: the proof of rows says %v", c.name, err)
		}
	}
}
