package projections

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/ethereum/go-ethereum/common"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
)

// TestFirstGeneration: the first generation is built and reports its progress; it goes live once every vault is
// covered, and not before.
func TestFirstGeneration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newScript()
	s.Mine(emitted{vaultA, deposit(1, alice, 7, whole(5))})
	late := vaultAt(2)
	s.Vault(late) // its history is not read yet
	w.append(t, s.Records)
	p, _ := w.projector(t)
	start(t, p)
	o := w.operator(t)
	built := func(seq uint64) {
		t.Helper()
		wait.Until(t, func() error {
			status := p.Status()
			b := status.Building
			if b == nil || b.Generation != 1 || b.Seq != seq || b.RecordsLeft != 0 || b.Phase != registry.PhaseFacts ||
				len(status.Others) != 1 || status.Others[0].State != Building {
				return fmt.Errorf("status is %+v, building %+v; want generation 1 at seq %d", status, b, seq)
			}
			return nil
		})
		if err := p.Ready(); err == nil || !strings.Contains(err.Error(), "generation 1 is being built") {
			t.Errorf("ready is %v while the first generation is built", err)
		}
		wantStates(t, o, "1 building")
	}
	built(s.Seq())
	// The lists are not built, however long the log stands still: here until the keeper has checked the end of the
	// log again.
	s.Decision("wait")
	w.transaction(t, s.Records[s.Seq()-1:], kgo.TryAbort)
	built(s.Seq() - 1)
	s.Records = s.Records[:s.Seq()-1]
	from := s.Seq()
	s.Backfill(s.First, emitted{late, deposit(1, bob, 7, whole(3))})
	w.append(t, s.Records[from:])
	reaches(t, p, s.Seq())
	wantStates(t, o, "1 live")
	if b := p.Status().Building; b != nil {
		t.Errorf("a live generation is reported as being built: %+v", b)
	}
	w.equal(t, s.Seq())
}

// TestListUnreadable: while no generation is live, a projector that cannot read the list reports this, but only as long
// as it lasts.
func TestListUnreadable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newScript()
	s.Mine()
	s.Vault(vaultAt(2)) // its history is not read yet
	w.append(t, s.Records)
	p, _ := w.projector(t)
	start(t, p)
	ready := func(words string) {
		t.Helper()
		wait.Until(t, func() error {
			if err := p.Ready(); err == nil || !strings.Contains(err.Error(), words) {
				return fmt.Errorf("ready is %v, want %q", err, words)
			}
			return nil
		})
	}
	ready("generation 1 is being built")
	_, err := w.pool.Exec(t.Context(), "ALTER TABLE generation RENAME TO renamed")
	must(t, err)
	ready("retrying: list the generations in PostgreSQL")
	_, err = w.pool.Exec(t.Context(), "ALTER TABLE renamed RENAME TO generation")
	must(t, err)
	ready("generation 1 is being built")
	if got := p.Status(); got.State != Waiting || got.Building == nil {
		t.Errorf("status is %+v", got)
	}
}

// TestRefusalEnds: if the only generation is bad, or was being built by another version, a projector reports this until
// a rebuild makes another one.
func TestRefusalEnds(t *testing.T) {
	t.Parallel()
	for words, first := range map[string]generation{
		"no generation is live":   {Schema: readmodel.Schema(), State: registry.Bad},
		"has schema fedcba987654": {Schema: "fedcba987654", State: registry.Building},
	} {
		t.Run(first.State, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := newScript()
			s.Mine()
			s.Vault(vaultAt(2)) // its history is not read yet
			w.append(t, s.Records)
			logID := s.Records[0].GetOrigin().GetLogId()
			w.registered(t, 1, logID, first.Schema, first.State)
			p, _ := w.projector(t)
			refuses(t, p, words, "`navlog projection rebuild`")
			w.registered(t, 2, logID, readmodel.Schema(), registry.Building)
			wait.Until(t, func() error {
				if s, err := p.Status(), p.Ready(); s.State != Waiting || s.Reason != "" ||
					!strings.Contains(fmt.Sprint(err), "generation 2 is being built") {
					return fmt.Errorf("status is %+v, ready %v", s, err)
				}
				return nil
			})
		})
	}
}

