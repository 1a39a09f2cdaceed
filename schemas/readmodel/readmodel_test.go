package readmodel_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/navlog/navlog/deploy/local/localtest"
	"github.com/navlog/navlog/schemas/readmodel"
)

func config(t *testing.T) readmodel.Config {
	c := readmodel.DefaultConfig()
	c.Addr, c.Prefix = localtest.ClickHouse(t), fmt.Sprintf("rm%d", os.Getpid())
	return c
}

// create makes a generation for the test, and drops it at its end.
func create(t *testing.T) (driver.Conn, string) {
	t.Helper()
	c := config(t)
	conn, err := c.Open()
	if err != nil {
		t.Fatal(err)
	}
	database := c.Database(1)
	t.Cleanup(func() {
		if err := conn.Exec(context.Background(), "DROP DATABASE "+database); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
		conn.Close()
	})
	for range 2 { // the second time finds everything there
		if err := readmodel.Create(t.Context(), conn, database); err != nil {
			t.Fatal(err)
		}
	}
	return conn, database
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
	conn, err := config(t).Open()
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
	away, err := c.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer away.Close()
	if err := readmodel.CheckServer(t.Context(), away); err == nil || !strings.Contains(err.Error(), "is clickhouse.addr right") {
		t.Errorf("no server: %v", err)
	}
}

func TestTables(t *testing.T) {
	conn, database := create(t)
	if err := readmodel.CheckTables(t.Context(), conn, database); err != nil {
		t.Error(err)
	}
	for _, table := range readmodel.Tables {
		stands := func(from, seq, writer uint64) {
			t.Helper()
			if s, w, err := readmodel.Cursor(t.Context(), conn, database, table, from); s != seq || w != writer || err != nil {
				t.Errorf("%s stands from %d on at %d of %d, %v; want %d of %d", table, from, s, w, err, seq, writer)
			}
		}
		stands(0, 0, 0)
		for _, row := range []string{"(3, 30)", "(9, 90)", "(5, 50)"} {
			if err := conn.Exec(t.Context(), "INSERT INTO "+database+"."+table+" (seq, writer) VALUES "+row); err != nil {
				t.Fatal(err)
			}
		}
		stands(0, 9, 90)
		if last, err := readmodel.LastSeq(t.Context(), conn, database, table); last != 9 || err != nil {
			t.Errorf("%s ends with %d, %v; want 9", table, last, err)
		}
		stands(9, 9, 90)
		stands(10, 0, 0)
	}
}

// TestPartsKnowTheirSeqs: rows of any seq are in one partition, an insert is one
// part, the last seq is read without any row, and what came after a seq without
// the parts before it.
func TestPartsKnowTheirSeqs(t *testing.T) {
	conn, database := create(t)
	for _, table := range readmodel.Tables {
		name := database + "." + table
		if err := conn.Exec(t.Context(), "SYSTEM STOP MERGES "+name); err != nil {
			t.Fatal(err)
		}
		for _, rows := range []string{"(1), (2), (18446744073709551615)", "(3), (4)"} {
			if err := conn.Exec(t.Context(), "INSERT INTO "+name+" (seq) VALUES "+rows); err != nil {
				t.Fatal(err)
			}
		}
		var parts, partitions uint64
		err := conn.QueryRow(t.Context(), "SELECT count(), uniqExact(partition_id) FROM system.parts WHERE database = {database:String} AND table = {table:String} AND active",
			clickhouse.Named("database", database), clickhouse.Named("table", table)).Scan(&parts, &partitions)
		if parts != 2 || partitions != 1 || err != nil {
			t.Errorf("two inserts into %s made %d parts in %d partitions, %v", table, parts, partitions, err)
		}
		if plan := explain(t, conn, "EXPLAIN SELECT max(seq) FROM "+name); !strings.Contains(plan, "_minmax_count_projection") {
			t.Errorf("the last seq of %s is read like this:\n%s", table, plan)
		}
		if plan := explain(t, conn, "EXPLAIN indexes = 1 SELECT writer FROM "+name+" WHERE seq > 4"); !strings.Contains(plan, "Parts: 1/2") {
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

func TestCheckTablesRefuses(t *testing.T) {
	conn, database := create(t)
	if err := conn.Exec(t.Context(), "ALTER TABLE "+database+".rankings MODIFY SETTING fsync_after_insert = 0"); err != nil {
		t.Fatal(err)
	}
	err := readmodel.CheckTables(t.Context(), conn, database)
	var fault *readmodel.TableError
	if !errors.As(err, &fault) || fault.Table != "rankings" || !strings.Contains(err.Error(), "lacks fsync_after_insert = 1") {
		t.Errorf("an altered table: %v", err)
	}
	if err := readmodel.CheckTables(t.Context(), conn, "nowhere"); !errors.As(err, &fault) || fault.Table != "records" {
		t.Errorf("no tables: %v", err)
	}
}

// TestSchema: the name of the schema changes with any table, and every table
// has what the two programs rely on.
func TestSchema(t *testing.T) {
	if s := readmodel.Schema(); len(s) != 12 || s != readmodel.Schema() {
		t.Errorf("schema is %q", s)
	}
	files, err := os.ReadDir("tables")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(readmodel.Tables) {
		t.Errorf("%d files for %d tables", len(files), len(readmodel.Tables))
	}
	for _, table := range readmodel.Tables {
		b, err := os.ReadFile("tables/" + table + ".sql")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"CREATE TABLE " + table + " (", "seq UInt64", "row UInt8", "sign Int8", "writer UInt64", "ENGINE = MergeTree PARTITION BY seq = 0 PRIMARY KEY"} {
			if !strings.Contains(string(b), want) {
				t.Errorf("%s.sql lacks %q", table, want)
			}
		}
		if strings.Count(string(b), "PARTITION BY") != 1 {
			t.Errorf("%s is partitioned by more than seq = 0: an insert would no longer be atomic", table)
		}
	}
}
