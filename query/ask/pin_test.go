package ask_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/readmodel"
)

// users returns the number of users at the pin. It uses a statement that answers do not share.
func users(ctx context.Context, p *ask.Pin) (uint64, error) {
	sums, _, err := ask.Between(ctx, p, ask.Whose{Owners: []common.Address{{}}}, ask.Blocks{First: 1, Last: p.Block})
	return sums.Owners.Of(common.Address{}, common.Address{}).Users, err
}

// usersAt returns the expected number of users.
func usersAt(l *readtest.Log, seq, block uint64) uint64 {
	seen := map[common.Address]bool{}
	for _, e := range l.Live(seq, block) {
		if e.Kind == readtest.Deposit || e.Kind == readtest.Request {
			seen[e.User] = true
		}
	}
	return uint64(len(seen))
}

// answer makes an answer that contains the number of users, and counts the attempts.
func answer(
	w *readtest.World, t *testing.T, s *state.Snapshot, asOfBlock *uint64,
) (p *ask.Pin, n uint64, tries int, err error) {
	t.Helper()
	p, err = ask.Answer(t.Context(), w.Watcher, s, asOfBlock, func(ctx context.Context, p *ask.Pin) (err error) {
		tries++
		n, err = users(ctx, p)
		return err
	})
	return p, n, tries, err
}

func block(n uint64) *uint64 { return &n }

