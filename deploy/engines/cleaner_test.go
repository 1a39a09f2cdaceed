package engines

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/navlog/navlog/deploy/testkit/wait"
)

// The folder is removed when the process that requested it has exited, and not before the engine inside it has.
func TestRemoveAtExit(t *testing.T) {
	base := engineDir(t)
	dir := filepath.Join(base, "temporary")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	p := startParent(t, "cleaner", dir)
	if _, err := os.Stat(filepath.Join(dir, "anvil", "lock")); err != nil {
		t.Fatal(err)
	}
	p.kill()
	wait.Until(t, func() error {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("it is still there (%v)", err)
		}
		return nil
	})
	wait.Until(t, func() error { return gone(p.Pid) })
}
