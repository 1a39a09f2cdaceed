package readmodel_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

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
		if seq, writer, err := readmodel.Cursor(t.Context(), conn, database, table); seq != 0 || writer != 0 || err != nil {
			t.Errorf("%s is empty and stands at %d of %d, %v", table, seq, writer, err)
		}
		for _, row := range []string{"(3, 30)", "(9, 90)", "(5, 50)"} {
			if err := conn.Exec(t.Context(), "INSERT INTO "+database+"."+table+" (seq, writer) VALUES "+row); err != nil {
				t.Fatal(err)
			}
		}
		if seq, writer, err := readmodel.Cursor(t.Context(), conn, database, table); seq != 9 || writer != 90 || err != nil {
			t.Errorf("%s stands at %d of %d, %v; want 9 of 90", table, seq, writer, err)
		}
		// The cursor comes from the projection in the parts, never from the rows.
		var plan []string
		rows, err := conn.Query(t.Context(), "EXPLAIN SELECT max(seq), argMax(writer, seq) FROM "+database+"."+table)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			plan = append(plan, line)
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(plan, "\n"); !strings.Contains(text, "ReadFromMergeTree (cursor)") {
			t.Errorf("the cursor of %s is read like this:\n%s", table, text)
		}
	}
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
		for _, want := range []string{"CREATE TABLE " + table + " (", "seq UInt64", "row UInt8", "sign Int8", "writer UInt64", "PROJECTION cursor", "ENGINE = MergeTree ORDER BY"} {
			if !strings.Contains(string(b), want) {
				t.Errorf("%s.sql lacks %q", table, want)
			}
		}
		if strings.Contains(string(b), "PARTITION BY") {
			t.Errorf("%s is partitioned: an insert would no longer be atomic", table)
		}
	}
}
