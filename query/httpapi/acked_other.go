//go:build !linux

package httpapi

// Acked is false: what a client has acknowledged is only asked for on Linux.
func (c *conn) Acked() (acked uint64, ok bool) { return 0, false }
