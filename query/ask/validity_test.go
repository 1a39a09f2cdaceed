package ask_test

import (
	"context"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/readmodel"
)

type none struct{}

type one struct {
	N uint64 `ch:"n"`
}

type nothing struct {
	_ struct{} `reads:"-"`
}

var (
	readsAll     = ask.New[none, one]("SELECT toUInt64(1) AS n")
	readsNothing = ask.New[nothing, one]("SELECT toUInt64(1) AS n")
)

// made returns the validity of an answer with the given questions at a snapshot.
func made(t *testing.T, s *state.Snapshot, asOfBlock *uint64,
	questions ...func(context.Context, *ask.Pin) error) *ask.Validity {
	t.Helper()
	p := pinned(t, s, asOfBlock)
	for _, q := range questions {
		if err := q(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	return p.Validity()
}

func totalsOf(owner common.Address) func(context.Context, *ask.Pin) error {
	return func(ctx context.Context, p *ask.Pin) error { _, err := ask.TotalsOf(ctx, p, owner); return err }
}

func everything(ctx context.Context, p *ask.Pin) error {
	_, err := readsAll.Rows(ctx, p, none{})
	return err
}

// holds checks which of the answers hold at a snapshot.
func holds(t *testing.T, what string, s *state.Snapshot, answers map[string]*ask.Validity, want ...string) {
	t.Helper()
	left := map[string]bool{}
	for _, name := range want {
		left[name] = true
	}
	for name, v := range answers {
		if got := v.Holds(s); got != left[name] {
			t.Errorf("%s: the answer about %s holds: %t", what, name, got)
		}
	}
}

// TestValidityByKeys: an answer about the newest block holds until a unit touches a list and owner that it read; one
// whose questions do not declare what they read, until the next unit.
func TestValidityByKeys(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	s := w.BeforeReorganisation()
	answers := map[string]*ask.Validity{
		"A": made(t, s, nil, totalsOf(readtest.VaultA)), "B": made(t, s, nil, totalsOf(readtest.VaultB)),
		"both": made(t, s, nil, totalsOf(readtest.VaultA), totalsOf(readtest.VaultB)),
		"the user A": made(t, s, nil, func(ctx context.Context, p *ask.Pin) error {
			_, err := ask.UserTotals(ctx, p, readtest.VaultA)
			return err
		}),
		"everything": made(t, s, nil, everything, totalsOf(readtest.VaultA)),
		"no users": made(t, s, nil,
			func(ctx context.Context, p *ask.Pin) error { _, err := ask.UserTotals(ctx, p); return err }),
		"Alice's first block": made(t, s, nil, func(ctx context.Context, p *ask.Pin) error {
			_, err := ask.SumsOf(ctx, p, ask.Whose{Members: []ask.Member{{User: readtest.Alice}}})
			return err
		}),
		"NAVs": made(t, s, nil, func(ctx context.Context, p *ask.Pin) error {
			_, err := ask.NewestNavs(ctx, p)
			return err
		}),
		"nothing": made(t, s, nil, func(ctx context.Context, p *ask.Pin) error {
			_, err := readsNothing.Rows(ctx, p, nothing{})
			return err
		}),
	}
	holds(t, "at once", s, answers, "A", "B", "both", "the user A", "everything", "no users", "Alice's first block",
		"NAVs", "nothing")
	w.Pass(readmodel.Never, readmodel.Touch(readmodel.Totals, readtest.VaultA),
		readmodel.TouchKind(readmodel.VaultEvents, readmodel.Deposit, readtest.VaultB),
		readmodel.Touch(readmodel.Members, common.Address{}), readmodel.Touch(readmodel.Members, readtest.Bob))
	later := w.Look()
	holds(t, "after a unit that touched A's totals", later, answers, "B", "the user A", "no users", "Alice's first block",
		"nothing")
	if g, seq, x := answers["B"].At(later); g != s.Generation || seq != later.Seq || x != later.Block {
		t.Errorf("an answer that holds is at %d of block %d", seq, x)
	}
	if g, seq, x := answers["A"].At(later); g != s.Generation || seq != s.Seq || x != s.Block {
		t.Errorf("an answer that does not hold is at %d of block %d", seq, x)
	}
	if newer := made(t, later, nil, totalsOf(readtest.VaultA)); !newer.Holds(later) {
		t.Error("a later answer does not hold")
	} else if _, seq, _ := newer.At(s); seq != later.Seq {
		t.Errorf("an answer made at %d is served at the older %d as of %d", later.Seq, s.Seq, seq)
	}
	w.Pass(readmodel.Never, readmodel.Touch(readmodel.Members, readtest.Alice))
	holds(t, "after a unit that touched Alice as a user", w.Look(), answers, "B", "the user A", "no users", "nothing")
	var all readmodel.TouchedKey
	for i := range all {
		all[i] = 0xff
	}
	w.Pass(readmodel.Never, all)
	holds(t, "after a unit that touched all", w.Look(), answers)
}

// TestValidityByKind: an answer about one kind of a vault's events holds while a unit touches another kind, and a
// page holds while a unit touches another list of its owner.
func TestValidityByKind(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	s := w.BeforeReorganisation()
	page := newPage("first_seen", ask.OldestFirst)
	answers := map[string]*ask.Validity{
		"NAV": made(t, s, nil, func(ctx context.Context, p *ask.Pin) error {
			_, err := ask.VaultEvents.FirstOfEach(ctx, p,
				[]ask.OfVault{{Vault: readtest.VaultA, Kind: ask.Valuation, Blocks: ask.Blocks{Last: p.Block}}})
			return err
		}),
		"sweep": made(t, s, nil, func(ctx context.Context, p *ask.Pin) error {
			_, err := ask.VaultEvents.FirstOfEach(ctx, p,
				[]ask.OfVault{{Vault: readtest.VaultA, Kind: "sweep", Blocks: ask.Blocks{Last: p.Block}}})
			return err
		}),
		"users": made(t, s, nil, func(ctx context.Context, p *ask.Pin) error {
			_, err := page.Read(ctx, p, ofUsers{Owner: readtest.VaultA}, 0, 5)
			return err
		}),
	}
	deposit := readmodel.ListRow{List: readmodel.VaultEvents, Kind: readmodel.Deposit, Owner: readtest.VaultA}
	w.Pass(readmodel.Never, append(deposit.Touches(), readmodel.Touch(readmodel.Deposited, readtest.VaultA))...)
	holds(t, "after a deposit", w.Look(), answers, "NAV", "sweep", "users")
	w.Pass(readmodel.Never, readmodel.Touch(readmodel.FirstSeen, readtest.VaultA))
	holds(t, "after a new user", w.Look(), answers, "NAV", "sweep")
	valuation := readmodel.ListRow{List: readmodel.VaultEvents, Kind: readmodel.Valuation, Owner: readtest.VaultA}
	w.Pass(readmodel.Never, valuation.Touches()...)
	holds(t, "after a valuation", w.Look(), answers, "sweep")
	sweep := readmodel.ListRow{List: readmodel.VaultEvents, Kind: readmodel.Sweep, Owner: readtest.VaultA}
	w.Pass(readmodel.Never, sweep.Touches()...)
	holds(t, "after a sweep", w.Look(), answers)
}

// TestValidityByTime: an answer that shows an open request holds until the request lapses. It does not hold at times
// before it was made, to which a reorganisation may lead.
func TestValidityByTime(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	s := w.BeforeReorganisation()
	at := func(n uint64) uint64 { return uint64(readtest.BlockTime(n)) }
	lapses := func(times ...uint64) func(context.Context, *ask.Pin) error {
		return func(_ context.Context, p *ask.Pin) error {
			for _, at := range times {
				p.Lapses(at)
			}
			return nil
		}
	}
	answers := map[string]*ask.Validity{"13": made(t, s, nil, lapses(at(13), 0, at(99))),
		"never": made(t, s, nil, lapses(0)), "past": made(t, s, block(11), lapses(at(12)))}
	w.Log.Append(readtest.BlockRecord(12))
	w.Write()
	holds(t, "before it lapses", w.Look(), answers, "13", "never", "past")
	w.Log.Append(readtest.BlockRecord(13))
	w.Write()
	holds(t, "when it lapses", w.Look(), answers, "never", "past")
	late := made(t, w.Snapshot(), nil, lapses(0))
	w.Log.Retract(11)
	w.Log.Append(readtest.BlockRecord(12))
	w.Write()
	holds(t, "after a block with an earlier time", w.Look(),
		map[string]*ask.Validity{"never": answers["never"], "late": late}, "never")
}

// TestValidityOfThePast: an answer about a past block holds until a unit has an ancestor below it, whatever it read
// and whatever else changes.
func TestValidityOfThePast(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	s := w.BeforeReorganisation()
	answers := map[string]*ask.Validity{"8": made(t, s, block(8), everything),
		"9": made(t, s, block(9), totalsOf(readtest.VaultA))}
	w.Pass(readmodel.Never, readmodel.Touch(readmodel.Totals, readtest.VaultA))
	w.Pass(9, readmodel.Touch(readmodel.Totals, readtest.VaultA))
	later := w.Look()
	holds(t, "after a unit back to 9", later, answers, "8", "9")
	if _, seq, x := answers["8"].At(later); seq != later.Seq || x != 8 {
		t.Errorf("an answer about block 8 is at %d of block %d", seq, x)
	}
	w.Pass(8)
	holds(t, "after a unit back to 8", w.Look(), answers, "8")
	w.Pass(3)
	holds(t, "after a unit back to 3", w.Look(), answers)
}

// TestValidityInAnotherGeneration: no answer holds in a rebuilt generation, nor again in the first one.
func TestValidityInAnotherGeneration(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	s := w.BeforeReorganisation()
	answers := map[string]*ask.Validity{"newest": made(t, s, nil, totalsOf(readtest.VaultA)),
		"past": made(t, s, block(5), totalsOf(readtest.VaultA))}
	next := readtest.New(t, enginetest.ClickHouse(t))
	next.Write(w.Log)
	w.Switch(next)
	holds(t, "in the next generation", w.Look(), answers)
	w.Switch(w.Gen)
	w.Pass(readmodel.Never)
	holds(t, "in the first generation, of which not all units were seen", w.Look(), answers)
}
