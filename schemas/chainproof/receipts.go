package chainproof

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
)

// Receipt is a receipt of any known chain: the fields of Ethereum's receipts, and those that the OP stack also hashes.
type Receipt struct {
	types.Receipt
	depositNonce, depositReceiptVersion *uint64 // of a deposit; nil if the node sends none
}

// UnmarshalJSON reads a receipt as a node sends it.
func (r *Receipt) UnmarshalJSON(text []byte) error {
	var all members
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	logs := all["logs"]
	if !all.none("logs") {
		all["logs"] = json.RawMessage("[]") // they are decoded below, each by the exact names
	}
	receipt, err := exactly[types.Receipt](all)
	if err != nil {
		return err
	}
	var each []members
	if err := json.Unmarshal(logs, &each); err != nil {
		return fmt.Errorf("logs: %w", err)
	}
	receipt.Logs = make([]*types.Log, len(each))
	for i, l := range each {
		if receipt.Logs[i], err = exactly[types.Log](l); err != nil {
			return fmt.Errorf("log %d: %w", i, err)
		}
	}
	*r = Receipt{Receipt: *receipt}
	if r.Type != opDeposit {
		return nil
	}
	deposit, err := exactly[struct {
		Nonce   *hexutil.Uint64 `json:"depositNonce"`
		Version *hexutil.Uint64 `json:"depositReceiptVersion"`
	}](all)
	if err == nil {
		r.depositNonce, r.depositReceiptVersion = (*uint64)(deposit.Nonce), (*uint64)(deposit.Version)
	}
	return err
}

// Receipts are the receipts of a block, in order.
type Receipts []*Receipt

// Types of transactions that Ethereum does not have.
const (
	arbitrumDeposit         = 0x64
	arbitrumUnsigned        = 0x65
	arbitrumContract        = 0x66
	arbitrumRetry           = 0x68
	arbitrumSubmitRetryable = 0x69
	arbitrumInternal        = 0x6a
	arbitrumLegacy          = 0x78 // from before Nitro
	opPostExec              = 0x7d
	opDeposit               = 0x7e // Scroll's messages from Ethereum have it too
	polygonStateSync        = 0x7f // since Polygon's receipts root includes them
)

// encodable are the types whose encoding was verified: a root mismatch with receipts of other types does not mean that
// a node is wrong.
var encodable = map[uint8]bool{
	types.LegacyTxType: true, types.AccessListTxType: true, types.DynamicFeeTxType: true, types.BlobTxType: true,
	types.SetCodeTxType: true,
	arbitrumDeposit:     true, arbitrumUnsigned: true, arbitrumContract: true, arbitrumRetry: true,
	arbitrumSubmitRetryable: true,
	arbitrumInternal:        true, arbitrumLegacy: true, opPostExec: true, opDeposit: true, polygonStateSync: true,
}

// encoding is the RLP of a receipt. Only deposits of the OP stack have the last two fields.
type encoding struct {
	StateOrStatus         []byte // state root before Byzantium, then empty or 1
	CumulativeGasUsed     uint64
	Bloom                 types.Bloom
	Logs                  []*types.Log
	DepositNonce          *uint64 `rlp:"optional"`
	DepositReceiptVersion *uint64 `rlp:"optional"`
}

// consensus returns the encoding of the receipt in the block's receipts root: its type byte, which only legacy ones
// lack, and RLP.
//
// The rules are from three chains' own clients, each in Receipts.EncodeIndex of its core/types/receipt.go (op-geth at
// 7b56c731, Arbitrum's go-ethereum at 49b38a63, Polygon's bor at 23d82ff2); the OP stack's 0x7d is in
// op-core/types/receipt_consensus.go of optimism v1.19.6:
//
//   - Receipts of Arbitrum's and Polygon's types are encoded like Ethereum's, after the type byte; those of Arbitrum's
//     legacy transactions have no such byte.
//   - Deposits of the OP stack have a nonce since Regolith, which was left out of the hash by mistake. Since Canyon
//     they also have a version; if there is one, both are hashed. So the version determines the rule, and no fork date
//     is needed.
//
// An unknown type is encoded like Ethereum's: the root shows whether that is right.
func (r *Receipt) consensus() []byte {
	e := encoding{StateOrStatus: r.PostState, CumulativeGasUsed: r.CumulativeGasUsed, Bloom: r.Bloom, Logs: r.Logs}
	if len(r.PostState) == 0 && r.Status == types.ReceiptStatusSuccessful {
		e.StateOrStatus = []byte{1}
	}
	if r.Type == opDeposit && r.depositReceiptVersion != nil {
		e.DepositNonce, e.DepositReceiptVersion = r.depositNonce, r.depositReceiptVersion
	}
	var out bytes.Buffer
	if r.Type != types.LegacyTxType && r.Type != arbitrumLegacy {
		out.WriteByte(r.Type)
	}
	_ = rlp.Encode(&out, &e) // writing to a buffer cannot fail, and every field has RLP
	return out.Bytes()
}

func logsOf(consensus []byte) ([]*types.Log, error) {
	if len(consensus) > 0 && consensus[0] < 0xc0 { // not a list: the type byte
		consensus = consensus[1:]
	}
	var e encoding
	err := rlp.DecodeBytes(consensus, &e)
	return e.Logs, err
}

// split separates the receipts that are in a block's root from the receipt of Polygon's state sync. Until the sync
// became a transaction of its own type, its receipt came after the others and was in no root. It is recognized by its
// transaction hash, which is derived from the block (GetDerivedBorTxHash in core/types/bor_receipt.go of bor).
func (rs Receipts) split(number uint64, hash common.Hash) (rooted Receipts, stateSync *Receipt) {
	key := binary.BigEndian.AppendUint64([]byte("matic-bor-receipt-"), number)
	last := len(rs) - 1
	if last < 0 || rs[last].Type != types.LegacyTxType || rs[last].TxHash != crypto.Keccak256Hash(key, hash[:]) {
		return rs, nil
	}
	return rs[:last], rs[last]
}

// ReadReceipts reads the response of eth_getBlockReceipts; nil for null.
func ReadReceipts(raw []byte) (Receipts, error) {
	var receipts Receipts
	if err := json.Unmarshal(raw, &receipts); err != nil {
		return nil, fmt.Errorf("the receipts cannot be read: %w", err)
	}
	for i, r := range receipts {
		if r == nil {
			return nil, fmt.Errorf("receipt %d is null", i)
		}
	}
	return receipts, nil
}
