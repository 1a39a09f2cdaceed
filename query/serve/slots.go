package serve

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// waitForSlot is how long a cheap request waits for a slot before it fails with 503.
	waitForSlot = 2 * time.Second
	// waitForExpensive is the same for an expensive request, which may wait behind queries that take a second each.
	waitForExpensive = 5 * time.Second
	// waitersPerSlot is how many requests may wait per slot; the total is at least minWaiters, because with the few
	// slots of a small machine a single burst would fill a shorter queue.
	waitersPerSlot = 16
	minWaiters     = 256
)

// holder is what a request is counted against: a partner, whatever its address, or an address. The class decides
// which slots the request needs.
type holder struct {
	partner uint32 // 0: none
	client  netip.Addr
	allLive bool // work that one live response does for all of them: no client's
	class   class
}

func (r *Request) holder() holder {
	if r.Partner != nil {
		return holder{partner: r.Partner.ID, class: r.class}
	}
	return holder{client: r.Client, class: r.class}
}

// kind is partner or public: they are counted separately.
type kind int

const (
	partner kind = iota
	public
	kinds
)

func (h holder) kind() kind {
	if h.partner != 0 {
		return partner
	}
	return public
}

// Prefixes returns the prefixes that an address counts against, narrowest first. A customer has an IPv4 address or an
// IPv6 /64, often an IPv6 /56 or /48 of 256 or 65,536 of them, and a network that rents out machines has an IPv4 /24.
func Prefixes(ip netip.Addr) []netip.Prefix {
	widths := []int{64, 56, 48}
	if ip.Is4() {
		widths = []int{32, 24}
	}
	prefixes := make([]netip.Prefix, len(widths))
	for i, bits := range widths {
		prefixes[i], _ = ip.WithZone("").Prefix(bits) // an invalid address has the zero prefix, which counts as one
	}
	return prefixes
}

// Widths are the limits of an address and of the prefixes around it.
type Widths struct {
	Address int // an IPv4 address, an IPv6 /64
	Subnet  int // an IPv6 /56
	Site    int // an IPv6 /48
	Block   int // an IPv4 /24, which may be 256 customers
}

// Of returns the limit of a prefix.
func (w Widths) Of(prefix netip.Prefix) int {
	switch prefix.Bits() {
	case 56:
		return w.Subnet
	case 48:
		return w.Site
	case 24:
		return w.Block
	}
	return w.Address
}

// member takes turns with others: a partner, an address, or a prefix of addresses, or all live responses together.
type member struct {
	partner uint32
	prefix  netip.Prefix
	allLive bool
}

// members returns the members that a holder counts against, narrowest first.
func (h holder) members() []member {
	if h.partner != 0 || h.allLive {
		return []member{{partner: h.partner, allLive: h.allLive}}
	}
	prefixes := Prefixes(h.client)
	return Each(prefixes, func(prefix *netip.Prefix) member { return member{prefix: *prefix} })
}

// shares are the maximum numbers of slots that one member may hold.
type shares struct {
	partner int
	Widths
}

func (s shares) of(m member) int {
	if m.partner != 0 {
		return s.partner
	}
	return s.Of(m.prefix)
}

// halves limits each member to half, and an IPv4 /24 to three quarters.
func halves(forAll, all int) shares {
	n := half(forAll)
	return shares{half(all), Widths{n, n, n, max(n, forAll*3/4)}}
}

func half(n int) int { return (n + 1) / 2 }

// slots limits how many requests are handled at once, so that neither the load of the engines nor memory use grows
// with the number of requests: the rest wait in a queue. Requests that would wait too long fail with 503. Cached
// responses and the health endpoints need no slot.
//
// A burst from one source does not keep others out. Prefixes take turns, then the addresses within each of them,
// however many requests each has waiting. No member exceeds its share of the slots and of the queue. If the queue is
// full, the newest request of the prefix with the most requests makes room for one of a prefix with fewer. Some slots
// are reserved for partners, and partners go first; they leave half of the public's slots to the public.
type slots struct {
	forAll      int // slots for everybody
	forPartners int // additional slots for partners
	share       shares
	queueShare  shares
	patience    time.Duration
	refused     func()

	mu    sync.Mutex
	roots [kinds]line
	lines map[member]*line
}

