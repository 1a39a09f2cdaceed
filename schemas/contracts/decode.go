package contracts

import (
	"encoding/binary"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
)

// Decode reads one log of a vault. It gives nil, nil for a log that is none of navlog's events, and an error for a log
// that announces one of them by its first topic but is not laid out like it. It keeps no reference to its arguments.
func Decode(topics []common.Hash, data []byte) (Event, error) {
	if len(topics) == 0 {
		return nil, nil
	}
	kind := kinds[topics[0]]
	if kind == KindUnknown {
		return nil, nil
	}
	l := &layouts[kind]
	if len(topics) != l.topics {
		return nil, fmt.Errorf("%s has %d topics instead of %d: the vault's event indexes other arguments", l.name, len(topics), l.topics)
	}
	if len(data) != 32*l.words {
		return nil, fmt.Errorf("%s has %d bytes of data instead of %d", l.name, len(data), 32*l.words)
	}
	r := reader{topics: topics[1:], data: data}
	e := r.event(kind)
	if r.err != nil {
		return nil, fmt.Errorf("%s: %w", l.name, r.err)
	}
	return e, nil
}

// event reads the arguments in the order of the Solidity declaration; indexed ones come from the topics. A composite
// literal evaluates its calls from left to right, so the order of the fields is the order of the words.
func (r *reader) event(kind Kind) Event {
	switch kind {
	case KindDepositAccepted:
		return DepositAccepted{DepositID: r.indexed().uint256(), Owner: r.address(r.indexed()), PartnerID: r.uint32(r.indexed()),
			Sender: r.address(r.word()), Assets: r.word().uint256(), Shares: r.word().uint256()}
	case KindWithdrawalRequested:
		return WithdrawalRequested{RequestIndex: r.indexed().uint256(), Owner: r.address(r.indexed()), PartnerID: r.uint32(r.indexed()),
			Receiver: r.address(r.word()), Shares: r.word().uint256(), AssetsEstimate: r.word().uint256(), ExpiresAt: r.uint64(r.word())}
	case KindWithdrawalFunded:
		return WithdrawalFunded{RequestIndex: r.indexed().uint256(), Owner: r.address(r.indexed()), SettlementID: r.indexed().uint256(),
			Shares: r.word().uint256(), Assets: r.word().uint256()}
	case KindWithdrawalClaimed:
		return WithdrawalClaimed{RequestIndex: r.indexed().uint256(), Owner: r.address(r.indexed()), Receiver: r.address(r.indexed()),
			Shares: r.word().uint256(), Assets: r.word().uint256()}
	case KindWithdrawalCancelled:
		return WithdrawalCancelled{RequestIndex: r.indexed().uint256(), Owner: r.address(r.indexed()), Shares: r.word().uint256()}
	case KindWithdrawalExpired:
		return WithdrawalExpired{RequestIndex: r.indexed().uint256(), Owner: r.address(r.indexed()), Shares: r.word().uint256()}
	case KindNavUpdated:
		return NavUpdated{NavID: r.indexed().uint256(), Updater: r.address(r.indexed()),
			NavPerShare: r.word().uint256(), TotalAssets: r.word().uint256(), TotalSupply: r.word().uint256()}
	case KindDepositsSwept:
		return DepositsSwept{SweepID: r.indexed().uint256(), Custodian: r.address(r.indexed()),
			FromDepositID: r.word().uint256(), ToDepositID: r.word().uint256(), Assets: r.word().uint256()}
	case KindWithdrawalsSettled:
		return WithdrawalsSettled{SettlementID: r.indexed().uint256(), Funder: r.address(r.indexed()),
			RequestCount: r.word().uint256(), Shares: r.word().uint256(), Assets: r.word().uint256(), NavPerShare: r.word().uint256()}
	}
	return nil
}

// reader walks the indexed and the other arguments of a log whose lengths were checked, and keeps the first error.
type reader struct {
	topics []common.Hash
	data   []byte
	err    error
}

// word is one argument, big-endian.
type word []byte

func (r *reader) indexed() word {
	w := r.topics[0][:]
	r.topics = r.topics[1:]
	return w
}

func (r *reader) word() word {
	w := r.data[:32]
	r.data = r.data[32:]
	return w
}

func (w word) uint256() *big.Int { return new(big.Int).SetBytes(w) }

func (r *reader) address(w word) common.Address {
	r.low(w, 20, "an address")
	return common.Address(w[12:])
}

func (r *reader) uint32(w word) uint32 {
	r.low(w, 4, "a uint32")
	return binary.BigEndian.Uint32(w[28:])
}

func (r *reader) uint64(w word) uint64 {
	r.low(w, 8, "a uint64")
	return binary.BigEndian.Uint64(w[24:])
}

// low checks that only the lowest n bytes of a word are used.
func (r *reader) low(w word, n int, what string) {
	for _, b := range w[:32-n] {
		if b != 0 && r.err == nil {
			r.err = fmt.Errorf("the word 0x%x does not fit %s", []byte(w), what)
		}
	}
}
