package readtest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/schemas/readmodel"
)

// TestGeneration: the lists are the same whether they are written in steps or at once, over a reorganisation, and
// they are those that project derives from the same events.
func TestGeneration(t *testing.T) {
	small := readtest.SmallChain()
	atOnce := readtest.New(t, enginetest.ClickHouse(t))
	atOnce.Write(small)
	inSteps, l := readtest.New(t, enginetest.ClickHouse(t)), readtest.NewLog(readtest.ChainID)
	for _, e := range small.Entries {
		l.Entries = append(l.Entries, e)
		if e.Boundary {
			inSteps.Write(l)
		}
	}
	derived := readtest.New(t, enginetest.ClickHouse(t))
	derived.WriteEvents(small)
	session, err := derived.Config.OpenSession(derived.Database)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if err := readmodel.BuildLists(t.Context(), session, readmodel.ListsTable.Name, small.Seq(), 0); err != nil {
		t.Fatal(err)
	}
	for how, g := range map[string]*readtest.Generation{"in steps": inSteps, "by project's definitions": derived} {
		if a, b := liveRows(t, atOnce), liveRows(t, g); a != b || len(a) < 1000 {
			t.Errorf("written at once the lists are\n%s\nand %s\n%s", a, how, b)
		}
	}
}

// liveRows returns the live rows of lists, except touched, as text.
func liveRows(t *testing.T, g *readtest.Generation) string {
	t.Helper()
	line := readmodel.ListsTable.LineSQL("sign")
	var rows []struct {
		Line string `ch:"line"`
	}
	if err := g.Conn.Select(t.Context(), &rows, "SELECT "+line+
		" AS line FROM lists WHERE list != 'touched' GROUP BY line HAVING sum(sign) > 0 ORDER BY line"); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintln(&b, r.Line)
	}
	return b.String()
}

// TestServe requests a route about the newest block and about a past one.
func TestServe(t *testing.T) {
	g, l := readtest.New(t, enginetest.ClickHouse(t)), readtest.SmallChain()
	g.Write(l)
	c := readtest.Serve(t, g,
		serve.Route{Path: "/api/v1/settlement/summary", Get: func(r *serve.Request) (*serve.Answer, error) {
			return r.Pinned(func(ctx context.Context, p *ask.Pin) (*serve.Answer, error) {
				now, err := p.Now(ctx)
				if err != nil || now != uint64(readtest.BlockTime(p.Block)) || len(p.Vaults) != 2 || p.Rank(readtest.VaultB) != 1 {
					t.Errorf("block %d at %d, %v: %+v", p.Block, now, err, p.Vaults)
				}
				totals, err := ask.TotalsOf(ctx, p, readtest.VaultA)
				var deposits uint64
				for _, vault := range []common.Address{readtest.VaultA} {
					deposits += totals.Of(vault, vault).Deposits
				}
				r.Header.Set("X-Deposits", fmt.Sprint(deposits))
				return &serve.Answer{Data: []string{}}, err
			})
		}})
	for path, want := range map[string]string{"": "3 11", "?asOfBlock=7": "2 7"} {
		got := c.Serve("/api/v1/settlement/summary" + path)
		if text := got.Header().Get("X-Deposits") + " " + got.Header().Get("X-Indexed-Block"); got.Code != 200 ||
			text != want {
			t.Errorf("%q: %d %s %s, want %s", path, got.Code, text, got.Body, want)
		}
	}
}
