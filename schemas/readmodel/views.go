package readmodel

import (
	"fmt"
	"strings"
)

// Views are the views of a generation, for people who query it with SQL: one file each in
// views, over the same parts of events as the definitions of lists. They show what is live
// at the newest record of events, which may be a batch ahead of the lists.
var Views = []string{"deposits", "withdrawal_events", "requests", "navs", "sweeps", "settlements", "users"}

// viewDDL is the statement that makes a view in a database.
func (c Config) viewDDL(database, view string) string {
	never := fmt.Sprint(Never)
	sql := strings.NewReplacer("{seq:UInt64}", never, "{never:UInt64}", never,
		"FROM events\n", "FROM "+database+".events\n", "FROM events WHERE", "FROM "+database+".events WHERE").
		Replace(withParts(uncommented(file("views", view)), nil))
	return "CREATE VIEW IF NOT EXISTS " + database + "." + view + c.on() + " AS\n" + sql
}
