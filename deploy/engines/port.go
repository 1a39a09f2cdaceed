package engines

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

const loopback = "127.0.0.1"

// Chosen ports are below those that systems assign automatically to outgoing connections and for port 0 (Linux from
// 32768, macOS from 49152): one of those could be taken before the engine binds it, or while it restarts.
const (
	firstChoice = 10_000
	lastChoice  = 32_767
)

// claimed holds the ports that this process chose: each claim is a UDP socket on the same number, on which no engine
// listens and which no other process can hold at the same time. The system releases them when the process exits.
var (
	claimedMu sync.Mutex
	claimed   []net.PacketConn
)

// claimPort checks that a port is free, or chooses a free one if port is 0. On return the TCP port is free, because the
// engine binds it itself, a moment later or after a restart. No other process chooses the same port until this one
// exits.
func claimPort(what string, port int) (int, error) {
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

// choosePort claims a port for this process if it is free and no other process has claimed it.
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
	return fmt.Errorf("start %s: port %d of %s cannot be listened on: stop what uses it: %w", what, port, loopback, err)
}

func addr(port int) string {
	return net.JoinHostPort(loopback, strconv.Itoa(port))
}

// FreeAddr chooses an address of this machine for a program that is about to listen on it. No other process chooses the
// same port until this one exits.
func FreeAddr() (string, error) {
	port, err := claimPort("a program", 0)
	if err != nil {
		return "", err
	}
	return addr(port), nil
}
