package fulldisk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/ingest/backup"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/projections"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// deliveries returns the bodies of the partners' events, by id.
func (s *system) deliveries() map[string]string {
	s.t.Helper()
	rows, err := s.pool.Query(s.t.Context(), "SELECT event_id::text, body FROM delivery")
	must(s.t, err)
	defer rows.Close()
	found := map[string]string{}
	for rows.Next() {
		var id string
		var body []byte
		must(s.t, rows.Scan(&id, &body))
		found[id] = string(body)
	}
	must(s.t, rows.Err())
	return found
}

// kept checks that each of the earlier events still exists with the same bytes.
func (s *system) kept(before map[string]string) {
	s.t.Helper()
	after := s.deliveries()
	for id, body := range before {
		if after[id] != body {
			s.t.Errorf("event %s is %q, and was %q", id, after[id], body)
		}
	}
	if len(before) == 0 {
		s.t.Error("there was no event")
	}
}

// dropped drops a generation.
func (s *system) dropped(id int32) {
	s.t.Helper()
	o, err := projections.NewOperator(chainID, s.kafka, s.ch, s.pool)
	must(s.t, err)
	defer o.Close()
	must(s.t, o.Drop(s.t.Context(), id))
}

// ClickHouse loses everything and comes back empty. project rebuilds the read model from the log; nothing else needs to
// be done. serve is started after that, because the embedded engine exits when a client logs in to a database that does
// not exist.
func TestEmptyClickHouse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := func(name string) *engines.ClickHouse {
		ch, err := engines.StartClickHouse(t.Context(), filepath.Join(dir, name))
		must(t, err)
		t.Cleanup(func() { _ = ch.Close() })
		return ch
	}
	ch := start("before")
	s := newSystem(t, enginetest.Kafka(t), ch.Addr, enginetest.Postgres(t))
	before := s.deliveries()
	s.stop()
	must(t, ch.Close())
	s.ch.Addr = start("after").Addr
	s.startIngest()
	s.startDispatch()
	s.startProject()
	s.steps(5)
	wait.Until(t, s.project.Ready)
	s.startServe()
	s.caughtUp()
	s.verify()
	s.kept(before)
}

// rebuild waits until project has applied the whole log, or reports that an operator must rebuild, and then rebuilds.
func (s *system) rebuild() {
	s.t.Helper()
	wait.Until(s.t, func() error {
		in, out := s.ingest.Status(), s.project.Status()
		bad := out.State == projections.Bad
		if in.State != status.Following || !bad && (out.State != projections.Following || out.Seq != in.Seq) {
			return fmt.Errorf("ingest is %s at seq %d, %q, project is %s at seq %d, %q", in.State, in.Seq, in.Reason, out.State, out.Seq, out.Reason)
		}
		return nil
	})
	o, err := projections.NewOperator(chainID, s.kafka, s.ch, s.pool)
	must(s.t, err)
	defer o.Close()
	r, err := o.Rebuild(s.t.Context(), projections.RebuildOptions{AcceptDiff: true})
	must(s.t, err)
	if !r.Live {
		s.t.Errorf("after the rebuild generation %d is not live", r.Generation)
	}
}

// Kafka loses everything, and its log is restored from a backup that is older than what partners and the read model
// have.
func TestBackedUpKafka(t *testing.T) {
	t.Parallel()
	k, err := engines.StartKafka(t.Context(), t.TempDir())
	must(t, err)
	t.Cleanup(func() { _ = k.Close() })
	s := newSystem(t, []string{k.Addr}, enginetest.ClickHouse(t), enginetest.Postgres(t))
	dir := t.TempDir()
	written, err := backup.Write(t.Context(), chainID, s.kafka, dir, nil)
	must(t, err)
	s.steps(15)
	s.caughtUp()
	before := s.deliveries()
	s.stop()
	must(t, k.Close())

	empty, err := engines.StartKafka(t.Context(), t.TempDir())
	must(t, err)
	t.Cleanup(func() { _ = empty.Close() })
	s.kafka.Brokers = []string{empty.Addr}
	_, err = backup.Verify(t.Context(), dir, nil)
	must(t, err)
	_, err = backup.Restore(t.Context(), chainID, s.kafka, dir, nil)
	must(t, err)
	s.startDispatch()
	wait.Until(t, s.dispatch.Ready)
	s.startIngest()
	s.startProject()
	s.startServe()
	s.rebuild()
	s.steps(5)
	s.caughtUp()
	s.verify()
	s.kept(before)
	if id := s.logID(); fmt.Sprintf("%x", id) != written.LogID {
		t.Errorf("the log is %x, and was %s", id, written.LogID)
	}
}

