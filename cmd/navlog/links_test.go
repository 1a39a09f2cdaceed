package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The deployed binary links no engine, no development broker, no fault-injecting proxy, and nothing that loads a
// library by its name.
func TestNavlogLinksNothingForDevelopment(t *testing.T) {
	for program, want := range map[string]bool{"navlog": false, "navlog-dev": true} {
		out, err := exec.Command("go", "list", "-deps", "github.com/navlog/navlog/cmd/"+program).Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		for _, foreign := range []string{"github.com/twmb/franz-go/pkg/kfake", "github.com/ebitengine/purego",
			"github.com/navlog/navlog/deploy/"} {
			if got := strings.Contains("\n"+string(out), "\n"+foreign); got != want {
				t.Errorf("%s links %s: %t, want %t", program, foreign, got, want)
			}
		}
	}
}

// The helper processes of the embedded engines are navlog-dev itself, started with a variable that names what to run:
// navlog ignores that variable.
func TestNavlogHasNoChildMode(t *testing.T) {
	if testing.Short() {
		t.Skip("builds both programs")
	}
	dir := t.TempDir()
	build := exec.Command("go", "build", "-ldflags=-w", "-o", dir, "github.com/navlog/navlog/cmd/navlog",
		"github.com/navlog/navlog/cmd/navlog-dev")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for program, want := range map[string]bool{"navlog": false, "navlog-dev": true} {
		command := exec.Command(filepath.Join(dir, program), "version")
		command.Env = append(os.Environ(), `NAVLOG_ENGINE_CHILD={"Kind":"nonsense"}`)
		out, err := command.CombinedOutput()
		if taken := err != nil && strings.Contains(string(out), "engine helper"); taken != want || !want &&
			!strings.HasPrefix(string(out), "navlog ") {
			t.Errorf("%s is a helper: %t, want %t: %v\n%s", program, taken, want, err, out)
		}
	}
}
