package readmodel_test

import (
	"context"
	"flag"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// recorder is a connection that only records its statements.
type recorder struct {
	driver.Conn
	statements []string
}

func (r *recorder) Exec(_ context.Context, query string, _ ...any) error {
	r.statements = append(r.statements, query)
	return nil
}

// TestClusterSettings checks that a writer with replicas waits for a quorum, that it and query read only acknowledged
// data, and that the queries of all replicas are listed.
func TestClusterSettings(t *testing.T) {
	c := config(t)
	if got := c.Processes(); got != "system.processes" {
		t.Errorf("single server: %s", got)
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
	wantSettings(t, conn, map[string]string{"insert_quorum": "auto", "insert_quorum_parallel": "0",
		"select_sequential_consistency": "1", "insert_deduplicate": "1", "async_insert": "0"})
	reader, err := c.OpenReader("", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	wantSettings(t, reader, map[string]string{"select_sequential_consistency": "1", "max_execution_time": "10"})
	patient, err := c.OpenPatient("")
	must(t, err)
	defer patient.Close()
	wantSettings(t, patient, map[string]string{"select_sequential_consistency": "1", "insert_quorum": "auto",
		"max_execution_time": "0"})
	if _, err := c.CheckGeneration(t.Context(), conn, "nowhere"); err == nil ||
		!strings.Contains(err.Error(), "ReplicatedMergeTree(") {
		t.Errorf("tables that are not replicated: %v", err)
	}
	c.Cluster = "bad name"
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "clickhouse.cluster is \"bad name\"") {
		t.Errorf("a wrong name: %v", err)
	}
}

// wantSettings fails the test if queries of a connection have other settings.
func wantSettings(t *testing.T, conn driver.Conn, want map[string]string) {
	t.Helper()
	for name, value := range want {
		var got string
		if err := conn.QueryRow(t.Context(), "SELECT value FROM system.settings WHERE name = {name:String}",
			clickhouse.Named("name", name)).Scan(&got); err != nil || got != value {
			t.Errorf("%s is %q (%v) and must be %q", name, got, err, value)
		}
	}
}
