package engines

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// enginesEnv names a folder that contains node_modules (and kafka/lib), for when it is neither in the checkout nor next
// to the executable.
const enginesEnv = "NAVLOG_ENGINES"

// enginesDir finds the folder called name, which `make target` fills: in the folder that the environment variable
// NAVLOG_ENGINES names, else in deploy/engines of the checkout that contains the working directory, else in
// ../deploy/engines relative to the executable (bin/navlog). The error says how to get one.
func enginesDir(name, target string) (string, error) {
	if dir := os.Getenv(enginesEnv); dir != "" {
		// A folder found elsewhere never overrides an explicit choice.
		found := filepath.Join(dir, name)
		if !isDir(found) {
			return "", fmt.Errorf("find the engines: %s=%s has no folder %s: run `make %s` and point %s at deploy/engines",
				enginesEnv, dir, name, target, enginesEnv)
		}
		return filepath.Abs(found)
	}
	for _, base := range engineBases() {
		if found := filepath.Join(base, name); isDir(found) {
			return found, nil
		}
	}
	return "", fmt.Errorf("find the engines: no folder deploy/engines/%s in this checkout or next to the executable: "+
		"run `make %s`, or set %s to the folder that holds it", name, target, enginesEnv)
}

// engineBases returns the folders that may contain the engines, the most likely first.
func engineBases() []string {
	var bases []string
	if wd, err := os.Getwd(); err == nil {
		for dir := wd; ; dir = filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				bases = append(bases, filepath.Join(dir, "deploy", "engines")) // the benchmarks are a module within the checkout
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	if exe, err := os.Executable(); err == nil {
		bases = append(bases, filepath.Join(filepath.Dir(filepath.Dir(exe)), "deploy", "engines"))
	}
	return bases
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// moduleFile returns the path of a file in an npm package that exists once per platform. The packages name platforms
// differently, so the caller passes the name.
func moduleFile(platform, pkg, file string) (string, error) {
	modules, err := enginesDir("node_modules", "engines")
	if err != nil {
		return "", err
	}
	path := filepath.Join(modules, filepath.FromSlash(pkg+platform), filepath.FromSlash(file))
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("find an engine: %s is missing for %s/%s: run `make engines`", path, runtime.GOOS,
			runtime.GOARCH)
	} else if err != nil {
		return "", fmt.Errorf("find an engine: %w", err)
	}
	return path, nil
}

// nodePlatform returns this platform's name in Node.js: linux-x64, darwin-arm64.
func nodePlatform() string {
	if runtime.GOARCH == "amd64" {
		return runtime.GOOS + "-x64"
	}
	return runtime.GOOS + "-" + runtime.GOARCH
}
