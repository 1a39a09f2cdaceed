package readmodel_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

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

// TestClusterSettings: a writer with replicas waits for a quorum and reads
// what was acknowledged, and looks at the queries of all replicas.
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
	rows, err := conn.Query(t.Context(), "SELECT name, value FROM system.settings WHERE name IN ('insert_quorum', 'insert_quorum_parallel', 'select_sequential_consistency', 'insert_deduplicate', 'async_insert')")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	got := map[string]string{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			t.Fatal(err)
		}
		got[name] = value
	}
	for name, value := range map[string]string{"insert_quorum": "auto", "insert_quorum_parallel": "0", "select_sequential_consistency": "1", "insert_deduplicate": "1", "async_insert": "0"} {
		if got[name] != value {
			t.Errorf("%s is %q and must be %q", name, got[name], value)
		}
	}
	if err := c.CheckTables(t.Context(), conn, "nowhere"); err == nil || !strings.Contains(err.Error(), "ReplicatedMergeTree(") {
		t.Errorf("tables that are not replicated: %v", err)
	}
	c.Cluster = "no name"
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "clickhouse.cluster is \"no name\"") {
		t.Errorf("a wrong name: %v", err)
	}
}
