package stack

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// grace is how long a program may take for a graceful shutdown.
const grace = 20 * time.Second

// A Process is a started program.
type Process struct {
	Pid int

	cmd   *exec.Cmd
	log   string
	ended chan struct{}
}

// Launch starts a program in its own process group, so that a terminal's ^C only reaches its parent. The program's
// output is appended to the file log, or goes where cmd says if log is empty. The program does not outlive this
// process, however this one ends, even at a test's time limit.
func Launch(cmd *exec.Cmd, log string) (*Process, error) {
	if log != "" {
		output, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", cmd, err)
		}
		defer output.Close()
		cmd.Stdout, cmd.Stderr = output, output
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd, err)
	}
	dismiss, err := guard(cmd.Process.Pid)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the guard of %s: %w", cmd, err), cmd.Process.Kill(), cmd.Wait())
	}
	p := &Process{Pid: cmd.Process.Pid, cmd: cmd, log: log, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the state holds the exit status
		dismiss()
		close(p.ended)
	}()
	return p, nil
}

// guard kills a process if this one exits without having dismissed the guard.
func guard(pid int) (dismiss func(), err error) {
	sh := exec.Command("sh", "-c", fmt.Sprintf("read _; kill -KILL %d", pid))
	sh.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := sh.StdinPipe() // it is closed when this process exits
	if err != nil {
		return nil, err
	}
	if err := sh.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = sh.Process.Kill()
		_ = sh.Wait()
		_ = stdin.Close()
	}, nil
}

// Ended is closed when the process has exited.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// State returns the exit state. It must only be called after Ended is closed.
func (p *Process) State() *os.ProcessState { return p.cmd.ProcessState }

// Running returns an error if the process has exited, with its exit state and the end of its output.
func (p *Process) Running() error {
	select {
	case <-p.ended:
		lines := strings.Split(strings.TrimSpace(p.Output()), "\n")
		return fmt.Errorf("%s ended with %s: %s", p.cmd, p.State(), strings.Join(lines[max(0, len(lines)-3):], " | "))
	default:
		return nil
	}
}

// Output returns the end of the output in the log of Launch, up to 20,000 bytes.
func (p *Process) Output() string {
	if p.log == "" {
		return ""
	}
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	const limit = 20_000
	return string(b[max(0, len(b)-limit):])
}

// Signal sends a signal to the process, and does nothing if the process has exited.
func (p *Process) Signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// Kill kills the process with SIGKILL.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // harmless if it has exited
	<-p.ended
}

// Stop shuts the process and its children down gracefully, or kills them after 20 seconds. Having to kill them is an
// error, and so is an unsuccessful exit of the process itself.
func (p *Process) Stop() error { return p.stop(grace) }

func (p *Process) stop(grace time.Duration) error {
	_ = syscall.Kill(-p.Pid, syscall.SIGINT)
	select {
	case <-p.ended:
	case <-time.After(grace):
		p.killAll()
		return fmt.Errorf("%s did not end within %s", p.cmd, grace)
	}
	p.killAll() // children that it left behind
	if !p.State().Success() {
		return p.Running()
	}
	return nil
}

func (p *Process) killAll() {
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL)
	<-p.ended
}
