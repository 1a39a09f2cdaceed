package engines

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// enginesEnv names a folder that holds node_modules (and kafka/lib), where it is neither in the checkout nor beside the
// executable.
const enginesEnv = "NAVLOG_ENGINES"

// ModulesDir is the node_modules folder of the engines' npm packages: in the folder that the environment variable
// NAVLOG_ENGINES names, else in deploy/engines of the checkout that the working directory is in, else in ../deploy/engines
// as seen from the executable (bin/navlog). The error says how to get one.
func ModulesDir() (string, error) {
	return enginesDir("node_modules", "engines")
}

// enginesDir finds the folder name that `make target` fills.
func enginesDir(name, target string) (string, error) {
	if dir := os.Getenv(enginesEnv); dir != "" {
		// An explicit choice is never overridden by a folder found elsewhere.
		found := filepath.Join(dir, name)
		if !isDir(found) {
			return "", fmt.Errorf("find the engines: %s=%s has no folder %s: run `make %s` and point %s at deploy/engines", enginesEnv, dir, name, target, enginesEnv)
		}
		return filepath.Abs(found)
	}
	for _, base := range engineBases() {
		if found := filepath.Join(base, name); isDir(found) {
			return found, nil
		}
	}
	return "", fmt.Errorf("find the engines: no folder deploy/engines/%s in this checkout or beside the executable: run `make %s`, or set %s to the folder that holds it", name, target, enginesEnv)
}

// engineBases are the folders where the engines may be, the most likely first.
func engineBases() []string {
	var bases []string
	if wd, err := os.Getwd(); err == nil {
		for dir := wd; ; dir = filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				bases = append(bases, filepath.Join(dir, "deploy", "engines"))
				break
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

// moduleFile is the path of a file of an npm package that exists per platform. The packages do not agree on how a
// platform is called, so the caller says it.
func moduleFile(platform, pkg, file string) (string, error) {
	modules, err := ModulesDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(modules, filepath.FromSlash(pkg+platform), filepath.FromSlash(file))
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("find an engine: %s is missing for %s/%s: run `make engines`", path, runtime.GOOS, runtime.GOARCH)
	} else if err != nil {
		return "", fmt.Errorf("find an engine: %w", err)
	}
	return path, nil
}

// nodePlatform is this platform as Node.js calls it: linux-x64, darwin-arm64.
func nodePlatform() string {
	if runtime.GOARCH == "amd64" {
		return runtime.GOOS + "-x64"
	}
	return runtime.GOOS + "-" + runtime.GOARCH
}
