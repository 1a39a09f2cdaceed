package projections

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/projections/oracle/oracletest"
	"github.com/navlog/navlog/projections/verify"
	"github.com/navlog/navlog/projections/write"
)

// partsOf returns the number of rows of each part of a table.
func partsOf(t *testing.T, conn driver.Conn, database, table string) (parts []uint64) {
	t.Helper()
	rows, err := conn.Query(t.Context(), "SELECT rows FROM system.parts WHERE active AND database = ? AND table = ?",
		database, table)
	must(t, err)
	defer rows.Close()
	for rows.Next() {
		var n uint64
		must(t, rows.Scan(&n))
		parts = append(parts, n)
	}
	must(t, rows.Err())
	return parts
}

// isScattered reports whether every part has less than three quarters of a table.
func isScattered(parts []uint64) bool {
	total := uint64(0)
	for _, n := range parts {
		total += n
	}
	return len(parts) > 1 && 4*slices.Max(parts) < 3*total
}

// stopMerges prevents the engine from merging tables by itself.
func stopMerges(t *testing.T, conn driver.Conn, database string, tables ...string) {
	t.Helper()
	for _, table := range tables {
		must(t, conn.Exec(t.Context(),
			"ALTER TABLE "+database+"."+table+
				" MODIFY SETTING max_bytes_to_merge_at_max_space_in_pool = 1, max_bytes_to_merge_at_min_space_in_pool = 1"))
	}
}

// merge merges a table into one part. It repeats, because the engine refuses while it merges parts of the table itself.
func merge(t *testing.T, conn driver.Conn, database, table string) {
	t.Helper()
	wait.Until(t, func() error { return mergeTable(t.Context(), conn, database, table) })
}

// TestMergeScattered: a table with many parts becomes one part, a small table or one that is mostly in one part does
// not change, and the rows stay the same.
func TestMergeScattered(t *testing.T) {
	if testing.Short() {
		t.Skip("many rows, merged one table after the other")
	}
	t.Parallel()
	g := newGeneration(t)
	conn, database := g.conn, g.database
	s := busyHistory(rand.New(rand.NewPCG(8, 8)), 40)
	w := g.writer(t)
	rest := units(s.Records)
	for len(rest) > 0 {
		must(t, w.Write(t.Context(), w.Encode(batchOf(t, rest[0]))))
		rest = rest[1:]
		if w.Position() > 0 && !w.Built() && len(rest) < len(units(s.Records))-4 {
			must(t, w.Build(t.Context(), g.session(t)))
			stopMerges(t, conn, database, write.Tables...)
		}
	}
	merge(t, conn, database, "events")
	const least = 50
	var want []string
	before := map[string][]uint64{}
	for _, table := range write.Tables {
		before[table] = partsOf(t, conn, database, table)
		if total := number(t, conn, "SELECT count() FROM "+database+"."+table); total >= least && isScattered(before[table]) {
			want = append(want, table)
		}
	}
	if !slices.Equal(want, []string{"lists"}) {
		t.Fatalf("%v need a merge, of %v: the test is incomplete", want, before)
	}

	must(t, conn.Exec(t.Context(), "SYSTEM STOP MERGES "+database+"."+want[0]))
	if _, err := mergeScattered(t.Context(), conn, database, least); err == nil ||
		!strings.Contains(err.Error(), " rows of "+database+"."+want[0]) {
		t.Errorf("merges are stopped, but the error is %v", err)
	}
	must(t, conn.Exec(t.Context(), "SYSTEM START MERGES "+database+"."+want[0]))

	_, err := mergeScattered(t.Context(), conn, database, least)
	must(t, err)
	for _, table := range write.Tables {
		parts := partsOf(t, conn, database, table)
		if merged := slices.Contains(want, table); merged && len(parts) != 1 || !merged && len(parts) != len(before[table]) {
			t.Errorf("%s had the parts %v and has %v, to be merged: %v", table, before[table], parts, merged)
		}
	}
	again, err := mergeScattered(t.Context(), conn, database, least)
	must(t, err)
	if len(again) > 0 {
		t.Errorf("%v were merged again", again)
	}
	must(t, verify.Audit(t.Context(), conn))
	oracletest.Equal(t, g.conn, s.Records)
}

