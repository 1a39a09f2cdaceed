package chainproof

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/ethereum/go-ethereum/trie/trienode"
)

// Every log of a block with all transaction types is proven, even by go-ethereum's own verifier, in a trie with one
// receipt and in one with several levels.
func TestProofOfEveryLog(t *testing.T) {
	many := bytes.Repeat(allTypes, 60)
	for _, kinds := range [][]uint8{{types.BlobTxType}, allTypes, many} {
		header, receipts := someBlock(kinds...)
		b, err := Prove(header.Hash(), header, receipts)
		if err != nil {
			t.Fatal(err)
		}
		for index := range uint32(2 * len(kinds)) {
			l, p, err := b.Log(index)
			if err != nil || l == nil {
				t.Fatalf("log %d: %v, %v", index, l, err)
			}
			h, got, err := p.Verify(header.Hash())
			if err != nil || h.Time != header.Time || got.Address != l.Address || got.Topics[0] != l.Topics[0] ||
				!bytes.Equal(got.Data, l.Data) {
				t.Fatalf("log %d is verified as %v: %v", index, got, err)
			}
			want := receipts[index/2].Logs[index%2]
			if got.Address != want.Address || !bytes.Equal(got.Data, want.Data) {
				t.Fatalf("log %d is %v", index, got)
			}
			set := trienode.NewProofSet()
			for _, node := range p.Path {
				_ = set.Put(crypto.Keccak256(node), node)
			}
			key, _ := rlp.EncodeToBytes(p.TransactionIndex)
			value, err := trie.VerifyProof(header.ReceiptHash, key, set)
			if err != nil || !bytes.Equal(value, p.Receipt) {
				t.Fatalf("log %d: go-ethereum finds %x: %v", index, value, err)
			}
			if encoded, _ := rlp.EncodeToBytes(header); !bytes.Equal(encoded, p.Header) ||
				crypto.Keccak256Hash(p.Header) != header.Hash() {
				t.Fatalf("log %d: the header is %x", index, p.Header)
			}
		}
		if l, p, err := b.Log(uint32(2 * len(kinds))); l != nil || p != nil || err != nil {
			t.Errorf("a missing log: %v, %v, %v", l, p, err)
		}
	}
	header, receipts := someBlock(allTypes...)
	receipts[0].Logs[0].Data[0] ^= 1
	if _, err := Prove(header.Hash(), header, receipts); err == nil {
		t.Error("receipts that are not the header's are proven")
	}
}

// Any change to a proof is detected.
func TestChangedProof(t *testing.T) {
	header, receipts := someBlock(bytes.Repeat(allTypes, 60)...)
	other, _ := someBlock(types.LegacyTxType)
	b, err := Prove(header.Hash(), header, receipts)
	if err != nil {
		t.Fatal(err)
	}
	for part, change := range map[string]func(p *Proof){
		"its header hashes to":                func(p *Proof) { p.Header[40] ^= 1 },
		"which is not the block's hash":       func(p *Proof) { p.Header, _ = rlp.EncodeToBytes(other) },
		"does not lead":                       func(p *Proof) { p.Path = p.Path[:len(p.Path)-1] },
		"does not lead from the receipts":     func(p *Proof) { p.Path[len(p.Path)-1][90] ^= 1 },
		"does not lead from":                  func(p *Proof) { p.TransactionIndex-- },
		"its receipt is not the one":          func(p *Proof) { p.Receipt[len(p.Receipt)-1] ^= 1 },
		"its receipt has 2 logs, and none at": func(p *Proof) { p.LogInReceipt = 2 },
		"and none at -1":                      func(p *Proof) { p.LogInReceipt = -1 },
	} {
		_, p, err := b.Log(301)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(p)
		fresh := new(Proof)
		if err := json.Unmarshal(text, fresh); err != nil {
			t.Fatal(err)
		}
		if _, _, err := fresh.Verify(header.Hash()); err != nil {
			t.Fatalf("as JSON: %v", err)
		}
		change(fresh)
		var wrong *WrongError
		if _, _, err := fresh.Verify(header.Hash()); !errors.As(err, &wrong) || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", part, err)
		}
	}
	small, few := someBlock(allTypes...)
	if b, err = Prove(small.Hash(), small, few); err != nil {
		t.Fatal(err)
	}
	_, p, _ := b.Log(3)
	p.TransactionIndex = 9
	if _, _, err := p.Verify(small.Hash()); err == nil ||
		!strings.Contains(err.Error(), "the block has no transaction 9") {
		t.Errorf("an index that is not in the trie: %v", err)
	}
	garbage := &Proof{Header: []byte{1}}
	if _, _, err := garbage.Verify(crypto.Keccak256Hash([]byte{1})); err == nil ||
		!strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("an invalid header: %v", err)
	}
}

