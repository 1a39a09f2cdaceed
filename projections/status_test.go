package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

func TestBoard(t *testing.T) {
	t.Parallel()
	b := new(board)
	b.reset(3)
	b.open(100, 140, true)
	wrote := func(seq uint64, offset int64) {
		b.noteRead(offset)
		b.noteWritten(decode.Batch{{{Offset: offset, Seq: seq, Sign: 1, Kind: readmodel.BlockRecord,
			Log: decode.Log{Block: seq, Time: 5}}}})
	}
	for i, step := range []struct {
		do    func()
		end   int64
		lag   int64
		state string
		ready string
	}{
		{func() {}, 5000, 4859, Building, "generation 3 is being built"},
		{func() {}, 5000, 4859, Building, "4859 log offsets to go"}, // the log has not responded yet
		{func() { wrote(110, 150) }, 5000, 4849, Building, "4849 log offsets to go"},
		{func() { b.noteRead(4900) }, 5000, 4849, Building, "being built"},
		{func() {}, 5000, 4849, Building, "being built"},      // records that it returned are not written yet
		{func() { wrote(120, 4998) }, 5000, 0, Following, ""}, // only the marker of its transaction is left
		{func() { wrote(121, 5000) }, 5100, 99, Following, ""},
		{func() {}, 5100, 0, Following, ""}, // no more records: the rest is aborted
		{func() { wrote(122, 5101) }, 7000, 1898, Building, "being built"},
		{func() { wrote(123, 6998) }, 7000, 0, Following, ""},
		{func() { b.answered = time.Now().Add(-time.Minute) }, -1, 0, Following,
			"no response from Kafka or ClickHouse for 1m0s"},
		{func() { b.set(Retrying, fmt.Errorf("no engine")) }, 7000, 0, Retrying, "retrying: no engine"},
		{func() { b.set(Bad, fmt.Errorf("a hole")) }, 7000, 0, Bad, "bad: a hole"},
	} {
		step.do()
		if step.end >= 0 {
			b.update(chainlog.Tail{Written: step.end, Stable: step.end}, nil, time.Second)
		}
		got, ready := b.get(), fmt.Sprint(b.ready())
		if got.Lag != step.lag || got.State != step.state {
			t.Errorf("step %d: lag %d and %s, want %d and %s", i, got.Lag, got.State, step.lag, step.state)
		}
		if step.ready == "" && ready != "<nil>" || !strings.Contains(ready, step.ready) {
			t.Errorf("step %d: ready is %s, want %q", i, ready, step.ready)
		}
	}
	if s := b.get(); s.Block != 123 || s.BlockTime.Unix() != 5 || s.Generation != 3 || s.RecordsPerSecond != 1 {
		t.Errorf("status is %+v", s)
	}
}

// TestBoardOfABuilding: the status of a generation while it is built; it follows the log only when its lists are
// built.
func TestBoardOfABuilding(t *testing.T) {
	t.Parallel()
	b := new(board)
	b.reset(1)
	b.open(100, 150, false)
	check := func(step, state string, left int64, eta *uint64, phase string) {
		t.Helper()
		got := b.building()
		if s := b.get(); s.State != state || got.Generation != 1 || got.Seq != s.Seq || got.RecordsLeft != left ||
			got.Phase != phase || (got.ETASeconds == nil) != (eta == nil) || eta != nil && *eta != *got.ETASeconds {
			t.Errorf("%s: %s, %+v", step, s.State, got)
		}
	}
	check("opened", Building, 0, nil, registry.PhaseFacts)
	b.noteWritten(decode.Batch{{{Offset: 400, Seq: 300, Sign: 1, Kind: readmodel.BlockRecord}}})
	b.update(chainlog.Tail{Written: 1401, Stable: 1401}, nil, time.Second)
	eta := uint64(1000/200 + 1)
	check("a second later", Building, 1000, &eta, registry.PhaseFacts)
	b.noteWritten(decode.Batch{{{Offset: 1400, Seq: 1200, Sign: 1, Kind: readmodel.BlockRecord}}})
	b.update(chainlog.Tail{Written: 1401, Stable: 1401}, nil, time.Second)
	eta = 1
	check("at the end of the log", Building, 0, &eta, registry.PhaseFacts)
	b.build(true, false)
	check("while its lists are built", Building, 0, nil, registry.PhaseDeriving)
	b.build(false, true)
	b.update(chainlog.Tail{Written: 1401, Stable: 1401}, nil, time.Second)
	if s := b.get(); s.State != Following || !s.Built || b.ready() != nil {
		t.Errorf("built: %+v, ready %v", s, b.ready())
	}
	b.open(1200, 1400, true) // the writer starts again
	if s := b.get(); s.State != Building || !s.Built {
		t.Errorf("opened again: %+v", s)
	}
}

