package expect

import (
	"maps"
	"slices"

	"github.com/navlog/navlog/schemas/readmodel"
)

// Table is what a test has written into the table lists: the rows that are live there, by their text.
type Table map[string]readmodel.ListRow

// Become makes wanted the content of the table, and returns the rows whose insert does the same in the engine: rows
// that cancel old ones, and then the new ones.
func (t *Table) Become(wanted []readmodel.ListRow) (changes []readmodel.ListRow) {
	next := make(Table, len(wanted))
	for _, row := range wanted {
		row.Sign = 1
		next[readmodel.ListsTable.Line(&row)] = row
	}
	for _, line := range slices.Sorted(maps.Keys(*t)) {
		if _, stays := next[line]; !stays {
			row := (*t)[line]
			row.Sign = -1
			changes = append(changes, row)
		}
	}
	for _, line := range slices.Sorted(maps.Keys(next)) {
		if _, had := (*t)[line]; !had {
			changes = append(changes, next[line])
		}
	}
	*t = next
	return changes
}
