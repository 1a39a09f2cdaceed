package access

import (
	"net/netip"
	"time"

	"github.com/navlog/navlog/query/serve"
)

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
