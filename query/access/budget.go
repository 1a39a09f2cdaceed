package access

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/navlog/navlog/query/serve"
)

// requestsOf returns how many requests an address and the prefixes around it may send, as multiples of the limit of one
// address. A site, an IPv6 /56 or /48, usually belongs to one customer, though a carrier may give each of its phones a
// /64 of one. An IPv4 /24 may be 256 customers.
func requestsOf(perAddress int) serve.Widths {
	return serve.Widths{Address: perAddress, Subnet: 4 * perAddress, Site: 16 * perAddress, Block: 16 * perAddress}
}

// timeOf is how many times the engine time of one address a prefix may use.
var timeOf = serve.Widths{Address: 1, Subnet: 2, Site: 4, Block: 4}

// engineTime tracks how much engine time the requests of each address and prefix used. Used time decays at the rate of
// the budget, and a request is rejected while more than a minute's budget is used. A single request may overdraw the
// budget; the resulting wait is never longer than half a minute.
type engineTime struct {
	access    *Access
	perMinute time.Duration // per address

	mu    sync.Mutex
	spent aging[netip.Prefix, spent] // what is forgotten has decayed
}

// spent is the time used, as of at.
type spent struct {
	used time.Duration
	at   time.Time
}

// decayed returns what is left of the used time at now if perMinute decays in a minute.
func (s spent) decayed(now time.Time, perMinute time.Duration) time.Duration {
	gone := float64(now.Sub(s.at)) / float64(time.Minute) * float64(perMinute)
	return max(0, s.used-time.Duration(gone))
}

// EngineTime limits the engine time per minute that the requests of an address use. An IPv6 /56 gets twice as much, a
// /48 and an IPv4 /24 four times as much.
func (a *Access) EngineTime(perMinute time.Duration) serve.Budget {
	return &engineTime{access: a, perMinute: perMinute,
		spent: aging[netip.Prefix, spent]{every: 2 * time.Minute, maxKeys: maxAddresses}}
}

func (e *engineTime) of(prefix netip.Prefix) time.Duration {
	return e.perMinute * time.Duration(timeOf.Of(prefix))
}

func (e *engineTime) Afford(client netip.Addr) error {
	wait := e.wait(client)
	if wait == 0 {
		return nil
	}
	return e.access.refuse(limitEngineTime, wait, fmt.Sprintf(
		"The requests of this address have used more than %s of the engine's time within a minute. Retry-After says when "+
			"to come back.", e.perMinute))
}

// wait returns how long an address must wait until it has budget again, or 0 if it has some.
func (e *engineTime) wait(client netip.Addr) (wait time.Duration) {
	now := e.access.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, prefix := range serve.Prefixes(client) {
		perMinute := e.of(prefix)
		if over := e.spent.get(prefix).decayed(now, perMinute) - perMinute; over > 0 {
			wait = max(wait, time.Duration(float64(over)/float64(perMinute)*float64(time.Minute)))
		}
	}
	return wait
}

// Charge implements serve.Budget: it deducts engine time from the budgets of an address and its prefixes.
func (e *engineTime) Charge(client netip.Addr, used time.Duration) {
	now := e.access.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.spent.turn(now)
	for _, prefix := range serve.Prefixes(client) {
		perMinute := e.of(prefix)
		e.spent.recent[prefix] = spent{min(e.spent.get(prefix).decayed(now, perMinute)+used, perMinute*3/2), now}
	}
}

// day is the window of daily limits. It begins with the first call.
const day = 24 * time.Hour

// ProofCalls limits the node calls per day that are made to build proofs. The limit is per instance. The calls are
// divided so that no address, prefix or partner can use all of them, and half is reserved for partners.
type ProofCalls struct {
	access    *Access
	perDay    int
	groups    *limiter[group]
	addresses *limiter[netip.Prefix]
}

// group is a partner, or the public (zero), or all together.
type group struct {
	partner uint32
	all     bool
}

// ProofCalls returns a budget of perDay calls; 0: unlimited.
func (a *Access) ProofCalls(perDay int) *ProofCalls {
	return &ProofCalls{a, perDay, newLimiter[group](maxAddresses, day), newLimiter[netip.Prefix](maxAddresses, day)}
}

// Spend takes one call from the budget, or returns the error with which the request is rejected.
func (p *ProofCalls) Spend(r *serve.Request) error {
	if p.perDay == 0 {
		return nil
	}
	now, share := p.access.Now(), func(of int) int { return max(1, p.perDay/of) }
	if r.Partner != nil {
		if q := p.groups.take(group{partner: r.Partner.ID}, share(4), now); !q.ok {
			return p.refuse(q, "This partner has")
		}
	} else {
		of := serve.Widths{Address: share(20), Subnet: share(10), Site: share(10), Block: share(5)}
		if q := takeOf(p.addresses, r.Client, of, now); !q.ok {
			return p.refuse(q, "This address has")
		}
		if q := p.groups.take(group{}, share(2), now); !q.ok {
			return p.refuse(q, "Requests without a key have")
		}
	}
	if q := p.groups.take(group{all: true}, p.perDay, now); !q.ok {
		return p.refuse(q, "All requests together have")
	}
	return nil
}

func (p *ProofCalls) refuse(q quota, whose string) error {
	return p.access.refuse(limitProofs, q.retry,
		whose+" used up the daily limit of proofs. Recently proven blocks remain available, and so are all responses "+
			"without proof=true.")
}
