package contracts

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
)

// Encode returns the topics and data of the log that a vault emits for e, so that tests can build a chain by hand. It
// fails if a *big.Int is nil, negative or longer than 256 bits.
func Encode(e Event) (topics []common.Hash, data []byte, err error) {
	l := &layouts[e.Kind()]
	w := writer{words: append(make([]common.Hash, 0, l.topics+l.words), l.topic)}
	e.arguments(&w)
	if w.err != nil {
		return nil, nil, fmt.Errorf("encode %s: %w", l.name, w.err)
	}
	data = make([]byte, 0, 32*l.words)
	for _, word := range w.words[l.topics:] {
		data = append(data, word[:]...)
	}
	return w.words[:l.topics:l.topics], data, nil
}

// writer collects the words of an event: topics first, in the order in which each event declares them.
type writer struct {
	words []common.Hash
	err   error
}

func (w *writer) uint256(v *big.Int) {
	if v == nil || v.Sign() < 0 || v.BitLen() > 256 {
		if w.err == nil {
			w.err = fmt.Errorf("%v is not an unsigned 256-bit integer", v)
		}
		v = new(big.Int)
	}
	w.words = append(w.words, common.BigToHash(v))
}

func (w *writer) uint64(v uint64) { w.uint256(new(big.Int).SetUint64(v)) }

func (w *writer) address(a common.Address) {
	w.words = append(w.words, common.BytesToHash(a[:]))
}

func (e DepositAccepted) arguments(w *writer) {
	w.uint256(e.DepositID)
	w.address(e.Owner)
	w.uint64(uint64(e.PartnerID))
	w.address(e.Sender)
	w.uint256(e.Assets)
	w.uint256(e.Shares)
}

func (e WithdrawalRequested) arguments(w *writer) {
	w.uint256(e.RequestIndex)
	w.address(e.Owner)
	w.uint64(uint64(e.PartnerID))
	w.address(e.Receiver)
	w.uint256(e.Shares)
	w.uint256(e.AssetsEstimate)
	w.uint64(e.ExpiresAt)
}

func (e WithdrawalFunded) arguments(w *writer) {
	w.uint256(e.RequestIndex)
	w.address(e.Owner)
	w.uint256(e.SettlementID)
	w.uint256(e.Shares)
	w.uint256(e.Assets)
}

func (e WithdrawalClaimed) arguments(w *writer) {
	w.uint256(e.RequestIndex)
	w.address(e.Owner)
	w.address(e.Receiver)
	w.uint256(e.Shares)
	w.uint256(e.Assets)
}

func (e WithdrawalCancelled) arguments(w *writer) {
	w.uint256(e.RequestIndex)
	w.address(e.Owner)
	w.uint256(e.Shares)
}

func (e WithdrawalExpired) arguments(w *writer) {
	w.uint256(e.RequestIndex)
	w.address(e.Owner)
	w.uint256(e.Shares)
}

func (e NavUpdated) arguments(w *writer) {
	w.uint256(e.NavID)
	w.address(e.Updater)
	w.uint256(e.NavPerShare)
	w.uint256(e.TotalAssets)
	w.uint256(e.TotalSupply)
}

func (e DepositsSwept) arguments(w *writer) {
	w.uint256(e.SweepID)
	w.address(e.Custodian)
	w.uint256(e.FromDepositID)
	w.uint256(e.ToDepositID)
	w.uint256(e.Assets)
}

func (e WithdrawalsSettled) arguments(w *writer) {
	w.uint256(e.SettlementID)
	w.address(e.Funder)
	w.uint256(e.RequestCount)
	w.uint256(e.Shares)
	w.uint256(e.Assets)
	w.uint256(e.NavPerShare)
}