// TestFollowsPastAborted: a projector that starts after the last record, with only aborted records up to the end of
// the log, is at the end.
func TestFollowsPastAborted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := everyEvent()
	w.append(t, s.Records)
	p, _ := w.projector(t)
	stop := start(t, p)
	reaches(t, p, s.Seq())
	must(t, stop())
	s.Mine(emitted{vaultA, deposit(2, alice, 7, whole(5))})
	from := s.Seq() - 2
	w.transaction(t, s.Records[from:], kgo.TryAbort)
	p, _ = w.projector(t)
	start(t, p)
	reaches(t, p, from)
	w.append(t, s.Records[from:])
	reaches(t, p, s.Seq())
	w.equal(t, s.Seq())
}

// TestAudit: the next audit detects a generation that breaks while it is written, and it is marked bad and no longer
// written.
func TestAudit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := everyEvent()
	w.append(t, s.Records)
	p, _ := w.projector(t)
	p.audit = 0
	start(t, p)
	reaches(t, p, s.Seq())
	must(t, w.conn.Exec(t.Context(), "INSERT INTO "+w.ch.Database(1)+".events (seq) VALUES (2)"))
	s.Mine()
	w.append(t, s.Records[p.Status().Seq:])
	refusing(t, p, "navlog projection rebuild")
	all, err := db.New(w.pool).ListGenerations(t.Context())
	if err != nil || len(all) != 1 || all[0].State != registry.Bad {
		t.Errorf("generations are %+v, %v", all, err)
	}
}

// auditedConn calls a function of the test before each audit of a generation.
type auditedConn struct {
	driver.Conn
	before func(ctx context.Context) context.Context
}

func (c *auditedConn) QueryRow(ctx context.Context, query string, args ...any) driver.Row {
	if strings.Contains(query, "groupBitmap(seq)") { // the first query of an audit
		ctx = c.before(ctx)
	}
	return c.Conn.QueryRow(ctx, query, args...)
}

// TestAuditBesideTheWriter: writing continues while an audit runs, which uses one thread of the engine, and when
// audits are no longer possible.
func TestAuditBesideTheWriter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := everyEvent()
	w.append(t, s.Records)
	p, _ := w.projector(t)
	p.audit = time.Millisecond
	var audits atomic.Int32
	var threads uint64
	begun, over := make(chan struct{}), make(chan struct{})
	p.openPatient = func(database string) (driver.Conn, error) {
		conn, err := p.clickhouse.OpenPatient(database)
		return &auditedConn{conn, func(ctx context.Context) context.Context {
			switch n := audits.Add(1); {
			case n == 2: // after the audit at the start
				if err := conn.QueryRow(ctx, "SELECT toUInt64(getSetting('max_threads'))").Scan(&threads); err != nil {
					t.Errorf("read the threads of an audit: %v", err)
				}
				close(begun)
				select {
				case <-over:
				case <-ctx.Done():
				}
			case n > 2:
				ctx, cancel := context.WithCancel(ctx)
				cancel()
				return ctx
			}
			return ctx
		}}, err
	}
	start(t, p)
	select {
	case <-begun:
	case <-time.After(wait.Patience):
		t.Fatal("no audit runs beside the writer")
	}
	if threads != 1 {
		t.Errorf("an audit beside the writer takes %d threads, want 1", threads)
	}
	for range 2 {
		s.Mine()
		w.append(t, s.Records[s.Seq()-1:])
		reaches(t, p, s.Seq())
	}
	outcome := func(outcome string) float64 { return testutil.ToFloat64(p.measured().audits.WithLabelValues(outcome)) }
	if outcome("sound") != 0 || outcome("failed") != 0 {
		t.Fatal("the audit did not run while the log was written, so the test is incomplete")
	}
	close(over)
	wait.Until(t, func() error {
		if outcome("sound") != 1 || outcome("failed") < 2 {
			return fmt.Errorf("%v audits are sound and %v failed", outcome("sound"), outcome("failed"))
		}
		return nil
	})
	s.Mine()
	w.append(t, s.Records[s.Seq()-1:])
	reaches(t, p, s.Seq())
	w.equal(t, s.Seq())
}

