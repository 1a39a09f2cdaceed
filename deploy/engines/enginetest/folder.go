package enginetest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

const (
	folderPrefix = "navlog-test-"
	memory       = "/dev/shm"
	// enoughMemory is how much must be free before engines keep their data in memory: bytes. The engines of the largest
	// package write less than one gigabyte, and three packages run at a time.
	enoughMemory = 4 << 30
)

// newFolder creates the folder of an engine: in memory if the machine has enough, else on the disk. In memory a test
// binary needs a tenth to a quarter less processor time: every test creates and drops a database or a broker, which has
// up to some hundred files, and ext4 searches long for an inode that was not deleted recently. The folder is open to
// other users, because PostgreSQL started by root runs as another user.
func newFolder() (string, error) {
	for _, parent := range []string{os.TempDir(), memory} {
		if err := removeLeft(parent); err != nil {
			return "", err
		}
	}
	parent := os.TempDir()
	if runtime.GOOS == "linux" && isMemory(memory, enoughMemory) {
		parent = memory
	}
	dir, err := os.MkdirTemp(parent, fmt.Sprintf("%s%d-", folderPrefix, os.Getpid()))
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}

// isMemory reports whether a folder is writable and in memory with that many bytes free.
func isMemory(dir string, free uint64) bool {
	const tmpfs = 0x01021994
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil || int64(fs.Type) != tmpfs || fs.Bavail*uint64(fs.Bsize) < free {
		return false
	}
	const write, search = 2, 1
	return syscall.Access(dir, write|search) == nil
}

// removeLeft removes folders of processes that have ended and could not remove them, which would keep memory occupied.
// It leaves those whose engines are still stopping.
func removeLeft(parent string) error {
	dirs, err := filepath.Glob(filepath.Join(parent, folderPrefix+"*-*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		text, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), folderPrefix), "-")
		pid, err := strconv.Atoi(text)
		if err != nil || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || locked(dir) {
			continue
		}
		_ = os.RemoveAll(dir) // may be another user's
	}
	return nil
}

// locked reports whether an engine in a folder inside dir still runs; those of a cluster are one folder deeper.
func locked(dir string) bool {
	locks, _ := filepath.Glob(filepath.Join(dir, "*", "lock"))
	deeper, _ := filepath.Glob(filepath.Join(dir, "*", "*", "lock"))
	locks = append(locks, deeper...)
	for _, path := range locks {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		f.Close()
		if err != nil {
			return true
		}
	}
	return false
}