// A header is read as a node sends it, and one with another hash rule is reported as such.
func TestReadHeader(t *testing.T) {
	header, receipts := someBlock(allTypes...)
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	if h, err := ReadHeader(text); err != nil || h.Hash() != header.Hash() {
		t.Errorf("a header: %v", err)
	}
	if h, err := ReadHeader([]byte("null")); h != nil || err != nil {
		t.Errorf("null: %v, %v", h, err)
	}
	edit := func(change func(map[string]any)) []byte {
		var members map[string]any
		if err := json.Unmarshal(text, &members); err != nil {
			t.Fatal(err)
		}
		change(members)
		out, _ := json.Marshal(members)
		return out
	}
	beside := edit(func(m map[string]any) {
		m["totalDifficulty"], m["milliTimestamp"], m["transactions"] = "0x0", "0x1", []any{}
	})
	if h, err := ReadHeader(beside); err != nil || h.Hash() != header.Hash() {
		t.Errorf("members that are not hashed: %v", err)
	}
	var unprovable *UnprovableError
	for part, raw := range map[string][]byte{
		`"extDataHash"`: edit(func(m map[string]any) {
			m["extDataHash"], m["hash"] = common.Hash{1},
				common.Hash{2}
		}),
		"no receipts root":                     edit(func(m map[string]any) { m["receiptsRoot"] = nil }),
		"does not have the fields of a header": edit(func(m map[string]any) { delete(m, "stateRoot") }),
	} {
		if _, err := ReadHeader(raw); !errors.As(err, &unprovable) || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", part, err)
		}
	}
	if h, err := ReadHeader(edit(func(m map[string]any) { m["gasLimit"] = "0x5" })); err != nil ||
		proof(header.Hash(), h, receipts) == nil {
		t.Errorf("a changed field must be left to Receipts: %v", err)
	}
	if _, err := ReadHeader([]byte(`[]`)); err == nil || errors.As(err, &unprovable) {
		t.Errorf("garbage: %v", err)
	}
}

