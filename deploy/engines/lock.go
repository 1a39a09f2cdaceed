package engines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// lockWait is how long a start waits for a predecessor on the same folder: longer than any engine may take to stop.
const lockWait = 30 * time.Second

// lockDir creates dir if necessary and locks it, waiting for a predecessor that is still shutting down. It returns dir
// as an absolute path. The lock belongs to the open file: it is released when the last process that inherited it has
// exited.
func lockDir(ctx context.Context, what, dir string) (string, *os.File, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", nil, fmt.Errorf("start %s: %w", what, err)
	}
	f, err := lockFile(dir, func(f *os.File) error { return flock(ctx, f) })
	if err != nil {
		return "", nil, fmt.Errorf("start %s: %w", what, err)
	}
	return dir, f, nil
}

// Reserve creates dir if necessary and locks it for this process, or fails at once if another one has it. No process
// that this one starts inherits the lock, so engines that are still shutting down do not hold it.
func Reserve(dir string) (release func() error, err error) {
	f, err := lockFile(dir, func(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) })
	if err != nil {
		return nil, err
	}
	return f.Close, nil
}

// lockFile creates dir if necessary and locks the file of its lock, which then names this process.
func lockFile(dir string, lock func(*os.File) error) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the folder: %w", err)
	}
	if err := lock(f); err != nil {
		defer f.Close()
		return nil, inUse(f, dir, err)
	}
	if err := notePid(f, os.Getpid()); err != nil {
		f.Close()
		return nil, fmt.Errorf("write the lock of the folder: %w", err)
	}
	return f, nil
}

// inUse describes a folder that could not be locked. That another process has it needs no further reason.
func inUse(lock *os.File, dir string, err error) error {
	if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("lock the folder %s: %w", dir, err)
	}
	holder, _ := os.ReadFile(lock.Name())
	return fmt.Errorf("folder %s is in use by another process (pid %s): stop that one or choose another folder", dir,
		strings.TrimSpace(string(holder)))
}

// notePid writes the id of the process that uses the folder into the lock file, for error messages.
func notePid(f *os.File, pid int) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt(fmt.Appendf(nil, "%d\n", pid), 0)
	return err
}

func flock(ctx context.Context, f *os.File) error {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil || !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
