package readmodel_test

import (
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

// TestDDL: the statements that make a generation, alone and on a cluster, are
// those of the golden files.
func TestDDL(t *testing.T) {
	for name, cluster := range map[string]string{"alone": "", "cluster": "main"} {
		c := readmodel.DefaultConfig()
		c.Cluster = cluster
		got := strings.Join(c.DDL("navlog_g7"), ";\n\n") + ";\n"
		path := filepath.Join("testdata", "ddl-"+name+".sql")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || got != string(want) {
			t.Errorf("%s: the DDL is not that of %s (%v):\n%s", name, path, err, got)
		}
		for _, statement := range c.DDL("navlog_g7") {
			replicated := strings.Contains(statement, " ON CLUSTER main") && (strings.HasPrefix(statement, "CREATE DATABASE") || strings.Contains(statement, "ReplicatedMergeTree("))
			if replicated != (cluster != "") {
				t.Errorf("%s: %s", name, statement)
			}
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
	conn, err := c.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	wantSettings(t, conn, map[string]string{"insert_quorum": "auto", "insert_quorum_parallel": "0", "select_sequential_consistency": "1", "insert_deduplicate": "1", "async_insert": "0"})
	reader, err := c.OpenReader(1)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	wantSettings(t, reader, map[string]string{"select_sequential_consistency": "1", "max_execution_time": "10"})
	if err := c.CheckTables(t.Context(), conn, "nowhere"); err == nil || !strings.Contains(err.Error(), "ReplicatedMergeTree(") {
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
