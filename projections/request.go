package projections

import (
	"math/big"

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
	shares         *big.Int
	estimate       *big.Int
	expires        uint64 // Unix seconds, 0 for never
	requestedBlock uint64
	tx             common.Hash
	logIndex       uint32
	fundedAssets   *big.Int
	claimedAssets  *big.Int // of all claims

	requested, funded, claimed, cancelled, expired step
}

// step is how often the chain said that something happened to a request, and
// when it said so first.
type step struct{ count, ts uint32 }

func newRequest() request {
	return request{shares: zero, estimate: zero, fundedAssets: zero, claimedAssets: zero}
}

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
func (r *request) apply(e contracts.Event, sign int8, l logged) bool {
	var ok bool
	switch e := e.(type) {
	case contracts.WithdrawalRequested:
		ok = r.ask(e, sign, l)
	case contracts.WithdrawalFunded:
		var first bool
		if first, ok = r.funded.move(sign, l.ts); first {
			r.fundedAssets = pick(sign, e.Assets)
		}
	case contracts.WithdrawalClaimed:
		_, ok = r.claimed.move(sign, l.ts)
		r.claimedAssets = add(r.claimedAssets, sign, e.Assets)
	case contracts.WithdrawalCancelled:
		_, ok = r.cancelled.move(sign, l.ts)
	case contracts.WithdrawalExpired:
		_, ok = r.expired.move(sign, l.ts)
	}
	return ok
}

func (r *request) ask(e contracts.WithdrawalRequested, sign int8, l logged) bool {
	first, ok := r.requested.move(sign, l.ts)
	switch {
	case first && sign > 0:
		r.user, r.receiver, r.partner, r.expires = e.Owner, e.Receiver, e.PartnerID, e.ExpiresAt
		r.shares, r.estimate = e.Shares, e.AssetsEstimate
		r.requestedBlock, r.tx, r.logIndex = l.block, l.tx, l.index
	case first:
		r.user, r.receiver, r.partner, r.expires = common.Address{}, common.Address{}, 0, 0
		r.shares, r.estimate = zero, zero
		r.requestedBlock, r.tx, r.logIndex = 0, common.Hash{}, 0
	}
	return ok
}

// impossible tells whether e cannot happen to a request in this state. Funding
// after expiry can: a foreign vault may do it, and the request is claimable again.
func (r *request) impossible(e contracts.Event) bool {
	known, funded, ended := r.requested.count > 0, r.funded.count > 0, r.claimed.count+r.cancelled.count > 0
	switch e.(type) {
	case contracts.WithdrawalRequested:
		return known
	case contracts.WithdrawalFunded:
		return !known || funded || ended
	case contracts.WithdrawalClaimed:
		return !known || !funded || ended
	case contracts.WithdrawalCancelled, contracts.WithdrawalExpired:
		return !known || funded || ended || r.expired.count > 0
	}
	return false
}

func pick(sign int8, v *big.Int) *big.Int {
	if sign < 0 {
		return zero
	}
	return v
}

// add gives a + sign*b as a new number.
func add(a *big.Int, sign int8, b *big.Int) *big.Int {
	if sign < 0 {
		return new(big.Int).Sub(a, b)
	}
	return new(big.Int).Add(a, b)
}
