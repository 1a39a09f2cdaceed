package readmodel

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// On a cluster every table is a ReplicatedMergeTree with one shard. The guarantees of a single server are kept by other
// means: an insert is acknowledged when a quorum of replicas has its part, one insert at a time; the cursor is read
// from a replica that has every acknowledged part; Keeper remembers deduplication tokens, in number and in time more
// than a writer can be away.
//
//	single:   non_replicated_deduplication_window
//	cluster:  replicated_deduplication_window, replicated_deduplication_window_seconds,
//	          insert_quorum, insert_quorum_parallel, select_sequential_consistency

const (
	singleWindow  = "non_replicated_deduplication_window = 100000"
	clusterWindow = "replicated_deduplication_window = 100000, replicated_deduplication_window_seconds = 315360000"
	// The path has the table's UUID, which changes when a database of that name is created again.
	clusterPath = "'/clickhouse/tables/{uuid}/{shard}', '{replica}'"
)

// The engines of the tables, on a single server and on a cluster.
const (
	appending         = "ENGINE = MergeTree PARTITION BY"
	appendingCluster  = "ENGINE = ReplicatedMergeTree(" + clusterPath + ") PARTITION BY"
	collapsing        = "ENGINE = CollapsingMergeTree(sign)"
	collapsingCluster = "ENGINE = ReplicatedCollapsingMergeTree(" + clusterPath + ", sign)"
)

// on returns the clause that makes a statement run on every replica.
func (c Config) on() string {
	if c.Cluster == "" {
		return ""
	}
	return " ON CLUSTER " + c.Cluster
}

// Publish gives a draft of lists the table's final name, atomically. It fails if such a table exists already.
func (c Config) Publish(ctx context.Context, conn driver.Conn, database, table, draft string) error {
	return exec(ctx, conn, "RENAME TABLE "+database+"."+draft+" TO "+database+"."+table+c.on(),
		fmt.Sprintf("rename %s.%s to %s", database, draft, table))
}

// Discard drops a table of a generation, such as a leftover draft.
func (c Config) Discard(ctx context.Context, conn driver.Conn, database, draft string) error {
	return exec(ctx, conn, "DROP TABLE IF EXISTS "+database+"."+draft+c.on()+" SYNC", "drop "+database+"."+draft)
}

// Drop drops the database of a generation, on every replica.
func (c Config) Drop(ctx context.Context, conn driver.Conn, database string) error {
	statement := "DROP DATABASE IF EXISTS " + database + c.on()
	if c.Cluster != "" {
		statement += " SYNC"
	}
	return exec(ctx, conn, statement, "drop database "+database)
}

// Processes returns the table of running queries, on a cluster of all replicas.
func (c Config) Processes() string {
	if c.Cluster == "" {
		return "system.processes"
	}
	return "clusterAllReplicas(" + c.Cluster + ", system.processes)"
}

// clustered adds the settings of a connection to a server with replicas. Readers need them as well as the writer:
// without them a reader would see a batch in one table but not in another, as parts arrive at its replica.
func (c Config) clustered(settings clickhouse.Settings) {
	if c.Cluster != "" {
		settings["insert_quorum"] = "auto"
		settings["insert_quorum_parallel"] = 0
		settings["select_sequential_consistency"] = 1
		settings["distributed_ddl_task_timeout"] = 60
	}
}