// pinned returns a pin at a snapshot.
func pinned(t *testing.T, s *state.Snapshot, asOfBlock *uint64) *ask.Pin {
	t.Helper()
	p, err := ask.At(s, asOfBlock)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPins: at the newest block and at each past one the answer matches the log, whatever is written meanwhile.
func TestPins(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	s := w.BeforeReorganisation()
	for x := uint64(3); x <= 11; x++ {
		p, n, tries, err := answer(w, t, s, &x)
		if err != nil || tries != 1 || n != usersAt(w.Log, s.Seq, x) || p.Block != x || !p.AsOf || p.Seq != s.Seq {
			t.Errorf("as of %d: %d users in %d tries, %v", x, n, tries, err)
		}
		recorded := x // blocks 3 and 5 to 11 have records
		if x == 4 {
			recorded = 3
		}
		now, err := p.Now(t.Context())
		if err != nil || now != uint64(readtest.BlockTime(recorded)) {
			t.Errorf("as of %d the time is %d, %v", x, now, err)
		}
	}
	var outside *ask.RangeError
	for _, x := range []uint64{2, 12} { // below the first, and above the newest
		if _, _, _, err := answer(w, t, s, &x); !errors.As(err, &outside) ||
			err.Error() != "asOfBlock must be an indexed block, 3 to 11" {
			t.Errorf("as of %d: %v", x, err)
		}
	}
	if _, n, tries, err := answer(w, t, s, nil); err != nil || tries != 1 || n != usersAt(w.Log, s.Seq, 11) {
		t.Errorf("newest: %d users in %d tries, %v", n, tries, err)
	}
	// A unit without a rewrite that the snapshot does not show yet changes nothing.
	w.Log.Append(readtest.Fact{Kind: readtest.Deposit, Vault: readtest.VaultA, User: readtest.Router, ID: 9, Assets: 1,
		Block: 12, Tx: readtest.Tx(40)}, readtest.BlockRecord(12))
	w.Write()
	if p, n, tries, err := answer(w, t, s, nil); err != nil || tries != 1 || n != usersAt(w.Log, s.Seq, 11) ||
		p.Seq != s.Seq {
		t.Errorf("with a later unit: %d users in %d tries, %v", n, tries, err)
	}
}

// TestAnswerIsRebuilt: if a reorganisation rewrote the pin's block, the answer is made again on a newer snapshot,
// and an error of the first attempt is discarded. An answer about a block below the reorganisation needs one attempt.
func TestAnswerIsRebuilt(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	old := w.BeforeReorganisation()
	w.Reorganisation()
	w.Write()
	if p, n, tries, err := answer(w, t, old, block(9)); err != nil || tries != 1 || p.Seq != old.Seq ||
		n != usersAt(w.Log, old.Seq, 9) {
		t.Errorf("a block below: %d users in %d tries at %d, %v", n, tries, p.Seq, err)
	}
	for _, asOf := range []*uint64{nil, block(10)} {
		tries := 0
		p, err := ask.Answer(t.Context(), w.Watcher, old, asOf, func(ctx context.Context, p *ask.Pin) error {
			tries++
			n, err := users(ctx, p)
			if p.Seq == old.Seq {
				return errors.New("an impossible state was read")
			}
			if n != usersAt(w.Log, p.Seq, p.Block) {
				t.Errorf("%d users at block %d", n, p.Block)
			}
			return err
		})
		if err != nil || tries != 2 || p.Seq != w.Log.Seq() || asOf == nil && p.Block != 11 || asOf != nil && p.Block != 10 {
			t.Errorf("as of %v: %+v in %d tries, %v", asOf, p, tries, err)
		}
	}
}

// TestAnswerIsBounded: if each attempt meets another reorganisation, the answer fails after a limited number of
// attempts.
func TestAnswerIsBounded(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	s := w.BeforeReorganisation()
	tries := 0
	again := func(ctx context.Context, p *ask.Pin) error {
		tries++
		w.Pass(8)
		_, err := users(ctx, p)
		return err
	}
	if _, err := ask.Answer(t.Context(), w.Watcher, s, nil, again); !errors.Is(err, ask.ErrRewritten) || tries != 10 {
		t.Errorf("the answer fails after %d tries: %v", tries, err)
	}
	tries = 0
	if _, err := ask.Answer(t.Context(), w.Watcher, w.Look(), block(8), again); err != nil || tries != 1 {
		t.Errorf("a block that every unit keeps needs %d tries: %v", tries, err)
	}
}

// TestNewestBlockDecides: a list that is only valid for the newest block is read at the pin's seq, or the answer is
// rebuilt; other lists are not affected by a later unit.
func TestNewestBlockDecides(t *testing.T) {
	for name, c := range map[string]struct {
		page  *ask.Page[ofUsers, aUser]
		tries int
	}{"deposited": {newPage("deposited", ask.NewestFirst).Newest(), 2},
		"first_seen": {newPage("first_seen", ask.NewestFirst), 1}} {
		w := readtest.NewWorld(t, enginetest.ClickHouse(t))
		s := w.BeforeReorganisation()
		w.Log.Append(readtest.Fact{Kind: readtest.Deposit, Vault: readtest.VaultA, User: readtest.Carol, ID: 9, Assets: 1,
			Block: 12, Tx: readtest.Tx(40)}, readtest.BlockRecord(12))
		w.Write()
		tries, found := 0, 0
		p, err := ask.Answer(t.Context(), w.Watcher, s, nil, func(ctx context.Context, p *ask.Pin) error {
			tries++
			rows, err := c.page.Read(ctx, p, ofUsers{Owner: readtest.VaultA}, 0, 100)
			found = len(rows)
			return err
		})
		if err != nil || tries != c.tries || p.Block != uint64(10+tries) || found != 4 {
			t.Errorf("%s: %d users in %d tries at block %d, %v", name, found, tries, p.Block, err)
		}
	}
}

// TestSettled: during a long answer, a reorganisation above its block is ignored, however many there are and whether
// or not the watcher saw it, and one that changes the block is detected.
func TestSettled(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	w.BeforeReorganisation()
	const look, read, settled = -1, -2, -3 // other values are the ancestor of a reorganisation
	for name, c := range map[string]struct {
		steps []int
		want  error
	}{
		"none":                           {[]int{read}, nil},
		"one above":                      {[]int{9, read}, nil},
		"two above":                      {[]int{9, read, 5, read}, nil},
		"two above, checked between":     {[]int{9, read, settled, 5, read}, nil},
		"one below":                      {[]int{4, read}, ask.ErrRewritten},
		"one below before the next read": {[]int{read, 4}, nil},
		"below, then above":              {[]int{4, 9, read}, ask.ErrRewritten},
		"one below, checked before":      {[]int{9, read, settled, 9, read, settled, 4, read}, ask.ErrRewritten},
		"the watcher saw it":             {[]int{9, look, read}, nil},
		"the watcher saw the first":      {[]int{9, look, 9, read}, nil},
		"the watcher saw the first, then one below": {[]int{9, look, 4, read}, ask.ErrRewritten},
	} {
		p := pinned(t, w.Look(), block(5))
		for i, step := range c.steps {
			var err error
			switch step {
			case look:
				w.Look()
			case read:
				_, err = users(t.Context(), p)
			case settled:
				err = p.Settled(t.Context(), w.Watcher)
			default:
				w.Pass(uint64(step))
			}
			if err != nil {
				t.Fatalf("%s, step %d: %v", name, i, err)
			}
		}
		if err := p.Settled(t.Context(), w.Watcher); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestLostPart: a generation that lost its newest part does not answer about that part, and answers made before no
// longer hold.
func TestLostPart(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	s := w.BeforeReorganisation()
	var kept []*ask.Validity
	for _, asOf := range []*uint64{nil, block(5)} {
		p := pinned(t, s, asOf)
		if _, err := users(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		kept = append(kept, p.Validity())
	}
	p := pinned(t, s, nil)
	var rows []readmodel.ListRow
	for _, list := range []readmodel.List{readmodel.CursorList, readmodel.CursorEnd} {
		was := readmodel.ListRow{List: list, Sign: -1, Seq: s.Seq, Block: s.Block, TS: uint32(s.Time)}
		is := was
		is.Sign, is.Seq = 1, s.Seq-1
		rows = append(rows, was, is)
	}
	w.Gen.InsertLists(rows)
	if _, err := users(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := p.Settled(t.Context(), w.Watcher); !errors.Is(err, ask.ErrRewritten) {
		t.Errorf("data older than the pin is accepted: %v", err)
	}
	lost := w.Look()
	for i, v := range kept {
		if lost.Seq != s.Seq-1 || v.Holds(lost) {
			t.Errorf("answer %d holds at %d", i, lost.Seq)
		}
	}
	w.Gen.Exec("TRUNCATE TABLE lists")
	if _, _, _, err := answer(w, t, s, nil); err == nil {
		t.Error("an answer is made without a cursor")
	}
}
