//go:build !linux

package serve

// Acked returns false: acknowledged bytes are only read on Linux.
func (c *conn) Acked() (acked uint64, ok bool) { return 0, false }
