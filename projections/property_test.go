package projections

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/projections/fold"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
)

var (
	plays = flag.Int("histories", 6, "how many random histories TestRandomHistories plays")
	seed  = flag.Uint64("seed", 0, "seed of the first random history; 0: by the clock")
)

// TestRandomHistories plays random histories, cut into random batches, with a
// writer that crashes at random places and a state that forgets at random, and
// compares every table with the independent fold, at the newest block, at past
// blocks and at past seqs.
func TestRandomHistories(t *testing.T) {
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	for i := range uint64(*plays) {
		t.Run(fmt.Sprintf("seed=%d", first+i), func(t *testing.T) {
			t.Parallel() // the engine's disk is what takes time
			conn, database := newGeneration(t)
			rng := rand.New(rand.NewPCG(first+i, 1))
			s := randomHistory(rng, 30)
			play(t, rng, conn, database, s.Records)
			check(t, conn, database, s.Records, fold.Newest)
			for range 3 {
				check(t, conn, database, s.Records, s.First-1+rng.Uint64N(s.Number+3-s.First))
				check(t, conn, database, s.Records[:rng.IntN(len(s.Records)+1)], fold.Newest)
			}
		})
	}
}

// play writes records in random batches. Now and then only some of the tables
// get a batch and the writer is made anew, as after a crash.
func play(t *testing.T, rng *rand.Rand, conn driver.Conn, database string, records []*event.Record) {
	t.Helper()
	m, log := quiet()
	bound := 0 // forget as much as possible
	if rng.IntN(2) == 0 {
		bound = 1000
	}
	var w *writer
	for {
		if w == nil || rng.IntN(5) == 0 {
			var err error
			if w, err = openWriter(t.Context(), conn, database, atMost(bound), m, log); err != nil {
				t.Fatal(err)
			}
		}
		rest := units(records[w.position:])
		if len(rest) == 0 {
			return
		}
		var batch []*event.Record
		for _, unit := range rest[:1+rng.IntN(min(6, len(rest)))] {
			batch = append(batch, unit...)
		}
		if rng.IntN(4) == 0 {
			crash(t, rng, w, batch)
			w = nil
			continue
		}
		if err := w.write(t.Context(), entries(batch)); err != nil {
			t.Fatal(err)
		}
	}
}

// crash gives a batch to some of the tables only.
func crash(t *testing.T, rng *rand.Rand, w *writer, batch []*event.Record) {
	t.Helper()
	all := w.tables
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	w.tables = all[:rng.IntN(len(all)+1)]
	if err := w.write(t.Context(), entries(batch)); err != nil {
		t.Fatal(err)
	}
}

