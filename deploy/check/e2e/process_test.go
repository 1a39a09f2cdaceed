package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/testkit/stack"
	"github.com/navlog/navlog/deploy/testkit/wait"
)

const (
	// patience is how long a response, or the newest state, may take.
	patience = 2 * time.Minute
	// startPatience is how long `navlog-dev up` may take on a busy machine.
	startPatience = 3 * time.Minute
	pause         = 50 * time.Millisecond
)

// binary returns the path of navlog or navlog-dev.
func binary(t *testing.T, program string) string {
	t.Helper()
	path, err := stack.Build(program)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// openTempDir creates a folder for the engines of `navlog-dev up`.
func openTempDir(t *testing.T) string {
	t.Helper()
	dir, err := engines.TempDir("e2e")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// A run is one `navlog-dev up`.
type run struct {
	document
	*stack.Process
	// family are the processes that it has started, as of the last lookup.
	family []procfs.ProcStat
}

// startUp starts `navlog-dev up` in its own process group and waits until it is ready. At the end of the test no
// process of it is left, whatever happens, and if the test failed its output is shown.
func startUp(t *testing.T, data string, settings []string, args ...string) *run {
	t.Helper()
	scratch := t.TempDir()
	ready := filepath.Join(scratch, "ready.json")
	cmd := exec.Command(binary(t, "navlog-dev"),
		append([]string{"up", "--data", data, "--listen", "127.0.0.1:0", "--ready-file", ready, "--no-scenario"}, args...)...)
	cmd.Env = stack.Environment(settings...)
	started, err := stack.Launch(cmd, filepath.Join(scratch, "output"))
	if err != nil {
		t.Fatal(err)
	}
	r := &run{Process: started}
	t.Cleanup(func() {
		r.family = descendants(processes(t), r.Pid)
		r.Kill()
		r.familyEnds(t)
		if t.Failed() {
			t.Logf("navlog-dev up said:\n%s", r.Output())
		}
	})
	wait.Until(t, func() error {
		if err := r.Running(); err != nil {
			t.Fatal("before it was ready:", err)
		}
		b, err := os.ReadFile(ready)
		if err != nil {
			return err
		}
		return json.Unmarshal(b, &r.document)
	})
	r.lookUpFamily(t)
	return r
}

// kill kills navlog with SIGKILL and waits until its engines have noticed.
func (r *run) kill(t *testing.T) {
	t.Helper()
	r.lookUpFamily(t)
	r.Kill()
	r.familyEnds(t)
}

// interrupt sends Ctrl-C. navlog must exit with 0 and leave no process behind.
func (r *run) interrupt(t *testing.T) {
	t.Helper()
	r.lookUpFamily(t)
	r.Signal(os.Interrupt)
	wait.For(t, "navlog ends after SIGINT", func() bool { return r.Running() != nil })
	if !r.State().Success() {
		t.Errorf("navlog ended with %s after SIGINT", r.State())
	}
	for _, p := range r.family {
		if alive(t, p) {
			t.Errorf("process %d (%s) outlives navlog, which ended gracefully", p.PID, p.Comm)
		}
	}
}

func (r *run) familyEnds(t *testing.T) {
	t.Helper()
	wait.Until(t, func() error {
		var left []string
		for _, p := range r.family {
			if alive(t, p) {
				left = append(left, fmt.Sprintf("%d (%s)", p.PID, p.Comm))
			}
		}
		if len(left) > 0 {
			return errors.New("processes outlive navlog: " + strings.Join(left, ", "))
		}
		return nil
	})
}

// lookUpFamily records the running descendants of navlog. There must be some, because the engines are child processes.
func (r *run) lookUpFamily(t *testing.T) {
	t.Helper()
	r.family = descendants(processes(t), r.Pid)
	if len(r.family) == 0 {
		t.Fatal("navlog-dev up runs without any child process")
	}
}

// descendants returns the children of a process, their children, and so on.
func descendants(all []procfs.ProcStat, of int) (found []procfs.ProcStat) {
	for parents := map[int]bool{of: true}; len(parents) > 0; {
		children := map[int]bool{}
		for _, p := range all {
			if parents[p.PPID] {
				children[p.PID] = true
				found = append(found, p)
			}
		}
		parents = children
	}
	return found
}

// alive reports whether a process runs. It is identified by its id and start time, because ids are reused.
func alive(t *testing.T, p procfs.ProcStat) bool {
	t.Helper()
	return slices.ContainsFunc(processes(t), func(other procfs.ProcStat) bool {
		return other.PID == p.PID && other.Starttime == p.Starttime
	})
}

// processes lists the processes of this machine, without zombies.
func processes(t *testing.T) (all []procfs.ProcStat) {
	t.Helper()
	procs, err := procfs.AllProcs()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range procs {
		stat, err := p.Stat()
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has just exited
		}
		if err != nil {
			t.Fatal(err)
		}
		if stat.State != "Z" && stat.State != "X" {
			all = append(all, stat)
		}
	}
	return all
}