// TestHangingTransaction: a transaction is never ended. The projector has read all that it can, but is not ready,
// because there is more; when the transaction ends, it follows the log again.
func TestHangingTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := everyEvent()
	w.append(t, s.Records)
	p, _ := w.projector(t)
	p.hanging = 300 * time.Millisecond
	start(t, p)
	reaches(t, p, s.Seq())
	other, err := kgo.NewClient(append([]kgo.Opt{kgo.TransactionalID("hanging"),
		kgo.RecordPartitioner(kgo.ManualPartitioner())}, w.kafka.Options()...)...)
	must(t, err)
	defer other.Close()
	must(t, other.BeginTransaction())
	must(t, other.ProduceSync(t.Context(),
		&kgo.Record{Topic: chainlog.LogTopic(chainID), Value: []byte("it is aborted")}).FirstErr())
	wait.Until(t, func() error {
		if err := p.Ready(); err == nil || !strings.Contains(err.Error(), "a transaction has been open at offset ") {
			return fmt.Errorf("ready: %v", err)
		}
		return nil
	})
	before := s.Seq()
	s.Mine()
	w.append(t, s.Records[before:]) // committed, but behind the open transaction
	wait.Until(t, func() error {
		if got := p.Status(); got.Lag < 2 || got.Reason == "" || testutil.ToFloat64(p.measured().openTransaction) == 0 {
			return fmt.Errorf("status is %+v", got)
		}
		return nil
	})
	must(t, chainlog.EndTransaction(t.Context(), other, kgo.TryAbort, chainlog.LogTopic(chainID)))
	reaches(t, p, s.Seq())
	wait.Until(t, p.Ready)
}

// TestRecordsAreDeleted: the records of the log are deleted while the projector follows it. It continues to write the
// generation, but is not ready and gives the reason, because no other generation can be built.
func TestRecordsAreDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := everyEvent()
	w.append(t, s.Records)
	p, _ := w.projector(t)
	start(t, p)
	reaches(t, p, s.Seq())
	wait.Until(t, p.Ready)
	client, err := kgo.NewClient(w.kafka.Options()...)
	must(t, err)
	defer client.Close()
	admin := kadm.NewClient(client)
	ends, err := admin.ListEndOffsets(t.Context(), chainlog.LogTopic(chainID))
	must(t, err)
	_, err = admin.DeleteRecords(t.Context(), ends.Offsets())
	must(t, err)
	wait.Until(t, func() error {
		if err := p.Ready(); err == nil || !strings.Contains(err.Error(), "were deleted") ||
			p.Status().Reason != err.Error() {
			return fmt.Errorf("ready: %v, status: %+v", err, p.Status())
		}
		return nil
	})
	before := s.Seq()
	s.Mine()
	w.append(t, s.Records[before:])
	wait.Until(t, func() error {
		if got := p.Status(); got.Seq != s.Seq() || got.State != Following || got.Reason == "" {
			return fmt.Errorf("status is %+v", got)
		}
		return nil
	})
}

