package projections

import (
	"fmt"
	"strings"
	"testing"

	"github.com/navlog/navlog/projections/verify"
)

// TestHolesAreMarked: a generation that lost a part is marked bad by the first command that checks it, while the
// projector, whose own audit passed before, continues to write: by a switch, by the verification, and by a rebuild,
// which then compares with the log instead.
func TestHolesAreMarked(t *testing.T) {
	if testing.Short() {
		t.Skip("compares by SQL, one rebuild after the other")
	}
	t.Parallel()
	w := newWorld(t)
	s := everyEvent()
	w.append(t, s.Records)
	p, _ := w.projector(t)
	start(t, p)
	reaches(t, p, s.Seq())
	o := w.operator(t)
	rebuilt := func(id int32, byLog bool, wantNotices ...string) {
		t.Helper()
		var notices []string
		out, err := o.Rebuild(t.Context(),
			RebuildOptions{Notice: func(sentence string) { notices = append(notices, sentence) }})
		if err != nil || out.Generation != id || !out.Live || (out.Verified != nil) != byLog || (out.Parity != nil) == byLog {
			t.Fatalf("rebuilt %+v, %v", out, err)
		}
		for _, words := range wantNotices {
			if !strings.Contains(strings.Join(notices, "\n"), words) {
				t.Errorf("reported %q, which lacks %q", notices, words)
			}
		}
		follows(t, p, id, s.Seq())
	}
	rebuilt(2, false)
	w.losePart(t, s, 1)
	wantError(t, o.Switch(t.Context(), 1), "generation 1 cannot be live", "must have", "rows were lost or doubled",
		"generation 1 is marked bad", "`navlog projection rebuild`")
	wantStates(t, o, "1 bad, 2 live")
	wantError(t, o.Switch(t.Context(), 1), "generation 1 is bad and cannot be live")

	w.losePart(t, s, 2)
	report, err := verify.Verify(t.Context(), chainID, w.kafka, w.ch, w.pool, verify.Options{})
	must(t, err)
	wantError(t, report.Err(), "no row lost or doubled", "generation 2 is marked bad", "`navlog projection rebuild`")
	wantStates(t, o, "1 bad, 2 bad")
	rebuilt(3, true)
	wantStates(t, o, "1 bad, 2 bad, 3 live")

	w.losePart(t, s, 3)
	rebuilt(4, true, "the live generation 3 is broken", "generation 3 is marked bad", "comparing with the log itself")
	wantStates(t, o, "1 bad, 2 bad, 3 bad, 4 live")
	w.verify(t, s.Seq())
}

// losePart drops a part that contains a whole block from a generation's events, bypassing the projector.
// It is not the newest part.
func (w *world) losePart(t *testing.T, s *script, id int32) {
	t.Helper()
	table := w.ch.Database(id) + ".events"
	must(t, w.conn.Exec(t.Context(), "SYSTEM STOP MERGES "+table))
	lost := s.Seq() + 1
	for range 2 {
		w.more(t, s)
		w.wantAt(t, id, s.Seq())
	}
	var part string
	must(t, w.conn.QueryRow(t.Context(), fmt.Sprintf("SELECT any(_part) FROM %s WHERE seq = %d", table, lost)).Scan(&part))
	must(t, w.conn.Exec(t.Context(), "ALTER TABLE "+table+" DETACH PART '"+part+"'"))
}
