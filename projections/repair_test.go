package projections

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/projections/write"
	"github.com/navlog/navlog/schemas/readmodel"
)

// TestBrokenParts: a full disk leaves merged parts whose files are empty. If the parts that they were merged from
// still exist, project loads these instead and continues, in every table; if they are gone, the generation is bad,
// with advice in the reason.
func TestBrokenParts(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"the sources are there": false, "the sources are gone": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newIsolatedWorld(t)
			s := everyEvent()
			w.append(t, s.Records)
			p, _ := w.projector(t)
			p.repairs = 0
			start(t, p)
			reaches(t, p, s.Seq())
			database := w.ch.Database(1)
			for _, table := range write.Tables {
				must(t, w.conn.Exec(t.Context(), "ALTER TABLE "+database+"."+table+
					" MODIFY SETTING old_parts_lifetime = 480")) // the default of a server; the embedded engine has 0
			}
			for range 3 {
				w.more(t, s)
				reaches(t, p, s.Seq())
			}
			repairs := p.measured().repairs
			for _, table := range write.Tables {
				merge(t, w.conn, database, table)
			}
			if lost { // the engine would delete them at some time in the next minutes
				w.eachPart(t, database, "NOT active", os.RemoveAll)
			}
			w.emptyParts(t, database)
			w.more(t, s)
			if !lost {
				reaches(t, p, s.Seq())
				if done := testutil.ToFloat64(repairs.WithLabelValues(repairDone)); done == 0 {
					t.Error("nothing was repaired")
				}
				w.more(t, s)
				reaches(t, p, s.Seq())
				w.equal(t, s.Seq())
				return
			}
			wait.Until(t, func() error {
				if s := p.Status(); s.State != Bad || !strings.Contains(s.Reason, "is broken, as after a full disk") ||
					!strings.Contains(s.Reason, "navlog projection rebuild") {
					return fmt.Errorf("status is %+v", s)
				}
				return nil
			})
			if state := states(t, w.operator(t)); state != "1 bad" {
				t.Errorf("the generations are %s", state)
			}
		})
	}
}

// newIsolatedWorld returns a world with a ClickHouse of its own, whose files a test may damage.
func newIsolatedWorld(t *testing.T) *world {
	t.Helper()
	ch, err := engines.StartClickHouse(t.Context(), t.TempDir())
	must(t, err)
	t.Cleanup(func() { must(t, ch.Close()) })
	return newWorldAt(t, ch.Addr)
}

// emptyParts truncates all files of the active parts, as after a full disk, and makes the engine load them again.
func (w *world) emptyParts(t *testing.T, database string) {
	t.Helper()
	w.eachPart(t, database, "active AND level > 0", func(path string) error {
		return filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			return os.Truncate(file, 0)
		})
	})
	w.dropCaches(t)
}

func (w *world) dropCaches(t *testing.T) {
	t.Helper()
	for _, cache := range []string{"MARK", "UNCOMPRESSED", "PRIMARY INDEX", "INDEX MARK"} {
		must(t, w.conn.Exec(context.Background(), "SYSTEM DROP "+cache+" CACHE"))
	}
}

// TestRebuildOfUnreadable: ClickHouse cannot read a part of the live generation, and project may not repair it. A
// rebuild replaces the generation.
func TestRebuildOfUnreadable(t *testing.T) {
	t.Parallel()
	w := newIsolatedWorld(t)
	s := everyEvent()
	w.append(t, s.Records)
	p, _ := w.projector(t)
	patient := p.openPatient
	p.openPatient = func(database string) (driver.Conn, error) {
		conn, err := patient(database)
		return denyingConn{conn, &clickhouse.Exception{Code: 497, Message: "Not enough privileges"}}, err
	}
	start(t, p)
	reaches(t, p, s.Seq())
	w.more(t, s)
	reaches(t, p, s.Seq())
	for _, table := range write.Tables {
		merge(t, w.conn, w.ch.Database(1), table)
	}
	w.emptyParts(t, w.ch.Database(1))
	w.more(t, s)
	wait.Until(t, func() error {
		if s := p.Status(); s.State != Retrying || !strings.Contains(s.Reason, "`navlog projection rebuild`") {
			return fmt.Errorf("status is %+v", s)
		}
		return nil
	})
	out, err := w.operator(t).Rebuild(t.Context(), RebuildOptions{})
	if err != nil || !out.Live || out.Verified == nil {
		t.Fatalf("rebuilt %+v, %v", out, err)
	}
	follows(t, p, 2, s.Seq())
	w.verify(t, s.Seq())
}

