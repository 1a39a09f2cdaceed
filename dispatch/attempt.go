package dispatch

import (
	"context"
	"time"

	"github.com/navlog/navlog/schemas/registry/db"
)

const (
	// writeGrace is how long a result that cannot be written keeps a shutdown
	// waiting.
	writeGrace   = 5 * time.Second
	writeTimeout = 5 * time.Second
)

// try makes an attempt and writes what came of it. The caller's slot is given
// back after the POST. ctx is the program's: its end neither cuts the POST nor
// loses its result.
func (d *Dispatch) try(ctx context.Context, fence int64, a attempt) attempt {
	r := d.poster.post(context.WithoutCancel(ctx), a.endpoint, message{a.delivery.EventID, a.delivery.Type, a.delivery.Body})
	<-d.slots
	a.change = a.done(r)
	if d.afterPost != nil {
		d.afterPost()
	}
	d.metrics.attempts.WithLabelValues(r.outcome).Inc()
	d.metrics.seconds.Observe(r.took.Seconds())
	a.verdict = d.timing.judge(a.delivery.State, a.delivery.Attempts, r.accepted(), a.probe)
	a.fenced = !d.write(ctx, fence, a, r)
	return a
}

// write writes the result of a POST. PostgreSQL may be away: then the write is
// repeated, never the POST, until it succeeds or the program has been stopping
// for writeGrace; the event is sent again after the next start. It tells
// whether the fence still held.
func (d *Dispatch) write(ctx context.Context, fence int64, a attempt, r result) bool {
	v := a.verdict
	params := db.FinishAttemptParams{
		State: v.state, Attempts: v.attempts, WaitMs: v.wait.Milliseconds(), Finished: v.finished,
		EventID: a.delivery.EventID, Owner: d.owner, Fence: fence,
		Url: a.endpoint.url, EndpointVersion: a.endpoint.version,
		StartedAt: r.started, DurationMs: int32(r.took.Milliseconds()), Response: r.response,
	}
	if r.status != 0 {
		status := int32(r.status)
		params.Status = &status
	}
	if r.err != "" {
		params.Error = &r.err
	}
	// The grace begins when the program is told to stop.
	lasting, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(writeGrace, giveUp) })()

	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		limited, cancel := context.WithTimeout(lasting, writeTimeout)
		written, err := d.queries.FinishAttempt(limited, params)
		cancel()
		d.health.set("write results", err)
		if err == nil {
			return written == 1
		}
		d.metrics.writeRetries.Inc()
		select {
		case <-lasting.Done():
			return false
		case <-time.After(wait):
		}
	}
}
