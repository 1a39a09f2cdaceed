package readmodel_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/navlog/navlog/schemas/readmodel"
)

// built creates a generation for the test, with lists if requested.
func built(t *testing.T, lists bool) *generation {
	t.Helper()
	g := create(t)
	if lists {
		must(t, g.config.CreateLists(t.Context(), g.conn, g.database, "lists"))
	}
	return g
}

// TestGenerationDDL compares the statements for a generation's two tables, on a single server and on a cluster, with
// the golden files.
func TestGenerationDDL(t *testing.T) {
	for name, cluster := range map[string]string{"single": "", "cluster": "main"} {
		c := readmodel.DefaultConfig()
		c.Cluster = cluster
		r := new(recorder)
		must(t, c.CreateEvents(t.Context(), r, "navlog_g7"))
		must(t, c.CreateLists(t.Context(), r, "navlog_g7", "lists_draft"))
		must(t, c.Publish(t.Context(), r, "navlog_g7", "lists", "lists_draft"))
		must(t, c.CreateViews(t.Context(), r, "navlog_g7"))
		must(t, c.Discard(t.Context(), r, "navlog_g7", "lists_draft"))
		must(t, c.Drop(t.Context(), r, "navlog_g7"))
		got := strings.Join(r.statements, ";\n\n") + ";\n"
		path := filepath.Join("testdata", "generation-"+name+".sql")
		if *update {
			must(t, os.WriteFile(path, []byte(got), 0o644))
		}
		want, err := os.ReadFile(path)
		if err != nil || got != string(want) {
			t.Errorf("%s: the DDL is not that of %s (%v):\n%s", name, path, err, got)
		}
		for _, statement := range r.statements {
			if on := strings.Contains(statement, " ON CLUSTER main"); on != (cluster != "") {
				t.Errorf("%s: %s", name, statement)
			}
			replicated := strings.Contains(statement, "ENGINE = Replicated") && strings.Contains(statement, "\n) ENGINE") &&
				strings.Contains(statement, " replicated_deduplication_window")
			if strings.Contains(statement, "CREATE TABLE") && replicated != (cluster != "") {
				t.Errorf("%s: %s", name, statement)
			}
		}
	}
}

// TestCheckGeneration checks that a generation is accepted only if its tables are as CreateEvents and CreateLists
// create them.
func TestCheckGeneration(t *testing.T) {
	t.Parallel()
	g := built(t, false)
	check := func() (bool, error) { return g.config.CheckGeneration(t.Context(), g.conn, g.database) }
	if built, err := check(); err != nil || built {
		t.Errorf("a generation without lists: %t, %v", built, err)
	}
	must(t, g.config.CreateLists(t.Context(), g.conn, g.database, "lists_draft"))
	if built, err := check(); err != nil || built {
		t.Errorf("a generation with a draft: %t, %v", built, err)
	}
	must(t, g.config.Publish(t.Context(), g.conn, g.database, "lists", "lists_draft"))
	if built, err := check(); err != nil || !built {
		t.Errorf("a generation with lists: %t, %v", built, err)
	}
	must(t, g.config.CreateLists(t.Context(), g.conn, g.database, "lists_draft"))
	if err := g.config.Publish(t.Context(), g.conn, g.database, "lists", "lists_draft"); err == nil {
		t.Error("a draft replaced a published table")
	}
	for range 2 { // the second call finds no table
		must(t, g.config.Discard(t.Context(), g.conn, g.database, "lists_draft"))
	}
	wantFault := func(what, table, lacks string, err error) {
		t.Helper()
		var fault *readmodel.TableError
		if !errors.As(err, &fault) || fault.Table != table || !strings.Contains(err.Error(), "lacks "+lacks) ||
			!strings.Contains(err.Error(), "`navlog projection rebuild`") {
			t.Errorf("%s: %v", what, err)
		}
	}
	g.do(t, "ALTER TABLE lists MODIFY SETTING fsync_after_insert = 0")
	_, err := check()
	wantFault("altered lists", "lists", "fsync_after_insert = 1", err)
	must(t, g.config.Discard(t.Context(), g.conn, g.database, "lists"))
	g.do(t, "ALTER TABLE events MODIFY SETTING non_replicated_deduplication_window = 7")
	_, err = check()
	wantFault("altered events", "events", "non_replicated_deduplication_window = 100000", err)
	g.do(t, "DROP TABLE events",
		"CREATE TABLE events (seq UInt64) ENGINE = MergeTree ORDER BY seq SETTINGS non_replicated_deduplication_window = "+
			"100000, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1")
	_, err = check()
	wantFault("another engine", "events", "MergeTree PARTITION BY seq = 0", err)
	_, err = g.config.CheckGeneration(t.Context(), g.conn, "nowhere")
	wantFault("no tables", "events", "MergeTree PARTITION BY seq = 0", err)
}

