package readmodel_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/schemas/readmodel"
)

var prefixes atomic.Int64

// config is one with databases of the test's own.
func config(t *testing.T) readmodel.Config {
	c := readmodel.DefaultConfig()
	c.Addr, c.Prefix = enginetest.ClickHouse(t), fmt.Sprintf("rm%d_%d", os.Getpid(), prefixes.Add(1))
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// generation is one that a test made.
type generation struct {
	config   readmodel.Config
	database string
	conn     driver.Conn // to its database
}

// create makes a generation for the test, and drops it at its end.
func create(t *testing.T) *generation {
	t.Helper()
	g := &generation{config: config(t)}
	g.database = g.config.Database(1)
	server, err := g.config.Open("")
	must(t, err)
	for range 2 { // the second time finds everything there
		must(t, g.config.Create(t.Context(), server, g.database))
	}
	g.conn, err = g.config.Open(g.database)
	must(t, err)
	t.Cleanup(func() {
		if err := g.config.Drop(context.Background(), server, g.database); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
		g.conn.Close()
		server.Close()
	})
	return g
}

// derived makes the derived tables too, which are empty.
func (g *generation) derived(t *testing.T) *generation {
	t.Helper()
	for _, table := range readmodel.Derived {
		must(t, g.config.CreateDerived(t.Context(), g.conn, g.database, table, table+"_draft"))
		must(t, g.config.Publish(t.Context(), g.conn, g.database, table, table+"_draft"))
	}
	return g
}

// do runs statements, in which never is readmodel.Never.
func (g *generation) do(t *testing.T, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if err := g.conn.Exec(readmodel.Parameters(t.Context(), nil), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func TestValidate(t *testing.T) {
	good := readmodel.DefaultConfig()
	good.Addr = "127.0.0.1:9000"
	if err := good.Validate(); err != nil {
		t.Errorf("a good configuration: %v", err)
	}
	err := readmodel.Config{Addr: "nowhere", Prefix: "Nav-log"}.Validate()
	for _, want := range []string{"clickhouse.addr", "clickhouse.user", "clickhouse.prefix"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	if got := good.Database(7); got != "navlog_g7" {
		t.Errorf("generation 7 is %s", got)
	}
}

func TestCheckServer(t *testing.T) {
	conn, err := config(t).Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := readmodel.CheckServer(t.Context(), conn); err != nil {
		t.Errorf("the engine of the tests: %v", err)
	}
	newest := readmodel.MinVersion
	defer func() { readmodel.MinVersion = newest }()
	readmodel.MinVersion = [2]uint64{newest[0] + 10, 0}
	if err := readmodel.CheckServer(t.Context(), conn); err == nil || !strings.Contains(err.Error(), "is too old") {
		t.Errorf("a server that is too old: %v", err)
	}
	c := config(t)
	c.Addr = "127.0.0.1:1"
	away, err := c.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer away.Close()
	if err := readmodel.CheckServer(t.Context(), away); err == nil || !strings.Contains(err.Error(), "is clickhouse.addr right") {
		t.Errorf("no server: %v", err)
	}
}

// appended are the tables that nothing is changed in.
var appended = slices.Concat([]string{readmodel.Spine}, readmodel.Facts)

// TestPartsKnowTheirSeqs: rows of any seq are in one partition, an insert is one
// part, the last seq is read without any row, and what came after a seq without
// the parts before it.
func TestPartsKnowTheirSeqs(t *testing.T) {
	t.Parallel()
	g := create(t)
	for _, table := range appended {
		g.do(t, "SYSTEM STOP MERGES "+table, "INSERT INTO "+table+" (seq) VALUES (1), (2), (18446744073709551615)", "INSERT INTO "+table+" (seq) VALUES (3), (4)")
		var parts, partitions uint64
		err := g.conn.QueryRow(t.Context(), "SELECT count(), uniqExact(partition_id) FROM system.parts WHERE database = {database:String} AND table = {table:String} AND active",
			clickhouse.Named("database", g.database), clickhouse.Named("table", table)).Scan(&parts, &partitions)
		if parts != 2 || partitions != 1 || err != nil {
			t.Errorf("two inserts into %s made %d parts in %d partitions, %v", table, parts, partitions, err)
		}
		if plan := explain(t, g.conn, "EXPLAIN SELECT max(seq) FROM "+table); !strings.Contains(plan, "_minmax_count_projection") {
			t.Errorf("the last seq of %s is read like this:\n%s", table, plan)
		}
		if plan := explain(t, g.conn, "EXPLAIN indexes = 1 SELECT writer FROM "+table+" WHERE seq > 4"); !strings.Contains(plan, "Parts: 1/2") {
			t.Errorf("what %s got after seq 4 is read like this:\n%s", table, plan)
		}
	}
}

func explain(t *testing.T, conn driver.Conn, question string) string {
	t.Helper()
	rows, err := conn.Query(t.Context(), question)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		plan = append(plan, line)
	}
	return strings.Join(plan, "\n")
}

// TestCheckTables: a generation is as Create and CreateDerived make it, or refused.
func TestCheckTables(t *testing.T) {
	t.Parallel()
	g := create(t)
	check := func() ([]string, error) { return g.config.CheckTables(t.Context(), g.conn, g.database) }
	if derived, err := check(); err != nil || len(derived) != 0 {
		t.Errorf("a generation that is not derived: %q, %v", derived, err)
	}
	must(t, g.config.CreateDerived(t.Context(), g.conn, g.database, readmodel.Users, "users_draft"))
	if derived, err := check(); err != nil || len(derived) != 0 {
		t.Errorf("a generation with a draft: %q, %v", derived, err)
	}
	must(t, g.config.Publish(t.Context(), g.conn, g.database, readmodel.Users, "users_draft"))
	if derived, err := check(); err != nil || !slices.Equal(derived, []string{readmodel.Users}) {
		t.Errorf("a generation with one derived table: %q, %v", derived, err)
	}
	must(t, g.config.CreateDerived(t.Context(), g.conn, g.database, readmodel.Users, "users_draft"))
	if err := g.config.Publish(t.Context(), g.conn, g.database, readmodel.Users, "users_draft"); err == nil {
		t.Error("a table was published over another one")
	}
	for range 2 { // the second time finds nothing
		must(t, g.config.Discard(t.Context(), g.conn, g.database, "users_draft"))
		must(t, g.config.Discard(t.Context(), g.conn, g.database, readmodel.Users))
	}
	g.derived(t)
	if derived, err := check(); err != nil || !slices.Equal(derived, readmodel.Derived) {
		t.Errorf("a generation that is derived: %q, %v", derived, err)
	}
	wantFault := func(what, table, lacks string, err error) {
		t.Helper()
		var fault *readmodel.TableError
		if !errors.As(err, &fault) || fault.Table != table || !strings.Contains(err.Error(), "lacks "+lacks) || !strings.Contains(err.Error(), "`navlog projection rebuild`") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, table := range []string{readmodel.PartnerTotals, readmodel.Sweeps} {
		g.do(t, "ALTER TABLE "+table+" MODIFY SETTING fsync_after_insert = 0")
		_, err := check()
		wantFault("an altered table", table, "fsync_after_insert = 1", err)
	}
	g.do(t, "DROP TABLE records", "CREATE TABLE records (seq UInt64) ENGINE = MergeTree ORDER BY seq")
	_, err := check()
	wantFault("another engine", readmodel.Spine, "MergeTree PARTITION BY seq = 0", err)
	_, err = g.config.CheckTables(t.Context(), g.conn, "nowhere")
	wantFault("no tables", readmodel.Spine, "MergeTree PARTITION BY seq = 0", err)
}

// TestSchema: every table has what the two programs rely on, and a file each for
// its statement and its definition.
func TestSchema(t *testing.T) {
	if s := readmodel.Schema(); len(s) != 12 || s != readmodel.Schema() {
		t.Errorf("schema is %q", s)
	}
	for folder, tables := range map[string][]string{"tables": readmodel.All, "definitions": readmodel.Derived} {
		files, err := os.ReadDir(folder)
		must(t, err)
		if len(files) != len(tables) {
			t.Errorf("%d files for %d %s", len(files), len(tables), folder)
		}
	}
	for _, table := range readmodel.All {
		b, err := os.ReadFile("tables/" + table + ".sql")
		must(t, err)
		wanted := []string{"CREATE TABLE " + table + " (", "seq UInt64", "sign Int8", "writer UInt64"}
		if slices.Contains(readmodel.Derived, table) {
			wanted = append(wanted, "ENGINE = CollapsingMergeTree(sign) ORDER BY", "fence_seq UInt64", "fence_block UInt64", "fence_before UInt64")
		} else {
			wanted = append(wanted, "ENGINE = MergeTree PARTITION BY seq = 0 PRIMARY KEY", "retracts UInt64")
		}
		for _, want := range wanted {
			if !strings.Contains(string(b), want) {
				t.Errorf("%s.sql lacks %q", table, want)
			}
		}
		if n := strings.Count(string(b), "PARTITION BY"); n > 1 || n == 1 && slices.Contains(readmodel.Derived, table) {
			t.Errorf("%s is partitioned by more than seq = 0: an insert would no longer be atomic", table)
		}
	}
}
