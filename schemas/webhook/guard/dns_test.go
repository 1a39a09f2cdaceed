package guard_test

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
)

// nameServer answers A and AAAA queries over UDP from a table that a test can change between
// two queries.
type nameServer struct {
	mu    sync.Mutex
	names map[string][]string
}

func (s *nameServer) set(name string, addrs ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[name] = addrs
}

// startNameServer returns the server and a resolver that queries only this server.
func startNameServer(t *testing.T) (*nameServer, *net.Resolver) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s := &nameServer{names: map[string][]string{}}
	go func() {
		b := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(s.answer(b[:n]), from)
		}
	}()
	return s, &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// answer encodes a response to a query with one question: RFC 1035, section 4.
func (s *nameServer) answer(query []byte) []byte {
	var labels []string
	i := 12
	for query[i] != 0 {
		n := int(query[i])
		labels = append(labels, string(query[i+1:i+1+n]))
		i += 1 + n
	}
	kind := binary.BigEndian.Uint16(query[i+1:])
	question := query[12 : i+5]

	s.mu.Lock()
	addrs, known := s.names[strings.ToLower(strings.Join(labels, "."))]
	s.mu.Unlock()
	var answers []byte
	var count uint16
	for _, text := range addrs {
		a := netip.MustParseAddr(text)
		if (kind == 1) != a.Is4() || (kind != 1 && kind != 28) {
			continue
		}
		data := a.AsSlice()
		answers = append(answers, 0xc0, 12) // the name of the question
		answers = binary.BigEndian.AppendUint16(answers, kind)
		answers = append(answers, 0, 1, 0, 0, 0, 0) // class IN, TTL 0
		answers = binary.BigEndian.AppendUint16(answers, uint16(len(data)))
		answers = append(answers, data...)
		count++
	}
	flags := uint16(0x8180) // response, recursion available
	if !known {
		flags |= 3 // no such name
	}
	reply := append([]byte{}, query[:2]...)
	reply = binary.BigEndian.AppendUint16(reply, flags)
	reply = append(reply, 0, 1)
	reply = binary.BigEndian.AppendUint16(reply, count)
	reply = append(reply, 0, 0, 0, 0)
	return append(append(reply, question...), answers...)
}
