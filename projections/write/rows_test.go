package write

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/testkit/histories"
	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
)

// alone is a writer that only encodes.
func alone() *Writer { return &Writer{id: 1, counts: uncounted(), spare: make(chan *encoded, 1)} }

// TestFoldVersion: whatever changes the rows that a log gives changes the schema
// too, so that no generation is continued by another fold. What derived tables hold
// is said by their definitions, which are part of the schema.
func TestFoldVersion(t *testing.T) {
	t.Parallel()
	records := started().Records
	for seed := range uint64(4) {
		records = append(records, histories.Random(rand.New(rand.NewPCG(seed, 5)), chainID, 60).Records...)
	}
	log, rows := sha256.New(), sha256.New()
	w := alone()
	for _, r := range records {
		value, err := proto.MarshalOptions{Deterministic: true}.Marshal(r)
		must(t, err)
		log.Write(value)
		e := w.encode(batchOf(t, []*event.Record{r}), nil)
		for _, table := range appended {
			for i, l := range e.rows[table].layout {
				fmt.Fprintf(rows, "%s.%s %x %q\n", table, l.name, e.rows[table].data[i], e.rows[table].texts[i])
			}
		}
	}
	const wantLog = "791bc6f661cc78d9"
	wantRows := map[int]string{3: "12cfa3e08ab5247a", 4: "91202fa9b0b79cd8"}
	if got := hex.EncodeToString(log.Sum(nil)[:8]); got != wantLog {
		t.Fatalf("the histories of this test changed, their hash is %s: set wantLog, and wantRows with rows of a fold that did not change", got)
	}
	if got := hex.EncodeToString(rows.Sum(nil)[:8]); got != wantRows[readmodel.FoldVersion] {
		t.Errorf("fold version %d gives rows with hash %s, want %s: the fold changed, so raise readmodel.FoldVersion and name that hash here beside the new version",
			readmodel.FoldVersion, got, wantRows[readmodel.FoldVersion])
	}
}

// appended are the tables that a record alone fills.
var appended = slices.Concat([]string{readmodel.Spine}, readmodel.Facts)

// TestCutsDoNotMatter: the rows of a history are the same however it is cut.
func TestCutsDoNotMatter(t *testing.T) {
	t.Parallel()
	s := histories.Random(rand.New(rand.NewPCG(7, 7)), chainID, 40)
	all := batchOf(t, s.Records)[0]
	w := alone()
	whole := w.encode(decode.Batch{all}, nil)
	for _, size := range []int{1, 3, 10} {
		got := map[string]*rows{}
		for _, table := range appended {
			got[table] = newRows(table, w.id)
		}
		for piece := range slices.Chunk(all, size) {
			e := w.encode(decode.Batch{piece[:len(piece)/2], piece[len(piece)/2:]}, nil)
			for table, r := range got {
				for i := range r.layout {
					r.data[i] = append(r.data[i], e.rows[table].data[i]...)
					r.texts[i] = append(r.texts[i], e.rows[table].texts[i]...)
				}
				r.seqs = append(r.seqs, e.rows[table].seqs...)
			}
			w.keep(e) // the next piece gets its memory
		}
		for _, table := range appended {
			a, b := got[table], whole.rows[table]
			if b.count == 0 || !slices.Equal(a.seqs, b.seqs) {
				t.Fatalf("%s in pieces of %d has the seqs %v, want %v", table, size, a.seqs, b.seqs)
			}
			for i, l := range a.layout {
				if !bytes.Equal(a.data[i], b.data[i]) || !slices.Equal(a.texts[i], b.texts[i]) {
					t.Errorf("%s.%s differs in pieces of %d", table, l.name, size)
				}
			}
		}
	}
}

// TestWholeHistoryTakenBack: no sum and no live row is left of a history that was
// taken back whole.
func TestWholeHistoryTakenBack(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 3))
	s := histories.New(chainID)
	s.Vault(vaultA)
	s.Vault(vaultB)
	for range 12 {
		var logs []said
		for range 6 {
			logs = append(logs, histories.Anything(rng, 2, 4))
		}
		s.Mine(logs...)
	}
	g := derivedGeneration(t, s.Records)
	for _, table := range slices.Concat(readmodel.Facts, readmodel.Derived) {
		if g.rowsIn(t, table) < 3 {
			t.Errorf("%s: the history has no rows there, the test proves nothing", table)
		}
	}
	s.Retract(len(s.Blocks))
	s.Boundary()
	g.write(t, g.writer(t), s.Records)
	number := func(question string) (n uint64) {
		t.Helper()
		must(t, g.conn.QueryRow(readmodel.Parameters(t.Context(), nil), question).Scan(&n))
		return n
	}
	for table, sums := range map[string]string{
		readmodel.Spine:            "sum(sign) - 2", // the vaults' records stay
		readmodel.Deposits:         "sum(sign) != 0 OR sum(sign * assets) != 0 OR sum(sign * shares) != 0",
		readmodel.WithdrawalEvents: "sum(sign) != 0 OR sum(sign * assets) != 0 OR sum(sign * shares) != 0",
		readmodel.Navs:             "sum(sign) != 0 OR sum(sign * total_assets) != 0",
		readmodel.Sweeps:           "sum(sign) != 0 OR sum(sign * assets) != 0",
	} {
		if n := number(fmt.Sprintf("SELECT toUInt64(%s) FROM %s", sums, table)); n != 0 {
			t.Errorf("%s: something is left", table)
		}
	}
	for _, table := range readmodel.Derived {
		if n := number(fmt.Sprintf("SELECT count() FROM (SELECT %s FROM %s WHERE NOT (%s) GROUP BY ALL HAVING sum(sign) != 0)", dataColumns(table), table, readmodel.CursorRow(table))); n != 0 {
			t.Errorf("%s: %d rows are left", table, n)
		}
	}
	g.equal(t, s.Records)
}