// TestPosition checks that a generation's position is the cursor of lists or, without lists, the end of events.
func TestPosition(t *testing.T) {
	t.Parallel()
	g := built(t, false)
	at := func(when string, want uint64, there bool) {
		t.Helper()
		for _, database := range []string{g.database, ""} {
			if got, err := readmodel.ReadPosition(t.Context(), g.conn, database); got.Seq != want || got.Found != there ||
				err != nil {
				t.Errorf("%s: the generation in %q is at %+v, %v; want %d", when, database, got, err, want)
			}
		}
	}
	at("without rows", 0, true)
	g.do(t, "INSERT INTO events (seq, writer) VALUES (3, 30), (9, 90), (5, 50)")
	at("without lists", 9, true)
	for from, want := range map[uint64][2]uint64{0: {9, 90}, 9: {9, 90}, 10: {}} {
		if seq, writer, err := readmodel.ReadEventsCursor(t.Context(), g.conn, from); [2]uint64{seq, writer} != want ||
			err != nil {
			t.Errorf("from seq %d on events is at seq %d of writer %d, %v", from, seq, writer, err)
		}
	}
	must(t, g.config.CreateLists(t.Context(), g.conn, g.database, "lists"))
	at("with empty lists", 0, true)
	g.do(t, "SYSTEM STOP MERGES lists")
	before := readmodel.ListsCursor{}
	for _, c := range []readmodel.ListsCursor{{Seq: 4, Block: 70, TS: 700, Writer: 1},
		{Seq: 8, Block: 60, TS: 600, Rewrites: 1, Writer: 2}} {
		rows := readmodel.ListsTable.NewRows()
		if before.Seq > 0 {
			for _, row := range before.Rows(-1) {
				rows.Add(&row)
			}
		}
		for _, row := range c.Rows(1) {
			rows.Add(&row)
		}
		batch, err := g.conn.PrepareBatch(t.Context(), "INSERT INTO lists ("+readmodel.ListsTable.Names()+")")
		must(t, err)
		must(t, rows.Fill(batch.Columns()))
		must(t, batch.Send())
		at("with a cursor", c.Seq, true)
		if got, err := readmodel.ReadListsCursor(t.Context(), g.conn, "lists"); got != c || err != nil {
			t.Errorf("the cursor is %+v, %v; want %+v", got, err, c)
		}
		before = c
	}
	if at, err := readmodel.ReadPosition(t.Context(), g.conn, "nowhere"); at != (readmodel.Position{}) || err != nil {
		t.Errorf("no generation is at %+v, %v", at, err)
	}
}

// TestEventsPartsHaveTheirSeqs checks that all rows are in one partition, that an insert is one part, that the last seq
// is found without reading rows, and that rows after a seq are found without reading earlier parts.
func TestEventsPartsHaveTheirSeqs(t *testing.T) {
	t.Parallel()
	g := built(t, false)
	g.do(t, "SYSTEM STOP MERGES events", "INSERT INTO events (seq) VALUES (1), (2), (18446744073709551615)",
		"INSERT INTO events (seq) VALUES (3), (4)")
	var parts, partitions uint64
	err := g.conn.QueryRow(t.Context(),
		"SELECT count(), uniqExact(partition_id) FROM system.parts WHERE database = {database:String} AND table = "+
			"'events' AND active", clickhouse.Named("database", g.database)).Scan(&parts, &partitions)
	if parts != 2 || partitions != 1 || err != nil {
		t.Errorf("two inserts created %d parts in %d partitions, %v", parts, partitions, err)
	}
	if plan := explain(t, g.conn, "EXPLAIN SELECT max(seq) FROM events"); !strings.Contains(plan,
		"_minmax_count_projection") {
		t.Errorf("the last seq is read like this:\n%s", plan)
	}
	if plan := explain(t, g.conn, "EXPLAIN indexes = 1 SELECT writer FROM events WHERE seq > 4"); !strings.Contains(plan,
		"Parts: 1/2") {
		t.Errorf("what came after seq 4 is read like this:\n%s", plan)
	}
}
