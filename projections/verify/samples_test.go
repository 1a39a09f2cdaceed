package verify

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
)

// sampled returns samples of the first vault in every third block, and how its logs are mapped.
func (v *devChain) sampled() (samples []*event.Record, mapped *mapping.Vaults) {
	v.t.Helper()
	text, err := mapping.PresetText("erc4626")
	must(v.t, err)
	text, err = mapping.Canonical("erc4626", []byte(strings.Replace(string(text), "every: 300", "every: 3", 1)))
	must(v.t, err)
	address := v.vaults[0].Address
	vault := &event.Vault{Address: address[:]}
	must(v.t, mapping.Record(vault, []mapping.Source{{Role: "vault", Address: address}},
		[]mapping.Text{{To: math.MaxUint64, Preset: "erc4626", Text: text}}))
	mapped, err = mapping.NewVaults(vault)
	must(v.t, err)
	for n := v.vaults[0].StartBlock; n <= v.height; n++ {
		if n%3 != 0 {
			continue
		}
		h, err := v.client.HeaderByNumber(v.t.Context(), new(big.Int).SetUint64(n))
		must(v.t, err)
		output, err := v.client.CallContractAtHash(v.t.Context(),
			ethereum.CallMsg{To: &address, Data: mapping.SampleCall(18)}, h.Hash())
		must(v.t, err)
		samples = append(samples,
			&event.Record{Seq: 1 << 40, Fact: &event.Record_Sample{Sample: &event.Sample{Vault: address[:], BlockNumber: n,
				BlockHash: h.Hash().Bytes(), BlockTime: h.Time, NavDigits: 18, Assets: output}}})
	}
	return samples, mapped
}

// TestSamplesAreComparedWithTheChain: the calls of some samples are repeated. A wrong one is a difference that names
// its block and vault, and so is one of an orphaned block. A node without the state shows nothing about it.
func TestSamplesAreComparedWithTheChain(t *testing.T) {
	t.Parallel()
	v := newDevChain(t)
	answers := func(result, fault any) string {
		return v.node(func(method string, params []json.RawMessage) (any, any, bool) {
			return result, fault, method == "eth_call" && strings.Contains(string(params[0]), "07a2d13a")
		})
	}
	newest := func(change func(*event.Sample)) func([]*event.Record) {
		return func(samples []*event.Record) { change(samples[len(samples)-1].GetSample()) }
	}
	same := func([]*event.Record) {}
	for name, c := range map[string]struct {
		node       string
		change     func([]*event.Record)
		difference string
		compared   bool
		check      string
	}{
		"equal": {v.url, same, "", true, ""},
		"another value": {v.url, newest(func(s *event.Sample) { s.Assets = common.BigToHash(big.NewInt(7)).Bytes() }),
			"convertToAssets of vault " + v.vaults[0].Address.Hex(), true, ""},
		"another block": {v.url, newest(func(s *event.Sample) { s.BlockHash = common.Hash{7}.Bytes() }),
			"no longer part of the chain", false, ""},
		"it reverts": {answers(nil, map[string]any{"code": 3, "message": "execution reverted"}), same,
			"reverts, but the log has a sample", false, ""},
		"no state": {answers(nil, map[string]any{"code": -32000, "message": "missing trie node"}), same, "", false,
			"lacks the state of"},
		"not sampled": {v.url, newest(func(s *event.Sample) { s.BlockNumber++ }), "", false,
			"the mapping does not sample the blocks of 1 more"},
		"another response": {answers("0x", nil), same, "returns 0x, but the log's sample", false, ""},
	} {
		cursor, records := v.log(v.whole())
		samples, mapped := v.sampled()
		c.change(samples)
		report := new(Report)
		must(t, againstChain(t.Context(), Options{Node: c.node, patience: patience}, cursor, append(records, samples...),
			mapped, report))
		var check Check
		for _, one := range report.Checks {
			if strings.HasPrefix(one.Name, "chain: samples of NAV") {
				check = one
			}
		}
		if check.Name == "" || !strings.Contains(check.Difference, c.difference) ||
			(check.Difference == "") != (c.difference == "") ||
			!strings.Contains(check.Name, c.check) || c.compared && c.difference == "" &&
			int(check.Compared) < min(len(samples), samplesCompared) {
			t.Errorf("%s: %+v of %d samples", name, check, len(samples))
		}
	}
}
