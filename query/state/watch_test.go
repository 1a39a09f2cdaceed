package state

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/navlog/navlog/schemas/readmodel"
)

// While the registry names nothing that can be served, no change is signalled, and the age of the last look keeps
// growing.
func TestNothingToServe(t *testing.T) {
	w := New(1, 1, time.Minute, readmodel.DefaultConfig(), nil, nil, slog.New(slog.DiscardHandler))
	now := time.Unix(1_700_000_100, 0)
	w.Now = func() time.Time { return now }
	reg := prometheus.NewRegistry()
	w.Register(reg)
	age := func(want string) {
		t.Helper()
		text := "# HELP navlog_query_snapshot_age_seconds Time since the read models were last seen; 0 before the first " +
			"time.\n# TYPE navlog_query_snapshot_age_seconds gauge\nnavlog_query_snapshot_age_seconds " + want + "\n"
		if err := testutil.GatherAndCompare(reg, strings.NewReader(text), "navlog_query_snapshot_age_seconds"); err != nil {
			t.Error(err)
		}
	}
	woken := func(changed <-chan struct{}) bool {
		select {
		case <-changed:
			return true
		default:
			return false
		}
	}
	age("0")
	w.registry.Store(&Registry{Known: true, fault: "of another schema"})
	none := w.Changed()
	for range 2 {
		if err := w.Look(t.Context()); err == nil || woken(none) {
			t.Errorf("%v; woken: %t", err, woken(none))
		}
	}
	w.show(&Snapshot{Seq: 7})
	w.seen.Store(now.UnixNano())
	some := w.Changed()
	now = now.Add(40 * time.Second)
	if err := w.Look(t.Context()); err == nil || !woken(some) {
		t.Errorf("%v; woken: %t", err, woken(some))
	}
	age("40")
}
