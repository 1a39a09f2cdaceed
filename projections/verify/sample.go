package verify

import (
	"encoding/binary"
	"math/big"
	"math/rand/v2"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/projections/oracle"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
)

// sample is one user, request and partner in n, those whose number leaves the rest
// k; all of them if n is 0 or 1. The number of a user is the last 8 bytes of the
// address, as live.sql has it too.
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
		return true // of all requests of an id the first is one
	case contracts.WithdrawalFunded:
		return request(e.Owner, e.RequestIndex)
	case contracts.WithdrawalClaimed:
		return request(e.Owner, e.RequestIndex)
	case contracts.WithdrawalCancelled:
		return request(e.Owner, e.RequestIndex)
	case contracts.WithdrawalExpired:
		return request(e.Owner, e.RequestIndex)
	case contracts.DepositsSwept, contracts.NavUpdated:
		return true // they belong to no user
	}
	return false
}

// whole tells whether all records that a row of lists depends on are kept.
func (s sample) whole(r *readmodel.ListRow) bool {
	if s.n <= 1 {
		return true
	}
	switch r.List {
	case readmodel.Blocks:
		return true
	case readmodel.VaultEvents:
		return r.Kind != readmodel.Deposit || s.user(r.User)
	case readmodel.PartnerEvents:
		return s.number(uint64(r.Partner))
	case readmodel.Queue, readmodel.Requests, readmodel.UserRequests:
		return s.number(r.ID)
	case readmodel.UserTotals:
		return s.user(r.Owner)
	case readmodel.Totals: // of a partner, whose number is the last bytes of the owner
		return r.Owner != r.Scope && r.Owner != common.Address{} && s.user(r.Owner)
	}
	return s.user(r.User)
}
