package health

import (
	"testing"

	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/registry"
)

// A block is in the tables before ingest reports it; the indexed block is still never shown beyond the head.
func TestIndexedBlockIsNotBeyondTheHead(t *testing.T) {
	for _, c := range []struct {
		s    *state.Snapshot
		head uint64 // as reported by ingest; 0: unknown
		want string
	}{
		{nil, 81, "81"},
		{&state.Snapshot{Block: 77}, 81, "81"},
		{&state.Snapshot{Block: 81}, 81, "81"},
		{&state.Snapshot{Block: 85}, 81, "85"},
		{&state.Snapshot{Block: 85}, 0, ""}, // the node is down: the head of the chain is unknown
	} {
		report := &registry.ProgramStatus{State: registry.Following}
		report.HeadBlock = c.head
		var out statusJSON
		describeIngest(report, c.s, &out)
		got := ""
		if out.HeadBlock != nil {
			got = *out.HeadBlock
		}
		if got != c.want || out.FinalBlock != nil {
			t.Errorf("%+v: head %q, final block %v; want %q and none", c, got, out.FinalBlock, c.want)
		}
	}
}
