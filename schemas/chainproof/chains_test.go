package chainproof

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
)

// encoded encodes a receipt by hand: its type byte, if it has one, and a list of its four members and the members that
// a chain adds.
func encoded(t *testing.T, r *Receipt, kind []byte, more ...any) []byte {
	t.Helper()
	list := append([]any{new(big.Int).SetUint64(r.Status), r.CumulativeGasUsed, r.Bloom, r.Logs}, more...)
	out, err := rlp.EncodeToBytes(list)
	if err != nil {
		t.Fatal(err)
	}
	return append(slices.Clone(kind), out...)
}

// raw are receipts that are encoded already.
type raw [][]byte

func (r raw) Len() int                           { return len(r) }
func (r raw) EncodeIndex(i int, w *bytes.Buffer) { w.Write(r[i]) }

func rootOf(receipts ...[]byte) common.Hash {
	return types.DeriveSha(raw(receipts), trie.NewStackTrie(nil))
}

// Receipts with the types of other chains are proven, each log with a path that a reader can follow, and the rules of
// the chains are not confused.
func TestReceiptsOfOtherChains(t *testing.T) {
	nonce, version := uint64(4_012_991), uint64(1)
	for name, c := range map[string]struct {
		kind           uint8
		nonce, version *uint64
		prefix         []byte
		more           []any
	}{
		"a deposit of Bedrock":  {kind: opDeposit, prefix: []byte{0x7e}},
		"a deposit of Regolith": {kind: opDeposit, nonce: &nonce, prefix: []byte{0x7e}},
		"a deposit of Canyon": {kind: opDeposit, nonce: &nonce, version: &version, prefix: []byte{0x7e},
			more: []any{nonce, version}},
		"the OP stack's after execution":       {kind: opPostExec, prefix: []byte{0x7d}},
		"Polygon's state sync in the root":     {kind: polygonStateSync, prefix: []byte{0x7f}},
		"a transaction before Nitro":           {kind: arbitrumLegacy},
		"a deposit of Arbitrum":                {kind: arbitrumDeposit, prefix: []byte{0x64}},
		"an unsigned transaction of Arbitrum":  {kind: arbitrumUnsigned, prefix: []byte{0x65}},
		"a contract's transaction of Arbitrum": {kind: arbitrumContract, prefix: []byte{0x66}},
		"a retry of Arbitrum":                  {kind: arbitrumRetry, prefix: []byte{0x68}},
		"a submitted retryable of Arbitrum":    {kind: arbitrumSubmitRetryable, prefix: []byte{0x69}},
		"the start of a block of Arbitrum":     {kind: arbitrumInternal, prefix: []byte{0x6a}},
	} {
		t.Run(name, func(t *testing.T) {
			h, receipts := someBlock(types.DynamicFeeTxType, types.LegacyTxType, types.SetCodeTxType)
			special := receipts[1]
			special.Type, special.depositNonce, special.depositReceiptVersion = c.kind, c.nonce, c.version
			h.ReceiptHash = rootOf(encoded(t, receipts[0], []byte{2}), encoded(t, special, c.prefix, c.more...),
				encoded(t, receipts[2], []byte{4}))
			fresh := asJSON(t, receipts)
			b, err := Prove(h.Hash(), h, fresh)
			if err != nil {
				t.Fatal(err)
			}
			for index := range uint32(6) {
				want := receipts[index/2].Logs[index%2]
				l, p, err := b.Log(index)
				if err != nil || l == nil {
					t.Fatalf("log %d: %v, %v", index, l, err)
				}
				_, got, err := p.Verify(h.Hash())
				if err != nil || got.Address != want.Address || !bytes.Equal(got.Data, want.Data) {
					t.Errorf("log %d is verified as %v: %v", index, got, err)
				}
			}
			special.Logs[0].Data[0] ^= 1
			var wrong *WrongError
			if err := proof(h.Hash(), h, receipts); !errors.As(err, &wrong) {
				t.Errorf("with another amount: %v", err)
			}
			special.Logs[0].Data[0] ^= 1
			if c.kind != opDeposit {
				return
			}
			two := uint64(2)
			for part, spoil := range map[string]func(){
				"no version":      func() { special.depositReceiptVersion = nil },
				"another version": func() { special.depositReceiptVersion = &two },
				"another nonce":   func() { special.depositNonce = &two },
			} {
				special.depositNonce, special.depositReceiptVersion = c.nonce, c.version
				spoil()
				hashed := c.version != nil || part == "another version"
				if err := proof(h.Hash(), h, receipts); hashed != (errors.As(err, &wrong)) {
					t.Errorf("%s: %v", part, err)
				}
			}
		})
	}
}

