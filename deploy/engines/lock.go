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
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", nil, fmt.Errorf("start %s: make its folder: %w", what, err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return "", nil, fmt.Errorf("start %s: open the lock of its folder: %w", what, err)
	}
	if err := flock(ctx, f); err != nil {
		holder, _ := os.ReadFile(f.Name())
		f.Close()
		return "", nil, fmt.Errorf("start %s: folder %s is in use by another process (pid %s): stop that one or choose another folder: %w", what, dir, strings.TrimSpace(string(holder)), err)
	}
	if err := notePid(f, os.Getpid()); err != nil {
		f.Close()
		return "", nil, fmt.Errorf("start %s: write the lock of its folder: %w", what, err)
	}
	return dir, f, nil
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
