// Package guard keeps webhooks away from addresses that partners must not reach: loopback,
// private and link-local networks, cloud metadata, and everything else that is not public
// internet.
//
// A URL is checked twice. CheckURL checks it when a partner registers it, without sending a
// request: the host must follow a closed grammar, so that no resolver can read it
// differently, and every current address of the name must be public. Control checks each
// connection again, by the address that is about to be dialled. This catches names that have
// changed since, responses that mix public and private addresses, and spellings that a
// resolver reads differently.
//
//	POST webhooks ──▶ CheckURL ──▶ endpoint.url ──▶ Dialer: resolve ──▶ Control ──▶ connect
//	                  (grammar, all addresses)                        (each address)
package guard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"code.dny.dev/ssrf"

	"github.com/navlog/navlog/schemas/input"
)

// Reasons of a Refusal, as shown to partners.
const (
	Scheme           = "scheme"            // not https
	Syntax           = "syntax"            // not a URL that navlog can call
	Unresolvable     = "unresolvable"      // the name has no address
	ForbiddenAddress = "forbidden_address" // an address is not public
	Credentials      = "credentials"       // user info in the URL
	Port             = "port"              // a port other than 443
)

// Refusal is the reason why a URL or a connection is not allowed. It never contains the URL, which may hold a secret.
type Refusal struct {
	Reason string
	text   string
}

func (r *Refusal) Error() string { return r.text }

func refuse(reason, format string, args ...any) error {
	return &Refusal{reason, fmt.Sprintf(format, args...)}
}

const (
	httpsPort      = 443
	maxURL         = 2048 // characters, both as given and in its canonical form
	resolveTimeout = 5 * time.Second
)

// deniedToo are public addresses with another meaning inside a cloud: at this one Azure's wire server serves virtual
// machines.
var deniedToo = []netip.Prefix{netip.MustParsePrefix("168.63.129.16/32")}

// Config loosens the guard for development. The zero value allows public addresses only.
type Config struct {
	// AllowNetworks are CIDRs, such as 127.0.0.0/8, exempt from the rules about
	// addresses and ports; default none. Leave it empty in production.
	AllowNetworks []string `yaml:"allowNetworks" env:"ALLOW_NETWORKS"`
	// Resolver is only for tests; nil is Go's own resolver, which unlike libc's never reads
	// 2130706433 or 0x7f.1 as an address.
	Resolver *net.Resolver `yaml:"-" env:"-"`
}

// Validate returns every problem at once.
func (c Config) Validate() error {
	_, err := c.networks()
	return err
}

func (c Config) networks() ([]netip.Prefix, error) {
	var networks []netip.Prefix
	var faults []error
	for _, text := range c.AllowNetworks {
		p, err := netip.ParsePrefix(text)
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("guard.allowNetworks: %q is not a network such as 127.0.0.0/8", text))
		case p.Bits() == 0:
			faults = append(
				faults, fmt.Errorf("guard.allowNetworks: %q would allow every address: name the networks of your receivers", text),
			)
		default:
			networks = append(networks, p.Masked())
		}
	}
	return networks, errors.Join(faults...)
}

// Guard decides which URLs and connections are allowed. It is safe for concurrent use.
type Guard struct {
	allowed  []netip.Prefix
	public   *ssrf.Guardian
	resolver *net.Resolver
}

// New returns a guard. It fails if Validate does.
func New(c Config) (*Guard, error) {
	allowed, err := c.networks()
	if err != nil {
		return nil, err
	}
	resolver := c.Resolver
	if resolver == nil {
		resolver = &net.Resolver{PreferGo: true}
	}
	public := ssrf.New(ssrf.WithPorts(httpsPort), ssrf.WithDeniedV4Prefixes(deniedToo...))
	return &Guard{allowed, public, resolver}, nil
}

