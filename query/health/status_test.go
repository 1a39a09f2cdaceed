package health

import (
	"encoding/json"
	"testing"

	"github.com/navlog/navlog/query/pin"
	"github.com/navlog/navlog/schemas/registry"
)

// The tables have a block before ingest tells of it: what is indexed is never beyond the head.
func TestIndexedBlockIsNotBeyondTheHead(t *testing.T) {
	lag := uint64(4)
	for _, c := range []struct {
		s             *pin.Snapshot
		head          uint64 // as ingest said, 0 for not yet
		lag           *uint64
		wantHead      any
		wantLag, secs any
	}{
		{nil, 81, &lag, "81", 4.0, 4.0},
		{&pin.Snapshot{Block: 77}, 81, &lag, "81", 4.0, 4.0},
		{&pin.Snapshot{Block: 81}, 81, &lag, "81", 4.0, 4.0},
		{&pin.Snapshot{Block: 85}, 81, &lag, "85", 0.0, 0.0},
		{&pin.Snapshot{Block: 85}, 81, nil, "85", nil, nil},
		{&pin.Snapshot{Block: 85}, 0, nil, nil, nil, nil}, // its node is away: how far the chain is, nobody knows
	} {
		report := &registry.ProgramStatus{State: "following"}
		report.HeadBlock, report.LagBlocks, report.LagSeconds = c.head, c.lag, c.lag
		var out statusJSON
		describeIngest(report, c.s, &out)
		body, err := json.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		if got["headBlock"] != c.wantHead || got["lagBlocks"] != c.wantLag || got["lagSeconds"] != c.secs || got["finalBlock"] != nil {
			t.Errorf("%+v: head %v, final block %v, %v blocks and %v s behind, should be %v, nil, %v and %v", c, got["headBlock"], got["finalBlock"], got["lagBlocks"], got["lagSeconds"], c.wantHead, c.wantLag, c.secs)
		}
	}
}
