package link

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/testkit/wait"
)

// echo serves on 127.0.0.1 of this machine and repeats each line. It returns its port.
func echo(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					fmt.Fprintln(conn, lines.Text())
				}
			}()
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port
}

// An echoConn is a program in the namespace that is connected to the echo server.
type echoConn struct {
	in    interface{ Write([]byte) (int, error) }
	lines chan string
}

func connect(t *testing.T, l *Link, port int) *echoConn {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "ip", "netns", "exec", l.Namespace, "bash", "-c",
		"exec 3<>/dev/tcp/127.0.0.1/"+strconv.Itoa(port)+"; cat <&3 & exec cat >&3")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d := &echoConn{in, make(chan string, 100)}
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			d.lines <- lines.Text()
		}
	}()
	return d
}

// trip sends a line and returns how long its echo took.
func (d *echoConn) trip(ctx context.Context, line string) (time.Duration, error) {
	began := time.Now()
	if _, err := fmt.Fprintln(d.in, line); err != nil {
		return 0, err
	}
	select {
	case got := <-d.lines:
		if got != line {
			return 0, fmt.Errorf("the echo of %q is %q", line, got)
		}
		return time.Since(began), nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func TestLink(t *testing.T) {
	if err := Available(); err != nil {
		t.Skip(err)
	}
	l, err := New(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	port, other := echo(t), echo(t)
	d, second := connect(t, l, port), connect(t, l, other)
	ctx, cancel := context.WithTimeout(t.Context(), wait.Patience)
	defer cancel()
	for _, each := range []*echoConn{d, second} {
		if _, err := each.trip(ctx, "hello"); err != nil {
			t.Fatal(err)
		}
	}

	l.Slow(200*time.Millisecond, 0)
	took, err := d.trip(ctx, "slow")
	if err != nil || took < 200*time.Millisecond {
		t.Errorf("with 200 ms more a round trip takes %s: %v", took, err)
	}
	l.Slow(0, 0.1) // TCP waits twice as long after each loss in a row
	for i := range 20 {
		if _, err := d.trip(ctx, strconv.Itoa(i)); err != nil {
			t.Fatalf("with lost packets: %v", err)
		}
	}
	l.Slow(0, 0)

	l.Cut(port)
	short, stop := context.WithTimeout(ctx, 500*time.Millisecond)
	defer stop()
	if _, err := d.trip(short, "cut"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a cut connection has the outcome %v", err)
	}
	if _, err := second.trip(ctx, "other"); err != nil {
		t.Errorf("a connection to another port is cut too: %v", err)
	}
	l.Heal()
	select { // TCP sends it again
	case got := <-d.lines:
		if got != "cut" {
			t.Errorf("after the cut came %q", got)
		}
	case <-ctx.Done():
		t.Error("the connection did not survive the cut")
	}
}
