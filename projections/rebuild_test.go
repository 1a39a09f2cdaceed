package projections

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// operator returns an operator with short intervals.
func (w *world) operator(t *testing.T) *Operator {
	t.Helper()
	o, err := NewOperator(chainID, w.kafka, w.ch, w.pool)
	must(t, err)
	o.every = 50 * time.Millisecond
	t.Cleanup(func() { must(t, o.Close()) })
	return o
}

// states formats the list, like "1 live, 2 standby".
func states(t *testing.T, o *Operator) string {
	t.Helper()
	all, err := o.List(t.Context())
	must(t, err)
	var out []string
	for _, g := range all {
		out = append(out, fmt.Sprint(g.ID, " ", g.State))
	}
	return strings.Join(out, ", ")
}

func wantStates(t *testing.T, o *Operator, want string) {
	t.Helper()
	if got := states(t, o); got != want {
		t.Errorf("the generations are %s, want %s", got, want)
	}
}

// becomes waits until the generations have these states.
func becomes(t *testing.T, o *Operator, want string) {
	t.Helper()
	wait.Until(t, func() error {
		if got := states(t, o); got != want {
			return fmt.Errorf("the generations are %s, want %s", got, want)
		}
		return nil
	})
}

// servedBy returns the live generation, as query looks it up. 0 for none.
func (w *world) servedBy(t *testing.T) int32 {
	t.Helper()
	live, err := db.New(w.pool).LiveGeneration(t.Context())
	if errors.Is(err, pgx.ErrNoRows) {
		return 0
	}
	must(t, err)
	return live.ID
}

func (w *world) wantAt(t *testing.T, id int32, seq uint64) {
	t.Helper()
	wait.Until(t, func() error {
		if at, err := readmodel.ReadPosition(t.Context(), w.conn, w.ch.Database(id)); err != nil || at.Seq != seq {
			return fmt.Errorf("generation %d is at %+v, %v; want seq %d", id, at, err, seq)
		}
		return nil
	})
}

// follows waits until p reports that generation id is the live one, at seq.
func follows(t *testing.T, p *Projections, id int32, seq uint64) {
	t.Helper()
	wait.Until(t, func() error {
		if s := p.Status(); s.Generation != id || s.Seq != seq || s.State != Following {
			return fmt.Errorf("status is %+v, want generation %d at seq %d, following", s, id, seq)
		}
		return p.Ready()
	})
}

// wantError fails the test unless err contains all words.
func wantError(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, word := range words {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("got %v, which lacks %q", err, word)
		}
	}
}

// running returns a world whose log is written and whose projector follows it.
func running(t *testing.T) (*world, *script, *Projections, *Operator) {
	t.Helper()
	w := newWorld(t)
	s := everyEvent()
	w.append(t, s.Records)
	p, _ := w.projector(t)
	start(t, p)
	reaches(t, p, s.Seq())
	return w, s, p, w.operator(t)
}

// more appends a block with a deposit to the log.
func (w *world) more(t *testing.T, s *script) {
	t.Helper()
	from := s.Seq()
	s.Mine(emitted{vaultA, deposit(int64(from), bob, 9, whole(5))})
	w.append(t, s.Records[from:])
}

