package access

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/navlog/navlog/query/serve"
)

// A prefix gets a multiple of the limit of one address. A site, an IPv6 /56 or /48, usually belongs to one customer,
// though a carrier may give each of its phones a /64 of one. An IPv4 /24 may be 256 customers.
const (
	requestsOfSubnet = 4  // an IPv6 /56
	requestsOfSite   = 16 // an IPv6 /48
	requestsOfBlock  = 16 // an IPv4 /24
	timeOfSubnet     = 2
	timeOfSite       = 4
	timeOfBlock      = 4
)

// requestsOf returns the limit of each prefix from that of one address.
func requestsOf(perAddress int) func(netip.Prefix) int {
	return func(prefix netip.Prefix) int {
		return perAddress * serve.ByWidth(prefix, 1, requestsOfSubnet, requestsOfSite, requestsOfBlock)
	}
}

// budget tracks how much engine time the requests of each address and prefix used. Used time decays at the rate of
// the budget, and a request is rejected while more than a minute's budget is used. A single request may overdraw the
// budget; the resulting wait is never longer than half a minute.
type budget struct {
	perMinute time.Duration // per address
	now       func() time.Time

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

func newBudget(perMinute time.Duration, now func() time.Time) *budget {
	return &budget{perMinute: perMinute, now: now,
		spent: aging[netip.Prefix, spent]{every: 2 * time.Minute, maxKeys: maxAddresses}}
}

func (b *budget) of(prefix netip.Prefix) time.Duration {
	return b.perMinute * time.Duration(serve.ByWidth(prefix, 1, timeOfSubnet, timeOfSite, timeOfBlock))
}

// wait returns how long an address must wait until it has budget again, or 0 if it has some.
func (b *budget) wait(client netip.Addr) (wait time.Duration) {
	now := b.now()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, prefix := range serve.Prefixes(client) {
		perMinute := b.of(prefix)
		if over := b.spent.get(prefix).decayed(now, perMinute) - perMinute; over > 0 {
			wait = max(wait, time.Duration(float64(over)/float64(perMinute)*float64(time.Minute)))
		}
	}
	return wait
}

// charge deducts engine time from the budgets of an address and its prefixes.
func (b *budget) charge(client netip.Addr, used time.Duration) {
	now := b.now()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent.turn(now)
	for _, prefix := range serve.Prefixes(client) {
		perMinute := b.of(prefix)
		b.spent.recent[prefix] = spent{min(b.spent.get(prefix).decayed(now, perMinute)+used, perMinute*3/2), now}
	}
}

// EngineTime limits the engine time per minute that the requests of an address use. An IPv6 /56 gets twice as much, a
// /48 and an IPv4 /24 four times as much.
func (a *Access) EngineTime(perMinute time.Duration) serve.Budget {
	return engineTime{a, newBudget(perMinute, func() time.Time { return a.Now() })}
}

type engineTime struct {
	access *Access
	budget *budget
}

// Afford implements serve.Budget.
func (e engineTime) Afford(client netip.Addr) error {
	wait := e.budget.wait(client)
	if wait == 0 {
		return nil
	}
	return e.access.refuse(limitEngineTime, wait, fmt.Sprintf(
		"The requests of this address have used more than %s of the engine's time within a minute. Retry-After says when "+
			"to come back.", e.budget.perMinute))
}

// Charge implements serve.Budget.
func (e engineTime) Charge(client netip.Addr, used time.Duration) { e.budget.charge(client, used) }
