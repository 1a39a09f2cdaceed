package verify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

// TestAuditFindsLostParts: whatever part of the spine or of the facts goes, or is
// there twice, the audit finds it, and so it does with parts of the derived tables
// that change a sum; a sound generation passes, also while a derived table is ahead
// or behind.
func TestAuditFindsLostParts(t *testing.T) {
	if testing.Short() {
		t.Skip("compares by SQL, one lost part after the other")
	}
	t.Parallel()
	g := newGeneration(t)
	must(t, Audit(t.Context(), g.conn))
	for _, table := range appended {
		g.change(t, "SYSTEM STOP MERGES "+table) // a part is a unit
	}
	s := histories.Random(rand.New(rand.NewPCG(31, 2)), chainID, 30)
	units := histories.Units(s.Records)
	for i, unit := range units {
		g.build(t, unit)
		if i == len(units)/2 {
			g.derive(t)
		}
	}
	must(t, Audit(t.Context(), g.conn))
	for _, table := range readmodel.Derived {
		g.update(t, table, table, s.Seq())
	}
	must(t, Audit(t.Context(), g.conn))
	for _, table := range appended {
		var part string
		must(t, g.conn.QueryRow(readmodel.Parameters(t.Context(), numbers{"last": s.Seq() - 3}), "SELECT any(_part) FROM "+table+" WHERE seq < {last:UInt64}").Scan(&part))
		g.change(t, "ALTER TABLE "+table+" DETACH PART '"+part+"'")
		if err := Audit(t.Context(), g.conn); !isBroken(err) {
			t.Errorf("%s without part %q: the audit says %v", table, part, err)
		}
		g.change(t, "ALTER TABLE "+table+" ATTACH PART '"+part+"'")
		must(t, Audit(t.Context(), g.conn))
	}
	for i, c := range []struct{ table, rows, words string }{
		{"withdrawals", "(sign, list, vault, request_index) VALUES (%d, 'user', 'x', 99)", "withdrawals comes to"},
		{"withdrawals", "(sign, list) VALUES (%d, 'cursor')", "withdrawals has 2 live cursor rows"},
		{"users", "(sign, list, user) VALUES (%d, 'first', 'x')", "users comes to"},
		{"users", "(sign, list, user, deposited) VALUES (%d, 'member', 'x', 5)", "users comes to"},
		{"users", "(sign, list, key, user) VALUES (%d, 'withdrawn', 5, 'x')", "users comes to"},
		{"users", "(sign, list) VALUES (%d, 'cursor')", "users has 2 live cursor rows"},
		{"partner_totals", "(sign, partner, until_block, volume) VALUES (%d, 9, 18446744073709551615, 5)", "partner_totals comes to"},
		{"partner_totals", "(sign, until_block) VALUES (%d, 18446744073709551615)", "partner_totals has 2 live cursor rows"},
	} {
		g.change(t, "SYSTEM STOP MERGES "+c.table, "INSERT INTO "+c.table+" "+fmt.Sprintf(c.rows, 1))
		if err := Audit(t.Context(), g.conn); !isBroken(err) {
			t.Errorf("%d, %s: the audit says %v", i, c.table, err)
		} else {
			wantError(t, err, c.words)
		}
		g.change(t, "INSERT INTO "+c.table+" "+fmt.Sprintf(c.rows, -1))
		must(t, Audit(t.Context(), g.conn))
	}
	g.change(t, fmt.Sprintf("INSERT INTO users (sign, list, seq) VALUES (1, 'cursor', %d)", s.Seq()+1)) // of a unit that is not in the spine yet
	must(t, Audit(t.Context(), g.conn))
	// Doubles stay from here on: each table is looked at before those that are doubled.
	for _, table := range []string{readmodel.Sweeps, readmodel.Navs, readmodel.WithdrawalEvents, readmodel.Deposits, readmodel.Spine} {
		g.change(t, fmt.Sprintf("INSERT INTO %s SELECT * FROM %s WHERE seq = (SELECT min(seq) FROM %s)", table, table, table))
		if err := Audit(t.Context(), g.conn); !isBroken(err) {
			t.Errorf("%s with a row twice: the audit says %v", table, err)
		} else {
			wantError(t, err, table+" has")
		}
	}
}

// TestMarkBadMovingGeneration: a generation that is made live while it is marked
// bad is bad in the end; one that is bad stays so, and one that is gone is an error.
func TestMarkBadMovingGeneration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.registered(t, registry.Building)
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
	marked := make(chan error, 1)
	go func() { marked <- markBad(t.Context(), w.pool, 1) }()
	for began, waits := time.Now(), false; !waits; {
		must(t, w.pool.QueryRow(t.Context(), "SELECT exists(SELECT FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE datname = current_database() AND NOT granted)").Scan(&waits))
		if time.Since(began) > patience {
			t.Fatal("nobody waits for the generation that moves")
		}
	}
	must(t, tx.Commit(t.Context()))
	must(t, <-marked)
	all, err := db.New(w.pool).ListGenerations(t.Context())
	if err != nil || len(all) != 1 || all[0].State != registry.Bad {
		t.Errorf("generations are %+v, %v", all, err)
	}
	must(t, markBad(t.Context(), w.pool, 1))
	move(db.New(w.pool), registry.Bad, registry.Dropped)
	for _, id := range []int32{1, 2} {
		wantError(t, markBad(t.Context(), w.pool, id), fmt.Sprintf("mark generation %d bad", id), "`navlog projection list`")
	}
	wantError(t, Condemn(t.Context(), w.pool, 1, &BrokenError{"one"}), "one: rows were lost or doubled", "is not marked bad yet")
	if err := Condemn(t.Context(), w.pool, 1, context.Canceled); !errors.Is(err, context.Canceled) || isBroken(err) {
		t.Errorf("no verdict: %v", err)
	}
}
