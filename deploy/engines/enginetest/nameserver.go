package enginetest

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"sync"
	"testing"
)

// Names is a name server. It answers every A and AAAA question over UDP from a script: the
// addresses, or none for a name that does not exist, and how long it takes.
type Names struct {
	conn net.PacketConn

	mu      sync.Mutex
	asked   int
	answers func(n int) (addrs []string, wait <-chan struct{})
}

// NameServer starts one that knows no name; the test's end ends it.
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

// Addr is where it is asked, over UDP.
func (s *Names) Addr() string { return s.conn.LocalAddr().String() }

// Resolver asks it, and nobody else.
func (s *Names) Resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", s.Addr())
	}}
}

// Close makes nobody listen at Addr any more.
func (s *Names) Close() { s.conn.Close() }

// Script makes it answer the n-th question from now on, from 1, with these addresses,
// when wait is closed; nil: at once.
func (s *Names) Script(answers func(n int) ([]string, <-chan struct{})) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.answers = 0, answers
}

// Say makes it answer with these addresses; without any there is no such name.
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

// answer replies to a query with one question (RFC 1035, section 4). Each A and
// each AAAA question counts.
func (s *Names) answer(query []byte, from net.Addr) {
	end := 12
	for query[end] != 0 {
		end += 1 + int(query[end])
	}
	kind, question := binary.BigEndian.Uint16(query[end+1:]), query[12:end+5]
	s.mu.Lock()
	s.asked++
	addrs, wait := s.answers(s.asked)
	s.mu.Unlock()
	if wait != nil {
		<-wait
	}
	flags, count, answers := uint16(0x8180), uint16(0), []byte{}
	if len(addrs) == 0 {
		flags |= 3 // no such name
	}
	for _, text := range addrs {
		a := netip.MustParseAddr(text)
		if a.Is4() != (kind == 1) {
			continue
		}
		answers = append(answers, 0xc0, 12) // the name of the question
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
