package readmodel_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/navlog/navlog/schemas/readmodel"
)

var update = flag.Bool("update", false, "write the golden files anew")

// recorder is a connection that only notes what it is to do.
type recorder struct {
	driver.Conn
	statements []string
}

func (r *recorder) Exec(_ context.Context, query string, _ ...any) error {
	r.statements = append(r.statements, query)
	return nil
}

// TestDDL: the statements of a generation's life, alone and on a cluster, are those
// of the golden files.
func TestDDL(t *testing.T) {
	for name, cluster := range map[string]string{"alone": "", "cluster": "main"} {
		c := readmodel.DefaultConfig()
		c.Cluster = cluster
		r := new(recorder)
		must(t, c.Create(t.Context(), r, "navlog_g7"))
		for _, table := range readmodel.Derived {
			must(t, c.CreateDerived(t.Context(), r, "navlog_g7", table, table+"_draft"))
		}
		must(t, c.Publish(t.Context(), r, "navlog_g7", readmodel.Users, "users_draft"))
		must(t, c.Discard(t.Context(), r, "navlog_g7", "users_draft"))
		must(t, c.Drop(t.Context(), r, "navlog_g7"))
		got := strings.Join(r.statements, ";\n\n") + ";\n"
		path := filepath.Join("testdata", "ddl-"+name+".sql")
		if *update {
			must(t, os.WriteFile(path, []byte(got), 0o644))
		}
		want, err := os.ReadFile(path)
		if err != nil || got != string(want) {
			t.Errorf("%s: the DDL is not that of %s (%v):\n%s", name, path, err, got)
		}
		tables := 0
		for _, statement := range r.statements {
			if on := strings.Contains(statement, " ON CLUSTER main"); on != (cluster != "") {
				t.Errorf("%s: %s", name, statement)
			}
			if !strings.Contains(statement, "CREATE TABLE") {
				continue
			}
			tables++
			if replicated := strings.Contains(statement, "ENGINE = Replicated"); replicated != (cluster != "") {
				t.Errorf("%s: %s", name, statement)
			}
		}
		if tables != len(readmodel.All) {
			t.Errorf("%s: %d tables, want %d", name, tables, len(readmodel.All))
		}
	}
}

// TestClusterSettings: a writer with replicas waits for a quorum, it and query
// read what was acknowledged, and the queries of all replicas are looked at.
func TestClusterSettings(t *testing.T) {
	c := config(t)
	if got := c.Processes(); got != "system.processes" {
		t.Errorf("alone: %s", got)
	}
	c.Cluster = "main"
	if got := c.Processes(); got != "clusterAllReplicas(main, system.processes)" {
		t.Errorf("cluster: %s", got)
	}
	conn, err := c.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	wantSettings(t, conn, map[string]string{"insert_quorum": "auto", "insert_quorum_parallel": "0", "select_sequential_consistency": "1", "insert_deduplicate": "1", "async_insert": "0"})
	reader, err := c.OpenReader("", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	wantSettings(t, reader, map[string]string{"select_sequential_consistency": "1", "max_execution_time": "10"})
	patient, err := c.OpenPatient("")
	must(t, err)
	defer patient.Close()
	wantSettings(t, patient, map[string]string{"select_sequential_consistency": "1", "insert_quorum": "auto", "max_execution_time": "0"})
	if _, err := c.CheckTables(t.Context(), conn, "nowhere"); err == nil || !strings.Contains(err.Error(), "ReplicatedMergeTree(") {
		t.Errorf("tables that are not replicated: %v", err)
	}
	c.Cluster = "no name"
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "clickhouse.cluster is \"no name\"") {
		t.Errorf("a wrong name: %v", err)
	}
}

// wantSettings fails the test where questions of a connection have other settings.
func wantSettings(t *testing.T, conn driver.Conn, want map[string]string) {
	t.Helper()
	for name, value := range want {
		var got string
		if err := conn.QueryRow(t.Context(), "SELECT value FROM system.settings WHERE name = {name:String}", clickhouse.Named("name", name)).Scan(&got); err != nil || got != value {
			t.Errorf("%s is %q (%v) and must be %q", name, got, err, value)
		}
	}
}
