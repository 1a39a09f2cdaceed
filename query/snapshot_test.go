package query

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// TestLeavingGenerations: the status names a generation for as long as an answer
// that was begun before a switch may be reading it.
func TestLeavingGenerations(t *testing.T) {
	w := newFixture(t)
	want := func(leaving string) {
		t.Helper()
		if got := fmt.Sprint(w.Status().(Status).Leaving); got != leaving {
			t.Errorf("leaving %s, want %s", got, leaving)
		}
	}
	want("[]")
	was := *w.snapshot.Load()
	next := was
	next.id++
	w.show(&was)
	want("[]")
	w.show(&next)
	limit := w.cfg.WriteTimeout
	want(fmt.Sprintf("[{%d %d}]", was.id, limit.Milliseconds()))
	w.clock.add(time.Second)
	w.show(nil) // no generation is live
	want(fmt.Sprintf("[{%d %d} {%d %d}]", was.id, (limit - time.Second).Milliseconds(), next.id, limit.Milliseconds()))
	w.clock.add(limit - time.Second)
	want(fmt.Sprintf("[{%d 1000}]", next.id))
	w.clock.add(time.Second)
	want("[]")
}

// TestUnlikeAssetsAreWarnedOf: once, and not while all have the same decimals.
func TestUnlikeAssetsAreWarnedOf(t *testing.T) {
	w := newFixture(t)
	const warning = "differ in decimals"
	if strings.Contains(w.log.String(), warning) {
		t.Error("warned of equal decimals")
	}
	third := vaultMeta(vaultC, "Gamma", 12)
	third.meta.Asset.Decimals = 18
	w.ledger.append(third, fact{kind: aBlock, block: 12})
	w.publish()
	w.ledger.append(fact{kind: aBlock, block: 13})
	w.publish()
	if n := strings.Count(w.log.String(), warning); n != 1 {
		t.Errorf("warned %d times", n)
	}
}

// TestNeededBounds: a bound that every row meets is left out, and no other.
func TestNeededBounds(t *testing.T) {
	all := []string{sqlUserDeposits.page, sqlNavs.page, sqlVaultMoves}
	for _, b := range bounds {
		found := false
		for _, question := range all {
			if !strings.Contains(question, b.condition) {
				continue
			}
			found = true
			kept := needed(question, []param{named(b.name, "another value"), named("other", b.value), named("list", []uint32{1})})
			if kept != question {
				t.Errorf("%s: left out with another value", b.name)
			}
			if left := needed(question, []param{named("list", []uint32{1}), named(b.name, b.value)}); strings.Contains(left, "{"+b.name+":") {
				t.Errorf("%s: not left out of %s", b.name, left)
			}
		}
		if !found {
			t.Errorf("no question says %q: the bound is written in another way now", b.condition)
		}
	}
}

// TestVaultWithoutNavsForLong: what a look at the newest state reads does not
// grow with how long ago a vault had its last NAV.
func TestVaultWithoutNavsForLong(t *testing.T) {
	w := newFixture(t)
	const many = 20_000
	err := w.writer.Exec(t.Context(), fmt.Sprintf(`INSERT INTO %[1]s.navs SELECT n.* REPLACE (unhex('%[2]x') AS vault, 12 + number AS block)
		FROM %[1]s.navs AS n, numbers(%[3]d) AS m WHERE n.vault = unhex('%[4]x') AND n.block = 3`, w.database(), vaultB, many, vaultA))
	if err != nil {
		t.Fatal(err)
	}
	p := w.snapshot.Load().pin()
	p.block = 12 + many
	read := uint64(0)
	ctx := clickhouse.Context(t.Context(), clickhouse.WithProgress(func(p *clickhouse.Progress) { read += p.Rows }))
	navs, err := readLatestNavs(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "blocks", []any{navs[vaultA].Block, navs[vaultB].Block}, []any{10, 11 + many})
	if read == 0 || read > many/2 {
		t.Errorf("read %d rows to find two NAVs", read)
	}
}

// TestNavsTakenBack: more NAVs than are looked at at once were taken back, and
// the one before them is shown.
func TestNavsTakenBack(t *testing.T) {
	w := newFixture(t)
	for block := uint64(12); block < 12+placesAtOnce+10; block++ {
		w.ledger.add(fact{kind: aNav, vault: vaultA, price: 7, assets: 1, supply: 1, block: block, tx: tx(1)}, 0)
	}
	w.ledger.retract(11)
	w.ledger.append(fact{kind: aBlock, block: 3 * navsLately})
	w.publish()
	for _, path := range []string{"", fmt.Sprintf("?asOfBlock=%d", 3*navsLately-1)} {
		first := w.get("/api/v1/vaults" + path).data(t).([]any)[0].(object)
		same(t, "in the list "+path, first["navPerShare"], "1050000000000000000")
		same(t, "alone "+path, w.get("/api/v1/vaults/" + vaultA.Hex() + path).data(t).(object)["navPerShare"], "1050000000000000000")
	}
}

// TestLiterals: a value is written as a literal of the type that the question
// names, and nothing else gets into its text.
func TestLiterals(t *testing.T) {
	const every = "{a:UInt64} {b:UInt32} {c:Int64} {d:OneOf(UInt32)} {g:OneOf(UInt32)} {e:FixedString(20)} {f:String} {db:Identifier}.x {a:UInt64}"
	values := []param{named("a", uint64(math.MaxUint64)), named("b", uint32(7)), named("c", int64(-1)), named("d", []uint32{1, 2}), named("g", []uint32{3}),
		named("e", vaultA), named("f", "queued"), named("db", "navlog_g1")}
	got, err := withValues(every, values)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the question", got, fmt.Sprintf("18446744073709551615 7 -1 IN (1,2) = 3 x'%x' 'queued' navlog_g1.x 18446744073709551615", vaultA[:]))
	for _, wrong := range []struct {
		question string
		value    any
	}{
		{"{v:String}", "x' OR 1"}, {"{v:String}", `x\`}, {"{v:String}", ""}, {"{v:Identifier}", "a.b"}, {"{v:Identifier}", "a b"},
		{"{v:UInt64}", "1"}, {"{v:UInt64}", int64(1)}, {"{v:UInt64}", uint32(1)}, {"{v:Int64}", uint64(1)}, {"{v:UInt32}", 1},
		{"{v:OneOf(UInt32)}", []uint32{}}, {"{v:OneOf(UInt32)}", uint32(1)}, {"{v:Array(UInt32)}", []uint32{1}}, {"{v:FixedString(20)}", "0x00"}, {"{v:FixedString(20)}", anyVault{}},
		{"{v:String}", vaultA}, {"{v:String}", nil}, {"{other:UInt64}", uint64(1)},
	} {
		if got, err := withValues("SELECT "+wrong.question, []param{named("v", wrong.value)}); err == nil {
			t.Errorf("%s with %T %v is %q, should be an error", wrong.question, wrong.value, wrong.value, got)
		}
	}
}

// TestQuestionsComeFirst: an answer that somebody waits for goes before what the
// engine writes, and what is read ahead of requests does not.
func TestQuestionsComeFirst(t *testing.T) {
	g := newFixture(t).snapshot.Load().generation
	for want, ctx := range map[int32]context.Context{questionNice: t.Context(), 0: withReadAhead(t.Context())} {
		type row struct {
			Nice int32 `ch:"nice"`
		}
		got, err := ask[row](ctx, g, "SELECT toInt32(getSetting('os_threads_nice_value_query')) AS nice")
		if err != nil {
			t.Fatal(err)
		}
		same(t, "priority", int(got[0].Nice), int(want))
	}
}
