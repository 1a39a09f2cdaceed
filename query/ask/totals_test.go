package ask_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/readmodel"
)

// TestTotalsBetween: the growth over some blocks is the difference of the totals at their end and before them, even
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
			of := ask.Whose{Owners: []common.Address{a}, Users: []common.Address{readtest.Bob, readtest.Alice}}
			end, before, err := ask.Between(t.Context(), p, of, ask.Blocks{First: first, Last: last})
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
			upTo, from := end.Owners.Of(a, a), before.Owners.Of(a, a)
			got := [4]uint64{upTo.Deposits - from.Deposits, upTo.Deposited.Uint64() - from.Deposited.Uint64(),
				upTo.Navs - from.Navs, end.Users.Sum(readtest.Bob, &a).Requests - before.Users.Sum(readtest.Bob, nil).Requests}
			if want := [4]uint64{deposits, assets, navs, bobs}; got != want {
				t.Errorf("blocks %d to %d: %v, want %v", first, last, got, want)
			}
			growth, err := ask.Growth(t.Context(), p, of, ask.Blocks{First: first, Last: last},
				func(s *ask.Sums) uint64 { return s.Owners.Of(a, a).Deposits })
			if err != nil || growth != int64(deposits) {
				t.Errorf("blocks %d to %d: %d deposits, want %d, %v", first, last, growth, deposits, err)
			}
		}
	}
	if growth, err := ask.Growth(t.Context(), pinned(t, s, nil), ask.Whose{}, ask.Blocks{First: 6, Last: 5},
		nil); err != nil || growth != 0 {
		t.Errorf("without blocks: %d, %v", growth, err)
	}
	none, err := ask.UserTotals(t.Context(), pinned(t, s, nil), readtest.Unknown)
	if sum := none.Sum(readtest.Unknown, nil); err != nil || sum.Deposits != 0 || sum.Deposited.Sign() != 0 {
		t.Errorf("unknown user: %+v, %v", sum, err)
	}
	if all, err := ask.TotalsOf(t.Context(), pinned(t, s, nil), common.Address{}, a); err != nil ||
		all.Of(common.Address{}, common.Address{}).Users != 3 || all.Of(a, a).Users != 3 {
		t.Errorf("users: %v, %v", all, err)
	}
}

