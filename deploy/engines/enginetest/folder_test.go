package enginetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// A process that was killed together with its cleaner leaves its folder. The next one removes it, but not the folder of
// a process that lives, and not one whose engine still runs.
func TestLeftFoldersAreRemoved(t *testing.T) {
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	parent := t.TempDir()
	engine := func(pid int, name string) (lock string) {
		t.Helper()
		dir := filepath.Join(parent, fmt.Sprintf("%s%d-%s", folderPrefix, pid, name), "postgres")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		lock = filepath.Join(dir, "lock")
		if err := os.WriteFile(lock, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return lock
	}
	left, stopping := engine(ended.Process.Pid, "left"), engine(ended.Process.Pid, "stopping")
	living, other := engine(os.Getpid(), "living"), engine(0, "by-hand")
	held, err := os.Open(stopping)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := syscall.Flock(int(held.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if err := removeLeft(parent); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{left: false, stopping: true, living: true, other: true} {
		if _, err := os.Stat(path); want != (err == nil) {
			t.Errorf("%s: it stays: %t, want %t", path, err == nil, want)
		}
	}
}

// Engines keep their data on the disk if there is no memory for it.
func TestMemoryIsUsedIfThereIsEnough(t *testing.T) {
	if isMemory(filepath.Join(t.TempDir(), "none"), 0) {
		t.Error("a folder that does not exist counts as memory")
	}
	if isMemory("/dev/shm", 1<<62) {
		t.Error("more memory is free than any machine has")
	}
	if isMemory("/proc", 0) {
		t.Error("/proc counts as memory")
	}
}
