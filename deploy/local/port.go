package local

import (
	"fmt"
	"net"
	"strconv"
)

const loopback = "127.0.0.1"

// claimPort checks that a port is free, or chooses a free one where port is 0. The port is free again when it returns:
// an engine binds it itself, a moment later.
func claimPort(what string, port int) (int, error) {
	if port < 0 || port > 65535 {
		return 0, fmt.Errorf("start %s: port %d is not between 1 and 65535 (0 chooses a free one)", what, port)
	}
	l, err := net.Listen("tcp", addr(port))
	if err != nil {
		return 0, portError(what, port, err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func portError(what string, port int, err error) error {
	return fmt.Errorf("start %s: port %d of %s cannot be listened on: stop what uses it or choose another port: %w", what, port, loopback, err)
}

func addr(port int) string {
	return net.JoinHostPort(loopback, strconv.Itoa(port))
}
