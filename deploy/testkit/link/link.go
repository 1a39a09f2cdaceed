// Package link connects a network namespace with this machine by a link that a test controls: it can drop the packets
// of single ports, delay packets, and lose some of them.
//
//	namespace                         this machine
//	program ── tun device ── Link ── tun device ── 127.0.0.1: engines
//
// A program in the namespace reaches what listens on 127.0.0.1 of this machine at that same address, so that it needs
// no other configuration than outside. (Both sides accept packets of the loopback network on the link, with
// route_localnet, and the namespace has no such address of its own.) This machine reaches the program at Host.
//
// The link copies packets between two tun devices, because not every kernel has the modules for tc netem and filters. A
// dropped packet vanishes without an error on either side, as on a broken network: connections stay open until
// one side notices the silence.
package link

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Network contains the addresses of all links. It is reserved for tests of networks (RFC 2544).
const Network = "198.18.0.0/15"

// queueLength is how many packets may be delayed at the same time in each direction; further ones are dropped.
const queueLength = 4096

// A Link is a network namespace and its connection to this machine.
type Link struct {
	Namespace string
	Host      string // address in the namespace

	outer, inner *os.File // ends of the tun devices: this machine's and the namespace's
	copying      sync.WaitGroup
	closed       chan struct{}

	mu    sync.Mutex
	cut   map[uint16]bool // ports of this machine
	delay time.Duration   // in each direction
	loss  float64         // 0 to 1, in each direction
	draw  *rand.Rand
}

// Available returns an error that says what New would lack on this machine, or nil.
func Available() error {
	if os.Geteuid() != 0 {
		return errors.New("network namespaces need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return fmt.Errorf("network namespaces need the program ip: %w", err)
	}
	f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("a link needs tun devices: %w", err)
	}
	return f.Close()
}

// New creates the n-th link of this process, 0 to 99, with a namespace. Packets are lost at random, by a seed. The
// caller closes the link.
func New(n int) (*Link, error) {
	name := fmt.Sprintf("nl%d-%d", os.Getpid()%100_000, n)
	// Addresses of Network that another process is unlikely to use.
	subnet := fmt.Sprintf("198.%d.%d.", 18+os.Getpid()%2, (os.Getpid()/2*7)%156+n)
	l := &Link{
		Namespace: name, Host: subnet + "2", closed: make(chan struct{}),
		cut: map[uint16]bool{}, draw: rand.New(rand.NewPCG(1, uint64(n))),
	}
	if err := l.open(name, subnet+"1"); err != nil {
		l.Close()
		return nil, fmt.Errorf("create a link to a network namespace: %w", err)
	}
	for _, direction := range []struct {
		from, to *os.File
		port     func(packet []byte) uint16
	}{{l.inner, l.outer, func(p []byte) uint16 { return port(p, 2) }},
		{l.outer, l.inner, func(p []byte) uint16 { return port(p, 0) }}} {
		packets := make(chan delayed, queueLength)
		l.copying.Go(func() { l.read(direction.from, direction.port, packets) })
		l.copying.Go(func() { write(direction.to, packets) })
	}
	return l, nil
}

func (l *Link) open(name, here string) (err error) {
	outside, inside := name+"o", name+"i"
	if l.outer, err = openTun(outside); err != nil {
		return err
	}
	if l.inner, err = openTun(inside); err != nil {
		return err
	}
	in := []string{"ip", "-n", name}
	for _, command := range [][]string{
		{"ip", "netns", "add", name},
		{"ip", "link", "set", inside, "netns", name},
		{"ip", "address", "add", here, "peer", l.Host, "dev", outside},
		{"ip", "link", "set", outside, "up"},
		{"ip", "netns", "exec", name, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/conf/" + inside + "/route_localnet"},
		{"sh", "-c", "echo 1 > /proc/sys/net/ipv4/conf/" + outside + "/route_localnet"},
		append(in, "address", "add", l.Host, "peer", here, "dev", inside),
		append(in, "link", "set", inside, "up"),
		append(in, "link", "set", "lo", "up"),
		append(in, "address", "delete", "127.0.0.1/8", "dev", "lo"),
		append(in, "route", "add", "127.0.0.1/32", "dev", inside, "src", l.Host),
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}

// openTun creates a tun device, which exists until the file is closed. Each read and write is one IP packet.
func openTun(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("create the tun device %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Close removes the link and the namespace. Programs in it keep running, without a network.
func (l *Link) Close() error {
	close(l.closed)
	for _, f := range []*os.File{l.outer, l.inner} {
		if f != nil {
			f.Close()
		}
	}
	l.copying.Wait()
	if out, err := exec.Command("ip", "netns", "delete", l.Namespace).CombinedOutput(); err != nil {
		return fmt.Errorf("delete the namespace %s: %w: %s", l.Namespace, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Cut drops all packets between the namespace and ports of this machine, until Heal.
func (l *Link) Cut(ports ...int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, port := range ports {
		l.cut[uint16(port)] = true
	}
}

// Heal ends all cuts.
func (l *Link) Heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.cut)
}

// Slow adds a delay to every round trip, half of it in each direction, and loses that share of the packets of each
// direction.
func (l *Link) Slow(roundTrip time.Duration, loss float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay, l.loss = roundTrip/2, loss
}

// passes reports whether a packet of a port passes, and when it arrives.
func (l *Link) passes(port uint16) (at time.Time, passes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Add(l.delay), !l.cut[port] && (l.loss == 0 || l.draw.Float64() >= l.loss)
}

// A delayed packet arrives at a time.
type delayed struct {
	packet []byte
	at     time.Time
}

// read reads packets until the link is closed. port returns the port of this machine that a packet comes from or goes
// to.
func (l *Link) read(from *os.File, port func([]byte) uint16, packets chan<- delayed) {
	defer close(packets)
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			select {
			case <-l.closed:
				return
			default:
			}
			if errors.Is(err, os.ErrClosed) {
				return
			}
			continue // the device is not up yet
		}
		packet := buffer[:n]
		at, passes := l.passes(port(packet))
		if !passes {
			continue
		}
		select {
		case packets <- delayed{append([]byte(nil), packet...), at}:
		default: // the queue is full, as that of a router can be
		}
	}
}

func write(to *os.File, packets <-chan delayed) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for p := range packets {
		if wait := time.Until(p.at); wait > 0 {
			timer.Reset(wait)
			<-timer.C
		}
		_, _ = to.Write(p.packet) // a packet that cannot be written is lost
	}
}

// port returns the port that a TCP or UDP packet over IPv4 comes from (at 0) or goes to (at 2), or 0 if it is another
// packet.
func port(packet []byte, at int) uint16 {
	if len(packet) < 20 || packet[0]>>4 != 4 || packet[9] != unix.IPPROTO_TCP && packet[9] != unix.IPPROTO_UDP {
		return 0
	}
	if at += int(packet[0]&0xf) * 4; len(packet) < at+2 {
		return 0
	}
	return binary.BigEndian.Uint16(packet[at:])
}
