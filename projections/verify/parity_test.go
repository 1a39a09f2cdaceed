package verify

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/navlog/navlog/deploy/testkit/histories"
)

// TestParityFindsDifferences: events and lists are compared, in both directions, and the first differing record is
// found. Definitions take most of the time, so events are changed one by one before the lists are built, and all at
// once afterwards.
func TestParityFindsDifferences(t *testing.T) {
	if testing.Short() {
		t.Skip("compares by SQL, one wrong row after the other")
	}
	t.Parallel()
	s := everyEvent()
	one := newGeneration(t)
	one.events(t, s.Records)
	two := another(t, one.ch, 2)
	two.events(t, s.Records)
	compare := func(live, fresh int32) *Parity {
		t.Helper()
		p, err := Compare(t.Context(), one.ch, live, fresh, nil)
		must(t, err)
		return p
	}
	differ := func(t *testing.T, p *Parity, first uint64, words ...string) {
		t.Helper()
		wantError(t, p.Err(), words...)
		if p.FirstSeq != first || p.Seq != s.Seq() {
			t.Errorf("the first difference is at seq %d of %d, want %d", p.FirstSeq, p.Seq, first)
		}
		text := p.String()
		found := strings.Contains(text, fmt.Sprintf("first difference: seq %d, ", first)) &&
			strings.Contains(text, " of block ")
		if !strings.Contains(text, "DIFFERENT") || first > 0 && !found {
			t.Errorf("it prints\n%s", text)
		}
		kept, again := new(Parity), ""
		if b, err := json.Marshal(p); err == nil && json.Unmarshal(b, kept) == nil {
			again = kept.String()
		}
		if again != text {
			t.Errorf("kept as JSON it prints\n%s", again)
		}
	}
	first := func(where string) (seq uint64) {
		t.Helper()
		must(t, one.conn.QueryRow(t.Context(), "SELECT min(seq) FROM events WHERE "+where).Scan(&seq))
		return seq
	}
	const update, remove = "ALTER TABLE events UPDATE ", "ALTER TABLE events DELETE WHERE "
	changes := []struct {
		change, where string
		words, lists  []string
	}{
		{update + "assets = assets + 1, partner = 8 WHERE ", "effect = 'deposit' AND id = 2",
			[]string{"events: rows: ", "totals by vault: generation ", "totals by partner: generation ",
				"totals by user: generation "},
			[]string{"deposited", "totals", "vault_events"}},
		{update + "assets = assets + 1 WHERE ", "effect = 'requested' AND id > 1",
			[]string{"events: rows: ", "totals by vault: "},
			[]string{"requests"}},
		{remove, "effect = 'valuation'", []string{"events: rows: generation "}, []string{"vault_events"}},
		{update + "id_to = 5 WHERE ", "effect = 'sweep'", []string{"events: rows: "}, []string{"vault_events"}},
		{update + "quarantined = 1 WHERE ", "event = 'NavUpdated'", []string{"events: rows: ", "quarantined logs: "}, nil},
		{update + "hash = toFixedString('x', 32) WHERE ", "record = 'block' AND seq > 3", []string{"events: rows: "},
			[]string{"blocks"}},
	}
	for i, c := range changes {
		t.Run(c.change+c.where, func(t *testing.T) {
			two.restores(t, "events")
			two.change(t, c.change+c.where)
			orders := [][2]int32{{1, 2}, {2, 1}}
			if c.change != remove { // else one generation has rows that the other one lacks
				orders = orders[i%2 : i%2+1]
			}
			for _, order := range orders {
				differ(t, compare(order[0], order[1]), first(c.where), c.words...)
			}
		})
	}
	one.build(t)
	if p := compare(1, 2); p.Err() != nil || p.Seq != s.Seq() ||
		!strings.Contains(p.String(), "generation 2: lists: not built yet") ||
		!strings.Contains(p.String(), "generation 1: requests: the definition") {
		t.Errorf("a generation whose lists are not built:\n%s", p)
	}
	two.build(t)
	if p := compare(1, 2); p.Err() != nil || p.FirstSeq != 0 || strings.Contains(p.String(), "not built") {
		t.Errorf("two equal generations:\n%s", p)
	}
	t.Run("events, and lists that were built before", func(t *testing.T) {
		two.restores(t, "events")
		lowest, words := s.Seq(), []string{}
		for _, c := range changes {
			if c.lists == nil { // it changes rows that another change deletes
				continue
			}
			lowest = min(lowest, first(c.where))
			two.change(t, c.change+c.where)
			words = append(words, c.words...)
			for _, list := range c.lists {
				words = append(words, "generation 2: "+list+": the definition")
			}
		}
		differ(t, compare(1, 2), lowest, words...)
	})
	t.Run("lists", func(t *testing.T) {
		two.restores(t, "lists")
		two.change(t, "ALTER TABLE lists UPDATE ts = 1 WHERE list = 'deposited'",
			"ALTER TABLE lists UPDATE rewrites = 9 WHERE list = 'cursor'",
			"ALTER TABLE lists UPDATE ts = 1 WHERE list = 'cursor_end'")
		differ(t, compare(2, 1), 0, "generation 2: deposited: the definition", "generation 2: cursor: the definition",
			"generation 2: cursor_end: the definition")
	})
	// The writer of a row does not matter, and a generation that is behind is compared up to its position.
	three := another(t, one.ch, 3)
	units := histories.Units(s.Records)
	behind := slices.Concat(units[:len(units)-2]...)
	three.events(t, behind)
	three.change(t, "ALTER TABLE events UPDATE writer = 9 WHERE 1")
	if p := compare(1, 3); p.Err() != nil || p.Seq != uint64(len(behind)) {
		t.Errorf("a generation that is behind:\n%s", p)
	}
}

// TestParityShowsEarlierEvents: for the first difference, the report contains the subject of the log and the earlier
// events of its user, from both generations.
func TestParityShowsEarlierEvents(t *testing.T) {
	t.Parallel()
	s := everyEvent()
	one := filled(t, s.Records)
	two := another(t, one.ch, 2)
	two.events(t, s.Records)
	two.change(t, "ALTER TABLE events UPDATE assets = 13 WHERE effect = 'claimed'")
	p, err := Compare(t.Context(), one.ch, 1, 2, nil)
	must(t, err)
	text := p.String()
	for _, words := range []string{"first difference: seq ", "WithdrawalClaimed of block 4", "generation 1: events: seq ",
		", claimed, vault ", "assets 12", "generation 2: ", "assets 13", ", requested, vault ", ", deposit, vault "} {
		if !strings.Contains(text, words) {
			t.Errorf("the report lacks %q:\n%s", words, text)
		}
	}
}
