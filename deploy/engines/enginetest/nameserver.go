package enginetest

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
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
	s.SetAddrs()
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

// SetNames makes the server answer for these names only. A name without addresses exists.
func (s *Names) SetNames(names map[string][]string) {
	s.script(func(_ int, name string) ([]string, <-chan struct{}) { return names[name], nil })
}

// SetAddrs makes the server answer with these addresses; without any, the name does not exist.
func (s *Names) SetAddrs(addrs ...string) {
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

// answer replies to a query with one question. Each A and each AAAA query counts.
func (s *Names) answer(query []byte, from net.Addr) {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil || len(m.Questions) != 1 {
		return // the client times out
	}
	q := m.Questions[0]
	s.mu.Lock()
	s.asked++
	addrs, wait := s.answers(s.asked, strings.TrimSuffix(q.Name.String(), "."))
	s.mu.Unlock()
	if wait != nil {
		<-wait
	}
	reply := dnsmessage.Message{Questions: m.Questions,
		Header: dnsmessage.Header{ID: m.ID, Response: true, RecursionDesired: true, RecursionAvailable: true}}
	if addrs == nil {
		reply.RCode = dnsmessage.RCodeNameError
	}
	for _, text := range addrs {
		record := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET}}
		a := netip.MustParseAddr(text)
		switch {
		case a.Is4() != (q.Type == dnsmessage.TypeA):
			continue
		case a.Is4():
			record.Body = &dnsmessage.AResource{A: a.As4()}
		default:
			record.Body = &dnsmessage.AAAAResource{AAAA: a.As16()}
		}
		reply.Answers = append(reply.Answers, record)
	}
	if packed, err := reply.Pack(); err == nil {
		_, _ = s.conn.WriteTo(packed, from)
	}
}
