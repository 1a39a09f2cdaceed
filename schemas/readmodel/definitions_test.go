package readmodel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/navlog/navlog/schemas/readmodel"
)

// facts are rows made by hand. Vaults and users have names of a letter or two, all
// amounts are small, and a log's time is ten times its block.
type facts struct{ deposits, events []string }

// deposit adds a fact; retracts is the seq of the one that it takes back, 0 for an
// appended one.
func (f *facts) deposit(seq, retracts int, vault, user string, partner, assets, block, index int) {
	f.deposits = append(f.deposits, fmt.Sprintf("(%d, %d, %d, '%s', '%s', %d, %d, %d, %d, %d)", seq, signOf(retracts), retracts, vault, user, partner, assets, block, 10*block, index))
}

func (f *facts) event(seq, retracts int, kind, vault string, request int, user string, assets, block, index int) {
	f.events = append(f.events, fmt.Sprintf("(%d, %d, %d, '%s', '%s', %d, '%s', %d, 77, %d, %d, %d)", seq, signOf(retracts), retracts, kind, vault, request, user, assets, block, 10*block, index))
}

func signOf(retracts int) int {
	if retracts > 0 {
		return -1
	}
	return 1
}

var definedLines = map[string]string{
	readmodel.Withdrawals:   "toString(list), toStringCutToZero(user), toString(key), toString(requested_log), toStringCutToZero(vault), toString(request_index), toStringCutToZero(owner), toString(estimate), toString(expires_ts), toString(requested_block), toString(funded_block), toString(closed_block), toString(closed_by)",
	readmodel.Users:         "toString(list), toStringCutToZero(vault), toString(partner), toString(key), toStringCutToZero(user), toString(first_block), toString(first_ts), toString(deposited), toString(withdrawn)",
	readmodel.PartnerTotals: "toString(partner), toStringCutToZero(vault), toString(from_block), toString(until_block), toString(deposits), toString(volume)",
}

// defined gives the rows of a definition as of a seq, in words and sorted.
func (g *generation) defined(t *testing.T, table string, seq uint64) (lines []string) {
	t.Helper()
	rows, err := g.conn.Query(readmodel.Parameters(t.Context(), map[string]uint64{"seq": seq}),
		"SELECT concatWithSeparator(' ', "+definedLines[table]+") AS line FROM ("+readmodel.Definition(table)+") ORDER BY line")
	must(t, err)
	defer rows.Close()
	for rows.Next() {
		var line string
		must(t, rows.Scan(&line))
		lines = append(lines, strings.ReplaceAll(line, fmt.Sprint(readmodel.Never), "never"))
	}
	must(t, rows.Err())
	slices.Sort(lines)
	return lines
}

// generation makes one of the facts.
func (f *facts) generation(t *testing.T) *generation {
	t.Helper()
	g := create(t)
	if len(f.deposits) > 0 {
		g.do(t, "INSERT INTO deposits (seq, sign, retracts, vault, user, partner, assets, block, ts, log_index) VALUES "+strings.Join(f.deposits, ", "))
	}
	if len(f.events) > 0 {
		g.do(t, "INSERT INTO withdrawal_events (seq, sign, retracts, kind, vault, request_index, user, assets, expires_ts, block, ts, log_index) VALUES "+strings.Join(f.events, ", "))
	}
	return g
}

