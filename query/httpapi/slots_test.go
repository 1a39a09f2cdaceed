package httpapi

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"
)

// crowd is slots in a test, whose requests do not block.
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

func address(n byte) holder { return holder{client: netip.AddrFrom4([4]byte{10, 0, 0, n})} }

// come is a request; has tells whether its turn has come.
func (c *crowd) come(h holder) (has func() bool) {
	c.t.Helper()
	turn, err := c.ask(h)
	if err != nil {
		c.t.Fatal(err)
	}
	return func() bool {
		select {
		case <-turn:
			return true
		default:
			return false
		}
	}
}

func (c *crowd) expect(what string, want bool, all ...func() bool) {
	c.t.Helper()
	for i, has := range all {
		if has() != want {
			c.t.Errorf("%s: number %d has a slot: %v", what, i, !want)
		}
	}
}

// TestNobodyHasMoreThanHalf of the slots, nor of the queue.
func TestNobodyHasMoreThanHalf(t *testing.T) {
	c := newCrowd(t, 4, 2)
	a, b, seven := address(1), address(2), holder{partner: 7}
	c.expect("an address", true, c.come(a), c.come(a))
	c.expect("the same beyond its share", false, c.come(a))
	c.expect("another", true, c.come(b), c.come(b))
	c.expect("a third, with all taken", false, c.come(address(3)))
	c.expect("a partner, of its own slots", true, c.come(seven), c.come(seven))
	c.expect("a partner, with all taken", false, c.come(seven))

	for len(c.lines[a].waiters) < waitersPerSlot*6/2 {
		c.come(a)
	}
	var f *Failure
	if _, err := c.ask(a); !errors.As(err, &f) || f.Status != 503 || !f.Crowd || c.refused != 1 {
		t.Errorf("an address has more than half of the queue: %v", err)
	}
	c.come(b)
	for n := byte(4); c.waiting[public] < waitersPerSlot*6; n++ {
		c.come(address(n))
	}
	if _, err := c.ask(address(200)); !errors.As(err, &f) {
		t.Errorf("the queue has no end: %v", err)
	}
	if c.lines[address(200)] != nil {
		t.Error("one who was refused is remembered")
	}
	c.expect("a partner, with the public's queue full", false, c.come(seven))
}

// TestTurns: who has many waiting does not go before who has one, and partners go before
// the public.
func TestTurns(t *testing.T) {
	c := newCrowd(t, 1, 0)
	a, b := address(1), address(2)
	c.come(a)
	first, second, third := c.come(a), c.come(a), c.come(a)
	other, partners := c.come(b), c.come(holder{partner: 7})
	c.leave(a)
	c.expect("the partner's", true, partners)
	c.expect("the public's", false, first, other)
	c.leave(holder{partner: 7})
	c.expect("the first", true, first)
	c.leave(a)
	c.expect("the other's", true, other)
	c.expect("the second of the first", false, second)
	c.leave(b)
	c.expect("the second of the first", true, second)
	c.expect("its third", false, third)
}

// TestWaitingHasAnEnd: by the client's going away, and by itself.
func TestWaitingHasAnEnd(t *testing.T) {
	c := newCrowd(t, 1, 0)
	gone, leave := context.WithCancel(t.Context())
	leave()
	release, err := c.acquire(gone, address(1)) // there is a slot
	if err != nil {
		t.Fatal(err)
	}
	var f *Failure
	if _, err := c.acquire(gone, address(2)); !errors.As(err, &f) || f.Crowd {
		t.Errorf("a client that is gone: %v", err)
	}
	if _, err := c.acquire(t.Context(), address(2)); !errors.As(err, &f) || !f.Crowd || c.refused != 1 {
		t.Errorf("one that waited too long: %v", err)
	}
	release()
	if len(c.lines) != 0 || c.taken != [kinds]int{} || c.waiting != [kinds]int{} || len(c.queue[public]) != 0 {
		t.Errorf("left over are %v, %v taken, %v waiting", c.lines, c.taken, c.waiting)
	}
}

// TestSlotsAtRandom: whatever comes and goes, the counts are right, nobody has more than
// the share, and none waits who could have a slot.
func TestSlotsAtRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		c := newCrowd(t, 1+rng.IntN(6), rng.IntN(3))
		type request struct {
			h    holder
			turn chan struct{}
		}
		var open []request
		for range 300 {
			if h := address(byte(rng.IntN(5))); rng.IntN(2) == 0 || len(open) == 0 {
				if rng.IntN(3) == 0 {
					h = holder{partner: 1 + rng.Uint32N(3)}
				}
				if turn, err := c.ask(h); err == nil {
					open = append(open, request{h, turn})
				}
			} else {
				i := rng.IntN(len(open))
				r := open[i]
				open = append(open[:i], open[i+1:]...)
				if !c.giveUp(r.h, r.turn) {
					c.leave(r.h)
				}
			}
			taken, waiting := map[holder]int{}, map[holder]int{}
			var takenOf, waitingOf [kinds]int
			for _, r := range open {
				select {
				case <-r.turn:
					taken[r.h]++
					takenOf[r.h.kind()]++
				default:
					waiting[r.h]++
					waitingOf[r.h.kind()]++
				}
			}
			if takenOf != c.taken || waitingOf != c.waiting || takenOf[public] > c.forAll || takenOf[public]+takenOf[partner] > c.all() {
				t.Fatalf("taken %v, waiting %v; counted %v, %v", takenOf, waitingOf, c.taken, c.waiting)
			}
			for h, n := range taken {
				if n > c.share(h.kind()) {
					t.Fatalf("%v has %d of %d slots", h, n, c.all())
				}
			}
			for h := range waiting {
				if taken[h] < c.share(h.kind()) && c.free(h.kind()) {
					t.Fatalf("%v waits with a slot free", h)
				}
			}
		}
	}
}
