package chainproof

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/golang/snappy"
)

// someBlock returns a block with a receipt of each of these transaction types of Ethereum, with two logs each. Its root
// is computed by go-ethereum.
func someBlock(kinds ...uint8) (*types.Header, Receipts) {
	var receipts types.Receipts
	for i, kind := range kinds {
		r := &types.Receipt{Type: kind, Status: uint64(i % 2), CumulativeGasUsed: uint64(i+1) * 21_000,
			TxHash: common.BigToHash(big.NewInt(int64(i)))}
		for n := range 2 {
			r.Logs = append(r.Logs, &types.Log{
				Address: common.BigToAddress(big.NewInt(int64(0xa1 + n))),
				Topics:  []common.Hash{common.BigToHash(big.NewInt(int64(i)))}, Data: bytes.Repeat([]byte{byte(i + 1)}, 32),
			})
		}
		r.Bloom = types.CreateBloom(r)
		receipts = append(receipts, r)
	}
	h := &types.Header{Number: big.NewInt(7), Time: 1_700_000_000, Difficulty: big.NewInt(0), BaseFee: big.NewInt(9),
		ReceiptHash: types.DeriveSha(receipts, trie.NewStackTrie(nil))}
	return h, wrap(receipts)
}

func wrap(receipts types.Receipts) (out Receipts) {
	for _, r := range receipts {
		out = append(out, &Receipt{Receipt: *r})
	}
	return out
}

// proof only reports whether Prove accepts the block.
func proof(hash common.Hash, h *types.Header, r Receipts) error {
	_, err := Prove(hash, h, r)
	return err
}

var allTypes = []uint8{types.LegacyTxType, types.AccessListTxType, types.DynamicFeeTxType, types.BlobTxType,
	types.SetCodeTxType}

// Receipts of all transaction types are proven, and any change to one is detected.
func TestReceipts(t *testing.T) {
	var wrong *WrongError
	for name, change := range map[string]func(h *types.Header, r Receipts) Receipts{
		"nothing":         func(_ *types.Header, r Receipts) Receipts { return r },
		"an amount":       func(_ *types.Header, r Receipts) Receipts { r[3].Logs[1].Data[31] ^= 1; return r },
		"a topic":         func(_ *types.Header, r Receipts) Receipts { r[4].Logs[0].Topics[0][0] ^= 1; return r },
		"an address":      func(_ *types.Header, r Receipts) Receipts { r[0].Logs[0].Address[0] ^= 1; return r },
		"a bloom":         func(_ *types.Header, r Receipts) Receipts { r[1].Bloom[0] ^= 1; return r },
		"a status":        func(_ *types.Header, r Receipts) Receipts { r[2].Status ^= 1; return r },
		"a type":          func(_ *types.Header, r Receipts) Receipts { r[2].Type = types.BlobTxType; return r },
		"a missing log":   func(_ *types.Header, r Receipts) Receipts { r[2].Logs = r[2].Logs[:1]; return r },
		"a receipt":       func(_ *types.Header, r Receipts) Receipts { return r[:4] },
		"the order":       func(_ *types.Header, r Receipts) Receipts { slices.Reverse(r); return r },
		"the root":        func(h *types.Header, r Receipts) Receipts { h.ReceiptHash[0] ^= 1; return r },
		"a header's time": func(h *types.Header, r Receipts) Receipts { h.Time++; return r },
	} {
		h, r := someBlock(allTypes...)
		hash := h.Hash()
		r = change(h, r)
		if err := proof(hash, h, r); (err == nil) != (name == "nothing") || err != nil && !errors.As(err, &wrong) {
			t.Errorf("with %s changed: %v", name, err)
		}
	}
	h, _ := someBlock()
	if err := proof(h.Hash(), h, nil); err != nil {
		t.Errorf("a block without transactions: %v", err)
	}
}

