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

// Proof shows that a log is in the block with a hash, to a reader who knows only that hash. The field names are those
// of the HTTP API.
type Proof struct {
	// Header is the RLP of the block's header: its Keccak-256 is the block's hash.
	Header hexutil.Bytes `json:"header"`
	// TransactionIndex is the index of the transaction in its block, from 0. Its RLP is the key of the receipt in the
	// trie.
	TransactionIndex uint64 `json:"transactionIndex"`
	// Path are the nodes of the trie from the header's receipts root to the receipt.
	Path []hexutil.Bytes `json:"path"`
	// Receipt is the receipt at the end of the path: its transaction type byte, which legacy ones lack, and RLP.
	Receipt hexutil.Bytes `json:"receipt"`
	// LogInReceipt is the index of the log in the receipt, from 0.
	LogInReceipt int `json:"logInReceipt"`
}

// Size returns the size of the proof in bytes.
func (p *Proof) Size() int {
	size := len(p.Header) + len(p.Receipt)
	for _, node := range p.Path {
		size += len(node)
	}
	return size
}

// Verify returns the log that is proven to be in the block with this hash, and the header of the block. If the proof is
// invalid, the error is a *WrongError.
func (p *Proof) Verify(hash common.Hash) (*types.Header, *types.Log, error) {
	header, logs, err := p.Transaction(hash)
	if err != nil {
		return nil, nil, err
	}
	return header, logs[p.LogInReceipt], nil
}

// Transaction is Verify for all logs of the transaction: the proven one is at LogInReceipt.
func (p *Proof) Transaction(hash common.Hash) (*types.Header, []*types.Log, error) {
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
		return nil, nil, &WrongError{fmt.Sprintf("its path does not lead from the receipts root %s to receipt %d: %v",
			header.ReceiptHash, p.TransactionIndex, err)}
	case value == nil:
		return nil, nil, &WrongError{fmt.Sprintf("the block has no transaction %d", p.TransactionIndex)}
	case !bytes.Equal(value, p.Receipt):
		return nil, nil, &WrongError{"its receipt is not the one that the path leads to"}
	}
	logs, err := logsOf(value)
	if err != nil {
		return nil, nil, &WrongError{fmt.Sprintf("its receipt cannot be read: %v", err)}
	}
	if p.LogInReceipt < 0 || p.LogInReceipt >= len(logs) {
		return nil, nil, &WrongError{fmt.Sprintf("its receipt has %d logs, and none at %d", len(logs), p.LogInReceipt)}
	}
	return header, logs, nil
}