// TestRebuildOfACorruptColumn: ClickHouse cannot read a column of the live generation that the audit does not read. A
// rebuild replaces the generation.
func TestRebuildOfACorruptColumn(t *testing.T) {
	t.Parallel()
	w := newIsolatedWorld(t)
	s := everyEvent()
	w.append(t, s.Records)
	p, _ := w.projector(t)
	start(t, p)
	reaches(t, p, s.Seq())
	w.more(t, s)
	reaches(t, p, s.Seq())
	database := w.ch.Database(1)
	merge(t, w.conn, database, "events")
	w.eachPart(t, database, "active AND level > 0 AND table = 'events'", func(path string) error {
		file := filepath.Join(path, "data.bin") // of all columns, the last of which is payload
		content, err := os.ReadFile(file)
		if err == nil {
			content[len(content)-1] ^= 1
			err = os.WriteFile(file, content, 0o600)
		}
		return err
	})
	w.dropCaches(t)
	out, err := w.operator(t).Rebuild(t.Context(), RebuildOptions{})
	if err != nil || !out.Live || out.Verified == nil {
		t.Fatalf("rebuilt %+v, %v", out, err)
	}
	follows(t, p, 2, s.Seq())
	w.verify(t, s.Seq())
}

// eachPart calls do with the folder of each part that meets a condition.
func (w *world) eachPart(t *testing.T, database, condition string, do func(path string) error) {
	t.Helper()
	var paths []string
	must(t, w.conn.QueryRow(t.Context(),
		"SELECT groupArray(path) FROM system.parts WHERE database = '"+database+"' AND "+condition).Scan(&paths))
	if len(paths) == 0 {
		t.Fatalf("%s has no part that is %s", database, condition)
	}
	for _, path := range paths {
		must(t, do(path))
	}
}

// TestErrorsOfABrokenDisk: some errors of the engine mean that it cannot read its parts, others that its disk is
// full.
func TestErrorsOfABrokenDisk(t *testing.T) {
	code := func(code int32, message string) error {
		return fmt.Errorf("insert: %w", &clickhouse.Exception{Code: code, Message: message})
	}
	for name, c := range map[string]struct {
		err             error
		corrupted, full bool
	}{
		"empty marks file":   {code(246, "Empty marks file"), true, false},
		"cut file":           {code(33, "Cannot read all data"), true, false},
		"checksum":           {code(40, "Checksum doesn't match"), true, false},
		"file gone":          {code(107, "File doesn't exist"), true, false},
		"file of no size":    {code(228, "bad size of file"), true, false},
		"no reservation":     {code(243, "Cannot reserve 1.00 MiB, not enough space"), false, true},
		"write fails":        {code(75, "Cannot write to file, errno: 28, strerror: No space left on device"), false, true},
		"of the file system": {code(1001, "std::filesystem_error: No space left on device"), false, true},
		"another one":        {code(241, "memory limit exceeded"), false, false},
		"of the network":     {errors.New("connection refused"), false, false},
	} {
		if corrupted(c.err) != c.corrupted || diskFull(c.err) != c.full {
			t.Errorf("%s: corrupted %t, full %t", name, corrupted(c.err), diskFull(c.err))
		}
		text := explained(c.err).Error()
		if strings.Contains(text, "operations.md") != (c.corrupted || c.full) || !errors.Is(explained(c.err), c.err) {
			t.Errorf("%s is explained as %q", name, text)
		}
	}
}

