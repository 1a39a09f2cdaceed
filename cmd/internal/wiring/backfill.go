package wiring

import (
	"github.com/navlog/navlog/cmd/internal/console"
	"github.com/navlog/navlog/ingest"
)

// Backfill returns the function that Console.Watch reads the progress of ingest from.
func Backfill(i *ingest.Ingest) func() console.Backfill {
	return func() console.Backfill {
		st := i.Status()
		return console.Backfill{Time: st.Time, Logs: st.Logs, Of: st.Backfill, SecondsLeft: st.ETASeconds, Calls: st.Calls}
	}
}
