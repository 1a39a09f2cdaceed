package health

import (
	"testing"

	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// A day without a record is null, whatever its neighbours are: it is unknown whether the program was up.
func TestUptimeOfDays(t *testing.T) {
	row := func(program string, daysAgo int32, recorded, running, working int64) db.ListUptimeRow {
		return db.ListUptimeRow{Program: program, DaysAgo: daysAgo, Today: "2026-03-01",
			RecordedSeconds: recorded, RunningSeconds: running, WorkingSeconds: working}
	}
	got := describeUptime([]db.ListUptimeRow{
		row(registry.Ingest, 0, 3600, 3600, 1800), row(registry.Ingest, 89, 100, 0, 0), row(registry.Ingest, 90, 1, 1, 1),
		row(registry.Serve, 1, 86400, 86399, 86398), row("another", 0, 1, 1, 1),
	})
	if got.From != "2025-12-02" || got.To != "2026-03-01" || len(got.Programs) != 2 {
		t.Fatalf("%+v", got)
	}
	of := func(days []*int64) map[int]int64 {
		recorded := map[int]int64{}
		for day, seconds := range days {
			if seconds != nil {
				recorded[day] = *seconds
			}
		}
		return recorded
	}
	for _, c := range []struct {
		of   []*int64
		want map[int]int64
	}{
		{got.Programs[registry.Ingest].Recorded, map[int]int64{0: 100, 89: 3600}},
		{got.Programs[registry.Ingest].Running, map[int]int64{0: 0, 89: 3600}},
		{got.Programs[registry.Ingest].InRole, map[int]int64{0: 0, 89: 1800}},
		{got.Programs[registry.Serve].Recorded, map[int]int64{88: 86400}},
		{got.Programs[registry.Serve].InRole, map[int]int64{88: 86398}},
	} {
		days := of(c.of)
		same := len(days) == len(c.want) && len(c.of) == uptimeDays
		for day, seconds := range c.want {
			same = same && days[day] == seconds
		}
		if !same {
			t.Errorf("%v of %d days, want %v", days, len(c.of), c.want)
		}
	}
	if none := describeUptime(nil); none != nil {
		t.Errorf("without records the uptime is %+v", none)
	}
}
