package ask_test

import (
	"cmp"
	"errors"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/ask"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/schemas/readmodel"
)

// ofUsers selects the users of an owner in a list.
type ofUsers struct {
	Owner common.Address `ask:"owner" reads:"page"`
}

type aUser struct {
	ask.Entry
	Time uint32 `ch:"ts"`
}

const usersSQL = `SELECT {columns} FROM lists
	WHERE (list = {list} AND owner = {owner:FixedString(20)}
		AND (key, block, user) {beyond} ({after_key:Int256}, {after_block:UInt64}, {after_user:FixedString(20)}) -- if after
	) OR list = {cursor}
	ORDER BY {order} LIMIT {rows:UInt64}`

// newPage returns a page of users in the given order.
func newPage(list string, order ask.Order) *ask.Page[ofUsers, aUser] {
	return ask.NewPage[ofUsers, aUser](list, usersSQL, order)
}

// entry returns a row of first_seen whose content can vary.
func entry(n uint64, content uint32, sign int8) readmodel.ListRow {
	return readmodel.ListRow{List: readmodel.FirstSeen, Owner: readtest.VaultC, Key: *uint256.NewInt(n / 3),
		User: common.BigToAddress(uint256.NewInt(n).ToBig()), TS: content, Sign: sign}
}

// numbers returns the number and content of each entry of a page.
func numbers(rows []aUser) (out []uint64) {
	for _, r := range rows {
		out = append(out, r.User.Big().Uint64()*10+uint64(r.Time))
	}
	return out
}

// TestPagesAmidPairs: entries that were added, changed and removed exist as rows that cancel each other, in any order
// and unmerged. Every page, by offset or after a place, shows exactly the remaining entries.
func TestPagesAmidPairs(t *testing.T) {
	if testing.Short() {
		t.Skip("many rows")
	}
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	w.Gen.Exec("SYSTEM STOP MERGES lists")
	s := w.BeforeReorganisation()
	random := rand.New(rand.NewPCG(1, 2))
	live := map[uint64]uint32{}
	for n := range uint64(900) { // all are added
		live[n] = 1
	}
	insert := func(rows []readmodel.ListRow) {
		for part := range slices.Chunk(rows, 500) {
			w.Gen.InsertLists(part)
		}
	}
	var rows []readmodel.ListRow
	for n := range live {
		rows = append(rows, entry(n, 1, 1))
	}
	insert(rows)
	for content := uint32(2); content < 6; content++ { // many change, and some are removed or added again
		rows = nil
		for n := range uint64(900) {
			was, there := live[n]
			if there && random.IntN(3) > 0 {
				rows = append(rows, entry(n, was, -1))
				delete(live, n)
			}
			if _, there := live[n]; !there && random.IntN(4) > 0 {
				rows = append(rows, entry(n, content, 1))
				live[n] = content
			}
		}
		insert(rows)
	}
	var want []uint64
	for n, content := range live {
		want = append(want, n*10+uint64(content))
	}
	slices.Sort(want)
	if len(want) < 550 || len(want) > 880 {
		t.Fatalf("%d entries are left", len(want))
	}
	args := ofUsers{Owner: readtest.VaultC}
	reads := 0 // ten offsets at a time, so the same offset is read with another size the next time
	for _, order := range []ask.Order{ask.OldestFirst, ask.NewestFirst} {
		page, p := newPage("first_seen", order), pinned(t, s, nil)
		for _, question := range []*ask.Page[ofUsers, aUser]{page, newPage("first_seen", order).Deep()} {
			for _, offset := range []uint64{0, 1, 37, 499, 500, 501, 530, uint64(len(want)) - 1, uint64(len(want)), 5000} {
				size := []int{1, 20, 61}[reads%3]
				reads++
				rows, err := question.Read(t.Context(), p, args, offset, size)
				from := min(offset, uint64(len(want)))
				if got := numbers(rows); err != nil || !slices.Equal(got, want[from:min(from+uint64(size), uint64(len(want)))]) {
					t.Fatalf("order %v, %d entries after %d: %v, %v", order, size, offset, got, err)
				}
			}
		}
		var all []uint64
		var last *ask.Place
		for {
			rows, next, err := page.After(t.Context(), p, args, last, 97)
			if err != nil {
				t.Fatal(err)
			}
			if len(rows) == 0 {
				break
			}
			all, last = append(all, numbers(rows)...), next
		}
		if !slices.Equal(all, want) {
			t.Errorf("order %v, page after page: %d entries, want %d", order, len(all), len(want))
		}
		slices.SortFunc(want, func(a, b uint64) int { return cmp.Compare(b, a) })
		if err := p.Settled(t.Context(), w.Watcher); err != nil {
			t.Error(err)
		}
	}
}

