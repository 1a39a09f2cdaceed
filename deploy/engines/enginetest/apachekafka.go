package enginetest

import (
	"context"
	"sync"
	"testing"

	"github.com/navlog/navlog/deploy/engines"
)

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
	return shared("apachekafka", func(ctx context.Context, dir string) (*engines.ApacheKafka, error) {
		return engines.StartApacheKafka(ctx, dir)
	})
})
