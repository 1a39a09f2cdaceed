package health

import (
	"testing"

	"github.com/navlog/navlog/query/pin"
	"github.com/navlog/navlog/schemas/registry"
)

// The tables have a block before ingest tells of it: what is indexed is never beyond the head.
func TestIndexedBlockIsNotBeyondTheHead(t *testing.T) {
	for _, c := range []struct {
		s    *pin.Snapshot
		head string
		lag  uint64
	}{
		{nil, "81", 4},
		{&pin.Snapshot{Block: 77}, "81", 4},
		{&pin.Snapshot{Block: 81}, "81", 4},
		{&pin.Snapshot{Block: 85}, "85", 0},
	} {
		blocks, seconds := uint64(4), uint64(48)
		report := &registry.ProgramStatus{State: "following"}
		report.HeadBlock, report.LagBlocks, report.LagSeconds = 81, &blocks, &seconds
		var out statusJSON
		describeIngest(report, c.s, &out)
		if *out.HeadBlock != c.head || *out.LagBlocks != c.lag || *out.LagSeconds != 12*c.lag {
			t.Errorf("%+v: head %s, %d blocks and %d s behind, should be %s and %d blocks", c.s, *out.HeadBlock, *out.LagBlocks, *out.LagSeconds, c.head, c.lag)
		}
	}
}
