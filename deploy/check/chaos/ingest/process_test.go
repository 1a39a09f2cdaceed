package ingest

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// ofShell starts a shell script in place of an ingest.
func ofShell(t *testing.T, script string) *process {
	t.Helper()
	p, err := launch(exec.Command("sh", "-c", script), Death{}, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

// ends lists unrequested ends of an ingest, and whether a supervisor can recover from them.
var ends = map[string]bool{"exit 1": true, "exit 0": false, "echo crash >&2; exit 2": false, "exit 3": false,
	"exit 4": false}

func TestStopsItself(t *testing.T) {
	if stopped, err := ofShell(t, "echo '"+deathMessage+"'; exec sleep 600").stopsItself(t.Context()); !stopped ||
		err != nil {
		t.Errorf("a process that stopped itself has not ended: %v", err)
	}
	for script, cured := range ends {
		p := ofShell(t, script)
		<-p.Ended()
		stopped, err := p.stopsItself(t.Context())
		if stopped || cured != (err == nil) {
			t.Errorf("%s: it has stopped itself: %t, %v", script, stopped, err)
		}
		if err != nil && !strings.Contains(err.Error(), "exit status") || strings.Contains(script, "crash") &&
			!strings.Contains(err.Error(), "crash") {
			t.Errorf("%s: %v", script, err)
		}
	}
}

// A kill that comes too late does not hide how a process ended.
func TestStopByKill(t *testing.T) {
	s := &supervisor{now: ofShell(t, "exec sleep 600"), wanted: true}
	if err := s.stop(false); err != nil {
		t.Errorf("a process that ran: %v", err)
	}
	for script, cured := range ends {
		s := &supervisor{now: ofShell(t, script), wanted: true}
		<-s.now.Ended()
		if err := s.stop(false); cured != (err == nil) {
			t.Errorf("%s: %v", script, err)
		}
	}
	for _, orderly := range []bool{true, false} {
		noticed := &supervisor{fatal: errors.New("it has crashed")}
		if err := noticed.stop(orderly); err == nil {
			t.Errorf("an earlier crash is forgotten when the process is stopped (gracefully: %t)", orderly)
		}
	}
	dying := ofShell(t, "echo '"+deathMessage+"'; kill -KILL $$")
	<-dying.Ended()
	if err := (&supervisor{now: dying, wanted: true}).stop(false); err != nil {
		t.Errorf("a process that killed itself: %v", err)
	}
}

// The survivor of two ingests must not hide how the other one ended.
func TestLeft(t *testing.T) {
	for script, fault := range map[string]bool{
		"exit 3": false, "exit 1": false, "exit 2": true, "exit 4": true,
		"echo 'another ingest is there: this one stands by' >&2; exit 2": true,
		"echo 'another ingest took over' >&2; exit 2":                    true,
	} {
		gone, stays := ofShell(t, script), ofShell(t, "exec sleep 600")
		<-gone.Ended()
		w := &world{sup: &supervisor{}}
		if err := w.left(gone, stays, stays); fault != (err != nil) {
			t.Errorf("%s: %v", script, err)
		}
		w.sup.release()
	}
}
