package registry

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/schemas/registry/db"
)

// uptimes is the uptime of one program in a test that sets the clock of the database, by a function now that PostgreSQL
// finds before its own.
type uptimes struct {
	*testing.T
	pool *pgxpool.Pool
}

func newUptimes(t *testing.T) uptimes {
	url := migrated.Postgres(t)
	u := uptimes{t, open(t, url)}
	u.exec(`CREATE SCHEMA clock`)
	u.exec(`CREATE TABLE clock.at (at timestamptz)`)
	u.exec(`INSERT INTO clock.at VALUES (now())`)
	u.exec(`CREATE FUNCTION clock.now() RETURNS timestamptz STABLE LANGUAGE sql AS 'SELECT at FROM clock.at'`)
	u.pool = open(t, url+"&search_path=clock,public,pg_catalog")
	return u
}

func (u uptimes) exec(statement string, args ...any) {
	u.Helper()
	if _, err := u.pool.Exec(u.Context(), statement, args...); err != nil {
		u.Fatal(err)
	}
}

// read returns the text that a query returns.
func (u uptimes) read(query string) (text string) {
	u.Helper()
	if err := u.pool.QueryRow(u.Context(), query).Scan(&text); err != nil {
		u.Fatal(err)
	}
	return text
}

// note records the report of an instance at a time.
func (u uptimes) note(at string, working bool) {
	u.Helper()
	u.exec("UPDATE clock.at SET at = $1", at)
	if err := db.New(u.pool).NoteUptime(u.Context(), db.NoteUptimeParams{Program: Ingest, Working: working}); err != nil {
		u.Fatal(err)
	}
}

// want compares the recorded times of each day, in milliseconds.
func (u uptimes) want(what, days string) {
	u.Helper()
	got := u.read(`SELECT string_agg(to_char(day, 'DD') || ' ' || running_ms || ' ' || working_ms, ', ' ORDER BY day) FROM uptime WHERE program = 'ingest'`)
	if got != days {
		u.Errorf("%s: %s, want %s", what, got, days)
	}
}

// Uptime is the time between consecutive reports, counted once for all instances of a program. A gap is a time without
// a report.
func TestUptimeIsBetweenReports(t *testing.T) {
	u := newUptimes(t)
	for _, c := range []struct {
		what, at string
		working  bool
		want     string
	}{
		{"the first report", "12:00:00", true, "02 0 0"},
		{"a report 3 s later", "12:00:03", true, "02 3000 3000"},
		{"a report of another instance", "12:00:03.4", true, "02 3000 3000"},
		{"a report of a standby", "12:00:03.6", false, "02 3000 3000"},
		{"the active instance again", "12:00:05", true, "02 5000 5000"},
		{"a standby", "12:00:08", false, "02 8000 5000"},
		{"the active instance, less than 2 s later", "12:00:08.5", true, "02 8500 8500"},
		{"a gap of 5.5 s", "12:00:14", true, "02 8500 8500"},
		{"a report after the gap", "12:00:16", true, "02 10500 10500"},
		{"running, but not in its role", "12:00:20", false, "02 14500 10500"},
		{"still not in its role", "12:00:24", false, "02 18500 10500"},
		{"in its role again", "12:00:27", true, "02 21500 10500"},
		{"a clock that was set back", "11:00:00", true, "02 21500 10500"},
		{"after the clock was set back", "11:00:02", true, "02 23500 12500"},
		{"a clock that differs by a little", "11:00:01.9", true, "02 23500 12500"},
	} {
		u.note("2026-03-02T"+c.at+"Z", c.working)
		u.want(c.what, c.want)
	}
}

// A row is written at most every two seconds, and not locked in between: instances of a program do not wait for each
// other.
func TestUptimeIsNotWrittenByEveryReport(t *testing.T) {
	u := newUptimes(t)
	const version = "SELECT ctid || ' ' || xmin || ' ' || xmax FROM uptime"
	u.note("2026-03-02T12:00:00Z", true)
	first := u.read(version)
	for _, working := range []bool{true, false, true} {
		u.note("2026-03-02T12:00:01.9Z", working)
	}
	if now := u.read(version); now != first {
		t.Errorf("the row was written or locked again: %s, then %s", first, now)
	}
}

// The first report of a day counts the seconds on both sides of midnight (UTC), and deletes rows older than 100 days.
func TestUptimeAtMidnight(t *testing.T) {
	for what, c := range map[string]struct {
		last, first bool // in its role, before and after midnight
		at, want    string
	}{
		"in its role":                 {true, true, "2026-03-02T00:00:01.5Z", "01 1000 1000, 02 1500 1500"},
		"in its role from midnight":   {false, true, "2026-03-02T00:00:01.5Z", "01 1000 0, 02 1500 0"},
		"in its role before midnight": {true, false, "2026-03-02T00:00:01.5Z", "01 1000 0, 02 1500 0"},
		"a gap":                       {true, true, "2026-03-02T00:00:04.5Z", "01 0 0, 02 0 0"},
	} {
		t.Run(what, func(t *testing.T) {
			u := newUptimes(t)
			u.note("2026-03-01T23:59:59Z", c.last)
			u.note(c.at, c.first)
			u.want("after midnight", c.want)
			u.note(c.at, c.first)
			u.want("a second report", c.want)
		})
	}
	u := newUptimes(t)
	for _, program := range []string{Ingest, Serve} {
		for _, day := range []string{"2025-11-21", "2025-11-22", "2026-03-01"} {
			u.exec("INSERT INTO uptime (program, day, began_at, running_at) VALUES ($1, $2::text::date, now(), '2025-01-01')",
				program, day)
		}
	}
	u.note("2026-03-02T10:00:00Z", true)
	days := u.read("SELECT string_agg(program || ' ' || to_char(day, 'MM-DD'), ', ' ORDER BY program, day) FROM uptime")
	if days != "ingest 11-22, ingest 03-01, ingest 03-02, serve 11-21, serve 11-22, serve 03-01" {
		t.Errorf("the rows are %s", days)
	}
}