// line is the queue of a member: the slots that it holds, and the requests that wait for one.
type line struct {
	member  member
	parent  *line // the next wider member, or the root of the kind
	taken   int
	waiting int
	next    []*line   // narrower members with waiting requests, in the order of their turns
	ahead   bool      // it was queued ahead of the others of its parent
	jumped  bool      // one of next was, and no other has had its turn since
	waiters []*waiter // of the narrowest member
}

// waiter is a waiting request.
type waiter struct {
	line    *line
	patient bool
	settled chan struct{} // closed when granted or dropped is set
	granted bool
	dropped bool
}

func newSlots(forAll, forPartners int, refused func()) *slots {
	s := &slots{forAll: forAll, forPartners: forPartners, refused: refused, patience: waitForSlot,
		lines: make(map[member]*line)}
	s.share, s.queueShare = halves(forAll, s.all()), halves(s.places(), s.places())
	return s
}

func (s *slots) all() int { return s.forAll + s.forPartners }

// places returns how many requests of a kind may wait.
func (s *slots) places() int { return max(minWaiters, waitersPerSlot*s.all()) }

// acquire waits for a slot, for the usual time at most; release returns the slot.
func (s *slots) acquire(ctx context.Context, h holder) (release func(), err error) {
	late := time.NewTimer(s.patience)
	defer late.Stop()
	return s.acquireUntil(ctx, h, late.C)
}

// acquireUntil waits for a slot until late, or until the client disconnects. If late is nil, the request is patient: it
// waits however full the queue is, and makes room for no other.
func (s *slots) acquireUntil(ctx context.Context, h holder, late <-chan time.Time) (release func(), err error) {
	w, err := s.ask(h, late == nil)
	if err != nil {
		return nil, err
	}
	left := clientOf(ctx)
	select {
	case <-w.settled:
	case <-ctx.Done():
		err = tooLong(ctx.Err())
	case <-left.Done():
		err = clientLeft(left)
	case <-late:
		err = s.full()
	}
	switch {
	case s.giveUp(w):
		return nil, err
	case w.dropped:
		return nil, s.full()
	}
	return func() { s.leave(w.line) }, nil
}

// ask queues a request; it may already have a slot when ask returns. There are no more patient ones than places for
// long responses, so the queue stays short.
func (s *slots) ask(h holder, patient bool) (*waiter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &waiter{line: s.line(h), patient: patient, settled: make(chan struct{})}
	w.line.waiters = append(w.line.waiters, w)
	for l := w.line; l != nil; l = l.parent {
		if l.waiting++; l.waiting == 1 && l.parent != nil {
			l.parent.queue(l)
		}
	}
	s.giveTurns()
	if w.granted || patient || s.fits(w) {
		return w, nil
	}
	s.remove(w)
	return nil, s.full()
}

// line returns the line of the narrowest member that a holder counts against. s.mu is held.
func (s *slots) line(h holder) *line {
	parent := &s.roots[h.kind()]
	for _, m := range slices.Backward(h.members()) {
		l := s.lines[m]
		if l == nil {
			l = &line{member: m, parent: parent}
			s.lines[m] = l
		}
		parent = l
	}
	return parent
}

// queue adds a member that had no waiting requests. It goes first if it holds no slot, because the others have had
// turns while it had none; otherwise it would wait for the request being handled and for one more of each other member.
// But after each member that went first, at least one of those already waiting gets a turn.
func (l *line) queue(newcomer *line) {
	if l.jumped || len(l.next) == 0 || newcomer.taken > 0 {
		l.next = append(l.next, newcomer)
		return
	}
	l.next = slices.Insert(l.next, 0, newcomer)
	l.jumped, newcomer.ahead = true, true
}