// TestRebuild is the life of two generations: built, compared, switched, both kept up to date, switched back,
// dropped.
func TestRebuild(t *testing.T) {
	t.Parallel()
	w, s, p, o := running(t)
	from := s.Seq()
	s.Mine(emitted{vaultA, requested(3, bob)}) // stays in the queue
	w.append(t, s.Records[from:])
	reaches(t, p, s.Seq())
	var ends atomic.Int64
	var compared atomic.Int64
	o.Progress = func(what string, done, of uint64) {
		switch {
		case what == buildingText(2) && done == s.Seq() && of == done:
			ends.Add(1)
		case strings.HasSuffix(what, ": rows") && done > 0 && of >= done:
			compared.Add(1)
		}
	}
	out, err := o.Rebuild(t.Context(), RebuildOptions{})
	must(t, err)
	if compared.Load() == 0 {
		t.Error("no progress was reported for the rows that ClickHouse reads")
	}
	if out.Generation != 2 || !out.Live || out.Continued || out.Parity == nil || out.Verified != nil ||
		out.Parity.Err() != nil || out.Parity.Seq != s.Seq() || ends.Load() == 0 {
		t.Fatalf("rebuilt %+v, %d reports of the end:\n%s", out, ends.Load(), out.Parity)
	}
	// The reference contracts have no groups, no 32-byte ids and no first-in-first-out queues.
	empty := regexp.MustCompile("quarantined|: (groups|request_sources|fifo): ")
	for _, c := range out.Parity.Checks {
		if want := !empty.MatchString(c.Name); (c.Compared > 0) != want {
			t.Errorf("%s made %d comparisons", c.Name, c.Compared)
		}
	}
	wantStates(t, o, "1 standby, 2 live")
	follows(t, p, 2, s.Seq())
	if w.servedBy(t) != 2 {
		t.Errorf("query reads generation %d", w.servedBy(t))
	}
	w.more(t, s)
	follows(t, p, 2, s.Seq())
	w.wantAt(t, 1, s.Seq())
	w.equal(t, s.Seq())
	if others := p.Status().Others; len(others) != 1 || others[0].Generation != 1 {
		t.Errorf("beside the live generation there is %+v", others)
	}
	if got := testutil.ToFloat64(p.measured().rows.WithLabelValues("events")); got != float64(s.Seq()) {
		t.Errorf("%v rows of events are counted for generation 2, want %d", got, s.Seq())
	}

	back, err := o.Rollback(t.Context())
	if err != nil || back != 1 {
		t.Fatalf("rollback went to %d, %v", back, err)
	}
	wantStates(t, o, "1 live, 2 standby")
	w.more(t, s)
	follows(t, p, 1, s.Seq())
	w.wantAt(t, 2, s.Seq())
	w.equal(t, s.Seq())
	must(t, o.Switch(t.Context(), 2))
	must(t, o.Switch(t.Context(), 1))

	wantError(t, o.Drop(t.Context(), 1), "generation 1 is live and is not dropped")
	wantError(t, o.Drop(t.Context(), 7), "there is no generation 7")
	for range 2 { // the second time finds nothing to do
		must(t, o.Drop(t.Context(), 2))
	}
	wantStates(t, o, "1 live, 2 dropped")
	w.more(t, s)
	follows(t, p, 1, s.Seq())
	wait.Until(t, func() error {
		if others := p.Status().Others; len(others) != 0 {
			return fmt.Errorf("still written: %+v", others)
		}
		return nil
	})
	var left uint64
	must(t, w.conn.QueryRow(t.Context(), "SELECT count() FROM system.databases WHERE name = {db:String}",
		clickhouse.Named("db", w.ch.Database(2))).Scan(&left))
	if left != 0 {
		t.Error("the database of the dropped generation is there")
	}
	wantError(t, o.Switch(t.Context(), 2), "generation 2 is dropped and cannot be live")
	_, err = o.Rollback(t.Context())
	wantError(t, err, "no standby generation to go back to")
}

