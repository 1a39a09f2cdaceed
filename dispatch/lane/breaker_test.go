package lane

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/navlog/navlog/deploy/testkit/wait"
)

var (
	good = Result{Outcome: outcomeAccepted}
	bad  = Result{Outcome: outcomeError}
)

func eventID(n int) (id uuid.UUID) {
	binary.BigEndian.PutUint64(id[:], uint64(n+1))
	return id
}

// feed makes attempts over a number of events in turn and returns the last change.
func feed(t *testing.T, b *breaker, events int, results ...Result) (last change) {
	t.Helper()
	for i, r := range results {
		if n, _ := b.permits(); n == 0 {
			t.Fatalf("attempt %d is not admitted", i)
		}
		done, probe := b.start(eventID(i % events))
		if probe {
			t.Fatalf("attempt %d is a probe", i)
		}
		last = done(r)
	}
	return last
}

func TestBreakerOpens(t *testing.T) {
	for _, c := range []struct {
		what           string
		events         int
		goods, bads    int
		wantedAtTheEnd change
	}{
		{"20 failures of 5 events", 5, 0, 20, opened},
		{"19 failures", 5, 0, 19, unchanged},
		{"20 failures of 4 events", 4, 0, 20, unchanged},
		{"16 of 20", 5, 4, 16, opened},
		{"19 of 24", 5, 5, 19, unchanged},
		{"20 of 25", 5, 5, 20, opened},
	} {
		b := newBreaker(Specified(), 4)
		if got := feed(
			t, b, c.events, slices.Concat(slices.Repeat([]Result{good}, c.goods), slices.Repeat([]Result{bad}, c.bads))...,
		); got != c.wantedAtTheEnd {
			t.Errorf("%s: %s", c.what, got)
		}
		if n, shut := b.permits(); (c.wantedAtTheEnd == opened) != (n == 0 && shut > 0) {
			t.Errorf("%s: %d permits, shut for %s", c.what, n, shut)
		}
		if c.wantedAtTheEnd == opened && b.openFor != 5*time.Second {
			t.Errorf("%s: open for %s", c.what, b.openFor)
		}
	}
}

// A response that proves that the receiver is alive does not open the breaker.
func TestBreakerCountsOnlyTheDead(t *testing.T) {
	dead := []string{outcomeThrottled, outcomeError, outcomeTimeout, outcomeForbidden, outcomeNetwork}
	for _, o := range outcomes {
		b := newBreaker(Specified(), 4)
		last := feed(t, b, 5, slices.Repeat([]Result{{Outcome: o}}, 20)...)
		if want := slices.Contains(dead, o); (last == opened) != want {
			t.Errorf("20 times %s: %s", o, last)
		}
	}
}

// untilHalfOpen waits for the end of the open time.
func untilHalfOpen(t *testing.T, b *breaker) {
	t.Helper()
	wait.For(t, "the open time ends", func() bool {
		n, _ := b.permits()
		return n > 0
	})
}

func TestBreakerProbes(t *testing.T) {
	timing := Specified()
	timing.OpenMin = time.Hour
	b := newBreaker(timing, 4)

	// Attempts in flight when the breaker opens do not count later.
	late, _ := b.start(eventID(99))
	if feed(t, b, 5, slices.Repeat([]Result{bad}, 20)...) != opened {
		t.Fatal("not opened")
	}
	if n, shut := b.permits(); n != 0 || shut <= 0 {
		t.Fatalf("%d permits, shut for %s, while open", n, shut)
	}
	if late(bad) != unchanged {
		t.Error("a late failure changed the breaker")
	}

	b.openMin, b.openMax = 40*time.Millisecond, 200*time.Millisecond
	b.open(b.openMin, b.openMin)

	// Each failed probe doubles the open time, up to the limit.
	for _, want := range []time.Duration{80, 160, 200, 200} {
		untilHalfOpen(t, b)
		done, probe := b.start(eventID(1))
		if !probe {
			t.Fatal("not a probe")
		}
		if n, shut := b.permits(); n != 0 || shut != 0 {
			t.Errorf("%d permits, shut for %s, while a probe is in flight", n, shut)
		}
		if late(good) != unchanged {
			t.Error("a late success changed the breaker")
		}
		if done(bad) != opened || b.openFor != want*time.Millisecond {
			t.Errorf("open for %s, want %d ms", b.openFor, want)
		}
	}

	// One probe that gets a response closes it, and the permits grow with each success.
	untilHalfOpen(t, b)
	done, _ := b.start(eventID(1))
	if done(Result{Outcome: outcomeRefused}) != closed || b.openFor != 0 {
		t.Fatal("not closed")
	}
	for want := range 6 {
		if n, _ := b.permits(); n != min(want+1, 4) {
			t.Errorf("%d permits after %d successes", n, want)
		}
		feed(t, b, 1, good)
	}
	// The count starts over.
	if last := feed(t, b, 5, slices.Repeat([]Result{bad}, 24)...); last != opened || b.openFor != 40*time.Millisecond {
		t.Errorf("24 of 30 failed: %s, open for %s", last, b.openFor)
	}
}

