// Package replicas checks navlog's use of a ClickHouse cluster as far as the embedded engine allows it: two servers of
// the present version and a ZooKeeper. The engine rejects ON CLUSTER and cannot fetch parts from another replica, so
// its replicated tables accept no insert: the test runs each statement ON CLUSTER on every server, and checks what a
// writer and a reader do with such tables.
package replicas

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/histories"
	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/projections/write"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
)

const chainID = 31337

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// cluster is a connection to one server that runs statements ON CLUSTER on all of them.
type cluster struct {
	driver.Conn
	all []driver.Conn
}

func (c *cluster) Exec(ctx context.Context, statement string, args ...any) error {
	before, after, on := strings.Cut(statement, " ON CLUSTER "+engines.ClusterName)
	if !on {
		return c.Conn.Exec(ctx, statement, args...)
	}
	if strings.HasPrefix(before, "CREATE TABLE") {
		// the path of a table in ZooKeeper has its UUID, which ON CLUSTER chooses
		before += fmt.Sprintf(" UUID '%s'", uuid.New())
	}
	for _, server := range c.all {
		if err := server.Exec(ctx, before+after, args...); err != nil {
			return err
		}
	}
	return nil
}

// replica is a table as a server sees it.
type replica struct {
	Table string `ch:"table"`
	Path  string `ch:"zookeeper_path"`
	Name  string `ch:"replica_name"`
	Total uint32 `ch:"total_replicas"`
}

func TestReplicas(t *testing.T) {
	servers := enginetest.ClickHouseCluster(t, 2)
	ch := readmodel.DefaultConfig()
	ch.Cluster = engines.ClusterName
	c := new(cluster)
	for _, s := range servers.Servers {
		ch.Addr = s.Addr
		conn, err := ch.Open("")
		must(t, err)
		t.Cleanup(func() { conn.Close() })
		c.all = append(c.all, conn)
	}
	c.Conn = c.all[1] // which ch names

	// The real engine accepts every statement that creates a generation, and finds in it what it checks.
	database := ch.Database(1)
	must(t, ch.CreateEvents(t.Context(), c, database))
	built, err := ch.CheckGeneration(t.Context(), c, database)
	if err != nil || built {
		t.Fatalf("a generation without lists: built %t, %v", built, err)
	}
	must(t, ch.CreateLists(t.Context(), c, database, "lists_draft_1"))
	must(t, ch.Publish(t.Context(), c, database, readmodel.ListsTable.Name, "lists_draft_1"))
	must(t, ch.CreateViews(t.Context(), c, database))
	if built, err = ch.CheckGeneration(t.Context(), c, database); err != nil || !built {
		t.Fatalf("a generation with lists: built %t, %v", built, err)
	}

	// Both servers have the same tables, as two replicas of one shard.
	paths := map[string]string{}
	for i, server := range c.all {
		var found []replica
		must(t, server.Select(t.Context(), &found,
			"SELECT table, zookeeper_path, replica_name, total_replicas FROM system.replicas ORDER BY table"))
		if len(found) != 2 {
			t.Fatalf("server %d has the replicated tables %+v, want events and lists", i+1, found)
		}
		for _, r := range found {
			if r.Total != 2 || r.Name != fmt.Sprint(i+1) || !strings.HasPrefix(r.Path, "/clickhouse/tables/") ||
				!strings.HasSuffix(r.Path, "/1") {
				t.Errorf("server %d: %+v", i+1, r)
			}
			if before := paths[r.Table]; before != "" && before != r.Path {
				t.Errorf("%s is at %s on one server and at %s on the other one", r.Table, before, r.Path)
			}
			paths[r.Table] = r.Path
		}
	}
	// The queries of all servers are listed.
	var n uint64
	must(t, c.QueryRow(t.Context(), "SELECT uniqExact(tcpPort()) FROM "+ch.Processes()).Scan(&n))
	if n != 2 {
		t.Errorf("the queries of %d servers are listed, want 2", n)
	}

	// Readers find an empty generation. A writer that the servers refuse gives up, soon and with their reason.
	if at, err := readmodel.ReadPosition(t.Context(), c, database); at.Seq != 0 || !at.Found || err != nil {
		t.Errorf("the generation is at seq %d, found %t, %v", at.Seq, at.Found, err)
	}
	must(t, ch.Discard(t.Context(), c, database, readmodel.ListsTable.Name))
	conn, err := ch.Open(database)
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	counts := write.Counts{
		Batch: func() {}, Rows: func(string, int) {}, Insert: func(string, string) {}, Impossible: func(string) {},
		Quarantined: func(int) {},
	}
	w, err := write.Open(t.Context(), conn, ch, database, false, nil, nil, counts, slog.New(slog.DiscardHandler))
	must(t, err)
	began := time.Now()
	err = w.Write(t.Context(), w.Encode(batch(t)))
	if code(err) != 285 || !strings.Contains(err.Error(), "insert abandoned") || time.Since(began) > 30*time.Second {
		t.Errorf("after %s a writer without a quorum ends with %v", time.Since(began), err)
	}
	if at, err := readmodel.ReadPosition(t.Context(), c, database); at.Seq != 0 || !at.Found || err != nil {
		t.Errorf("after a refused insert the generation is at seq %d, found %t, %v", at.Seq, at.Found, err)
	}

	// Nothing of the generation remains, so that it can be created again.
	must(t, ch.Drop(t.Context(), c, database))
	must(t, ch.CreateEvents(t.Context(), c, database))
	must(t, ch.Drop(t.Context(), c, database))
	for i, server := range c.all {
		must(t, server.QueryRow(t.Context(), "SELECT count() FROM system.tables WHERE database = '"+database+"'").Scan(&n))
		if n > 0 {
			t.Errorf("server %d still has %d tables", i+1, n)
		}
	}
}

// code returns the engine's code of an error; 0 if it is not from the engine.
func code(err error) int32 {
	var exception *clickhouse.Exception
	if errors.As(err, &exception) {
		return exception.Code
	}
	return 0
}

// batch returns a short history as the feed does.
func batch(t *testing.T) decode.Batch {
	t.Helper()
	s := histories.New(chainID)
	s.Vault(histories.VaultAt(0))
	s.Mine()
	raw, err := histories.AsRead(s.Records)
	must(t, err)
	vaults, err := mapping.NewVaults()
	must(t, err)
	facts, err := decode.NewDecoder(chainID, vaults).All(raw)
	must(t, err)
	return decode.Batch{facts}
}
