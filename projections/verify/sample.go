package verify

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/projections/oracle"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
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

// keeps tells whether a record is needed to know about the sample. Of vaults with a mapping of
// their own all are: what a log does may follow from others.
func (s sample) keeps(vaults *mapping.Vaults, r *event.Record) bool {
	if r.GetLog() == nil || s.n <= 1 {
		return true
	}
	sources := vaults.Of(mapping.VaultOf(r.GetLog()))
	if sources.Hash != (common.Hash{}) {
		return true
	}
	said := oracle.Read(vaults, []*event.Record{r})[r.GetSeq()]
	if len(said.Effects) == 0 {
		return said.Quarantined
	}
	switch e := &said.Effects[0]; e.Kind {
	case mapping.Deposit:
		return s.user(e.Owner) || s.number(uint64(e.Partner))
	case mapping.Settled:
		return false
	case mapping.Funded, mapping.Claimed, mapping.Cancelled, mapping.Expired:
		return s.user(e.Owner) || s.number(e.ID)
	}
	return true // of all requests of an id the first is one; sweeps and valuations belong to no user
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
