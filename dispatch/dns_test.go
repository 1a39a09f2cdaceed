package dispatch

import (
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/webhook/guard"
)

// In these tests 127.0.0.1 and 127.0.0.3 stand for public addresses, all other addresses for
// themselves. The receivers' certificate is valid for the name.
const (
	testName     = "example.com"
	publicAddr   = "127.0.0.1"
	movedAddr    = "127.0.0.3"
	internalAddr = "127.0.0.2"
	proxyAddr    = "127.0.0.4" // which the guard would allow
)

// at starts a receiver on an address, with the port of another receiver if one is given.
func (f *fixture) at(addr string, beside *receiver) *receiver {
	f.Helper()
	port := "0"
	if beside != nil {
		port = beside.port()
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(addr, port))
	f.check(err)
	return f.receiverWith(ok, func(s *httptest.Server) {
		s.Listener.Close()
		s.Listener = listener
	})
}

func (r *receiver) port() string {
	_, port, _ := net.SplitHostPort(r.Listener.Addr().String())
	return port
}

// A receiver's name was public when it was registered, and then resolves to something else
// at every connection: an internal address is never reached, a public one always.
func TestDNSGames(t *testing.T) {
	f := newFixture(t)
	public := f.at(publicAddr, nil)
	moved, internal := f.at(movedAddr, public), f.at(internalAddr, public)
	names := enginetest.NameServer(t)
	names.SetAddrs(publicAddr)
	url := "https://" + testName + ":" + public.port() + "/hook"
	f.partner(7, url)
	g, err := guard.New(guard.Config{
		AllowNetworks: []string{publicAddr + "/32", movedAddr + "/32"}, Resolver: names.Resolver(),
	})
	f.check(err)
	_, err = g.CheckURL(t.Context(), url)
	f.check(err)
	d := f.start(func(d *Dispatch) {
		d.shared.Guard, d.shared.Timing.Retries, d.shared.Timing.Deadline = g, nil, 5*time.Second
	})
	sent := 0
	deliver := func(what, state string, to *receiver) {
		t.Helper()
		before, all := 0, f.states()[state]
		if to != nil {
			before = len(to.got())
		}
		f.deposits(7, sent, sent+1)
		sent++
		f.eventually(what+": "+state, f.in(state, all+1))
		if to != nil && len(to.got()) != before+1 {
			t.Errorf("%s: the receiver was not reached", what)
		}
		if n := len(internal.got()); n != 0 {
			t.Fatalf("%s: the internal address was reached", what)
		}
		// No connection is left for the next one, which has to resolve the name again.
		public.CloseClientConnections()
		moved.CloseClientConnections()
		f.eventually("the connection is closed", func() bool { return public.open.Load() == 0 && moved.open.Load() == 0 })
	}
	deliver("as registered", registry.Delivered, public)
	for _, addr := range []string{internalAddr, "::1", "::ffff:" + internalAddr, "169.254.169.254", "0.0.0.0"} {
		names.SetAddrs(addr)
		deliver("rebound to "+addr, registry.Failed, nil)
	}
	names.SetAddrs(internalAddr, publicAddr)
	deliver("internal, then public", registry.Delivered, public)
	names.SetAddrs(publicAddr, internalAddr)
	deliver("public, then internal", registry.Delivered, public)
	names.SetAddrs(publicAddr, "::1")
	deliver("outside, and ::1 as AAAA", registry.Delivered, public)
	names.Script(func(n int) ([]string, <-chan struct{}) { // another address for each query
		return []string{[]string{publicAddr, internalAddr}[n%2]}, nil
	})
	for range 4 {
		f.deposits(7, sent, sent+1)
		sent++
		f.eventually("flipping: finished", func() bool {
			return f.number("SELECT count(*) FROM delivery WHERE finished_at IS NOT NULL") == int64(sent)
		})
		public.CloseClientConnections()
	}
	names.SetAddrs()
	deliver("no such name", registry.Failed, nil)
	names.SetAddrs(publicAddr)
	deliver("resolvable again", registry.Delivered, public)

	// The name server takes longer than the deadline: the attempt ends at the deadline.
	slow := make(chan struct{})
	names.Script(func(int) ([]string, <-chan struct{}) { return []string{publicAddr}, slow })
	deliver("slow name server", registry.Failed, nil)
	if n := f.number("SELECT count(*) FROM attempt WHERE error = 'no response in time' AND connect_us IS NULL"); n != 1 {
		t.Errorf("%d attempts ended during the name lookup", n)
	}
	close(slow)

	// The partner moves and registers again, while a connection to the old address is open
	// and still works.
	names.SetAddrs(publicAddr)
	all := f.states()[registry.Delivered]
	f.deposits(7, sent, sent+1)
	sent++
	f.eventually("a connection is open",
		func() bool { return public.open.Load() == 1 && f.states()[registry.Delivered] > all })
	f.eventually("finished",
		func() bool { return f.number("SELECT count(*) FROM delivery WHERE finished_at IS NULL") == 0 })
	names.SetAddrs(movedAddr)
	f.setURL(7, url)
	f.readEndpoints(d)
	deliver("moved", registry.Delivered, moved)
	if n := len(internal.got()); n != 0 || internal.accepted.Load() != 0 {
		t.Errorf("%d requests and %d connections to internal addresses", n, internal.accepted.Load())
	}
}

