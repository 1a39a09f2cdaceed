package write

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/testkit/histories"
	"github.com/navlog/navlog/projections/decode"
	"github.com/navlog/navlog/projections/oracle/oracletest"
	"github.com/navlog/navlog/projections/verify"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
)

var (
	steps = flag.Int("steps", 30, "how many units a random history has")
	plays = flag.Int("histories", 3, "how many random histories TestRandomHistories plays")
	seed  = flag.Uint64("seed", 1, "seed of the first random history; 0: by the clock")
)

// TestRandomHistories writes random histories of vaults of all presets, cut into random batches, with a writer that
// crashes at random places, even within a unit that retracts, and sometimes with two writers at once. Some units are
// written before lists is built, the others after. After every batch, lists is compared with the oracle and with the
// keys in the touched rows; in the end both tables are compared with the log and audited, and lists is compared with
// its definitions over events (without -short after every batch). If a vault is restored that a generation cannot
// continue, another generation takes its place.
func TestRandomHistories(t *testing.T) {
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	count := *plays
	if testing.Short() {
		count = min(count, 1)
	}
	for i := range uint64(count) {
		t.Run(fmt.Sprintf("seed=%d", first+i), func(t *testing.T) {
			t.Parallel() // most of the time is spent on the engine's disk
			rng := rand.New(rand.NewPCG(first+i, 1))
			script := histories.Random(rng, chainID, *steps, histories.Presets()...)
			h := &playing{g: newGeneration(t), rng: rng, script: script, defined: !testing.Short()}
			h.play(t)
			h.g.equal(t, h.script.Records)
			h.g.check(t)
			must(t, verify.Audit(t.Context(), h.g.conn))
		})
	}
}

// playing is the state of a history that is being written.
type playing struct {
	g      *generation
	rng    *rand.Rand
	script *histories.Script
	before map[string][]readmodel.TouchedKey // live rows of lists before the batch; nil before it is built
	// buildAt is the number of units after which lists is built, or later if the log does not have all of a vault then.
	buildAt int
	// defined: after every batch, lists is compared with its definitions too, which takes the engine a second.
	defined bool
}

// play writes all records.
func (h *playing) play(t *testing.T) {
	t.Helper()
	records := h.script.Records
	var w *Writer
	h.buildAt = h.rng.IntN(1 + len(histories.Units(records))/3) // most units update lists
	for w == nil || w.Position() < uint64(len(records)) {
		if w == nil || h.rng.IntN(6) == 0 {
			w = h.g.writer(t)
		}
		rest := histories.Units(records[w.Position():])
		if len(rest) == 0 { // the two racing writers reached the end
			break
		}
		if !w.Built() && len(histories.Units(records))-len(rest) >= h.buildAt {
			if !h.script.Covered(w.Position()) { // ingest's cursor would not allow to build lists here
				h.buildAt++
			} else {
				h.build(t, w)
			}
		}
		next := slices.Concat(rest[:1+h.rng.IntN(min(6, len(rest)))]...)
		batch := h.batch(t, next)
		after := w.Position()
		var err error
		switch h.rng.IntN(9) {
		case 0, 1, 2:
			err = h.kill(t, w, batch)
			w = nil
		case 3, 4, 5:
			err = h.race(t, next)
			w = nil
		default:
			err = w.Write(t.Context(), w.Encode(batch))
		}
		if h.before != nil {
			h.compare(t, after)
		}
		if outdated := new(OutdatedError); errors.As(err, &outdated) {
			h.succeed(t, next[len(next)-1].GetSeq(), outdated.Vault)
			w = nil
			continue
		}
		must(t, err)
	}
	if !w.Built() {
		h.build(t, w)
	}
}

// batch returns records of the history as the feed does.
func (h *playing) batch(t *testing.T, records []*event.Record) decode.Batch {
	t.Helper()
	vaults, err := mapping.NewVaults()
	must(t, err)
	for _, r := range h.script.Records {
		if r.GetVault() != nil {
			must(t, vaults.Apply(r.GetVault()))
		}
	}
	return batchWith(t, records, vaults)
}

