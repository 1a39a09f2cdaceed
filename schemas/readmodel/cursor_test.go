package readmodel_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/navlog/navlog/schemas/readmodel"
)

func (g *generation) wantCursor(t *testing.T, when, table string, from uint64, want readmodel.Cursor) {
	t.Helper()
	got, err := readmodel.ReadCursor(t.Context(), g.conn, table, from)
	if err != nil || got != want {
		t.Errorf("%s, from seq %d on, %s: the cursor is %+v, %v; want %+v", table, from, when, got, err, want)
	}
}

// TestCursorsOfFacts: the cursor is the highest seq, wherever it stands.
func TestCursorsOfFacts(t *testing.T) {
	t.Parallel()
	g := create(t)
	for _, table := range appended {
		g.wantCursor(t, "empty", table, 0, readmodel.Cursor{})
		for _, row := range []string{"(3, 30)", "(9, 90)", "(5, 50)"} {
			g.do(t, "INSERT INTO "+table+" (seq, writer) VALUES "+row)
		}
		for _, from := range []uint64{0, 3, 9} {
			g.wantCursor(t, "written", table, from, readmodel.Cursor{Seq: 9, Writer: 90})
		}
		g.wantCursor(t, "written", table, 10, readmodel.Cursor{})
		if last, err := readmodel.LastSeq(t.Context(), g.conn, table); last != 9 || err != nil {
			t.Errorf("%s ends with %d, %v; want 9", table, last, err)
		}
	}
}

// TestCursorsOfDerivedTables: the cursor is the newest of the cursor rows, merged
// or not, and no other row is taken for one.
func TestCursorsOfDerivedTables(t *testing.T) {
	t.Parallel()
	g := create(t).derived(t)
	for table, place := range map[string]struct{ columns, cursor, other string }{
		readmodel.Withdrawals:   {"list", "'cursor'", "'queue'"},
		readmodel.Users:         {"list", "'cursor'", "'member'"},
		readmodel.PartnerTotals: {"partner, until_block", "0, {never:UInt64}", "1, {never:UInt64}"},
	} {
		g.wantCursor(t, "empty", table, 0, readmodel.Cursor{})
		cursor := func(sign, seq int, fence string) string {
			return fmt.Sprintf("SELECT %d, %s, %d, %d, %s", sign, place.cursor, seq, 10*seq, fence)
		}
		insert := func(rows ...string) {
			t.Helper()
			g.do(t, "INSERT INTO "+table+" (sign, "+place.columns+", seq, writer, fence_seq, fence_block, fence_before) "+strings.Join(rows, " UNION ALL "))
		}
		g.do(t, "SYSTEM STOP MERGES "+table)
		insert(cursor(1, 3, "0, 0, 0"))
		g.wantCursor(t, "derived", table, 0, readmodel.Cursor{Seq: 3, Writer: 30})
		insert(cursor(-1, 3, "0, 0, 0"), cursor(1, 7, "7, 100, 0"))
		g.wantCursor(t, "rewritten", table, 0, readmodel.Cursor{Seq: 7, Writer: 70, Fence: readmodel.Fence{Seq: 7, Block: 100}})
		insert(cursor(-1, 7, "7, 100, 0"), cursor(1, 9, "9, 60, 7"))
		last := readmodel.Cursor{Seq: 12, Writer: 120, Fence: readmodel.Fence{Seq: 9, Block: 60, Before: 7}}
		insert(cursor(-1, 9, "9, 60, 7"), cursor(1, 12, "9, 60, 7")) // the fence of a plain unit is that before
		g.wantCursor(t, "with all pairs", table, 99, last)
		g.do(t, "INSERT INTO "+table+" (sign, "+place.columns+", seq, fence_seq) SELECT 1, "+place.other+", 99, 99")
		g.wantCursor(t, "beside another row", table, 0, last)
		g.do(t, "SYSTEM START MERGES "+table, "OPTIMIZE TABLE "+table+" FINAL")
		g.wantCursor(t, "merged", table, 0, last)
		var rows uint64
		must(t, g.conn.QueryRow(readmodel.Parameters(t.Context(), nil), "SELECT count() FROM "+table+" WHERE "+readmodel.CursorRow(table)).Scan(&rows))
		if rows != 1 {
			t.Errorf("%s has %d cursor rows after a merge", table, rows)
		}
	}
}

// TestFenceHolds: what a table says of a block is that of a log up to a seq.
func TestFenceHolds(t *testing.T) {
	t.Parallel()
	none, one, two := readmodel.Fence{}, readmodel.Fence{Seq: 10, Block: 5}, readmodel.Fence{Seq: 20, Block: 5, Before: 10}
	for _, c := range []struct {
		name       string
		fence      readmodel.Fence
		seq, block uint64
		want       bool
	}{
		{"nothing was rewritten", none, 0, 0, true},
		{"nothing was rewritten", none, 3, 99, true},
		{"the seq has the unit", one, 10, 99, true},
		{"the seq is after the unit", one, 11, 99, true},
		{"the seq is before the unit, the block was left as it was", one, 9, 5, true},
		{"the seq is before the unit, the block was rewritten", one, 9, 6, false},
		{"the seq has the second unit", two, 20, 99, true},
		{"the seq is between the units, the block was left as it was", two, 10, 5, true},
		{"the seq is right before the second unit", two, 19, 5, true},
		{"the seq is between the units, the block was rewritten", two, 19, 6, false},
		{"the seq is before both units: how far the first one went is not known", two, 9, 1, false},
	} {
		if got := c.fence.Holds(c.seq, c.block); got != c.want {
			t.Errorf("%s: %+v holds at seq %d for block %d: %t", c.name, c.fence, c.seq, c.block, got)
		}
	}
}
