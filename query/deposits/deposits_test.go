package deposits

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/query/serve"
	"github.com/navlog/navlog/schemas/readmodel"
)

// TestHeavyKeys: reading a page of a user, a partner or a vault with many deposits does not read rows outside the
// page.
func TestHeavyKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("many rows, and one query after the other")
	}
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	const count, newest = 50_000, 5_001
	w.Log.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.BlockRecord(1))
	w.Log.Append(readtest.BlockRecord(newest))
	w.Write()
	owners := map[string]string{"user_events": fmt.Sprintf("x'%x', 0", readtest.Alice),
		"vault_events":   fmt.Sprintf("x'%x', number + 1", readtest.VaultA),
		"partner_events": "x'0000000000000000000000000000000000000007', 0"}
	for list, owner := range owners { // the owners differ in their key
		for part := range 2 { // several parts, which the query has to merge
			w.Gen.Exec(fmt.Sprintf(`INSERT INTO lists (list, kind, owner, key, block, log_index, user, sign, vault, other, partner, id, assets, shares, ts, closed_block)
			SELECT '%s', 'deposit', %s, 2 + intDiv(number, 10), number %% 10, x'%x', 1, x'%x', x'%x', 7, number + 1, 5, 5, 1700000000, 1 FROM numbers(%d) WHERE number %% 2 = %d`,
				list, owner, readtest.Alice, readtest.VaultA, readtest.Alice, count, part))
		}
	}
	s := w.Look()
	for name, of := range map[string]struct {
		page  *ask.Page[ofList, deposit]
		owner common.Address
	}{
		"user": {userPage, readtest.Alice}, "partner": {partnerPage, readmodel.PartnerOwner(7)},
		"vault": {vaultPage, readtest.VaultA},
	} {
		for _, block := range []uint64{newest, 1200} {
			for _, offset := range []uint64{0, 1000} {
				p, err := ask.At(s, &block)
				if err != nil {
					t.Fatal(err)
				}
				rowsRead := uint64(0)
				ctx := clickhouse.Context(t.Context(), clickhouse.WithProgress(func(p *clickhouse.Progress) { rowsRead += p.Rows }))
				rows, err := of.page.Read(ctx, p, ofList{Owner: of.owner, Blocks: ask.Blocks{Last: block}}, offset, 20)
				if err != nil {
					t.Fatal(err)
				}
				if len(rows) != 20 || rows[0].Block != block-offset/10 {
					t.Errorf("%s at block %d: %d deposits after %d, the first of block %d", name, block, len(rows), offset,
						rows[0].Block)
				}
				if rowsRead == 0 || rowsRead > 5000+2*offset {
					t.Errorf("%s at block %d: %d of %d rows are read for a page after %d", name, block, rowsRead, count, offset)
				}
			}
		}
	}
}

// voidable is a deposit of a test, and the block in which it became void (0: it did not).
type voidable struct {
	readtest.Fact
	void uint64
}

// byUser and inVault select deposits. Alice has all those in vault A.
func byUser(user common.Address) func(voidable) bool {
	return func(d voidable) bool { return d.User == user }
}

func inVault(vault common.Address) func(voidable) bool {
	return func(d voidable) bool { return d.Vault == vault }
}

// withVoid returns routes over two vaults whose newest deposits are void, and the deposits, newest first. Vault A is
// also a user: of vault B.
func withVoid(t *testing.T) (*readtest.Client, []voidable) {
	t.Helper()
	const count, perBlock = 600, 10
	l := readtest.NewLog(readtest.ChainID)
	l.Append(readtest.PresetRecord(t, readtest.VaultA, "Alpha", 1, "lagoon-v0.6"),
		readtest.PresetRecord(t, readtest.VaultB, "Beta", 1, "lagoon-v0.6"), readtest.BlockRecord(1))
	var all []voidable
	for n := range uint64(count) {
		d := voidable{Fact: readtest.Fact{Kind: readtest.Deposit, Vault: readtest.VaultA, User: readtest.Alice,
			Other: readtest.Alice, Partner: 7, ID: n + 1, Group: n + 1, Assets: 5, Block: 2 + n/perBlock,
			Index: uint32(n % perBlock), Tx: readtest.Tx(byte(n))}}
		switch {
		case n >= count-15:
			d.void = 71
		case n >= count-30:
			d.void = 70
		case n == 500, n == 520:
			d.Vault, d.void = readtest.VaultB, 71
			if n == 520 {
				d.User = readtest.VaultA
			}
		}
		all = append(all, d)
		if l.Add(d.Fact, 0); n%perBlock == perBlock-1 {
			l.Append(readtest.BlockRecord(d.Block))
		}
	}
	for block := uint64(70); block <= 71; block++ {
		for n, d := range all {
			if d.void == block {
				l.Add(readtest.Fact{Kind: readtest.Void, Vault: d.Vault, User: d.User, Group: d.Group,
					Block: block, Index: uint32(n), Tx: readtest.Tx(byte(block))}, 0)
			}
		}
		l.Append(readtest.BlockRecord(block))
	}
	g := readtest.New(t, enginetest.ClickHouse(t))
	g.Write(l)
	slices.Reverse(all)
	return readtest.Serve(t, g, serve.Route{Path: "/api/v1/vaults/{address}/deposits", Get: OfVault, AsFile: true},
		serve.Route{Path: "/api/v1/users/{address}/deposits", Get: OfUser, AsFile: true},
		serve.Route{Path: "/api/v1/partner/deposits", Get: OfPartner, AsFile: true, Partner: true}), all
}