// A header is sealed if its fields hash to its hash, with the fields of any fork. With a changed field it is not, but
// it is still plain unless a field is missing or unknown.
func TestSeals(t *testing.T) {
	one, root := uint64(1), common.Hash{1}
	header := func(change func(*types.Header)) *types.Header {
		h := &types.Header{UncleHash: types.EmptyUncleHash, Number: big.NewInt(9), Difficulty: new(big.Int),
			Extra: []byte("extra"), MixDigest: root}
		change(h)
		return h
	}
	given := func(h *types.Header, members string) []byte {
		raw, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Appendf(nil, `{"transactions":["0x01"],"size":"0x1",%s%s`, members, raw[1:])
	}
	london := func(h *types.Header) { h.BaseFee = big.NewInt(7) }
	prague := func(h *types.Header) {
		london(h)
		h.WithdrawalsHash, h.BlobGasUsed, h.ExcessBlobGas, h.ParentBeaconRoot, h.RequestsHash = &root, &one, &one, &root,
			&root
	}
	for name, h := range map[string]*types.Header{"frontier": header(func(*types.Header) {}), "london": header(london),
		"prague": header(prague)} {
		if seals, plain := Seals(given(h, ""), h.Hash()); !seals || !plain {
			t.Errorf("%s: sealed %v, plain %v", name, seals, plain)
		}
		if seals, plain := Seals(given(h, ""), common.Hash{2}); seals || !plain {
			t.Errorf("%s of another hash: sealed %v, plain %v", name, seals, plain)
		}
		bare := strings.Replace(string(given(h, "")), `"stateRoot"`, `"noRoot"`, 1)
		for what, text := range map[string]string{"an unknown field": string(given(h, `"extDataHash":"0x01",`)),
			"a missing field": bare} {
			changed := *h
			changed.GasUsed++
			if seals, plain := Seals([]byte(text), changed.Hash()); seals || plain {
				t.Errorf("%s with %s: sealed %v, plain %v", name, what, seals, plain)
			}
		}
		if seals, _ := Seals(given(h, `"unknown":null,`), h.Hash()); !seals {
			t.Errorf("%s with an unknown field that is null is not sealed", name)
		}
	}
	if seals, plain := Seals([]byte(`{"number":"0x1"`), common.Hash{}); seals || plain {
		t.Errorf("a truncated header: sealed %v, plain %v", seals, plain)
	}
}

// Only members with the exact names of fields are read. A member that only looks like one changes nothing, wherever it
// stands.
func TestExactNames(t *testing.T) {
	header, receipts := someBlock(allTypes...)
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range []string{`{"Nonce":5,` + string(text[1:]), string(text[:len(text)-1]) + `,"Nonce":5}`,
		string(text[:len(text)-1]) + `,"Number":null,"Hash":7,"receiptsroot":null}`} {
		if h, err := ReadHeader([]byte(raw)); err != nil || h == nil || h.Hash() != header.Hash() {
			t.Errorf("a header: %v, %v", h, err)
		}
		if h, err := ReadHeader([]byte(strings.Replace(raw, `"gasLimit"`, `"GasLimit"`, 1))); err == nil {
			t.Errorf("a header with another name of a field is read as %v", h)
		}
	}
	if text, err = json.Marshal(receipts); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"status": `"0x7"`, "logs": "[]", "data": `"0x07"`, "topics": "[]"} {
		extra := fmt.Sprintf("%q:%s", strings.ToUpper(name), value)
		own := fmt.Sprintf("%q:", name)
		raw := strings.ReplaceAll(string(text), own, extra+","+own)
		raw = strings.ReplaceAll(strings.ReplaceAll(raw, "}]", ","+extra+"}]"), "},{", ","+extra+"},{")
		got, err := ReadReceipts([]byte(raw))
		if err == nil {
			err = proof(header.Hash(), header, got)
		}
		if err != nil {
			t.Errorf("receipts with %s: %v", extra, err)
		}
	}
}

func TestReadReceipts(t *testing.T) {
	_, receipts := someBlock(allTypes...)
	text, err := json.Marshal(receipts)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ReadReceipts(text); err != nil || len(got) != len(receipts) {
		t.Errorf("%d receipts: %v", len(got), err)
	}
	if got, err := ReadReceipts([]byte("null")); got != nil || err != nil {
		t.Errorf("null: %v, %v", got, err)
	}
	for _, raw := range []string{`[null]`, `{}`,
		`[{"type":"0x0","cumulativeGasUsed":"0x1","logsBloom":"0x` + strings.Repeat("0",
			512) + `","logs":[null],"transactionHash":"0x` + strings.Repeat("0", 64) + `","gasUsed":"0x1"}]`} {
		if got, err := ReadReceipts([]byte(raw)); err == nil {
			t.Errorf("%s is read as %v", raw, got)
		}
	}
}
