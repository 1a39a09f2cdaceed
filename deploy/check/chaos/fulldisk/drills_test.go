package fulldisk

import (
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/testkit/fleet"
	"github.com/navlog/navlog/deploy/testkit/stack"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// deliveries returns the bodies of the partners' events, by id.
func (s *system) deliveries() map[string]string {
	s.t.Helper()
	rows, err := s.Pool.Query(s.t.Context(), "SELECT event_id::text, body FROM delivery")
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

// ClickHouse loses everything and comes back empty. project rebuilds the read model from the log; nothing else needs to
// be done. serve is started after that, because the embedded engine exits when a client logs in to a database that does
// not exist.
func TestEmptyClickHouse(t *testing.T) {
	t.Parallel()
	s := newSystem(t, fleet.Options{})
	before := s.deliveries()
	s.stop(false)
	must(t, s.ClickHouse.Close())
	var err error
	s.ClickHouse, err = engines.StartClickHouse(t.Context(), filepath.Join(s.Dir, "empty"))
	must(t, err)
	s.Start("ingest", "dispatch", "project")
	s.Steps(5)
	s.Until(func() error { return s.ready("project") })
	s.Start("serve")
	s.verify()
	s.kept(before)
}

// rebuild waits until project has applied the whole log, or reports that an operator must rebuild, and then rebuilds.
func (s *system) rebuild() {
	s.t.Helper()
	s.Until(func() error {
		if err := s.ready("ingest"); err != nil {
			return err
		}
		if err := s.ready("project"); err != nil {
			if strings.Contains(err.Error(), registry.Bad+": ") {
				return nil
			}
			return err
		}
		in, err := s.Programs["ingest"].Metric("navlog_ingest_seq")
		if err != nil {
			return err
		}
		if out, err := s.Programs["project"].Metric("navlog_projections_seq"); err != nil || out != in {
			return fmt.Errorf("project is at seq %.0f of %.0f: %w", out, in, err)
		}
		return nil
	})
	s.Run("projection", "rebuild", "--accept-diff")
}

// emptyKafka starts a broker without data in place of the one that was stopped.
func (s *system) emptyKafka() {
	s.t.Helper()
	must(s.t, s.Kafka.Close())
	var err error
	s.Kafka, err = engines.StartKafka(s.t.Context(), filepath.Join(s.Dir, "empty"))
	must(s.t, err)
}

// Kafka loses everything, and its log is restored from a backup that is older than what partners and the read model
// have.
func TestBackedUpKafka(t *testing.T) {
	t.Parallel()
	s := newSystem(t, fleet.Options{})
	dir, id := t.TempDir(), s.logID()
	s.Run("backup", dir)
	s.Steps(15)
	s.caughtUp()
	before := s.deliveries()
	s.stop(false)

	s.emptyKafka()
	s.Run("backup", "--verify", dir)
	s.Run("restore", dir)
	s.Start("dispatch")
	s.Until(func() error { return s.ready("dispatch") })
	s.Start("ingest", "project", "serve")
	s.rebuild()
	s.Steps(5)
	s.verify()
	s.kept(before)
	if now := s.logID(); string(now) != string(id) {
		t.Errorf("the log is %x, and was %x", now, id)
	}
}

// Kafka loses everything, and there is no backup: the chain is indexed into a new log, the read model is rebuilt from
// it, and partners receive only events that they do not have.
func TestLostKafka(t *testing.T) {
	t.Parallel()
	s := newSystem(t, fleet.Options{})
	before := s.deliveries()
	s.stop(false)
	s.emptyKafka()
	s.Start(all...)
	s.rebuild()
	s.unready("dispatch", "`navlog webhook follow-log ")
	s.Run("webhook", "follow-log", hex.EncodeToString(s.logID()))
	s.Steps(5)
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
	s := newSystem(t, fleet.Options{Folders: stack.Folders{Postgres: data}})
	var schema string
	must(t, s.Pool.QueryRow(t.Context(), "SELECT schema FROM generation WHERE id = 1").Scan(&schema))
	must(t, db.New(s.Pool).CreateGeneration(t.Context(),
		db.CreateGenerationParams{ID: 2, LogID: s.logID(), Schema: schema, State: registry.Building}))
	off := func() {
		s.stop(false)
		s.Pool.Close()
		must(t, s.Postgres.Close())
	}
	on := func() {
		must(t, s.Postgres.Restart(t.Context()))
		c := registry.DefaultConfig()
		c.URL = s.Postgres.URL
		s.Pool, err = registry.Open(t.Context(), c)
		must(t, err)
		s.Start(all...)
	}
	off()
	if out, err := exec.Command("cp", "-a", data, old).CombinedOutput(); err != nil { // keeps the owner of each file
		t.Fatalf("copy: %v\n%s", err, out)
	}
	on()
	must(t, devchain.IncreaseTime(t.Context(), s.URL, 12*time.Minute))
	s.Steps(15)
	s.caughtUp()
	before := s.deliveries()
	s.Run("projection", "drop", "2")
	off()

	must(t, os.RemoveAll(data))
	must(t, os.Rename(old, data))
	on()
	s.Steps(5)
	s.verify()
	s.kept(before)
	s.Until(func() error { // the dropped generation is built again, and the list of generations has a note about it
		out, err := s.Try(t.Context(), "projection", "list")
		if err != nil || !strings.Contains(out, "navlog projection drop 2") {
			return fmt.Errorf("no note at generation 2: %w\n%s", err, out)
		}
		return nil
	})
}
