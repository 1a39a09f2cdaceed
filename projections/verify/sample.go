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

// sample selects one in n users, requests and partners, those whose number modulo n is k; all of them if n is 0 or 1.
// The number of a user is the last 8 bytes of the address, as in live.sql.
type sample struct{ n, k uint64 }

func newSample(n uint64) sample {
	if n <= 1 {
		return sample{}
	}
	return sample{n: n, k: rand.Uint64N(n)}
}

func (s sample) user(a common.Address) bool { return s.number(binary.BigEndian.Uint64(a[12:])) }
func (s sample) number(i uint64) bool       { return i%s.n == s.k }

// includes reports whether a record is needed for the sample. All records of vaults with their own mapping are, because
// the effects of a log may depend on others.
func (s sample) includes(vaults *mapping.Vaults, r *event.Record) bool {
	if r.GetLog() == nil || s.n <= 1 {
		return true
	}
	sources := vaults.Of(mapping.VaultOf(r.GetLog()))
	if sources.Hash != (common.Hash{}) {
		return true
	}
	reading := oracle.Read(vaults, []*event.Record{r})[r.GetSeq()]
	if len(reading.Effects) == 0 {
		return reading.Quarantined
	}
	switch e := &reading.Effects[0]; e.Kind {
	case mapping.Deposit:
		return s.user(e.Owner) || s.number(uint64(e.Partner))
	case mapping.Settled:
		return false
	case mapping.Funded, mapping.Claimed, mapping.Cancelled, mapping.Expired:
		// without an owner, it is that of the request
		return e.Owner == (common.Address{}) || s.user(e.Owner) || s.number(e.ID)
	}
	return true // the first of all requests with an id counts; sweeps and valuations belong to no user
}

// whole reports whether all records on which a row of lists depends are kept.
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
	case readmodel.Totals: // of a partner, whose number is in the last bytes of the owner
		return r.Owner != r.Scope && r.Owner != common.Address{} && s.user(r.Owner)
	}
	return s.user(r.User)
}
