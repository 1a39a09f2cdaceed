package chainproof

import (
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/ethereum/go-ethereum/trie/trienode"

	"github.com/navlog/navlog/schemas/event"
)

// UnprovableError reports that something cannot be proven, without any party being wrong: a transaction has a type that
// this program cannot encode, or the chain has no receipts root.
type UnprovableError struct{ Why string }

func (e *UnprovableError) Error() string { return e.Why }

// WrongError reports that a node's responses contradict each other: the receipts do not match the header, or the header
// does not match the block's hash.
type WrongError struct{ Why string }

func (e *WrongError) Error() string { return e.Why }

// Block is a block whose header and receipts match its hash.
type Block struct {
	hash      common.Hash
	header    *types.Header
	receipts  Receipts
	stateSync *Receipt // Polygon's, which cannot be proven
	trie      *trie.Trie
}

// Prove proves that receipts are all receipts of the block with this hash: the header's fields hash to the block's
// hash, and the receipts to the header's receipts root. This proves everything in the encoding of the receipts, above
// all the address, topics and data of each log, and their order. Transaction hashes are not in receipts.
//
// It returns an *UnprovableError or a *WrongError.
func Prove(hash common.Hash, header *types.Header, receipts Receipts) (*Block, error) {
	if own := header.Hash(); own != hash {
		return nil, &WrongError{fmt.Sprintf("the fields of its header hash to %s: it is another block's, a field was "+
			"changed, or the chain hashes its headers in another way and cannot be proven like this", own)}
	}
	if header.ReceiptHash == (common.Hash{}) {
		return nil, &UnprovableError{"its header has no receipts root"}
	}
	b := &Block{hash: hash, header: header, trie: trie.NewEmpty(nil)}
	b.receipts, b.stateSync = receipts.split(header.Number.Uint64(), hash)
	for i, r := range b.receipts {
		if err := b.trie.Update(rlp.AppendUint64(nil, uint64(i)), r.consensus()); err != nil {
			return nil, fmt.Errorf("put receipt %d into the trie: %w", i, err)
		}
	}
	if root := b.trie.Hash(); root != header.ReceiptHash {
		if i := slices.IndexFunc(b.receipts, func(r *Receipt) bool { return !encodable[r.Type] }); i >= 0 {
			return nil, &UnprovableError{fmt.Sprintf("transaction %d is of type %#x, whose encoding of receipts is unknown", i,
				b.receipts[i].Type)}
		}
		return nil, &WrongError{fmt.Sprintf("the root of its %d receipts is %s, but the header has %s: an amount, a topic "+
			"or a receipt is not the chain's", len(b.receipts), root, header.ReceiptHash)}
	}
	return b, nil
}

// Logs returns the logs that the addresses emitted, in order. Their log indexes are counted here, not taken from the
// node.
func (b *Block) Logs(addresses map[common.Address]bool) (logs []*event.Log) {
	index := uint32(0)
	for tx, r := range b.receipts {
		for _, l := range r.Logs {
			if addresses[l.Address] {
				out := &event.Log{
					Address: l.Address.Bytes(), BlockNumber: b.header.Number.Uint64(), BlockHash: b.hash.Bytes(),
					BlockTime: b.header.Time,
					TxHash:    r.TxHash.Bytes(), TxIndex: uint32(tx), LogIndex: index,
				}
				out.SetData(l.Data)
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

// Unproven returns an *UnprovableError if the log with this index in the block, counted from 0, is one of Polygon's
// state sync. It returns nil for a log that is proven or does not exist.
func (b *Block) Unproven(index uint32) error {
	first := 0
	for _, r := range b.receipts {
		first += len(r.Logs)
	}
	if at := int(index) - first; b.stateSync == nil || at < 0 || at >= len(b.stateSync.Logs) {
		return nil
	}
	return &UnprovableError{fmt.Sprintf("log %d is of the state sync of a Polygon chain, whose receipt is in no "+
		"receipts root", index)}
}

// Log returns the log with this index in the block, counted from 0, and its proof; nil if the block has fewer logs. For
// a log that cannot be proven it returns an *UnprovableError.
func (b *Block) Log(index uint32) (*types.Log, *Proof, error) {
	left := int(index)
	for tx, r := range b.receipts {
		if left >= len(r.Logs) {
			left -= len(r.Logs)
			continue
		}
		header, err := rlp.EncodeToBytes(b.header)
		if err != nil {
			return nil, nil, fmt.Errorf("encode the header: %w", err)
		}
		var nodes trienode.ProofList
		if err := b.trie.Prove(rlp.AppendUint64(nil, uint64(tx)), &nodes); err != nil {
			return nil, nil, fmt.Errorf("find the path to receipt %d: %w", tx, err)
		}
		p := &Proof{Header: header, TransactionIndex: uint64(tx), Receipt: r.consensus(), LogInReceipt: left}
		for _, node := range nodes {
			p.Path = append(p.Path, hexutil.Bytes(node))
		}
		return r.Logs[left], p, nil
	}
	return nil, nil, b.Unproven(index)
}
