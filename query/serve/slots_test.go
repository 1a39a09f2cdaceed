package serve

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// crowd is a slots in a test, whose requests do not block.
type crowd struct {
	*slots
	t       *testing.T
	refused int
}

func newCrowd(t *testing.T, forAll, forPartners int) *crowd {
	c := &crowd{t: t}
	c.slots = newSlots(forAll, forPartners, func() { c.refused++ })
	return c
}

// address returns an IPv4 address in a separate /24.
func address(n byte) holder { return holder{client: netip.AddrFrom4([4]byte{10, 0, n, 1})} }

// subnet returns an IPv6 /64, one of 256 in each /56 of one /48.
func subnet(n uint16) holder {
	return holder{client: netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 0, 1, byte(n >> 8), byte(n)})}
}

// come queues a request; has reports whether it has got a slot.
func (c *crowd) come(h holder) (has func() bool) {
	c.t.Helper()
	w, err := c.ask(h, false)
	if err != nil {
		c.t.Fatal(err)
	}
	return func() bool { return w.granted }
}

// end ends a request of a holder that has a slot.
func (c *crowd) end(h holder) { c.leave(c.lines[h.members()[0]]) }

func (c *crowd) expect(what string, want bool, all ...func() bool) {
	c.t.Helper()
	for i, has := range all {
		if has() != want {
			c.t.Errorf("%s: number %d has a slot: %v", what, i, !want)
		}
	}
}

// waits returns how many requests of a holder wait.
func (c *crowd) waits(h holder) int {
	if l := c.lines[h.members()[0]]; l != nil {
		return l.waiting
	}
	return 0
}

// TestNoClientHasMoreThanHalf: no address and no partner gets more than half of the slots or of the queue.
func TestNoClientHasMoreThanHalf(t *testing.T) {
	c := newCrowd(t, 4, 2)
	a, b, seven := address(1), address(2), holder{partner: 7}
	c.expect("an address", true, c.come(a), c.come(a))
	c.expect("the same address beyond its share", false, c.come(a))
	c.expect("another", true, c.come(b), c.come(b))
	c.expect("a third address, with all slots taken", false, c.come(address(3)))
	c.expect("a partner, with the slots for partners", true, c.come(seven), c.come(seven))
	c.expect("a partner, with all slots taken", false, c.come(seven))

	for c.waits(a) < c.places()/2 {
		c.come(a)
	}
	var f *Failure
	if _, err := c.ask(a, false); !errors.As(err, &f) || f.Status != 503 || !f.Crowd || c.refused != 1 {
		t.Errorf("an address has more than half of the queue: %v", err)
	}
	c.expect("a partner, with the public's queue full", false, c.come(seven))
}

// TestEveryAddressIsCharged: whatever the address of a client, its requests are charged, and take no turns of the work
// for all live responses.
func TestEveryAddressIsCharged(t *testing.T) {
	e := &engine{budget: freeBudget{}}
	all := holder{allLive: true}
	if e.charged(all) || e.charged(holder{partner: 7}) {
		t.Error("partners or the work for all live responses are charged")
	}
	for _, client := range []netip.Addr{{}, netip.IPv6Unspecified(), netip.IPv4Unspecified(),
		netip.MustParseAddr("198.51.100.7")} {
		h := holder{client: client}
		if !e.charged(h) || slices.ContainsFunc(h.members(),
			func(m member) bool { return slices.Contains(all.members(), m) }) {
			t.Errorf("%s counts as the work for all live responses", client)
		}
	}
}

type freeBudget struct{}

func (freeBudget) Afford(netip.Addr) error          { return nil }
func (freeBudget) Charge(netip.Addr, time.Duration) {}

// TestPrefixIsOneCustomer: an IPv6 /48 has the share of one address, however many of its /64s send requests, and so
// do the /56s within it.
func TestPrefixIsOneCustomer(t *testing.T) {
	c := newCrowd(t, 4, 0)
	c.expect("two /64s", true, c.come(subnet(0x0001)), c.come(subnet(0x0102)))
	c.expect("a third of the same /48", false, c.come(subnet(0x0203)))
	c.expect("others", true, c.come(address(1)), c.come(address(2)))
	others := c.come(address(3))
	for n := range uint16(c.places()) {
		if _, err := c.ask(subnet(n), false); err != nil {
			break
		}
	}
	if got := c.lines[member{prefix: Prefixes(subnet(0).client)[2]}].waiting; got != c.places()/2 {
		t.Errorf("a /48 has %d of %d places in the queue", got, c.places())
	}
	c.end(address(1))
	c.expect("the other after one turn of the /48", true, others)
}

