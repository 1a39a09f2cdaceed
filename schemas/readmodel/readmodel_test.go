package readmodel_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/schemas/readmodel"
)

var prefixes atomic.Int64

// config returns a configuration with databases for this test only.
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

// generation is a generation for a test.
type generation struct {
	config   readmodel.Config
	database string
	conn     driver.Conn // to its database
}

// create creates a generation for the test, and drops it afterwards.
func create(t *testing.T) *generation {
	t.Helper()
	g := &generation{config: config(t)}
	g.database = g.config.Database(1)
	server, err := g.config.Open("")
	must(t, err)
	for range 2 { // the second call finds everything in place
		must(t, g.config.CreateEvents(t.Context(), server, g.database))
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

// do runs statements, with never as readmodel.Never.
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
	v, err := conn.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	major, minor := v.Version.Major, v.Version.Minor
	for least, old := range map[[2]uint64]bool{{major + 10, 0}: true, {major, minor + 1}: true, {major, minor}: false,
		{major - 1, minor + 1}: false} {
		readmodel.MinVersion = least
		for _, err := range []error{readmodel.Reach(t.Context(), conn), readmodel.CheckServer(t.Context(), conn)} {
			if (err != nil) != old || old && !strings.Contains(err.Error(), "is too old") {
				t.Errorf("a server of %d.%d, where %v is the oldest: %v", major, minor, least, err)
			}
		}
	}
	c := config(t)
	c.Addr = "127.0.0.1:1"
	away, err := c.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer away.Close()
	if err := readmodel.CheckServer(t.Context(), away); err == nil ||
		!strings.Contains(err.Error(), "is clickhouse.addr right") {
		t.Errorf("an unreachable server: %v", err)
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

// TestSchema checks that the schema's name does not change by itself.
func TestSchema(t *testing.T) {
	if s := readmodel.Schema(); len(s) != 12 || s != readmodel.Schema() {
		t.Errorf("schema is %q", s)
	}
}