// TestRebuildDiffers: a wrong row in the new generation prevents the switch, and the report names it.
func TestRebuildDiffers(t *testing.T) {
	if testing.Short() {
		t.Skip("rebuilds twice")
	}
	t.Parallel()
	w, s, p, o := running(t)
	at := number(t, w.conn, "SELECT min(seq) FROM "+w.ch.Database(1)+".events WHERE effect = 'valuation' AND sign = 1")
	o.Progress = func(what string, done, of uint64) {
		if what == buildingText(2) && done == of {
			must(t, w.conn.Exec(t.Context(),
				"ALTER TABLE "+w.ch.Database(2)+
					".events UPDATE assets = 7 WHERE effect = 'valuation' AND sign = 1 SETTINGS mutations_sync = 2"))
		}
	}
	out, err := o.Rebuild(t.Context(), RebuildOptions{})
	if !errors.Is(err, ErrDiffers) || out == nil || out.Live || out.Parity == nil {
		t.Fatalf("rebuilt %+v, %v", out, err)
	}
	wantError(t, err, "generation 2 is not equal to generation 1, which stays live", "--accept-diff")
	wantError(t, out.Parity.Err(),
		fmt.Sprintf("events: rows: generation 1 has %d rows and generation 2 has %d, the first difference is in the rows "+
			"of seq %d", s.Seq(), s.Seq(), at))
	if text := out.Parity.String(); !strings.Contains(text, fmt.Sprintf("first difference: seq %d, ", at)) ||
		!strings.Contains(text, "of block ") || !strings.Contains(text, "DIFFERENT") {
		t.Errorf("the report prints\n%s", text)
	}
	wantStates(t, o, "1 live, 2 building")
	if kept, err := o.Show(t.Context(), 2); err != nil || kept.Live || kept.Accepted || kept.Parity.FirstSeq != at ||
		len(kept.Parity.Events) < 2 {
		t.Errorf("kept %+v, %v", kept, err)
	}
	wantError(t, o.Switch(t.Context(), 2), "was not compared yet")
	follows(t, p, 1, s.Seq())

	out, err = o.Rebuild(t.Context(), RebuildOptions{AcceptDiff: true})
	if err != nil || out.Generation != 2 || !out.Continued || !out.Live || !out.Accepted || out.Parity.Err() == nil {
		t.Errorf("accepted %+v, %v", out, err)
	}
	wantStates(t, o, "1 standby, 2 live")
	follows(t, p, 2, s.Seq())
	if kept, err := o.Show(t.Context(), 2); err != nil || !kept.Live || !kept.Accepted ||
		kept.Parity.String() != out.Parity.String() {
		t.Errorf("kept %+v, %v", kept, err)
	}
	_, err = o.Show(t.Context(), 1)
	wantError(t, err, "generation 1 has no report")
	_, err = o.Show(t.Context(), 9)
	wantError(t, err, "there is no generation 9")
}

// TestRebuildInterrupted: the command is killed, everything stays usable, and the next one continues with the same
// generation.
func TestRebuildInterrupted(t *testing.T) {
	if testing.Short() {
		t.Skip("rebuilds twice")
	}
	t.Parallel()
	w, s, p, o := running(t)
	ctx, cancel := context.WithCancel(t.Context())
	out, err := o.Rebuild(ctx, RebuildOptions{Notice: func(string) { cancel() }})
	if out == nil || out.Generation != 2 || out.Live || !errors.Is(err, context.Canceled) {
		t.Fatalf("rebuilt %+v, %v", out, err)
	}
	wantStates(t, o, "1 live, 2 building")
	w.more(t, s)
	follows(t, p, 1, s.Seq())
	w.wantAt(t, 2, s.Seq())
	var notices []string
	out, err = o.Rebuild(t.Context(),
		RebuildOptions{Notice: func(sentence string) { notices = append(notices, sentence) }})
	if err != nil || out.Generation != 2 || !out.Continued || !out.Live {
		t.Errorf("continued %+v, %v", out, err)
	}
	if len(notices) == 0 || !strings.Contains(notices[0], "continuing generation 2") {
		t.Errorf("the notices are %q", notices)
	}
	wantStates(t, o, "1 standby, 2 live")
}

// TestRebuildReportsRetries: while the new generation cannot be written for a reason that may end by itself, the
// command gives the reason and waits.
func TestRebuildReportsRetries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := everyEvent()
	w.append(t, s.Records)
	p, _ := w.projector(t)
	var may atomic.Bool
	open := p.open
	p.open = func(database string) (driver.Conn, error) {
		if database == w.ch.Database(2) && !may.Load() {
			return nil, errors.New("memory limit exceeded")
		}
		return open(database)
	}
	start(t, p)
	reaches(t, p, s.Seq())
	ctx, cancel := context.WithTimeout(t.Context(), wait.Patience)
	defer cancel()
	out, err := w.operator(t).Rebuild(ctx, RebuildOptions{Notice: func(sentence string) {
		if sentence == "generation 2 is not written, retrying: memory limit exceeded" {
			may.Store(true)
		}
	}})
	if err != nil || !out.Live {
		t.Errorf("rebuilt %+v, %v", out, err)
	}
}

