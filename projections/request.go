package projections

import (
	"github.com/navlog/navlog/schemas/contracts"
)

// request is what the fold knows of a withdrawal request: how often the chain
// said each thing about it, and what was asked first.
//
//	(none) --requested--> waiting --funded--> claimable --claimed--> claimed
//	                         |--cancelled--> cancelled
//	                         '--expired--> expired
//
// The chain may say what cannot be (a claim of an unknown index, a second
// claim); it is kept as it was said. Nothing here depends on the order of logs
// of several kinds, so that a log can be taken back by counting it down.
type request struct {
	requested, funded, claimed, cancelled, expired uint32

	estimate amount // of the first request
	expires  uint64 // Unix seconds, 0 for never
	used     uint64
}

// open tells whether the request is in the queue: waiting, or claimable.
func (r *request) open() bool {
	return r.requested > 0 && r.claimed == 0 && r.cancelled == 0 && (r.funded > 0 || r.expired == 0)
}

// waiting tells whether it is in the queue and not funded yet.
func (r *request) waiting() bool { return r.open() && r.funded == 0 }

// over tells whether it will hardly be heard of again.
func (r *request) over() bool { return r.claimed+r.cancelled+r.expired > 0 }

// count is how often the chain said a thing about the request.
func (r *request) count(e contracts.Kind) *uint32 {
	switch e {
	case contracts.KindWithdrawalRequested:
		return &r.requested
	case contracts.KindWithdrawalFunded:
		return &r.funded
	case contracts.KindWithdrawalClaimed:
		return &r.claimed
	case contracts.KindWithdrawalCancelled:
		return &r.cancelled
	default:
		return &r.expired
	}
}

// apply moves the request by one log; false when the log takes back what is
// not there.
func (r *request) apply(x *fact) bool {
	edge, ok := count(r.count(x.event), x.sign)
	if x.event == contracts.KindWithdrawalRequested && edge > 0 {
		r.estimate, r.expires = x.args.assets, x.args.expires
	}
	return ok
}

// impossible tells whether an event cannot happen to a request in this state.
// Funding after expiry can: a foreign vault may do it, and the request is
// claimable again.
func (r *request) impossible(e contracts.Kind) bool {
	known, funded, ended := r.requested > 0, r.funded > 0, r.claimed+r.cancelled > 0
	switch e {
	case contracts.KindWithdrawalRequested:
		return known
	case contracts.KindWithdrawalFunded:
		return !known || funded || ended
	case contracts.KindWithdrawalClaimed:
		return !known || !funded || ended
	case contracts.KindWithdrawalCancelled, contracts.KindWithdrawalExpired:
		return !known || funded || ended || r.expired > 0
	}
	return false
}