// TestReplacedPart: a broken part is replaced if others have all of it: every row of events, or every block number of
// lists, which loses rows in merges.
func TestReplacedPart(t *testing.T) {
	broken := part{"0_3_6_1", "0", 3, 6, 10}
	for name, c := range map[string]struct {
		parts     []part
		collapses bool
		want      bool
	}{
		// block 4 was never used
		"all rows":             {[]part{{"0_3_3_0", "0", 3, 3, 4}, {"0_5_6_1", "0", 5, 6, 6}}, false, true},
		"a part is missing":    {[]part{{"0_3_3_0", "0", 3, 3, 4}}, false, false},
		"none":                 {nil, false, false},
		"of another partition": {[]part{{"1_3_6_1", "1", 3, 6, 10}}, false, false},
		"of other blocks":      {[]part{{"0_1_2_1", "0", 1, 2, 10}}, false, false},
		"merged meanwhile": {[]part{{"0_3_7_2", "0", 3, 7, 12}, {"0_3_3_0", "0", 3, 3, 4}, {"0_5_6_1", "0", 5, 6, 6}},
			false, true},
		"merged in two steps": {[]part{{"0_3_6_1", "0", 3, 6, 10}, {"0_3_4_0", "0", 3, 4, 4}, {"0_5_6_0", "0", 5, 6, 6}},
			false, true},
		"lists, merged meanwhile": {[]part{{"0_2_7_2", "0", 2, 7, 30}, {"0_3_4_1", "0", 3, 4, 20},
			{"0_4_4_0", "0", 4, 4, 20}, {"0_5_6_1", "0", 5, 6, 20}}, true, true},
		"lists, all blocks":        {[]part{{"0_3_4_1", "0", 3, 4, 20}, {"0_5_6_1", "0", 5, 6, 20}}, true, true},
		"lists, a gap":             {[]part{{"0_3_4_1", "0", 3, 4, 20}, {"0_6_6_0", "0", 6, 6, 20}}, true, false},
		"lists, the end is absent": {[]part{{"0_3_5_1", "0", 3, 5, 20}}, true, false},
	} {
		if got := replaced(broken, c.parts, c.collapses); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestDetachedTableIsAttached: the next term attaches what a killed repair has detached.
func TestDetachedTableIsAttached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := everyEvent()
	w.append(t, s.Records)
	p, _ := w.projector(t)
	stop := start(t, p)
	reaches(t, p, s.Seq())
	must(t, stop())
	must(t, w.conn.Exec(t.Context(), "DETACH TABLE "+w.ch.Database(1)+"."+readmodel.ListsTable.Name))
	w.more(t, s)
	p, _ = w.projector(t)
	start(t, p)
	reaches(t, p, s.Seq())
	w.equal(t, s.Seq())
}

// TestRepairWithoutRights: a login without the rights for a repair can still write, and the metric shows that nothing
// was searched.
func TestRepairWithoutRights(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := everyEvent()
	w.append(t, s.Records)
	p, _ := w.projector(t)
	start(t, p)
	reaches(t, p, s.Seq())
	k := p.roster.all()[0]
	refusal := &clickhouse.Exception{Code: 497, Message: "Not enough privileges"}
	conn := denyingConn{k.conn, refusal}
	lookup := &Projections{stores: p.stores, log: p.log,
		openPatient: func(string) (driver.Conn, error) { return conn, nil }}
	other := &keeper{Projections: lookup, generation: k.generation, database: k.database,
		metrics: newMetrics(prometheus.NewRegistry()), log: p.log, conn: conn, partsSuspect: true}
	must(t, other.repair(t.Context()))
	if other.partsSuspect || testutil.ToFloat64(other.metrics.repairs.WithLabelValues(repairFailed)) != 1 {
		t.Errorf("suspect %t, failed %v", other.partsSuspect,
			testutil.ToFloat64(other.metrics.repairs.WithLabelValues(repairFailed)))
	}
}

// denyingConn rejects the queries of a repair.
type denyingConn struct {
	driver.Conn
	refusal error
}

func (c denyingConn) Select(ctx context.Context, dest any, query string, args ...any) error {
	if strings.HasPrefix(query, "CHECK TABLE") {
		return c.refusal
	}
	return c.Conn.Select(ctx, dest, query, args...)
}

func (c denyingConn) QueryRow(ctx context.Context, query string, args ...any) driver.Row {
	if strings.Contains(query, "system.detached_tables") {
		return deniedRow{c.refusal}
	}
	return c.Conn.QueryRow(ctx, query, args...)
}

// Close does nothing: the connection belongs to another keeper.
func (denyingConn) Close() error { return nil }

type deniedRow struct{ err error }

func (r deniedRow) Err() error           { return r.err }
func (r deniedRow) Scan(...any) error    { return r.err }
func (r deniedRow) ScanStruct(any) error { return r.err }
