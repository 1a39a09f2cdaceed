package readmodel

import (
	"errors"
	"strings"
	"testing"

	"github.com/navlog/navlog/deploy/engines/enginetest"
)

// TestDefinitionsGiveTheirColumns: what a definition gives is what is inserted, and
// each list has a definition.
func TestDefinitionsGiveTheirColumns(t *testing.T) {
	t.Parallel()
	config := DefaultConfig()
	config.Addr = enginetest.ClickHouse(t)
	conn, err := config.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, sql := range []string{"CREATE DATABASE given_columns ENGINE = Atomic", EventsTable.DDL("given_columns"), ListsTable.DDL("given_columns")} {
		if err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	inside, err := config.Open("given_columns")
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	ctx := AsOf(t.Context(), 1, 0, 1)
	for _, d := range Definitions {
		rows, err := inside.Query(ctx, "SELECT * FROM ("+d.SQL(true)+")")
		if err != nil {
			t.Fatalf("ask %s: %v", d.Name, err)
		}
		got := strings.Join(rows.Columns(), ", ")
		if err := errors.Join(rows.Close(), rows.Err()); err != nil {
			t.Fatalf("ask %s: %v", d.Name, err)
		}
		if got != d.Columns {
			t.Errorf("%s gives the columns %s and declares %s", d.Name, got, d.Columns)
		}
		var count uint64
		if err := inside.QueryRow(ctx, "SELECT count() FROM ("+d.Rows(true)+")").Scan(&count); err != nil {
			t.Errorf("%s as rows of lists: %v", d.Name, err)
		}
	}
	for part, empty := range emptyParts {
		columns := func(sql string) (all []string) {
			rows, err := inside.Query(ctx, sql)
			if err != nil {
				t.Fatalf("%s: %v", part, err)
			}
			defer rows.Close()
			for _, c := range rows.ColumnTypes() {
				all = append(all, c.Name()+" "+c.DatabaseTypeName())
			}
			return all
		}
		full := columns(withParts("SELECT * FROM "+part, nil) + " LIMIT 0")
		if got := columns(empty); strings.Join(got, ", ") != strings.Join(full, ", ") {
			t.Errorf("without groups %s has the columns\n%s\nand with them\n%s", part, got, full)
		}
	}
	for list := CursorList; list <= UserTotals; list++ {
		if list != TouchedList && len(DefinitionsOf(list)) == 0 {
			t.Errorf("list %d has no definition", list)
		}
	}
	if Definitions[len(Definitions)-1].Name != "cursor" {
		t.Error("the cursor is not built last")
	}
}