// A receipt that cannot be encoded is not reported as wrong, and one of an unknown type that turns out to be encoded
// like Ethereum's is proven.
func TestUnprovableReceipts(t *testing.T) {
	var unprovable *UnprovableError
	h, r := someBlock(types.LegacyTxType, types.DynamicFeeTxType)
	r[1].Type = 0x7b
	if err := proof(h.Hash(), h, r); !errors.As(err, &unprovable) ||
		!strings.Contains(err.Error(), "transaction 1 is of type 0x7b") {
		t.Errorf("a transaction of an unknown type: %v", err)
	}
	h.ReceiptHash = rootOf(encoded(t, r[0], nil), encoded(t, r[1], []byte{0x7b}))
	if err := proof(h.Hash(), h, r); err != nil {
		t.Errorf("an unknown type that is encoded like Ethereum's: %v", err)
	}
	h, r = someBlock(types.LegacyTxType)
	h.ReceiptHash = common.Hash{}
	if err := proof(h.Hash(), h, r); !errors.As(err, &unprovable) {
		t.Errorf("a header without a root: %v", err)
	}
}

func TestLogsOfReceipts(t *testing.T) {
	h, r := someBlock(allTypes...)
	b, err := Prove(h.Hash(), h, r)
	if err != nil {
		t.Fatal(err)
	}
	logs := b.Logs(map[common.Address]bool{common.BigToAddress(big.NewInt(0xa2)): true})
	if len(logs) != len(allTypes) {
		t.Fatalf("%d receipts have %d logs of one address", len(allTypes), len(logs))
	}
	for i, l := range logs {
		if l.LogIndex != uint32(2*i+1) || l.TxIndex != uint32(i) || l.BlockNumber != 7 || l.BlockTime != h.Time ||
			l.Data[0] != byte(i+1) || !bytes.Equal(l.TxHash, r[i].TxHash[:]) || len(l.Topics) != 1 {
			t.Errorf("log %d is %v", i, l)
		}
	}
}

// Recorded blocks of Sepolia, from the tests of go-ethereum's module: all of them are proven, and one changed quantity
// is detected. Their receipts have no logs.
func TestReceiptsOfSepolia(t *testing.T) {
	blocks := sepolia(t)
	kinds := map[uint8]int{}
	for i, b := range blocks {
		hash := b.header.Hash()
		if i+1 < len(blocks) && blocks[i+1].header.ParentHash != hash {
			t.Fatalf("block %d is not the parent of the next one", b.header.Number)
		}
		if err := proof(hash, b.header, b.receipts); err != nil {
			t.Fatalf("block %d: %v", b.header.Number, err)
		}
		for _, r := range b.receipts {
			kinds[r.Type]++
			r.CumulativeGasUsed++
			var wrong *WrongError
			if err := proof(hash, b.header, b.receipts); !errors.As(err, &wrong) {
				t.Fatalf("block %d with another quantity: %v", b.header.Number, err)
			}
			r.CumulativeGasUsed--
		}
	}
	if len(blocks) < 8000 || kinds[types.LegacyTxType] == 0 || kinds[types.DynamicFeeTxType] == 0 {
		t.Errorf("%d blocks with receipts by type %v are too few for this test", len(blocks), kinds)
	}
}

type recorded struct {
	header   *types.Header
	receipts Receipts
}

// sepolia reads an era1 file, whose entries are a type, a length, and snappy-framed RLP.
// See https://github.com/eth-clients/e2store-format-specs.
func sepolia(t *testing.T) (blocks []recorded) {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/ethereum/go-ethereum").Output()
	if err != nil {
		t.Fatalf("find go-ethereum's module: %v", err)
	}
	file, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)),
		"core/rawdb/eradb/testdata/sepolia-00021-b8814b14.era1"))
	if err != nil {
		t.Fatal(err)
	}
	const header, receipts = 0x03, 0x05
	for len(file) >= 8 {
		kind, size := binary.LittleEndian.Uint16(file), binary.LittleEndian.Uint32(file[2:])
		entry := file[8 : 8+size]
		file = file[8+size:]
		if kind != header && kind != receipts {
			continue
		}
		plain, err := io.ReadAll(snappy.NewReader(bytes.NewReader(entry)))
		if err != nil {
			t.Fatal(err)
		}
		if kind == header {
			blocks = append(blocks, recorded{header: new(types.Header)})
			err = rlp.DecodeBytes(plain, blocks[len(blocks)-1].header)
		} else {
			var receipts types.Receipts
			err = rlp.DecodeBytes(plain, &receipts)
			blocks[len(blocks)-1].receipts = wrap(receipts)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return blocks
}
