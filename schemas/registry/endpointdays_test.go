package registry

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/navlog/navlog/schemas/registry/db"
)

// march returns a day of March 2026.
func march(day int) pgtype.Date {
	return pgtype.Date{Time: time.Date(2026, 3, day, 0, 0, 0, 0, time.UTC), Valid: true}
}

// The attempts of a day are a partner's attempts that failed on that day, and the successful ones of the deliveries
// that finished on that day.
func TestEndpointDays(t *testing.T) {
	pool := open(t, migrated.Postgres(t))
	n := 0
	// deliver adds a delivery that finished at a time, and its attempts: one duration each, negative for a failed one.
	deliver := func(partner int, state, at string, durations ...int) {
		t.Helper()
		n++
		id := fmt.Sprintf("00000000-0000-5000-8000-%012d", n)
		exec(t, pool, `INSERT INTO delivery (event_id, partner_id, sequence, type, body, state, created_at, finished_at)
			VALUES ($1::text::uuid, $2, $3, 't', '', $4, '2026-01-01', $5::text::timestamptz)`, id, partner, n, state, at)
		for i, ms := range durations {
			status := 200
			if ms < 0 {
				status, ms = 500, -ms
			}
			exec(t, pool, `INSERT INTO attempt (event_id, number, url, endpoint_version, started_at, duration_ms, status)
				VALUES ($1::text::uuid, $2, 'u', 1, $3::text::timestamptz, $4, $5)`, id, i+1, at, ms, status)
		}
	}
	deliver(7, Delivered, "2026-03-01T23:59:59.9Z", 40)
	deliver(7, Delivered, "2026-03-02T00:00:00Z", -9000, -8000, 30)
	deliver(7, Delivered, "2026-03-02T08:00:00Z", 10)
	deliver(7, Delivered, "2026-03-02T09:00:00+02:00", 5, 20) // replayed
	deliver(7, Failed, "2026-03-03T10:00:00Z", -1, -1, -1, -1)
	deliver(7, Delivered, "2026-03-03T11:00:00Z") // its attempts were deleted
	deliver(8, Delivered, "2026-03-02T09:00:00Z", 99)
	deliver(8, Failed, "2026-03-02T09:00:00Z", -99)
	days := func(last pgtype.Date, atMost, measured int32) string {
		t.Helper()
		rows, err := db.New(pool).EndpointDays(t.Context(),
			db.EndpointDaysParams{PartnerID: 7, LastDay: last, Days: 4, AtMost: atMost, Measured: measured})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, r := range rows {
			out = append(out, fmt.Sprint(r.Day[8:], ": ", r.Succeeded, " ", r.Failed, " ", r.MedianMs))
		}
		return strings.Join(out, ", ")
	}
	if got, want := days(march(4), 100, 100), "04: 0 0 -1, 03: 1 4 -1, 02: 3 2 20, 01: 1 0 40"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	// The counts stop at a limit, and the median is of the newest deliveries.
	if got, want := days(march(3), 2, 1), "03: 1 2 -1, 02: 2 2 10, 01: 1 0 40, 28: 0 0 -1"; got != want {
		t.Errorf("bounded: got %s, want %s", got, want)
	}
	today := time.Now().UTC().Format(time.DateOnly)
	if got := days(pgtype.Date{}, 1, 1); !strings.HasPrefix(got, today[8:]+":") &&
		time.Now().UTC().Format(time.DateOnly) == today {
		t.Errorf("without a day the last one is not today: %s", got)
	}
}

// However many deliveries a partner has, each day reads its part of two indexes.
func TestEndpointDaysReadsTheIndexes(t *testing.T) {
	pool := open(t, migrated.Postgres(t))
	for _, statement := range []string{
		`INSERT INTO delivery (event_id, partner_id, sequence, type, body, state, created_at, finished_at)
			SELECT ('00000000-0000-5000-8000-' || lpad(n::text, 12, '0'))::uuid, 7 + n % 3, n, 't', '', 'delivered', at, at
			FROM generate_series(1, 60000) n, LATERAL (SELECT timestamptz '2026-01-01Z' + n * interval '2 minutes' AS at) times`,
		`ALTER TABLE attempt DISABLE TRIGGER attempt_failed`,
		`INSERT INTO attempt (event_id, number, url, endpoint_version, started_at, duration_ms, status, failed_partner_id)
			SELECT event_id, number, 'u', 1, finished_at, 5, CASE WHEN number = 2 THEN 200 END, CASE WHEN number = 1 THEN partner_id END
			FROM delivery, generate_series(1, 2) number`,
		`ANALYZE delivery`, `ANALYZE attempt`,
	} {
		exec(t, pool, statement)
	}
	// The statistics include this connection's earlier work for a second.
	const read = `SELECT coalesce(sum(seq_scan), 0)::bigint FROM pg_stat_xact_user_tables WHERE relname IN ('delivery', 'attempt')`
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	scans := func() (n int64) {
		if err := tx.QueryRow(t.Context(), read).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := scans()
	rows, err := db.New(tx).EndpointDays(t.Context(),
		db.EndpointDaysParams{PartnerID: 8, LastDay: march(20), Days: 30, AtMost: 5_000, Measured: 200})
	if err != nil || len(rows) != 30 || rows[0].Succeeded != 240 || rows[0].Failed != 240 || rows[0].MedianMs != 5 {
		t.Fatalf("%d rows, the first one %+v (%v)", len(rows), rows[:min(1, len(rows))], err)
	}
	if n := scans() - before; n != 0 {
		t.Errorf("%d scans of whole tables", n)
	}
}
