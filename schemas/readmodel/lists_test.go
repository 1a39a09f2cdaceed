package readmodel

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/navlog/navlog/deploy/engines/enginetest"
)

// TestDefinitionsGiveTheirColumns checks that the columns of a definition are those that are inserted, and that each
// list has a definition.
func TestDefinitionsGiveTheirColumns(t *testing.T) {
	t.Parallel()
	config := DefaultConfig()
	config.Addr = enginetest.ClickHouse(t)
	conn, err := config.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, sql := range []string{"DROP DATABASE IF EXISTS given_columns", "CREATE DATABASE given_columns ENGINE = Atomic",
		EventsTable.DDL("given_columns.events"), ListsTable.DDL("given_columns.lists")} {
		if err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	inside, err := config.OpenSession("given_columns")
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	ctx := Parameters(t.Context(), nil)
	for range 2 { // the second call replaces the tables of the first
		if err := Derive(t.Context(), inside, 1); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range Definitions {
		rows, err := inside.Query(ctx, "SELECT * FROM ("+d.SQL()+")")
		if err != nil {
			t.Fatalf("query %s: %v", d.Name, err)
		}
		got := strings.Join(rows.Columns(), ", ")
		if err := errors.Join(rows.Close(), rows.Err()); err != nil {
			t.Fatalf("query %s: %v", d.Name, err)
		}
		if got != d.Columns {
			t.Errorf("%s gives the columns %s and declares %s", d.Name, got, d.Columns)
		}
		var count uint64
		if err := inside.QueryRow(ctx, "SELECT count() FROM ("+d.Rows()+")").Scan(&count); err != nil {
			t.Errorf("%s as rows of lists: %v", d.Name, err)
		}
	}
	for list := CursorList; list <= UserTotals; list++ {
		if list != TouchedList &&
			!slices.ContainsFunc(Definitions, func(d ListDefinition) bool { return slices.Contains(d.Lists, list) }) {
			t.Errorf("list %d has no definition", list)
		}
	}
	if Definitions[len(Definitions)-1].Name != "cursor" {
		t.Error("the cursor is not built last")
	}
}

// TestTouchedKeysAreDistinct checks that no two lists, nor two kinds of a list of events, have the same touched key.
func TestTouchedKeysAreDistinct(t *testing.T) {
	seen := map[TouchedKey]string{TouchedAll: "all"}
	for name, list := range listNames {
		for kindName, kind := range kindNames {
			row := ListRow{List: list, Kind: kind}
			key, what := row.Touches()[0], name
			if list.ByKind() {
				what += " of " + kindName
			}
			if before, known := seen[key]; known && before != what {
				t.Errorf("%s and %s have the key %x", before, what, key)
			}
			seen[key] = what
		}
	}
	if want := 1 + len(listNames) - 3 + 3*len(kindNames); len(seen) != want {
		t.Errorf("%d keys, want %d", len(seen), want)
	}
}
