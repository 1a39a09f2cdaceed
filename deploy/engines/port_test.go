package engines

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

// use listens on an address as long as the test runs.
func use(t *testing.T, address string) *net.TCPAddr {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr)
}

func wantPortError(t *testing.T, err error, port int) {
	t.Helper()
	if err == nil {
		t.Fatalf("started on port %d, which was in use", port)
	}
	for _, part := range []string{fmt.Sprintf("port %d of 127.0.0.1 cannot be listened on", port), "stop what uses it"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error %q does not say %q", err, part)
		}
	}
}

func TestClaimPort(t *testing.T) {
	for range 200 {
		port, err := claimPort("anvil", 0)
		if err != nil || port < firstChoice || port > lastChoice {
			t.Fatalf("no free port of our own range: %d, %v", port, err)
		}
	}
	used := use(t, addr(0)).Port
	_, err := claimPort("anvil", used)
	wantPortError(t, err, used)
}

// An engine binds its port a moment after it was chosen, so two processes could choose the same port in between.
func TestChosenPortIsNobodyElses(t *testing.T) {
	port, err := claimPort("anvil", 0)
	if err != nil {
		t.Fatal(err)
	}
	wantPortError(t, choosePort("Kafka", port), port)
	if again, err := claimPort("anvil", port); err != nil || again != port {
		t.Errorf("an engine cannot start again on its own port %d: %v", port, err)
	}
}

func TestFreeAddr(t *testing.T) {
	one, err := FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	if other, err := FreeAddr(); err != nil || other == one {
		t.Errorf("%s is chosen twice: %v", other, err)
	}
	l, err := net.Listen("tcp", one)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}