// whenLogged calls a function when a certain message is logged.
type whenLogged struct {
	slog.Handler
	sentence string
	call     func()
}

func (h whenLogged) Handle(_ context.Context, r slog.Record) error {
	if r.Message == h.sentence {
		h.call()
	}
	return nil
}

func (h whenLogged) Enabled(context.Context, slog.Level) bool { return true }

// TestLiveGoesBad: as soon as the live generation is found to be bad, the projector is not ready, although it follows
// the log with another one.
func TestLiveGoesBad(t *testing.T) {
	t.Parallel()
	p := new(Projections)
	idle := func(id int32) *keeper {
		reg := prometheus.NewRegistry()
		k := &keeper{Projections: p, generation: generation{ID: id}, reg: reg, metrics: newMetrics(reg), cancel: func() {},
			done: make(chan struct{})}
		k.board.reset(id)
		close(k.done)
		return k
	}
	standby, bad := idle(1), idle(2)
	standby.board.set(StandingBy, nil)
	bad.board.set(Bad, &permanentError{errors.New("generation 2 is marked bad")})
	p.roster.idleBoard.set(Waiting, nil)
	p.roster.keepers, p.roster.liveID = map[int32]*keeper{1: standby, 2: bad}, 2
	calls := 0
	p.log = slog.New(whenLogged{sentence: "generation out of service", call: func() {
		calls++
		wantError(t, p.Ready(), "marked bad")
	}})
	wantError(t, p.Ready(), "marked bad")
	p.stopKeepers(map[int32]generation{1: standby.generation}, new(list))
	wantError(t, p.Ready(), "marked bad")
	if calls != 1 {
		t.Errorf("%d generations were out of service, want 1", calls)
	}
}

// execs is a connection that runs instead in place of each statement.
type execs struct {
	driver.Conn
	instead func(ctx context.Context) error
}

func (c execs) Exec(ctx context.Context, _ string, _ ...any) error { return c.instead(ctx) }

// kept returns a keeper of the first generation, which is built and has no writer.
func (w *world) kept(t *testing.T, instead func(context.Context) error) *keeper {
	t.Helper()
	w.append(t, everyEvent().Records)
	p, _ := w.projector(t)
	stop := start(t, p)
	wait.Until(t, p.Ready)
	must(t, stop())
	p, _ = w.projector(t)
	origin, err := p.origin(t.Context())
	must(t, err)
	l, err := p.generations(t.Context(), origin)
	must(t, err)
	reg := prometheus.NewRegistry()
	k := &keeper{Projections: p, generation: l.all[0], database: w.ch.Database(l.all[0].ID), conn: execs{w.conn, instead},
		reg: reg, metrics: newMetrics(reg), log: p.log}
	k.board.reset(k.ID)
	return k
}

// TestStandbyThatHasTheLease: a projector that has waited for the lease and got it is not ready before it has opened
// the generation.
func TestStandbyThatHasTheLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	opens := make(chan struct{})
	k := w.kept(t, func(ctx context.Context) error {
		close(opens)
		<-ctx.Done()
		return ctx.Err()
	})
	lease, err := newLeases(w.pool).Acquire(t.Context(), int64(k.ID), func() {})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { k.run(ctx); close(ended) }()
	wait.Until(t, func() error {
		k.board.update(chainlog.Tail{}, nil, time.Second) // the engines respond while it stands by
		return k.board.ready()
	})
	lease.Drop(t.Context())
	<-opens
	wantError(t, k.board.ready(), "not running yet")
	cancel()
	<-ended
}

// TestBadWhileItIsStopped: the reason why a generation is bad is known even if its keeper is stopped before it has
// reported it.
func TestBadWhileItIsStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	k := w.kept(t, func(context.Context) error {
		cancel()
		return &permanentError{errors.New("users differ")}
	})
	k.run(ctx)
	wantError(t, k.fault(), "users differ")
	wantError(t, k.board.ready(), "bad: ", "users differ")
}

