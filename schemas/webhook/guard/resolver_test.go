package guard_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/navlog/navlog/schemas/webhook/guard"
)

// Spellings that libc's resolver reads as 127.0.0.1 or 0.0.0.0, and Go's own as names that do
// not exist.
var spellings = strings.Fields(`2130706433 0x7f000001 017700000001 127.1 0177.0.0.1 0x7f.0.0.1 0`)

// TestEitherResolver uses Go's resolver and the system's, which is libc's with cgo (make race)
// and Go's without. With neither can such a spelling be registered, and if one reaches the
// dialer, no connection is made.
func TestEitherResolver(t *testing.T) {
	receiver, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer receiver.Close()
	_, port, err := net.SplitHostPort(receiver.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for name, resolver := range map[string]*net.Resolver{"go": {PreferGo: true}, "system": {PreferGo: false}} {
		g := newGuard(t, guard.Config{Resolver: resolver})
		for _, host := range spellings {
			if _, err := g.CheckURL(t.Context(), "https://"+host+"/"); reason(err) != guard.Syntax {
				t.Errorf("%s resolver, %s: %v", name, host, err)
			}
		}
		for _, addr := range forbidden {
			if _, err := g.CheckURL(t.Context(), "https://"+literal(addr)+"/"); reason(err) != guard.ForbiddenAddress {
				t.Errorf("%s resolver, %s: %v", name, addr, err)
			}
		}
		for _, host := range append(spellings, "localhost", "127.0.0.1", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::") {
			conn, err := g.Dialer().DialContext(t.Context(), "tcp", net.JoinHostPort(host, port))
			if err == nil {
				conn.Close()
				t.Errorf("%s resolver: connected to %s", name, host)
				continue
			}
			var none *net.DNSError
			if r := reason(err); r != guard.ForbiddenAddress && !errors.As(err, &none) {
				t.Errorf("%s resolver, %s: %v", name, host, err)
			}
		}
	}
}
