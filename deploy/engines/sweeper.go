package engines

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// RemoveAtExit removes dir once this process is gone, however it ends, and so is every engine in a folder directly
// inside dir. It is for tests: an engine that many of them share has no test at whose end it could be removed.
func RemoveAtExit(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("remove a folder at exit: %w", err)
	}
	cmd, err := childCommand(childSpec{Kind: sweeperKind, Dir: dir})
	if err != nil {
		return fmt.Errorf("remove %s at exit: %w", dir, err)
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("remove %s at exit: %w", dir, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("remove %s at exit: %w", dir, err)
	}
	heldOpen.Lock()
	defer heldOpen.Unlock()
	heldOpen.pipes = append(heldOpen.pipes, stdin)
	return nil
}

// RunDir makes a new folder below data for the engines of one run, open to the user that PostgreSQL runs as. It goes with
// this process, unless it is to be kept.
func RunDir(data string, keep bool) (string, error) {
	if err := os.MkdirAll(data, 0o755); err != nil {
		return "", fmt.Errorf("make the data folder: %w", err)
	}
	dir, err := os.MkdirTemp(data, "run-")
	if err != nil {
		return "", fmt.Errorf("make a folder for the engines: %w", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil || keep {
		return dir, err
	}
	return dir, RemoveAtExit(dir)
}

// heldOpen keeps the pipes of the sweepers from the garbage collector, which would close them.
var heldOpen struct {
	sync.Mutex
	pipes []io.Closer
}

// runSweeper is the life of a sweeper: wait for the end of the parent, then for that of its engines, then remove.
func runSweeper(spec childSpec) int {
	io.Copy(io.Discard, os.Stdin)
	locks, err := filepath.Glob(filepath.Join(spec.Dir, "*", "lock"))
	if err != nil {
		childFail("find what to remove", err)
	}
	for _, path := range locks {
		lock, err := os.Open(path)
		if err != nil {
			continue
		}
		flock(context.Background(), lock) // an engine that does not go is no reason to leave the folder
	}
	if err := os.RemoveAll(spec.Dir); err != nil {
		childFail("remove "+spec.Dir, err)
	}
	return 0
}
