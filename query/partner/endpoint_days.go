package partner

import (
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/schemas/registry/db"
)

const (
	// healthDays is the number of days in a Health response.
	healthDays = 30
	// mostOfDay is the number of attempts per day up to which they are counted, and measuredOfDay is how many
	// deliveries per day the median covers. With 30 days of this size the query took 0.5 to 1.2 s on a machine that
	// was busy with other work, so it uses an expensive slot.
	mostOfDay     = 5_000
	measuredOfDay = 200
)

// endpointDaysJSON is the state of the caller's endpoint, day by day.
type endpointDaysJSON struct {
	From string            `json:"from"`
	To   string            `json:"to"`
	Days []endpointDayJSON `json:"days"` // all of them, oldest first
}

type endpointDayJSON struct {
	Day      string `json:"day"`
	Attempts int64  `json:"attempts"`
	Failed   int64  `json:"failed"`
	MedianMs *int32 `json:"medianMs"` // of the successful attempts; null if there is none
	// AtLeast is set if there were more attempts than are counted.
	AtLeast bool `json:"atLeast"`
}

// Health returns the state of the caller's endpoint on each of the last days, as far as attempts are kept.
func (w *Webhooks) Health(r *serve.Request) (*serve.Answer, error) {
	params := db.EndpointDaysParams{PartnerID: int64(r.Partner.ID), Days: healthDays, AtMost: mostOfDay,
		Measured: measuredOfDay}
	if last, given := r.Params.Moment("to"); given && last < 0 { // PostgreSQL writes the years before 1 without their sign
		r.Params.Fault("to", "must not be before 1970")
	} else if given {
		params.LastDay = pgtype.Date{Time: time.Unix(last, 0).UTC(), Valid: true}
	}
	if err := r.Params.Err(); err != nil {
		return nil, err
	}
	rows, err := w.db.EndpointDays(r.Context, params)
	if err != nil {
		return nil, serve.RegistryFailure(err)
	}
	out := endpointDaysJSON{Days: make([]endpointDayJSON, 0, len(rows))}
	for _, d := range slices.Backward(rows) {
		day := endpointDayJSON{Day: d.Day, Attempts: d.Succeeded + d.Failed, Failed: d.Failed,
			AtLeast: d.Succeeded >= mostOfDay || d.Failed >= mostOfDay}
		if d.MedianMs >= 0 {
			day.MedianMs = &d.MedianMs
		}
		out.Days = append(out.Days, day)
	}
	out.From, out.To = out.Days[0].Day, out.Days[len(out.Days)-1].Day
	return &serve.Answer{Data: out}, nil
}
