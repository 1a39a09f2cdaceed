// Package oracletest compares the tables of a generation with the oracle.
package oracletest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/projections/oracle"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
)

// Equal fails the test unless events and lists of a generation equal the oracle's result for records. conn is connected
// to the generation's database.
func Equal(t testing.TB, conn driver.Conn, records []*event.Record) {
	t.Helper()
	f := fold(t, conn, records)
	var want []string
	var unit []oracle.Record
	for _, r := range records {
		value, err := proto.Marshal(r)
		must(t, err)
		if unit = append(unit, oracle.Record{Record: r, Value: value, Passed: f.Skips(r)}); !r.GetBoundary() {
			continue
		}
		for _, rows := range oracle.Rows(f.Vaults(), unit) {
			for i := range rows {
				want = append(want, readmodel.EventsTable.Line(&rows[i], "writer"))
			}
		}
		unit = nil
	}
	Same(t, "events", Lines(t, conn, "SELECT "+readmodel.EventsTable.LineSQL("writer")+" FROM events", nil), want)
	Listed(t, conn, records)
}

// Listed fails the test unless lists equals the oracle's result for records.
func Listed(t testing.TB, conn driver.Conn, records []*event.Record) {
	t.Helper()
	f := fold(t, conn, records)
	var want []string
	for _, r := range append(f.Lists(), f.Cursor(0)...) {
		want = append(want, readmodel.ListsTable.Line(&r, "sign", "writer"))
	}
	Same(t, fmt.Sprintf("lists at seq %d", len(records)), slices.Collect(maps.Keys(Live(t, conn))), want)
}

// fold returns the fold of records, without what the generation records as skipped.
func fold(t testing.TB, conn driver.Conn, records []*event.Record) *oracle.Fold {
	t.Helper()
	var skipped oracle.Skipped
	for _, v := range Lines(t, conn, "SELECT DISTINCT hex(vault) FROM events WHERE passed AND record != 'block'", nil) {
		skipped.Vaults = append(skipped.Vaults, common.HexToAddress(v))
	}
	must(t, conn.QueryRow(t.Context(), "SELECT minIf(seq, passed AND record = 'block') FROM events").Scan(&skipped.From))
	f := oracle.New(nil)
	f.Skip(skipped)
	for _, r := range records {
		must(t, f.Apply(r))
	}
	return f
}

// Live returns the live rows of lists, except those of the list touched, each with the keys that name it there.
func Live(t testing.TB, conn driver.Conn) map[string][]readmodel.TouchedKey {
	t.Helper()
	out := map[string][]readmodel.TouchedKey{}
	line := readmodel.ListsTable.LineSQL("sign", "writer")
	rows, err := conn.Query(t.Context(), "SELECT "+line+" AS line, toInt8(list), toInt8(kind), owner, vault, user, "+
		"toInt64(sum(sign)) AS n FROM lists WHERE list != 'touched' GROUP BY line, list, kind, owner, vault, user HAVING "+
		"n != 0")
	must(t, err)
	defer rows.Close()
	for rows.Next() {
		var text string
		var list, kind int8
		var row readmodel.ListRow
		var n int64
		must(t, rows.Scan(&text, &list, &kind, &row.Owner, &row.Vault, &row.User, &n))
		row.List, row.Kind = readmodel.List(list), readmodel.EffectKind(kind)
		if n != 1 {
			t.Fatalf("the signs of a row of lists add up to %d: %s", n, text)
		}
		out[text] = row.Touches()
	}
	must(t, rows.Err())
	return out
}

// Lines returns the results of a query with one text column and numbers as parameters.
func Lines(t testing.TB, conn driver.Conn, question string, numbers map[string]uint64) (lines []string) {
	t.Helper()
	rows, err := conn.Query(readmodel.Parameters(t.Context(), numbers), question)
	if err != nil {
		t.Fatalf("%s\n%v", question, err)
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		must(t, rows.Scan(&line))
		lines = append(lines, line)
	}
	must(t, rows.Err())
	return lines
}

// Same fails the test unless two sets of lines are equal.
func Same(t testing.TB, what string, got, want []string) {
	t.Helper()
	counts := map[string]int{}
	for _, line := range got {
		counts[line]++
	}
	for _, line := range want {
		counts[line]--
	}
	for _, line := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[line]; n > 0 {
			t.Errorf("%s: %d too many of\n%s", what, n, line)
		} else if n < 0 {
			t.Errorf("%s: %d lacking of\n%s", what, -n, line)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
