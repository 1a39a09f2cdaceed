package chainproof

import (
	"bytes"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/ethereum/go-ethereum/trie/trienode"
)

// Proof shows that a log is in the block with a hash, to somebody who knows the hash and
// nothing else of the chain. The names are those of the HTTP API.
type Proof struct {
	// Header is the RLP of the block's header: its Keccak-256 is the block's hash.
	Header hexutil.Bytes `json:"header"`
	// TransactionIndex is the place of the transaction in its block, from 0. Its RLP is the
	// key of the receipt in the trie.
	TransactionIndex uint64 `json:"transactionIndex"`
	// Path are the nodes of the trie from the header's receipts root to the receipt.
	Path []hexutil.Bytes `json:"path"`
	// Receipt is the receipt as it stands at the end of the path: the byte of its
	// transaction type, which old ones lack, and RLP.
	Receipt hexutil.Bytes `json:"receipt"`
	// LogInReceipt is the place of the log in the receipt, from 0.
	LogInReceipt int `json:"logInReceipt"`
}

// Size is the bytes of it.
func (p *Proof) Size() int {
	size := len(p.Header) + len(p.Receipt)
	for _, node := range p.Path {
		size += len(node)
	}
	return size
}

// Block is a block whose header and receipts are those that its hash stands for.
type Block struct {
	header   []byte
	receipts types.Receipts
	trie     *trie.Trie
}

// Prove is Receipts, and gives what proofs of the block's logs are made of.
func Prove(hash common.Hash, header *types.Header, receipts types.Receipts) (*Block, error) {
	if err := Receipts(hash, header, receipts); err != nil {
		return nil, err
	}
	b := &Block{receipts: receipts, trie: trie.NewEmpty(nil)}
	var err error
	if b.header, err = rlp.EncodeToBytes(header); err != nil {
		return nil, fmt.Errorf("encode the header: %w", err)
	}
	for i := range receipts {
		if err := b.trie.Update(rlp.AppendUint64(nil, uint64(i)), b.receipt(i)); err != nil {
			return nil, fmt.Errorf("put receipt %d into the trie: %w", i, err)
		}
	}
	return b, nil
}

func (b *Block) receipt(i int) []byte {
	var out bytes.Buffer
	b.receipts.EncodeIndex(i, &out)
	return out.Bytes()
}

// Log gives the log with an index in the block, counted from 0, and its proof; nil where
// the block has fewer.
func (b *Block) Log(index uint32) (*types.Log, *Proof, error) {
	left := int(index)
	for tx, r := range b.receipts {
		if left >= len(r.Logs) {
			left -= len(r.Logs)
			continue
		}
		var nodes trienode.ProofList
		if err := b.trie.Prove(rlp.AppendUint64(nil, uint64(tx)), &nodes); err != nil {
			return nil, nil, fmt.Errorf("find the path to receipt %d: %w", tx, err)
		}
		p := &Proof{Header: b.header, TransactionIndex: uint64(tx), Receipt: b.receipt(tx), LogInReceipt: left}
		for _, node := range nodes {
			p.Path = append(p.Path, hexutil.Bytes(node))
		}
		return r.Logs[left], p, nil
	}
	return nil, nil, nil
}

// Verify gives the log that is proven to be in the block with a hash, and the header of
// the block. Where it proves none, the error is a *WrongError.
func (p *Proof) Verify(hash common.Hash) (*types.Header, *types.Log, error) {
	if own := crypto.Keccak256Hash(p.Header); own != hash {
		return nil, nil, &WrongError{fmt.Sprintf("its header hashes to %s, which is not the block's hash %s", own, hash)}
	}
	header := new(types.Header)
	if err := rlp.DecodeBytes(p.Header, header); err != nil {
		return nil, nil, &WrongError{fmt.Sprintf("its header cannot be read: %v", err)}
	}
	nodes := trienode.NewProofSet()
	for _, node := range p.Path {
		if err := nodes.Put(crypto.Keccak256(node), node); err != nil {
			return nil, nil, err
		}
	}
	value, err := trie.VerifyProof(header.ReceiptHash, rlp.AppendUint64(nil, p.TransactionIndex), nodes)
	switch {
	case err != nil:
		return nil, nil, &WrongError{fmt.Sprintf("its path does not lead from the receipts root %s to receipt %d: %v", header.ReceiptHash, p.TransactionIndex, err)}
	case value == nil:
		return nil, nil, &WrongError{fmt.Sprintf("the block has no transaction %d", p.TransactionIndex)}
	case !bytes.Equal(value, p.Receipt):
		return nil, nil, &WrongError{"its receipt is not the one that the path leads to"}
	}
	receipt := new(types.Receipt)
	if err := receipt.UnmarshalBinary(value); err != nil {
		return nil, nil, &WrongError{fmt.Sprintf("its receipt cannot be read: %v", err)}
	}
	if p.LogInReceipt < 0 || p.LogInReceipt >= len(receipt.Logs) {
		return nil, nil, &WrongError{fmt.Sprintf("its receipt has %d logs, and none at %d", len(receipt.Logs), p.LogInReceipt)}
	}
	return header, receipt.Logs[p.LogInReceipt], nil
}
