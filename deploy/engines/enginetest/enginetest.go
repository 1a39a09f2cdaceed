// Package enginetest provides real engines for tests (see package engines).
//
// Engines that are expensive to start are shared by the tests of one test binary: PostgreSQL, ClickHouse and Apache
// Kafka start when a test first needs them and end with the process. Cheap ones belong to one test: a kfake broker, a
// development chain. A test that wants to stop or kill an engine starts its own with package engines.
package enginetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/engines"
)

// startWait is how long an engine may take to start on a busy machine.
const startWait = 2 * time.Minute

// ClickHouse returns the native address of the shared engine, whose user is default without a password. Tests must use
// their own databases, created with ENGINE = Atomic. The environment variable NAVLOG_TEST_CLICKHOUSE names another
// server to use, with the same user.
func ClickHouse(t testing.TB) string {
	t.Helper()
	if addr := os.Getenv("NAVLOG_TEST_CLICKHOUSE"); addr != "" {
		return addr
	}
	return must(t, sharedClickHouse).Addr
}

// ClusterName returns the cluster of that server on which tests create replicated tables, from the environment variable
// NAVLOG_TEST_CLICKHOUSE_CLUSTER; "" for none.
func ClusterName() string { return os.Getenv("NAVLOG_TEST_CLICKHOUSE_CLUSTER") }

var sharedClickHouse = sync.OnceValues(func() (*engines.ClickHouse, error) {
	return shared("clickhouse", engines.StartClickHouse)
})

// Kafka returns the bootstrap addresses of a new kfake broker that lives as long as the test.
func Kafka(t testing.TB) []string {
	t.Helper()
	return []string{own(t, "kafka", engines.StartKafka).Addr}
}

// ApacheKafka returns the bootstrap addresses of the shared Apache Kafka broker. Tests must use their own topics and
// transactional ids. If this machine cannot run it, the test is skipped, or fails if the environment says CI=true.
func ApacheKafka(t testing.TB) []string {
	t.Helper()
	if err := engines.ApacheKafkaAvailable(); err != nil {
		LeaveOut(t, err)
	}
	return []string{must(t, sharedApacheKafka).Addr}
}

var sharedApacheKafka = sync.OnceValues(func() (*engines.ApacheKafka, error) {
	return shared("apachekafka", engines.StartApacheKafka)
})

// ClickHouseCluster returns n servers, the replicas of a shard, that live as long as the test. If this machine cannot
// run ZooKeeper, the test is skipped, or fails if the environment says CI=true.
func ClickHouseCluster(t testing.TB, n int) *engines.ClickHouseCluster {
	t.Helper()
	if err := engines.ZooKeeperAvailable(); err != nil {
		LeaveOut(t, err)
	}
	return own(t, "cluster", func(ctx context.Context, dir string) (*engines.ClickHouseCluster, error) {
		return engines.StartClickHouseCluster(ctx, dir, n)
	})
}

// PgBouncer returns the URL of a database behind a PgBouncer that belongs to the test, in transaction mode. If this
// machine does not have one, the test is skipped, or fails if the environment says CI=true.
func PgBouncer(t testing.TB, database string) string {
	t.Helper()
	if err := engines.PgBouncerAvailable(); err != nil {
		LeaveOut(t, err)
	}
	return own(t, "pgbouncer", func(ctx context.Context, dir string) (*engines.PgBouncer, error) {
		return engines.StartPgBouncer(ctx, dir, database)
	}).URL
}

// Anvil starts a new development chain that lives as long as the test.
func Anvil(t testing.TB, opts engines.AnvilOptions) *engines.Anvil {
	t.Helper()
	return own(t, "anvil", func(ctx context.Context, dir string) (*engines.Anvil, error) {
		return engines.StartAnvil(ctx, dir, opts)
	})
}

// own starts an engine in a folder; both live as long as the test.
func own[E interface{ Close() error }](t testing.TB, name string, start func(context.Context, string) (E, error)) E {
	t.Helper()
	dir, err := newFolder()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the folder of an engine: %v", err)
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), startWait)
	defer cancel()
	engine, err := start(ctx, filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Errorf("close an engine: %v", err)
		}
	})
	return engine
}

// shared starts an engine in a folder that is removed with the process.
func shared[E any](name string, start func(context.Context, string) (E, error)) (E, error) {
	var none E
	dir, err := newFolder()
	if err != nil {
		return none, fmt.Errorf("start the shared %s: %w", name, err)
	}
	if err := engines.RemoveAtExit(dir); err != nil {
		return none, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startWait)
	defer cancel()
	return start(ctx, filepath.Join(dir, name))
}

// LeaveOut skips a test if this machine lacks something, or fails it if the environment says CI=true: everything is
// installed there, and a skipped test would run nowhere.
func LeaveOut(t testing.TB, missing error) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(missing)
	}
	t.Skip(missing)
}

func must[E any](t testing.TB, start func() (E, error)) E {
	t.Helper()
	engine, err := start()
	if err != nil {
		t.Fatal(err)
	}
	return engine
}
