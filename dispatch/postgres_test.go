package dispatch

import (
	"context"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/dispatch/lane"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// In all kinds of trouble with PostgreSQL, nothing is lost, no POST is repeated because of it, each POST is one stored
// attempt, and the dispatcher recovers by itself when PostgreSQL does.
func TestPostgresTrouble(t *testing.T) {
	const events = 40
	for name, trouble := range map[string]func(f *fixture, d *Dispatch, r *receiver){
		"refuses":         refuses,
		"stalls":          stalls,
		"pool exhausted":  exhausted,
		"old transaction": oldTransaction,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			r := f.partner7(ok)
			d := f.start(nil)
			f.delivers(0, 1)
			trouble(f, d, r)
			f.deposits(7, 1, events)
			f.recovered(d, r, events)
		})
	}
}

// recovered waits until everything is delivered and checks that nothing was sent twice.
func (f *fixture) recovered(d *Dispatch, r *receiver, events int) {
	f.Helper()
	f.eventually("delivered", f.in(registry.Delivered, events))
	f.eventually("ready", func() bool { return d.Ready() == nil })
	if n := len(r.got()); n != events {
		f.Errorf("%d requests for %d events", n, events)
	}
	if n := f.number("SELECT count(*) FROM attempt"); n != int64(events) {
		f.Errorf("%d attempts in the log for %d requests", n, events)
	}
	f.contiguous(7, int64(events))
}

// refuses makes PostgreSQL reject all results, as with a full disk: the write is retried, never the POST.
func refuses(f *fixture, d *Dispatch, r *receiver) {
	allow := f.refuse("INSERT ON attempt", "true")
	f.deposits(7, 1, 10)
	f.eventually("the writes are retried", func() bool { return testutil.ToFloat64(d.metrics.writeRetries) >= 12 })
	if d.Ready() == nil {
		f.Error("ready while results cannot be written")
	}
	if n := len(r.got()); n != 1+DefaultConfig().PerPartnerConcurrency {
		f.Errorf("%d requests while no result can be written", n)
	}
	allow()
}

// stalls makes a statement wait beyond its limit.
func stalls(f *fixture, d *Dispatch, r *receiver) {
	holder := f.hold("LOCK TABLE attempt IN ACCESS EXCLUSIVE MODE")
	f.deposits(7, 1, 10)
	f.eventually("a write times out and is retried",
		func() bool { return testutil.ToFloat64(d.metrics.writeRetries) >= 1 })
	f.eventually("all permitted POSTs are in flight",
		func() bool { return len(r.got()) >= 1+DefaultConfig().PerPartnerConcurrency })
	if n := len(r.got()); n != 1+DefaultConfig().PerPartnerConcurrency {
		f.Errorf("%d requests while no result can be written", n)
	}
	f.check(holder.Rollback(f.Context()))
}

// exhausted leaves the dispatcher without a connection for a while.
func exhausted(f *fixture, d *Dispatch, _ *receiver) {
	f.deposits(7, 1, 10)
	for range d.pool.Config().MaxConns {
		c, err := d.pool.Acquire(f.Context())
		f.check(err)
		defer c.Release()
	}
	f.eventually("the dispatcher is unready", func() bool { return d.Ready() != nil })
}

// oldTransaction keeps PostgreSQL from removing any row version during the rest of the test.
func oldTransaction(f *fixture, _ *Dispatch, _ *receiver) {
	conn, err := pgx.Connect(f.Context(), f.url)
	f.check(err)
	f.Cleanup(func() { _ = conn.Close(context.Background()) })
	_, err = conn.Exec(f.Context(), "BEGIN ISOLATION LEVEL REPEATABLE READ")
	f.check(err)
	_, err = conn.Exec(f.Context(), "SELECT count(*) FROM delivery")
	f.check(err)
}

