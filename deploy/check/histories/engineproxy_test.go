package histories_test

import (
	"io"
	"net"
	"sync"
	"time"
)

// An engineProxy is a proxy between a projector and ClickHouse that closes for good while the projector is sending: to the
// engine it looks as if the projector had died. Each direction ends as it does when a process dies, with one exception:
// the engine's remaining output is read to the end, because the embedded engine does not survive a reset
// (deploy/engines, relay.go).
type engineProxy struct {
	listener net.Listener
	engine   string
	shut     chan struct{} // closed when the door is shut

	mu    sync.Mutex
	left  int64 // bytes that the projector may still send; negative: no limit
	ends  []*net.TCPConn
	ended bool
}

// openDoor opens a door to an engine that lets that many bytes in; negative: no limit.
func openDoor(engine string, bytes int64) (*engineProxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &engineProxy{listener: listener, engine: engine, shut: make(chan struct{}), left: bytes}
	go d.accept()
	return d, nil
}

func (d *engineProxy) addr() string { return d.listener.Addr().String() }

func (d *engineProxy) accept() {
	for {
		outside, err := d.listener.Accept()
		if err != nil {
			return
		}
		inside, err := net.Dial("tcp", d.engine)
		if err != nil {
			outside.Close()
			continue
		}
		d.pass(outside.(*net.TCPConn), inside.(*net.TCPConn))
	}
}

// pass copies bytes in both directions until one side or the door closes.
func (d *engineProxy) pass(outside, inside *net.TCPConn) {
	d.mu.Lock()
	if d.ended {
		d.mu.Unlock()
		outside.Close()
		inside.Close()
		return
	}
	d.ends = append(d.ends, outside)
	d.mu.Unlock()
	go func() {
		buffer := make([]byte, 1<<20) // what is sent at once
		for {
			n, err := outside.Read(buffer)
			if n > 0 && !d.enter(int64(n)) || err != nil {
				break
			}
			if _, err := inside.Write(buffer[:n]); err != nil {
				break
			}
		}
		_ = inside.CloseWrite() // it may be closed already
	}()
	go func() {
		_, _ = io.Copy(outside, inside)
		outside.Close()
		_ = inside.SetReadDeadline(time.Now().Add(time.Minute))
		_, _ = io.Copy(io.Discard, inside)
		inside.Close()
	}()
}

// enter lets n bytes in, or shuts the door.
func (d *engineProxy) enter(n int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left >= 0 && n > d.left {
		d.end()
	}
	if d.left >= 0 {
		d.left -= n
	}
	return !d.ended
}

// allow sets how many more bytes are let in from now on.
func (d *engineProxy) allow(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = bytes
}

// close shuts the door if it is still open.
func (d *engineProxy) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.end()
}

func (d *engineProxy) end() {
	if d.ended {
		return
	}
	d.ended = true
	close(d.shut) // first, so that a projector that ends because of it is seen to have died
	d.listener.Close()
	for _, c := range d.ends {
		c.Close()
	}
}
