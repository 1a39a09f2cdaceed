package engines

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// childEnv, where set, turns the process into one of this package's helpers. Its value is a childSpec as JSON.
const childEnv = "NAVLOG_ENGINE_CHILD"

// lockFD is the descriptor under which a helper, and the engine that it runs, inherit the lock of the engine's folder.
const lockFD = 3

// A childSpec says what a helper process is to do.
type childSpec struct {
	Kind string   // warden, clickhouse or sweeper
	Path string   // the program to run, or the library to load
	Args []string // with the program's name as the first
	Dir  string   // the engine's working directory, or what to sweep

	// Of a warden only.
	Env      []string // added to the environment
	UID, GID uint32   // whom to run as; 0 is nobody else
	Stop     []stopStep
}

// A stopStep is one attempt to end an engine: a signal, and how long to wait before the next one.
type stopStep struct {
	Signal int
	Wait   time.Duration
}

// The kinds of helper.
const (
	wardenKind     = "warden"
	clickHouseKind = "clickhouse"
	sweeperKind    = "sweeper"
)

// init takes the process over where it was started as a helper. It must be init: the engine in libchdb wants to live
// on the process's first thread, and a test binary would run its tests in main.
func init() {
	value, ok := os.LookupEnv(childEnv)
	if !ok {
		return
	}
	os.Unsetenv(childEnv) // the engine must not inherit it
	runtime.LockOSThread()
	var spec childSpec
	if err := json.Unmarshal([]byte(value), &spec); err != nil {
		childFail("read its task", err)
	}
	switch spec.Kind {
	case wardenKind:
		os.Exit(runWarden(spec))
	case clickHouseKind:
		os.Exit(runClickHouse(spec))
	case sweeperKind:
		os.Exit(runSweeper(spec))
	default:
		childFail("read its task", fmt.Errorf("%s has the unknown kind %q", childEnv, spec.Kind))
	}
}

// childFail ends a helper. What it says lands in the engine's log, whose end StartX quotes.
func childFail(doing string, err error) {
	fmt.Fprintf(os.Stderr, "engine helper: %s: %v\n", doing, err)
	os.Exit(1)
}

// childCommand is this executable as the helper that spec says, in a process group of its own.
func childCommand(spec childSpec) (*exec.Cmd, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this executable: %w", err)
	}
	task, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childEnv+"="+string(task))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd, nil
}
