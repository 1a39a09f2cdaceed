// Package structure has no code of its own: its tests check rules of the whole repository that no single package can
// check.
package structure

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The import rules are in .golangci.yaml, and `make lint` checks them. A rule whose pattern has a typo forbids nothing,
// so this test checks that each room of a program has a rule, and so do each program and its tests.
func TestEveryRoomHasARule(t *testing.T) {
	b, err := os.ReadFile("../../../.golangci.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Linters struct {
			Enable   []string
			Settings struct {
				Depguard struct {
					Rules map[string]struct {
						Mode  string `yaml:"list-mode"`
						Files []string
						Deny  []struct{ Pkg string }
					}
				}
			}
		}
	}
	if err := yaml.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(c.Linters.Enable, "depguard") {
		t.Fatal("depguard is not enabled")
	}
	has := func(pattern, denied string) bool {
		for _, r := range c.Linters.Settings.Depguard.Rules {
			if r.Mode == "lax" && slices.Contains(r.Files, pattern) &&
				slices.ContainsFunc(r.Deny,
					func(d struct{ Pkg string }) bool { return d.Pkg == "github.com/navlog/navlog/"+denied }) {
				return true
			}
		}
		return false
	}
	programs, rooms := []string{"ingest", "projections", "query", "dispatch"}, 0
	for _, program := range programs {
		for _, other := range programs {
			for _, pattern := range []string{"${base-path}/" + program + "/**.go", "${base-path}/" + program + "/**_test.go"} {
				if other != program && !has(pattern, other) {
					t.Errorf("no rule prevents %s from importing %s", pattern, other)
				}
			}
		}
		files, err := filepath.Glob("../../../" + program + "/*/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			room := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(file),
				filepath.Clean("../../..")+string(filepath.Separator)))
			if rooms++; !has("${base-path}/"+room+"/*.go", program) {
				t.Errorf("no rule lists which rooms of its program %s may import: add one to .golangci.yaml", room)
			}
		}
	}
	for _, room := range roomsOfDeploy(t) {
		denied := "deploy" // the rest of deploy
		if room == "check" {
			denied = "deploy/bench" // a check may use everything except other checks and benchmarks
		}
		if !has("${base-path}/deploy/"+room+"/**.go", denied) {
			t.Errorf("no rule lists which rooms of deploy %s may import: add one to .golangci.yaml", room)
		}
	}
	if rooms < 20 {
		t.Errorf("only %d files are in rooms: the others were not checked", rooms)
	}
}

// roomsOfDeploy returns the folders of deploy that contain Go files.
func roomsOfDeploy(t *testing.T) (rooms []string) {
	t.Helper()
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == "node_modules" {
			return fs.SkipDir
		}
		if room, below, _ := strings.Cut(path, "/"); strings.HasSuffix(below, ".go") && !slices.Contains(rooms, room) {
			rooms = append(rooms, room)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(rooms) < 5 {
		t.Fatalf("deploy has only the rooms %v: the others were not checked", rooms)
	}
	return rooms
}

// README's table lists every folder, so that newcomers find their way.
func TestReadmeNamesEveryFolder(t *testing.T) {
	b, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var lines string
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "| `") {
			folders, _, _ := strings.Cut(line[1:], "|")
			lines += folders
		}
	}
	for _, below := range []string{"", "deploy/"} {
		entries, err := os.ReadDir("../../../" + below)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			name := entry.Name()
			if !entry.IsDir() || strings.HasPrefix(name, ".") || slices.Contains(generatedFolders, name) {
				continue
			}
			if !strings.Contains(lines, "`"+below+name+"`") && !strings.Contains(lines, "`"+below+name+"/") {
				t.Errorf("README's table of folders has no line for %s%s", below, name)
			}
		}
	}
}

// generatedFolders is what make creates at the root (.gitignore).
var generatedFolders = []string{"bin", "build", "data", "dist"}
