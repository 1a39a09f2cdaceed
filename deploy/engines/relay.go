package engines

import (
	"io"
	"net"
	"time"
)

// drainTime is how long the rest of a response is read at most after its client has gone.
const drainTime = time.Minute

// relay forwards the connections of a listener to an engine that a reset connection would end. It ends each connection
// to the engine as after a complete response, however the client ends its own: it closes the sending side, reads the
// rest and discards it. (The kernel resets a socket that is closed before everything was read; clients do that whenever
// they abandon a query.)
func relay(listener net.Listener, engine string) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		go forward(client.(*net.TCPConn), engine)
	}
}

func forward(client *net.TCPConn, to string) {
	defer client.Close()
	conn, err := net.Dial("tcp", to)
	if err != nil {
		return // the engine is not ready yet, or ends
	}
	defer conn.Close()
	engine := conn.(*net.TCPConn)
	go func() {
		_, _ = io.Copy(engine, client) // until the client closes or resets its connection
		_ = engine.CloseWrite()
		_ = engine.SetReadDeadline(time.Now().Add(drainTime))
	}()
	if _, err := io.Copy(client, engine); err == nil {
		return // the engine has sent everything
	}
	_ = client.Close() // also ends the goroutine
	_, _ = io.Copy(io.Discard, engine)
}