// TestRebuildAfterAFault: the generation of a rebuild has a fault that does not end by itself. The command fails and
// the list has a note, both with the reason. When the fault is gone, the same projector builds the generation, and
// the next rebuild continues it.
func TestRebuildAfterAFault(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := everyEvent()
	w.append(t, s.Records)
	p, _ := w.projector(t)
	p.reopen = 50 * time.Millisecond
	start(t, p)
	reaches(t, p, s.Seq())
	remembers := func(inserts int) {
		t.Helper()
		must(t, w.conn.Exec(t.Context(), fmt.Sprintf(
			"ALTER TABLE %s.events MODIFY SETTING non_replicated_deduplication_window = %d", w.ch.Database(2), inserts)))
	}
	must(t, w.ch.CreateEvents(t.Context(), w.conn, w.ch.Database(2)))
	remembers(7)
	w.registered(t, 2, s.Records[0].GetOrigin().GetLogId(), readmodel.Schema(), registry.Building)
	o := w.operator(t)
	const reason = "events lacks non_replicated_deduplication_window = 100000"
	_, err := o.Rebuild(t.Context(), RebuildOptions{})
	wantError(t, err, "generation 2 cannot be built", reason, "run this again", "`navlog projection drop 2`")
	all, err := o.List(t.Context())
	must(t, err)
	if !strings.Contains(all[1].Note, reason) {
		t.Errorf("generation 2 has the note %q", all[1].Note)
	}
	w.more(t, s)
	w.wantAt(t, 1, s.Seq()) // the live one continues
	remembers(100_000)
	wait.Until(t, func() error {
		out, err := o.Rebuild(t.Context(), RebuildOptions{})
		if err == nil && (out.Generation != 2 || !out.Continued || !out.Live) {
			t.Fatalf("rebuilt %+v", out)
		}
		return err
	})
	follows(t, p, 2, s.Seq())
	wantStates(t, o, "1 standby, 2 live")
}

// TestSwitchDuringRebuild: an operator makes another generation live while a rebuild compares. The rebuild does not
// undo that decision, and the next one compares with that generation.
func TestSwitchDuringRebuild(t *testing.T) {
	if testing.Short() {
		t.Skip("rebuilds three times")
	}
	t.Parallel()
	w, s, p, o := running(t)
	_, err := o.Rebuild(t.Context(), RebuildOptions{NoSwitch: true})
	must(t, err)
	wantStates(t, o, "1 live, 2 standby")
	other := w.operator(t)
	var switched sync.Once
	o.Progress = func(what string, _, _ uint64) {
		if strings.HasPrefix(what, "generation 3: no row lost") { // the rebuild knows by now which one is live
			switched.Do(func() { must(t, other.Switch(t.Context(), 2)) })
		}
	}
	out, err := o.Rebuild(t.Context(), RebuildOptions{})
	wantError(t, err, "make generation 3 the live one", "nothing was switched", "generation 2 was made live meanwhile")
	if out == nil || out.Live || out.Parity.Err() != nil {
		t.Errorf("rebuilt %+v", out)
	}
	wantStates(t, o, "1 standby, 2 live, 3 building")
	out, err = o.Rebuild(t.Context(), RebuildOptions{})
	if err != nil || out.Generation != 3 || !out.Continued || !out.Live {
		t.Errorf("continued %+v, %v", out, err)
	}
	wantStates(t, o, "1 standby, 2 standby, 3 live")
	follows(t, p, 3, s.Seq())
}

