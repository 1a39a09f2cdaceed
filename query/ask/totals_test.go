package ask_test

import (
	"fmt"
	"math/big"
	"reflect"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/readtest"
)

// TestTotalsBetween: the change over some blocks is the difference of the totals at their end and before them, even
// if no step begins or ends there.
func TestTotalsBetween(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	w.Gen.Exec("SYSTEM STOP MERGES lists")
	w.BeforeReorganisation()
	w.Reorganisation()
	w.Write()
	s := w.Look()
	a := readtest.VaultA
	for last := uint64(3); last <= 11; last += 2 {
		for first := uint64(0); first <= last; first += 3 {
			p := pinned(t, s, nil)
			ofVault, before, err := ask.TotalsBetween(t.Context(), p, first, last, a)
			if err != nil {
				t.Fatal(err)
			}
			ofUser, userBefore, err := ask.UserTotalsBetween(t.Context(), p, first, last, readtest.Bob, readtest.Alice)
			if err != nil {
				t.Fatal(err)
			}
			var deposits, navs, bobs, assets uint64
			for _, e := range w.Log.Live(s.Seq, last) {
				switch {
				case e.Fact.Vault != a || e.Block < first:
				case e.Kind == readtest.Nav:
					navs++
				case e.Kind == readtest.Deposit:
					deposits, assets = deposits+1, assets+uint64(e.Assets)
				case e.Kind == readtest.Request && e.User == readtest.Bob:
					bobs++
				}
			}
			upTo, from := ofVault.Of(a, a), before.Of(a, a)
			got := [4]uint64{upTo.Deposits - from.Deposits, upTo.Deposited.Uint64() - from.Deposited.Uint64(), upTo.Navs - from.Navs,
				ofUser.Sum(readtest.Bob, &a).Requests - userBefore.Sum(readtest.Bob, nil).Requests}
			if want := [4]uint64{deposits, assets, navs, bobs}; got != want {
				t.Errorf("blocks %d to %d: %v, want %v", first, last, got, want)
			}
		}
	}
	none, err := ask.UserTotals(t.Context(), pinned(t, s, nil), readtest.Nobody)
	if sum := none.Sum(readtest.Nobody, nil); err != nil || sum.Deposits != 0 || sum.Deposited.Sign() != 0 {
		t.Errorf("of an unknown user: %+v, %v", sum, err)
	}
	if all, err := ask.TotalsOf(t.Context(), pinned(t, s, nil), common.Address{}, a); err != nil || all.Of(common.Address{}, common.Address{}).Users != 3 || all.Of(a, a).Users != 3 {
		t.Errorf("users: %v, %v", all, err)
	}
}

// TestSumsOf: one query returns separate totals for an owner and a user with the same address, and when users were
// first seen.
func TestSumsOf(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	w.Gen.Exec("SYSTEM STOP MERGES lists")
	w.BeforeReorganisation()
	w.Reorganisation()
	w.Write()
	p := pinned(t, w.Look(), nil)
	people := []common.Address{readtest.Alice, readtest.Nobody, readtest.VaultA}
	whose := ask.Whose{Owners: []common.Address{{}, readtest.VaultA}, Users: people, Members: people, In: readtest.VaultA}
	sums, err := ask.SumsOf(t.Context(), p, whose)
	if err != nil {
		t.Fatal(err)
	}
	owners, err := ask.TotalsOf(t.Context(), p, common.Address{}, readtest.VaultA)
	if err != nil || len(owners) == 0 || !reflect.DeepEqual(sums.Owners, owners) {
		t.Errorf("owners: %v, want %v, %v", sums.Owners, owners, err)
	}
	users, err := ask.UserTotals(t.Context(), p, people...)
	if err != nil || len(users) == 0 || !reflect.DeepEqual(sums.Users, users) {
		t.Errorf("users: %v, want %v, %v", sums.Users, users, err)
	}
	var want uint64
	for _, e := range w.Log.Live(p.Seq, p.Block) {
		comes := e.Kind == readtest.Deposit || e.Kind == readtest.Request
		if comes && e.Fact.User == readtest.Alice && e.Fact.Vault == readtest.VaultA && want == 0 {
			want = uint64(readtest.BlockTime(e.Block))
		}
	}
	if len(sums.Seen) != 1 || want == 0 || sums.Seen[readtest.Alice] != want {
		t.Errorf("members: %v, want Alice at %d", sums.Seen, want)
	}
}

// TestTotalsOfALongPast: steps at past blocks are found without reading those between them or later ones, also for an
// answer about the newest block.
func TestTotalsOfALongPast(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	const count = 50_000
	w.Log.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.BlockRecord(1), readtest.BlockRecord(count))
	w.Write()
	w.Gen.Exec(fmt.Sprintf(`INSERT INTO lists (list, owner, scope, key, block, sign, deposits)
		SELECT 'totals', x'%[1]x', x'%[1]x', number + 1, number, 1, number FROM numbers(1, %[2]d)`, readtest.VaultA, count-1))
	p := pinned(t, w.Look(), nil)
	rows := uint64(0)
	ctx := clickhouse.Context(t.Context(), clickhouse.WithProgress(func(p *clickhouse.Progress) { rows += p.Rows }))
	upTo, before, err := ask.TotalsBetween(ctx, p, 2000, 45_000, readtest.VaultA)
	if err != nil {
		t.Fatal(err)
	}
	got := [2]uint64{before.Of(readtest.VaultA, readtest.VaultA).Deposits, upTo.Of(readtest.VaultA, readtest.VaultA).Deposits}
	if got != [2]uint64{1999, 45_000} {
		t.Errorf("before and at the end: %v", got)
	}
	if rows > 10_000 {
		t.Errorf("%d rows were read for two of %d", rows, count)
	}
}

// TestTotalsOfManyUsers: a file sorted by amounts reads thousands of users at once, and when each was first seen.
func TestTotalsOfManyUsers(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	w.BeforeReorganisation()
	w.Write()
	users := []common.Address{readtest.Bob}
	for i := range 4095 {
		users = append(users, common.BigToAddress(new(big.Int).Sub(common.MaxAddress.Big(), big.NewInt(int64(i)))))
	}
	sums, err := ask.SumsOf(t.Context(), pinned(t, w.Look(), nil), ask.Whose{Users: users, Members: users})
	if err != nil || sums.Seen[readtest.Bob] == 0 || len(sums.Seen) != 1 {
		t.Errorf("first seen: %v, %v; want only the existing user", sums, err)
	}
}