// TestBoardOfAFailingTerm: a term that fails again and again is retrying all the time, not starting or building in
// between; a term that wrote, or that has nothing to write, ends this.
func TestBoardOfAFailingTerm(t *testing.T) {
	t.Parallel()
	atEnd := chainlog.Tail{Written: 142, Stable: 142}
	for name, mend := range map[string]func(*board){
		"wrote":           func(b *board) { b.noteWritten(decode.Batch{{{Seq: 101, Offset: 141}}}) },
		"at the end":      func(b *board) { b.update(atEnd, nil, time.Second) },
		"another writes":  func(b *board) { b.set(StandingBy, nil) },
		"cannot continue": func(b *board) { b.set(Bad, &permanentError{errors.New("a hole")}) },
		"fails otherwise": func(b *board) { b.set(Retrying, errors.New("no engine")) },
	} {
		b := new(board)
		b.reset(3)
		b.set(Retrying, errors.New("a broken part"))
		for step, do := range []func(){
			func() {},
			func() { b.set(Starting, nil) },
			func() { b.open(100, 140, true) },
			func() { b.update(chainlog.Tail{Written: 9000, Stable: 9000}, nil, time.Second) },
		} {
			do()
			if s := b.get(); s.State != Retrying || s.Reason != "a broken part" {
				t.Errorf("%s, step %d: %s, %q", name, step, s.State, s.Reason)
			}
		}
		mend(b)
		if s := b.get(); s.Reason == "a broken part" {
			t.Errorf("%s: still %s, %q", name, s.State, s.Reason)
		}
	}
}

// TestBoardOfAPermanentFault: a generation that cannot be written is bad, also while its keeper retries and fails for
// another reason, until it has written or has nothing to write, or another instance has the lease.
func TestBoardOfAPermanentFault(t *testing.T) {
	t.Parallel()
	for name, mend := range map[string]func(*board){
		"wrote":          func(b *board) { b.noteWritten(decode.Batch{{{Seq: 101, Offset: 141}}}) },
		"at the end":     func(b *board) { b.update(chainlog.Tail{Written: 142, Stable: 142}, nil, time.Second) },
		"another writes": func(b *board) { b.set(StandingBy, nil) },
	} {
		k := new(keeper)
		b := &k.board
		b.reset(3)
		b.set(Bad, &permanentError{errors.New("a hole")})
		for step, do := range []func(){
			func() {},
			func() { b.set(Starting, nil) },
			func() { b.set(Retrying, errors.New("no engine")) },
			func() { b.set(Starting, nil) },
			func() { b.open(100, 140, true) },
			func() { b.update(chainlog.Tail{Written: 9000, Stable: 9000}, nil, time.Second) },
		} {
			do()
			if s := b.get(); s.State != Bad || s.Reason != "a hole" || k.fault() == nil {
				t.Errorf("%s, step %d: %s, %q, %v", name, step, s.State, s.Reason, k.fault())
			}
		}
		mend(b)
		if s := b.get(); s.State == Bad || k.fault() != nil {
			t.Errorf("%s: still %s, %q, %v", name, s.State, s.Reason, k.fault())
		}
	}
}

// TestStandbyIsReadyWhileItCouldTakeOver: a standby is ready while its engines respond, and not after that.
func TestStandbyIsReadyWhileItCouldTakeOver(t *testing.T) {
	t.Parallel()
	var b board
	b.reset(1)
	b.set(StandingBy, nil)
	wantError(t, b.ready(), "stands by and could not take over")
	b.update(chainlog.Tail{}, nil, time.Second) // both have responded
	if err := b.ready(); err != nil {
		t.Errorf("a standby whose engines respond: %v", err)
	}
	b.answered = b.answered.Add(-2 * maxSilence)
	wantError(t, b.ready(), "stands by and could not take over")
}
