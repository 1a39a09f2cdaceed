package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// grace is how long a program may take to end in good order.
const grace = 20 * time.Second

// A Process is a program that was started.
type Process struct {
	Pid int

	cmd   *exec.Cmd
	log   string
	ended chan struct{}
}

// Start starts a program in a process group of its own, for a terminal's ^C is for who started it. What the program says
// is appended to the file log. It does not outlive this process, however this one ends: not by a time limit of tests either.
func Start(cmd *exec.Cmd, log string) (*Process, error) {
	output, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd, err)
	}
	defer output.Close()
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = output, output, &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd, err)
	}
	dismiss, err := guard(cmd.Process.Pid)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the guard of %s: %w", cmd, err), cmd.Process.Kill(), cmd.Wait())
	}
	p := &Process{Pid: cmd.Process.Pid, cmd: cmd, log: log, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the state says how it ended
		dismiss()
		close(p.ended)
	}()
	return p, nil
}

// guard kills a process when this one ends without having dismissed the guard.
func guard(pid int) (dismiss func(), err error) {
	sh := exec.Command("sh", "-c", fmt.Sprintf("read _; kill -KILL %d", pid))
	sh.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := sh.StdinPipe() // it ends with this process
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

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// State says how the process ended. It is there when Ended is closed, and must not be asked for before.
func (p *Process) State() *os.ProcessState { return p.cmd.ProcessState }

// Running is an error when the process has ended, which says how and what it said last.
func (p *Process) Running() error {
	select {
	case <-p.ended:
		lines := strings.Split(strings.TrimSpace(p.Said()), "\n")
		return fmt.Errorf("%s ended with %s: %s", p.cmd, p.State(), strings.Join(lines[max(0, len(lines)-3):], " | "))
	default:
		return nil
	}
}

// Said is the end of what was said, up to 20,000 bytes of it.
func (p *Process) Said() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	const limit = 20_000
	return string(b[max(0, len(b)-limit):])
}

// Interrupt asks the process to end, as ^C does.
func (p *Process) Interrupt() { _ = p.cmd.Process.Signal(os.Interrupt) } // harmless where it has ended

// Kill ends the process by SIGKILL.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // harmless where it has ended
	<-p.ended
}

// Stop ends the process and its children in good order, or by SIGKILL after 20 seconds. That is an error, and so is an end
// of its own with a fault.
func (p *Process) Stop() error {
	_ = syscall.Kill(-p.Pid, syscall.SIGINT)
	select {
	case <-p.ended:
	case <-time.After(grace):
		p.killAll()
		return fmt.Errorf("%s did not end within %s", p.cmd, grace)
	}
	p.killAll() // children that it left
	if !p.State().Success() {
		return p.Running()
	}
	return nil
}

func (p *Process) killAll() {
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL)
	<-p.ended
}
