package enginetest

import (
	"context"
	"sync"
	"testing"

	"github.com/navlog/navlog/deploy/engines"
)

// ApacheKafka is the bootstrap addresses of the shared broker of Apache Kafka itself. Tests keep apart by topics and
// transactional ids of their own. Where this machine cannot run it the test is skipped, or fails where the environment
// says CI=true.
func ApacheKafka(t testing.TB) []string {
	t.Helper()
	if err := engines.ApacheKafkaAvailable(); err != nil {
		leaveOut(t, err)
	}
	return []string{must(t, sharedApacheKafka).Addr}
}

var sharedApacheKafka = sync.OnceValues(func() (*engines.ApacheKafka, error) {
	return shared("apachekafka", func(ctx context.Context, dir string) (*engines.ApacheKafka, error) {
		return engines.StartApacheKafka(ctx, dir)
	})
})