// TestPageIsCutInAnEntry: a page is right even if the first read ends amid the rows of an entry.
func TestPageIsCutInAnEntry(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	w.Gen.Exec("SYSTEM STOP MERGES lists")
	s := w.BeforeReorganisation()
	const entries = 100
	for _, part := range []struct {
		content uint32
		sign    int8
	}{{1, 1}, {1, -1}, {2, 1}, {2, -1}, {3, 1}} { // one insert each: three of five rows are cut off
		var rows []readmodel.ListRow
		for n := range uint64(entries) {
			rows = append(rows, entry(n, part.content, part.sign))
		}
		w.Gen.InsertLists(rows)
	}
	for size := 1; size <= entries; size += 1 + size/9 {
		rows, err := newPage("first_seen", ask.OldestFirst).Read(t.Context(), pinned(t, s, nil),
			ofUsers{Owner: readtest.VaultC}, 0, size)
		if err != nil || len(rows) != size {
			t.Fatalf("a page of %d entries has %d, %v", size, len(rows), err)
		}
		for n, got := range numbers(rows) {
			if got != uint64(n)*10+3 {
				t.Fatalf("in a page of %d entries entry %d is %d", size, n, got)
			}
		}
	}
	// A duplicate entry is a fault of the generation, and must not appear on a page.
	w.Gen.InsertLists([]readmodel.ListRow{entry(7, 3, 1)})
	if _, err := newPage("first_seen", ask.OldestFirst).Read(t.Context(), pinned(t, s, nil),
		ofUsers{Owner: readtest.VaultC}, 0, 20); err == nil {
		t.Error("a duplicate entry is shown")
	}
}

// TestFirstOfEach: the first entries of several lists are those that each list has, also if those before them cancel
// each other or the list has none; and the state that they belong to is checked.
func TestFirstOfEach(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	w.Gen.Exec("SYSTEM STOP MERGES lists")
	s := w.BeforeReorganisation()
	const entries = 1400                 // more rows than the engine returns in one block
	for _, sign := range []int8{1, -1} { // all but the one in the middle come and go
		var rows []readmodel.ListRow
		for n := range uint64(entries) {
			if sign > 0 || n != entries/2 {
				rows = append(rows, entry(n, 1, sign))
			}
		}
		w.Gen.InsertLists(rows)
	}
	p := pinned(t, s, nil)
	of := func(owner common.Address) ofUsers { return ofUsers{Owner: owner} }
	asked := []ofUsers{of(readtest.VaultC), of(readtest.VaultA), of(readtest.Unknown), of(readtest.VaultB),
		of(readtest.VaultC), of(readtest.VaultC)}
	for _, order := range []ask.Order{ask.OldestFirst, ask.NewestFirst} {
		page := newPage("first_seen", order)
		got, err := page.FirstOfEach(t.Context(), p, asked)
		if err != nil || len(got) != len(asked) || got[2] != nil {
			t.Fatalf("order %v: %+v, %v", order, got, err)
		}
		for _, n := range []int{0, 4, 5} {
			if got[n] == nil || got[n].User != common.BigToAddress(big.NewInt(entries/2)) {
				t.Errorf("order %v: %+v is a row that was cancelled", order, got[n])
			}
		}
		for _, n := range []int{1, 3} {
			want, err := page.Read(t.Context(), p, asked[n], 0, 1)
			if err != nil || len(want) != 1 || got[n] == nil || got[n].Place != want[0].Place {
				t.Errorf("order %v: %+v, want %+v, %v", order, got[n], want, err)
			}
		}
	}
	if none, err := newPage("first_seen", ask.OldestFirst).FirstOfEach(t.Context(), p, nil); err != nil || len(none) != 0 {
		t.Errorf("without lists: %+v, %v", none, err)
	}
	if err := p.Settled(t.Context(), w.Watcher); err != nil {
		t.Fatal(err)
	}
	w.Pass(8)
	if _, err := newPage("first_seen", ask.OldestFirst).FirstOfEach(t.Context(), p, asked[1:]); err != nil {
		t.Fatal(err)
	}
	if err := p.Settled(t.Context(), w.Watcher); !errors.Is(err, ask.ErrRewritten) {
		t.Errorf("entries of rewritten lists are accepted: %v", err)
	}
}

// TestPagePastTheEnd: whether a list ends before a page is decided by the pin's state.
func TestPagePastTheEnd(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	s := w.BeforeReorganisation()
	p := pinned(t, s, nil)
	w.Pass(8)
	rows, err := newPage("first_seen", ask.NewestFirst).Deep().Read(t.Context(), p, ofUsers{Owner: readtest.VaultA}, 600,
		20)
	if err != nil || len(rows) != 0 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if err := p.Settled(t.Context(), w.Watcher); !errors.Is(err, ask.ErrRewritten) {
		t.Errorf("the end of a rewritten list is accepted: %v", err)
	}
}

// TestManyCursors: unmerged cursor rows fill the limit of the first read.
func TestManyCursors(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	w.Gen.Exec("SYSTEM STOP MERGES lists")
	w.BeforeReorganisation()
	for range 40 {
		w.Pass(readmodel.Never)
	}
	p := pinned(t, w.Look(), nil)
	for _, order := range []ask.Order{ask.OldestFirst, ask.NewestFirst} {
		rows, err := newPage("first_seen", order).Read(t.Context(), p, ofUsers{Owner: readtest.VaultA}, 0, 2)
		if err != nil || len(rows) != 2 {
			t.Errorf("%d rows, %v", len(rows), err)
		}
	}
	if err := p.Settled(t.Context(), w.Watcher); err != nil {
		t.Error(err)
	}
}