// CheckURL checks a URL that a partner wants to register and returns its canonical form,
// without white space at its ends, with a lower-case host and without the default port. It
// resolves the host within 5 s and sends no request. The error is a *Refusal, or ctx's error.
func (g *Guard) CheckURL(ctx context.Context, rawURL string) (string, error) {
	u, host, port, err := parse(rawURL)
	if err != nil {
		return "", err
	}
	if port != httpsPort && len(g.allowed) == 0 {
		return "", refuse(Port, "the URL names port %d, but only 443 is allowed", port)
	}
	addrs, err := g.resolve(ctx, host)
	if err != nil {
		return "", err
	}
	for _, a := range addrs {
		if err := g.checkAddress(netip.AddrPortFrom(a, port)); err != nil {
			return "", withoutAddress(host, err)
		}
	}
	return canonical(u, host, port)
}

// Canonical returns the form in which CheckURL returns a URL, without looking its host up. The error is a *Refusal.
func Canonical(rawURL string) (string, error) {
	u, host, port, err := parse(rawURL)
	if err != nil {
		return "", err
	}
	return canonical(u, host, port)
}

func canonical(u *url.URL, host string, port uint16) (string, error) {
	u.Host = host
	if strings.Contains(host, ":") {
		u.Host = "[" + host + "]"
	}
	if port != httpsPort {
		u.Host += ":" + strconv.Itoa(int(port))
	}
	u.RawQuery = escaped(u.RawQuery)
	text := u.String()
	if len(text) > maxURL {
		return "", refuse(
			Syntax, "the URL has %d characters after escaping those outside ASCII, and at most %d are allowed", len(text),
			maxURL,
		)
	}
	return text, nil
}

// Control is a net.Dialer.ControlContext that checks the address about to be connected to.
func (g *Guard) Control(_ context.Context, network, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil || (network != "tcp4" && network != "tcp6") {
		return refuse(ForbiddenAddress, "connections over %s to %s are not allowed", network, address)
	}
	return g.checkAddress(netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()))
}

// Dialer returns a dialer that uses the guard's resolver and checks every connection with
// Control.
func (g *Guard) Dialer() *Dialer {
	return &Dialer{net.Dialer{Resolver: g.resolver, ControlContext: g.Control}}
}

// Dialer connects only to addresses that a Guard allows.
type Dialer struct{ dialer net.Dialer }

// DialContext is like that of net.Dialer. The text of a *Refusal in its error is for partners; the whole error, which
// may contain an internal address, is for the operator.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	conn, err := d.dialer.DialContext(ctx, network, net.JoinHostPort(withRootDot(host), port))
	if outward := withoutAddress(host, err); outward != err {
		return nil, fmt.Errorf("%w: %w", outward, err)
	}
	return conn, err
}

// withRootDot appends the root's dot to a name, so that no search list of this machine changes
// the name.
func withRootDot(host string) string {
	if isLiteral(host) || strings.HasSuffix(host, ".") {
		return host
	}
	return host + "."
}

// NotPublic returns what a partner reads about a name that has no address, and about one that has an address that is
// not public. It is the same: navlog's resolver may know names that the partner cannot look up, and the partner, whose
// own name may be an alias of any other, could find out which exist.
func NotPublic(host string) string {
	return "the name " + host + " must resolve, and only to public addresses"
}

// withoutAddress removes the address from a refusal if it belongs to a name (NotPublic).
func withoutAddress(host string, err error) error {
	var refusal *Refusal
	if isLiteral(host) || !errors.As(err, &refusal) || refusal.Reason != ForbiddenAddress {
		return err
	}
	return refuse(ForbiddenAddress, "%s", NotPublic(host))
}

