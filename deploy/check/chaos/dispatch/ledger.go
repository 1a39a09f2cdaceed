package dispatch

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/schemas/registry"
)

// maxCommitTime is how long the disk may take to commit a success after PostgreSQL has noted it, even on a busy
// machine. A value that is too large allows too many POSTs, but no more than a dispatcher can have in flight.
const maxCommitTime = 150 * time.Millisecond

// recordingTriggers makes PostgreSQL record two times: when a success is recorded (a deferred trigger runs at the end
// of the transaction), and when a partner changes hands, which is when the fence of its lease changes. This includes
// the case in which the same dispatcher takes the partner again after its lease expired: deliveries that it had sent
// but not recorded may be sent again.
const recordingTriggers = `
CREATE TABLE chaos_recorded (event_id uuid PRIMARY KEY, at timestamptz NOT NULL);
CREATE FUNCTION chaos_recorded() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO chaos_recorded VALUES (NEW.event_id, clock_timestamp())
		ON CONFLICT (event_id) DO UPDATE SET at = excluded.at; RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER chaos_recorded AFTER UPDATE ON delivery DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
	WHEN (NEW.state = 'delivered' AND OLD.state <> 'delivered') EXECUTE FUNCTION chaos_recorded();
CREATE TABLE chaos_handover (partner_id bigint NOT NULL, at timestamptz NOT NULL);
CREATE FUNCTION chaos_handover() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO chaos_handover VALUES (NEW.key, clock_timestamp()); RETURN NULL; END $$;
CREATE TRIGGER chaos_handover AFTER UPDATE ON job_lease FOR EACH ROW
	WHEN (OLD.fence <> NEW.fence AND NEW.kind = 'partner') EXECUTE FUNCTION chaos_handover()`

type window struct{ from, to time.Time }

// leaseLoss is the time range in which owners whose leases were taken away may not know it yet.
type leaseLoss struct {
	window
	last time.Time // when the leases have expired by the owners' clocks
}

// newLeaseLoss returns the loss of a lease between these times if PostgreSQL stays up.
func newLeaseLoss(from, at time.Time) leaseLoss {
	return leaseLoss{window{from, at.Add(lease / 3)}, at.Add(lease)}
}

// extended extends the loss by an outage of PostgreSQL: owners that could not renew their leases meanwhile keep
// trusting them until they can.
func (t leaseLoss) extended(died, back time.Time) leaseLoss {
	if t.to.After(died) {
		to := back.Add(lease / 3)
		if to.After(t.last) {
			to = t.last
		}
		if to.After(t.to) {
			t.to = to
		}
	}
	return t
}

// ledger is what PostgreSQL knows at the end of a seed, and when leases were taken away.
type ledger struct {
	states      map[uuid.UUID]standing
	opened      map[uint32]bool         // partners whose breaker is stored as open
	recorded    map[uuid.UUID]time.Time // when the success of an event was committed
	handovers   map[uint32][]window
	leaseLosses []leaseLoss
}

// standing is the state of an event in PostgreSQL.
type standing struct {
	state    string
	attempts int
}

func (r *run) ledger(ctx context.Context) (*ledger, error) {
	l := &ledger{states: map[uuid.UUID]standing{}, opened: map[uint32]bool{}, recorded: map[uuid.UUID]time.Time{},
		handovers: map[uint32][]window{}, leaseLosses: r.leaseLosses}
	var id uuid.UUID
	var at time.Time
	var partner uint32
	var now standing
	rows, err := r.world.Pool.Query(ctx,
		"SELECT event_id, state, attempts, coalesce(at, finished_at, now()) FROM delivery LEFT JOIN chaos_recorded USING "+
			"(event_id) WHERE partner_id >= $1", r.base)
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&id, &now.state, &now.attempts, &at}, func() error {
			l.states[id] = now
			if now.state == registry.Delivered {
				l.recorded[id] = at
			}
			return nil
		})
	}
	if err == nil {
		rows, err = r.world.Pool.Query(ctx, "SELECT partner_id FROM breaker")
	}
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&partner}, func() error { l.opened[partner] = true; return nil })
	}
	if err == nil {
		rows, err = r.world.Pool.Query(ctx, "SELECT partner_id, at FROM chaos_handover ORDER BY at")
	}
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&partner, &at}, func() error {
			l.handovers[partner] = append(l.handovers[partner], window{at, at})
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read the deliveries from PostgreSQL: %w", err)
	}
	return l, nil
}

