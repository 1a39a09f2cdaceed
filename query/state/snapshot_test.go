package state_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/query/state"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
)

// TestSnapshot compares a snapshot with the cursor, the list of blocks and the vault records.
func TestSnapshot(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	s := w.BeforeReorganisation()
	if s.Seq != w.Log.Seq() || s.Block != 11 || s.First != 3 || s.Time != uint64(readtest.BlockTime(11)) ||
		s.Rewrites != 0 || s.Partial ||
		len(s.Vaults) != 2 || s.Vaults[0].Name != "Alpha" || s.VaultsSeq != 2 {
		t.Errorf("the snapshot is %+v", s)
	}
	if again := w.Look(); again != s {
		t.Error("another snapshot of the same state")
	}
	w.Reorganisation()
	w.Write()
	if s := w.Look(); s.Seq != w.Log.Seq() || s.Block != 11 || s.First != 3 || s.Rewrites != 1 {
		t.Errorf("after a reorganisation it is %+v", s)
	}
}

// TestManyBlocksRetracted: the newest block is found below many retracted ones.
func TestManyBlocksRetracted(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	w.BeforeReorganisation()
	for n := uint64(12); n < 200; n++ {
		w.Log.Append(readtest.BlockRecord(n))
	}
	w.Log.Retract(11)
	w.Log.Append(readtest.BlockRecord(12))
	w.Write()
	if s := w.Look(); s.Block != 12 || s.First != 3 || s.Seq != w.Log.Seq() {
		t.Errorf("%+v", s)
	}
}

// TestVaultThatJoinedLate: the vault is not listed until the next generation has its logs.
func TestVaultThatJoinedLate(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	w.BeforeReorganisation()
	late := readtest.VaultRecord(readtest.VaultC, "Gamma", 1)
	late.Passed = true
	w.Log.Append(late, readtest.BlockRecord(12))
	w.Write()
	if s := w.Look(); len(s.Vaults) != 2 || s.First != 3 || s.Block != 12 || len(s.Absent) != 1 ||
		s.Absent[0].Name != "Gamma" || s.Absent[0].Removed {
		t.Errorf("%+v", s)
	}
}

// TestVaultThatLeft: the vault is listed until a generation is built without it; that one only has the vault's
// name.
func TestVaultThatLeft(t *testing.T) {
	gone := readtest.VaultRecord(readtest.VaultA, "", 1)
	gone.Meta = &event.Vault{Address: readtest.VaultA.Bytes(), StartBlock: 1, Removed: true}
	for name, passed := range map[string]bool{"in the generation that has it": false, "in a generation without it": true} {
		t.Run(name, func(t *testing.T) {
			w := readtest.NewWorld(t, enginetest.ClickHouse(t))
			was, removed := readtest.VaultRecord(readtest.VaultA, "Alpha", 1), gone
			was.Passed, removed.Passed = passed, passed
			w.Log.Append(was, readtest.VaultRecord(readtest.VaultB, "Beta", 1), readtest.BlockRecord(1))
			w.Log.Append(removed)
			w.Write()
			s := w.Look()
			here, absent := s.Vaults, s.Absent
			if passed {
				here = append(absent, here...)
			}
			if len(here) != 2 || len(absent) != len(here)-len(s.Vaults) || here[0].Name != "Alpha" || !here[0].Removed ||
				here[0].Asset.Decimals != 6 || here[1].Removed {
				t.Errorf("vaults %+v, absent %+v", s.Vaults, absent)
			}
			w.Log.Append(readtest.VaultRecord(readtest.VaultA, "Alpha again", 1)) // in a generation that contains it
			w.Write()
			if v := w.Look().Vaults; len(v) != 2 || v[0].Name != "Alpha again" || v[0].Removed {
				t.Errorf("after it came back: %+v", v)
			}
		})
	}
}

// TestVaultRecords: the newest live record of an address counts; records of another chain and invalid payloads are
// rejected.
func TestVaultRecords(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	again := readtest.VaultRecord(readtest.VaultA, "Alpha 2", 1)
	w.Log.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.BlockRecord(1))
	w.Log.Append(again, readtest.BlockRecord(2))
	w.Write()
	if v := w.Look().Vaults; len(v) != 1 || v[0].Name != "Alpha 2" || v[0].Asset.Decimals != 6 {
		t.Errorf("%+v", v)
	}
	w.Log.Add(again, 3)
	w.Log.Append(readtest.BlockRecord(3))
	w.Write()
	was := w.Look()
	if v := was.Vaults; len(v) != 1 || v[0].Name != "Alpha" || was.VaultsSeq != 5 {
		t.Errorf("%+v", was)
	}
	refused := func(part string) {
		t.Helper()
		if err := w.Watcher.Look(t.Context()); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the check reports %v, want %q", err, part)
		}
		if w.Snapshot() != was {
			t.Error("the proven block is lost")
		}
	}
	w.Log.ChainID++
	w.Log.Append(readtest.VaultRecord(readtest.VaultB, "Beta", 1), readtest.BlockRecord(4))
	w.Write()
	refused("is of chain 31338 and this program serves chain 31337")
	for payload, part := range map[string]string{"": "names no vault", "\\xff": "cannot be decoded"} {
		w.Gen.Exec("TRUNCATE TABLE events")
		w.Gen.Exec("INSERT INTO events (seq, sign, record, payload) VALUES (9, 1, 'vault', '" + payload + "')")
		w.Pass(readmodel.Never)
		w.Pass(readmodel.Never) // the record's seq is below the cursor's
		refused(part)
	}
}

