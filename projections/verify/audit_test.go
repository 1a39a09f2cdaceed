package verify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/testkit/histories"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

func isBroken(err error) bool {
	var broken *BrokenError
	return errors.As(err, &broken)
}

// TestAuditFindsLostParts: the audit detects every part of events that is lost or duplicated, and rows of lists that
// change a sum; a sound generation passes, even while its lists are behind events.
func TestAuditFindsLostParts(t *testing.T) {
	if testing.Short() {
		t.Skip("compares by SQL, one lost part after the other")
	}
	t.Parallel()
	g := newGeneration(t)
	must(t, Audit(t.Context(), g.conn))
	g.change(t, "SYSTEM STOP MERGES events") // each part is a unit
	s := unrestored(rand.New(rand.NewPCG(31, 2)), 30)
	units := histories.Units(s.Records)
	for i, unit := range units {
		g.events(t, unit)
		if i == len(units)/2 {
			g.build(t)
		}
	}
	must(t, Audit(t.Context(), g.conn))
	g.update(t)
	must(t, Audit(t.Context(), g.conn))
	broken := func(what, words string) {
		t.Helper()
		if err := Audit(t.Context(), g.conn); !isBroken(err) {
			t.Errorf("%s: the audit reports %v", what, err)
		} else {
			wantError(t, err, words)
		}
	}
	var part string
	must(t, g.conn.QueryRow(readmodel.Parameters(t.Context(), numbers{"last": s.Seq() - 3}),
		"SELECT any(_part) FROM events WHERE seq < {last:UInt64}").Scan(&part))
	g.change(t, "ALTER TABLE events DETACH PART '"+part+"'")
	broken("events without part "+part, "but must have all of them")
	g.change(t, "ALTER TABLE events ATTACH PART '"+part+"'")
	must(t, Audit(t.Context(), g.conn))
	for _, c := range []struct{ rows, words string }{
		{"(sign, list, vault, id) VALUES (%d, 'user_requests', 'x', 99)", "lists come to"},
		{"(sign, list, kind, key) VALUES (%d, 'vault_events', 'deposit', 99)", "lists come to"},
		{"(sign, list, kind) VALUES (%d, 'partner_events', 'requested')", "lists come to"},
		{"(sign, list) VALUES (%d, 'cursor')", "the row cursor of seq 0 appears 2 times"},
		{"(sign, list, seq) VALUES (%d, 'cursor_end', 1)", "the row cursor_end of seq 1 appears 2 times"},
		{"(sign, list, user) VALUES (%d, 'first_seen', 'x')", "lists come to"},
		{"(sign, list, user, key) VALUES (%d, 'deposited', 'x', 5)", "lists come to"},
		{"(sign, list, key, user) VALUES (%d, 'withdrawn', 5, 'x')", "lists come to"},
		{"(sign, list, key, deposited) VALUES (%d, 'totals', 18446744073709551615, 5)", "lists come to"},
		{"(sign, list, key, users) VALUES (%d, 'totals', 18446744073709551615, 5)", "lists come to"},
	} {
		g.change(t, "SYSTEM STOP MERGES lists", "INSERT INTO lists "+fmt.Sprintf(c.rows, 1))
		if strings.Contains(c.rows, "'cursor") {
			broken(c.rows, "lists have")
			g.change(t, "INSERT INTO lists "+fmt.Sprintf(c.rows, 1))
		}
		broken(c.rows, c.words)
		g.change(t, "INSERT INTO lists "+fmt.Sprintf(c.rows, -1))
		if strings.Contains(c.rows, "'cursor") {
			g.change(t, "INSERT INTO lists "+fmt.Sprintf(c.rows, -1))
		}
		must(t, Audit(t.Context(), g.conn))
	}
	t.Run("effects", func(t *testing.T) {
		g.restores(t, "events")
		g.change(t, "SYSTEM START MERGES events",
			"ALTER TABLE events UPDATE effects = 2 WHERE seq = (SELECT min(seq) FROM events WHERE effects = 1)")
		if err := Audit(t.Context(), g.conn); !isBroken(err) {
			t.Errorf("a record without its second effect: %v", err)
		} else {
			wantError(t, err, "1 effects more or less than its records have")
		}
	})
	g.change(t, "INSERT INTO events (seq) VALUES (0)")
	broken("a row of no record", "but must have all of them")
	g.change(t, "ALTER TABLE events DELETE WHERE seq = 0")
	must(t, Audit(t.Context(), g.conn))
	g.change(t, "INSERT INTO events SELECT * FROM events WHERE seq = (SELECT min(seq) FROM events)")
	broken("events with a row twice", "events has")
}

// TestMarkBadMovingGeneration: a generation that is made live while it is marked bad ends up bad, even if the keeper
// that marks it is stopped meanwhile; a bad one stays bad, and a missing one is an error.
func TestMarkBadMovingGeneration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.registered(t, registry.Building)
	ctx, stop := context.WithCancel(t.Context())
	mark := func(id int32) error {
		return MarkIfBroken(ctx, w.pool, id, &BrokenError{"one"})
	}
	marked := func(err error) {
		t.Helper()
		if !isBroken(err) {
			t.Fatalf("generation 1 is not marked: %v", err)
		}
		wantError(t, err, "one: rows were lost or doubled; generation 1 is marked bad")
	}
	move := func(q *db.Queries, from, to string) {
		t.Helper()
		n, err := q.SetGenerationState(t.Context(), db.SetGenerationStateParams{ID: 1, OldState: from, NewState: to})
		if err != nil || n != 1 {
			t.Fatalf("moved %d generations: %v", n, err)
		}
	}
	tx, err := w.pool.Begin(t.Context())
	must(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	move(db.New(tx), registry.Building, registry.Live)
	marking := make(chan error, 1)
	go func() { marking <- mark(1) }()
	for began, waits := time.Now(), false; !waits; {
		must(t, w.pool.QueryRow(t.Context(),
			"SELECT exists(SELECT FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE datname = current_database() AND NOT "+
				"granted)").Scan(&waits))
		if time.Since(began) > patience {
			t.Fatal("no session waits for the moving generation")
		}
	}
	stop()
	must(t, tx.Commit(t.Context()))
	marked(<-marking)
	all, err := db.New(w.pool).ListGenerations(t.Context())
	if err != nil || len(all) != 1 || all[0].State != registry.Bad {
		t.Errorf("generations are %+v, %v", all, err)
	}
	marked(mark(1))
	move(db.New(w.pool), registry.Bad, registry.Dropped)
	for _, id := range []int32{1, 2} {
		err := mark(id)
		wantError(t, err, "one: rows were lost or doubled", "is not marked bad yet",
			fmt.Sprintf("mark generation %d bad", id), "`navlog projection list`")
		if isBroken(err) {
			t.Errorf("generation %d is not marked, and the error is the final one: %v", id, err)
		}
	}
	if err := MarkIfBroken(t.Context(), w.pool, 1, context.Canceled); !errors.Is(err, context.Canceled) || isBroken(err) {
		t.Errorf("an audit that could not run: %v", err)
	}
}
