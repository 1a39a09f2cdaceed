package ingest

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/schemas/chainlog"
)

// A log with one replica causes a warning at every start, except on a development chain.
func TestWarningAboutSingleReplica(t *testing.T) {
	t.Parallel()
	kafka := chainlog.DefaultConfig()
	kafka.Brokers = enginetest.Kafka(t)
	for id, warned := range map[uint64]bool{5: true, developmentChain: false} {
		c := validConfig()
		c.ID = id
		for start := range 2 {
			var logged bytes.Buffer
			if err := New(c, kafka, nil, newRegistry(),
				slog.New(slog.NewTextHandler(&logged, nil))).ensureTopics(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(logged.String(), chainlog.LogTopic(id)) &&
				strings.Contains(logged.String(), "one replica"); got != warned {
				t.Errorf("chain %d, start %d: warning %v:\n%s", id, start, got, logged.String())
			}
		}
	}
}
