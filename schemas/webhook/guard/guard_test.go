package guard_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

// Addresses that no webhook may reach, from the IANA special-purpose
// registries, the transition mechanisms that embed IPv4, and the clouds'
// metadata services.
var forbidden = strings.Fields(`
	0.0.0.0 0.1.2.3 10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 127.0.0.1 127.255.255.254
	100.64.0.1 100.127.255.255 100.100.100.200 169.254.169.254 169.254.170.2 168.63.129.16
	192.0.0.1 192.0.0.192 192.0.2.1 198.51.100.1 203.0.113.1 198.18.0.1 198.19.255.255 192.88.99.1
	192.31.196.1 192.52.193.1 192.175.48.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
	:: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:100.64.0.1 ::ffff:0.0.0.0 ::ffff:168.63.129.16
	::ffff:0:7f00:1 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b::808:808 64:ff9b:1::a00:1 64:ff9c::1 100::1
	2001::1 2001:0:7f00:1:: 2001:2::1 2001:db8::1 2002:7f00:1::1 3fff::1 5f00::1 fc00::1 fd00:ec2::23 fd00:ec2::254
	fe80::1 fec0::1 ff02::1 2620:4f:8000::1 4000::1 e000::1
`)

var public = strings.Fields(`
	8.8.8.8 1.1.1.1 100.63.255.254 100.128.0.1 172.15.255.255 172.32.0.1 168.63.129.15 168.63.129.17 223.255.255.255
	2606:4700:4700::1111 2001:4860:4860::8888 2a00:1450:4001:80b::200e
`)