func (g *generation) wantDefined(t *testing.T, table string, seq uint64, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := g.defined(t, table, seq); !slices.Equal(got, want) {
		t.Errorf("%s as of seq %d is\n%s\nand must be\n%s", table, seq, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// requests are the rows of withdrawals for some requests, in both lists: vault, index,
// owner, estimate, expiry, block and log of the request, blocks of its funding and its
// end, and what ended it.
func requests(of ...string) (rows []string) {
	for _, r := range of {
		f := strings.Fields(r + " ")
		vault, index, owner, estimate, expires, block, log, funded, closed := f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8]
		by := strings.Join(f[9:], "")
		end := strings.Join([]string{log, vault, index, owner, estimate, expires, block, funded, closed, by}, " ")
		rows = append(rows, "queue  "+closed+" "+end, "user "+owner+" "+block+" "+end)
	}
	return rows
}

// TestDefinitionOfWithdrawals: from when to when a request is what, on every branch.
func TestDefinitionOfWithdrawals(t *testing.T) {
	t.Parallel()
	var f facts
	// A request that is funded and claimed, and one that is cancelled in its own block.
	f.event(1, 0, "requested", "a", 0, "u", 100, 1, 4)
	f.event(2, 0, "requested", "a", 1, "v", 50, 2, 0)
	f.event(3, 0, "cancelled", "a", 1, "v", 0, 2, 1)
	f.event(4, 0, "funded", "a", 0, "u", 99, 3, 0)
	f.event(5, 0, "claimed", "a", 0, "u", 99, 5, 0)
	// A reorganisation takes the claim and the funding back, another branch cancels,
	// and a third one has the two again, later.
	f.event(6, 5, "claimed", "a", 0, "u", 99, 5, 0)
	f.event(7, 4, "funded", "a", 0, "u", 99, 3, 0)
	f.event(8, 0, "cancelled", "a", 0, "u", 0, 4, 0)
	f.event(9, 8, "cancelled", "a", 0, "u", 0, 4, 0)
	f.event(10, 0, "funded", "a", 0, "u", 99, 4, 0)
	f.event(11, 0, "claimed", "a", 0, "u", 99, 6, 0)
	g := f.generation(t)
	cancelled := "a 1 v 50 77 2 0 never 2 cancelled"
	for seq, want := range map[uint64][]string{
		0: nil, 1: {"a 0 u 100 77 1 4 never never"},
		4: {"a 0 u 100 77 1 4 3 never", cancelled}, 5: {"a 0 u 100 77 1 4 3 5 claimed", cancelled},
		6: {"a 0 u 100 77 1 4 3 never", cancelled}, 7: {"a 0 u 100 77 1 4 never never", cancelled}, 8: {"a 0 u 100 77 1 4 never 4 cancelled", cancelled},
		9: {"a 0 u 100 77 1 4 never never", cancelled}, 11: {"a 0 u 100 77 1 4 4 6 claimed", cancelled},
	} {
		g.wantDefined(t, readmodel.Withdrawals, seq, requests(want...)...)
	}
}

// TestDefinitionOfRequestsThereAndBack: a request that a reorganisation takes back
// is asked for otherwise, and then as before.
func TestDefinitionOfRequestsThereAndBack(t *testing.T) {
	t.Parallel()
	var f facts
	f.event(1, 0, "requested", "a", 0, "u", 100, 5, 0)
	f.event(2, 0, "funded", "a", 0, "u", 100, 6, 0)
	f.event(3, 2, "funded", "a", 0, "u", 100, 6, 0)
	f.event(4, 1, "requested", "a", 0, "u", 100, 5, 0)
	f.event(5, 0, "requested", "a", 0, "v", 30, 5, 2)
	f.event(6, 5, "requested", "a", 0, "v", 30, 5, 2)
	f.event(7, 0, "requested", "a", 0, "u", 100, 5, 0)
	f.event(8, 0, "funded", "a", 0, "u", 100, 6, 0)
	g := f.generation(t)
	for seq, want := range map[uint64][]string{
		2: {"a 0 u 100 77 5 0 6 never"}, 4: nil, 5: {"a 0 v 30 77 5 2 never never"}, 6: nil, 8: {"a 0 u 100 77 5 0 6 never"},
	} {
		g.wantDefined(t, readmodel.Withdrawals, seq, requests(want...)...)
	}
}

// TestDefinitionOfImpossibleRequests: the first request of an index wins, its first
// end is final, and nothing before the one or after the other changes anything.
func TestDefinitionOfImpossibleRequests(t *testing.T) {
	t.Parallel()
	var f facts
	seq := 0
	add := func(request int, kind string, assets, block, index int) {
		seq++
		f.event(seq, 0, kind, "a", request, "u", assets, block, index)
	}
	add(0, "claimed", 1, 1, 0) // unknown for ever
	add(1, "funded", 1, 1, 1)  // before it is asked for
	add(1, "cancelled", 1, 1, 2)
	add(1, "requested", 10, 2, 0)
	add(2, "requested", 20, 2, 1) // twice: the first one counts
	add(2, "requested", 21, 2, 2)
	add(2, "funded", 1, 3, 0) // twice
	add(2, "funded", 1, 4, 0)
	add(2, "claimed", 1, 5, 0) // three ends
	add(2, "expired", 1, 6, 0)
	add(2, "claimed", 1, 7, 0)
	add(3, "requested", 30, 2, 3)
	add(3, "expired", 1, 3, 1)
	add(3, "funded", 1, 3, 2)     // after it expired, in the same block
	add(3, "requested", 31, 4, 1) // and once more
	add(4, "requested", 40, 2, 4)
	add(4, "funded", 1, 8, 0) // and over in the same block
	add(4, "claimed", 1, 8, 1)
	add(5, "requested", 50, 300, 9) // in a block with a higher number and a lower index than the next
	add(5, "requested", 51, 299, 4_000_000_000)
	g := f.generation(t)
	g.wantDefined(t, readmodel.Withdrawals, uint64(seq),
		requests("a 1 u 10 77 2 0 never never", "a 2 u 20 77 2 1 3 5 claimed", "a 3 u 30 77 2 3 never 3 expired", "a 4 u 40 77 2 4 8 8 claimed", "a 5 u 51 77 299 4000000000 never never")...)
}

// TestDefinitionOfUsers: list, vault, partner, key, user, block and time since
// when, deposited and withdrawn.
func TestDefinitionOfUsers(t *testing.T) {
	t.Parallel()
	var f facts
	f.deposit(1, 0, "a", "u", 7, 100, 1, 0)
	f.deposit(2, 0, "b", "u", 0, 20, 2, 0)
	f.event(3, 0, "requested", "b", 0, "v", 50, 2, 1)
	f.event(4, 0, "claimed", "a", 9, "w", 5, 3, 0) // who only claimed is no user
	f.event(5, 0, "claimed", "b", 0, "v", 44, 3, 1)
	f.deposit(6, 0, "a", "v", 7, 1, 4, 0)
	// All from block 2 on goes, and v comes to vault a only.
	f.deposit(7, 6, "a", "v", 7, 1, 4, 0)
	f.event(8, 5, "claimed", "b", 0, "v", 44, 3, 1)
	f.event(9, 4, "claimed", "a", 9, "w", 5, 3, 0)
	f.event(10, 3, "requested", "b", 0, "v", 50, 2, 1)
	f.deposit(11, 2, "b", "u", 0, 20, 2, 0)
	f.deposit(12, 0, "a", "v", 7, 3, 3, 0)
	// There and back: u's first deposit is gone, and comes again.
	f.deposit(13, 12, "a", "v", 7, 3, 3, 0)
	f.deposit(14, 1, "a", "u", 7, 100, 1, 0)
	f.deposit(15, 0, "a", "u", 7, 100, 1, 0)
	g := f.generation(t)
	u := func(deposited int) []string {
		return []string{fmt.Sprintf("member  0 0 u 1 10 %d 0", deposited), "first  0 1 u 1 10 0 0", fmt.Sprintf("deposited  0 %d u 1 10 %d 0", deposited, deposited),
			fmt.Sprintf("withdrawn  0 0 u 1 10 %d 0", deposited), "member a 0 0 u 1 10 0 0", "member  7 0 u 1 10 0 0"}
	}
	v := func(since, deposited, withdrawn int) []string {
		at := fmt.Sprintf("%d %d", since, 10*since)
		return []string{fmt.Sprintf("member  0 0 v %s %d %d", at, deposited, withdrawn), fmt.Sprintf("first  0 %d v %s 0 0", since, at),
			fmt.Sprintf("deposited  0 %d v %s %d %d", deposited, at, deposited, withdrawn), fmt.Sprintf("withdrawn  0 %d v %s %d %d", withdrawn, at, deposited, withdrawn)}
	}
	for seq, want := range map[uint64][]string{
		1: u(100),
		3: slices.Concat(u(120), []string{"member b 0 0 u 2 20 0 0"}, v(2, 0, 0), []string{"member b 0 0 v 2 20 0 0"}),
		6: slices.Concat(u(120), []string{"member b 0 0 u 2 20 0 0"}, v(2, 1, 44), []string{"member b 0 0 v 2 20 0 0", "member a 0 0 v 4 40 0 0", "member  7 0 v 4 40 0 0"},
			[]string{"member  0 0 w never 0 0 5"}),
		11: u(100),
		12: slices.Concat(u(100), v(3, 3, 0), []string{"member a 0 0 v 3 30 0 0", "member  7 0 v 3 30 0 0"}),
		14: nil,
		15: u(100),
	} {
		g.wantDefined(t, readmodel.Users, seq, want...)
	}
}

// TestDefinitionOfEqualLogs: equal logs of one block, of which one is taken
// back, and somebody who claimed nothing.
func TestDefinitionOfEqualLogs(t *testing.T) {
	t.Parallel()
	var f facts
	f.deposit(1, 0, "a", "u", 7, 5, 1, 0)
	f.deposit(2, 0, "a", "u", 7, 5, 1, 1)
	f.deposit(3, 2, "a", "u", 7, 5, 1, 1)
	f.event(4, 0, "claimed", "a", 0, "w", 0, 1, 2) // nothing
	g := f.generation(t)
	g.wantDefined(t, readmodel.Users, 4, "member  0 0 u 1 10 5 0", "first  0 1 u 1 10 0 0", "deposited  0 5 u 1 10 5 0", "withdrawn  0 0 u 1 10 5 0", "member a 0 0 u 1 10 0 0", "member  7 0 u 1 10 0 0")
	g.wantDefined(t, readmodel.PartnerTotals, 4, "7 a 1 never 1 5")
}

// TestDefinitionOfPartnerTotals: partner, vault, from and until which block, how
// many deposits and their volume.
func TestDefinitionOfPartnerTotals(t *testing.T) {
	t.Parallel()
	var f facts
	f.deposit(1, 0, "a", "u", 7, 100, 1, 0)
	f.deposit(2, 0, "a", "v", 7, 20, 1, 1) // one row for both
	f.deposit(3, 0, "a", "u", 0, 9, 2, 0)  // through no partner
	f.deposit(4, 0, "b", "u", 7, 3, 2, 1)
	f.deposit(5, 0, "a", "u", 7, 0, 3, 0) // of nothing, and it is one
	f.deposit(6, 0, "a", "u", 8, 1, 3, 1)
	f.deposit(7, 0, "a", "u", 7, 5, 6, 0)
	// Back to block 2, and another branch; then the first one again.
	f.deposit(8, 7, "a", "u", 7, 5, 6, 0)
	f.deposit(9, 6, "a", "u", 8, 1, 3, 1)
	f.deposit(10, 5, "a", "u", 7, 0, 3, 0)
	f.deposit(11, 0, "a", "u", 7, 1, 4, 0)
	f.deposit(12, 11, "a", "u", 7, 1, 4, 0)
	f.deposit(13, 0, "a", "u", 7, 0, 3, 0)
	f.deposit(14, 0, "a", "u", 8, 1, 3, 1)
	f.deposit(15, 0, "a", "u", 7, 5, 6, 0)
	g := f.generation(t)
	first := []string{"7 a 1 3 2 120", "7 a 3 6 3 120", "7 a 6 never 4 125", "7 b 2 never 1 3", "8 a 3 never 1 1"}
	for seq, want := range map[uint64][]string{
		1: {"7 a 1 never 1 100"}, 2: {"7 a 1 never 2 120"}, 4: {"7 a 1 never 2 120", "7 b 2 never 1 3"},
		7:  first,
		10: {"7 a 1 never 2 120", "7 b 2 never 1 3"},
		11: {"7 a 1 4 2 120", "7 a 4 never 3 121", "7 b 2 never 1 3"},
		15: first,
	} {
		g.wantDefined(t, readmodel.PartnerTotals, seq, want...)
	}
}
