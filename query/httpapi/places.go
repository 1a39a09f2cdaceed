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
	// waitForPlace is how long a request waits for its turn before it is sent
	// away.
	waitForPlace = 2 * time.Second
	// waitersPerPlace each that is being answered is how many may wait.
	waitersPerPlace = 16
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

// places bound how many requests are being answered at once, so that a crowd makes a
// queue and not a heap: what the engines are asked, and what memory holds, does not grow
// with it. Those that would wait too long are answered 503 at once. Answers out of the
// cache and the health endpoints need no place.
//
// Nobody's crowd is felt by others. One holder has half of the places and half of the
// queue at most, and holders take turns, whatever each of them has waiting. Some places
// are kept for partners, and partners come first: they never wait behind the public.
type places struct {
	forAll      int // places
	forPartners int // places beside these
	refused     func()

	mu      sync.Mutex
	taken   [kinds]int
	waiting [kinds]int
	queue   [kinds][]*line // holders that have somebody waiting, in the order of turns
	lines   map[holder]*line
}

// Places bound how many do at once what is dear beside the answer itself, as fairly as
// the places of all requests are given.
type Places struct{ places *places }

// NewPlaces makes so many places, and a quarter more for partners.
func NewPlaces(n int) *Places {
	return &Places{newPlaces(n, forPartners(n), func() {})}
}

// Acquire waits for a place; release gives it back. Who would wait too long is refused.
func (p *Places) Acquire(r *Request) (release func(), err error) {
	return p.places.acquire(r.Context, r.holder())
}

// line is one holder: the places that it has, and those who wait for another one.
type line struct {
	holder  holder
	taken   int
	waiters []chan struct{} // each closed when its turn has come
}

func newPlaces(forAll, forPartners int, refused func()) *places {
	return &places{forAll: forAll, forPartners: forPartners, refused: refused, lines: make(map[holder]*line)}
}

// all are the places that there are.
func (p *places) all() int { return p.forAll + p.forPartners }

// share is how many of them one holder has at most.
func (p *places) share(k kind) int {
	if k == public {
		return half(p.forAll)
	}
	return half(p.all())
}

// half of something, and at least one.
func half(n int) int { return (n + 1) / 2 }

// acquire waits for a place; release gives it back.
func (p *places) acquire(ctx context.Context, h holder) (release func(), err error) {
	turn, err := p.ask(h)
	if err != nil {
		return nil, err
	}
	release = func() { p.leave(h) }
	patience := time.NewTimer(waitForPlace)
	defer patience.Stop()
	select {
	case <-turn:
		return release, nil
	case <-ctx.Done():
		err = tooLong(ctx.Err())
	case <-patience.C:
		err = p.full()
	}
	if p.giveUp(h, turn) {
		return nil, err
	}
	return release, nil // its turn came at that moment
}

// ask queues a request; its turn may have come when it returns.
func (p *places) ask(h holder) (turn chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, k, most := p.lines[h], h.kind(), waitersPerPlace*p.all()
	if l == nil {
		l = &line{holder: h}
		p.lines[h] = l
	}
	turn = make(chan struct{})
	l.waiters, p.waiting[k] = append(l.waiters, turn), p.waiting[k]+1
	if len(l.waiters) == 1 {
		p.queue[k] = append(p.queue[k], l)
	}
	p.giveTurns()
	if p.waiting[k] > most || len(l.waiters) > half(most) {
		p.remove(l, len(l.waiters)-1)
		return nil, p.full()
	}
	return turn, nil
}

// giveTurns hands out what is free. p.mu is held.
func (p *places) giveTurns() {
	for k := partner; k < kinds; {
		i := slices.IndexFunc(p.queue[k], func(l *line) bool { return l.taken < p.share(k) }) // few have as much
		if i < 0 || !p.free(k) {
			k++
			continue
		}
		l := p.queue[k][i]
		close(l.waiters[0])
		l.taken, p.taken[k] = l.taken+1, p.taken[k]+1
		p.remove(l, 0)
		if len(l.waiters) > 0 { // to the end
			p.queue[k] = append(slices.Delete(p.queue[k], i, i+1), l)
		}
	}
}

// free tells whether there is a place for that kind.
func (p *places) free(k kind) bool {
	return p.taken[partner]+p.taken[public] < p.all() && (k == partner || p.taken[public] < p.forAll)
}

// remove takes one out of a line that waits. p.mu is held.
func (p *places) remove(l *line, i int) {
	k := l.holder.kind()
	l.waiters, p.waiting[k] = slices.Delete(l.waiters, i, i+1), p.waiting[k]-1
	if len(l.waiters) == 0 {
		p.queue[k] = slices.DeleteFunc(p.queue[k], func(other *line) bool { return other == l })
		p.forget(l)
	}
}

// giveUp takes one out of the queue that has waited too long; false: its turn has come.
func (p *places) giveUp(h holder, turn chan struct{}) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-turn:
		return false
	default:
	}
	l := p.lines[h]
	p.remove(l, slices.Index(l.waiters, turn))
	return true
}

// leave gives a place back.
func (p *places) leave(h holder) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lines[h]
	l.taken, p.taken[h.kind()] = l.taken-1, p.taken[h.kind()]-1
	p.giveTurns()
	p.forget(l)
}

// forget lets go of a holder that has nothing here. p.mu is held.
func (p *places) forget(l *line) {
	if l.taken == 0 && len(l.waiters) == 0 {
		delete(p.lines, l.holder)
	}
}

func (p *places) full() error {
	p.refused()
	return &Failure{Status: http.StatusServiceUnavailable, Code: CodeUnavailable, Message: "Too many requests are being answered. Retry-After says when to come back.", Retry: time.Second, Crowd: true}
}

func tooLong(cause error) *Failure { return Unavailable("The answer took too long.", cause) }
