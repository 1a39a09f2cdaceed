// Package structure has no code of its own: its tests hold the rules of the
// whole repository that no single package can.
package structure

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/navlog/navlog/"

var programs = []string{"ingest", "projections", "query", "dispatch"}

// layer is the first folder of an import path of ours, "" for a foreign one.
func layer(path string) string {
	rest, ours := strings.CutPrefix(path, module)
	if !ours {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// allowed tells whether a package in layer from may import one in layer to.
func allowed(from, to string) bool {
	switch {
	case to == "" || from == to:
		return true
	case from == "schemas":
		return false
	case slices.Contains(programs, from):
		return to == "schemas"
	default: // cmd and deploy tie everything together
		return true
	}
}

// The four programs share no code but the schemas, and the schemas know
// nothing of the programs. Tests may start engines from deploy/local.
func TestDependencyRule(t *testing.T) {
	command := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	command.Dir = "../.."
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := 0
	for decoder := json.NewDecoder(strings.NewReader(string(out))); decoder.More(); packages++ {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := decoder.Decode(&p); err != nil {
			t.Fatalf("read go list: %v", err)
		}
		for _, imported := range p.Imports {
			if !allowed(layer(p.ImportPath), layer(imported)) {
				t.Errorf("%s imports %s: ingest, projections, query and dispatch may import schemas only, and schemas nothing of ours", p.ImportPath, imported)
			}
		}
	}
	if packages < 10 {
		t.Errorf("go list found %d packages: the rule was not checked", packages)
	}
}

func TestAllowed(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"ingest", "schemas", true}, {"ingest", "query", false}, {"query", "projections", false}, {"dispatch", "deploy", false},
		{"schemas", "ingest", false}, {"schemas", "schemas", true}, {"cmd", "ingest", true}, {"deploy", "query", true}, {"ingest", "", true},
	} {
		if got := allowed(c.from, c.to); got != c.want {
			t.Errorf("allowed(%q, %q) = %v", c.from, c.to, got)
		}
	}
}