// asJSON returns receipts as a node sends them.
func asJSON(t *testing.T, receipts Receipts) Receipts {
	t.Helper()
	var all []map[string]any
	for _, r := range receipts {
		text, err := json.Marshal(r.Receipt)
		var members map[string]any
		if err := errors.Join(err, json.Unmarshal(text, &members)); err != nil {
			t.Fatal(err)
		}
		if r.depositNonce != nil {
			members["depositNonce"] = fmt.Sprintf("%#x", *r.depositNonce)
		}
		if members["depositReceiptVersion"] = nil; r.depositReceiptVersion != nil {
			members["depositReceiptVersion"] = fmt.Sprintf("%#x", *r.depositReceiptVersion)
		}
		all = append(all, members)
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	out, err := ReadReceipts(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The receipt of Polygon's state sync comes last and is in no root: the other receipts are proven, and its logs are
// reported as unprovable, not as wrong.
func TestPolygonsStateSync(t *testing.T) {
	h, receipts := someBlock(types.LegacyTxType, types.DynamicFeeTxType)
	single, _ := someBlock()
	hash := func(h *types.Header) common.Hash {
		return crypto.Keccak256Hash([]byte("matic-bor-receipt-"), common.LeftPadBytes(h.Number.Bytes(), 8), h.Hash().Bytes())
	}
	sync := &Receipt{Receipt: types.Receipt{Status: 1, TxHash: hash(h),
		Logs: []*types.Log{{Address: common.Address{0xa2}, Topics: []common.Hash{}}}}}
	b, err := Prove(h.Hash(), h, append(slices.Clone(receipts), sync))
	if err != nil {
		t.Fatal(err)
	}
	if logs := b.Logs(map[common.Address]bool{{0xa2}: true}); len(logs) != 0 {
		t.Errorf("an unprovable log is among those of the block: %v", logs)
	}
	var unprovable *UnprovableError
	for index := range uint32(6) {
		l, p, err := b.Log(index)
		if index == 4 {
			if !errors.As(err, &unprovable) || !strings.Contains(err.Error(), "log 4 is of the state sync") || l != nil ||
				p != nil {
				t.Errorf("the log of the state sync: %v, %v", l, err)
			}
		} else if err != nil || (l == nil) != (index > 4) {
			t.Errorf("log %d: %v, %v", index, l, err)
		}
		if un := b.Unproven(index); (un != nil) != (index == 4) {
			t.Errorf("log %d is unproven: %v", index, un)
		}
	}
	sync.TxHash = hash(single)
	if b, err := Prove(single.Hash(), single, Receipts{sync}); err != nil || b.Unproven(0) == nil {
		t.Errorf("the only receipt of its block: %v", err)
	}
	var wrong *WrongError
	if err := proof(h.Hash(), h, append(slices.Clone(receipts), sync)); !errors.As(err, &wrong) {
		t.Errorf("the state sync of another block: %v", err)
	}
	sync.TxHash = hash(h)
	if err := proof(h.Hash(), h, Receipts{receipts[0], sync, receipts[1]}); !errors.As(err, &wrong) {
		t.Errorf("a state sync in the middle: %v", err)
	}
}

// Recorded receipts of a block of an OP stack test network under Regolith, with a deposit: see testdata/README.md.
func TestReceiptsOfRegolith(t *testing.T) {
	text, err := os.ReadFile("testdata/op-regolith-receipts.json")
	if err != nil {
		t.Fatal(err)
	}
	receipts, err := ReadReceipts(text)
	if err != nil {
		t.Fatal(err)
	}
	h, _ := someBlock()
	h.ReceiptHash = common.HexToHash("0xe255fed45eae7ede0556fe4fabc77b0d294d18781a5a581cab09127bc4cd9ffb")
	if receipts[0].Type != opDeposit || receipts[0].depositNonce == nil {
		t.Fatalf("the first receipt is of type %#x with nonce %v", receipts[0].Type, receipts[0].depositNonce)
	}
	if err := proof(h.Hash(), h, receipts); err != nil {
		t.Error(err)
	}
	var wrong *WrongError
	for i, r := range receipts {
		for _, l := range r.Logs {
			l.Topics[len(l.Topics)-1][31] ^= 1
			if err := proof(h.Hash(), h, receipts); !errors.As(err, &wrong) {
				t.Errorf("receipt %d with another topic: %v", i, err)
			}
			l.Topics[len(l.Topics)-1][31] ^= 1
		}
	}
}

// Recorded headers of OP Mainnet hash to the block hashes that the chain itself stores, with the fields that a node
// sends: see testdata/README.md.
func TestHeadersOfOPMainnet(t *testing.T) {
	text, err := os.ReadFile("testdata/op-mainnet-headers.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded []struct {
		Hash   common.Hash
		Header hexutil.Bytes
	}
	if err := json.Unmarshal(text, &recorded); err != nil || len(recorded) != 3 {
		t.Fatalf("%d headers: %v", len(recorded), err)
	}
	for _, r := range recorded {
		var given types.Header
		if err := rlp.DecodeBytes(r.Header, &given); err != nil {
			t.Fatal(err)
		}
		members := map[string]any{}
		fields, err := json.Marshal(&given)
		if err := errors.Join(err, json.Unmarshal(fields, &members)); err != nil {
			t.Fatal(err)
		}
		members["hash"], members["totalDifficulty"], members["withdrawals"], members["uncles"] = r.Hash, "0x0", []any{},
			[]any{}
		answer, _ := json.Marshal(members)
		h, err := ReadHeader(answer)
		if err != nil || h.Hash() != r.Hash {
			t.Errorf("block %d hashes to %s instead of %s: %v", given.Number, h.Hash(), r.Hash, err)
		}
	}
}
