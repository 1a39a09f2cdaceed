package stack

import (
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/navlog/navlog/deploy/testkit/wait"
)

func TestEnvironment(t *testing.T) {
	t.Setenv("NAVLOG_HTTP_LISTEN", "127.0.0.1:1")
	t.Setenv("NAVLOG_CONFIG", "mine.yaml")
	t.Setenv("NAVLOG_ENGINES", "/engines")
	t.Setenv("OTHER", "kept")
	env := Environment("NAVLOG_CHAIN_ID=7")
	for variable, want := range map[string]bool{
		"NAVLOG_HTTP_LISTEN=127.0.0.1:1": false, "NAVLOG_CONFIG=mine.yaml": false,
		"NAVLOG_ENGINES=/engines": true, "OTHER=kept": true, "NAVLOG_CHAIN_ID=7": true,
	} {
		if slices.Contains(env, variable) != want {
			t.Errorf("%s is in the environment: %v, want %v", variable, !want, want)
		}
	}
}

func TestPeak(t *testing.T) {
	if runtime.GOOS == "linux" {
		if mib := Peak(os.Getpid()) >> 20; mib < 1 || mib > 1<<20 {
			t.Errorf("this process took %d MiB", mib)
		}
	}
	if peak := Peak(-1); peak != 0 {
		t.Errorf("no process took %d bytes", peak)
	}
}

func TestCPU(t *testing.T) {
	if runtime.GOOS == "linux" {
		before, err := CPU(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		wait.For(t, "this process used more time", func() bool {
			after, err := CPU(os.Getpid())
			return err == nil && after > before
		})
	}
	if _, err := CPU(-1); err == nil {
		t.Error("no process had processor time")
	}
}
