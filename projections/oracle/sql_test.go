package oracle_test

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/histories"
	"github.com/navlog/navlog/projections/oracle"
	"github.com/navlog/navlog/projections/oracle/oracletest"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
)

// TestDocumentedQueries: the views of a generation equal the fold of its log, each query of docs/sql.md works, and
// those about deposits and users return the sums of the fold.
func TestDocumentedQueries(t *testing.T) {
	t.Parallel()
	s := histories.Random(rand.New(rand.NewPCG(55, 5)), 1, 60)
	ch := readmodel.DefaultConfig()
	ch.Addr, ch.Prefix = enginetest.ClickHouse(t), fmt.Sprintf("sql%d", os.Getpid())
	server, err := ch.OpenPatient("")
	must(t, err)
	defer server.Close()
	must(t, ch.CreateEvents(t.Context(), server, ch.Database(1)))
	defer func() { must(t, ch.Drop(context.Background(), server, ch.Database(1))) }()
	conn, err := ch.OpenReader(ch.Database(1), 2)
	must(t, err)
	defer conn.Close()
	writer, err := ch.OpenPatient(ch.Database(1))
	must(t, err)
	defer writer.Close()
	insert(t, writer, s.Records)
	session, err := ch.OpenSession(ch.Database(1))
	must(t, err)
	defer session.Close()
	must(t, ch.CreateLists(t.Context(), server, ch.Database(1), "lists"))
	must(t, readmodel.BuildLists(t.Context(), session, "lists", s.Seq(), 1))
	for range 2 { // the second time the views exist already
		must(t, ch.CreateViews(t.Context(), server, ch.Database(1)))
	}

	withEvents := map[string]uint64{"withdrawal_events": 0, "settlements": 0}
	for view, rows := range withEvents {
		must(t, conn.QueryRow(t.Context(), "SELECT count() FROM "+view).Scan(&rows))
		if withEvents[view] = rows; rows == 0 {
			t.Errorf("%s is empty, so the test is incomplete", view)
		}
	}
	ahead := s.Seq()
	for i := range 6 { // lists does not have these blocks yet
		s.Mine(histories.Anything(rand.New(rand.NewPCG(uint64(i), 5)), 2, 4))
	}
	insert(t, writer, s.Records[ahead:])
	s.Records = s.Records[:ahead]

	fold := oracle.New(nil)
	want := map[string]uint64{}
	deposited, unswept, brought := sums{}, sums{}, sums{}
	amounts := map[readmodel.List]map[common.Address]string{readmodel.Deposited: {}, readmodel.Withdrawn: {}} // of users
	for _, r := range s.Records {
		must(t, fold.Apply(r))
	}
	for _, row := range fold.Lists() {
		switch {
		case row.List == readmodel.VaultEvents && row.Kind == readmodel.Deposit:
			want["deposits"]++
			assets := row.Assets.ToBig()
			deposited.add(row.Vault.Hex(), assets)
			if row.ClosedBy != readmodel.Sweep {
				unswept.add(row.Vault.Hex(), assets)
			}
			if row.Partner > 0 {
				brought.add(fmt.Sprint(row.Partner, " ", row.Vault.Hex()), assets)
			}
		case row.List == readmodel.VaultEvents && row.Kind == readmodel.Sweep:
			want["sweeps"]++
		case row.List == readmodel.VaultEvents && row.Kind == readmodel.Valuation:
			want["navs"]++
		case row.List == readmodel.Requests:
			want["requests"]++
		case row.List == readmodel.UserEvents && row.Kind == readmodel.Claimed:
			want["withdrawal_events WHERE event = 'claimed'"]++
		case row.List == readmodel.Members && row.Owner == [20]byte{}:
			want["users"]++
		case amounts[row.List] != nil && row.Owner == [20]byte{}:
			amounts[row.List][row.User] = row.Key.Dec()
		}
	}
	maps.Copy(want, withEvents)
	for view, rows := range want {
		var got uint64
		if err := conn.QueryRow(t.Context(), "SELECT count() FROM "+view).Scan(&got); err != nil || got != rows {
			t.Errorf("%s has %d rows, %v; want %d", view, got, err, rows)
		}
	}
	page, err := os.ReadFile("../../docs/sql.md")
	must(t, err)
	var depositors []string
	for user, amount := range amounts[readmodel.Deposited] {
		depositors = append(depositors,
			strings.ToLower(fmt.Sprint(user, " ", amount, " ", amounts[readmodel.Withdrawn][user])))
	}
	figures := map[string]struct {
		columns string
		want    []string
	}{
		"How much was deposited by vault and month?": {
			"vault, toString(sum(q.deposits)), toString(sum(q.assets))) FROM (%s) AS q GROUP BY vault", deposited.lines()},
		"How much did each partner bring?": {"toString(partner), vault, toString(deposits), toString(assets)) FROM (%s)",
			brought.lines()},
		"Which deposits are not swept yet?": {"vault, toString(deposits), toString(assets)) FROM (%s)", unswept.lines()},
		"Who are the largest depositors?":   {"user, toString(deposited), toString(withdrawn)) FROM (%s)", depositors},
	}
	queries := strings.Split(string(page), "\n## ")[1:]
	if len(queries) != 10 {
		t.Errorf("docs/sql.md has %d queries, want 10", len(queries))
	}
	for _, section := range queries {
		title, query, _ := strings.Cut(section, "\n\n```sql\n")
		query, _, _ = strings.Cut(query, "```")
		if f, ok := figures[title]; ok {
			oracletest.Same(t, title,
				oracletest.Lines(t, conn, "SELECT concatWithSeparator(' ', "+fmt.Sprintf(f.columns, query), nil), f.want)
			delete(figures, title)
		}
		rows, err := conn.Query(t.Context(), query)
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		answered := rows.Next()
		must(t, rows.Close())
		if err := rows.Err(); err != nil || !answered && !strings.Contains(query, "now('UTC')") {
			t.Errorf("no response to %s: %v", query, err)
		}
	}
	for title := range figures {
		t.Errorf("docs/sql.md has no query %q", title)
	}
}

// sums are the number of amounts and their sum, by key.
type sums map[string]*struct {
	count  int
	amount big.Int
}

func (s sums) add(key string, amount *big.Int) {
	if s[key] == nil {
		s[key] = new(struct {
			count  int
			amount big.Int
		})
	}
	s[key].count++
	s[key].amount.Add(&s[key].amount, amount)
}

func (s sums) lines() (lines []string) {
	for key, sum := range s {
		lines = append(lines, strings.ToLower(fmt.Sprint(key, " ", sum.count, " ", &sum.amount)))
	}
	return lines
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
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
