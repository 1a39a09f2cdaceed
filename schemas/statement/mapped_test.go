package statement_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/statement"
)

var gateway = common.HexToAddress("0xc3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3")

// pay adds a deposit through the gateway of YO: two logs of one transaction, of which the gateway's names the partner.
func (c *fakeChain) pay(vault common.Address, partner byte, block uint64, first uint, assets byte) {
	word := func(b byte) []byte { return common.LeftPadBytes([]byte{b}, 32) }
	add := func(of common.Address, index uint, signature string, topics []common.Hash, data ...[]byte) {
		c.logs = append(c.logs, types.Log{Address: of,
			Topics: append([]common.Hash{crypto.Keccak256Hash([]byte(signature))}, topics...), Data: slices.Concat(data...),
			BlockNumber: block, BlockHash: c.header(block).Hash(), TxHash: tx(block, first), Index: index})
	}
	user := common.BytesToHash(alice[:])
	add(gateway, first+1, "YoGatewayDeposit(uint32,address,address,address,uint256,uint256)",
		[]common.Hash{{31: partner}, common.BytesToHash(vault[:]), user}, user[:], word(assets), word(assets))
	add(vault, first, "Deposit(address,address,uint256,uint256)", []common.Hash{common.BytesToHash(gateway[:]), user},
		word(assets), word(assets))
}

// TestRebuildMapped: the events of a vault with another mapping than the reference are found by the mapping that the
// statement names, with companions and in a contract that vaults share, beside those of the reference contracts.
func TestRebuildMapped(t *testing.T) {
	t.Parallel()
	c := &fakeChain{id: 5, head: 40, final: 40, widest: 7}
	c.pay(vaultA, 7, 11, 4, 1) // before the vault's start
	c.pay(vaultA, 7, 20, 4, 9)
	c.pay(vaultA, 8, 21, 4, 9)                  // of another partner
	c.pay(alice, 7, 22, 4, 9)                   // another vault of the same gateway
	c.emit(t, vaultB, 20, 2, deposit(7, 2, 10)) // of the reference contracts
	c.emit(t, vaultA, 23, 0, deposit(7, 3, 10)) // without effect in another vault
	texts, err := statement.BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	text, err := mapping.PresetText("yo")
	if err == nil {
		text, err = mapping.Canonical("yo", text)
	}
	if err != nil {
		t.Fatal(err)
	}
	record := &event.Vault{Address: vaultA[:], Sources: []*event.Source{{Role: "vault", Address: vaultA[:]},
		{Role: "gateway", Address: gateway[:],
			Filters: []*event.TopicFilter{{Topic: 2, Value: common.BytesToHash(vaultA[:]).Bytes()}}}},
		Mappings: []*event.MappingRange{{First: 5, Last: 30, Preset: "yo", Text: text, Hash: mapping.Hash(text).Bytes()}}}
	sources, err := mapping.Read(record)
	if err != nil {
		t.Fatal(err)
	}
	h := header(c)
	h.Vaults[0].Mapped(sources, 7)
	signed := write(t, h, nil, delivered(vaultB, 20, 2, "10"), delivered(vaultA, 20, 4, "9"))
	if !strings.Contains(string(signed), `"mappings":[{"from":"5","to":"30","preset":"yo","hash":"0x`) ||
		strings.Count(string(signed), `"sources"`) != 1 {
		t.Errorf("the statement does not name the mapping of one vault: %s", signed)
	}
	var again bytes.Buffer
	found, err := statement.Rebuild(t.Context(), &again, h, c, texts, nil)
	if err != nil || !bytes.Equal(again.Bytes(), signed) {
		t.Fatalf("rebuilt, %v\n%s\nsigned\n%s", err, again.Bytes(), signed)
	}
	if want := []statement.LeftOut{{Address: vaultA.Hex(), Events: 1, StartBlock: "12"}}; !slices.Equal(found.LeftOut,
		want) {
		t.Errorf("the events left out are %+v", found.LeftOut)
	}

	var unknown *statement.UnknownMapping
	if _, err := statement.Rebuild(t.Context(), io.Discard, h, c, statement.Texts{}, nil); !errors.As(err, &unknown) ||
		unknown.Preset != "yo" {
		t.Errorf("without the text: %v", err)
	}
	var contradiction *statement.Contradiction
	for part, change := range map[string]func(v *statement.Vault){
		`is for blocks from "x" to "30"`: func(v *statement.Vault) { v.Mappings[0].From = "x" },
		"needs a source `vault`":         func(v *statement.Vault) { v.Sources = v.Sources[1:] },
		"has a source `desk`":            func(v *statement.Vault) { v.Sources[1].Role = "desk" },
		"filters topic -1":               func(v *statement.Vault) { v.Sources[1].Topics[0].Topic = -1 },
		"logs that name no partner":      func(v *statement.Vault) { v.Aliases = []common.Hash{{}} },
		`is "yo", and not "reference"`:   func(v *statement.Vault) { v.Mappings[0].Preset = "reference" },
		"which is not valid": func(v *statement.Vault) {
			v.Sources[1].Address = alice.Hex() + v.Sources[1].Address[2:]
		},
	} {
		bad := header(c)
		bad.Vaults[0].Mapped(sources, 7)
		change(&bad.Vaults[0])
		if _, err := statement.Rebuild(t.Context(), io.Discard, bad, c, texts, nil); !errors.As(err, &contradiction) ||
			!strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", part, err)
		}
	}
	twice := header(c)
	twice.Vaults[0].Mapped(sources, 7)
	twice.Vaults = append(twice.Vaults, twice.Vaults[0])
	twice.Vaults[2].Address = alice.Hex()
	if _, err := statement.Rebuild(t.Context(), io.Discard, twice, c, texts, nil); !errors.As(err, &contradiction) ||
		!strings.Contains(err.Error(), "belongs to two of its vaults") {
		t.Errorf("two vaults with the same contracts: %v", err)
	}
	if err := texts.Add("bad.yaml", []byte("preset: x")); err == nil || !strings.HasPrefix(err.Error(), "bad.yaml:1:1: ") {
		t.Errorf("a mapping with mistakes: %v", err)
	}
}

