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

// childEnv turns the process into one of this package's helpers if it is set. Its value is a childSpec as JSON.
const childEnv = "NAVLOG_ENGINE_CHILD"

// lockFD is the file descriptor through which a helper, and the engine that it runs, inherit the lock on the engine's
// folder.
const lockFD = 3

// A childSpec is the task of a helper process.
type childSpec struct {
	Kind string   // supervisor, clickhouse or cleaner
	Path string   // the program to run, or the library to load
	Args []string // including the program's name
	Dir  string   // the engine's working directory, or the folder to remove

	// From and To are only for ClickHouse: the address for clients, and that of the engine behind the relay.
	From, To string

	// The rest is only for a supervisor.
	Env      []string // added to the environment
	UID, GID uint32   // user to run as; 0 is the current one
	Stop     []stopStep
}

// A stopStep is one attempt to stop an engine: a signal, and how long to wait before the next step.
type stopStep struct {
	Signal int
	Wait   time.Duration
}

// The kinds of helper.
const (
	supervisorKind = "supervisor"
	clickHouseKind = "clickhouse"
	cleanerKind    = "cleaner"
)

// init takes over the process if it was started as a helper. It must be in init: the engine in libchdb needs the
// process's first thread, and a test binary would otherwise run its tests in main.
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
	case supervisorKind:
		os.Exit(runSupervisor(spec))
	case clickHouseKind:
		os.Exit(runClickHouse(spec))
	case cleanerKind:
		os.Exit(runCleaner(spec))
	default:
		childFail("read its task", fmt.Errorf("%s has the unknown kind %q", childEnv, spec.Kind))
	}
}

// childFail exits a helper with an error. Its message goes to the engine's log, whose end the StartX functions quote.
func childFail(doing string, err error) {
	fmt.Fprintf(os.Stderr, "engine helper: %s: %v\n", doing, err)
	os.Exit(1)
}

// childCommand returns a command that runs this executable as the helper described by spec, in its own process group.
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
