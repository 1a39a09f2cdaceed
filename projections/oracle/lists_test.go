package oracle_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/histories"
	"github.com/navlog/navlog/projections/oracle"
	"github.com/navlog/navlog/projections/oracle/oracletest"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
)

var (
	plays = flag.Int("histories", 6, "how many random histories TestBuildLists plays")
	seed  = flag.Uint64("seed", 1, "seed of the first random history; 0: by the clock")
)

var databases atomic.Int64

// tables creates a database with the two tables.
func tables(t *testing.T) (conn, session driver.Conn) {
	t.Helper()
	ch := readmodel.DefaultConfig()
	ch.Addr, ch.Prefix = enginetest.ClickHouse(t), fmt.Sprintf("lists%d_%d", os.Getpid(), databases.Add(1))
	server, err := ch.OpenPatient("")
	must(t, err)
	database := ch.Database(1)
	for _, sql := range []string{"CREATE DATABASE " + database + " ENGINE = Atomic", readmodel.EventsTable.DDL(database), readmodel.ListsTable.DDL(database)} {
		must(t, server.Exec(t.Context(), sql))
	}
	conn, err = ch.OpenPatient(database)
	must(t, err)
	session, err = ch.OpenSession(database)
	must(t, err)
	t.Cleanup(func() {
		conn.Close()
		session.Close()
		must(t, server.Exec(context.Background(), "DROP DATABASE "+database))
		server.Close()
	})
	return conn, session
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestBuildLists: lists that are built from the events of a random history equal the plain fold of its log, at the
// end of any unit, including reorganisations and impossible logs.
func TestBuildLists(t *testing.T) {
	t.Parallel()
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	count := *plays
	if testing.Short() {
		count = min(count, 2)
	}
	for i := range uint64(count) {
		t.Run(fmt.Sprintf("seed=%d", first+i), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(first+i, 1))
			s := histories.Random(rng, 1, 40)
			conn, session := tables(t)
			insert(t, conn, s.Records)
			units := histories.Units(s.Records)
			for _, n := range []int{1 + rng.IntN(len(units)), len(units)} {
				records := slices.Concat(units[:n]...)
				seq := records[len(records)-1].GetSeq()
				must(t, readmodel.BuildLists(t.Context(), session, "lists", seq, 99))
				wantLists(t, conn, seq, records)
			}
		})
	}
}

func insert(t *testing.T, conn driver.Conn, records []*event.Record) {
	t.Helper()
	rows := readmodel.EventsTable.NewRows()
	var unit []oracle.Record
	for _, r := range records {
		value, err := proto.Marshal(r)
		must(t, err)
		unit = append(unit, oracle.Record{Record: r, Value: value})
	}
	vaults, err := mapping.NewVaults()
	must(t, err)
	for _, all := range oracle.Rows(vaults, unit) {
		for i := range all {
			rows.Add(&all[i])
		}
	}
	batch, err := conn.PrepareBatch(t.Context(), "INSERT INTO events ("+readmodel.EventsTable.Names()+")")
	must(t, err)
	must(t, rows.Fill(batch.Columns()))
	must(t, batch.Send())
}

// wantLists compares lists with the fold of records, row by row.
func wantLists(t *testing.T, conn driver.Conn, seq uint64, records []*event.Record) {
	t.Helper()
	fold := oracle.New(nil)
	for _, r := range records {
		must(t, fold.Apply(r))
	}
	want := append(fold.Lists(), fold.Cursor(99)...)
	var wanted []string
	for i := range want {
		want[i].Sign = 1
		wanted = append(wanted, readmodel.ListsTable.Line(&want[i]))
	}
	got := oracletest.Lines(t, conn, "SELECT "+readmodel.ListsTable.LineSQL()+" FROM lists", nil)
	oracletest.Same(t, fmt.Sprintf("lists as of seq %d", seq), got, wanted)
}
