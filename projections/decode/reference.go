package decode

import (
	"encoding/binary"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/contracts"
)

// Reference is the Mapping of the reference contracts: each of their events has one effect.
func Reference(topics []common.Hash, data []byte, some []Effect) (named contracts.Kind, effects []Effect, ok bool) {
	if len(topics) == 0 {
		return contracts.KindUnknown, some, true
	}
	named = contracts.KindOf(topics[0])
	if named == contracts.KindUnknown {
		return named, some, true
	}
	wanted, words := named.Layout()
	if len(topics) != wanted || len(data) != 32*words {
		return named, some, false
	}
	some = append(some, Effect{})
	return named, some, some[len(some)-1].read(named, topics[1:], data)
}

// read reads the arguments of an event whose lengths were checked; false when a value
// does not fit its type or its column.
func (e *Effect) read(named contracts.Kind, topics []common.Hash, data []byte) bool {
	ok := true
	id := func(w []byte) uint64 { v, fits := low(w, 8); ok = ok && fits; return v }
	short := func(w []byte, n int) uint64 { v, fits := low(w, n); ok = ok && fits; return v }
	address := func(w []byte) common.Address { ok = ok && empty(w[:12]); return common.Address(w[12:32]) }
	sum := func(z *Amount, w []byte) { z.SetBytes32(w[:32]); ok = ok && z.BitLen() <= amountBits }
	word := func(i int) []byte { return data[32*i : 32*i+32] }
	switch named {
	case contracts.KindDepositAccepted:
		e.Kind = Deposit
		e.ID, e.Owner, e.Partner = id(topics[0][:]), address(topics[1][:]), uint32(short(topics[2][:], 4))
		e.Other = address(word(0))
		sum(&e.Assets, word(1))
		sum(&e.Shares, word(2))
	case contracts.KindWithdrawalRequested:
		e.Kind = Requested
		e.ID, e.Owner, e.Partner = id(topics[0][:]), address(topics[1][:]), uint32(short(topics[2][:], 4))
		e.Other = address(word(0))
		sum(&e.Shares, word(1))
		sum(&e.Assets, word(2))
		e.Expires = short(word(3), 8)
	case contracts.KindWithdrawalFunded:
		e.Kind = Funded
		e.ID, e.Owner = id(topics[0][:]), address(topics[1][:])
		sum(&e.Shares, word(0))
		sum(&e.Assets, word(1))
	case contracts.KindWithdrawalClaimed:
		e.Kind = Claimed
		e.ID, e.Owner, e.Other = id(topics[0][:]), address(topics[1][:]), address(topics[2][:])
		sum(&e.Shares, word(0))
		sum(&e.Assets, word(1))
	case contracts.KindWithdrawalCancelled:
		e.Kind = Cancelled
		e.ID, e.Owner = id(topics[0][:]), address(topics[1][:])
		sum(&e.Shares, word(0))
	case contracts.KindWithdrawalExpired:
		e.Kind = Expired
		e.ID, e.Owner = id(topics[0][:]), address(topics[1][:])
		sum(&e.Shares, word(0))
	case contracts.KindNavUpdated:
		e.Kind = NAV
		e.Other = address(topics[1][:])
		sum(&e.Nav, word(0))
		sum(&e.Assets, word(1))
		sum(&e.Shares, word(2))
	case contracts.KindDepositsSwept:
		e.Kind = Sweep
		e.Other = address(topics[1][:])
		e.ID, e.To = id(word(0)), id(word(1))
		sum(&e.Assets, word(2))
	case contracts.KindWithdrawalsSettled:
		e.Kind = GroupPrice
		e.Other = address(topics[1][:])
		sum(&e.Shares, word(1))
		sum(&e.Assets, word(2))
		sum(&e.Nav, word(3))
	}
	return ok
}

// low is the last n bytes of a word of 32, at most 8; ok says that the others are 0.
func low(w []byte, n int) (v uint64, ok bool) {
	return binary.BigEndian.Uint64(w[24:32]), empty(w[:32-n])
}

func empty(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}