// TestFirstBlockRetracted: the first block is found above many retracted ones, and after the same block was added
// again.
func TestFirstBlockRetracted(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	w.Gen.Exec("SYSTEM STOP MERGES lists")
	for n := uint64(1); n <= 30; n++ {
		w.Log.Append(readtest.BlockRecord(n))
	}
	w.Write()
	if s := w.Look(); s.First != 1 || s.Block != 30 {
		t.Errorf("%+v", s)
	}
	w.Log.Retract(0)
	w.Log.Append(readtest.BlockRecord(20))
	w.Write()
	if s := w.Look(); s.First != 20 || s.Block != 20 {
		t.Errorf("%+v", s)
	}
}

// TestLooksReadFewRows: the number of rows read for the newest state does not grow with the log.
func TestLooksReadFewRows(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	const many = 100_000
	w.Log.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.BlockRecord(1))
	w.Write()
	w.Gen.Exec(fmt.Sprintf("INSERT INTO events (seq, sign, record, boundary, block, ts) SELECT number + 3, 1, 'block', "+
		"1, number + 2, number FROM numbers(%d)", many))
	w.Gen.Exec(fmt.Sprintf("INSERT INTO lists (list, key, block, ts, sign) SELECT 'blocks', number + 2, number + 2, "+
		"number, 1 FROM numbers(%d)", many))
	w.Gen.Exec(fmt.Sprintf("INSERT INTO lists (list, key, seq, sign) SELECT 'touched', -number, 0, 1 FROM numbers(%d)",
		many))
	w.Gen.Merge("events", "lists")
	w.Look()
	w.Pass(readmodel.Never)
	var read atomic.Uint64
	ctx := clickhouse.Context(t.Context(), clickhouse.WithProgress(func(p *clickhouse.Progress) { read.Add(p.Rows) }))
	if err := w.Watcher.Look(ctx); err != nil {
		t.Fatal(err)
	}
	if s := w.Snapshot(); s.Seq != 3 || s.First != 1 || len(s.Vaults) != 1 {
		t.Errorf("%+v", s)
	}
	if n := read.Load(); n == 0 || n > many/20 {
		t.Errorf("read %d rows of %d", n, 3*many)
	}
}

// TestWrongQuestions: a programming error is distinguished from an engine that is down, busy or rejects the query.
func TestWrongQuestions(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	source := w.BeforeReorganisation().Source
	var rows []struct {
		N uint64 `ch:"n"`
	}
	var question *state.Error
	for _, wrong := range []string{
		"SELECT nonsense", "SELECT", "SELECT nonsense()", "SELECT length()", "SELECT length(1)", "SELECT greatest(1, 'a')",
		"SELECT sum(sum(1))",
		"SELECT block, count() FROM events", "SELECT {absent:UInt64}", "SELECT 'x'::Nonsense",
	} {
		if err := source.Select(t.Context(), &rows, wrong, nil); !errors.As(err, &question) || !question.Ours {
			t.Errorf("a wrong question, %s: %v", wrong, err)
		}
	}
	if err := source.Select(t.Context(), &rows, "SELECT 1 FROM nowhere", nil); !errors.As(err, &question) ||
		question.Ours {
		t.Errorf("a table that is gone: %v", err)
	}
	// No thread, missing rights, a wrong password, Keeper down, and a code of a later version.
	for _, code := range []int{439, 497, 516, 999, 1999} {
		refused := fmt.Sprintf("SELECT throwIf(1, 'not now', %d::Int16) SETTINGS allow_custom_error_code_in_throwif = 1",
			code)
		if err := source.Select(t.Context(), &rows, refused, nil); !errors.As(err, &question) || question.Ours ||
			question.Silent || !strings.Contains(err.Error(), fmt.Sprint(code)) {
			t.Errorf("an engine that returns the code %d: %v", code, err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := source.Select(gone, &rows, "SELECT 1", nil); !errors.As(err, &question) || question.Ours || question.Silent {
		t.Errorf("no time: %v", err)
	}
	w.Close() // the connection
	if err := source.Select(t.Context(), &rows, "SELECT 1", nil); !errors.As(err, &question) || question.Ours ||
		!question.Silent {
		t.Errorf("an engine that does not respond: %v", err)
	}
}

// TestQuestionsComeFirst: a query has priority over the engine's writes, is planned by the older analyzer and uses
// one thread, unless it sets something else.
func TestQuestionsComeFirst(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	source := w.BeforeReorganisation().Source
	type row struct {
		Nice     int32  `ch:"nice"`
		Analyzer bool   `ch:"analyzer"`
		Threads  uint64 `ch:"threads"`
	}
	question := `SELECT toInt32(getSetting('os_threads_nice_value_query')) AS nice, getSetting('enable_analyzer') AS analyzer,
		toUInt64(getSetting('max_threads')) AS threads`
	for settings, want := range map[string]row{"": {-10, false, 1},
		" SETTINGS max_threads = 2, enable_analyzer = 1": {-10, true, 2}} {
		var got []row
		if err := source.Select(t.Context(), &got, question+settings, nil); err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
}