func isLiteral(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// checkAddress checks one address. An address with a zone is always rejected, because a zone names an interface of this
// machine.
func (g *Guard) checkAddress(ap netip.AddrPort) error {
	addr := ap.Addr()
	if addr.Zone() != "" {
		return refuse(ForbiddenAddress, "address %s has a zone: it is not public", addr)
	}
	for _, n := range g.allowed {
		if n.Contains(addr) {
			return nil
		}
	}
	if g.public.SafeAddr(addr) != nil {
		return refuse(ForbiddenAddress, "address %s is not a public one", addr)
	}
	if g.public.SafeAddrPort(ap) != nil {
		return refuse(Port, "port %d is not allowed: use 443", ap.Port())
	}
	return nil
}

// resolve returns the addresses of a host, at least one. An IPv4-mapped literal stays as it is, and judge rejects it;
// in a resolver's response it becomes the IPv4 address that would be dialled.
func (g *Guard) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	lookup, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	addrs, err := g.resolver.LookupNetIP(lookup, "ip", withRootDot(host))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil || len(addrs) == 0 {
		return nil, refuse(Unresolvable, "host %s has no address", host)
	}
	for i, a := range addrs {
		addrs[i] = a.Unmap()
	}
	return addrs, nil
}

// escaped percent-encodes the spaces and the non-ASCII characters of a query, as url does for a path: net/http would
// send them as they are, and servers reject such a request.
func escaped(query string) string {
	var b strings.Builder
	for _, c := range []byte(query) {
		if c == ' ' || c >= utf8.RuneSelf {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// parse splits a URL that uses https, has no user info and no fragment, and whose host follows
// the closed grammar.
func parse(rawURL string) (u *url.URL, host string, port uint16, err error) {
	rawURL, err = input.Text(rawURL)
	if err != nil {
		return nil, "", 0, refuse(Syntax, "the URL %v", err)
	}
	if n := utf8.RuneCountInString(rawURL); n > maxURL {
		return nil, "", 0, refuse(Syntax, "the URL has %d characters, and at most %d are allowed", n, maxURL)
	}
	u, err = url.Parse(rawURL)
	if err != nil {
		return nil, "", 0, refuse(Syntax, "the URL cannot be parsed")
	}
	switch {
	case u.Scheme != "https":
		return nil, "", 0, refuse(Scheme, "the URL must begin with https://")
	case u.User != nil:
		return nil, "", 0, refuse(Credentials, "the URL must not contain a user name or password")
	case strings.Contains(rawURL, "#"):
		return nil, "", 0, refuse(Syntax, "the URL must not have a fragment")
	}
	if host = canonicalHost(u.Host, u.Hostname()); host == "" {
		return nil, "", 0, refuse(
			Syntax, "the URL's host must be a domain name in ASCII (punycode for others) or an IP address in its usual form",
		)
	}
	port = httpsPort
	if text := u.Port(); text != "" {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 || text[0] == '0' {
			return nil, "", 0, refuse(Port, "the URL's port is not a number from 1 to 65535")
		}
		port = uint16(n)
	} else if strings.HasSuffix(u.Host, ":") {
		return nil, "", 0, refuse(Port, "the URL's port is empty")
	}
	return u, host, port, nil
}

// canonicalHost returns the host in lower case, without brackets and root dot, or "" if it
// is outside the grammar. hostPort distinguishes [::1] from ::1.
func canonicalHost(hostPort, host string) string {
	host = strings.ToLower(host)
	bracketed := strings.HasPrefix(hostPort, "[")
	if a, err := netip.ParseAddr(host); err == nil {
		if a.Zone() != "" || a.String() != host || bracketed != a.Is6() {
			return ""
		}
		return host
	}
	host = strings.TrimSuffix(host, ".")
	if bracketed || !isDomain(host) {
		return ""
	}
	return host
}

// isDomain checks the grammar of names: at least two labels of letters, digits, - and _, and a
// last label that cannot be mistaken for a number.
func isDomain(name string) bool {
	labels := strings.Split(name, ".")
	if len(name) > 253 || len(labels) < 2 {
		return false
	}
	for _, l := range labels {
		if len(l) == 0 || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' {
			return false
		}
		if strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	last := labels[len(labels)-1]
	return strings.Trim(last, "0123456789") != "" && !strings.HasPrefix(last, "0x")
}