const attributed = `preset: attributed
sources: {vault: required}
events:
  - on: Bought(address indexed owner, uint256 assets, uint256 shares, uint256 ref)
    emit: deposit
    set: {key: place, owner: $owner, assets: $assets, shares: $shares, attribution: $ref}
`

// TestRebuildAliases: a statement names the attribution values of its partner, and no others, and is rebuilt with them.
// Its mappings change from block to block.
func TestRebuildAliases(t *testing.T) {
	t.Parallel()
	c := &fakeChain{id: 5, head: 40, final: 40, widest: 7}
	word := func(b byte) []byte { return common.LeftPadBytes([]byte{b}, 32) }
	for i, ref := range []byte{55, 66, 77, 0} {
		block := uint64(20 + i)
		c.logs = append(c.logs, types.Log{Address: vaultA,
			Topics: []common.Hash{crypto.Keccak256Hash([]byte("Bought(address,uint256,uint256,uint256)")),
				common.BytesToHash(alice[:])}, Data: slices.Concat(word(9), word(9), word(ref)), BlockNumber: block,
			BlockHash: c.header(block).Hash(), TxHash: tx(block, 4), Index: 4})
	}
	texts, err := statement.BuiltIn()
	if err == nil {
		err = texts.Add("attributed.yaml", []byte(attributed))
	}
	text, canonicalErr := mapping.Canonical("attributed", []byte(attributed))
	if err != nil || canonicalErr != nil {
		t.Fatal(err, canonicalErr)
	}
	record := &event.Vault{Address: vaultA[:], Sources: []*event.Source{{Role: "vault", Address: vaultA[:]}},
		Aliases: []*event.Alias{{Value: word(55), PartnerId: 7}, {Value: word(66), PartnerId: 8},
			{Value: word(77), PartnerId: 7}}}
	for _, r := range [][2]uint64{{0, 21}, {22, 22}, {23, 99}} {
		record.Mappings = append(record.Mappings,
			&event.MappingRange{First: r[0], Last: r[1], Preset: "attributed", Text: text, Hash: mapping.Hash(text).Bytes()})
	}
	sources, err := mapping.Read(record)
	if err != nil {
		t.Fatal(err)
	}
	h := header(c)
	h.Vaults[0].Mapped(sources, 7)
	if want := []common.Hash{{31: 55}, {31: 77}}; !slices.Equal(h.Vaults[0].Aliases, want) {
		t.Errorf("the statement names %v, want %v", h.Vaults[0].Aliases, want)
	}
	signed := write(t, h, nil, delivered(vaultA, 20, 4, "9"), delivered(vaultA, 22, 4, "9"))
	var again bytes.Buffer
	if _, err := statement.Rebuild(t.Context(), &again, h, c, texts, nil); err != nil ||
		!bytes.Equal(again.Bytes(), signed) {
		t.Errorf("rebuilt, %v\n%s\nsigned\n%s", err, again.Bytes(), signed)
	}
}