// inFlight reports whether a POST that arrived before the end of the window had not been recorded when the window
// began.
func (l *ledger) inFlight(w window, event uuid.UUID, arrived time.Time) bool {
	recorded, done := l.recorded[event]
	return !arrived.After(w.to) && (!done || recorded.Add(maxCommitTime).After(w.from))
}

// bound returns, for each partner, how many events may have been sent twice at most. These are the accepted POSTs that
// were in flight when the partner changed hands (a handover), or that its old owner may have begun after its lease had
// been taken away without its knowledge (a lease loss). Handovers and lease losses are called causes. Each cause
// explains at most as many POSTs as a dispatcher sends concurrently. The old and the new owner may both have sent, and
// a POST may have been in flight during several causes: then it is assigned to one that can still explain it.
func (l *ledger) bound(histories map[uuid.UUID]history) map[uint32]int {
	posts := map[uint32][][]int{} // by partner: the causes that may explain each POST, handovers before lease losses
	for id, s := range histories {
		partner := s.referral.Partner
		handovers := l.handovers[partner]
		for _, p := range s.posts {
			if p.refused {
				continue
			}
			var causes []int
			for i, w := range handovers {
				if l.inFlight(w, id, p.at) {
					causes = append(causes, i)
				}
			}
			for i, t := range l.leaseLosses {
				if !p.at.Before(t.from) && l.inFlight(t.window, id, p.at) {
					causes = append(causes, len(handovers)+i)
				}
			}
			posts[partner] = append(posts[partner], causes)
		}
	}
	bound := map[uint32]int{}
	for partner, causes := range posts {
		bound[partner] = maxMatching(causes)
	}
	return bound
}

// maxMatching returns how many POSTs can be assigned to a cause that may explain them, if each cause has room for as
// many as a dispatcher sends concurrently. This is a maximum matching, found with augmenting paths
// (https://en.wikipedia.org/wiki/Matching_(graph_theory)).
func maxMatching(posts [][]int) (n int) {
	of := map[int][]int{} // by cause
	var place func(post int, seen map[int]bool) bool
	place = func(post int, seen map[int]bool) bool {
		for _, cause := range posts[post] {
			if seen[cause] {
				continue
			}
			seen[cause] = true
			if len(of[cause]) < concurrency {
				of[cause] = append(of[cause], post)
				return true
			}
			for i, other := range of[cause] {
				if place(other, seen) {
					of[cause][i] = post
					return true
				}
			}
		}
		return false
	}
	for post := range posts {
		if place(post, map[int]bool{}) {
			n++
		}
	}
	return n
}

// possibleCauses counts the causes that may explain an uncounted repetition of an event's POST: the handovers of its
// partner and the lease losses between its first and its last POST.
func (l *ledger) possibleCauses(s history) (n int) {
	if len(s.posts) == 0 {
		return 0
	}
	first, last := s.posts[0].at, s.posts[len(s.posts)-1].at
	within := func(w window) bool { return !w.to.Before(first) && !w.from.After(last) }
	for _, w := range l.handovers[s.referral.Partner] {
		if within(w) {
			n++
		}
	}
	for _, t := range l.leaseLosses {
		if within(t.window) {
			n++
		}
	}
	return n
}

// repeats lists, for debugging, when a partner's repeated events arrived and were recorded, and when the partner
// changed hands.
func (l *ledger) repeats(partner uint32, histories map[uuid.UUID]history) string {
	const clock = "15:04:05.000"
	var out strings.Builder
	for id, s := range histories {
		if s.referral.Partner != partner || extra(map[uuid.UUID]history{id: s})[partner] == 0 {
			continue
		}
		fmt.Fprintf(&out, "\n  event %s came", id)
		for _, p := range s.posts {
			fmt.Fprintf(&out, " %s (refused: %t)", p.at.UTC().Format(clock), p.refused)
		}
		if at, done := l.recorded[id]; done {
			fmt.Fprintf(&out, ", recorded %s", at.UTC().Format(clock))
		}
	}
	for _, w := range l.handovers[partner] {
		fmt.Fprintf(&out, "\n  changed hands %s", w.from.UTC().Format(clock))
	}
	for _, t := range l.leaseLosses {
		fmt.Fprintf(&out, "\n  lost its lease %s to %s", t.from.UTC().Format(clock), t.to.UTC().Format(clock))
	}
	return out.String()
}
