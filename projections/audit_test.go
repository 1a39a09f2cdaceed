package projections

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// TestAuditFindsLostParts: whatever part of whatever table goes, so long as it
// says something that answers are made of, the audit finds it; a sound
// generation passes, at every position.
func TestAuditFindsLostParts(t *testing.T) {
	t.Parallel()
	conn, database := newGeneration(t)
	for _, table := range readmodel.Tables {
		must(t, conn.Exec(t.Context(), "SYSTEM STOP MERGES "+database+"."+table))
	}
	m, log := quiet()
	s := randomHistory(rand.New(rand.NewPCG(31, 2)), 30)
	w, err := openWriter(t.Context(), conn, database, atMost(1000), m, log)
	must(t, err)
	for _, unit := range units(s.Records) {
		must(t, w.write(t.Context(), entries(unit)))
	}
	must(t, audit(t.Context(), conn, database))
	for _, table := range readmodel.Tables {
		var part string
		ask := "SELECT any(_part) FROM " + database + "." + table + " WHERE sign != 0 AND seq < {last:UInt64}"
		must(t, conn.QueryRow(clickhouse.Context(t.Context(), clickhouse.WithParameters(clickhouse.Parameters{"last": fmt.Sprint(s.Seq() - 3)})), ask).Scan(&part))
		must(t, conn.Exec(t.Context(), "ALTER TABLE "+database+"."+table+" DETACH PART '"+part+"'"))
		var broken *brokenError
		if err := audit(t.Context(), conn, database); !errors.As(err, &broken) {
			t.Errorf("%s without part %q: the audit says %v", table, part, err)
		}
		must(t, conn.Exec(t.Context(), "ALTER TABLE "+database+"."+table+" ATTACH PART '"+part+"'"))
		must(t, audit(t.Context(), conn, database))
	}
	for i, shown := range []string{"first", "deposited", "withdrawn"} { // what a place shows, and its key as it was
		row := fmt.Sprintf("(seq, row, sign, list, user, %s) VALUES (2, %d, ", shown, 9+i) // the engine takes rows that are too alike for repeated
		must(t, conn.Exec(t.Context(), "INSERT INTO "+database+".rankings "+row+"1, 'first', 'x', 1)"))
		var broken *brokenError
		if err := audit(t.Context(), conn, database); !errors.As(err, &broken) || !strings.Contains(err.Error(), "rankings") {
			t.Errorf("with one too many %s the audit says %v", shown, err)
		}
		must(t, conn.Exec(t.Context(), "INSERT INTO "+database+".rankings "+row+"-1, 'first', 'x', -1)"))
		must(t, audit(t.Context(), conn, database))
	}
	must(t, conn.Exec(t.Context(), "SYSTEM START MERGES "+database+".records"))
	var some uint64
	must(t, conn.QueryRow(t.Context(), "SELECT min(seq) FROM "+database+".records WHERE kind = 'log'").Scan(&some))
	for i, did := range []string{"open", "waiting", "vault_user", "first_joined", "first_left", "deposited_joined", "withdrawn_left"} {
		must(t, conn.Exec(t.Context(), fmt.Sprintf("INSERT INTO %s.records SELECT * REPLACE (%d AS writer, if(%s = 0, 5, 0) AS %s) FROM %s.records WHERE seq = %d", database, 9+i, did, did, database, some)))
		must(t, conn.Exec(t.Context(), fmt.Sprintf("ALTER TABLE %s.records DELETE WHERE seq = %d AND writer != %d SETTINGS mutations_sync = 2", database, some, 9+i)))
		var broken *brokenError
		if err := audit(t.Context(), conn, database); !errors.As(err, &broken) || !strings.Contains(err.Error(), "what logs did") {
			t.Errorf("with another %s the audit says %v", did, err)
		}
	}
}

// TestMarkBadMovingGeneration: a generation that is made live while it is marked
// bad is bad in the end; one that is bad stays so, and one that is gone is an error.
func TestMarkBadMovingGeneration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.registered(t, 1, make([]byte, 16), "fedcba987654", registry.Building)
	tx, err := w.pool.Begin(t.Context())
	must(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	must(t, move(t.Context(), db.New(tx), 1, registry.Building, registry.Live))
	marked := make(chan error, 1)
	go func() { marked <- markBad(t.Context(), w.pool, 1) }()
	eventually(t, func() error {
		var waits bool
		err := w.pool.QueryRow(t.Context(), "SELECT exists(SELECT FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE datname = current_database() AND NOT granted)").Scan(&waits)
		if err == nil && !waits {
			err = errors.New("nobody waits for the generation that moves")
		}
		return err
	})
	must(t, tx.Commit(t.Context()))
	must(t, <-marked)
	all, err := db.New(w.pool).ListGenerations(t.Context())
	if err != nil || len(all) != 1 || all[0].State != registry.Bad {
		t.Errorf("generations are %+v, %v", all, err)
	}
	must(t, markBad(t.Context(), w.pool, 1))
	must(t, move(t.Context(), db.New(w.pool), 1, registry.Bad, registry.Dropped))
	for _, id := range []int32{1, 2} {
		wantError(t, markBad(t.Context(), w.pool, id), fmt.Sprintf("mark generation %d bad", id), "`navlog projection list`")
	}
}

// TestSample: a sample finds nothing wrong in a sound generation, whichever it
// is, and together the samples find what is wrong.
func TestSample(t *testing.T) {
	t.Parallel()
	conn, database := newGeneration(t)
	m, log := quiet()
	s := randomHistory(rand.New(rand.NewPCG(31, 3)), 40)
	w, err := openWriter(t.Context(), conn, database, atMost(1000), m, log)
	must(t, err)
	must(t, w.write(t.Context(), entries(s.Records)))
	samples := func() (faults int, compared uint64) {
		for k := range uint64(3) {
			f := foldSampled(t, sample{3, k}, s.Records)
			v := verifier{conn: conn, report: &Report{Database: database, Seq: s.Seq()}, sample: sample{3, k}, books: f}
			for _, c := range comparisons(v.books) {
				must(t, v.compare(t.Context(), c, 1<<63))
			}
			if v.report.Err() != nil {
				faults++
			}
			for _, c := range v.report.Checks {
				if c.Name == "rankings" || c.Name == "requests" {
					compared += c.Compared
				}
			}
		}
		return faults, compared
	}
	whole := foldOf(t, s.Records).Books(1 << 63)
	if faults, compared := samples(); faults != 0 || compared != uint64(len(whole.Users)+len(whole.Requests)) {
		t.Errorf("%d of 3 samples differ, and they compared %d users and requests of %d", faults, compared, len(whole.Users)+len(whole.Requests))
	}
	must(t, conn.Exec(t.Context(), "INSERT INTO "+database+".rankings (seq, row, sign, list, user, users) VALUES (5, 9, 1, 'first', unhex('00000000000000000000000000000000000b0001'), 1)"))
	if faults, _ := samples(); faults != 1 {
		t.Errorf("%d of 3 samples find the wrong row, want 1", faults)
	}
}
