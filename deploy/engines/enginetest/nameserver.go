package enginetest

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
)

// Names is a DNS server. It answers every A and AAAA query over UDP from a script: with addresses, or with none for a
// name that does not exist, and after a scripted delay.
type Names struct {
	conn net.PacketConn

	mu      sync.Mutex
	asked   int
	answers func(n int, name string) (addrs []string, wait <-chan struct{})
}

// NameServer starts a server that knows no name, and stops it at the end of the test.
func NameServer(t testing.TB) *Names {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Names{conn: conn}
	s.Say()
	t.Cleanup(s.Close)
	go s.serve()
	return s
}

// Addr is the server's UDP address.
func (s *Names) Addr() string { return s.conn.LocalAddr().String() }

// Resolver returns a resolver that uses only this server.
func (s *Names) Resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", s.Addr())
	}}
}

// Close stops the server: nothing listens at Addr any more.
func (s *Names) Close() { s.conn.Close() }

// Script sets how the server answers the n-th query from now on, counting from 1: with these addresses, once wait is
// closed (nil: at once).
func (s *Names) Script(answers func(n int) ([]string, <-chan struct{})) {
	s.script(func(n int, _ string) ([]string, <-chan struct{}) { return answers(n) })
}

func (s *Names) script(answers func(n int, name string) ([]string, <-chan struct{})) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.answers = 0, answers
}

// Know makes the server answer for these names only. A name without addresses exists.
func (s *Names) Know(names map[string][]string) {
	s.script(func(_ int, name string) ([]string, <-chan struct{}) { return names[name], nil })
}

// Say makes the server answer with these addresses; without any, the name does not exist.
func (s *Names) Say(addrs ...string) {
	s.Script(func(int) ([]string, <-chan struct{}) { return addrs, nil })
}

func (s *Names) serve() {
	for {
		b := make([]byte, 1500)
		n, from, err := s.conn.ReadFrom(b)
		if err != nil {
			return
		}
		go s.answer(b[:n], from)
	}
}

// answer replies to a query with one question (RFC 1035, section 4). Each A and each AAAA query counts.
func (s *Names) answer(query []byte, from net.Addr) {
	end, labels := 12, []string{}
	for query[end] != 0 {
		next := end + 1 + int(query[end])
		labels, end = append(labels, string(query[end+1:next])), next
	}
	kind, question := binary.BigEndian.Uint16(query[end+1:]), query[12:end+5]
	s.mu.Lock()
	s.asked++
	addrs, wait := s.answers(s.asked, strings.Join(labels, "."))
	s.mu.Unlock()
	if wait != nil {
		<-wait
	}
	flags, count, answers := uint16(0x8180), uint16(0), []byte{}
	if addrs == nil {
		flags |= 3 // NXDOMAIN
	}
	for _, text := range addrs {
		a := netip.MustParseAddr(text)
		if a.Is4() != (kind == 1) {
			continue
		}
		answers = append(answers, 0xc0, 12) // pointer to the name in the question
		answers = binary.BigEndian.AppendUint16(answers, kind)
		answers = append(answers, 0, 1, 0, 0, 0, 0) // class IN, TTL 0
		answers = binary.BigEndian.AppendUint16(answers, uint16(len(a.AsSlice())))
		answers = append(answers, a.AsSlice()...)
		count++
	}
	reply := binary.BigEndian.AppendUint16(append([]byte{}, query[:2]...), flags)
	for _, n := range []uint16{1, count, 0, 0} {
		reply = binary.BigEndian.AppendUint16(reply, n)
	}
	_, _ = s.conn.WriteTo(append(append(reply, question...), answers...), from)
}
