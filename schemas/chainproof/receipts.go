package chainproof

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"

	"github.com/navlog/navlog/schemas/event"
)

// UnprovableError says that a block cannot be proven, which says nothing against
// anybody: there is a transaction of a type that this program cannot encode, or the
// chain has no receipts root.
type UnprovableError struct{ Why string }

func (e *UnprovableError) Error() string { return e.Why }

// WrongError says that what a node gave contradicts itself: the receipts are not those
// of the header, or the header is not that of the block.
type WrongError struct{ Why string }

func (e *WrongError) Error() string { return e.Why }

// Receipts proves that receipts are all receipts of the block with this hash: the
// header's own fields hash to it, and the receipts to the header's receipts root. What
// is in a receipt's encoding is then the chain's, the address, topics and data of each
// log above all, and the order of all of them. Transaction hashes are in no receipt.
//
// It returns an *UnprovableError or a *WrongError.
func Receipts(hash common.Hash, header *types.Header, receipts types.Receipts) error {
	if own := header.Hash(); own != hash {
		return &WrongError{fmt.Sprintf("the fields of its header hash to %s: it is another block's, a field was changed, or the chain hashes its headers in another way and cannot be proven so", own)}
	}
	if header.ReceiptHash == (common.Hash{}) {
		return &UnprovableError{"its header has no receipts root"}
	}
	for i, r := range receipts {
		if r.Type > types.SetCodeTxType {
			return &UnprovableError{fmt.Sprintf("transaction %d is of type %#x, whose receipts are encoded in a way that is not known here", i, r.Type)}
		}
	}
	if root := types.DeriveSha(receipts, trie.NewStackTrie(nil)); root != header.ReceiptHash {
		return &WrongError{fmt.Sprintf("the root of its %d receipts is %s, but the header has %s: an amount, a topic or a receipt is not the chain's", len(receipts), root, header.ReceiptHash)}
	}
	return nil
}

// Logs are the logs of proven receipts that some addresses have emitted, in their
// order. Their place in the block is counted, not believed.
func Logs(hash common.Hash, header *types.Header, receipts types.Receipts, addresses map[common.Address]bool) (logs []*event.Log) {
	index := uint32(0)
	for tx, r := range receipts {
		for _, l := range r.Logs {
			if addresses[l.Address] {
				out := &event.Log{
					Address: l.Address.Bytes(), Data: l.Data, BlockNumber: header.Number.Uint64(), BlockHash: hash.Bytes(), BlockTime: header.Time,
					TxHash: r.TxHash.Bytes(), TxIndex: uint32(tx), LogIndex: index,
				}
				for _, t := range l.Topics {
					out.Topics = append(out.Topics, t.Bytes())
				}
				logs = append(logs, out)
			}
			index++
		}
	}
	return logs
}

// Chain proves that headers are a chain down from the block with this hash: each
// hashes to what the one above it names as its parent. They come highest first.
func Chain(hash common.Hash, headers []*types.Header) error {
	for i, h := range headers {
		if own := h.Hash(); own != hash {
			return &WrongError{fmt.Sprintf("the fields of the header of block %d hash to %s, but the block above it names %s as its parent", h.Number, own, hash)}
		}
		if i > 0 && new(big.Int).Add(h.Number, common.Big1).Cmp(headers[i-1].Number) != 0 {
			return &WrongError{fmt.Sprintf("block %d is the parent of block %d", h.Number, headers[i-1].Number)}
		}
		hash = h.ParentHash
	}
	return nil
}
