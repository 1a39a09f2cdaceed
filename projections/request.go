package projections

import (
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/contracts"
)

// request is the state of a withdrawal request: a row of the requests table.
//
//	(none) --requested--> pending --funded--> claimable --claimed--> claimed
//	                         |--cancelled--> cancelled
//	                         '--expired--> expired
//
// The chain may say what cannot be (a claim of an unknown index, a second
// claim); it is kept as it was said. The first event of a kind sets the fields
// of that kind, further ones only raise its count, and taking back the last one
// clears them.
type request struct {
	since          uint64 // seq of the log that made this state, 0 for none
	user, receiver common.Address
	partner        uint32
	shares         amount
	estimate       amount
	expires        uint64 // Unix seconds, 0 for never
	requestedBlock uint64
	tx             common.Hash
	logIndex       uint32
	fundedAssets   amount
	claimedAssets  amount // of all claims

	requested, funded, claimed, cancelled, expired step
}

// step is how often the chain said that something happened to a request, and
// when it said so first.
type step struct{ count, ts uint32 }

// move counts an event up or down. first is true when the fields of its kind
// are to be set (sign +1) or cleared (sign -1); ok is false when there is
// nothing to take back.
func (s *step) move(sign int8, ts uint32) (first, ok bool) {
	if sign > 0 {
		if s.count == 0 {
			s.ts = ts
		}
		s.count++
		return s.count == 1, true
	}
	if s.count == 0 {
		return false, false
	}
	s.count--
	if s.count == 0 {
		s.ts = 0
	}
	return s.count == 0, true
}

// apply moves the request by one log; false when the log takes back what is
// not there.
func (r *request) apply(x *fact) bool {
	var ok, first bool
	switch x.event {
	case contracts.KindWithdrawalRequested:
		ok = r.ask(x)
	case contracts.KindWithdrawalFunded:
		if first, ok = r.funded.move(x.sign, x.log.ts); first {
			r.fundedAssets = amount{}
			if x.sign > 0 {
				r.fundedAssets = x.args.assets
			}
		}
	case contracts.KindWithdrawalClaimed:
		_, ok = r.claimed.move(x.sign, x.log.ts)
		assets := signed(x.sign, &x.args.assets)
		r.claimedAssets.Add(&r.claimedAssets, &assets)
	case contracts.KindWithdrawalCancelled:
		_, ok = r.cancelled.move(x.sign, x.log.ts)
	case contracts.KindWithdrawalExpired:
		_, ok = r.expired.move(x.sign, x.log.ts)
	}
	return ok
}

func (r *request) ask(x *fact) bool {
	first, ok := r.requested.move(x.sign, x.log.ts)
	switch {
	case first && x.sign > 0:
		r.user, r.receiver, r.partner, r.expires = x.args.owner, x.args.other, x.args.partner, x.args.expires
		r.shares, r.estimate = x.args.shares, x.args.assets
		r.requestedBlock, r.tx, r.logIndex = x.log.block, x.log.tx, x.log.index
	case first:
		r.user, r.receiver, r.partner, r.expires = common.Address{}, common.Address{}, 0, 0
		r.shares, r.estimate = amount{}, amount{}
		r.requestedBlock, r.tx, r.logIndex = 0, common.Hash{}, 0
	}
	return ok
}

// impossible tells whether an event cannot happen to a request in this state.
// Funding after expiry can: a foreign vault may do it, and the request is
// claimable again.
func (r *request) impossible(e contracts.Kind) bool {
	known, funded, ended := r.requested.count > 0, r.funded.count > 0, r.claimed.count+r.cancelled.count > 0
	switch e {
	case contracts.KindWithdrawalRequested:
		return known
	case contracts.KindWithdrawalFunded:
		return !known || funded || ended
	case contracts.KindWithdrawalClaimed:
		return !known || !funded || ended
	case contracts.KindWithdrawalCancelled, contracts.KindWithdrawalExpired:
		return !known || funded || ended || r.expired.count > 0
	}
	return false
}
