package readmodel

import (
	"context"
	"fmt"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Views are the views of a generation, for people who query it with SQL: one file each in views. Most show the live
// rows of lists. The two that show effects that no list has read events, up to the cursor of lists, because events may
// be a batch ahead.
var Views = []string{"deposits", "withdrawal_events", "requests", "navs", "sweeps", "settlements", "users"}

// CreateViews creates the missing views of a generation that has lists.
func (c Config) CreateViews(ctx context.Context, conn driver.Conn, database string) error {
	for _, view := range Views {
		if err := exec(ctx, conn, c.viewDDL(database, view), "create the view "+database+"."+view); err != nil {
			return err
		}
	}
	return nil
}

func (c Config) viewDDL(database, view string) string {
	sql := strings.NewReplacer("{never:UInt64}", fmt.Sprint(Never), "FROM events", "FROM "+database+".events",
		"FROM lists", "FROM "+database+".lists").
		Replace(uncommented(file("views", view)))
	return "CREATE VIEW IF NOT EXISTS " + database + "." + view + c.on() + " AS\n" + sql
}
