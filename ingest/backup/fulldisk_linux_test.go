package backup

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// A backup onto a full disk ends with the reason, and what it wrote is intact. With space again, it is continued. It
// can be verified and restored from a file system that is mounted read-only.
func TestBackupOnAFullDisk(t *testing.T) {
	from, to, dir := newBroker(t), newBroker(t), t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=32k"); err != nil {
		t.Skipf("a file system for the backup cannot be mounted, which takes root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	from.append(2)
	first := from.mustWrite(dir)
	from.append(40)
	if _, err := from.write(dir); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("a backup onto a full disk ends with %v", err)
	}
	if got, err := Verify(t.Context(), dir, nil); err != nil || got.Seal != first.Seal || got.Unfinished == 0 {
		t.Fatalf("on the full disk: %+v, %v", got, err)
	}
	from.must(unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=8m"))
	if got := from.mustWrite(dir); got.Unfinished != 0 || got.Log != from.seq {
		t.Errorf("continued: %+v", got)
	}
	// as a backup is mounted for a restore
	from.must(unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	if _, err := Verify(t.Context(), dir, nil); err != nil {
		t.Errorf("on a read-only file system: %v", err)
	}
	_, err := to.restore(dir, nil)
	from.must(err)
	from.same(to)
}
