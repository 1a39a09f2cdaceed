package stack

import (
	"net"
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

func TestResident(t *testing.T) {
	if runtime.GOOS == "linux" {
		resident, err := Resident(os.Getpid())
		if peak := Peak(os.Getpid()); err != nil || resident < 1<<20 || resident > peak {
			t.Errorf("this process has %d bytes and had at most %d: %v", resident, peak, err)
		}
	}
	if _, err := Resident(-1); err == nil {
		t.Error("no process has memory")
	}
}

func TestOpen(t *testing.T) {
	if _, err := Open(-1); err == nil {
		t.Error("no process has open files")
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux lists the open files of a process")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).AddrPort().Port()
	open := func() Descriptors {
		t.Helper()
		found, err := Open(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	before := open()
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	after := open()
	if after.Files != before.Files+1 || after.Sockets != before.Sockets+1 || after.To[port] != 1 || before.To[port] != 0 {
		t.Errorf("before a file and a connection %+v, after them %+v", before, after)
	}
	conn.Close()
	if closed := open(); closed.Sockets != before.Sockets || closed.To[port] != 0 {
		t.Errorf("before a connection %+v, after its end %+v", before, closed)
	}
}