// TestCovered: the newest cursor of ingest must meet these conditions before the lists of a generation are built.
func TestCovered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := newGeneration(t)
	s := newScript()
	s.Mine()
	s.Mine()
	writer := g.writer(t)
	must(t, writer.Write(t.Context(), writer.Encode(batchOf(t, s.Records))))
	check := func(what string, want bool) {
		t.Helper()
		cursor, err := chainlog.ReadCursor(t.Context(), chainID, w.kafka.Options()...)
		must(t, err)
		got := coversAllVaults(cursor) && cursor.GetSeq() <= writer.Position()
		if got {
			got, err = hasVaults(t.Context(), writer, cursor)
		}
		if err != nil || got != want {
			t.Errorf("%s: covered is %t, %v; want %t", what, got, err, want)
		}
	}
	check("no cursor", false)
	appended := func(cursor *event.Cursor) {
		must(t, w.producer.BeginTransaction())
		must(t, w.producer.ProduceSync(t.Context(), encoded(t, cursor)).FirstErr())
		must(t, chainlog.EndTransaction(t.Context(), w.producer, kgo.TryCommit, chainlog.CursorTopic(chainID)))
	}
	for _, c := range []struct {
		what   string
		change func(*event.Cursor)
		want   bool
	}{
		{"every vault up to the head", func(*event.Cursor) {}, true},
		{"an older seq that covers them", func(c *event.Cursor) { c.Seq-- }, true},
		{"a seq that is still to come", func(c *event.Cursor) { c.Seq++ }, false},
		{"no head", func(c *event.Cursor) { c.Head = nil }, false},
		{"a head in the middle of the final blocks", func(c *event.Cursor) { c.FinalBlock = c.Head.Number + 1 }, false},
		{"a head that is final", func(c *event.Cursor) { c.FinalBlock = c.Head.Number }, true},
		{"a vault that lacks a block", func(c *event.Cursor) { c.Vaults[1].CoveredTo-- }, false},
		{"a vault that is not configured any more",
			func(c *event.Cursor) { c.Vaults[1].CoveredTo, c.Vaults[1].Removed = 0, true }, true},
		{"a vault of the log that the cursor lacks", func(c *event.Cursor) { c.Seq, c.Vaults = 1, c.Vaults[:1] }, false},
		{"a vault more, which is covered", func(c *event.Cursor) {
			c.Vaults = append(c.Vaults, &event.Coverage{Address: vaultAt(7).Bytes(), CoveredTo: c.Head.Number})
		}, true},
	} {
		cursor := proto.Clone(cursorOf(s.Records)).(*event.Cursor)
		c.change(cursor)
		appended(cursor)
		check(c.what, c.want)
	}
	from := s.Seq()
	s.Removed(vaultB)
	s.Mine()
	appended(cursorOf(s.Records))
	s.Vault(vaultB) // and a part of its history
	must(t, writer.Write(t.Context(), writer.Encode(batchOf(t, s.Records[from:]))))
	check("a vault that was restored after it", false)
}

// TestCursorIsReadRarely: a cursor that does not cover every vault is read again when the generation has all records
// up to it and some time has passed. The cursor is corrupt, so that reading it shows.
func TestCursorIsReadRarely(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, _ := w.projector(t)
	k := &keeper{Projections: p}
	g := newGeneration(t)
	s := newScript()
	s.Mine()
	s.Vault(vaultAt(2)) // its history is not read yet
	w.append(t, s.Records)
	writer := g.writer(t)
	var known seenCursor
	must(t, k.build(t.Context(), writer, &known))
	if known.cursor.GetSeq() != s.Seq() || coversAllVaults(known.cursor) {
		t.Fatalf("the cursor is %v", known.cursor)
	}
	corrupt := encoded(t, cursorOf(s.Records))
	corrupt.Value = []byte("no cursor")
	must(t, w.producer.BeginTransaction())
	must(t, w.producer.ProduceSync(t.Context(), corrupt).FirstErr())
	must(t, chainlog.EndTransaction(t.Context(), w.producer, kgo.TryCommit, chainlog.CursorTopic(chainID)))
	p.every = 0
	must(t, k.build(t.Context(), writer, &known)) // the generation lacks records up to the cursor
	must(t, writer.Write(t.Context(), writer.Encode(batchOf(t, s.Records))))
	p.every = time.Hour
	must(t, k.build(t.Context(), writer, &known)) // too soon
	p.every = 0
	wantError(t, k.build(t.Context(), writer, &known), "is corrupt")
}

