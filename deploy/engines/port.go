package engines

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

const loopback = "127.0.0.1"

// A chosen port lies below the ones that systems hand out by themselves for outgoing connections and for port 0 (Linux
// from 32768, macOS from 49152): one of those may be taken again before the engine binds it, or while it restarts.
const (
	firstChoice = 10_000
	lastChoice  = 32_767
)

// claimed keeps the ports that this process chose: each is the UDP port of the same number, which no engine listens on
// and no other process can hold meanwhile. The system lets them go when the process ends.
var (
	claimedMu sync.Mutex
	claimed   []net.PacketConn
)

// claimPort checks that a port is free, or chooses a free one where port is 0. The TCP port is free again when it
// returns, as an engine binds it itself, a moment later or after a restart; a chosen one is chosen by no other process
// until this one ends.
func claimPort(what string, port int) (int, error) {
	if port < 0 || port > 65535 {
		return 0, fmt.Errorf("start %s: port %d is not between 1 and 65535 (0 chooses a free one)", what, port)
	}
	if port > 0 {
		return port, tryPort(what, port)
	}
	var err error
	for range 100 {
		port = firstChoice + rand.IntN(lastChoice-firstChoice+1)
		if err = choosePort(what, port); err == nil {
			return port, nil
		}
	}
	return 0, err
}

// choosePort claims a port for this process where it is free and nobody else has claimed it.
func choosePort(what string, port int) error {
	claim, err := net.ListenPacket("udp", addr(port))
	if err != nil {
		return portError(what, port, err)
	}
	if err := tryPort(what, port); err != nil {
		claim.Close()
		return err
	}
	claimedMu.Lock()
	defer claimedMu.Unlock()
	claimed = append(claimed, claim)
	return nil
}

func tryPort(what string, port int) error {
	l, err := net.Listen("tcp", addr(port))
	if err != nil {
		return portError(what, port, err)
	}
	return l.Close()
}

func portError(what string, port int, err error) error {
	return fmt.Errorf("start %s: port %d of %s cannot be listened on: stop what uses it or choose another port: %w", what, port, loopback, err)
}

func addr(port int) string {
	return net.JoinHostPort(loopback, strconv.Itoa(port))
}

// FreeAddr chooses an address of this machine that nothing listens on, for a program that is about to: nobody else
// chooses its port until this process ends.
func FreeAddr() (string, error) {
	port, err := claimPort("a program", 0)
	if err != nil {
		return "", err
	}
	return addr(port), nil
}