// TestFullQueueMakesRoom: a client with few waiting requests gets a place in a queue that others have filled.
func TestFullQueueMakesRoom(t *testing.T) {
	c := newCrowd(t, 1, 0)
	c.come(address(0))
	var dropped []*waiter
	for c.roots[public].waiting < c.places() {
		w, err := c.ask(address(byte(1+c.roots[public].waiting%4)), false)
		if err != nil {
			t.Fatal(err)
		}
		dropped = append(dropped, w)
	}
	c.come(address(100))
	last, n := 0, 0
	for i, w := range dropped {
		if w.dropped {
			last, n = i, n+1
		}
	}
	if n != 1 || last < len(dropped)-4 || c.roots[public].waiting != c.places() {
		t.Errorf("%d requests made room, number %d the last of them; %d of %d wait", n, last, c.roots[public].waiting,
			c.places())
	}
	for range c.places() / 4 {
		if _, err := c.ask(address(101), false); err != nil { // as many as the others have
			break
		}
	}
	var f *Failure
	if _, err := c.ask(address(101), false); !errors.As(err, &f) || !f.Crowd {
		t.Errorf("an address with as many requests as the others displaces them: %v", err)
	}
}

// TestLongResponsesWait: the next part of a long response waits for a slot however full the queue is, also that of its
// own address, and newcomers do not take its place.
func TestLongResponsesWait(t *testing.T) {
	c := newCrowd(t, 1, 0)
	c.come(address(0))
	for n := range byte(4) {
		for range c.places() / 4 {
			c.come(address(1 + n))
		}
	}
	part, err := c.ask(address(1), true)
	if err != nil {
		t.Fatalf("the part is refused: %v", err)
	}
	for n := range byte(2) { // both make room, of the same address at first
		c.come(address(100 + n))
	}
	if part.dropped || c.roots[public].waiting != c.places()+1 {
		t.Errorf("the part is dropped: %t; %d wait", part.dropped, c.roots[public].waiting)
	}
	for range c.places() {
		for n := range byte(102) {
			if l := c.lines[address(n).members()[0]]; l != nil && l.taken > 0 && !part.granted {
				c.leave(l)
			}
		}
	}
	if !part.granted {
		t.Error("the part has no slot")
	}
}

// TestTurns: a new address goes before the waiting requests of one that has had its turn, and then both take turns.
// Partners go before the public.
func TestTurns(t *testing.T) {
	c := newCrowd(t, 1, 0)
	a, b := address(1), address(2)
	c.come(a)
	first, second, third := c.come(a), c.come(a), c.come(a)
	other, another, partners := c.come(b), c.come(b), c.come(holder{partner: 7})
	c.end(a)
	c.expect("the partner's request", true, partners)
	c.expect("the public's requests", false, first, other)
	c.end(holder{partner: 7})
	c.expect("the other", true, other)
	c.expect("the first", false, first)
	c.end(b)
	c.expect("the first", true, first)
	c.end(a)
	c.expect("the second of the other", true, another)
	c.expect("the second of the first", false, second)
	c.end(b)
	c.expect("the second of the first", true, second)
	c.expect("the third of the first", false, third)
}

// TestHolderOfASlotIsNoNewcomer: a member that holds a slot does not go before one that already waits.
func TestHolderOfASlotIsNoNewcomer(t *testing.T) {
	c := newCrowd(t, 1, 0)
	c.come(address(1))
	waits := c.come(address(2))
	again := c.come(address(1))
	c.end(address(1))
	c.expect("the one that waited", true, waits)
	c.expect("the one that had a slot", false, again)
}

// TestNewcomersDoNotStarveOthers: at least every second turn goes to those already waiting, however many newcomers
// there are.
func TestNewcomersDoNotStarveOthers(t *testing.T) {
	c := newCrowd(t, 1, 0)
	type request struct {
		h   holder
		has func() bool
	}
	var pending []request
	come := func(n byte) { pending = append(pending, request{address(n), c.come(address(n))}) }
	for n := range byte(4) {
		come(n)
	}
	for n := byte(10); n < 18; n++ {
		i := slices.IndexFunc(pending, func(r request) bool { return r.has() })
		h := pending[i].h
		pending = slices.Delete(pending, i, i+1)
		come(n)
		c.end(h)
	}
	for n := range byte(4) {
		if c.waits(address(n)) > 0 {
			t.Errorf("number %d still waits after 8 turns", n)
		}
	}
}

// TestLongAnswersOfManyAddresses: one address, a /48 and a /24 together leave places for files, long responses and
// streams.
func TestLongAnswersOfManyAddresses(t *testing.T) {
	s := New(0, 0, prometheus.NewRegistry())
	for name, of := range map[string]*slots{"files": s.files, "long responses": s.streams, "streams": s.lives,
		"streams that catch up": s.catchUps} {
		c := &crowd{slots: of, t: t}
		many := func(of func(n int) holder) (n int) {
			for i := range 500 {
				if w, err := c.ask(of(i), false); err == nil && w.granted {
					n++
				}
			}
			return n
		}
		all := c.forAll
		if n := many(func(int) holder { return address(1) }); n == 0 || n > all/5 {
			t.Errorf("%s: an address has %d of %d", name, n, all)
		}
		if n := many(func(n int) holder { return subnet(uint16(n)) }); n == 0 || n > all/4 {
			t.Errorf("%s: a /48 has %d of %d", name, n, all)
		}
		if n := many(func(n int) holder { return holder{client: netip.AddrFrom4([4]byte{10, 1, 1, byte(n)})} }); n == 0 ||
			n > all/3 {
			t.Errorf("%s: a /24 has %d of %d", name, n, all)
		}
		c.expect(name+" for another", true, c.come(address(2)))
	}
}