// TestRebuildOfBad: the only generation breaks, and the projector is stopped. A rebuild reports that no projector
// writes, continues when one does, and compares with the log.
func TestRebuildOfBad(t *testing.T) {
	if testing.Short() {
		t.Skip("rebuilds and verifies")
	}
	t.Parallel()
	w := newWorld(t)
	s := everyEvent()
	w.append(t, s.Records)
	p, _ := w.projector(t)
	stop := start(t, p)
	reaches(t, p, s.Seq())
	must(t, stop())
	must(t, w.conn.Exec(t.Context(), "INSERT INTO "+w.ch.Database(1)+".events (seq) VALUES (2)"))
	p, _ = w.projector(t)
	stop = refuses(t, p, "marked bad", "navlog projection rebuild")
	must(t, stop())

	o := w.operator(t)
	o.patience = 0
	next, _ := w.projector(t)
	var notices atomic.Int64
	out, err := o.Rebuild(t.Context(), RebuildOptions{Notice: func(sentence string) {
		if strings.Contains(sentence, "no `navlog project` writes generation 2") {
			notices.Add(1)
			start(t, next)
		}
	}})
	if err != nil || out.Generation != 2 || !out.Live || out.Parity != nil || out.Verified == nil ||
		out.Verified.Seq != s.Seq() || notices.Load() != 1 {
		t.Fatalf("rebuilt %+v, %v, %d reports", out, err, notices.Load())
	}
	wantStates(t, o, "1 bad, 2 live")
	follows(t, next, 2, s.Seq())
	must(t, o.Drop(t.Context(), 1))
	wantStates(t, o, "1 dropped, 2 live")
}

// TestOtherSchemaWaitsForRebuild: a projector whose only generation has another schema, as after an upgrade, does not
// end, and builds what a rebuild creates.
func TestOtherSchemaWaitsForRebuild(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := everyEvent()
	w.append(t, s.Records)
	w.registered(t, 1, s.Records[0].GetOrigin().GetLogId(), "fedcba987654", registry.Live)
	p, _ := w.projector(t)
	refuses(t, p, "has schema fedcba987654", "navlog projection rebuild")
	o := w.operator(t)
	out, err := o.Rebuild(t.Context(), RebuildOptions{})
	if err != nil || !out.Live || out.Verified == nil {
		t.Fatalf("rebuilt %+v, %v", out, err)
	}
	wantStates(t, o, "1 standby, 2 live")
	follows(t, p, 2, s.Seq())
}

// TestLogReplacedMeanwhile: the log is replaced while a projector waits for a rebuild, which is then built from the
// new log.
func TestLogReplacedMeanwhile(t *testing.T) {
	if testing.Short() {
		t.Skip("rebuilds on another log")
	}
	t.Parallel()
	w := newWorld(t)
	s := everyEvent()
	w.append(t, s.Records)
	w.registered(t, 1, []byte("another log's id"), readmodel.Schema(), registry.Live)
	p, _ := w.projector(t)
	refuses(t, p, "generation 1 was made from log", fmt.Sprintf("is log %x", s.Records[0].GetOrigin().GetLogId()))
	w.replacedLog(t)
	s = everyEvent()
	s.Records[0].GetOrigin().LogId = []byte("the third log...")
	w.append(t, s.Records)
	refusing(t, p, fmt.Sprintf("is log %x", "the third log..."))
	out, err := w.operator(t).Rebuild(t.Context(), RebuildOptions{})
	if err != nil || !out.Live || out.Verified == nil {
		t.Fatalf("rebuilt %+v, %v", out, err)
	}
	follows(t, p, 2, s.Seq())
}

// TestRollbackToOwnSchema: another version has made two generations, and one of them is live. A rollback of this
// version makes live what this version can serve, although it is older than the standby generation of the other
// version.
func TestRollbackToOwnSchema(t *testing.T) {
	t.Parallel()
	w, s, p, o := running(t)
	must(t, move(t.Context(), db.New(w.pool), 1, registry.Live, registry.Standby))
	logID := s.Records[0].GetOrigin().GetLogId()
	w.registered(t, 2, logID, "fedcba987654", registry.Standby)
	w.registered(t, 3, logID, "fedcba987654", registry.Live)
	refusing(t, p, "generation 3 has schema fedcba987654")
	id, err := o.Rollback(t.Context())
	if err != nil || id != 1 {
		t.Errorf("rolled back to generation %d, %v", id, err)
	}
	wantStates(t, o, "1 live, 2 standby, 3 standby")
	follows(t, p, 1, s.Seq())
}