// PostgreSQL fails over to a replica that lacks the last commits, while a POST is in flight: deliveries, their results,
// positions, counters and leases go back to an earlier state. The dispatcher that continues to run reads the lost referrals
// again. Each is sent again with the same id and body, and the partner's sequences have no gap.
func TestPostgresTroubleLosesCommits(t *testing.T) {
	f := newFixture(t)
	f.onePartition()
	r := f.partner7(func(w http.ResponseWriter, n, _ int) {
		if n == 10 {
			<-f.released
		}
		w.WriteHeader(http.StatusNoContent)
	})
	d := f.start(nil)
	f.delivers(0, 5)
	tables := []string{"position", "stream", "delivery", "attempt", "job_lease"}
	for _, table := range tables {
		f.exec("CREATE TABLE before_" + table + " AS SELECT * FROM " + table)
	}
	f.deposits(7, 5, 10)
	f.eventually("one is in flight, and the others are delivered",
		func() bool { return len(r.got()) == 10 && f.states()[registry.Delivered] == 9 })
	f.check(pgx.BeginFunc(t.Context(), f.pool, func(tx pgx.Tx) error {
		for _, table := range tables {
			_, err := tx.Exec(t.Context(), "DELETE FROM "+table+"; INSERT INTO "+table+" SELECT * FROM before_"+table)
			if err != nil {
				return err
			}
		}
		return nil
	}))
	f.release()
	f.eventually("all are delivered, although no other referral comes", f.in(registry.Delivered, 10))
	f.contiguous(7, 10)
	bodies := map[string]string{}
	for _, c := range r.got() {
		if before, ok := bodies[c.id()]; ok && before != string(c.body) {
			t.Errorf("event %s was sent with the bodies %s and %s", c.id(), before, c.body)
		}
		bodies[c.id()] = string(c.body)
	}
	if n := len(r.got()); len(bodies) != 10 || n != 15 {
		t.Errorf("%d requests of %d events, want 5 repeated ones of 10", n, len(bodies))
	}
	f.eventually("ready", func() bool { return d.Ready() == nil })
}

// The server is killed while the dispatcher works and restarts after a while, twice, with POSTs in flight whose
// responses arrive meanwhile.
func TestPostgresTroubleKilled(t *testing.T) {
	dir, err := engines.TempDir("dispatch")
	if err != nil {
		t.Fatal(err)
	}
	server, err := engines.StartPostgres(t.Context(), filepath.Join(dir, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })

	f := newFixtureIn(t, enginetest.Kafka(t), server.URL)
	r := f.partner7(ok)
	d := f.start(func(d *Dispatch) { d.shared.Leases.Period = 5 * time.Minute }) // so that nothing is sent again
	events := 0
	for range 2 {
		arrived, answer := make(chan struct{}, 100), make(chan struct{})
		r.script(func(w http.ResponseWriter, _, _ int) {
			arrived <- struct{}{}
			<-answer
			w.WriteHeader(http.StatusNoContent)
		})
		f.deposits(7, events, events+20)
		events += 20
		for range DefaultConfig().PerPartnerConcurrency {
			<-arrived
		}
		server.Kill()
		close(answer)
		before := testutil.ToFloat64(d.metrics.writeRetries)
		if !f.until(func() bool { return testutil.ToFloat64(d.metrics.writeRetries) > before+8 && d.Ready() != nil }) {
			t.Fatal("results are written without a server")
		}
		f.check(server.Restart(t.Context()))
		if !f.until(func() bool { return f.pool.Ping(f.Context()) == nil }) {
			t.Fatal("the server does not restart")
		}
		f.recovered(d, r, events)
	}
}

// proxy forwards connections to a server. It can make them go silent, as if the machine had lost its power: they get no
// more responses, and none is closed.
type proxy struct {
	net.Listener
	server string

	mu     sync.Mutex
	silent chan struct{} // for the current connections: closed when they go silent
}

func (f *fixture) proxy(server string) *proxy {
	f.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	f.check(err)
	w := &proxy{Listener: l, server: server, silent: make(chan struct{})}
	f.Cleanup(func() { _ = l.Close() })
	go w.serve()
	return w
}

func (w *proxy) serve() {
	for {
		client, err := w.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", w.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		w.mu.Lock()
		silent := w.silent
		w.mu.Unlock()
		go forward(client, server, silent)
		go forward(server, client, silent)
	}
}

// forward copies from one connection to the other; once silent is closed it reads on and
// passes nothing on.
func forward(from, to net.Conn, silent <-chan struct{}) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		select {
		case <-silent:
			_, _ = io.Copy(io.Discard, from)
			return
		default:
		}
		if err == nil {
			_, err = to.Write(buffer[:n])
		}
		if err != nil {
			_ = to.Close()
			return
		}
	}
}

// stall stops forwarding on the open connections; new ones work.
func (w *proxy) stall() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.silent)
	w.silent = make(chan struct{})
}

// hold starts a transaction that keeps the locks of the statement until it is rolled back.
func (f *fixture) hold(statement string) pgx.Tx {
	f.Helper()
	holder, err := f.pool.Begin(f.Context())
	f.check(err)
	f.Cleanup(func() { _ = holder.Rollback(context.Background()) })
	_, err = holder.Exec(f.Context(), "SET LOCAL idle_in_transaction_session_timeout = 0")
	f.check(err)
	_, err = holder.Exec(f.Context(), statement)
	f.check(err)
	return holder
}

