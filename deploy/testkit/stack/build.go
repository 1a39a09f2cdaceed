package stack

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/navlog/navlog/deploy/engines"
)

// builds are the builds of programs by their names: functions that build once.
var builds sync.Map

// Build builds one of the programs in cmd, once in this process, and returns the path of the binary, which has no debug
// tables: they take a third of the time.
func Build(program string) (path string, err error) {
	build, _ := builds.LoadOrStore(program, sync.OnceValues(func() (string, error) {
		dir, err := engines.TempDir("bin")
		if err != nil {
			return "", err
		}
		path := filepath.Join(dir, program)
		if out, err := exec.Command("go", "build", "-ldflags=-w", "-o", path,
			"github.com/navlog/navlog/cmd/"+program).CombinedOutput(); err != nil {
			return "", fmt.Errorf("build %s: %w\n%s", program, err, out)
		}
		return path, nil
	}))
	return build.(func() (string, error))()
}