// TestNewestNavs: at each block, the newest NAV of each vault and the time of its last sweep are those of the first
// entries of the lists of its events: of several in a block the last one, and the sample of a block after its logs.
func TestNewestNavs(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	w.Gen.Exec("SYSTEM STOP MERGES lists")
	nav := func(block uint64, index uint32, price int64) readtest.Fact {
		return readtest.Fact{Kind: readtest.Nav, Vault: readtest.VaultA, Block: block, Index: index, Price: price,
			Assets: 3 * price, Supply: 2 * price}
	}
	sweep := func(block, to uint64) readtest.Fact {
		return readtest.Fact{Kind: readtest.Sweep, Vault: readtest.VaultA, Block: block, Index: 9, ID: 1, To: to}
	}
	sample, largest := nav(13, 0, 8), nav(14, 2, 5)
	sample.Sampled, sample.Assets, sample.Supply, largest.Largest = true, 0, 0, true
	w.BeforeReorganisation()
	w.Reorganisation()
	w.Log.Append(nav(12, 1, 7), nav(12, 4, 6), sweep(12, 2), readtest.BlockRecord(12))
	w.Log.Append(nav(13, 3, 9), sample, sweep(13, 1), readtest.BlockRecord(13)) // the sweep reaches no new deposit
	w.Log.Append(nav(14, 1, 4), largest, readtest.BlockRecord(14))
	w.Log.Append(nav(15, 0, 0), readtest.BlockRecord(15))
	w.Write()
	seen := map[string]bool{}
	for fork := uint64(15); fork > 10; fork -= 2 {
		s := w.Look()
		for x := uint64(3); x <= s.Block; x++ {
			at := block(x)
			if x == s.Block {
				at = nil
			}
			p := pinned(t, s, at)
			navs, err := ask.NewestNavs(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range p.Vaults {
				totals, err := ask.TotalsOf(t.Context(), p, v.Address)
				if err != nil {
					t.Fatal(err)
				}
				kind := ask.OfVault{Vault: v.Address, Kind: "sweep", Blocks: ask.Blocks{Last: x}}
				first := []ask.OfVault{kind, kind}
				first[0].Kind = ask.Valuation
				events, err := ask.VaultEvents.FirstOfEach(t.Context(), p, first)
				if err != nil {
					t.Fatal(err)
				}
				var got, want string
				if n := navs[i]; n != nil {
					got = fmt.Sprint(n.Block, n.LogIndex, n.Time, " ", &n.PerShare, &n.Assets, &n.Supply)
				}
				if e := events[0]; e != nil {
					want = fmt.Sprint(e.Block, e.LogIndex, e.Time, " ", ask.Number(e.NavPerShare), ask.Number(e.TotalAssets),
						ask.Number(e.TotalSupply))
				}
				if got += "; "; totals.Of(v.Address, v.Address).LastSweep > 0 {
					got += fmt.Sprint(totals.Of(v.Address, v.Address).LastSweep)
				}
				if want += "; "; events[1] != nil {
					want += fmt.Sprint(events[1].Time)
				}
				if seen[want] = true; got != want {
					t.Errorf("block %d of %d, vault %s: %s, want %s", x, s.Block, v.Written, got, want)
				}
			}
		}
		w.Log.Retract(fork - 2)
		w.Log.Append(sweep(fork-1, 3), readtest.BlockRecord(fork-1))
		w.Write()
	}
	if len(seen) < 10 {
		t.Errorf("only %d states are compared: %v", len(seen), seen)
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
	people := []common.Address{readtest.Alice, readtest.Unknown, readtest.VaultA}
	whose := ask.Whose{Owners: []common.Address{{}, readtest.VaultA}, Users: people,
		Members: membersOf(readtest.VaultA, people)}
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
	upTo, before, err := ask.Between(ctx, p, ask.Whose{Owners: []common.Address{readtest.VaultA}},
		ask.Blocks{First: 2000, Last: 45_000})
	if err != nil {
		t.Fatal(err)
	}
	got := [2]uint64{before.Owners.Of(readtest.VaultA, readtest.VaultA).Deposits,
		upTo.Owners.Of(readtest.VaultA, readtest.VaultA).Deposits}
	if got != [2]uint64{1999, 45_000} {
		t.Errorf("before and at the end: %v", got)
	}
	if rows > 10_000 {
		t.Errorf("%d rows were read for two of %d", rows, count)
	}
}

// membersOf returns users as members of a vault.
func membersOf(vault common.Address, users []common.Address) (out []ask.Member) {
	for _, user := range users {
		out = append(out, ask.Member{Vault: vault, User: user})
	}
	return out
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
	sums, err := ask.SumsOf(t.Context(), pinned(t, w.Look(), nil), ask.Whose{Users: users, Members: membersOf(common.Address{}, users)})
	if err != nil || sums.Seen[readtest.Bob] == 0 || len(sums.Seen) != 1 {
		t.Errorf("first seen: %v, %v; want only the existing user", sums, err)
	}
}

// TestSharedLookups: responses about the newest block that share statements get the rows that each would read
// separately, and no rows of the others.
func TestSharedLookups(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	w.Gen.Exec("SYSTEM STOP MERGES lists")
	w.BeforeReorganisation()
	w.Reorganisation()
	w.Write()
	s := w.Look()
	rng := rand.New(rand.NewPCG(7, 7))
	some := func(all ...common.Address) (out []common.Address) {
		for _, a := range all {
			if rng.IntN(2) == 0 {
				out = append(out, a)
			}
		}
		return out
	}
	vaults := []common.Address{{}, readtest.VaultA, readtest.VaultB}
	var group errgroup.Group
	group.SetLimit(3) // so that later ones find rows that earlier ones have read
	for range 200 {
		of := ask.Whose{Owners: some(append(vaults, readmodel.PartnerOwner(7))...),
			Users:   some(readtest.Alice, readtest.Bob, readtest.Unknown, readtest.VaultA),
			Members: membersOf(vaults[rng.IntN(3)], some(readtest.Alice, readtest.Bob, readtest.Unknown))}
		vault := &vaults[1+rng.IntN(2)]
		if rng.IntN(3) == 0 {
			vault = nil
		}
		group.Go(func() error {
			p, direct := pinned(t, s, nil), pinned(t, s, &s.Block) // answers with asOfBlock share no statements
			got, err := ask.SumsOf(t.Context(), p, of)
			want, wantErr := ask.SumsOf(t.Context(), direct, of)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%+v: %+v, want %+v", of, got, want)
			}
			queued, queueErr := ask.Queue(t.Context(), p, vault)
			wantQueued, wantQueueErr := ask.Queue(t.Context(), direct, vault)
			if !reflect.DeepEqual(queued, wantQueued) {
				t.Errorf("the queue of %v: %+v, want %+v", vault, queued, wantQueued)
			}
			if err := p.Settled(t.Context(), w.Watcher); err != nil {
				t.Errorf("%+v: %v", of, err)
			}
			return errors.Join(err, wantErr, queueErr, wantQueueErr)
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	var failed *state.Error
	if _, err := ask.UserTotals(ctx, pinned(t, s, nil), readtest.Alice); !errors.As(err, &failed) ||
		!errors.Is(err, context.Canceled) {
		t.Errorf("a client that has left: %v", err)
	}
}

// TestSharedBeforeAReorganisation: rows that were read for earlier answers at a snapshot are right for later ones until
// the chain is reorganised, and then such an answer is made again.
func TestSharedBeforeAReorganisation(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	s := w.BeforeReorganisation()
	before, err := ask.TotalsOf(t.Context(), pinned(t, s, nil), readtest.VaultA)
	if err != nil {
		t.Fatal(err)
	}
	w.Reorganisation()
	w.Write()
	p := pinned(t, s, nil)
	kept, err := ask.TotalsOf(t.Context(), p, readtest.VaultA)
	if err != nil || !reflect.DeepEqual(kept, before) {
		t.Errorf("kept: %+v, %v, want %+v", kept, err, before)
	}
	if err := p.Settled(t.Context(), w.Watcher); err != nil {
		t.Errorf("with rows from before only: %v", err)
	}
	if _, err := ask.UserTotals(t.Context(), p, readtest.Bob); err != nil {
		t.Fatal(err)
	}
	if err := p.Settled(t.Context(), w.Watcher); !errors.Is(err, ask.ErrRewritten) {
		t.Errorf("with rows from before and after: %v", err)
	}
	var now *ask.Totals
	if _, err := ask.Answer(t.Context(), w.Watcher, s, nil, func(ctx context.Context, p *ask.Pin) error {
		all, err := ask.TotalsOf(ctx, p, readtest.VaultA)
		if err == nil {
			_, err = ask.UserTotals(ctx, p, readtest.Bob)
		}
		now = all.Of(readtest.VaultA, readtest.VaultA)
		return err
	}); err != nil || reflect.DeepEqual(now, before.Of(readtest.VaultA, readtest.VaultA)) {
		t.Errorf("rebuilt: %+v, %v", now, err)
	}
}
