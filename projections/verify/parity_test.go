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
// found.
func TestParityFindsDifferences(t *testing.T) {
	if testing.Short() {
		t.Skip("compares by SQL, one wrong row after the other")
	}
	t.Parallel()
	s := everyEvent()
	one := filled(t, s.Records)
	two := another(t, one.ch, 2)
	two.events(t, s.Records)
	compare := func(live, fresh int32) *Parity {
		t.Helper()
		p, err := Compare(t.Context(), one.ch, live, fresh, nil)
		must(t, err)
		return p
	}
	if p := compare(1, 2); p.Err() != nil || p.Seq != s.Seq() || !strings.Contains(p.String(), "generation 2: lists: not built yet") || !strings.Contains(p.String(), "generation 1: requests: the definition") {
		t.Errorf("a generation whose lists are not built:\n%s", p)
	}
	two.build(t)
	if p := compare(1, 2); p.Err() != nil || p.FirstSeq != 0 || strings.Contains(p.String(), "not built") {
		t.Errorf("two equal generations:\n%s", p)
	}
	first := func(of string) (seq uint64) {
		t.Helper()
		must(t, one.conn.QueryRow(t.Context(), "SELECT min(seq) FROM events WHERE "+of).Scan(&seq))
		return seq
	}
	for i, c := range []struct {
		table, change string
		seq           uint64
		words         []string
	}{
		{"events", "ALTER TABLE events UPDATE assets = assets + 1, partner = 8 WHERE effect = 'deposit' AND id = 2", first("effect = 'deposit' AND id = 2"),
			[]string{"events: rows: ", "totals by vault: generation ", "totals by partner: generation ", "totals by user: generation ",
				"generation 2: deposited: the definition", "generation 2: totals: the definition", "generation 2: vault_events: the definition"}},
		{"events", "ALTER TABLE events UPDATE assets = assets + 1 WHERE effect = 'requested' AND id > 1", first("effect = 'requested' AND id = 2"),
			[]string{"events: rows: ", "totals by vault: ", "generation 2: requests: the definition"}},
		{"events", "ALTER TABLE events DELETE WHERE effect = 'valuation'", first("effect = 'valuation'"), []string{"events: rows: generation ", "generation 2: vault_events: the definition"}},
		{"events", "ALTER TABLE events UPDATE id_to = 5 WHERE effect = 'sweep'", first("effect = 'sweep'"), []string{"events: rows: ", "generation 2: vault_events: the definition"}},
		{"events", "ALTER TABLE events UPDATE quarantined = 1 WHERE event = 'NavUpdated'", first("event = 'NavUpdated'"),
			[]string{"events: rows: ", "quarantined logs: "}},
		{"events", "ALTER TABLE events UPDATE hash = toFixedString('x', 32) WHERE record = 'block' AND seq > 3", first("record = 'block' AND seq > 3"),
			[]string{"events: rows: ", "generation 2: blocks: the definition"}},
		{"lists", "ALTER TABLE lists UPDATE ts = 1 WHERE list = 'deposited'", 0, []string{"generation 2: deposited: the definition"}},
		{"lists", "ALTER TABLE lists UPDATE rewrites = 9 WHERE list = 'cursor'", 0, []string{"generation 2: cursor: the definition"}},
		{"lists", "ALTER TABLE lists UPDATE ts = 1 WHERE list = 'cursor_end'", 0, []string{"generation 2: cursor_end: the definition"}},
	} {
		t.Run(c.change, func(t *testing.T) {
			two.restores(t, c.table)
			two.change(t, c.change)
			orders := [][2]int32{{1, 2}, {2, 1}}
			if !strings.Contains(c.change, "DELETE") { // else one generation has rows that the other one lacks
				orders = orders[i%2 : i%2+1]
			}
			for _, order := range orders {
				p := compare(order[0], order[1])
				wantError(t, p.Err(), c.words...)
				if p.FirstSeq != c.seq || p.Seq != s.Seq() {
					t.Errorf("the first difference is at seq %d of %d, want %d", p.FirstSeq, p.Seq, c.seq)
				}
				text := p.String()
				if !strings.Contains(text, "DIFFERENT") || c.seq > 0 && (!strings.Contains(text, fmt.Sprintf("first difference: seq %d, ", c.seq)) || !strings.Contains(text, " of block ")) {
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
		})
	}
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

// TestParityTellsWhatWasBefore: for the first difference, the report contains the subject of the log and the earlier
// events of its user, from both generations.
func TestParityTellsWhatWasBefore(t *testing.T) {
	t.Parallel()
	s := everyEvent()
	one := filled(t, s.Records)
	two := another(t, one.ch, 2)
	two.events(t, s.Records)
	two.change(t, "ALTER TABLE events UPDATE assets = 13 WHERE effect = 'claimed'")
	p, err := Compare(t.Context(), one.ch, 1, 2, nil)
	must(t, err)
	text := p.String()
	for _, words := range []string{"first difference: seq ", "WithdrawalClaimed of block 4", "generation 1: events: seq ", ", claimed, vault ", "assets 12", "generation 2: ", "assets 13", ", requested, vault ", ", deposit, vault "} {
		if !strings.Contains(text, words) {
			t.Errorf("%q is not told:\n%s", words, text)
		}
	}
}