// All connections to PostgreSQL go silent at once, and new ones work: operations on the old ones time out, and
// everything recovers.
func TestPostgresTroubleSilence(t *testing.T) {
	f := newFixture(t)
	f.partner7(ok)
	server, err := url.Parse(f.url)
	f.check(err)
	w := f.proxy(server.Host)
	server.Host = w.Addr().String()
	f.url = server.String()
	d := f.start(func(d *Dispatch) { d.timing.database, d.shared.Timing.Database = time.Second, time.Second })
	f.delivers(0, 1)
	w.stall()
	f.delivers(1, 10)
	f.eventually("ready", func() bool { return d.Ready() == nil })
}

// While the referrals that were read cannot be written, without any error, the dispatcher is
// not ready, and the referrals count as not read.
func TestPostgresTroubleSilenceIsSeen(t *testing.T) {
	f := newFixture(t)
	f.partner7(ok)
	d := f.start(func(d *Dispatch) {
		d.timing.database, d.shared.Timing.Database, d.timing.proof = time.Hour, time.Hour, 2*time.Second
	})
	f.delivers(0, 1)
	f.eventually("ready", func() bool { return d.Ready() == nil })
	holder := f.hold("SELECT FROM position FOR UPDATE")
	f.deposits(7, 1, 2)
	f.eventually("it is not ready, and reports why",
		func() bool { return strings.Contains(d.Status().Reason, "were last read") })
	if d.Status().LagRecords == 0 {
		t.Error("a referral that is not written counts as read")
	}
	f.check(holder.Rollback(t.Context()))
	f.eventually("delivered", f.in(registry.Delivered, 2))
	f.eventually("ready", func() bool { return d.Ready() == nil })
}

// Another transaction holds a partner's deliveries while their results should be written:
// those of other partners are written all the same.
func TestLockedResultsDoNotBlockOthers(t *testing.T) {
	const locked, others = 20, 400
	f := newFixture(t)
	arrived, answer := make(chan struct{}, locked), make(chan struct{})
	f.partner(7, f.receiver(func(w http.ResponseWriter, _, _ int) {
		arrived <- struct{}{}
		<-answer
		w.WriteHeader(http.StatusNoContent)
	}).url)
	f.partner(8, f.receiver(ok).url)
	d := f.start(func(d *Dispatch) { d.shared.Concurrency = locked })
	f.deposits(7, 0, locked)
	for range locked {
		<-arrived
	}
	holder := f.hold("SELECT FROM delivery WHERE partner_id = 7 FOR UPDATE")
	close(answer)
	f.eventually("the writes are retried", func() bool { return testutil.ToFloat64(d.metrics.writeRetries) >= locked })
	f.deposits(8, locked, locked+others)
	f.eventually("the other partner has all its events", f.in(registry.Delivered, others))
	f.check(holder.Rollback(t.Context()))
	f.eventually("delivered", f.in(registry.Delivered, locked+others))
	f.eventually("ready", func() bool { return d.Ready() == nil })
}

// The response to a write is lost, and the event is replayed before the write is repeated: there is one attempt in the
// log, and the replay is sent. Another POST is another attempt.
func TestReplayBetweenTwoWritesOfAResult(t *testing.T) {
	f := newFixture(t)
	d := f.dispatcher(nil)
	e := f.resultOf(
		d, lane.Verdict{State: registry.Failed, Attempts: 4, Finished: true}, lane.Result{Outcome: "error", Status: 500},
	)
	write := func() {
		t.Helper()
		done, err := d.ledger.commit([]entry{e})
		if _, ok := done[e.key()]; err != nil || !ok {
			t.Fatalf("written: %v, %v", done, err)
		}
	}
	write()
	f.replay(7, deliveryID(t))
	write()
	if state := f.text("SELECT state FROM delivery"); state != registry.Pending {
		t.Errorf("the replayed event is %s", state)
	}
	logged := func(what string, want int64) {
		t.Helper()
		if n := f.number("SELECT count(*) FROM attempt"); n != want {
			t.Errorf("%s: %d attempts in the log, want %d", what, n, want)
		}
	}
	logged("one POST, written twice", 1)
	e.attempt.Result.Started = e.attempt.Result.Started.Add(time.Millisecond)
	write()
	logged("another POST", 2)
	e.attempt.Fence++ // a lease without a holder
	if done, err := d.ledger.commit([]entry{e}); err != nil || len(done) != 0 {
		t.Errorf("written without the lease: %v, %v", done, err)
	}
}

