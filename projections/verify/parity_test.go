package verify

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/navlog/navlog/deploy/testkit/histories"
)

// TestParityFindsDifferences: each table is compared, in both directions, and the
// first record that differs is found.
func TestParityFindsDifferences(t *testing.T) {
	if testing.Short() {
		t.Skip("compares by SQL, one wrong row after the other")
	}
	t.Parallel()
	s := everyEvent()
	one := filled(t, s.Records)
	two := another(t, one.ch, 2)
	two.build(t, s.Records)
	sides := []Side{{1, one.conn}, {2, two.conn}}
	compare := func(live, fresh Side) *Parity {
		t.Helper()
		p, err := Compare(t.Context(), live, fresh, nil)
		must(t, err)
		return p
	}
	if p := compare(sides[0], sides[1]); p.Err() != nil || p.Seq != s.Seq() || !strings.Contains(p.String(), "generation 2: users: not derived yet") || !strings.Contains(p.String(), "generation 1: users: its definition") {
		t.Errorf("a generation that is built:\n%s", p)
	}
	two.derive(t)
	if p := compare(sides[0], sides[1]); p.Err() != nil || p.FirstSeq != 0 || strings.Contains(p.String(), "not derived") {
		t.Errorf("two equal generations:\n%s", p)
	}
	first := func(table, of string) (seq uint64) {
		t.Helper()
		must(t, one.conn.QueryRow(t.Context(), "SELECT min(seq) FROM "+table+" WHERE "+of).Scan(&seq))
		return seq
	}
	for _, c := range []struct {
		table, change string
		seq           uint64
		words         []string
	}{
		{"deposits", "ALTER TABLE deposits UPDATE assets = assets + 1, partner = 8 WHERE deposit_id = 2", first("deposits", "deposit_id = 2"),
			[]string{"deposits: rows: ", "totals by vault: generation ", "totals by partner: generation ", "generation 2: users: its definition", "generation 2: partner_totals: its definition"}},
		{"withdrawal_events", "ALTER TABLE withdrawal_events UPDATE assets = assets + 1 WHERE kind = 'requested' AND request_index > 1", first("withdrawal_events", "request_index = 2"),
			[]string{"withdrawal_events: rows: ", "totals by vault: ", "generation 2: withdrawals: its definition"}},
		{"navs", "ALTER TABLE navs DELETE WHERE 1", first("navs", "1"), []string{"navs: rows: generation ", "has 0"}},
		{"sweeps", "ALTER TABLE sweeps UPDATE to_id = 5 WHERE 1", first("sweeps", "1"), []string{"sweeps: rows: "}},
		{"records", "ALTER TABLE records UPDATE quarantined = 1 WHERE event = 'NavUpdated'", first("records", "event = 'NavUpdated'"),
			[]string{"records: rows: ", "quarantined logs: "}},
		{"records", "ALTER TABLE records UPDATE hash = toFixedString('x', 32) WHERE kind = 'block' AND seq > 3", first("records", "kind = 'block' AND seq > 3"), []string{"records: rows: "}},
		{"users", "ALTER TABLE users UPDATE deposited = 1 WHERE list = 'deposited'", 0, []string{"generation 2: users: its definition"}},
	} {
		t.Run(c.change, func(t *testing.T) {
			two.restores(t, c.table)
			two.change(t, c.change)
			for _, order := range [][2]Side{{sides[0], sides[1]}, {sides[1], sides[0]}} {
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
	// Who wrote a row is no difference, and a generation that is behind is compared as
	// far as it goes.
	three := another(t, one.ch, 3)
	units := histories.Units(s.Records)
	behind := slices.Concat(units[:len(units)-2]...)
	three.build(t, behind)
	three.change(t, "ALTER TABLE records UPDATE writer = 9 WHERE 1", "ALTER TABLE deposits UPDATE writer = 9 WHERE 1")
	if p := compare(sides[0], Side{3, three.conn}); p.Err() != nil || p.Seq != uint64(len(behind)) {
		t.Errorf("a generation that is behind:\n%s", p)
	}
}

// TestParityTellsWhatWasBefore: what the log of the first difference is about, and
// what its user did before, is told of both.
func TestParityTellsWhatWasBefore(t *testing.T) {
	t.Parallel()
	s := everyEvent()
	one := filled(t, s.Records)
	two := another(t, one.ch, 2)
	two.build(t, s.Records)
	two.change(t, "ALTER TABLE withdrawal_events UPDATE assets = 13 WHERE kind = 'claimed'")
	p, err := Compare(t.Context(), Side{1, one.conn}, Side{2, two.conn}, nil)
	must(t, err)
	text := p.String()
	for _, words := range []string{"first difference: seq ", "WithdrawalClaimed of block 4", "generation 1: withdrawal_events: seq ", "claimed, user ", "assets 12", "generation 2: ", "assets 13", "requested", "generation 1: deposits: seq "} {
		if !strings.Contains(text, words) {
			t.Errorf("%q is not told:\n%s", words, text)
		}
	}
}
