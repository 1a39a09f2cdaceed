package engines

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// runSupervisor is the main function of a supervisor: it starts the engine, reports its pid, waits until the parent
// closes the pipe or exits, and stops the engine.
//
//	            engine ended
//	running ──────────────────────────────▶ exit with its code
//	   │ stdin ended                              ▲
//	   ▼                                          │ engine ended
//	stopping: signal, wait ──▶ signal, wait ──▶ SIGKILL to its group
func runSupervisor(spec childSpec) int {
	// The parent stops the engine by closing the pipe; a signal sent to a whole process group must not leave the engine
	// without its supervisor. Signals are caught and dropped, not ignored: an engine would inherit that, and java then
	// ignores them too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)

	cmd := exec.Command(spec.Path)
	cmd.Args = spec.Args
	cmd.Dir = spec.Dir
	cmd.Env = append(os.Environ(), spec.Env...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.ExtraFiles = []*os.File{os.NewFile(lockFD, "lock")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if spec.UID != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: spec.UID, Gid: spec.GID}
	}
	if err := cmd.Start(); err != nil {
		childFail("start the engine", err)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	parentGone := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(parentGone)
	}()
	fmt.Println(cmd.Process.Pid)
	os.Stdout.Close()

	select {
	case <-ended:
	case <-parentGone:
		stopEngine(cmd.Process, spec.Stop, ended)
	}
	// Also kill what the engine has left behind in its group.
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	<-ended
	return cmd.ProcessState.ExitCode()
}

func stopEngine(p *os.Process, steps []stopStep, ended <-chan struct{}) {
	for _, step := range steps {
		p.Signal(syscall.Signal(step.Signal))
		select {
		case <-ended:
			return
		case <-time.After(step.Wait):
		}
	}
}
