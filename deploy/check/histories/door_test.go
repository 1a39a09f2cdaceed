package histories_test

import (
	"io"
	"net"
	"sync"
	"time"
)

// A door stands between a projector and ClickHouse and shuts for good in the middle of what the projector sends: for the
// engine the projector died there. Each way ends as a process that dies ends it, but for one thing: what the engine still
// says is read to the end, for ClickHouse 26.7 does not survive a reset (schemas/readmodel, conn.go).
type door struct {
	listener net.Listener
	engine   string
	shut     chan struct{} // closed when it is

	mu    sync.Mutex
	left  int64 // bytes that the projector may still send; negative: any number
	ends  []*net.TCPConn
	ended bool
}

// openDoor opens a door to an engine that lets so many bytes in, or any number where that is negative.
func openDoor(engine string, bytes int64) (*door, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &door{listener: listener, engine: engine, shut: make(chan struct{}), left: bytes}
	go d.accept()
	return d, nil
}

func (d *door) addr() string { return d.listener.Addr().String() }

func (d *door) accept() {
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

// pass carries bytes both ways until one side or the door closes.
func (d *door) pass(outside, inside *net.TCPConn) {
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
		_ = inside.CloseWrite() // it may be gone already
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
func (d *door) enter(n int64) bool {
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

// allow lets only so many bytes more in, from now on.
func (d *door) allow(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = bytes
}

// close shuts the door where it is still open.
func (d *door) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.end()
}

func (d *door) end() {
	if d.ended {
		return
	}
	d.ended = true
	close(d.shut) // first: a projector that ends of it has to be seen to have died
	d.listener.Close()
	for _, c := range d.ends {
		c.Close()
	}
}