// check compares the tables with the fold of records, as of a block.
func check(t *testing.T, conn driver.Conn, database string, records []*event.Record, block uint64) {
	t.Helper()
	seq := uint64(len(records))
	v := verifier{conn: conn, report: &Report{Database: database, Seq: seq}, span: max(17, seq/16)}
	books := foldOf(t, records).Books(block)
	what := pastComparisons(books)
	if block == fold.Newest {
		what = append(comparisons(books), printsOf(t, records).comparison())
		for _, table := range readmodel.Tables {
			if err := v.rows(t.Context(), table); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range what {
		if err := v.compare(t.Context(), c, block); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.report.Err(); err != nil {
		t.Fatalf("as of block %d at seq %d:\n%v", block, len(records), err)
	}
}

// TestFoldVersion: whatever changes the rows that the fold gives for a log changes
// the schema too, so that no generation is continued by another fold.
func TestFoldVersion(t *testing.T) {
	t.Parallel()
	records := everyEvent().Records
	for seed := range uint64(4) {
		records = append(records, randomHistory(rand.New(rand.NewPCG(seed, 5)), 60).Records...)
	}
	log, rows := sha256.New(), sha256.New()
	var f folding
	for _, r := range records {
		if r.GetSeq() == 1 { // the next history begins
			f = folding{state: newState(true), out: newOutput(), impossible: func(string) {}, quarantined: func(string) {}}
		}
		value, err := proto.MarshalOptions{Deterministic: true}.Marshal(r)
		must(t, err)
		log.Write(value)
		f.out.reset()
		must(t, f.fold(entries([]*event.Record{r})))
		for _, table := range readmodel.Tables {
			for i, l := range f.out.table(table).layout {
				fmt.Fprintf(rows, "%s.%s %x %q\n", table, l.name, f.out.table(table).data[i], f.out.table(table).texts[i])
			}
		}
	}
	const wantLog = "888f5ee132d107b0"
	wantRows := map[int]string{1: "b71c90eb2e0dbdac", 2: "135c2affb36ff0a1"}
	if got := hex.EncodeToString(log.Sum(nil)[:8]); got != wantLog {
		t.Fatalf("the histories of this test changed, their hash is %s: set wantLog, and wantRows with rows of a fold that did not change", got)
	}
	if got := hex.EncodeToString(rows.Sum(nil)[:8]); got != wantRows[readmodel.FoldVersion] {
		t.Errorf("fold version %d gives rows with hash %s, want %s: the fold changed, so raise readmodel.FoldVersion and name that hash here beside the new version",
			readmodel.FoldVersion, got, wantRows[readmodel.FoldVersion])
	}
}

func printsOf(t *testing.T, records []*event.Record) (p prints) {
	t.Helper()
	for _, r := range records {
		value, err := proto.Marshal(r)
		must(t, err)
		p.add(r, value)
	}
	return p
}

// TestCutsDoNotMatter: the rows of a history are the same however it is cut.
func TestCutsDoNotMatter(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 7))
	s := randomHistory(rng, 40)
	folded := func(size int) *output {
		f := folding{state: newState(true), out: newOutput(), impossible: func(string) {}, quarantined: func(string) {}}
		for _, unit := range units(s.Records) {
			for len(unit) > 0 {
				n := min(size, len(unit))
				for x := range entries(unit[:n]).all() {
					if err := f.apply(x); err != nil {
						t.Fatal(err)
					}
				}
				unit = unit[n:]
			}
		}
		return f.out
	}
	one, all := folded(1), folded(1000)
	for _, table := range readmodel.Tables {
		a, b := one.table(table), all.table(table)
		if a.len() != b.len() || a.len() == 0 {
			t.Fatalf("%s: %d and %d rows", table, a.len(), b.len())
		}
		for i, l := range a.layout {
			if !bytes.Equal(a.data[i], b.data[i]) || !slices.Equal(a.texts[i], b.texts[i]) {
				t.Errorf("%s.%s differs", table, l.name)
			}
		}
	}
}

// TestWholeHistoryTakenBack: no sum and no count is left of a history that was
// taken back whole.
func TestWholeHistoryTakenBack(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 3))
	s := newScript()
	for range 12 {
		var logs []said
		for range 6 {
			logs = append(logs, anything(rng, 3, 4))
		}
		s.Mine(logs...)
	}
	s.Retract(len(s.Blocks))
	s.Boundary()
	conn, database := newGeneration(t)
	m, log := quiet()
	w, err := openWriter(t.Context(), conn, database, atMost(1000), m, log)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.write(t.Context(), entries(s.Records)); err != nil {
		t.Fatal(err)
	}
	for table, sums := range map[string]string{
		"records":  "sum(sign)",
		"deposits": "sum(sign) != 0 OR sum(sign * assets) != 0 OR sum(sign * shares) != 0 OR sum(partner_user) != 0",
		"flows":    "sum(deposits) != 0 OR sum(deposited) != 0 OR sum(requests) != 0 OR sum(estimated) != 0 OR sum(withdrawn) != 0 OR sum(vault_user) != 0 OR sum(first_ts) != 0",
		"rankings": "sum(users) != 0 OR sum(users * key) != 0 OR sum(users * reinterpretAsInt64(cityHash64(list, key, user))) != 0 OR sum(first) != 0 OR sum(deposited) != 0 OR sum(withdrawn) != 0",
		"requests": "sum(sign) != 0 OR sum(sign * estimate) != 0 OR sum(sign * assets) != 0 OR sum(open) != 0 OR sum(waiting) != 0 OR sum(waiting * estimate) != 0",
		"navs":     "sum(sign) != 0 OR sum(sign * total_assets) != 0",
		"sweeps":   "sum(sign) != 0 OR sum(sign * assets) != 0",
	} {
		if n := number(t, conn, fmt.Sprintf("SELECT count() FROM %s.%s WHERE sign != 0", database, table)); n == 0 {
			t.Errorf("%s: the history has no rows there, the test proves nothing", table)
		}
		if n := number(t, conn, fmt.Sprintf("SELECT toUInt64(%s) FROM %s.%s", sums, database, table)); n != 0 {
			t.Errorf("%s: something is left", table)
		}
	}
	if left := w.state; len(left.users) == 0 {
		t.Error("the state is empty, the test proves nothing")
	}
	check(t, conn, database, s.Records, fold.Newest)
}

// TestTablesApart: whatever table is ahead of the others after a crash, the
// replay gives each exactly what it lacks.
func TestTablesApart(t *testing.T) {
	t.Parallel()
	conn, database := newGeneration(t)
	m, log := quiet()
	s := randomHistory(rand.New(rand.NewPCG(11, 5)), 30)
	parts := units(s.Records)
	for i := range readmodel.Tables {
		w, err := openWriter(t.Context(), conn, database, atMost(0), m, log)
		if err != nil {
			t.Fatal(err)
		}
		w.tables = w.tables[i : i+1] // the next one gets one unit more
		if err := w.write(t.Context(), entries(slices.Concat(parts[:2+i]...))); err != nil {
			t.Fatal(err)
		}
	}
	w, err := openWriter(t.Context(), conn, database, atMost(0), m, log)
	if err != nil {
		t.Fatal(err)
	}
	if want := uint64(len(slices.Concat(parts[:2]...))); w.position != want {
		t.Fatalf("position is %d, the table that is least far stands at %d", w.position, want)
	}
	if err := w.write(t.Context(), entries(s.Records[w.position:])); err != nil {
		t.Fatal(err)
	}
	check(t, conn, database, s.Records, fold.Newest)
}
