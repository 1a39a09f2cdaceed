package health

import (
	"slices"
	"time"

	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// uptimeDays is the number of days in /status, as ListUptime reads them.
const uptimeDays = 90

// uptimeJSON is how long the programs were up on each of the last days, UTC. A day without records is null in every
// list.
type uptimeJSON struct {
	From     string                        `json:"from"`
	To       string                        `json:"to"` // today, as recorded so far
	Programs map[string]*programUptimeJSON `json:"programs"`
}

// programUptimeJSON has a value for each day from From to To.
type programUptimeJSON struct {
	Recorded []*int64 `json:"recorded"` // recorded seconds of the day; the other lists are parts of it
	Running  []*int64 `json:"running"`
	InRole   []*int64 `json:"inRole"`
}

// describeUptime returns nil if nothing is recorded. A program without records is left out.
func describeUptime(rows []db.ListUptimeRow) *uptimeJSON {
	var out *uptimeJSON
	for _, r := range rows {
		today, err := time.Parse(time.DateOnly, r.Today)
		if err != nil || r.DaysAgo < 0 || r.DaysAgo >= uptimeDays || !slices.Contains(registry.Programs, r.Program) {
			continue
		}
		if out == nil {
			from := today.AddDate(0, 0, 1-uptimeDays).Format(time.DateOnly)
			out = &uptimeJSON{From: from, To: r.Today, Programs: map[string]*programUptimeJSON{}}
		}
		p := out.Programs[r.Program]
		if p == nil {
			p = &programUptimeJSON{make([]*int64, uptimeDays), make([]*int64, uptimeDays), make([]*int64, uptimeDays)}
			out.Programs[r.Program] = p
		}
		day := uptimeDays - 1 - r.DaysAgo
		p.Recorded[day], p.Running[day], p.InRole[day] = &r.RecordedSeconds, &r.RunningSeconds, &r.WorkingSeconds
	}
	return out
}
