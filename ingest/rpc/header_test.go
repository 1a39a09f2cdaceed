package rpc

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// A header is sealed if its fields hash to its hash, with the fields of any fork. With a changed field it is not, but
// it is still plain unless a field is missing or unknown.
func TestSealed(t *testing.T) {
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
		if seals, plain := sealed(given(h, ""), h.Hash()); !seals || !plain {
			t.Errorf("%s: sealed %v, plain %v", name, seals, plain)
		}
		if seals, plain := sealed(given(h, ""), common.Hash{2}); seals || !plain {
			t.Errorf("%s of another hash: sealed %v, plain %v", name, seals, plain)
		}
		bare := strings.Replace(string(given(h, "")), `"stateRoot"`, `"noRoot"`, 1)
		for what, text := range map[string]string{"an unknown field": string(given(h, `"extDataHash":"0x01",`)),
			"a missing field": bare} {
			changed := *h
			changed.GasUsed++
			if seals, plain := sealed([]byte(text), changed.Hash()); seals || plain {
				t.Errorf("%s with %s: sealed %v, plain %v", name, what, seals, plain)
			}
		}
		if seals, _ := sealed(given(h, `"unknown":null,`), h.Hash()); !seals {
			t.Errorf("%s with an unknown field that is null is not sealed", name)
		}
	}
	if seals, plain := sealed([]byte(`{"number":"0x1"`), common.Hash{}); seals || plain {
		t.Errorf("a truncated header: sealed %v, plain %v", seals, plain)
	}
}

// If a lower block of the log has a sealed header, a plain one that is not sealed was changed. Earlier headers, ones
// with unknown fields, and those of a chain whose blocks in the log are not sealed may follow another rule.
func TestSealsAreKept(t *testing.T) {
	var s seals
	for i, c := range []struct {
		number        uint64
		sealed, plain bool
		fault         bool
		accepted      bool
	}{
		{0, true, true, false, true}, // the genesis may be hashed by another rule
		{7, false, true, false, true},
		{5, true, true, false, false}, // any endpoint can make up such a header
		{7, false, true, false, false},
		{10, true, true, false, true},
		{9, false, true, false, false},
		{10, false, true, true, false},
		{11, false, false, false, false},
		{8, true, true, false, true},
		{9, false, true, true, false},
	} {
		h := &Header{Number: c.number, Sealed: c.sealed}
		err := s.check(h, c.plain)
		if (err != nil) != c.fault {
			t.Errorf("header %d, of block %d: %v", i, c.number, err)
		}
		if c.accepted {
			s.accepted(h)
		}
	}
}

// On a chain with another hashing rule, an endpoint that makes up a header whose fields hash to its hash makes no
// other endpoint unusable.
func TestMadeUpSealMakesNoEndpointUnusable(t *testing.T) {
	honest, lying := newOddNode(t), newOddNode(t)
	lying.seals = honest.seals
	h := &types.Header{UncleHash: types.EmptyUncleHash, Number: big.NewInt(1), Difficulty: new(big.Int), Extra: []byte{}}
	as := func(hash common.Hash) func(string, []json.RawMessage) any {
		return func(string, []json.RawMessage) any {
			return json.RawMessage(strings.Replace(string(mustJSON(t, h)), h.Hash().Hex(), hash.Hex(), 1))
		}
	}
	honest.result, lying.result = as(common.Hash{7}), as(h.Hash())
	if made, err := lying.Latest(t.Context()); err != nil || !made.Sealed {
		t.Fatalf("the made-up header is %+v, %v", made, err)
	}
	if own, err := honest.ByNumber(t.Context(), 1); err != nil || own.Sealed || !honest.health.is(usable) {
		t.Errorf("the honest header is %+v, %v", own, err)
	}
}
