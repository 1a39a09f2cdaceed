// Package fulldisk tests what failing engines do to the whole of navlog. If an engine's disk fills up and space is
// freed later, each program either recovers by itself or reports its state. If an engine loses its data, and is empty
// or restored from a backup, an operator follows docs/operations.md. In all cases no event is lost, and none is
// delivered as a new one.
package fulldisk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/fleet"
	"github.com/navlog/navlog/deploy/testkit/oracle"
	"github.com/navlog/navlog/deploy/testkit/stack"
	"github.com/navlog/navlog/schemas/chainlog"
)

const chainID = 31337

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// disk is a separate file system that can be filled.
type disk struct {
	t   *testing.T
	dir string
}

// newDisk mounts a tmpfs of that many mebibytes, or skips the test if the user is not allowed to mount.
func newDisk(t *testing.T, mebibytes int) *disk {
	t.Helper()
	dir, err := engines.TempDir("full")
	must(t, err)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=755", mebibytes)); err != nil {
		t.Skipf("a file system for the engine cannot be mounted, which takes root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return &disk{t, dir}
}

func (d *disk) ballast() string { return filepath.Join(d.dir, "ballast") }

// fill leaves no free space.
func (d *disk) fill() {
	d.t.Helper()
	f, err := os.OpenFile(d.ballast(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	must(d.t, err)
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else {
			must(d.t, err)
		}
	}
}

// free frees the space again.
func (d *disk) free() { must(d.t, os.Remove(d.ballast())) }

// system is the four programs, which run, and their engines, one of which uses the disk.
type system struct {
	*fleet.Fleet
	t *testing.T
}

// all programs, in the order in which they are started.
var all = []string{"ingest", "project", "serve", "dispatch"}

// newSystem starts a system with some history. The options are those of folders and Kafka.
func newSystem(t *testing.T, o fleet.Options) *system {
	t.Helper()
	o.Partners, o.SlotsInEpoch = 2, 1
	s := &system{t: t, Fleet: fleet.New(t, o)}
	s.Start(all...)
	s.caughtUp()
	return s
}

// torn begins the advice of ingest when it finds a transaction that has ended in one topic only, which the embedded
// broker leaves if its disk is full.
const torn = "restore both from the same backup"

// stop stops all programs. None may have exited by itself, except ingest if a transaction may be torn.
func (s *system) stop(mayTear bool) {
	s.t.Helper()
	for name, p := range s.Programs {
		p.MayExit = true
		if err := p.Stop(); err != nil && !(mayTear && name == "ingest" && strings.Contains(p.Output(), torn)) {
			s.t.Error(err)
		}
	}
}

// ready returns nil if a program is ready, or the reason why it is not.
func (s *system) ready(program string) error { return s.Programs[program].Ready() }

// unready waits until a program is not ready, with a reason that contains the words.
func (s *system) unready(program, words string) {
	s.t.Helper()
	s.Until(func() error {
		if err := s.ready(program); err == nil || !strings.Contains(err.Error(), words) {
			return fmt.Errorf("%s must not be ready because of %q: %v", program, words, err)
		}
		return nil
	})
}

// caughtUp waits until log, read model and partners have everything of the chain, and all programs are ready.
func (s *system) caughtUp() *oracle.History {
	s.t.Helper()
	history := s.Finish(s.Programs["ingest"], s.Programs["project"])
	s.Until(s.Ready)
	return history
}

// verify waits until everything has been processed, and proves that the log and the events are those of the chain, and
// the read model is that of the log.
func (s *system) verify() {
	s.t.Helper()
	s.Compare(s.caughtUp())
}

// The disk with ClickHouse's tables fills up. project reports it, and continues when there is space, whether or not
// parts are broken.
func TestClickHouseDiskFull(t *testing.T) {
	t.Parallel()
	d := newDisk(t, 512)
	s := newSystem(t, fleet.Options{Folders: stack.Folders{ClickHouse: filepath.Join(d.dir, "data")}})
	var kept uint64
	var refusedBelow string
	must(t, s.Conn.QueryRow(t.Context(),
		"SELECT any(keep_free_space), (SELECT value FROM system.merge_tree_settings WHERE name = "+
			"'min_free_disk_bytes_to_perform_insert') FROM system.disks").Scan(&kept, &refusedBelow))
	if kept == 0 || refusedBelow == "0" {
		t.Errorf("the engine keeps %d bytes free, and refuses inserts below %s", kept, refusedBelow)
	}
	for range 2 {
		d.fill()
		s.Steps(10)
		s.unready("project", "retrying: ")
		s.unready("project", "the disk of ClickHouse is full")
		d.free()
		s.Steps(5)
		s.caughtUp()
	}
	s.verify()
}

// The disk of the embedded broker fills up. ingest reports why it is blocked. The broker may have ended a transaction
// in one topic only, and ingest exits when it finds that; the broker ends it in the other when it starts again, and
// nothing is lost.
func TestKafkaDiskFull(t *testing.T) {
	t.Parallel()
	d := newDisk(t, 64)
	s := newSystem(t, fleet.Options{Folders: stack.Folders{Kafka: filepath.Join(d.dir, "log")}})
	s.Programs["ingest"].MayExit = true
	s.logDiskFull(d, func() {
		s.stop(true)
		must(t, s.Kafka.Restart(t.Context()))
		s.Start(all...)
	})
}

// The disk of Apache Kafka fills up. Kafka exits when its only log folder fails, and is restarted when there is space.
// No program exits with it, and none of its data is lost.
func TestApacheKafkaDiskFull(t *testing.T) {
	t.Parallel()
	if err := engines.ApacheKafkaAvailable(); err != nil {
		enginetest.LeaveOut(t, err)
	}
	d := newDisk(t, 256)
	k, err := engines.StartApacheKafka(t.Context(), filepath.Join(d.dir, "log"))
	must(t, err)
	t.Cleanup(k.Kill)
	s := newSystem(t, fleet.Options{
		Kafka: func(context.Context, string) ([]string, error) { return []string{k.Addr}, nil }})
	s.logDiskFull(d, func() { must(t, k.Restart(t.Context())) })
}

// logDiskFull fills the disk of the log's broker; it calls revive when there is space again.
func (s *system) logDiskFull(d *disk, revive func()) {
	s.t.Helper()
	d.fill()
	s.Steps(10)
	s.unready("ingest", "")
	d.free()
	revive()
	s.Steps(5)
	s.verify()
}

// The registry's disk fills up. PostgreSQL may exit, and is restarted when there is space; dispatch loses nothing.
func TestPostgresDiskFull(t *testing.T) {
	t.Parallel()
	d := newDisk(t, 256)
	s := newSystem(t, fleet.Options{Folders: stack.Folders{Postgres: filepath.Join(d.dir, "pg")}})
	d.fill()
	s.Until(func() error { // deliveries first fill the pages that their tables have
		s.Steps(5)
		if s.ready("dispatch") == nil {
			return errors.New("dispatch is ready although its disk is full")
		}
		return nil
	})
	d.free()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if s.Pool.Ping(ctx) != nil { // it has exited or is about to
		must(t, s.Postgres.Restart(t.Context()))
	}
	s.Steps(5)
	s.verify()
}

// logID returns the id of the log.
func (s *system) logID() []byte {
	s.t.Helper()
	c := chainlog.DefaultConfig()
	c.Brokers = s.Brokers()
	cursor, err := chainlog.ReadCursor(s.t.Context(), chainID, c.Options()...)
	must(s.t, err)
	return cursor.GetLogId()
}
