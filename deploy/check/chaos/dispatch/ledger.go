package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/schemas/registry"
)

// writing is how long the disk may take to commit a success once PostgreSQL has noted it,
// also on a machine that does much else. What it excuses too much is bounded by what a
// dispatcher can have under way.
const writing = 150 * time.Millisecond

// witness makes PostgreSQL note two times: when a success is recorded (a deferred trigger
// runs at the end of the transaction), and when a partner changes hands, which is when the
// fence of its lease changes. That counts also where the same dispatcher takes the partner
// again after its lease ran out: what it had sent and not recorded may be sent again.
const witness = `
CREATE TABLE chaos_recorded (event_id uuid PRIMARY KEY, at timestamptz NOT NULL);
CREATE FUNCTION chaos_recorded() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO chaos_recorded VALUES (NEW.event_id, clock_timestamp()) ON CONFLICT (event_id) DO UPDATE SET at = excluded.at; RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER chaos_recorded AFTER UPDATE ON delivery DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
	WHEN (NEW.state = 'delivered' AND OLD.state <> 'delivered') EXECUTE FUNCTION chaos_recorded();
CREATE TABLE chaos_handover (partner_id bigint NOT NULL, at timestamptz NOT NULL);
CREATE FUNCTION chaos_handover() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO chaos_handover VALUES (NEW.partner_id, clock_timestamp()); RETURN NULL; END $$;
CREATE TRIGGER chaos_handover AFTER UPDATE ON lease FOR EACH ROW WHEN (OLD.fence <> NEW.fence) EXECUTE FUNCTION chaos_handover()`

type window struct{ from, to time.Time }

// theft is from when to when the owners of leases that were taken away may believe
// in them.
type theft struct {
	window
	last time.Time // when by their own clocks the leases have run out
}

// stolen is a theft that began and ended at these times, where PostgreSQL lives on.
func stolen(from, at time.Time) theft {
	return theft{window{from, at.Add(lease / 3)}, at.Add(lease)}
}

// outlived is the theft after PostgreSQL was away: owners that could not renew
// meanwhile believe in their leases until they can.
func (t theft) outlived(died, back time.Time) theft {
	if t.to.After(died) {
		t.to = back.Add(lease / 3)
		if t.to.After(t.last) {
			t.to = t.last
		}
	}
	return t
}

// ledger is what PostgreSQL knows at the end of a seed, and when leases were
// stolen.
type ledger struct {
	states    map[uuid.UUID]standing
	opened    map[uint32]bool         // partners whose breaker is written down as open
	recorded  map[uuid.UUID]time.Time // when the success of an event was committed
	handovers map[uint32][]window
	thefts    []theft
}

// standing is how PostgreSQL has an event.
type standing struct {
	state    string
	attempts int
}

func (r *run) ledger(ctx context.Context) (*ledger, error) {
	l := &ledger{states: map[uuid.UUID]standing{}, opened: map[uint32]bool{}, recorded: map[uuid.UUID]time.Time{}, handovers: map[uint32][]window{}, thefts: r.thefts}
	var id uuid.UUID
	var at time.Time
	var partner uint32
	var now standing
	rows, err := r.world.Pool.Query(ctx, "SELECT event_id, state, attempts, coalesce(at, finished_at, now()) FROM delivery LEFT JOIN chaos_recorded USING (event_id) WHERE partner_id >= $1", r.base)
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
		return nil, fmt.Errorf("read what PostgreSQL knows: %w", err)
	}
	return l, nil
}

// underWay tells whether a POST of an event that arrived at a time had not been
// recorded at the beginning of a window that had not ended.
func (l *ledger) underWay(w window, event uuid.UUID, arrived time.Time) bool {
	recorded, done := l.recorded[event]
	return !arrived.After(w.to) && (!done || recorded.Add(writing).After(w.from))
}

// bound gives for each partner how many events may have been sent twice at most. Those are
// the accepted POSTs that were under way when the partner changed hands (a handover), or
// that its owner may have begun when its lease had been taken away without its knowing (a
// theft). Each handover and each theft counts for no more than a dispatcher sends at once:
// where the owner and the thief have both sent, a POST too many for the one is of the other,
// and a POST that was under way at several of them is of one that has room.
func (l *ledger) bound(stories map[uuid.UUID]story) map[uint32]int {
	posts := map[uint32][][]int{} // of a partner: the blows that each may be of, handovers before thefts
	for id, s := range stories {
		partner := s.referral.Partner
		handovers := l.handovers[partner]
		for _, p := range s.posts {
			if p.refused {
				continue
			}
			var blows []int
			for i, w := range handovers {
				if l.underWay(w, id, p.at) {
					blows = append(blows, i)
				}
			}
			for i, t := range l.thefts {
				if !p.at.Before(t.from) && l.underWay(t.window, id, p.at) {
					blows = append(blows, len(handovers)+i)
				}
			}
			posts[partner] = append(posts[partner], blows)
		}
	}
	bound := map[uint32]int{}
	for partner, blows := range posts {
		bound[partner] = matched(blows)
	}
	return bound
}

// matched is how many POSTs, each of which may be of some blows, are of one at most, where a
// blow has room for as many as a dispatcher sends at once: a maximum matching, by paths along
// which POSTs make room (https://en.wikipedia.org/wiki/Matching_(graph_theory)).
func matched(posts [][]int) (n int) {
	of := map[int][]int{} // by blow
	var place func(post int, seen map[int]bool) bool
	place = func(post int, seen map[int]bool) bool {
		for _, blow := range posts[post] {
			if seen[blow] {
				continue
			}
			seen[blow] = true
			if len(of[blow]) < concurrency {
				of[blow] = append(of[blow], post)
				return true
			}
			for i, other := range of[blow] {
				if place(other, seen) {
					of[blow][i] = post
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

// excuses counts the blows that may have made a POST of an event come again without
// being counted: each handover of its partner, and each theft, between its first
// POST and its last.
func (l *ledger) excuses(s story) (n int) {
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
	for _, t := range l.thefts {
		if within(t.window) {
			n++
		}
	}
	return n
}

// repeats says when what came more than once to a partner came and was recorded, and when the partner changed hands.
func (l *ledger) repeats(partner uint32, stories map[uuid.UUID]story) string {
	const clock = "15:04:05.000"
	var out strings.Builder
	for id, s := range stories {
		if s.referral.Partner != partner || extra(map[uuid.UUID]story{id: s})[partner] == 0 {
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
	for _, t := range l.thefts {
		fmt.Fprintf(&out, "\n  was stolen %s to %s", t.from.UTC().Format(clock), t.to.UTC().Format(clock))
	}
	return out.String()
}