// fits reports whether the newest request fits into the queue, if necessary by dropping a request of a longer line.
// s.mu is held.
func (s *slots) fits(w *waiter) bool {
	widest := w.line
	for l := w.line; l.parent != nil; l = l.parent {
		if l.waiting > s.queueShare.of(l.member) {
			return false
		}
		widest = l
	}
	root := widest.parent
	if root.waiting <= s.places() {
		return true
	}
	longest := slices.MaxFunc(root.next, byWaiting)
	if longest.waiting <= widest.waiting {
		return false
	}
	for len(longest.next) > 0 {
		longest = slices.MaxFunc(longest.next, byWaiting)
	}
	i := len(longest.waiters) - 1
	for i >= 0 && longest.waiters[i].patient {
		i--
	}
	if i < 0 {
		return false
	}
	last := longest.waiters[i]
	s.remove(last)
	last.dropped = true
	close(last.settled)
	return true
}

func byWaiting(a, b *line) int { return a.waiting - b.waiting }

func (s *slots) giveTurns() {
	for k := partner; k < kinds; {
		var l *line
		if s.free(k) {
			l = s.turn(&s.roots[k])
		}
		if l == nil {
			k++
			continue
		}
		w := l.waiters[0]
		for at := l; at != nil; at = at.parent {
			at.taken++
			if p := at.parent; p != nil { // move to the end
				i := slices.Index(p.next, at)
				p.next = append(slices.Delete(p.next, i, i+1), at)
				p.jumped, at.ahead = at.ahead, false
			}
		}
		s.remove(w)
		w.granted = true
		close(w.settled)
	}
}

// turn returns the line whose turn it is, or nil if no line may have a slot.
func (s *slots) turn(l *line) *line {
	if len(l.waiters) > 0 {
		return l
	}
	for _, next := range l.next {
		if next.taken < s.share.of(next.member) {
			if found := s.turn(next); found != nil {
				return found
			}
		}
	}
	return nil
}

// free reports whether a slot is free for a kind. s.mu is held.
func (s *slots) free(k kind) bool {
	ofPartners, ofPublic := s.roots[partner].taken, s.roots[public].taken
	if ofPartners+ofPublic >= s.all() {
		return false
	}
	if k == public {
		return ofPublic < s.forAll
	}
	return ofPartners < max(1, s.all()-half(s.forAll))
}

// remove removes a request from its line. s.mu is held.
func (s *slots) remove(w *waiter) {
	i := slices.Index(w.line.waiters, w)
	w.line.waiters = slices.Delete(w.line.waiters, i, i+1)
	for l := w.line; l != nil; l = l.parent {
		if l.waiting--; l.waiting == 0 && l.parent != nil {
			l.parent.next = slices.DeleteFunc(l.parent.next, func(other *line) bool { return other == l })
			if l.ahead {
				l.parent.jumped, l.ahead = false, false
			}
		}
	}
	s.forget(w.line)
}

// giveUp removes a request from the queue; it returns false if the request has a slot or was dropped.
func (s *slots) giveUp(w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.granted || w.dropped {
		return false
	}
	s.remove(w)
	return true
}

func (s *slots) leave(l *line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := l; at != nil; at = at.parent {
		at.taken--
	}
	s.giveTurns()
	s.forget(l)
}

// forget removes members that hold no slot and have no waiting requests. s.mu is held.
func (s *slots) forget(l *line) {
	for ; l.parent != nil; l = l.parent {
		if l.taken == 0 && l.waiting == 0 {
			delete(s.lines, l.member)
		}
	}
}

func (s *slots) full() error {
	s.refused()
	return &Failure{Status: http.StatusServiceUnavailable, Code: CodeUnavailable,
		Message: "Too many requests are being answered. Retry-After says when to come back.", Retry: time.Second, Crowd: true}
}

func tooLong(cause error) *Failure { return Unavailable("The answer took too long.", cause) }