func newGuard(t *testing.T, c guard.Config) *guard.Guard {
	t.Helper()
	g, err := guard.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func reason(err error) string {
	var r *guard.Refusal
	if errors.As(err, &r) {
		return r.Reason
	}
	if err != nil {
		return "not a refusal: " + err.Error()
	}
	return ""
}

func literal(addr string) string {
	if strings.Contains(addr, ":") {
		return "[" + addr + "]"
	}
	return addr
}

func network(addr string) string {
	if netip.MustParseAddr(addr).Is4() {
		return "tcp4"
	}
	return "tcp6"
}

// Every address is checked in the three places where it can appear: in the URL, in the response of a name server, and
// at the connection, also of a name that was public when it was registered.
func TestForbiddenAddresses(t *testing.T) {
	names := enginetest.NameServer(t)
	g := newGuard(t, guard.Config{Resolver: names.Resolver()})
	for _, addr := range forbidden {
		if _, err := g.CheckURL(t.Context(), "https://"+literal(addr)+"/hook"); reason(err) != guard.ForbiddenAddress {
			t.Errorf("URL with %s: %q", addr, reason(err))
		}
		names.SetAddrs(addr)
		if _, err := g.CheckURL(t.Context(), "https://partner.example/hook"); reason(err) != guard.ForbiddenAddress {
			t.Errorf("name with %s: %q", addr, reason(err))
		}
		if _, err := g.Dialer().DialContext(t.Context(), "tcp",
			"partner.example:443"); reason(err) != guard.ForbiddenAddress {
			t.Errorf("dial of a name that is now %s: %v", addr, err)
		}
		names.SetAddrs("8.8.8.8", "2606:4700:4700::1111", addr)
		if _, err := g.CheckURL(t.Context(), "https://partner.example/hook"); reason(err) != guard.ForbiddenAddress {
			t.Errorf("mixed response with %s: %q", addr, reason(err))
		}
		if err := g.Control(t.Context(), network(addr), net.JoinHostPort(addr, "443"),
			nil); reason(err) != guard.ForbiddenAddress {
			t.Errorf("connection to %s: %q", addr, reason(err))
		}
	}
}

func TestPublicAddresses(t *testing.T) {
	names := enginetest.NameServer(t)
	g := newGuard(t, guard.Config{Resolver: names.Resolver()})
	for _, addr := range public {
		want := "https://" + literal(addr) + "/hook"
		if got, err := g.CheckURL(t.Context(), want); got != want {
			t.Errorf("URL with %s: %q, %v", addr, got, err)
		}
		names.SetAddrs(addr)
		if _, err := g.CheckURL(t.Context(), "https://partner.example/hook"); err != nil {
			t.Errorf("name with %s: %v", addr, err)
		}
		if err := g.Control(t.Context(), network(addr), net.JoinHostPort(addr, "443"), nil); err != nil {
			t.Errorf("connection to %s: %v", addr, err)
		}
		if err := g.Control(t.Context(), network(addr), net.JoinHostPort(addr, "80"), nil); reason(err) != guard.Port {
			t.Errorf("connection to %s port 80: %q", addr, reason(err))
		}
	}
}

func TestURLs(t *testing.T) {
	long := strings.Repeat("a", 63)
	longest := strings.Repeat(long+".", 3) + strings.Repeat("b", 253-3*64-len(".example")) + ".example"
	names, public := enginetest.NameServer(t), []string{"8.8.8.8"}
	names.SetNames(map[string][]string{
		"partner.example": public, "xn--bcher-kva.example": public, "a_b.partner.example": public, longest: public,
		"empty.example": {},
	})
	g := newGuard(t, guard.Config{Resolver: names.Resolver()})
	for _, c := range []struct{ url, want, reason string }{
		{"https://partner.example/hook?key=%41#", "", guard.Syntax},
		{"https://partner.example/hook?a=b c&ü=%41", "https://partner.example/hook?a=b%20c&%C3%BC=%41", ""},
		{"https://partner.example/? HTTP/1.0", "https://partner.example/?%20HTTP/1.0", ""},
		{"https://partner.example/hook#part", "", guard.Syntax},
		{"https://partner.example", "https://partner.example", ""},
		{" \t\r\nhttps://partner.example/hook\u00a0\u3000 \n", "https://partner.example/hook", ""},
		{"https://partner.example/hook?a=b ", "https://partner.example/hook?a=b", ""},
		{"https://partner.example/hook\u200b", "", guard.Syntax},
		{"\ufeffhttps://partner.example/hook", "", guard.Syntax},
		{"https://partner.example/a\u202eb", "", guard.Syntax},
		{"https://partner.example/a\u00a0b", "", guard.Syntax},
		{"https://partner.example/?a\tb", "", guard.Syntax},
		{"https://partner.example/\xff", "", guard.Syntax},
		{"  ", "", guard.Scheme},
		{"HTTPS://Partner.EXAMPLE./Hook?k=V", "https://partner.example/Hook?k=V", ""},
		{"https://partner.example:443/", "https://partner.example/", ""},
		{"https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/", ""},
		{"https://a_b.partner.example/", "https://a_b.partner.example/", ""},
		{"https://[2606:4700:4700::ABCD]/", "https://[2606:4700:4700::abcd]/", ""},

		{"http://partner.example/", "", guard.Scheme},
		{"partner.example/hook", "", guard.Scheme},
		{"//partner.example/hook", "", guard.Scheme},
		{"ftp://partner.example/", "", guard.Scheme},
		{"javascript:alert(1)", "", guard.Scheme},
		{"", "", guard.Scheme},

		{"https://user:password@partner.example/", "", guard.Credentials},
		{"https://1.2.3.4@127.0.0.1/", "", guard.Credentials},
		{"https://@partner.example/", "", guard.Credentials},

		{"https://partner.example:8443/", "", guard.Port},
		{"https://partner.example:80/", "", guard.Port},
		{"https://partner.example:0/", "", guard.Port},
		{"https://partner.example:0443/", "", guard.Port},
		{"https://partner.example:65979/", "", guard.Port},
		{"https://partner.example:/", "", guard.Port},

		{"https://nowhere.example/", "", guard.Unresolvable},
		{"https://empty.example/", "", guard.Unresolvable},

		{"https:///hook", "", guard.Syntax},
		{"https:partner.example", "", guard.Syntax},
		{"https://partner.example/" + strings.Repeat("x", 2048-24), "https://partner.example/" + strings.Repeat("x", 2048-24),
			""},
		{"https://partner.example/" + strings.Repeat("x", 2048-23), "", guard.Syntax},
		{"https://partner.example/" + strings.Repeat("é", 337) + "xx",
			"https://partner.example/" + strings.Repeat("%C3%A9", 337) + "xx", ""},
		{"https://partner.example/" + strings.Repeat("é", 338), "", guard.Syntax},
		{"https://partner.example/?À", "https://partner.example/?%C3%80", ""},
		{"https://" + longest + "/", "https://" + longest + "/", ""},
		{"https://a" + long + ".example/", "", guard.Syntax},
		{"https://b" + longest[:len(longest)-1] + "e/", "", guard.Syntax},
		{"https://" + strings.Repeat(long+".", 4) + "example/", "", guard.Syntax},
		{"https://partner.example/\x00", "", guard.Syntax},
		{"https://partner.example /", "", guard.Syntax},
		{"https://partner.example\\@127.0.0.1/", "", guard.Syntax},
		{"https://partner!.example/", "", guard.Syntax},
		{"https://-partner.example/", "", guard.Syntax},
		{"https://partner-.example/", "", guard.Syntax},
		{"https://partner..example/", "", guard.Syntax},
		{"https://bücher.example/", "", guard.Syntax},

		// Spellings of 127.0.0.1 and similar addresses that some resolver understands.
		{"https://localhost/", "", guard.Syntax},
		{"https://localhost./", "", guard.Syntax},
		{"https://2130706433/", "", guard.Syntax},
		{"https://0x7f000001/", "", guard.Syntax},
		{"https://017700000001/", "", guard.Syntax},
		{"https://127.1/", "", guard.Syntax},
		{"https://0177.0.0.1/", "", guard.Syntax},
		{"https://0x7f.0.0.1/", "", guard.Syntax},
		{"https://127.0.0.0x1/", "", guard.Syntax},
		{"https://127.0.0.01/", "", guard.Syntax},
		{"https://0/", "", guard.Syntax},
		{"https://127.0.0.1./", "", guard.Syntax},
		{"https://127.0.0.1.:443/", "", guard.Syntax},
		{"https://127.0.0.1:443:80/", "", guard.Syntax},
		{"https://127.0.0.1%00.example.com/", "", guard.Syntax},
		{"https://%31%32%37.0.0.1/", "", guard.Syntax},
		{"https://[::1%25lo]/", "", guard.Syntax},
		{"https://[fe80::1%25eth0]/", "", guard.Syntax},
		{"https://[::ffff:127.0.0.1]/", "", guard.ForbiddenAddress},
		{"https://[0:0:0:0:0:ffff:7f00:1]/", "", guard.Syntax},
		{"https://[127.0.0.1]/", "", guard.Syntax},
		{"https://[partner.example]/", "", guard.Syntax},
		{"https://::1/", "", guard.Syntax},
		{"https://[::]/", "", guard.ForbiddenAddress},
		{"https://１２７.０.０.１/", "", guard.Syntax},
		{"https://①②⑦.⓪.⓪.①/", "", guard.Syntax},
		{"https://127。0。0。1/", "", guard.Syntax},
	} {
		got, err := g.CheckURL(t.Context(), c.url)
		if got != c.want || reason(err) != c.reason {
			t.Errorf("%q: %q, %q (%v); want %q, %q", c.url, got, reason(err), err, c.want, c.reason)
		}
		if err != nil && strings.Contains(err.Error(), "password@") {
			t.Errorf("the refusal of %q repeats the password: %v", c.url, err)
		}
		// Without a look-up the form is the same; rejections then do not depend on the address or the port.
		lookedUp := c.reason == guard.Unresolvable || c.reason == guard.ForbiddenAddress
		if text, err := guard.Canonical(c.url); c.want != "" && text != c.want || c.want == "" && err == nil && !lookedUp &&
			c.reason != guard.Port {
			t.Errorf("%q without a look-up: %q, %v; want %q", c.url, text, err, c.want)
		}
	}
}

// Addresses that navlog's resolver returns are not shown to the partner; an address that the partner wrote is.
func TestRefusalsHideResolvedAddresses(t *testing.T) {
	names := enginetest.NameServer(t)
	names.SetAddrs("8.8.8.8", "10.1.2.3")
	g := newGuard(t, guard.Config{Resolver: names.Resolver()})
	_, registered := g.CheckURL(t.Context(), "https://vault.example/")
	names.SetAddrs("10.1.2.3")
	_, dialled := g.Dialer().DialContext(t.Context(), "tcp", "vault.example:443")
	for what, err := range map[string]error{"registered": registered, "dialled": dialled} {
		var refusal *guard.Refusal
		if !errors.As(err, &refusal) || refusal.Error() != guard.NotPublic("vault.example") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if dialled == nil || !strings.Contains(dialled.Error(), "10.1.2.3") {
		t.Errorf("the operator's log does not name the address: %v", dialled)
	}
	if _, err := g.CheckURL(t.Context(), "https://10.1.2.3/"); err == nil || !strings.Contains(err.Error(), "10.1.2.3") {
		t.Errorf("the partner's own address: %v", err)
	}
}

// A name is resolved as an absolute name, never within a domain of this machine's search list.
func TestNamesAreAbsolute(t *testing.T) {
	names := enginetest.NameServer(t)
	for _, host := range []string{"nowhere.example", "nowhere.example."} {
		_, err := newGuard(t, guard.Config{Resolver: names.Resolver()}).Dialer().DialContext(t.Context(), "tcp", host+":443")
		var lookup *net.DNSError
		if !errors.As(err, &lookup) || lookup.Name != "nowhere.example." {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestControlRejectsOtherProtocols(t *testing.T) {
	g := newGuard(t, guard.Config{})
	for _, c := range [][2]string{{"udp4", "8.8.8.8:443"}, {"unix", "/run/docker.sock"}, {"tcp4", "partner.example:443"},
		{"tcp6", "[2606:4700::1%lo]:443"}, {"tcp4", ""}} {
		if err := g.Control(t.Context(), c[0], c[1], nil); reason(err) != guard.ForbiddenAddress {
			t.Errorf("%v: %v", c, err)
		}
	}
}

func TestAllowNetworks(t *testing.T) {
	names := enginetest.NameServer(t)
	names.SetNames(map[string][]string{
		"dev.example": {"127.0.0.1", "127.0.0.2"}, "mixed.example": {"127.0.0.1", "8.8.8.8"}, "partner.example": {"8.8.8.8"},
	})
	g := newGuard(t, guard.Config{AllowNetworks: []string{"127.0.0.0/8"}, Resolver: names.Resolver()})
	for url, want := range map[string]string{
		"https://127.0.0.1:8443/":         "",
		"https://dev.example:8443/":       "",
		"https://dev.example/":            "",
		"https://partner.example/":        "",
		"https://mixed.example/":          "",
		"https://mixed.example:8443/":     guard.Port,
		"https://partner.example:8443/":   guard.Port,
		"https://10.0.0.1/":               guard.ForbiddenAddress,
		"https://[::1]/":                  guard.ForbiddenAddress,
		"https://[::ffff:127.0.0.1]:444/": guard.ForbiddenAddress,
		"http://127.0.0.1/":               guard.Scheme,
	} {
		if _, err := g.CheckURL(t.Context(), url); reason(err) != want {
			t.Errorf("%s: %q, want %q", url, reason(err), want)
		}
	}
	if err := g.Control(t.Context(), "tcp4", "127.0.0.1:8443", nil); err != nil {
		t.Error(err)
	}
	if err := g.Control(t.Context(), "tcp4", "127.0.0.1:53", nil); err != nil {
		t.Error(err)
	}
}

func TestAllowNetworksMistakes(t *testing.T) {
	err := guard.Config{AllowNetworks: []string{"127.0.0.1", "0.0.0.0/0", "::/0", "10.0.0.0/8"}}.Validate()
	if err == nil || strings.Count(err.Error(), "guard.allowNetworks") != 3 {
		t.Fatalf("want three mistakes: %v", err)
	}
	if _, err := guard.New(guard.Config{AllowNetworks: []string{"x"}}); err == nil {
		t.Fatal("an invalid network is accepted")
	}
	if err := (guard.Config{}).Validate(); err != nil {
		t.Fatal(err)
	}
}

func TestCanceledCheckIsNotARefusal(t *testing.T) {
	names := enginetest.NameServer(t)
	g := newGuard(t, guard.Config{Resolver: names.Resolver()})
	ctx, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	if _, err := g.CheckURL(ctx, "https://partner.example/"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("want the context's error: %v", err)
	}
}
