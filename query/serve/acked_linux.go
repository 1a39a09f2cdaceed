package serve

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Acked returns how many bytes the client has acknowledged since the connection was made, or false if the operating
// system does not report it.
func (c *conn) Acked() (acked uint64, ok bool) { return ackedBy(c.Conn) }

func ackedBy(c net.Conn) (acked uint64, ok bool) {
	tcp, is := c.(syscall.Conn)
	if !is {
		return 0, false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0, false
	}
	err = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil {
			acked, ok = info.Bytes_acked, true
		}
	})
	return acked, ok && err == nil
}