// TestPartnersLeaveHalfToThePublic: partners go first, and do not take all slots.
func TestPartnersLeaveHalfToThePublic(t *testing.T) {
	c := newCrowd(t, 4, 1)
	c.expect("partners", true, c.come(holder{partner: 7}), c.come(holder{partner: 8}), c.come(holder{partner: 9}))
	c.expect("one more", false, c.come(holder{partner: 10}))
	c.expect("the public", true, c.come(address(1)), c.come(address(2)))
}

// TestWaitingHasAnEnd: waiting ends when the client disconnects, and after a time limit.
func TestWaitingHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1, 0)
		gone, leave := context.WithCancel(t.Context())
		leave()
		release, err := c.acquire(gone, address(1)) // there is a free slot
		if err != nil {
			t.Fatal(err)
		}
		var f *Failure
		if _, err := c.acquire(gone, address(2)); !errors.As(err, &f) || f.Crowd {
			t.Errorf("a disconnected client: %v", err)
		}
		// The context of a response that others may share does not end when its client disconnects.
		shared := context.WithoutCancel(withClient(t.Context(), gone))
		if _, err := c.acquire(shared, address(2)); !errors.Is(err, errClientLeft) {
			t.Errorf("a disconnected client of a shared response: %v", err)
		}
		if _, err := c.acquire(t.Context(), address(2)); !errors.As(err, &f) || !f.Crowd || c.refused != 1 {
			t.Errorf("a client that waited too long: %v", err)
		}
		release()
		if len(c.lines) != 0 || c.taken() != 0 || c.roots[public].waiting != 0 || len(c.roots[public].next) != 0 {
			t.Errorf("%v are left, %d slots taken, %d waiting", c.lines, c.taken(), c.roots[public].waiting)
		}
	})
}

// TestSlotsAtRandom: in a random sequence of requests the counts are right, no member exceeds its share, and no
// request waits although it could have a slot.
func TestSlotsAtRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		c := newCrowd(t, 1+rng.IntN(6), rng.IntN(3))
		type request struct {
			h holder
			w *waiter
		}
		var open []request
		for range 300 {
			if rng.IntN(2) == 0 || len(open) == 0 {
				h := address(byte(rng.IntN(5)))
				switch rng.IntN(3) {
				case 0:
					h = holder{partner: 1 + rng.Uint32N(3)}
				case 1:
					h = subnet(uint16(rng.IntN(3)<<8 | rng.IntN(3)))
				}
				if w, err := c.ask(h, false); err == nil {
					open = append(open, request{h, w})
				}
			} else {
				i := rng.IntN(len(open))
				r := open[i]
				open = append(open[:i], open[i+1:]...)
				if !c.giveUp(r.w) && r.w.granted {
					c.leave(r.w.line)
				}
			}
			taken, waiting := map[member]int{}, map[member]int{}
			var takenOf, waitingOf [kinds]int
			for _, r := range open {
				switch {
				case r.w.granted:
					takenOf[r.h.kind()]++
					for _, m := range r.h.members() {
						taken[m]++
					}
				case !r.w.dropped:
					waitingOf[r.h.kind()]++
					for _, m := range r.h.members() {
						waiting[m]++
					}
				}
			}
			for k, root := range c.roots {
				if takenOf[k] != root.taken || waitingOf[k] != root.waiting {
					t.Fatalf("taken %v, waiting %v; counted %+v", takenOf, waitingOf, c.roots)
				}
			}
			if takenOf[public] > c.forAll || takenOf[public]+takenOf[partner] > c.all() {
				t.Fatalf("%v of %d and %d slots are taken", takenOf, c.forAll, c.forPartners)
			}
			for m, n := range taken {
				if n > c.share.of(m) || n != c.lines[m].taken {
					t.Fatalf("%v has %d of %d slots", m, n, c.all())
				}
			}
			for m, n := range waiting {
				if n > c.queueShare.of(m) || n != c.lines[m].waiting {
					t.Fatalf("%v has %d requests waiting", m, n)
				}
			}
			for _, r := range open {
				could := !r.w.granted && !r.w.dropped && c.free(r.h.kind())
				for _, m := range r.h.members() {
					could = could && taken[m] < c.share.of(m)
				}
				if could {
					t.Fatalf("%v waits although a slot is free", r.h)
				}
			}
		}
	}
}
