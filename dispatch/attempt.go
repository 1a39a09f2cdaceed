package dispatch

import (
	"context"
	"time"

	"github.com/navlog/navlog/schemas/registry/db"
)

// writeGrace is how long a result that cannot be written keeps a shutdown
// waiting.
const writeGrace = 5 * time.Second

// attempt is a POST under way or ended.
type attempt struct {
	partner  int64
	delivery db.DueDeliveriesRow
	endpoint endpoint
	breaker  *breaker
	poster   *poster
	done     func(result) change
	probe    bool

	verdict verdict
	change  change
	fenced  bool // its result was not written: the partner has another owner
}

// try makes an attempt and writes what came of it. The caller's slot is given
// back after the POST. ctx is the program's: its end neither cuts the POST nor
// loses its result.
func (d *Dispatch) try(ctx context.Context, fence int64, a attempt) attempt {
	m := message{event: a.delivery.EventID, kind: a.delivery.Type, body: a.delivery.Body}
	if a.delivery.Sequence != nil {
		m.sequence = *a.delivery.Sequence
	}
	r := a.poster.post(context.WithoutCancel(ctx), a.endpoint, m)
	<-d.slots
	a.change = a.done(r)
	if d.afterPost != nil {
		d.afterPost()
	}
	d.metrics.attempt(r)
	if r.cause != nil {
		d.log.Debug("no answer to a webhook", "partner", a.partner, "event", m.event, "error", r.cause)
	}
	a.verdict = d.timing.judge(a.delivery.State, a.delivery.Attempts, r.accepted(), a.probe)
	a.fenced = !d.write(ctx, fence, a, r)
	return a
}

// write writes the result of a POST. PostgreSQL may be away: then the write is
// repeated, never the POST, until it succeeds or the program has been stopping
// for writeGrace; the event is sent again after the next start. It tells
// whether the fence still held.
func (d *Dispatch) write(ctx context.Context, fence int64, a attempt, r result) bool {
	// The grace begins when the program is told to stop.
	lasting, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(writeGrace, giveUp) })()

	written, entries := make(chan outcomeOfWrite, 1), d.ledger.first
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		entries <- entry{attempt: a, fence: fence, result: r, written: written}
		outcome := <-written
		d.health.set("write results", outcome.err)
		if outcome.err == nil {
			return !outcome.fenced
		}
		d.metrics.writeRetries.Inc()
		entries = d.ledger.repeats
		select {
		case <-lasting.Done():
			return false
		case <-time.After(wait):
		}
	}
}
