package main

import (
	"context"
	"errors"
	"maps"
	"net"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/bench"
	"github.com/navlog/navlog/deploy/testkit/stack"
)

// A part during which the chain or the projector ends is an error, even if all questions were answered.
func TestPartWithoutItsChain(t *testing.T) {
	w := &world{failed: make(chan error, 1)}
	var err error
	if w.projector, err = stack.Launch(exec.Command("sleep", "600"), ""); err != nil {
		t.Fatal(err)
	}
	defer w.projector.Kill()
	gone := errors.New("the chain is gone")
	part := w.part(func(context.Context) ([]bench.Bar, error) { return []bench.Bar{{Name: "figure"}}, nil })
	if bars, err := part(t.Context()); err != nil || len(bars) != 1 {
		t.Errorf("while the chain advances: %v, %v", bars, err)
	}
	w.fail(gone)
	if _, err := part(t.Context()); !errors.Is(err, gone) {
		t.Errorf("the chain has ended: %v", err)
	}
	w.projector.Kill()
	if _, err := part(t.Context()); err == nil {
		t.Error("the projector has ended, and the figure counts")
	}
}

// A failed request was not answered.
func TestAnswered(t *testing.T) {
	asked := newTimes()
	for i, err := range []error{nil, errors.New("503"), nil, errors.New("503")} {
		asked.add([]string{"user", "vault"}[i/3], time.Millisecond, err)
	}
	if n := asked.answered(); n != 2 {
		t.Errorf("%d requests were answered, want 2", n)
	}
}

// Requests that fail for one reason are counted together, although their connections differ.
func TestFailuresOfACrowd(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096))
			_ = conn.(*net.TCPConn).SetLinger(0) // a reset
			conn.Close()
		}
	}()
	o := &outcome{other: map[string]int{}}
	for range 3 {
		o.add(getOnce(server.Addr().String(), "/"))
	}
	if !maps.Equal(o.other, map[string]int{syscall.ECONNRESET.Error(): 3}) {
		t.Errorf("the reasons are %q", slices.Collect(maps.Keys(o.other)))
	}
}
