package engines

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// If the disk is full, the broker cannot note an open transaction when it is stopped. The next one must end it, so that
// what is committed later can be read.
func TestKafkaStopsOnAFullDisk(t *testing.T) {
	dir, err := TempDir("full")
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m,mode=755"); err != nil {
		t.Skipf("a file system for the broker cannot be mounted, which takes root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	k := startKafkaFor(t, filepath.Join(dir, "log"))
	createTopic(t, k.Addr)
	p := producer(t, k.Addr)
	commit(t, p, "kept")
	begin(t, p, "lost")
	ballast := filepath.Join(dir, "ballast")
	fill(t, ballast)
	_ = k.Close() // the disk is full
	p.CloseAllowingRebalance()
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}

	k = startKafkaFor(t, filepath.Join(dir, "log"))
	commit(t, producer(t, k.Addr), "later")
	if got, want := committed(t, k.Addr), []string{"kept", "later"}; !slices.Equal(got, want) {
		t.Fatalf("read %q, want %q", got, want)
	}
}

// fill writes to a file until its disk is full. A new file without content may still fit.
func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 256))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}
