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

// A node cannot have one value of a field hashed and another one used, by a second member whose name differs in case.
// A member that only looks like a field does not unseal a genuine header.
func TestMemberNamesAreExact(t *testing.T) {
	n := newScriptedNode(t)
	h := &types.Header{UncleHash: types.EmptyUncleHash, Number: big.NewInt(9), Difficulty: new(big.Int), Time: 5,
		Extra: []byte{}, ParentHash: common.Hash{1}, Bloom: types.BytesToBloom([]byte{1})}
	genuine := string(mustJSON(t, h))
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(genuine), &members); err != nil {
		t.Fatal(err)
	}
	for name, forged := range map[string]any{"timestamp": "0x99", "number": "0x8", "parentHash": common.Hash{2},
		"logsBloom": types.Bloom{}} {
		own := fmt.Sprintf("%q:%s", name, members[name])
		other := fmt.Sprintf("%q:%s", strings.ToUpper(name[:1])+name[1:], members[name])
		forgedMember := fmt.Sprintf("%q:%s", name, mustJSON(t, forged))
		for _, both := range []string{forgedMember + "," + other, other + "," + forgedMember} {
			got, err := n.headerAt([]byte(strings.Replace(genuine, own, both, 1)), "latest")
			if err == nil && got.Sealed {
				t.Errorf("a header with %.60s… is sealed", both)
			}
		}
	}
	for _, extra := range []string{`"Nonce":5,`, `"TIMESTAMP":"0x99",`, `"gaslimit":null,`} {
		for _, raw := range []string{"{" + extra + genuine[1:], strings.TrimSuffix(genuine, "}") + "," +
			strings.TrimSuffix(extra, ",") + "}"} {
			if got, err := n.headerAt([]byte(raw), "latest"); err != nil || !got.Sealed || got.Time != h.Time {
				t.Errorf("a genuine header with %s is %+v, %v", extra, got, err)
			}
		}
	}
}

// If a lower block of the log has a sealed header, a plain one that is not sealed was changed. Earlier headers, ones
// with unknown fields, and those of a chain whose blocks in the log are not sealed may follow another rule.
func TestSealsAreKept(t *testing.T) {
	var p Pool
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
		err := p.checkSeal(h, c.plain)
		if (err != nil) != c.fault {
			t.Errorf("header %d, of block %d: %v", i, c.number, err)
		}
		if c.accepted {
			p.Accepted(h)
		}
	}
}

// On a chain with another hashing rule, an endpoint that makes up a header whose fields hash to its hash makes no
// other endpoint unusable.
func TestMadeUpSealMakesNoEndpointUnusable(t *testing.T) {
	honest, wrongNode := newScriptedNode(t), newScriptedNode(t)
	wrongNode.pool = honest.pool
	h := &types.Header{UncleHash: types.EmptyUncleHash, Number: big.NewInt(1), Difficulty: new(big.Int), Extra: []byte{}}
	as := func(hash common.Hash) func(string, []json.RawMessage) any {
		return func(string, []json.RawMessage) any {
			return json.RawMessage(strings.Replace(string(mustJSON(t, h)), h.Hash().Hex(), hash.Hex(), 1))
		}
	}
	honest.result, wrongNode.result = as(common.Hash{7}), as(h.Hash())
	if made, err := wrongNode.Latest(t.Context()); err != nil || !made.Sealed {
		t.Fatalf("the made-up header is %+v, %v", made, err)
	}
	if own, err := honest.ByNumber(t.Context(), 1); err != nil || own.Sealed || !honest.health.is(usable) {
		t.Errorf("the honest header is %+v, %v", own, err)
	}
}
