package stack

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/testkit/wait"
)

// prints starts a shell with a script, and waits until it has printed a word.
func prints(t *testing.T, word, script string) *Process {
	t.Helper()
	p, err := Launch(exec.Command("sh", "-c", script), filepath.Join(t.TempDir(), "said"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	wait.For(t, "the program has printed it", func() bool { return strings.Contains(p.Output(), word) })
	return p
}

func TestStop(t *testing.T) {
	t.Parallel()
	orderly := prints(t, "here", "trap 'echo bye; exit 0' INT; echo here; while :; do sleep 0.1; done")
	if err := orderly.Running(); err != nil {
		t.Error(err)
	}
	if err := orderly.Stop(); err != nil || !strings.Contains(orderly.Output(), "bye") {
		t.Errorf("it printed %q: %v", orderly.Output(), err)
	}
	if err := prints(t, "here",
		"trap 'echo broken; exit 7' INT; echo here; while :; do sleep 0.1; done").Stop(); err == nil ||
		!strings.Contains(err.Error(), "exit status 7") || !strings.Contains(err.Error(), "broken") {
		t.Errorf("a faulty end is %v", err)
	}
	gone := prints(t, "enough", "echo enough; exit 3")
	<-gone.Ended()
	if err := gone.Running(); err == nil || !strings.Contains(err.Error(), "exit status 3: enough") || gone.Stop() == nil {
		t.Errorf("an ended process is reported as running: %v", err)
	}
}

func TestStopOfOneThatStays(t *testing.T) {
	t.Parallel()
	p := prints(t, "here", "trap '' INT; echo here; while :; do sleep 0.1; done")
	if err := p.stop(100 * time.Millisecond); err == nil || !strings.Contains(err.Error(), "did not end within 100ms") {
		t.Errorf("one that stays was stopped: %v", err)
	}
	<-p.Ended()
}

func TestLaunchFails(t *testing.T) {
	t.Parallel()
	if _, err := Launch(exec.Command("sh"), filepath.Join(t.TempDir(), "none", "said")); err == nil {
		t.Error("a program was started whose output cannot be written")
	}
	if _, err := Launch(exec.Command("/nowhere/navlog"), filepath.Join(t.TempDir(), "said")); err == nil ||
		!strings.Contains(err.Error(), "start /nowhere/navlog") {
		t.Errorf("a missing program: %v", err)
	}
}

// A program ends with the process that started it: this test starts itself as that process, and kills it.
func TestGuard(t *testing.T) {
	if os.Getenv("CHILD_TEST") != "" {
		lifeline := os.NewFile(3, "lifeline")
		cmd := exec.Command("sleep", "600")
		cmd.ExtraFiles = []*os.File{lifeline}
		_, err := Launch(cmd, os.DevNull)
		if err == nil {
			_, err = lifeline.WriteString("here\n")
		}
		if err != nil {
			t.Fatal(err)
		}
		select {}
	}
	t.Parallel()
	lifeline, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer lifeline.Close()
	parent := exec.Command(os.Args[0], "-test.run=^TestGuard$")
	parent.Env, parent.ExtraFiles = append(os.Environ(), "CHILD_TEST=1"), []*os.File{theirs}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	if err := lifeline.SetReadDeadline(time.Now().Add(wait.Patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(lifeline, make([]byte, len("here\n"))); err != nil {
		t.Fatalf("the program does not run: %v", err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	if _, err := io.ReadAll(lifeline); err != nil { // returns when no process holds the other end
		t.Errorf("the program outlives its parent: %v", err)
	}
}