func (s *system) logID() []byte {
	s.t.Helper()
	cursor, err := chainlog.ReadCursor(s.t.Context(), chainID, s.kafka.Options()...)
	must(s.t, err)
	return cursor.GetLogId()
}

// Kafka loses everything, and there is no backup: the chain is indexed into a new log, the read model is rebuilt from
// it, and partners receive only events that they do not have.
func TestLostKafka(t *testing.T) {
	t.Parallel()
	k, err := engines.StartKafka(t.Context(), t.TempDir())
	must(t, err)
	t.Cleanup(func() { _ = k.Close() })
	s := newSystem(t, []string{k.Addr}, enginetest.ClickHouse(t), enginetest.Postgres(t))
	before := s.deliveries()
	s.stop()
	must(t, k.Close())

	empty, err := engines.StartKafka(t.Context(), t.TempDir())
	must(t, err)
	t.Cleanup(func() { _ = empty.Close() })
	s.kafka.Brokers = []string{empty.Addr}
	s.programs()
	s.rebuild()
	wait.Until(t, func() error {
		if s.dispatch.Ready() == nil {
			return errors.New("dispatch accepts another log without an error")
		}
		return nil
	})
	n, err := db.New(s.pool).FollowLog(t.Context(), s.logID())
	must(t, err)
	if n == 0 {
		t.Error("no position followed another log")
	}
	s.steps(5)
	s.caughtUp()
	s.verify()
	s.kept(before)
}

// PostgreSQL is restored to its state of twelve minutes ago, when a generation was being built that has been dropped
// since.
func TestRestoredPostgres(t *testing.T) {
	t.Parallel()
	dir, err := engines.TempDir("drill")
	must(t, err)
	data, old := filepath.Join(dir, "data"), filepath.Join(dir, "old")
	p, err := engines.StartPostgres(t.Context(), data)
	must(t, err)
	t.Cleanup(func() { _ = p.Close() })
	s := newSystem(t, enginetest.Kafka(t), enginetest.ClickHouse(t), p.URL)
	must(t, db.New(s.pool).CreateGeneration(t.Context(), db.CreateGenerationParams{ID: 2, LogID: s.logID(), Schema: s.schema(), State: registry.Building}))
	s.stop()
	s.pool.Close()
	must(t, p.Close())
	if out, err := exec.Command("cp", "-a", data, old).CombinedOutput(); err != nil { // keeps the owner of each file
		t.Fatalf("copy: %v\n%s", err, out)
	}

	again := func() {
		must(t, p.Restart(t.Context()))
		s.pool, err = registry.Open(t.Context(), s.pg)
		must(t, err)
		t.Cleanup(s.pool.Close)
	}
	again()
	s.programs()
	must(t, devchain.IncreaseTime(t.Context(), s.node, 12*time.Minute))
	s.steps(15)
	s.caughtUp()
	before := s.deliveries()
	s.dropped(2)
	s.stop()
	s.pool.Close()
	must(t, p.Close())

	must(t, os.RemoveAll(data))
	must(t, os.Rename(old, data))
	again()
	s.programs()
	s.steps(5)
	s.caughtUp()
	s.verify()
	s.kept(before)
	s.named(2)
}

// named checks that the list of generations has a note about one that is still marked as building.
func (s *system) named(id int32) {
	s.t.Helper()
	o, err := projections.NewOperator(chainID, s.kafka, s.ch, s.pool)
	must(s.t, err)
	defer o.Close()
	wait.Until(s.t, func() error { // it is built again
		all, err := o.List(s.t.Context())
		if err != nil {
			return err
		}
		for _, g := range all {
			if g.ID == id && g.Note != "" {
				return nil
			}
		}
		return fmt.Errorf("no note at generation %d: %+v", id, all)
	})
}

func (s *system) schema() (schema string) {
	s.t.Helper()
	must(s.t, s.pool.QueryRow(s.t.Context(), "SELECT schema FROM generation WHERE id = 1").Scan(&schema))
	return schema
}
