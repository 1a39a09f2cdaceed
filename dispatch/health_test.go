package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/navlog/navlog/dispatch/lane"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// The success of one attempt does not clear the fault of a concurrent one, which lasts until that one succeeds. The
// same failure of several is logged once, and so is its end.
func TestFaultsOfSeveral(t *testing.T) {
	out := new(lockedBuffer)
	h := newHealth(slog.New(slog.NewTextHandler(out, nil)))
	h.setProven(time.Now())
	away := errors.New("PostgreSQL is down")
	for _, partner := range []string{"7", "8", "9"} {
		h.setOf(t.Context(), "take leases", partner, away)
	}
	h.setOf(t.Context(), "take leases", "8", nil)
	h.setOf(t.Context(), "take leases", "10", nil)
	if err := h.err(time.Minute); err == nil || err.Error() != "cannot take leases: PostgreSQL is down" {
		t.Errorf("while two of three fail: %v", err)
	}
	h.keepOnly("take leases", map[string]bool{"9": true})
	h.set(t.Context(), "rebalance partners", nil)
	if h.err(time.Minute) == nil || strings.Contains(out.String(), "works again") {
		t.Errorf("while one of three fails: %v\n%s", h.err(time.Minute), out)
	}
	h.setOf(t.Context(), "take leases", "9", errors.New("another reason"))
	h.keepOnly("take leases", nil)
	if err := h.err(time.Minute); err != nil {
		t.Errorf("when all succeed: %v", err)
	}
	for _, line := range []string{"PostgreSQL is down", "another reason", "works again"} {
		if strings.Count(out.String(), line) != 1 {
			t.Errorf("%q is not exactly once in\n%s", line, out)
		}
	}
}

// Statements that are cancelled because the dispatcher stops are no faults: nothing in its log suggests that PostgreSQL
// failed.
func TestStopIsNoFault(t *testing.T) {
	f := newFixture(t)
	d := f.dispatcher(nil)
	stop := f.run(d)
	f.eventually("ready", func() bool { return d.Ready() == nil })
	tx, err := f.pool.Begin(t.Context())
	f.check(err)
	_, err = tx.Exec(t.Context(), "LOCK TABLE delivery, dispatcher, retention, command, dead_record, adopted, position")
	f.check(err)
	f.eventually("statements of all connections wait", func() bool {
		return f.number("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation IS NOT NULL") == 4
	})
	stop()
	f.check(tx.Rollback(context.WithoutCancel(t.Context())))
	if logged := f.logged.String(); strings.Contains(logged, "cannot") {
		t.Errorf("in the log:\n%s", logged)
	}
}

// A result that PostgreSQL rejects keeps the dispatcher unready, however many others are written meanwhile.
func TestRejectedResultStaysAFault(t *testing.T) {
	f := newFixture(t)
	d := f.dispatcher(nil)
	d.health.setProven(time.Now())
	go d.ledger.run()
	accepted := lane.Verdict{State: registry.Delivered, Attempts: 1, Finished: true}
	sound := f.resultOf(d, accepted, lane.Result{Outcome: "accepted", Status: 204})
	rejected := sound.attempt
	rejected.Delivery.EventID = uuid.New()
	f.exec(`INSERT INTO delivery (event_id, partner_id, sequence, type, body, state)
		VALUES ($1, 7, 2, 'deposit.referral', '{}', 'pending')`, rejected.Delivery.EventID)
	allow := f.refuse("INSERT ON attempt", "NEW.event_id = '"+rejected.Delivery.EventID.String()+"'")
	written := make(chan bool, 1)
	go func() { written <- d.ledger.record(t.Context(), rejected) }()
	f.eventually("a fault", func() bool { return d.Ready() != nil })
	if !d.ledger.record(t.Context(), sound.attempt) {
		t.Error("the valid result was not written")
	}
	if err := d.Ready(); err == nil || !strings.HasPrefix(err.Error(), "cannot write results: ") {
		t.Errorf("while one result is rejected: %v", err)
	}
	allow()
	if !<-written {
		t.Error("the rejected result was never written")
	}
	if err := d.Ready(); err != nil {
		t.Errorf("when all are written: %v", err)
	}
	d.ledger.close()
}

// One event is sent under two leases, and both results are written in one transaction: each lane learns whether its own
// fence held, both attempts are stored, and the delivery has the result of the newer lease. The same holds if the older
// result was written before.
func TestResultsOfOneEventUnderTwoLeases(t *testing.T) {
	for what, before := range map[string]bool{"in one transaction": false, "the older one is repeated": true} {
		t.Run(what, func(t *testing.T) {
			f := newFixture(t)
			d := f.dispatcher(nil)
			failed := lane.Verdict{State: registry.Failed, Attempts: 4, Finished: true}
			old := f.resultOf(d, failed, lane.Result{Outcome: "error", Status: 500})
			if before {
				_, err := d.ledger.commit([]entry{old})
				f.check(err)
			}
			f.exec("UPDATE job_lease SET until = now() - interval '1 second' WHERE kind = 'partner'")
			lease := db.TakeLeaseParams{Kind: registry.PartnerLease, Key: 7, Owner: d.owner, Milliseconds: 60_000}
			fence, err := d.queries.TakeLease(t.Context(), lease)
			f.check(err)
			if fence == old.attempt.Fence {
				t.Fatal("both leases have one fence")
			}
			now := old
			now.attempt.Fence, now.attempt.Result.Started = fence, old.attempt.Result.Started.Add(time.Millisecond)
			now.attempt.Verdict = lane.Verdict{State: registry.Delivered, Attempts: 1, Finished: true}
			outcomes := map[int64]chan writeOutcome{}
			batch := []entry{now, old}
			for i := range batch {
				c := make(chan writeOutcome, 1)
				batch[i].written, outcomes[batch[i].attempt.Fence] = c, c
			}
			d.ledger.write(batch)
			if o := <-outcomes[old.attempt.Fence]; o.err != nil || !o.fenced {
				t.Errorf("under the older lease: fenced %v, %v", o.fenced, o.err)
			}
			if o := <-outcomes[fence]; o.err != nil || o.fenced {
				t.Errorf("under the newer lease: fenced %v, %v", o.fenced, o.err)
			}
			state, n := f.text("SELECT state FROM delivery"), f.number("SELECT count(DISTINCT number) FROM attempt")
			if state != registry.Delivered || n != 2 {
				t.Errorf("the delivery is %s after %d attempts", state, n)
			}
		})
	}
}
