package engines

import (
	"os"
	"path/filepath"
	"testing"
)

func TestEnginesDir(t *testing.T) {
	t.Setenv(enginesEnv, "")
	t.Run("of the checkout", func(t *testing.T) {
		dir, err := enginesDir("node_modules", "engines")
		if err != nil {
			t.Fatal(err)
		}
		wd, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		want := filepath.Join(wd, "node_modules")
		if dir != want {
			t.Fatalf("found %s, want %s", dir, want)
		}
		t.Chdir("../bench") // a module within the checkout
		if dir, err := enginesDir("node_modules", "engines"); err != nil || dir != want {
			t.Fatalf("from deploy/bench found %s, %v, want %s", dir, err, want)
		}
	})
	t.Run("named", func(t *testing.T) {
		base := t.TempDir()
		t.Setenv(enginesEnv, base)
		_, err := enginesDir("node_modules", "engines")
		wantMessage(t, err, base, enginesEnv, "make engines")
		want := filepath.Join(base, "node_modules")
		if err := os.Mkdir(want, 0o755); err != nil {
			t.Fatal(err)
		}
		if dir, err := enginesDir("node_modules", "engines"); err != nil || dir != want {
			t.Fatalf("found %s, %v, want %s", dir, err, want)
		}
		_, err = anvilBinary()
		wantMessage(t, err, filepath.Join(want, "@foundry-rs"), "make engines")
	})
	t.Run("nowhere", func(t *testing.T) {
		t.Chdir(t.TempDir())
		_, err := enginesDir("node_modules", "engines")
		wantMessage(t, err, "deploy/engines/node_modules", "make engines", enginesEnv)
	})
}
