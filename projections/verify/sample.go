package verify

import (
	"encoding/binary"
	"maps"
	"math/big"
	"math/rand/v2"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/projections/oracle"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
)

// sample is one user, request and partner in n, those whose number leaves the rest
// k; all of them where n is 0 or 1. The number of a user is the last 8 bytes of the
// address, as live_users.sql has it too.
type sample struct{ n, k uint64 }

func newSample(n uint64) sample {
	if n <= 1 {
		return sample{}
	}
	return sample{n: n, k: rand.Uint64N(n)}
}

func (s sample) user(a common.Address) bool { return s.number(binary.BigEndian.Uint64(a[12:])) }
func (s sample) number(i uint64) bool       { return i%s.n == s.k }

// keeps tells whether a record is needed to know about the sample.
func (s sample) keeps(r *event.Record) bool {
	if r.GetLog() == nil || s.n <= 1 {
		return true
	}
	l, counts, quarantined := oracle.Read(r)
	if !counts {
		return quarantined
	}
	request := func(owner common.Address, index *big.Int) bool { return s.user(owner) || s.number(index.Uint64()) }
	switch e := l.Event.(type) {
	case contracts.DepositAccepted:
		return s.user(e.Owner) || s.number(uint64(e.PartnerID))
	case contracts.WithdrawalRequested:
		return request(e.Owner, e.RequestIndex)
	case contracts.WithdrawalFunded:
		return request(e.Owner, e.RequestIndex)
	case contracts.WithdrawalClaimed:
		return request(e.Owner, e.RequestIndex)
	case contracts.WithdrawalCancelled:
		return request(e.Owner, e.RequestIndex)
	case contracts.WithdrawalExpired:
		return request(e.Owner, e.RequestIndex)
	case contracts.DepositsSwept:
		return true // one that cannot be is told of
	}
	return false
}

// thin takes out of the books what is not whole, because only the sample was kept.
func (s sample) thin(b *oracle.Books) {
	if s.n <= 1 {
		return
	}
	maps.DeleteFunc(b.Users, func(a common.Address, _ *oracle.User) bool { return !s.user(a) })
	maps.DeleteFunc(b.Withdrawals, func(k oracle.RequestKey, _ *oracle.Withdrawal) bool { return !s.number(k.Index) })
	maps.DeleteFunc(b.Totals, func(k oracle.PartnerVault, _ []oracle.Total) bool { return !s.number(uint64(k.Partner)) })
	for _, members := range b.Members {
		maps.DeleteFunc(members, func(a common.Address, _ oracle.Since) bool { return !s.user(a) })
	}
}