// Spellings of addresses that some resolver takes for an internal one, and addresses that partners may not use, in URLs
// that were never checked. No connection is made, neither to them nor to a proxy in the environment.
func TestHostSpellings(t *testing.T) {
	f := newFixture(t)
	inside, proxy := f.receiver(ok), f.at(proxyAddr, nil)
	hosts := strings.Fields(`2130706433 0x7f000001 017700000001 127.1 0177.0.0.1 0x7f.0.0.1 0 127.0.0.1 127.0.0.1. localhost localhost.
		[::1] [::] [::ffff:127.0.0.1] [0:0:0:0:0:ffff:7f00:1] [::1%25lo] 1.2.3.4@127.0.0.1 １２７.０.０.１ 127。0。0。1 127.0.0.1%00.example.com
		10.0.0.1 100.64.0.1 169.254.169.254 168.63.129.16 192.0.0.192 224.0.0.1 255.255.255.255 0.0.0.0 [64:ff9b::7f00:1] [2002:7f00:1::1]
		[2001:0:7f00:1::] [fd00:ec2::254] [fe80::1] [fec0::1] [ff02::1] [::7f00:1] [4000::1] receiver.invalid`)
	for i, host := range hosts {
		f.partner(int64(i+1), "https://"+host+":"+inside.port()+"/hook")
	}
	for _, resolver := range []string{"go", "cgo"} { // cgo takes effect only in a build with cgo (make race)
		process := f.childWith(func(c *child) { c.Allow, c.Once = []string{proxyAddr + "/32"}, true },
			"GODEBUG=netdns="+resolver, "HTTPS_PROXY=http://"+proxy.Listener.Addr().String(),
			"https_proxy=http://"+proxy.Listener.Addr().String(),
			"ALL_PROXY=http://"+proxy.Listener.Addr().String(), "NO_PROXY=", "no_proxy=")
		for i := range hosts {
			f.deposits(uint32(i+1), i, i+1)
		}
		f.eventually("all have failed", f.in(registry.Failed, len(hosts)))
		f.check(process.Process.Kill())
		_ = process.Wait()
		if n := f.number("SELECT count(*) FROM attempt WHERE status IS NOT NULL"); n != 0 {
			t.Errorf("%s: %d attempts got a response", resolver, n)
		}
		if n := f.number("SELECT count(*) FROM attempt WHERE error LIKE '%is not a public one' OR error LIKE '%is not " +
			"allowed%'"); n < 20 {
			t.Errorf("%s: %d attempts report that the address is not public", resolver, n)
		}
		f.exec("DELETE FROM attempt")
		f.exec("DELETE FROM delivery")
		f.exec("DELETE FROM position")
		f.exec("DELETE FROM stream")
		f.exec("DELETE FROM job_lease WHERE kind = 'partner'")
		f.exec("DELETE FROM breaker")
	}
	if i, p := inside.accepted.Load(), proxy.accepted.Load(); i != 0 || p != 0 {
		t.Errorf("%d connections to internal addresses, %d to the proxy", i, p)
	}
}
