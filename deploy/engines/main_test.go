package engines

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// roleEnv turns the test binary into a process that starts one engine and then does nothing, so that a test can kill an
// engine's parent.
const roleEnv = "NAVLOG_TEST_ROLE"

// A role is an engine to start in a folder.
type role struct{ Engine, Dir string }

// A started is the report of a role's process about its engine.
type started struct {
	Addr string
	Pid  int // 0 for the broker, which runs in the role's own process
}

func TestMain(m *testing.M) {
	value := os.Getenv(roleEnv)
	if value == "" {
		os.Exit(m.Run())
	}
	if err := play(value); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {} // until killed
}

func play(value string) error {
	var r role
	if err := json.Unmarshal([]byte(value), &r); err != nil {
		return err
	}
	s, err := r.start(context.Background())
	if err != nil {
		return err
	}
	go io.Copy(io.Discard, os.Stdin) // otherwise select would be a deadlock
	return json.NewEncoder(os.Stdout).Encode(s)
}

func (r role) start(ctx context.Context) (started, error) {
	switch r.Engine {
	case "kafka":
		k, err := StartKafka(ctx, r.Dir)
		if err != nil {
			return started{}, err
		}
		return started{Addr: k.Addr}, nil
	case "clickhouse":
		c, err := StartClickHouse(ctx, r.Dir)
		if err != nil {
			return started{}, err
		}
		return started{c.Addr, c.Pid}, nil
	case "postgres":
		p, err := StartPostgres(ctx, r.Dir)
		if err != nil {
			return started{}, err
		}
		return started{p.URL, p.Pid}, nil
	case "anvil":
		a, err := StartAnvil(ctx, r.Dir, AnvilOptions{})
		if err != nil {
			return started{}, err
		}
		return started{a.URL, a.Pid}, nil
	case "cleaner":
		if err := RemoveAtExit(r.Dir); err != nil {
			return started{}, err
		}
		return role{"anvil", filepath.Join(r.Dir, "anvil")}.start(ctx)
	case "apachekafka":
		k, err := StartApacheKafka(ctx, r.Dir)
		if err != nil {
			return started{}, err
		}
		return started{k.Addr, k.Pid}, nil
	case "pgbouncer":
		server, err := StartPostgres(ctx, filepath.Join(r.Dir, "postgres"))
		if err != nil {
			return started{}, err
		}
		p, err := StartPgBouncer(ctx, filepath.Join(r.Dir, "pgbouncer"), server.URL)
		if err != nil {
			return started{}, err
		}
		return started{p.URL, p.Pid}, nil
	}
	return started{}, fmt.Errorf("no engine is called %q", r.Engine)
}

// A parent is a process that plays a role.
type parent struct {
	started
	cmd *exec.Cmd
}

func startParent(t *testing.T, engine, dir string) *parent {
	t.Helper()
	value, err := json.Marshal(role{engine, dir})
	if err != nil {
		t.Fatal(err)
	}
	p := &parent{cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), roleEnv+"="+string(value))
	p.cmd.Stderr = os.Stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close(); p.kill() })
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		t.Fatalf("the process with %s printed nothing: %v", engine, err)
	}
	if err := json.Unmarshal(line, &p.started); err != nil {
		t.Fatal(err)
	}
	return p
}

// kill kills the parent with SIGKILL. What it has started is on its own.
func (p *parent) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// gone returns nil if no process has the id.
func gone(pid int) error {
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("process %d is still there (%v)", pid, err)
	}
	return nil
}

// engineDir creates a folder that any user can enter, unlike t.TempDir of a root process.
func engineDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "navlog-engines-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
