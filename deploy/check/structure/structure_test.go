// Package structure has no code of its own: its tests hold the rules of the
// whole repository that no single package can.
package structure

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// What may import what is in .golangci.yaml, and `make lint` looks. A rule whose
// pattern has a typing error says nothing: so each room of a program must have one,
// and so must each program and its tests.
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
				slices.ContainsFunc(r.Deny, func(d struct{ Pkg string }) bool { return d.Pkg == "github.com/navlog/navlog/"+denied }) {
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
					t.Errorf("no rule keeps %s from importing %s", pattern, other)
				}
			}
		}
		files, err := filepath.Glob("../../../" + program + "/*/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			room := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(file), filepath.Clean("../../..")+string(filepath.Separator)))
			if rooms++; !has("${base-path}/"+room+"/*.go", program) {
				t.Errorf("no rule says which rooms of its program %s may import: add one to .golangci.yaml", room)
			}
		}
	}
	if rooms < 20 {
		t.Errorf("only %d files are in rooms: they were not looked at", rooms)
	}
}
