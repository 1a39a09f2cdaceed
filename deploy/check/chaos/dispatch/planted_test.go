package dispatch

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/engines"
)

// build builds navlog with one piece of text replaced in one of its files.
func build(t *testing.T, file, before, after string) string {
	t.Helper()
	dir := t.TempDir()
	original, err := filepath.Abs(filepath.Join("../../../..", file))
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), before); n != 1 {
		t.Fatalf("%s holds %q %d times, so that the fault cannot be planted", file, before, n)
	}
	changed, overlaid := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{changed: []byte(strings.Replace(string(source), before, after, 1)),
		overlaid: overlay} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command("go", "build", "-ldflags=-w", "-overlay", overlaid, "-o", filepath.Join(dir, "navlog"),
		"./cmd/navlog")
	command.Dir = "../../../.."
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build navlog: %v\n%s", err, out)
	}
	return filepath.Join(dir, "navlog")
}

// An oracle is only useful if it finds faults: a dispatcher that makes a fourth retry, and one that sends every POST
// twice, make a seed fail. (TestSeeds shows that the real dispatcher does not.)
func TestPlantedFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("builds navlog twice and runs a seed with each")
	}
	t.Parallel()
	for _, c := range []struct {
		what, file, before, after string
		// One of these errors is found. Which one depends on whether the first event that gets a fourth retry belongs
		// to a partner that changed hands meanwhile, which allows one additional POST but not two.
		want []string
	}{
		{"a fourth retry", "dispatch/lane/timing.go", "5 * time.Second, 15 * time.Second}",
			"5 * time.Second, 15 * time.Second, time.Second}",
			[]string{"no more than 1 + 3 are promised", "times, and its partner changed hands"}},
		{"every POST twice", "dispatch/lane/attempt.go", "	a.Result = f.poster.post(",
			"	f.poster.post(context.WithoutCancel(sending), a.Endpoint, a.Delivery)\n	a.Result = f.poster.post(",
			[]string{"posts came too often", "came again although it was accepted"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			data, err := engines.TempDir("planted")
			if err != nil {
				t.Fatal(err)
			}
			run := chaos{navlog: build(t, c.file, c.before, c.after), seeds: 1, first: 1, events: 70,
				settleWithin: 30 * time.Second, log: t.Logf}
			if err := run.run(t.Context(), data); err == nil ||
				!slices.ContainsFunc(c.want, func(w string) bool { return strings.Contains(err.Error(), w) }) {
				t.Errorf("the fault is not found: %v", err)
			}
		})
	}
}
