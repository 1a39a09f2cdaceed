package engines

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/navlog/navlog/deploy/testkit/wait"
)

func needApacheKafka(t *testing.T) {
	t.Helper()
	if err := ApacheKafkaAvailable(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

// Apache Kafka must keep, through a crash inside a transaction and a graceful stop, what kfake is required to keep.
// After the crash it comes back at its address.
func TestApacheKafkaKeepsData(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a broker three times")
	}
	needApacheKafka(t)
	dir := t.TempDir()
	k, err := StartApacheKafka(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Kill() })
	createTopic(t, k.Addr)
	var want []string
	for i, next := range []func(){
		func() {
			address := k.Addr
			if err := k.Restart(t.Context()); err != nil || k.Addr != address {
				t.Fatalf("at %s it comes back at %s: %v", address, k.Addr, err)
			}
		},
		func() {
			if err := k.Close(); err != nil {
				t.Fatal(err)
			}
			if k, err = StartApacheKafka(t.Context(), dir); err != nil {
				t.Fatal(err)
			}
		},
		func() { k.Kill() },
	} {
		p := producer(t, k.Addr)
		value := string(rune('a' + i))
		commit(t, p, value)
		want = append(want, value)
		if got := committed(t, k.Addr); !slices.Equal(got, want) {
			t.Fatalf("after %d restarts: read %q, want %q", i, got, want)
		}
		begin(t, p, "lost")
		pid := k.Pid
		next()
		p.CloseAllowingRebalance()
		if err := gone(pid); err != nil {
			t.Error(err)
		}
	}
}

func TestApacheKafkaGoesWithItsParent(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a broker")
	}
	needApacheKafka(t)
	p := startParent(t, "apachekafka", t.TempDir())
	p.kill()
	wait.Until(t, func() error { return gone(p.Pid) })
}

func TestApacheKafkaAvailable(t *testing.T) {
	t.Run("no java", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		wantMessage(t, ApacheKafkaAvailable(), "no java in PATH", "17")
	})
	empty := t.TempDir()
	java := filepath.Join(empty, "java")
	if err := os.WriteFile(java, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Run("no jars", func(t *testing.T) {
		t.Setenv("PATH", empty)
		t.Setenv(enginesEnv, empty)
		wantMessage(t, ApacheKafkaAvailable(), empty, "make kafka")
	})
	t.Run("no broker among the jars", func(t *testing.T) {
		t.Setenv("PATH", empty)
		t.Setenv(enginesEnv, empty)
		if err := os.MkdirAll(filepath.Join(empty, "kafka", "lib"), 0o755); err != nil {
			t.Fatal(err)
		}
		wantMessage(t, ApacheKafkaAvailable(), "0 jars of the broker", "make kafka")
	})
}

func wantMessage(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one that says %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error %q does not say %q", err, part)
		}
	}
}