// compareVoid reads a list of deposits made from block first and as of block last, and compares it with the deposits
// that it should have.
func compareVoid(t *testing.T, c *readtest.Client, path string, all []voidable, first, last uint64,
	has func(voidable) bool) {
	t.Helper()
	want, got := []string{}, []string{}
	for _, d := range all {
		if has(d) && d.Block >= first && d.Block <= last && (d.void == 0 || d.void > last) {
			want = append(want, fmt.Sprintf("%d-%d", d.Block, d.Index))
		}
	}
	for page, more := 1, true; more; page++ {
		answer := c.Get(fmt.Sprintf("%spageSize=100&page=%d", path, page)).JSON(t)
		for _, one := range answer["data"].([]any) {
			d := one.(map[string]any)
			got = append(got, fmt.Sprintf("%s-%v", d["blockNumber"], d["logIndex"]))
			if d["sweptAt"] != nil {
				t.Fatalf("%s: nothing is swept, but %v", path, d)
			}
		}
		meta := answer["meta"].(map[string]any)
		if total := fmt.Sprint(meta["total"]); total != fmt.Sprint(len(want)) {
			t.Errorf("%s: the total is %s, and the list has %d", path, total, len(want))
		}
		more = meta["hasNextPage"].(bool)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %d deposits, want %d", path, len(got), len(want))
	}
}

// TestPagesWithoutVoidDeposits: every page of a list begins where the previous one ends, however many of the deposits
// before it are void.
func TestPagesWithoutVoidDeposits(t *testing.T) {
	c, all := withVoid(t)
	for path, has := range map[string]func(voidable) bool{
		"/api/v1/users/" + readtest.Alice.Hex() + "/deposits?":                                     byUser(readtest.Alice),
		"/api/v1/users/" + readtest.Alice.Hex() + "/deposits?vault=" + readtest.VaultA.Hex() + "&": inVault(readtest.VaultA),
		"/api/v1/vaults/" + readtest.VaultA.Hex() + "/deposits?":                                   inVault(readtest.VaultA),
		"/api/v1/partner/deposits?":                                                                func(voidable) bool { return true },
	} {
		compareVoid(t, c, path, all, 0, 71, has)
	}
}

// TestTotalsWithVoidDeposits: the total is the number of deposits in the list, also if deposits from before the range
// became void within it.
func TestTotalsWithVoidDeposits(t *testing.T) {
	c, all := withVoid(t)
	for path, has := range map[string]func(voidable) bool{
		"/api/v1/users/" + readtest.Alice.Hex() + "/deposits?":                                     byUser(readtest.Alice),
		"/api/v1/users/" + readtest.Alice.Hex() + "/deposits?vault=" + readtest.VaultA.Hex() + "&": inVault(readtest.VaultA),
		"/api/v1/users/" + readtest.VaultA.Hex() + "/deposits?":                                    byUser(readtest.VaultA),
		"/api/v1/vaults/" + readtest.VaultA.Hex() + "/deposits?":                                   inVault(readtest.VaultA),
		"/api/v1/vaults/" + readtest.VaultB.Hex() + "/deposits?":                                   inVault(readtest.VaultB),
	} {
		for _, in := range []ask.Blocks{{First: 50, Last: 61}, {First: 60, Last: 70}, {First: 60, Last: 71},
			{First: 70, Last: 71}, {First: 71, Last: 71}} {
			span := fmt.Sprintf("from=%d&to=%d&", readtest.BlockTime(in.First), readtest.BlockTime(in.Last))
			compareVoid(t, c, path+span, all, in.First, in.Last, has)
		}
	}
}
