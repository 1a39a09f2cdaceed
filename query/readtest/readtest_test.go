package readtest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/query/serve"
)

// TestGeneration: the lists are the same whether they are written in steps, at once, or from the rows that another
// test's write at once has left, over a reorganisation.
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
	again := readtest.New(t, enginetest.ClickHouse(t))
	again.Write(small)
	for how, g := range map[string]*readtest.Generation{"in steps": inSteps, "at once, again,": again} {
		if a, b := atOnce.Live(), g.Live(); a != b || len(a) < 1000 {
			t.Errorf("written at once the lists are\n%s\nand %s\n%s", a, how, b)
		}
	}
}

// What a test changes in events by itself is in the lists that it writes, although another test wrote the same log.
func TestChangedEvents(t *testing.T) {
	small := readtest.SmallChain()
	same, changed := readtest.New(t, enginetest.ClickHouse(t)), readtest.New(t, enginetest.ClickHouse(t))
	same.Write(small)
	changed.WriteEvents(small)
	changed.Exec("ALTER TABLE events UPDATE assets = assets + 1 WHERE effect = 'deposit' SETTINGS mutations_sync = 1")
	changed.WriteLists(small)
	if a := same.Live(); a == changed.Live() {
		t.Errorf("the lists of changed events are those of the log:\n%s", a)
	}
}

// TestServe requests a route about the newest block and about a past one.
func TestServe(t *testing.T) {
	g, l := readtest.New(t, enginetest.ClickHouse(t)), readtest.SmallChain()
	g.Write(l)
	c := readtest.Serve(t, g, serve.Route{Path: "/api/v1/settlement/summary", Get: func(r *serve.Request) (*serve.Answer, error) {
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
		if text := got.Header().Get("X-Deposits") + " " + got.Header().Get("X-Indexed-Block"); got.Code != 200 || text != want {
			t.Errorf("%q: %d %s %s, want %s", path, got.Code, text, got.Body, want)
		}
	}
}