// TestOldSchema: a generation whose tables have other names, made by an older navlog, is listed, replaced by a
// rebuild, rejected by a switch, and dropped.
func TestOldSchema(t *testing.T) {
	if testing.Short() {
		t.Skip("rebuilds, switches and drops")
	}
	t.Parallel()
	w := newWorld(t)
	s := everyEvent()
	w.append(t, s.Records)
	old := w.ch.Database(1)
	must(t, w.ch.CreateEvents(t.Context(), w.conn, old))
	must(t, w.conn.Exec(t.Context(), "RENAME TABLE "+old+".events TO "+old+".flows"))
	w.registered(t, 1, s.Records[0].GetOrigin().GetLogId(), "fedcba987654", registry.Live)
	p, _ := w.projector(t)
	start(t, p)
	o := w.operator(t)
	wantStates(t, o, "1 live")
	out, err := o.Rebuild(t.Context(), RebuildOptions{})
	if err != nil || !out.Live || out.Verified == nil {
		t.Fatalf("rebuilt %+v, %v", out, err)
	}
	wantStates(t, o, "1 standby, 2 live")
	wantError(t, o.Switch(t.Context(), 1), "has no tables of the schema "+readmodel.Schema(), "fedcba987654")
	must(t, o.Drop(t.Context(), 1))
	wantStates(t, o, "1 dropped, 2 live")
}

// TestLiveBreaks: with a standby generation, the projector continues when the live one breaks, and reports it; a
// rollback fixes it.
func TestLiveBreaks(t *testing.T) {
	if testing.Short() {
		t.Skip("rebuilds, breaks and rolls back")
	}
	t.Parallel()
	w, s, p, o := running(t)
	_, err := o.Rebuild(t.Context(), RebuildOptions{})
	must(t, err)
	follows(t, p, 2, s.Seq())
	must(t, w.conn.Exec(t.Context(), "INSERT INTO "+w.ch.Database(2)+".events (seq) VALUES (2)"))
	// The lease is lost, and the generation is audited when it is opened again.
	w.stealLease(t, 2)
	wait.Until(t, func() error {
		if s := p.Status(); s.State != Bad || w.servedBy(t) != 0 {
			return fmt.Errorf("status is %+v", s)
		}
		return nil
	})
	wantError(t, p.Ready(), "bad: ", "marked bad")
	w.more(t, s)
	w.wantAt(t, 1, s.Seq())
	_, err = o.Rollback(t.Context())
	must(t, err)
	follows(t, p, 1, s.Seq())
	wantStates(t, o, "1 live, 2 bad")
}

// TestBrokenBeside: a generation that cannot be built does not affect the live one.
func TestBrokenBeside(t *testing.T) {
	if testing.Short() {
		t.Skip("several generations")
	}
	t.Parallel()
	w, s, p, o := running(t)
	must(t, w.ch.CreateEvents(t.Context(), w.conn, w.ch.Database(2)))
	must(t, w.conn.Exec(t.Context(), "INSERT INTO "+w.ch.Database(2)+".events (seq) VALUES (1), (3)"))
	w.registered(t, 2, s.Records[0].GetOrigin().GetLogId(), readmodel.Schema(), registry.Building)
	_, err := o.Rebuild(t.Context(), RebuildOptions{})
	wantError(t, err, "generation 2")
	wait.Until(t, func() error {
		if got := states(t, o); got != "1 live, 2 bad" {
			return fmt.Errorf("the generations are %s", got)
		}
		return nil
	})
	w.more(t, s)
	follows(t, p, 1, s.Seq())
}