// ListUptime returns no row for days without one, the recorded length of the first day and of today, and never more
// than the length of a day.
func TestListUptime(t *testing.T) {
	u := newUptimes(t)
	const row = `INSERT INTO uptime (program, day, began_at, running_at, running_ms, working_ms)
		VALUES ($1, $2::text::date, $3::text::timestamptz, $4::text::timestamptz, $5, $6)`
	u.exec(row, Serve, "2025-12-02", "2025-12-02T00:00Z", "-infinity", 1, 1)             // too old
	u.exec(row, Serve, "2025-12-03", "2025-12-03T06:00Z", "-infinity", 64_800_000, 1999) // not its first day
	u.exec(row, Ingest, "2026-02-25", "2026-02-25T18:00Z", "-infinity", 90_000_000, 3_600_000)
	u.exec(row, Ingest, "2026-02-27", "2026-02-27T18:00Z", "-infinity", 43_200_000, 0) // after a day without a record
	u.exec(row, Ingest, "2026-03-02", "2026-03-02T09:00Z", "2026-03-02T10:00Z", 50_000, 40_000)
	u.exec(row, Dispatch, "2026-03-02", "2026-03-02T09:59Z", "2026-03-02T09:59:30Z", 30_000, 0)
	list := func(at string) string {
		u.exec("UPDATE clock.at SET at = $1", at)
		rows, err := db.New(u.pool).ListUptime(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range rows {
			if r.Today != "2026-03-02" {
				t.Errorf("today is %s", r.Today)
			}
			got = append(got, fmt.Sprint(r.Program, " ", r.DaysAgo, " ", r.RecordedSeconds, " ", r.RunningSeconds, " ",
				r.WorkingSeconds))
		}
		return strings.Join(got, ", ")
	}
	// ingest reported 4 s ago, and is not down; dispatch has not reported for half a minute.
	want := "dispatch 0 64 30 0, ingest 0 36000 50 40, ingest 3 86400 43200 0, ingest 5 21600 21600 3600, serve 89 " +
		"86400 64800 1"
	if got := list("2026-03-02T10:00:04Z"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := list("2026-03-02T10:00:06Z"); !strings.Contains(got, "ingest 0 36006 50 40") {
		t.Errorf("6 s after its last report the day of ingest ends with it: %s", got)
	}
}

// A login records the uptime of its own program only, and a program whose login lacks the right continues to report its
// status.
func TestUptimeOfItsOwnProgramOnly(t *testing.T) {
	owner, as := logins(t)
	for program, pool := range as {
		for _, of := range Programs {
			// Try it once without a row and once with one that the login could add to.
			for _, row := range []string{"DELETE FROM uptime", "INSERT INTO uptime SELECT '" + of + `',
				(now() AT TIME ZONE 'UTC')::date, now(), now() - interval '3 s', now() - interval '3 s'
				ON CONFLICT (program, day) DO UPDATE SET running_at = excluded.running_at, working_at = excluded.working_at`} {
				exec(t, owner, row)
				err := db.New(pool).NoteUptime(t.Context(), db.NoteUptimeParams{Program: of, Working: true})
				var noted bool
				if scan := owner.QueryRow(t.Context(),
					"SELECT coalesce(bool_and(running_at > now() - interval '2 s'), false) FROM uptime").
					Scan(&noted); scan != nil {
					t.Fatal(scan)
				}
				if of == program && (err != nil || !noted) || of != program && (noted || err != nil && !denied(err)) {
					t.Errorf("%s records the uptime of %s: %t, %v", program, of, noted, err)
				}
			}
		}
		if _, err := db.New(pool).ListUptime(t.Context()); err != nil {
			t.Errorf("%s cannot read the uptime: %v", program, err)
		}
	}
	for _, statement := range []string{"UPDATE uptime SET running_ms = 0", "DELETE FROM uptime"} {
		exec(t, owner, "INSERT INTO uptime SELECT 'ingest', '2026-01-01', now(), now() ON CONFLICT DO NOTHING")
		if tag, err := as[Serve].Exec(t.Context(), statement+" WHERE program <> 'serve'"); err != nil ||
			tag.RowsAffected() != 0 {
			t.Errorf("serve: %s changes %d rows (%v)", statement, tag.RowsAffected(), err)
		}
	}
	exec(t, owner, "REVOKE ALL ON uptime FROM navlog_serve")
	state, err := report(t.Context(), db.New(as[Serve]), Serve, "i", map[string]string{"state": Serving})
	if err != nil || !Working(state) {
		t.Errorf("without a right to the new table the status is not written: %q, %v", state, err)
	}
}