// A receiver that hangs takes the whole deadline for each attempt, so there are few attempts per minute: the breaker
// still opens within a minute, however few POSTs run at a time.
func TestBreakerOpensOnAReceiverThatHangs(t *testing.T) {
	hangs := func(t *testing.T, what string, b *breaker) {
		t.Helper()
		for n, began := 0, time.Now(); time.Since(began) < time.Minute; {
			var ends []func(Result) change
			for permits, _ := b.permits(); len(ends) < permits; n++ {
				done, _ := b.start(eventID(n))
				ends = append(ends, done)
			}
			<-time.After(10 * time.Second)
			for _, done := range ends {
				if done(Result{Outcome: outcomeTimeout}) == opened {
					return
				}
			}
		}
		t.Errorf("%s: not opened within a minute", what)
	}
	synctest.Test(t, func(t *testing.T) {
		for limit := 1; limit <= 6; limit++ {
			hangs(t, fmt.Sprintf("%d at a time", limit), newBreaker(Specified(), limit))
			for answers := range limit {
				b := restoreBreaker(Specified(), limit, 5*time.Second, 0, false)
				<-time.After(time.Second)
				if probe, _ := b.start(eventID(0)); probe(good) != closed {
					t.Fatal("not closed by an answered probe")
				}
				feed(t, b, 1, slices.Repeat([]Result{good}, answers)...)
				hangs(t, fmt.Sprintf("%d at a time, %d answers after it closed", limit, answers), b)
			}
		}
	})
}

func TestBreakerRestored(t *testing.T) {
	b := restoreBreaker(Specified(), 4, time.Minute, time.Minute, false)
	if n, shut := b.permits(); n != 0 || shut <= 0 || shut > time.Minute {
		t.Errorf("%d permits, shut for %s", n, shut)
	}
	// The open time ended while the program was stopped: a probe comes first, and a failed probe doubles the old open
	// time.
	b = restoreBreaker(Specified(), 4, time.Minute, 0, false)
	untilHalfOpen(t, b)
	if done, probe := b.start(eventID(1)); !probe || done(bad) != opened || b.openFor != 2*time.Minute {
		t.Errorf("probe %v, open for %s", probe, b.openFor)
	}
}

var refused = Result{Outcome: outcomeRefused}

// A receiver that responds but accepts nothing counts as dead after very many consecutive attempts; one that accepts
// anything at all does not.
func TestBreakerOpensWhenNothingIsAccepted(t *testing.T) {
	always := slices.Repeat([]Result{refused}, breakerRefusals)
	for _, c := range []struct {
		what    string
		events  int
		results []Result
		want    change
	}{
		{"all rejected", 5, always, opened},
		{"one less", 5, always[1:], unchanged},
		{"of 4 events", 4, always, unchanged},
		{"one accepted between", 5, slices.Concat(always[:100], []Result{good}, always[:150]), unchanged},
		{"rejected and redirected", 5, slices.Repeat([]Result{refused, {Outcome: outcomeRedirect}}, breakerRefusals/2),
			opened},
		{"rejected, and down at times", 5,
			slices.Repeat([]Result{refused, refused, bad, refused, refused}, breakerRefusals/5), opened},
	} {
		b := newBreaker(Specified(), 4)
		if got := feed(t, b, c.events, c.results...); got != c.want || b.refusing != (c.want == opened) {
			t.Errorf("%s: %s, refusing %t", c.what, got, b.refusing)
		}
	}
}

// Only an accepted probe closes a breaker that opened because nothing was accepted, even after
// a restart.
func TestBreakerThatRefusesProbes(t *testing.T) {
	timing := Specified()
	timing.OpenMin, timing.OpenMax = 10*time.Millisecond, 40*time.Millisecond
	b := newBreaker(timing, 4)
	if feed(t, b, 5, slices.Repeat([]Result{refused}, breakerRefusals)...) != opened {
		t.Fatal("not opened")
	}
	for _, b := range []*breaker{b, restoreBreaker(timing, 4, 10*time.Millisecond, 0, true)} {
		for _, r := range []Result{refused, bad, {Outcome: outcomeRedirect}} {
			untilHalfOpen(t, b)
			if done, probe := b.start(eventID(1)); !probe || done(r) != opened {
				t.Fatalf("a probe that was %s, probe %t", r.Outcome, probe)
			}
		}
		if b.openFor != 40*time.Millisecond {
			t.Errorf("open for %s", b.openFor)
		}
		untilHalfOpen(t, b)
		if done, _ := b.start(eventID(1)); done(good) != closed || b.refusing {
			t.Error("not closed by an accepted probe")
		}
		if feed(t, b, 5, slices.Repeat([]Result{refused}, breakerRefusals-1)...) != unchanged {
			t.Error("the count does not start over")
		}
	}
}
