package write

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/testkit/histories"
	"github.com/navlog/navlog/projections/fold"
	"github.com/navlog/navlog/projections/oracle/oracletest"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
)

// TestFoldVersion: any change of the rows of events for a log must change the schema too, so that no generation is
// continued by another fold. The content of lists is defined by its definitions, which are part of the schema.
func TestFoldVersion(t *testing.T) {
	t.Parallel()
	records := started().Records
	for seed := range uint64(4) {
		records = append(records, histories.Random(rand.New(rand.NewPCG(seed, 5)), chainID, 60).Records...)
	}
	log, rows := sha256.New(), sha256.New()
	for _, r := range records {
		value, err := proto.MarshalOptions{Deterministic: true}.Marshal(r)
		must(t, err)
		log.Write(value)
		for f := range batchOf(t, []*event.Record{r}).All() {
			fold.Events(f, 1, func(row *readmodel.EventRow) { fmt.Fprintln(rows, readmodel.EventsTable.Line(row)) })
		}
	}
	const wantLog = "469685314b57fb01"
	wantRows := map[int]string{10: "c0725a51d3c275f7"}
	if got := hex.EncodeToString(log.Sum(nil)[:8]); got != wantLog {
		t.Fatalf("the histories of this test changed, their hash is %s: set wantLog, and wantRows with rows of a fold "+
			"that did not change", got)
	}
	if got := hex.EncodeToString(rows.Sum(nil)[:8]); got != wantRows[readmodel.FoldVersion] {
		t.Errorf("fold version %d gives rows with hash %s, want %s: the fold changed, so raise readmodel.FoldVersion and "+
			"name that hash here beside the new version",
			readmodel.FoldVersion, got, wantRows[readmodel.FoldVersion])
	}
}

// TestWholeHistoryRetracted: after a history was retracted completely, no live row but the cursor is left.
func TestWholeHistoryRetracted(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 3))
	s := histories.New(chainID)
	s.Vault(vaultA)
	s.Vault(vaultB)
	for range 12 {
		var logs []emitted
		for range 6 {
			logs = append(logs, histories.Anything(rng, 2, 4))
		}
		s.Mine(logs...)
	}
	g := builtGeneration(t, s.Records)
	lists := map[byte]bool{}
	for _, keys := range oracletest.Live(t, g.conn) {
		list := keys[0][0]
		if list&0x80 != 0 { // with a kind (readmodel.TouchKind)
			list = byte(readmodel.VaultEvents) + list>>4&7
		}
		lists[list] = true
	}
	for list := readmodel.CursorList; list <= readmodel.UserTotals; list++ {
		if list != readmodel.TouchedList && !lists[byte(list)] {
			t.Errorf("list %d has no row before: the test shows nothing", list)
		}
	}
	s.Retract(len(s.Blocks))
	s.Boundary()
	g.write(t, g.writer(t), s.Records)
	for line, keys := range oracletest.Live(t, g.conn) {
		if key := keys[0]; key[0] != byte(readmodel.CursorList) && key[0] != byte(readmodel.CursorEnd) {
			t.Errorf("left: %s", line)
		}
	}
	// the two vault records stay
	sums := "SELECT toString(tuple(sum(sign) - 2, sum(sign * assets), sum(sign * shares), sum(sign * nav))) FROM events"
	if left := oracletest.Lines(t, g.conn, sums, nil); !slices.Equal(left, []string{"(0,0,0,0)"}) {
		t.Errorf("the signed sums of events are %q", left)
	}
	g.equal(t, s.Records)
}

// TestRewrittenFrom: an accepted reorganisation may end the chain at a block far below the lowest record that it
// retracts. Responses about the blocks between them change as soon as the new branch has logs there.
func TestRewrittenFrom(t *testing.T) {
	t.Parallel()
	s := started()
	ancestor := s.Number
	s.Range(s.Make(12), s.Make(12), s.Make(12, deposit(4, alice, 7)), s.Make(12))
	g := builtGeneration(t, s.Records)
	s.AcceptReorg(ancestor)
	g.write(t, g.writer(t), s.Records)
	from := oracletest.Lines(t, g.conn, "SELECT toString(id) FROM lists WHERE list = 'touched' AND id > 0", nil)
	oracletest.Same(t, "the first block about which a response may change", from, []string{fmt.Sprint(ancestor + 1)})
	g.equal(t, s.Records)
}
