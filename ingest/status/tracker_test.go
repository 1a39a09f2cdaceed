package status

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A rate is measured by the monotonic clock, so a step of the system's clock does not change it; the time in the status
// is in UTC. Only a time with a monotonic reading has one in its text.
func TestSnapshotMeasuresByTheMonotonicClock(t *testing.T) {
	tracker := New(prometheus.NewRegistry(), 1, "")
	tracker.Note(func(st *Status) { st.CoveredFrom, st.CoveredTo, st.FinalBlock = 1, 10, 100 })
	if st := tracker.Snapshot(); st.Backfill == nil || st.Time.Location() != time.UTC {
		t.Fatalf("the status is %+v", st)
	}
	if at := tracker.pace.samples[0].at.String(); !strings.Contains(at, " m=") {
		t.Errorf("progress was measured at %s, without a monotonic reading", at)
	}
}
