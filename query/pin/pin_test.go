package pin_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/query/pin"
	"github.com/navlog/navlog/query/readtest"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// world is a watcher over a generation, which looks when the test says so.
type world struct {
	*pin.Watcher
	t     *testing.T
	g     *readtest.Generation
	chain *readtest.Log
}

// newWorld shows all of the small chain but its last unit, a reorganisation of the
// blocks above 9: units is where it ends.
func newWorld(t *testing.T) *world {
	t.Helper()
	g := readtest.New(t, enginetest.ClickHouse(t))
	w := &world{t: t, g: g, chain: readtest.NewLog(readtest.ChainID), Watcher: pin.New(readtest.ChainID, 16, time.Minute, g.Config, nil, quiet(t))}
	w.LookTimeout = time.Minute
	w.Only(g.ID)
	t.Cleanup(w.Close)
	return w
}

func quiet(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

// units are the records of the small chain by the units that they are in.
func units() (out [][]readtest.Entry) {
	var unit []readtest.Entry
	for _, e := range readtest.SmallChain().Entries {
		unit = append(unit, e)
		if e.Boundary {
			out, unit = append(out, unit), nil
		}
	}
	return out
}

// beforeReorganisation writes all but the last unit and looks.
func (w *world) beforeReorganisation() {
	w.t.Helper()
	all := units()
	for _, u := range all[:len(all)-1] {
		w.chain.Entries = append(w.chain.Entries, u...)
	}
	w.g.Write(w.chain)
	w.look()
}

// reorganisation is the log with the last unit.
func (w *world) reorganisation() {
	all := units()
	w.chain.Entries = append(w.chain.Entries, all[len(all)-1]...)
}

func (w *world) look() {
	w.t.Helper()
	if err := w.Look(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// countUsers asks a derived table how many users there are at the pin.
func countUsers(ctx context.Context, p *pin.Pin) (int64, error) {
	type row struct {
		Users  int64  `ch:"users"`
		Seq    uint64 `ch:"seq"`
		Block  uint64 `ch:"block"`
		Before uint64 `ch:"before"`
	}
	r, _, err := pin.AskOne[row](ctx, p, `SELECT users, tupleElement(fence, 1) AS seq, tupleElement(fence, 2) AS block, tupleElement(fence, 3) AS before
		FROM (SELECT sumIf(sign, list = 'first') AS users, max((fence_seq, fence_block, fence_before)) AS fence
			FROM users WHERE list = 'cursor' OR list = 'first' AND key <= {block:UInt64})`, nil)
	p.See(readmodel.Fence{Seq: r.Seq, Block: r.Block, Before: r.Before})
	return r.Users, err
}

// usersAt is what it should say.
func (l *world) usersAt(seq, block uint64) int64 {
	users := map[string]bool{}
	for _, e := range l.chain.Live(seq, block) {
		if e.Kind == readtest.Deposit || e.Kind == readtest.Request {
			users[e.User.Hex()] = true
		}
	}
	return int64(len(users))
}

// answer makes an answer of the number of users, and counts how often it was made.
func (w *world) answer(asOfBlock *uint64, before func(try int)) (p *pin.Pin, users int64, tries int, err error) {
	w.t.Helper()
	p, err = w.Answer(w.t.Context(), w.Snapshot(), asOfBlock, func(ctx context.Context, p *pin.Pin) (err error) {
		tries++
		users, err = countUsers(ctx, p)
		if before != nil {
			before(tries)
		}
		return err
	})
	return p, users, tries, err
}

func block(n uint64) *uint64 { return &n }

// TestPins: at the newest block and at each past one the answer is that of the log,
// whatever is written meanwhile.
func TestPins(t *testing.T) {
	w := newWorld(t)
	w.beforeReorganisation()
	s := w.Snapshot()
	if s.Seq != w.chain.Seq() || s.Block != 11 || s.First != 3 || s.Time != uint64(readtest.BlockTime(11)) || len(s.Vaults) != 2 || s.Vaults[0].Name != "Alpha" || s.Partial {
		t.Fatalf("the snapshot is %+v", s)
	}
	for x := uint64(3); x <= 11; x++ {
		p, users, tries, err := w.answer(&x, nil)
		if err != nil || tries != 1 || users != w.usersAt(s.Seq, x) || p.Block != x || !p.AsOf || p.Seq != s.Seq {
			t.Errorf("as of %d: %d users in %d tries, %v", x, users, tries, err)
		}
		now, err := p.Now(t.Context())
		if err != nil || now != uint64(readtest.BlockTime(max(x, 3)))-uint64(12*boolInt(x == 4)) {
			t.Errorf("as of %d it is %d, %v", x, now, err)
		}
	}
	var outside *pin.RangeError
	if _, _, _, err := w.answer(block(12), nil); !errors.As(err, &outside) || !strings.Contains(err.Error(), "first indexed one to 11") {
		t.Errorf("a block above the newest: %v", err)
	}
	if _, _, _, err := w.answer(block(2), nil); !errors.As(err, &outside) || !strings.Contains(err.Error(), "before the first indexed block") {
		t.Errorf("a block below the first: %v", err)
	}
	if _, users, tries, err := w.answer(nil, nil); err != nil || tries != 1 || users != w.usersAt(s.Seq, 11) {
		t.Errorf("newest: %d users in %d tries, %v", users, tries, err)
	}
	// A plain unit that the snapshot does not show yet changes nothing.
	w.chain.Append(readtest.Fact{Kind: readtest.Deposit, Vault: readtest.VaultA, User: readtest.Router, ID: 9, Assets: 1, Block: 12, Tx: readtest.Tx(40)}, readtest.BlockRecord(12))
	w.g.Write(w.chain)
	if p, users, tries, err := w.answer(nil, nil); err != nil || tries != 1 || users != w.usersAt(s.Seq, 11) || p.Seq != s.Seq {
		t.Errorf("beside a later unit: %d users in %d tries, %v", users, tries, err)
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestAnswerWaitsForTheSpine: a table that a reorganisation has rewritten already is
// asked again once the spine is there, and an error of the first try is not believed.
func TestAnswerWaitsForTheSpine(t *testing.T) {
	w := newWorld(t)
	w.beforeReorganisation()
	w.CatchUpWithin = time.Minute
	w.reorganisation()
	w.g.WriteFacts(w.chain)
	w.g.WriteDerived(w.chain)
	old := w.Snapshot()
	for _, asOf := range []*uint64{nil, block(10)} {
		p, err := w.Answer(t.Context(), old, asOf, func(ctx context.Context, p *pin.Pin) error {
			users, err := countUsers(ctx, p)
			if p.Seq == old.Seq {
				if asOf == nil { // the other one finds the spine written
					w.g.WriteSpine(w.chain)
				}
				w.look()
				return errors.New("what was seen cannot be")
			}
			if users != w.usersAt(p.Seq, p.Block) {
				t.Errorf("%d users at block %d", users, p.Block)
			}
			return err
		})
		if err != nil || p.Seq != w.chain.Seq() || asOf == nil && p.Block != 11 || asOf != nil && p.Block != 10 {
			t.Errorf("as of %v: %+v, %v", asOf, p, err)
		}
	}
}

// TestFenceThatStays: while a rewriting unit stays half written, what is newest is the
// last block that it leaves as it was; that block and those before are exact at once, and
// about those above nothing is said.
func TestFenceThatStays(t *testing.T) {
	w := newWorld(t)
	w.beforeReorganisation()
	w.CatchUpWithin = time.Millisecond
	w.reorganisation()
	for _, written := range []func(*readtest.Log){w.g.WriteFacts, w.g.WriteDerived} {
		written(w.chain)
	}
	s := w.Snapshot()
	for range 2 { // the second time nothing is waited for
		p, users, tries, err := w.answer(nil, nil)
		if err != nil || p.Block != 9 || !p.AsOf || p.Seq != s.Seq || tries != 2 || users != w.usersAt(s.Seq, 9) {
			t.Errorf("newest: %d users at %+v in %d tries, %v", users, p, tries, err)
		}
		if now, err := p.Now(t.Context()); err != nil || now != uint64(readtest.BlockTime(9)) {
			t.Errorf("it is %d there, %v", now, err)
		}
	}
	for x := uint64(3); x <= 11; x++ {
		_, users, tries, err := w.answer(&x, nil)
		switch {
		case x <= 9 && (err != nil || tries != 1 || users != w.usersAt(s.Seq, x)):
			t.Errorf("as of %d: %d users in %d tries, %v", x, users, tries, err)
		case x > 9 && !errors.Is(err, pin.ErrNotYet):
			t.Errorf("as of %d: %d users, %v", x, users, err)
		}
	}
	// It is finished: all is exact again.
	w.g.WriteSpine(w.chain)
	w.look()
	if p, users, tries, err := w.answer(nil, nil); err != nil || p.Block != 11 || tries != 1 || users != w.usersAt(w.chain.Seq(), 11) {
		t.Errorf("after it: %d users in %d tries, %v", users, tries, err)
	}
}

// TestTableOfTheNewestState: one that cannot tell the past, and is ahead, makes the
// answer wait for the spine; where that does not come, it is asked as of the block.
func TestTableOfTheNewestState(t *testing.T) {
	w := newWorld(t)
	w.beforeReorganisation()
	w.CatchUpWithin = time.Millisecond
	s := w.Snapshot()
	w.chain.Append(readtest.BlockRecord(12))
	var pins []string
	make := func(_ context.Context, p *pin.Pin) error {
		pins = append(pins, fmt.Sprint(p.Block, p.AsOf))
		if !p.AsOf {
			p.SeeCursor(w.chain.Seq(), readmodel.Fence{})
		}
		return nil
	}
	if p, err := w.Answer(t.Context(), s, nil, make); err != nil || fmt.Sprint(pins) != "[11 false 11 true]" || p.Seq != s.Seq {
		t.Errorf("%v, %v", pins, err)
	}
	w.g.Write(w.chain)
	w.look()
	pins = nil
	if p, err := w.Answer(t.Context(), w.Snapshot(), nil, make); err != nil || fmt.Sprint(pins) != "[12 false]" || p.Seq != w.chain.Seq() {
		t.Errorf("%v, %v", pins, err)
	}
}

// TestReorganisationBelowAllBlocks: where nothing is left as it was, nothing is said.
func TestReorganisationBelowAllBlocks(t *testing.T) {
	w := newWorld(t)
	w.beforeReorganisation()
	w.CatchUpWithin = time.Millisecond
	_, err := w.Answer(t.Context(), w.Snapshot(), nil, func(_ context.Context, p *pin.Pin) error {
		p.See(readmodel.Fence{Seq: p.Seq + 1, Block: 2})
		return nil
	})
	if !errors.Is(err, pin.ErrNotYet) {
		t.Error(err)
	}
}

// TestManyBlocksTakenBack: the newest block is found below many that are gone.
func TestManyBlocksTakenBack(t *testing.T) {
	if testing.Short() {
		t.Skip("many rows, one after the other")
	}
	w := newWorld(t)
	w.beforeReorganisation()
	for n := uint64(12); n < 200; n++ {
		w.chain.Append(readtest.BlockRecord(n))
	}
	w.chain.Retract(11)
	w.chain.Append(readtest.BlockRecord(12))
	w.g.Write(w.chain)
	w.look()
	if s := w.Snapshot(); s.Block != 12 || s.First != 3 || s.Seq != w.chain.Seq() {
		t.Errorf("%+v", s)
	}
}

// TestVaultThatJoinedLate is not in the list before the next generation has its facts,
// and the blocks up to which it was filled in count.
func TestVaultThatJoinedLate(t *testing.T) {
	w := newWorld(t)
	w.beforeReorganisation()
	late := readtest.VaultRecord(readtest.VaultC, "Gamma", 1)
	late.Passed = true
	w.chain.Append(late, readtest.BlockRecord(1))
	w.g.Write(w.chain)
	w.look()
	if s := w.Snapshot(); len(s.Vaults) != 2 || s.First != 1 || s.Block != 11 || len(s.Absent) != 1 || s.Absent[0].Name != "Gamma" || s.Absent[0].Removed {
		t.Errorf("%+v", s)
	}
}

// TestVaultThatLeft is listed until a generation is made without it, which knows of it
// only that it was there, and by which name.
func TestVaultThatLeft(t *testing.T) {
	gone := readtest.VaultRecord(readtest.VaultA, "", 1)
	gone.Meta = &event.Vault{Address: readtest.VaultA.Bytes(), StartBlock: 1, Removed: true}
	for name, passed := range map[string]bool{"in the generation that has it": false, "in one without it": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			was, removed := readtest.VaultRecord(readtest.VaultA, "Alpha", 1), gone
			was.Passed, removed.Passed = passed, passed
			w.chain.Append(was, readtest.VaultRecord(readtest.VaultB, "Beta", 1), readtest.BlockRecord(1))
			w.chain.Append(removed)
			w.g.Write(w.chain)
			w.look()
			s := w.Snapshot()
			here, absent := s.Vaults, s.Absent
			if passed {
				here = append(absent, here...)
			}
			if len(here) != 2 || len(absent) != len(here)-len(s.Vaults) || here[0].Name != "Alpha" || !here[0].Removed || here[0].Asset.Decimals != 6 || here[1].Removed {
				t.Errorf("here %+v, absent %+v", s.Vaults, absent)
			}
			w.chain.Append(readtest.VaultRecord(readtest.VaultA, "Alpha again", 1)) // of a generation that has it
			w.g.Write(w.chain)
			w.look()
			if v := w.Snapshot().Vaults; len(v) != 2 || v[0].Name != "Alpha again" || v[0].Removed {
				t.Errorf("after it came back: %+v", v)
			}
		})
	}
}

// TestVaultRecords: the newest live one of an address counts, another chain's are
// refused, and payloads that are none.
func TestVaultRecords(t *testing.T) {
	w := newWorld(t)
	again := readtest.VaultRecord(readtest.VaultA, "Alpha 2", 1)
	w.chain.Append(readtest.VaultRecord(readtest.VaultA, "Alpha", 1), readtest.BlockRecord(1))
	w.chain.Append(again, readtest.BlockRecord(2))
	w.g.Write(w.chain)
	w.look()
	if v := w.Snapshot().Vaults; len(v) != 1 || v[0].Name != "Alpha 2" || v[0].Asset.Decimals != 6 {
		t.Errorf("%+v", v)
	}
	w.chain.Add(again, 3)
	w.chain.Append(readtest.BlockRecord(3))
	w.g.Write(w.chain)
	w.look()
	if v := w.Snapshot().Vaults; len(v) != 1 || v[0].Name != "Alpha" {
		t.Errorf("%+v", v)
	}
	was := w.Snapshot()
	refused := func(part string) {
		t.Helper()
		if err := w.Look(t.Context()); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("a look says %v, should say %q", err, part)
		}
		if w.Snapshot() != was {
			t.Error("what was proven is gone")
		}
	}
	w.chain.ChainID++
	w.chain.Append(readtest.VaultRecord(readtest.VaultB, "Beta", 1), readtest.BlockRecord(4))
	w.g.Write(w.chain)
	refused("is of chain 31338 and this program serves chain 31337")
	w.g.Exec("TRUNCATE TABLE records")
	w.g.Exec("INSERT INTO records (seq, sign, kind, block, payload) VALUES (9, 1, 'vault', 0, ''), (10, 1, 'block', 1, '')")
	refused("names no vault")
	w.g.Exec("TRUNCATE TABLE records")
	w.g.Exec("INSERT INTO records (seq, sign, kind, block, payload) VALUES (9, 1, 'vault', 0, '\\xff'), (10, 1, 'block', 1, '')")
	refused("cannot be decoded")
}

// TestArgs: values arrive as they are, and nothing that is no value of ours is sent.
func TestArgs(t *testing.T) {
	w := newWorld(t)
	w.beforeReorganisation()
	p, err := w.Snapshot().At(nil)
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		A string   `ch:"a"`
		B uint64   `ch:"b"`
		C uint32   `ch:"c"`
		D int64    `ch:"d"`
		E []uint64 `ch:"e"`
		F string   `ch:"f"`
		G string   `ch:"g"`
		N uint64   `ch:"n"`
	}
	odd := readtest.VaultA
	odd[0], odd[1], odd[2], odd[3], odd[19] = 0, '\'', '\\', '\n', 0
	var keys pin.Keys
	keys.Address(odd)
	got, ok, err := pin.AskOne[row](t.Context(), p, `SELECT {a:FixedString(20)} AS a, {b:UInt64} AS b, {c:UInt32} AS c, {d:Int64} AS d, {e:Array(UInt64)} AS e, {f:String} AS f,
		{g} AS g, {never:UInt64} AS n WHERE {seq:UInt64} > 0 AND {block:UInt64} = 11`,
		pin.Args{"a": odd, "b": readmodel.Never, "c": uint32(7), "d": int64(-1), "e": []uint64{1, 2}, "f": "queued", "g": &keys})
	want := row{string(odd[:]), readmodel.Never, 7, -1, []uint64{1, 2}, "queued", string(odd[:]), readmodel.Never}
	if err != nil || !ok || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("%+v, %v", got, err)
	}
	var question *pin.Error
	for _, wrong := range []any{"x' OR 1", "", "Queued", nil, 1, []string{"a"}, time.Now()} {
		if _, err := pin.Ask[row](t.Context(), p, "SELECT 1", pin.Args{"a": wrong}); !errors.As(err, &question) || !question.Ours {
			t.Errorf("%T %v: %v", wrong, wrong, err)
		}
	}
	for _, wrong := range []string{
		"SELECT nonsense", "SELECT", "SELECT nonsense()", "SELECT length()", "SELECT length(1)", "SELECT greatest(1, 'a')", "SELECT sum(sum(1))", "SELECT block, count() FROM records",
		"SELECT {absent:UInt64}", "SELECT 'x'::Nonsense",
	} {
		if _, err := pin.Ask[row](t.Context(), p, wrong, nil); !errors.As(err, &question) || !question.Ours {
			t.Errorf("a wrong question, %s: %v", wrong, err)
		}
	}
	if _, err := pin.Ask[row](t.Context(), p, "SELECT 1 FROM nowhere", nil); !errors.As(err, &question) || question.Ours {
		t.Errorf("a table that is gone: %v", err)
	}
	// No thread, no right to do it, a wrong password, Keeper away, and what only a later version has.
	for _, code := range []int{439, 497, 516, 999, 1999} {
		refused := fmt.Sprintf("SELECT throwIf(1, 'not now', %d::Int16) SETTINGS allow_custom_error_code_in_throwif = 1", code)
		if _, err := pin.Ask[row](t.Context(), p, refused, nil); !errors.As(err, &question) || question.Ours || !strings.Contains(err.Error(), fmt.Sprint(code)) {
			t.Errorf("an engine that says %d: %v", code, err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pin.Ask[row](gone, p, "SELECT 1", nil); !errors.As(err, &question) || question.Ours {
		t.Errorf("no time: %v", err)
	}
}

// TestQuestionsComeFirst: an answer that somebody waits for goes before what the engine
// writes, is planned by the older analyzer and takes one thread, unless it says otherwise.
func TestQuestionsComeFirst(t *testing.T) {
	w := newWorld(t)
	w.beforeReorganisation()
	p, _ := w.Snapshot().At(nil)
	type row struct {
		Nice     int32  `ch:"nice"`
		Analyzer bool   `ch:"analyzer"`
		Threads  uint64 `ch:"threads"`
	}
	question := "SELECT toInt32(getSetting('os_threads_nice_value_query')) AS nice, getSetting('enable_analyzer') AS analyzer, toUInt64(getSetting('max_threads')) AS threads"
	for settings, want := range map[string]row{"": {-10, false, 1}, " SETTINGS max_threads = 2, enable_analyzer = 1": {-10, true, 2}} {
		if got, _, err := pin.AskOne[row](t.Context(), p, question+settings, nil); err != nil || got != want {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
}

// registered is a watcher with a registry.
func registered(t *testing.T) (*world, *pgxpool.Pool) {
	t.Helper()
	pool, err := registry.Open(t.Context(), registry.Config{URL: enginetest.Postgres(t), MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	w := newWorld(t)
	w.Watcher = pin.New(readtest.ChainID, 16, time.Minute, w.g.Config, pool, quiet(t))
	w.LookTimeout = time.Minute
	t.Cleanup(w.Watcher.Close)
	return w, pool
}

func generation(t *testing.T, pool *pgxpool.Pool, id int32, schema, state string) {
	t.Helper()
	p := db.CreateGenerationParams{ID: id, LogID: make([]byte, 16), Schema: schema, State: state}
	if err := db.New(pool).CreateGeneration(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

// TestWhichGeneration: the live one, of our schema; while none is, the newest one that is
// being built.
func TestWhichGeneration(t *testing.T) {
	w, pool := registered(t)
	ctx := t.Context()
	look := func(want string) {
		t.Helper()
		w.LookAtRegistry(ctx)
		got := ""
		if err := w.Look(ctx); err != nil {
			got = err.Error()
		} else if s := w.Snapshot(); s != nil {
			got = fmt.Sprintf("generation %d at %d, partial %v", s.Generation-w.g.ID, s.Block, s.Partial)
		}
		if !strings.Contains(got, want) || got == "" {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if err := w.Look(ctx); err == nil || !strings.Contains(err.Error(), "did not say yet which generation is live") {
		t.Errorf("before the registry has answered: %v", err)
	}
	look("no generation is live: `navlog project` makes the first one")
	generation(t, pool, w.g.ID-1_000_000, "older", registry.Building)
	look("no generation is live")
	building := readtest.Building(t, enginetest.ClickHouse(t))
	generation(t, pool, building.ID, readmodel.Schema(), registry.Building)
	look("holds no indexed block yet")
	chain := readtest.SmallChain()
	building.WriteFacts(chain)
	building.WriteSpine(chain)
	look(fmt.Sprintf("generation %d at 11, partial true", building.ID-w.g.ID))
	first := w.Snapshot()
	set := func(id int32, from, to string) {
		t.Helper()
		if n, err := db.New(pool).SetGenerationState(ctx, db.SetGenerationStateParams{ID: id, OldState: from, NewState: to}); err != nil || n != 1 {
			t.Fatal(n, err)
		}
	}
	set(building.ID, registry.Building, registry.Live)
	look(fmt.Sprintf("generation %d at 11, partial false", building.ID-w.g.ID))
	if w.Snapshot() == first {
		t.Error("the same snapshot for another state")
	}
	generation(t, pool, w.g.ID, readmodel.Schema(), registry.Building)
	w.chain.Append(readtest.BlockRecord(4))
	w.g.Write(w.chain)
	look(fmt.Sprintf("generation %d at 11, partial false", building.ID-w.g.ID)) // the live one goes on
	set(building.ID, registry.Live, registry.Standby)
	set(w.g.ID, registry.Building, registry.Live)
	look("generation 0 at 4, partial false")
	if got := fmt.Sprint(w.Leaving()); got != fmt.Sprintf("map[%d:1m0s]", building.ID) && len(w.Leaving()) != 1 {
		t.Errorf("leaving %s", got)
	}
	if _, err := pool.Exec(ctx, "UPDATE generation SET schema = 'older' WHERE state = 'live'"); err != nil {
		t.Fatal(err)
	}
	look("this program reads schema")
	if w.Snapshot() != nil {
		t.Error("another schema is served")
	}
}

// TestFirstSyncProgress is what project says, while it says so.
func TestFirstSyncProgress(t *testing.T) {
	w, pool := registered(t)
	generation(t, pool, w.g.ID, readmodel.Schema(), registry.Building)
	says := func(status string) *registry.BuildingStatus {
		t.Helper()
		if err := db.New(pool).PutStatus(t.Context(), db.PutStatusParams{Program: "project", Instance: "a", Status: []byte(status)}); err != nil {
			t.Fatal(err)
		}
		if r := w.LookAtRegistry(t.Context()); r.Err != nil {
			t.Fatal(r.Err)
		}
		return w.FirstSync()
	}
	if got := says(`{"state":"following"}`); got != nil {
		t.Errorf("nothing was said, and %+v is told", got)
	}
	if got := says(`{"state":"building","building":{"generation":1000000,"seq":5,"recordsLeft":7,"etaSeconds":null,"phase":"facts"}}`); got != nil {
		t.Errorf("another generation's progress is told: %+v", got)
	}
	got := says(fmt.Sprintf(`{"state":"building","building":{"generation":%d,"seq":5,"recordsLeft":7,"etaSeconds":9,"phase":"facts"}}`, w.g.ID))
	if got == nil || got.Seq != 5 || got.RecordsLeft != 7 || got.ETASeconds == nil || *got.ETASeconds != 9 || got.Phase != registry.PhaseFacts {
		t.Errorf("%+v", got)
	}
	w.Now = func() time.Time { return time.Now().Add(6 * time.Second) }
	if got := w.FirstSync(); got != nil {
		t.Errorf("what was said long ago is told: %+v", got)
	}
}

// TestRegistryGone: what it said before stays.
func TestRegistryGone(t *testing.T) {
	w, pool := registered(t)
	generation(t, pool, w.g.ID, readmodel.Schema(), registry.Live)
	w.chain.Append(readtest.BlockRecord(4))
	w.g.Write(w.chain)
	w.LookAtRegistry(t.Context())
	w.look()
	answered := w.Registry().Answered
	pool.Close()
	if r := w.LookAtRegistry(t.Context()); r.Err == nil || !r.Known || r.Answered != answered {
		t.Errorf("%+v", r)
	}
	w.chain.Append(readtest.BlockRecord(5))
	w.g.Write(w.chain)
	w.look()
	if s := w.Snapshot(); s.Block != 5 {
		t.Errorf("%+v", s)
	}
}

// TestFirstBlockTakenBack: the first block is found above many that are gone, and the
// same one that came again.
func TestFirstBlockTakenBack(t *testing.T) {
	w := newWorld(t)
	for n := uint64(1); n <= 30; n++ {
		w.chain.Append(readtest.BlockRecord(n))
	}
	w.g.Write(w.chain)
	w.look()
	if s := w.Snapshot(); s.First != 1 || s.Block != 30 {
		t.Errorf("%+v", s)
	}
	w.chain.Retract(0)
	w.chain.Append(readtest.BlockRecord(20))
	w.g.Write(w.chain)
	w.look()
	if s := w.Snapshot(); s.First != 20 || s.Block != 20 {
		t.Errorf("%+v", s)
	}
}

// TestLooksReadFewRows: what a look at the newest state reads does not grow with the log.
func TestLooksReadFewRows(t *testing.T) {
	w := newWorld(t)
	const many = 100_000
	w.g.Exec(fmt.Sprintf("INSERT INTO records (seq, sign, kind, boundary, block, ts) SELECT number + 1, 1, 'block', 1, number + 1, number FROM numbers(%d)", many))
	w.g.Exec("OPTIMIZE TABLE records FINAL")
	var read atomic.Uint64
	ctx := clickhouse.Context(t.Context(), clickhouse.WithProgress(func(p *clickhouse.Progress) { read.Add(p.Rows) }))
	if err := w.Look(ctx); err != nil {
		t.Fatal(err)
	}
	if s := w.Snapshot(); s.Seq != many || s.Block != many || s.First != 1 {
		t.Errorf("%+v", s)
	}
	if n := read.Load(); n == 0 || n > many/20 {
		t.Errorf("read %d rows of %d", n, many)
	}
}

// TestSettled: amid a long answer, each reorganisation that leaves its block as it was is
// passed by, however many there are and whether a question saw it or not, and one that does
// not is seen.
func TestSettled(t *testing.T) {
	w := newWorld(t)
	w.beforeReorganisation()
	const block = 5
	seen := func(fences ...readmodel.Fence) error {
		asOf := uint64(block)
		p, err := w.Snapshot().At(&asOf)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range fences {
			if f == (readmodel.Fence{}) {
				if err := p.Settled(t.Context()); err != nil {
					return err
				}
				continue
			}
			p.See(f)
		}
		return p.Settled(t.Context())
	}
	s := w.Snapshot().Seq
	backTo := func(ancestor, before uint64) readmodel.Fence { // and the blocks are mined anew
		w.chain.Retract(ancestor)
		w.chain.Append(readtest.BlockRecord(ancestor+1), readtest.BlockRecord(11))
		return readmodel.Fence{Seq: w.chain.Seq(), Block: ancestor, Before: before}
	}
	// A log of a vault that joins late is in the spine alone, and changes nothing either.
	w.chain.Add(readtest.Fact{Kind: readtest.Deposit, Vault: readtest.VaultB, User: readtest.Bob, ID: 1, Assets: 1, Shares: 1, Block: 3, Tx: readtest.Tx(99), Passed: true}, 0)
	above := backTo(9, s)
	again := backTo(5, above.Seq)
	below := backTo(4, again.Seq)
	after := backTo(9, below.Seq)
	w.g.WriteSpine(w.chain)
	asked := readmodel.Fence{}
	for name, c := range map[string]struct {
		fences []readmodel.Fence
		want   error
	}{
		"none":                           {nil, nil},
		"one above":                      {[]readmodel.Fence{above}, nil},
		"two above":                      {[]readmodel.Fence{above, again}, nil},
		"two above, seen the last first": {[]readmodel.Fence{again, above}, nil},
		"two above, asked between":       {[]readmodel.Fence{above, asked, again}, nil},
		"one of two was not seen":        {[]readmodel.Fence{again}, nil},
		"one below was not seen":         {[]readmodel.Fence{after}, pin.ErrNotYet},
		"one below was not seen later":   {[]readmodel.Fence{above, asked, after}, pin.ErrNotYet},
		"one below":                      {[]readmodel.Fence{above, asked, again, asked, below}, pin.ErrNotYet},
		"one below at once":              {[]readmodel.Fence{{Seq: s + 1, Block: 4}}, pin.ErrNotYet},
	} {
		if err := seen(c.fences...); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