// TestFirstGenerationBreaks: the only generation cannot be built, and the projector reports why.
func TestFirstGenerationBreaks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newScript()
	s.Mine()
	s.Vault(vaultAt(2)) // its history is not read yet
	w.append(t, s.Records)
	p, _ := w.projector(t)
	start(t, p)
	wait.Until(t, func() error {
		if b := p.Status().Building; b == nil || b.Seq != s.Seq() {
			return fmt.Errorf("building %+v", b)
		}
		return nil
	})
	w.transaction(t, []*event.Record{{Seq: s.Seq() + 2, ChainId: chainID, Boundary: true, Fact: s.Records[2].Fact}},
		kgo.TryCommit)
	refusing(t, p, "records were lost")
}

// count counts the rows of a generation's table that meet a condition.
func (w *world) count(t *testing.T, id int32, table, condition string) uint64 {
	t.Helper()
	return number(t, w.conn, fmt.Sprintf("SELECT count() FROM %s.%s WHERE %s", w.ch.Database(id), table, condition))
}

// TestLateVault: the live generation skips the records of a vault that was added after its lists were built. The
// projector builds the next one by itself, which takes over when the vault is covered, and not before.
func TestLateVault(t *testing.T) {
	t.Parallel()
	w, s, p, o := running(t)
	late := vaultAt(2)
	of := fmt.Sprintf("list = 'vault_events' AND kind = 'deposit' AND owner = unhex('%x')", late[:])
	from := s.Seq()
	s.Vault(late)
	w.append(t, s.Records[from:])
	wait.Until(t, func() error {
		if got := states(t, o); got != "1 live, 2 building" {
			return fmt.Errorf("the generations are %s", got)
		}
		return nil
	})
	w.wantAt(t, 1, s.Seq())
	w.wantAt(t, 2, s.Seq())
	if n := w.count(t, 1, "events", "passed"); n != 1 {
		t.Errorf("generation 1 passed %d records over, want the vault's", n)
	}
	w.equal(t, s.Seq())
	wantStates(t, o, "1 live, 2 building") // the vault's history is not read yet

	from = s.Seq()
	s.Backfill(s.First, emitted{late, deposit(1, bob, 7, whole(3))}, emitted{late, requested(1, bob)})
	s.Mine(emitted{late, deposit(2, alice, 7, whole(4))}, emitted{vaultA, deposit(5, alice, 7, whole(4))})
	w.append(t, s.Records[from:])
	follows(t, p, 2, s.Seq())
	wait.Until(t, func() error { // the old one continues, and skips
		if got := states(t, o); got != "1 standby, 2 live" {
			return fmt.Errorf("the generations are %s", got)
		}
		return nil
	})
	w.wantAt(t, 1, s.Seq())
	if passed, rows := w.count(t, 1, "events", "passed"), w.count(t, 1, "lists", of); passed != 5 || rows != 0 {
		t.Errorf("generation 1 passed %d records over, and has %d deposits of the vault", passed, rows)
	}
	if passed, rows := w.count(t, 2, "events", "passed"), w.count(t, 2, "lists", of); passed != 0 || rows != 2 {
		t.Errorf("generation 2 passed %d records over, and has %d deposits of the vault", passed, rows)
	}
	w.equal(t, s.Seq())
	all, err := o.List(t.Context())
	must(t, err)
	if !all[0].Outdated || all[1].Outdated {
		t.Errorf("the list has the generations %+v; want the first to be outdated", all)
	}
	w.more(t, s)
	follows(t, p, 2, s.Seq())
	wantStates(t, o, "1 standby, 2 live")
}

// TestSuccessorOverRows: after a restore of PostgreSQL, the database of the next generation may have the rows of one
// that the list does not have. The successor of an outdated generation does not continue them.
func TestSuccessorOverRows(t *testing.T) {
	t.Parallel()
	w, s, p, o := running(t)
	conn := open(t, w.ch)
	must(t, w.ch.CreateEvents(t.Context(), conn, w.ch.Database(2)))
	must(t, conn.Exec(t.Context(), "INSERT INTO "+w.ch.Database(2)+".events SELECT * FROM "+w.ch.Database(1)+".events"))
	from := s.Seq()
	s.Vault(vaultAt(2))
	w.append(t, s.Records[from:])
	wait.Until(t, func() error {
		if err := p.Ready(); err == nil || !strings.Contains(err.Error(), "PostgreSQL has no generation 2") {
			return fmt.Errorf("the list is %s, and ready is %v", states(t, o), err)
		}
		return nil
	})
	wantStates(t, o, "1 live")
	w.more(t, s)
	w.wantAt(t, 1, s.Seq())
	must(t, w.ch.Drop(t.Context(), conn, w.ch.Database(2)))
	becomes(t, o, "1 live, 2 building")
}

