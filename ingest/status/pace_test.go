package status

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var p pace
	var from, block uint64
	if st, eta := p.backfill(now, from, block, 0, 0); st != nil || eta != nil {
		t.Errorf("before the first measurement the status is %+v, %v", st, eta)
	}
	from, block = 101, 100
	st, eta := p.backfill(now, from, block, 1100, 0)
	if st == nil || st.FromBlock != 101 || st.Block != 100 || st.ToBlock != 1100 || st.Part() != 0 || eta != nil {
		t.Fatalf("at the start the status is %+v, %v", st, eta)
	}
	// 10 blocks and 30 logs per second for a minute.
	for i := uint64(1); i <= 60; i++ {
		now = now.Add(time.Second)
		block = 100 + 10*i
		st, eta = p.backfill(now, from, block, 1100, 30*i)
		if st.BlocksPerSecond != 10 || st.LogsPerSecond != 30 || eta == nil || *eta != 100-i ||
			st.Part() != float64(10*i)/1000 {
			t.Fatalf("after %d s the status is %+v with an ETA of %v", i, st, eta)
		}
	}
	if len(p.samples) > 70 {
		t.Errorf("%d measurements are kept", len(p.samples))
	}
	// The rate is that of the last half minute.
	for range 31 {
		now = now.Add(time.Second)
		st, eta = p.backfill(now, from, block, 1100, 1800)
	}
	if st.BlocksPerSecond != 0 || eta != nil {
		t.Errorf("after half a minute without progress the status is %+v with an ETA of %v", st, *eta)
	}
	// A vault that was added is further behind: its own rate counts.
	from, block = 51, 50
	if st, eta = p.backfill(now, from, block, 1100, 1800); st.FromBlock != 51 || st.Block != 50 || eta != nil {
		t.Errorf("with a vault that is further behind the status is %+v, %v", st, eta)
	}
	block = 1100
	if st, eta = p.backfill(now, from, block, 1100, 1800); st != nil || eta != nil {
		t.Errorf("when everything is read the status is %+v, %v", st, eta)
	}
}
