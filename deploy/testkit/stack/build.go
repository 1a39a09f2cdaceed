package stack

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/navlog/navlog/deploy/engines"
)

var built struct {
	sync.Mutex
	dir      string
	programs map[string]bool
}

// Build builds one of the programs in cmd, once in this process, and returns the path of the binary, which has no debug
// tables: they take a third of the time.
func Build(program string) (path string, err error) {
	built.Lock()
	defer built.Unlock()
	if built.dir == "" {
		if built.dir, err = engines.TempDir("bin"); err != nil {
			return "", err
		}
		built.programs = map[string]bool{}
	}
	path = filepath.Join(built.dir, program)
	if built.programs[program] {
		return path, nil
	}
	if out, err := exec.Command("go", "build", "-ldflags=-w", "-o", path,
		"github.com/navlog/navlog/cmd/"+program).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", program, err, out)
	}
	built.programs[program] = true
	return path, nil
}
