package access

import (
	"net/netip"
	"time"

	"github.com/navlog/navlog/query/serve"
)

// day is the window of daily limits. It begins with the first call.
const day = 24 * time.Hour

// A day's calls for proofs are divided so that no address, prefix or partner can use all of them, and half is
// reserved for partners.
const (
	callsOfPublic  = 2  // the public has a half
	callsOfPartner = 4  // a partner a quarter
	callsOfBlock   = 5  // an IPv4 /24 a fifth
	callsOfSite    = 10 // an IPv6 /48 or /56 a tenth
	callsOfAddress = 20 // an address a twentieth
)

// ProofCalls limits the node calls per day that are made to build proofs. The limit is per instance.
type ProofCalls struct {
	access  *Access
	perDay  int
	all     *limiter[struct{}]
	public  *limiter[struct{}]
	partner *limiter[uint32]
	address *limiter[netip.Prefix]
}

// ProofCalls returns a budget of perDay calls; 0: unlimited.
func (a *Access) ProofCalls(perDay int) *ProofCalls {
	return &ProofCalls{a, perDay, newLimiter[struct{}](1, day), newLimiter[struct{}](1, day),
		newLimiter[uint32](maxAddresses, day), newLimiter[netip.Prefix](maxAddresses, day)}
}

// Spend takes one call from the budget, or returns the error with which the request is rejected.
func (p *ProofCalls) Spend(r *serve.Request) error {
	if p.perDay == 0 {
		return nil
	}
	now, share := p.access.Now(), func(of int) int { return max(1, p.perDay/of) }
	if r.Partner != nil {
		if q := p.partner.take(r.Partner.ID, share(callsOfPartner), now); !q.ok {
			return p.refuse(q, "This partner has")
		}
	} else {
		of := func(prefix netip.Prefix) int {
			return share(serve.ByWidth(prefix, callsOfAddress, callsOfSite, callsOfSite, callsOfBlock))
		}
		if q := takeOf(p.address, r.Client, of, now); !q.ok {
			return p.refuse(q, "This address has")
		}
		if q := p.public.take(struct{}{}, share(callsOfPublic), now); !q.ok {
			return p.refuse(q, "Requests without a key have")
		}
	}
	if q := p.all.take(struct{}{}, p.perDay, now); !q.ok {
		return p.refuse(q, "All requests together have")
	}
	return nil
}

func (p *ProofCalls) refuse(q quota, whose string) error {
	return p.access.refuse(limitProofs, q.retry,
		whose+" used up the daily limit of proofs. Recently proven blocks remain available, and so are all responses "+
			"without proof=true.")
}
