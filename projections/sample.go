package projections

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/projections/fold"
	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
)

// sample is one user and one request in n, those whose number leaves the rest
// k; all of them where n is 0 or 1.
// The number of a user is the last 8 bytes of the address.
type sample struct{ n, k uint64 }

func newSample(n uint64) sample {
	if n <= 1 {
		return sample{}
	}
	return sample{n: n, k: rand.Uint64N(n)}
}

func (s sample) user(a common.Address) bool { return binary.BigEndian.Uint64(a[12:])%s.n == s.k }
func (s sample) index(i uint64) bool        { return i%s.n == s.k }

// keeps tells whether a record is needed to know about the sample.
func (s sample) keeps(r *event.Record) bool {
	l := r.GetLog()
	if l == nil || s.n <= 1 {
		return true
	}
	if len(l.GetAddress()) != common.AddressLength || len(l.GetTxHash()) != common.HashLength {
		return true // quarantined
	}
	topics := make([]common.Hash, len(l.GetTopics()))
	for i, t := range l.GetTopics() {
		if len(t) != common.HashLength {
			return true // quarantined
		}
		topics[i] = common.BytesToHash(t)
	}
	e, err := contracts.Decode(topics, l.GetData())
	if err != nil {
		return true // quarantined
	}
	request := func(owner common.Address, index *big.Int) bool {
		return s.user(owner) || !index.IsUint64() || s.index(index.Uint64())
	}
	switch e := e.(type) {
	case contracts.DepositAccepted:
		return s.user(e.Owner) || fold.Quarantines(e)
	case contracts.WithdrawalRequested:
		return request(e.Owner, e.RequestIndex) || fold.Quarantines(e)
	case contracts.WithdrawalFunded:
		return request(e.Owner, e.RequestIndex) || fold.Quarantines(e)
	case contracts.WithdrawalClaimed:
		return request(e.Owner, e.RequestIndex) || fold.Quarantines(e)
	case contracts.WithdrawalCancelled:
		return request(e.Owner, e.RequestIndex) || fold.Quarantines(e)
	case contracts.WithdrawalExpired:
		return request(e.Owner, e.RequestIndex) || fold.Quarantines(e)
	case contracts.NavUpdated, contracts.DepositsSwept:
		return true
	}
	return fold.Quarantines(e)
}

// thin takes out of the books what is not whole, because only the sample was kept.
func (s sample) thin(b *fold.Books) {
	if s.n <= 1 {
		return
	}
	maps.DeleteFunc(b.Flows, func(k fold.VaultUser, _ *fold.Flow) bool { return !s.user(k.User) })
	maps.DeleteFunc(b.Users, func(a common.Address, _ *fold.User) bool { return !s.user(a) })
	maps.DeleteFunc(b.Requests, func(k fold.RequestKey, _ *fold.Request) bool { return !s.index(k.Index) })
	b.Deposits = slices.DeleteFunc(b.Deposits, func(l fold.Log) bool { return !s.user(l.Event.(contracts.DepositAccepted).Owner) })
	b.Partners = map[uint32]*fold.Partner{}
	for _, l := range b.Deposits {
		b.AddPartner(l.Event.(contracts.DepositAccepted))
	}
}

// question reads an SQL file for the sample of a generation.
func (s sample) question(name, database string) string {
	text := question(name, database)
	if s.n <= 1 || name == "verify_rows" {
		return text
	}
	user := fmt.Sprintf("reinterpretAsUInt64(reverse(substring(user, 13, 8))) %% %d = %d", s.n, s.k)
	index := fmt.Sprintf("request_index %% %d = %d", s.n, s.k)
	for table, in := range map[string]string{"deposits": user, "flows": user, "rankings": user, "requests": index} {
		whole := "FROM " + database + "." + table
		text = strings.ReplaceAll(text, whole, fmt.Sprintf("FROM (SELECT * %s WHERE %s)", whole, in))
	}
	return text
}
