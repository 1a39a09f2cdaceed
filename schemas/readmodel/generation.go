package readmodel

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// A generation is a database with two tables, events and lists. It starts with events. When the log has all of every
// vault, lists is built from events under a draft name, and renamed when it is complete: so a generation with a table
// lists can be served, and a writer that stalled during a build never touches the table of another writer.

// CreateEvents creates the database of a generation and its table events if they are missing, on all replicas of a
// cluster.
func (c Config) CreateEvents(ctx context.Context, conn driver.Conn, database string) error {
	if err := exec(ctx, conn, "CREATE DATABASE IF NOT EXISTS "+database+c.on()+" ENGINE = Atomic",
		"create database "+database); err != nil {
		return err
	}
	name := database + "." + EventsTable.Name
	return exec(ctx, conn, c.onCluster(EventsTable.DDL(name+c.on())), "create "+name)
}

// exec runs a statement; what is what it does, for its error.
func exec(ctx context.Context, conn driver.Conn, statement, what string) error {
	if err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// CreateLists creates an empty table lists under its own name or that of a draft.
func (c Config) CreateLists(ctx context.Context, conn driver.Conn, database, name string) error {
	return exec(ctx, conn, c.onCluster(ListsTable.DDL(database+"."+name+c.on())), "create "+database+"."+name)
}

// onCluster returns the statement that creates a table with the engine of a cluster, if there is one.
func (c Config) onCluster(ddl string) string {
	if c.Cluster == "" {
		return ddl
	}
	return strings.NewReplacer(appending, appendingCluster, collapsing, collapsingCluster, singleWindow, clusterWindow).
		Replace(ddl)
}

// CheckGeneration returns a *TableError if the tables of a generation are not as CreateEvents and CreateLists create
// them. built reports whether it has the table lists.
func (c Config) CheckGeneration(ctx context.Context, conn driver.Conn, database string) (built bool, err error) {
	engines, err := Tables(ctx, conn, database)
	if err != nil {
		return false, err
	}
	built = engines[ListsTable.Name] != ""
	for table, engine := range map[string][2]string{
		EventsTable.Name: {"MergeTree PARTITION BY seq = 0", "ReplicatedMergeTree("},
		ListsTable.Name:  {"CollapsingMergeTree(sign)", "ReplicatedCollapsingMergeTree("},
	} {
		if table == ListsTable.Name && !built {
			continue
		}
		wanted, window := engine[0], singleWindow
		if c.Cluster != "" {
			wanted, window = engine[1], clusterWindow
		}
		for _, want := range append([]string{wanted}, strings.Split(window+", "+synced, ", ")...) {
			if !strings.Contains(engines[table], want) {
				return built, &TableError{database, table, want}
			}
		}
	}
	return built, nil
}

// Tables returns the engines of a database's tables by their names; empty: of the connection's database.
func Tables(ctx context.Context, conn driver.Conn, database string) (map[string]string, error) {
	var tables []struct {
		Name   string `ch:"name"`
		Engine string `ch:"engine_full"`
	}
	if err := conn.Select(ctx, &tables, "SELECT name, engine_full FROM system.tables "+
		"WHERE database = if({database:String} = '', currentDatabase(), {database:String})",
		clickhouse.Named("database", database)); err != nil {
		return nil, fmt.Errorf("read the tables of %s: %w", cmp.Or(database, "the generation"), err)
	}
	engines := map[string]string{}
	for _, t := range tables {
		engines[t.Name] = t.Engine
	}
	return engines, nil
}

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
