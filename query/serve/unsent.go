package serve

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxUnsent is how many bytes the operating system accepts for a client beyond those that it can send. By default these
// are megabytes: then it accepts nothing for minutes, whether or not the client reads.
const maxUnsent = 2 * StreamChunk

// limitUnsent makes the operating system accept bytes for a connection as the client receives them.
func limitUnsent(c net.Conn) {
	tcp, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := tcp.SyscallConn(); err == nil { // the pace of a closed connection does not matter
		_ = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT,
				maxUnsent)
		})
	}
}