// succeed continues with another generation, which omits the vaults that are removed at a seq, from the beginning of
// the log, because a vault was restored until then that the present one cannot continue.
func (h *playing) succeed(t *testing.T, seq uint64, restored common.Address) {
	t.Helper()
	records := h.script.Records[:seq]
	h.g = newGeneration(t)
	was := map[common.Address]bool{}
	for _, r := range records {
		if v := r.GetVault(); v != nil {
			a := common.Address(v.GetAddress())
			was[a] = was[a] || v.GetRemoved()
			h.g.without = slices.DeleteFunc(h.g.without, func(other common.Address) bool { return other == a })
			if v.GetRemoved() {
				h.g.without = append(h.g.without, a)
			}
		}
	}
	if !was[restored] {
		t.Fatalf("seq %d: the generation is outdated because of vault %s, which was never removed", seq, restored)
	}
	h.before, h.buildAt = nil, len(histories.Units(records))
}

func (h *playing) build(t *testing.T, w *Writer) {
	t.Helper()
	must(t, w.Build(t.Context(), h.g.session(t)))
	h.before = oracletest.Live(t, h.g.conn)
}

// compare compares lists with the oracle and, if requested, its definitions. All rows that the batch changed after a
// seq must be named by its touched rows.
func (h *playing) compare(t *testing.T, after uint64) {
	t.Helper()
	if h.defined {
		h.g.check(t)
	}
	cursor, err := readmodel.ReadListsCursor(t.Context(), h.g.conn, readmodel.ListsTable.Name)
	must(t, err)
	oracletest.Listed(t, h.g.conn, h.script.Records[:cursor.Seq])
	now, touched := oracletest.Live(t, h.g.conn), h.g.touched(t, after)
	for _, sides := range [][2]map[string][]readmodel.TouchedKey{{h.before, now}, {now, h.before}} {
		for line, keys := range sides[0] {
			if _, same := sides[1][line]; same || keys[0][0] == byte(readmodel.CursorList) ||
				keys[0][0] == byte(readmodel.CursorEnd) {
				continue
			}
			for _, key := range keys {
				if !touched[key] {
					t.Errorf("a batch after seq %d changed a row that no touched row names by %x: %s", after, key, line)
				}
			}
		}
	}
	h.before = now
}

// kill writes a batch to only some of the tables, like a writer that crashes.
func (h *playing) kill(t *testing.T, w *Writer, batch decode.Batch) error {
	t.Helper()
	if !w.Built() {
		return nil
	}
	units := parts(batch.Units())
	whole := h.rng.IntN(len(units)) // these are written completely, and a part of the next one
	for _, part := range units[:whole] {
		if err := w.writePart(t.Context(), part); err != nil {
			return err
		}
	}
	if h.rng.IntN(4) == 0 {
		return nil
	}
	return crash(t, w, units[whole])
}

// race lets two writers write records at once, which each of them has decoded. At most one of them succeeds.
func (h *playing) race(t *testing.T, records []*event.Record) error {
	t.Helper()
	writers := [2]*Writer{h.g.writer(t), h.g.writer(t)}
	var wait sync.WaitGroup
	var answers [2]error
	for i, w := range writers {
		batch := h.batch(t, records)
		wait.Go(func() { answers[i] = w.Write(t.Context(), w.Encode(batch)) })
	}
	wait.Wait()
	if answers[0] == nil && answers[1] == nil {
		t.Fatal("both writers report that they wrote the same batch")
	}
	for _, err := range answers {
		var fenced *fencedError
		if err != nil && !errors.As(err, &fenced) {
			return err
		}
	}
	return nil
}

// TestParts: a unit that rewrites is a part of its own.
func TestParts(t *testing.T) {
	unit := func(rewrites bool) decode.Unit { return decode.Unit{Rewrites: rewrites} }
	for _, c := range []struct{ units, want string }{
		{"", ""}, {"p", "p"}, {"ppp", "ppp"}, {"r", "r"}, {"prp", "p r p"}, {"rr", "r r"}, {"pprrp", "pp r r p"},
		{"pr", "p r"},
	} {
		var units []decode.Unit
		for _, k := range c.units {
			units = append(units, unit(k == 'r'))
		}
		var got []string
		for _, part := range parts(units) {
			var word string
			for _, u := range part {
				word += map[bool]string{false: "p", true: "r"}[u.Rewrites]
			}
			got = append(got, word)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q is cut into %q, want %q", c.units, got, c.want)
		}
	}
}
