package readtest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/httpapi"
	"github.com/navlog/navlog/query/pin"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/schemas/readmodel"
)

// TestGeneration: after each write the derived tables are what their definitions say,
// their cursors stand at the spine's end, and a reorganisation shows in the fence.
func TestGeneration(t *testing.T) {
	g, l := readtest.New(t, enginetest.ClickHouse(t)), readtest.NewLog(readtest.ChainID)
	whole := readtest.SmallChain()
	check := func(fence readmodel.Fence) {
		t.Helper()
		for _, table := range readmodel.Derived {
			c, err := readmodel.ReadCursor(t.Context(), g.Conn, table, 0)
			if err != nil || c.Seq != l.Seq() || c.Fence != fence {
				t.Errorf("the cursor of %s is %+v, %v; want seq %d and fence %+v", table, c, err, l.Seq(), fence)
			}
			if n := g.Wrong(table, l.Seq()); n != 0 {
				t.Errorf("%s has %d rows that its definition has not, or lacks them", table, n)
			}
		}
	}
	var fence readmodel.Fence
	for _, e := range whole.Entries {
		l.Entries = append(l.Entries, e)
		if !e.Boundary {
			continue
		}
		if e.Seq == whole.Seq() { // the last unit is the reorganisation
			fence = readmodel.Fence{Seq: l.Seq(), Block: 9}
		}
		g.Write(l)
		check(fence)
	}
	if g.Count("users WHERE list = 'first'") == 0 {
		t.Error("there are no users")
	}
}

// TestServe: a route is asked about the newest block and a past one.
func TestServe(t *testing.T) {
	g, l := readtest.New(t, enginetest.ClickHouse(t)), readtest.SmallChain()
	g.Write(l)
	c := readtest.Serve(t, g, httpapi.Route{Path: "/api/v1/settlement/summary", Get: func(r *httpapi.Request) (*httpapi.Answer, error) {
		return r.Pinned(func(ctx context.Context, p *pin.Pin) (*httpapi.Answer, error) {
			now, err := p.Now(ctx)
			if err != nil || now != uint64(readtest.BlockTime(p.Block)) || len(p.Vaults) != 2 || p.Rank(readtest.VaultB) != 1 {
				t.Errorf("block %d at %d, %v: %+v", p.Block, now, err, p.Vaults)
			}
			type row struct {
				Deposits uint64 `ch:"deposits"`
			}
			got, _, err := pin.AskOne[row](ctx, p, "SELECT count() AS deposits FROM deposits WHERE vault = {vault:FixedString(20)} AND sign = 1 AND seq <= {seq:UInt64} AND block <= {block:UInt64}", pin.Args{"vault": readtest.VaultA})
			r.Header.Set("X-Deposits", fmt.Sprint(got.Deposits))
			return &httpapi.Answer{Data: []string{}}, err
		})
	}})
	for path, want := range map[string]string{"": "4 11", "?asOfBlock=7": "2 7"} {
		got := c.Serve("/api/v1/settlement/summary" + path)
		if text := got.Header().Get("X-Deposits") + " " + got.Header().Get("X-Indexed-Block"); got.Code != 200 || text != want {
			t.Errorf("%q: %d %s %s, want %s", path, got.Code, text, got.Body, want)
		}
	}
}