// A phase during which the process was suspended for an hour is stored as long, and not as negative.
func TestPhaseOfASuspendedProcess(t *testing.T) {
	for d, want := range map[time.Duration]int32{-1: -1, 0: 0, time.Millisecond: 1000, time.Hour: math.MaxInt32} {
		if got := microseconds(d); got != want {
			t.Errorf("%s is stored as %d µs, want %d", d, got, want)
		}
	}
}

// PostgreSQL rejects one of two results in one transaction: the other one is written, and
// each lane learns the outcome of its own.
func TestOneOfTwoResultsIsRejected(t *testing.T) {
	f := newFixture(t)
	d := f.dispatcher(nil)
	written := make(chan writeOutcome, 1)
	e := f.resultOf(d, lane.Verdict{State: registry.Delivered, Attempts: 1, Finished: true}, lane.Result{
		Outcome: "accepted", Status: 204,
	})
	e.written = written
	refused := make(chan writeOutcome, 1)
	bad := entry{attempt: e.attempt, written: refused}
	bad.attempt.Delivery.EventID = uuid.New()
	f.exec("INSERT INTO delivery (event_id, partner_id, sequence, type, body, state) VALUES ($1, 7, 2, "+
		"'deposit.referral', '{}', 'pending')", bad.attempt.Delivery.EventID)
	bad.attempt.Verdict.State = "not a state"
	d.ledger.write([]entry{bad, e})
	if o := <-written; o.err != nil || o.fenced {
		t.Errorf("the valid result: fenced %v, %v", o.fenced, o.err)
	}
	if o := <-refused; o.err == nil || o.fenced {
		t.Errorf("the rejected result: fenced %v, %v", o.fenced, o.err)
	}
	if n := f.states(); n[registry.Delivered] != 1 || n[registry.Pending] != 1 {
		t.Errorf("deliveries %v", n)
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(d.metrics.writes)
	seen, err := reg.Gather()
	f.check(err)
	if h := seen[0].GetMetric()[0].GetHistogram(); h.GetSampleCount() != 1 || h.GetSampleSum() != 1 {
		t.Errorf("one result is written, but the metric has %v in %d transactions", h.GetSampleSum(), h.GetSampleCount())
	}
	late := e
	late.attempt.Fence++ // another dispatcher's lease
	late.attempt.Result.Started = late.attempt.Result.Started.Add(time.Millisecond)
	d.ledger.write([]entry{late})
	if o := <-written; o.err != nil || !o.fenced {
		t.Errorf("without the lease: fenced %v, %v", o.fenced, o.err)
	}
}

// A result that PostgreSQL rejects is reported to the operator, and delays a stop for the
// grace period only.
func TestStopGivesUpUnwritableResults(t *testing.T) {
	f := newFixture(t)
	f.partner7(ok)
	f.refuse("INSERT ON attempt", "true")
	d := f.dispatcher(nil)
	stop := f.run(d)
	f.deposits(7, 0, 1)
	f.eventually("it is not written", func() bool { return testutil.ToFloat64(d.metrics.writeRetries) >= 1 })
	f.eventually("the error is reported", func() bool {
		err := d.Ready()
		return err != nil && strings.HasPrefix(err.Error(), "cannot write results: ")
	})
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	f.eventually("it stops", func() bool {
		select {
		case <-stopped:
			return true
		default:
			return false
		}
	})
	if f.states()[registry.Pending] != 1 {
		t.Errorf("deliveries %v, but the event must be sent again after the next start", f.states())
	}
}

// resultOf returns the result of a POST of a new delivery, under a lease that it takes.
func (f *fixture) resultOf(d *Dispatch, v lane.Verdict, r lane.Result) entry {
	f.Helper()
	f.exec("INSERT INTO delivery (event_id, partner_id, sequence, type, body, state) VALUES ($1, 7, 1, "+
		"'deposit.referral', '{}', 'pending')", depositID)
	fence, err := d.queries.TakeLease(f.Context(),
		db.TakeLeaseParams{Kind: registry.PartnerLease, Key: 7, Owner: d.owner, Milliseconds: 60_000})
	f.check(err)
	r.Started, r.Phases = time.Now().UTC(), lane.NoPhases()
	return entry{attempt: lane.Attempt{
		Partner: 7, Fence: fence, Delivery: db.DueDeliveriesRow{EventID: deliveryID(f.T)}, Verdict: v, Result: r,
	}}
}