// TestMergeOfNothing: a table that the engine does not merge is an error, is not reported as merged, and does not
// stop the others; a table that already has one part, or is empty, is no error.
func TestMergeOfNothing(t *testing.T) {
	t.Parallel()
	g := newGeneration(t)
	optimize := func(table string) error {
		return mergeTable(t.Context(), g.conn, g.database, table)
	}
	must(t, g.ch.CreateLists(t.Context(), g.conn, g.database, "lists"))
	must(t, optimize("lists"))
	must(t, g.conn.Exec(t.Context(), "INSERT INTO events (seq) SELECT number + 1 FROM numbers(100)"))
	for range 2 { // the second time there is nothing left to merge
		must(t, optimize("events"))
	}
	// Parts from before and after a mutation that never ends cannot be merged.
	must(t, g.conn.Exec(t.Context(), "ALTER TABLE events UPDATE assets = throwIf(1) WHERE 1 SETTINGS mutations_sync = 0"))
	must(t, g.conn.Exec(t.Context(), "INSERT INTO events (seq) SELECT number + 101 FROM numbers(100)"))
	stopMerges(t, g.conn, g.database, "lists") // the larger table
	for i := range 2 {
		must(t, g.conn.Exec(t.Context(),
			fmt.Sprintf("INSERT INTO lists (sign, key) SELECT 1, number + %d FROM numbers(150)", 1+150*i)))
	}
	merged, err := mergeScattered(t.Context(), g.conn, g.database, 50)
	wantError(t, err, "merge the 200 rows of "+g.database+".events")
	if !slices.Equal(merged, []string{"lists"}) || len(partsOf(t, g.conn, g.database, "lists")) != 1 {
		t.Errorf("%v were merged, lists lies in the parts %v and events in %v", merged,
			partsOf(t, g.conn, g.database, "lists"), partsOf(t, g.conn, g.database, "events"))
	}
	must(t, g.conn.Exec(t.Context(), "KILL MUTATION WHERE database = {db:String} SYNC",
		clickhouse.Named("db", g.database)))
	merged, err = mergeScattered(t.Context(), g.conn, g.database, 50)
	must(t, err)
	if !slices.Equal(merged, []string{"events"}) || len(partsOf(t, g.conn, g.database, "events")) != 1 {
		t.Errorf("%v were merged, and events lies in the parts %v", merged, partsOf(t, g.conn, g.database, "events"))
	}
}

// TestKeeperMerges: a projector that follows the log merges its tables, and continues to write.
func TestKeeperMerges(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for merges")
	}
	w := newWorld(t)
	s := busyHistory(rand.New(rand.NewPCG(8, 9)), 30)
	parts := units(s.Records)
	p, _ := w.projector(t)
	p.mergeInterval, p.mergeMinRows = 20*time.Millisecond, 1
	p.config.MaxRows = 20
	start(t, p)
	half := slices.Concat(parts[:len(parts)/2]...)
	w.append(t, half)
	reaches(t, p, uint64(len(half)))
	stopMerges(t, w.conn, w.ch.Database(1), write.Tables...)
	merged := func() error {
		for _, table := range write.Tables {
			if parts := partsOf(t, w.conn, w.ch.Database(1), table); isScattered(parts) {
				return fmt.Errorf("%s has the parts %v", table, parts)
			}
		}
		return nil
	}
	wait.Until(t, merged)
	for _, some := range parts[len(parts)/2:] {
		w.append(t, some)
		reaches(t, p, some[len(some)-1].Seq)
	}
	reaches(t, p, s.Seq())
	wait.Until(t, merged)
	w.verify(t, s.Seq())
}