// TestOperatorRefusals: a command that would lead to wrong responses, or remove tables that a reader uses, is
// rejected with a reason.
func TestOperatorRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.operator(t)
	_, err := o.Rebuild(t.Context(), RebuildOptions{})
	wantError(t, err, "nothing to rebuild from")
	s := everyEvent()
	w.append(t, s.Records)
	_, err = o.Rebuild(t.Context(), RebuildOptions{})
	wantError(t, err, "there is no generation yet")
	logID := s.Records[0].GetOrigin().GetLogId()
	w.registered(t, 1, logID, readmodel.Schema(), registry.Live)
	must(t, w.ch.CreateEvents(t.Context(), w.conn, w.ch.Database(2)))
	must(t, w.conn.Exec(t.Context(), "INSERT INTO "+w.ch.Database(2)+".events (seq) VALUES (5)"))
	_, err = o.Rebuild(t.Context(), RebuildOptions{})
	wantError(t, err, "holds rows (events up to seq 5), and PostgreSQL has no generation 2")
	must(t, w.conn.Exec(t.Context(), "DROP TABLE "+w.ch.Database(2)+".events"))
	w.registered(t, 2, []byte("another log's id"), readmodel.Schema(), registry.Standby)
	wantError(t, o.Switch(t.Context(), 2), "has no tables")
	must(t, w.ch.CreateEvents(t.Context(), w.conn, w.ch.Database(2)))
	wantError(t, o.Switch(t.Context(), 2), "an older log cannot be served again")
	wantError(t, o.Switch(t.Context(), 1), "live already")
	must(t, db.New(w.pool).PutStatus(t.Context(),
		db.PutStatusParams{Program: registry.Serve, Instance: "one", Status: []byte(`{"generation": 2}`)}))
	wantError(t, o.Drop(t.Context(), 2), "`navlog serve` one read it")
	wantStates(t, o, "1 live, 2 standby")
}

// TestReportsOfSeveralProjectors: what the writer of a generation reports counts, whatever other projectors report.
func TestReportsOfSeveralProjectors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for instance, state := range map[string]string{"1": StandingBy, "2": Retrying, "3": Following, "4": Retrying,
		"5": StandingBy, "6": Starting} {
		must(t, db.New(w.pool).PutStatus(t.Context(), db.PutStatusParams{Program: registry.Project, Instance: instance,
			Status: fmt.Appendf(nil, `{"generation": 1, "state": %q}`, state)}))
	}
	all, err := w.operator(t).reports(t.Context())
	must(t, err)
	if all[1] == nil || all[1].State != Following {
		t.Errorf("generation 1 is reported as %+v", all[1])
	}
}

// TestDropWaitsForReaders: a generation from which an instance has switched away, but which its requests may still be
// reading, is not dropped before they end.
func TestDropWaitsForReaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.operator(t)
	logID := everyEvent().Records[0].GetOrigin().GetLogId()
	w.registered(t, 1, logID, readmodel.Schema(), registry.Standby)
	w.registered(t, 2, logID, readmodel.Schema(), registry.Live)
	must(t, db.New(w.pool).PutStatus(t.Context(), db.PutStatusParams{Program: registry.Serve, Instance: "one",
		Status: []byte(`{"generation": 2, "leaving": [{"generation": 7, "forMs": 9000000}, {"generation": 1, "forMs": 3590000}]}`)}))
	ago := func(interval string) {
		_, err := w.pool.Exec(t.Context(),
			"UPDATE program_status SET at = now() - $1::text::interval WHERE program = 'serve' AND instance = 'one'", interval)
		must(t, err)
	}
	ago("10 minutes")
	wantError(t, o.Drop(t.Context(), 1), "generation 1 is not dropped",
		"`navlog serve` one began before it followed the switch", "retry in 29")
	wantStates(t, o, "1 standby, 2 live")
	ago("1 hour")
	must(t, o.Drop(t.Context(), 1))
	wantStates(t, o, "1 dropped, 2 live")
}