// gatedConn holds back inserts until the test lets them through, and counts the queries for a generation's position.
type gatedConn struct {
	driver.Conn
	gate  *sync.RWMutex
	lists string // lists table of the generation
	reads *atomic.Int32
}

func (c *gatedConn) PrepareBatch(
	ctx context.Context, query string, options ...driver.PrepareBatchOption,
) (driver.Batch, error) {
	c.gate.RLock()
	defer c.gate.RUnlock()
	return c.Conn.PrepareBatch(ctx, query, options...)
}

func (c *gatedConn) QueryRow(ctx context.Context, query string, args ...any) driver.Row {
	if strings.Contains(query, c.lists) {
		c.reads.Add(1)
	}
	return c.Conn.QueryRow(ctx, query, args...)
}

// TestLateVaultElsewhere: another instance writes the live generation. Its successor does not take over before it has
// caught up with the live one.
func TestLateVaultElsewhere(t *testing.T) {
	if testing.Short() {
		t.Skip("builds two generations")
	}
	t.Parallel()
	w := newWorld(t)
	s := everyEvent()
	w.append(t, s.Records)
	first, _ := w.projector(t) // for generation 1 only
	open := first.open
	first.open = func(database string) (driver.Conn, error) {
		if database == w.ch.Database(2) {
			return nil, errors.New("it is the other projector's")
		}
		return open(database)
	}
	start(t, first)
	reaches(t, first, s.Seq())
	second, _ := w.projector(t)
	var gate sync.RWMutex
	var reads atomic.Int32
	second.open = func(database string) (driver.Conn, error) {
		conn, err := open(database)
		return &gatedConn{conn, &gate, w.ch.Database(1) + ".lists", &reads}, err
	}
	start(t, second)
	o := w.operator(t)
	next := func(seq uint64, state string) {
		t.Helper()
		wait.Until(t, func() error {
			for _, s := range second.Status().Others {
				if s.Generation == 2 && s.Seq == seq && s.State == state {
					return nil
				}
			}
			return fmt.Errorf("the second projector reports %+v", second.Status())
		})
	}
	from := s.Seq()
	late := vaultAt(2)
	s.Vault(late)
	w.append(t, s.Records[from:])
	next(s.Seq(), Building)

	// While the list cannot be read, the next generation catches up with the log, and falls behind again.
	unlisted, err := w.pool.Begin(t.Context())
	must(t, err)
	defer func() { _ = unlisted.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = unlisted.Exec(t.Context(), "SET LOCAL idle_in_transaction_session_timeout = 0") // however slow the machine is
	must(t, err)
	_, err = unlisted.Exec(t.Context(), "LOCK TABLE generation IN ACCESS EXCLUSIVE MODE")
	must(t, err)
	from = s.Seq()
	s.Backfill(s.First, emitted{late, deposit(1, bob, 7, whole(3))})
	w.append(t, s.Records[from:])
	next(s.Seq(), Following)
	gate.Lock()
	lift := sync.OnceFunc(gate.Unlock)
	t.Cleanup(lift)
	behind := s.Seq()
	w.more(t, s)
	w.wantAt(t, 1, s.Seq())
	before := reads.Load()
	must(t, unlisted.Commit(t.Context()))
	wait.Until(t, func() error { // the second query follows the first decision
		if reads.Load() < before+2 && w.servedBy(t) == 1 {
			return errors.New("nothing was decided yet")
		}
		return nil
	})
	wantStates(t, o, "1 live, 2 building")
	next(behind, Following)
	lift()
	follows(t, second, 2, s.Seq())
	wantStates(t, o, "1 standby, 2 live")
	w.verify(t, s.Seq())
}

// TestVaultComesBack: a vault of the live generation is restored below the newest block. That generation cannot
// represent it and is no longer written, as the list and a switch to it report; the projector builds the next one by
// itself.
func TestVaultComesBack(t *testing.T) {
	if testing.Short() {
		t.Skip("several rebuilds")
	}
	t.Parallel()
	w, s, p, o := running(t)
	position := s.Seq()
	s.Backfill(s.First, emitted{vaultB, deposit(1, bob, 7, whole(3))})
	w.append(t, s.Records[position:])
	follows(t, p, 2, s.Seq())
	wantStates(t, o, "1 standby, 2 live")
	w.verify(t, s.Seq())
	if n := number(t, w.conn, "SELECT max(seq) FROM "+w.ch.Database(1)+".events"); n != position {
		t.Errorf("generation 1 was written up to seq %d, after %d", n, position)
	}
	old := p.roster.all()[0]
	wait.Until(t, func() error {
		if seq, lag := testutil.ToFloat64(old.metrics.seq), testutil.ToFloat64(old.metrics.lag); !math.IsNaN(seq) ||
			!math.IsNaN(lag) {
			return fmt.Errorf("the metrics of a generation that is no longer written show seq %v and lag %v", seq, lag)
		}
		return nil
	})
	wantError(t, old.fault(), fmt.Sprintf("block %d of vault %s", s.First, common.Address(vaultB)), "a vault was restored")
	w.more(t, s)
	follows(t, p, 2, s.Seq())
	w.verify(t, s.Seq())

	wait.Until(t, func() error { // the projector has reported it
		all, err := o.List(t.Context())
		if err != nil {
			return err
		}
		if !strings.Contains(all[0].Note, "a vault was restored") || all[1].Note != "" {
			return fmt.Errorf("the generations have the notes %q and %q", all[0].Note, all[1].Note)
		}
		return nil
	})
	began := time.Now()
	wantError(t, o.Switch(t.Context(), 1), "generation 1 is at seq", "nothing was switched", "a vault was restored")
	if took := time.Since(began); took >= catchUp {
		t.Errorf("the switch to a generation that is not written any more waits for it: %s", took)
	}
}

// TestVaultRemoved: when a vault is removed, the projector by itself builds a generation without it, which has none
// of its rows and none of its amounts in a total, and takes over; the old one continues unchanged. No further
// generation is made, not even by a restart, until the vault is restored: then the next one includes it.
func TestVaultRemoved(t *testing.T) {
	if testing.Short() {
		t.Skip("several rebuilds")
	}
	t.Parallel()
	w, s, p, o := running(t)
	of := fmt.Sprintf("unhex('%x') IN (owner, scope, vault)", vaultB[:])
	from := s.Seq()
	s.Mine(emitted{vaultB, deposit(50, bob, 9, whole(3))}, emitted{vaultB, requested(50, bob)})
	s.Removed(vaultB)
	s.Mine(emitted{vaultA, deposit(51, alice, 9, whole(4))})
	w.append(t, s.Records[from:])
	becomes(t, o, "1 standby, 2 live")
	follows(t, p, 2, s.Seq())
	if n := w.count(t, 2, "lists", of); n != 0 {
		t.Errorf("lists of generation 2 has %d rows of the removed vault", n)
	}
	if n := w.count(t, 1, "lists", of); n == 0 {
		t.Error("generation 1 lost the rows of the removed vault")
	}
	through := func(id int32) uint64 {
		return number(t, w.conn, fmt.Sprintf("SELECT toUInt64(sum(deposits * sign)) FROM %s.lists WHERE list = 'totals' "+
			"AND owner = unhex('%x') AND key = %d",
			w.ch.Database(id), readmodel.PartnerOwner(9), uint64(readmodel.Never)))
	}
	if first, second := through(1), through(2); first != second+1 {
		t.Errorf("partner 9 has %d deposits with the vault and %d without it, of which it has one", first, second)
	}
	w.verify(t, s.Seq())
	wait.Until(t, func() error { // both are written, and only the live one counts vaults without a known event
		all := p.roster.all()
		first, second := testutil.ToFloat64(all[0].metrics.foreign), testutil.ToFloat64(all[1].metrics.foreign)
		if !math.IsNaN(first) || second != 0 {
			return fmt.Errorf("vaults without a known event are %v in generation 1 and %v in generation 2", first, second)
		}
		return nil
	})

	again, _ := w.projector(t) // this one may write the next generation
	start(t, again)
	w.more(t, s)
	follows(t, p, 2, s.Seq())
	becomes(t, o, "1 standby, 2 live")
	w.verify(t, s.Seq())

	from = s.Seq()
	s.Vault(vaultB)
	s.Mine(emitted{vaultB, deposit(52, bob, 9, whole(3))})
	w.append(t, s.Records[from:])
	becomes(t, o, "1 standby, 2 standby, 3 live")
	w.wantAt(t, 3, s.Seq())
	if n := w.count(t, 3, "lists", of); n < 2 {
		t.Errorf("generation 3 has %d rows of the vault that came back", n)
	}
	w.verify(t, s.Seq())
}

// TestVaultRestoredMeanwhile: a vault is removed, and restored while the generation without it is being built. That one
// is not made live, because the live one still has the vault: it stays live until a generation with the vault is built.
func TestVaultRestoredMeanwhile(t *testing.T) {
	if testing.Short() {
		t.Skip("builds three generations")
	}
	t.Parallel()
	w := newWorld(t)
	s := everyEvent()
	w.append(t, s.Records)
	p, _ := w.projector(t)
	var may [4]atomic.Bool // by generation: whether the projector may write it
	may[1].Store(true)
	open := p.open
	p.open = func(database string) (driver.Conn, error) {
		for id := range may {
			if database == w.ch.Database(int32(id)) && !may[id].Load() {
				return nil, errors.New("not yet")
			}
		}
		return open(database)
	}
	start(t, p)
	reaches(t, p, s.Seq())
	o := w.operator(t)
	from := s.Seq()
	s.Removed(vaultB)
	w.append(t, s.Records[from:])
	becomes(t, o, "1 live, 2 building")
	from = s.Seq()
	s.Vault(vaultB)
	s.Mine(emitted{vaultB, deposit(52, bob, 9, whole(3))})
	w.append(t, s.Records[from:])
	w.wantAt(t, 1, s.Seq())
	may[2].Store(true)
	becomes(t, o, "1 live, 2 building, 3 building")
	follows(t, p, 1, s.Seq())
	may[3].Store(true)
	becomes(t, o, "1 standby, 2 dropped, 3 live") // nothing is left of the one that could not be live
	of := fmt.Sprintf("unhex('%x') IN (owner, scope, vault)", vaultB[:])
	if had, has := w.count(t, 1, "lists FINAL", of), w.count(t, 3, "lists FINAL", of); had == 0 || has != had {
		t.Errorf("generation 3 has %d rows of the vault, and generation 1 has %d", has, had)
	}
	w.verify(t, s.Seq())
}

// TestVaultRemovedWhileBuilding: a vault is removed after the generation was created and before its lists are built.
// The next generation is made although the log gets no further record.
func TestVaultRemovedWhileBuilding(t *testing.T) {
	if testing.Short() {
		t.Skip("builds two generations")
	}
	t.Parallel()
	w := newWorld(t)
	s := newScript()
	s.Mine(emitted{vaultA, deposit(1, alice, 7, whole(5))}, emitted{vaultB, deposit(2, bob, 7, whole(3))})
	s.Removed(vaultB)
	w.append(t, s.Records)
	w.registered(t, 1, s.Records[0].GetOrigin().GetLogId(), readmodel.Schema(), registry.Building)
	p, _ := w.projector(t)
	start(t, p)
	follows(t, p, 2, s.Seq())
	wantStates(t, w.operator(t), "1 standby, 2 live")
	w.verify(t, s.Seq())
}

// TestRebuildAfterRemoval: a rebuild omits a removed vault too, and equals the live generation, which was built
// without it.
func TestRebuildAfterRemoval(t *testing.T) {
	if testing.Short() {
		t.Skip("rebuilds after a removal")
	}
	t.Parallel()
	w, s, p, o := running(t)
	from := s.Seq()
	s.Mine(emitted{vaultB, deposit(50, bob, 9, whole(3))})
	s.Removed(vaultB)
	w.append(t, s.Records[from:])
	follows(t, p, 2, s.Seq())
	out, err := o.Rebuild(t.Context(), RebuildOptions{})
	must(t, err)
	if out.Generation != 3 || !out.Live || out.Parity == nil || out.Parity.Err() != nil {
		t.Errorf("rebuilt %+v:\n%s", out, out.Parity)
	}
	follows(t, p, 3, s.Seq())
	if n := w.count(t, 3, "events", "passed"); n == 0 {
		t.Error("the rebuilt generation passed no record of the removed vault over")
	}
}
