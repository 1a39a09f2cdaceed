package enginetest

import (
	"context"
	"testing"

	"github.com/navlog/navlog/deploy/engines"
)

// ClickHouseCluster returns n servers, the replicas of a shard, that live as long as the test. If this machine cannot run
// ZooKeeper, the test is skipped, or fails if the environment says CI=true.
func ClickHouseCluster(t testing.TB, n int) *engines.ClickHouseCluster {
	t.Helper()
	if err := engines.ZooKeeperAvailable(); err != nil {
		leaveOut(t, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startWait)
	defer cancel()
	c, err := engines.StartClickHouseCluster(ctx, t.TempDir(), n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close the cluster: %v", err)
		}
	})
	return c
}
