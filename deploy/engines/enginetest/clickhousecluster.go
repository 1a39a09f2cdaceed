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
		LeaveOut(t, err)
	}
	return own(t, func(ctx context.Context) (*engines.ClickHouseCluster, error) {
		return engines.StartClickHouseCluster(ctx, t.TempDir(), n)
	})
}
