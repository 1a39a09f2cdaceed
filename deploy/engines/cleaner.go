package engines

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// RemoveAtExit removes dir once this process has exited, however it ends, and so have all engines in folders directly
// inside dir. It is for tests: no test could remove an engine's folder at its end if many tests share the engine.
func RemoveAtExit(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("remove a folder at exit: %w", err)
	}
	cmd, err := childCommand(childSpec{Kind: cleanerKind, Dir: dir})
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

// TempDir creates a temporary folder for a run's engines, which is removed with this process (see RemoveAtExit).
func TempDir(name string) (string, error) { return newDir("", "navlog-"+name+"-", false) }

// RunDir creates a new folder in data for the engines of one run. It is removed with this process, unless keep is set.
func RunDir(data string, keep bool) (string, error) {
	if err := os.MkdirAll(data, 0o755); err != nil {
		return "", fmt.Errorf("make the data folder: %w", err)
	}
	return newDir(data, "run-", keep)
}

// newDir creates a folder that the user that PostgreSQL runs as can enter, unlike t.TempDir of a root process.
func newDir(parent, prefix string, keep bool) (string, error) {
	dir, err := os.MkdirTemp(parent, prefix)
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		return "", fmt.Errorf("make a folder for the engines: %w", err)
	}
	if keep {
		return dir, nil
	}
	return dir, RemoveAtExit(dir)
}

// heldOpen keeps the cleaners' pipes from the garbage collector, which would close them.
var heldOpen struct {
	sync.Mutex
	pipes []io.Closer
}

// runCleaner is the main function of a cleaner: it waits for the parent to exit, then for its engines, then removes the
// folder.
func runCleaner(spec childSpec) int {
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
		flock(context.Background(), lock) // the folder is removed even if an engine does not exit
	}
	if err := os.RemoveAll(spec.Dir); err != nil {
		childFail("remove "+spec.Dir, err)
	}
	return 0
}
