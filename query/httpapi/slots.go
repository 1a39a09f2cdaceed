package httpapi

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// waitForSlot is how long a request waits for its turn before it is sent
	// away.
	waitForSlot = 2 * time.Second
	// waitersPerSlot each that is being answered is how many may wait.
	waitersPerSlot = 16
)

// holder is who a request is counted for: a partner, whatever its address, or an address.
type holder struct {
	partner uint32 // 0: none
	client  netip.Addr
}

// allLive are all answers that go on, for what one of them asks for the others: nobody has that address.
var allLive = holder{client: netip.IPv6Unspecified()}

func (r *Request) holder() holder {
	if r.Partner != nil {
		return holder{partner: r.Partner.ID}
	}
	return holder{client: r.Client}
}

// kind is partner or public: those are counted apart.
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

// slots bound how many requests are being answered at once, so that a crowd makes a
// queue and not a heap: what the engines are asked, and what memory holds, does not grow
// with it. Those that would wait too long are answered 503 at once. Answers out of the
// cache and the health endpoints need no slot.
//
// Nobody's crowd is felt by others. One holder has half of the slots and half of the
// queue at most, and holders take turns, whatever each of them has waiting. Some slots
// are kept for partners, and partners come first: they never wait behind the public.
type slots struct {
	forAll      int // slots
	forPartners int // slots beside these
	refused     func()

	mu      sync.Mutex
	taken   [kinds]int
	waiting [kinds]int
	queue   [kinds][]*line // holders that have somebody waiting, in the order of turns
	lines   map[holder]*line
}

// Slots bound how many do at once what is dear beside the answer itself, as fairly as
// the slots of all requests are given.
type Slots struct{ slots *slots }

// NewSlots makes so many slots, and a quarter more for partners.
func NewSlots(n int) *Slots {
	return &Slots{newSlots(n, forPartners(n), func() {})}
}

// Acquire waits for a slot; release gives it back. Who would wait too long is refused.
func (s *Slots) Acquire(r *Request) (release func(), err error) {
	return s.slots.acquire(r.Context, r.holder())
}

// line is one holder: the slots that it has, and those who wait for another one.
type line struct {
	holder  holder
	taken   int
	waiters []chan struct{} // each closed when its turn has come
}

func newSlots(forAll, forPartners int, refused func()) *slots {
	return &slots{forAll: forAll, forPartners: forPartners, refused: refused, lines: make(map[holder]*line)}
}

// all are the slots that there are.
func (s *slots) all() int { return s.forAll + s.forPartners }

// share is how many of them one holder has at most.
func (s *slots) share(k kind) int {
	if k == public {
		return half(s.forAll)
	}
	return half(s.all())
}

// half of something, and at least one.
func half(n int) int { return (n + 1) / 2 }

// acquire waits for a slot; release gives it back.
func (s *slots) acquire(ctx context.Context, h holder) (release func(), err error) {
	turn, err := s.ask(h)
	if err != nil {
		return nil, err
	}
	release = func() { s.leave(h) }
	patience := time.NewTimer(waitForSlot)
	defer patience.Stop()
	select {
	case <-turn:
		return release, nil
	case <-ctx.Done():
		err = tooLong(ctx.Err())
	case <-patience.C:
		err = s.full()
	}
	if s.giveUp(h, turn) {
		return nil, err
	}
	return release, nil // its turn came at that moment
}

// ask queues a request; its turn may have come when it returns.
func (s *slots) ask(h holder) (turn chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, k, most := s.lines[h], h.kind(), waitersPerSlot*s.all()
	if l == nil {
		l = &line{holder: h}
		s.lines[h] = l
	}
	turn = make(chan struct{})
	l.waiters, s.waiting[k] = append(l.waiters, turn), s.waiting[k]+1
	if len(l.waiters) == 1 {
		s.queue[k] = append(s.queue[k], l)
	}
	s.giveTurns()
	if s.waiting[k] > most || len(l.waiters) > half(most) {
		s.remove(l, len(l.waiters)-1)
		return nil, s.full()
	}
	return turn, nil
}

// giveTurns hands out what is free. s.mu is held.
func (s *slots) giveTurns() {
	for k := partner; k < kinds; {
		i := slices.IndexFunc(s.queue[k], func(l *line) bool { return l.taken < s.share(k) }) // few have as much
		if i < 0 || !s.free(k) {
			k++
			continue
		}
		l := s.queue[k][i]
		close(l.waiters[0])
		l.taken, s.taken[k] = l.taken+1, s.taken[k]+1
		s.remove(l, 0)
		if len(l.waiters) > 0 { // to the end
			s.queue[k] = append(slices.Delete(s.queue[k], i, i+1), l)
		}
	}
}

// free tells whether there is a slot for that kind.
func (s *slots) free(k kind) bool {
	return s.taken[partner]+s.taken[public] < s.all() && (k == partner || s.taken[public] < s.forAll)
}

// remove takes one out of a line that waits. s.mu is held.
func (s *slots) remove(l *line, i int) {
	k := l.holder.kind()
	l.waiters, s.waiting[k] = slices.Delete(l.waiters, i, i+1), s.waiting[k]-1
	if len(l.waiters) == 0 {
		s.queue[k] = slices.DeleteFunc(s.queue[k], func(other *line) bool { return other == l })
		s.forget(l)
	}
}

// giveUp takes one out of the queue that has waited too long; false: its turn has come.
func (s *slots) giveUp(h holder, turn chan struct{}) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-turn:
		return false
	default:
	}
	l := s.lines[h]
	s.remove(l, slices.Index(l.waiters, turn))
	return true
}

// leave gives a slot back.
func (s *slots) leave(h holder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lines[h]
	l.taken, s.taken[h.kind()] = l.taken-1, s.taken[h.kind()]-1
	s.giveTurns()
	s.forget(l)
}

// forget lets go of a holder that has nothing here. s.mu is held.
func (s *slots) forget(l *line) {
	if l.taken == 0 && len(l.waiters) == 0 {
		delete(s.lines, l.holder)
	}
}

func (s *slots) full() error {
	s.refused()
	return &Failure{Status: http.StatusServiceUnavailable, Code: CodeUnavailable, Message: "Too many requests are being answered. Retry-After says when to come back.", Retry: time.Second, Crowd: true}
}

func tooLong(cause error) *Failure { return Unavailable("The answer took too long.", cause) }
