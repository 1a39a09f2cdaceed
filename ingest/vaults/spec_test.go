package vaults

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/event"
)

// A command that adds a vault is refused like the configuration of that vault if its texts do not fit into a record.
func TestTextsOfACommandFitIntoARecord(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*vault)
		fault  string
	}{
		"a vault": {func(*vault) {}, ""},
		"mappings": {func(v *vault) {
			text := v.Texts[0]
			v.Texts = nil
			for text.To = text.From; len(v.Texts)*len(text.Text) <= maxText; text.From, text.To = text.From+1, text.To+1 {
				v.Texts = append(v.Texts, text)
			}
		}, "the mappings have"},
		"symbol": {func(v *vault) { v.Symbol = strings.Repeat("x", maxLabel+1) }, "symbol has 257 bytes"},
	} {
		set, err := Read([]Config{{Address: common.Address{1}.Hex()}})
		if err != nil {
			t.Fatal(err)
		}
		c.change(&set[0])
		argument, err := json.Marshal(set[0])
		if err != nil {
			t.Fatal(err)
		}
		_, err = decodeVault(argument)
		if c.fault == "" && err != nil || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%s: %v, want %q", name, err, c.fault)
		}
	}
}

// The decimals that a configuration leaves to the contracts are those of the log, so they change nothing: the record of
// the vault would be appended at each step. Decimals that the configuration names do.
func TestDecimalsOfTheContractsChangeNothing(t *testing.T) {
	six := uint8(6)
	for name, c := range map[string]struct {
		decimals, ofAsset *uint8
		changed           bool
	}{
		"of the contracts": {nil, nil, false}, "as in the log": {&six, nil, false}, "other decimals": {nil, &six, true},
	} {
		set, err := Read([]Config{{Address: common.Address{1}.Hex(), Mapping: "lagoon-v0.6", Decimals: c.decimals,
			Asset: AssetConfig{Decimals: c.ofAsset}}})
		if err != nil {
			t.Fatal(err)
		}
		v := set[0]
		record, err := v.record(v.Address, v.Start, v.Name)
		if err != nil {
			t.Fatal(err)
		}
		record.Decimals, record.Asset = 6, &event.Token{Decimals: 18}
		r := &Registrar{writer: &writer.Writer{State: &writer.State{Records: map[common.Address]*event.Vault{v.Address: record}}}}
		if got := r.changed(v); got != c.changed {
			t.Errorf("decimals %s: changed is %t", name, got)
		}
	}
}

// The newest mapping of a vault is the one of the highest blocks, wherever it is in the configuration.
func TestSamplesOfTheNewestMapping(t *testing.T) {
	end := uint64(99)
	old, newer := MappingConfig{Mapping: "reference", To: &end}, MappingConfig{Mapping: "erc4626", From: 100}
	for _, mappings := range [][]MappingConfig{{old, newer}, {newer, old}} {
		set, err := Read([]Config{{Address: common.Address{1}.Hex(), Mappings: mappings}})
		if err != nil {
			t.Fatal(err)
		}
		if got := set.SamplesPerBlock(); got != 1.0/300 {
			t.Errorf("with %+v, %f samples per block", mappings, got)
		}
	}
}

// After an upgrade a mapping may only pay the requests of the one before it. As the only mapping of a vault it is
// refused, and so is that one.
func TestMappingsOfAnUpgradeAreCheckedTogether(t *testing.T) {
	write := func(name, rule string) string {
		file := filepath.Join(t.TempDir(), name+".yaml")
		text := "preset: " + name + "\nsources: {vault: required}\nevents:\n  - on: A(uint256 x, address who)\n" + rule
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	older := write("older", "    emit: requested\n    set: {key: $x, owner: $who, shares: $x}\n")
	newer := write("newer", "    emit: claimed\n    set: {key: $x, assets: $x}\n")
	end, address := uint64(99), common.Address{1}.Hex()
	both := []MappingConfig{{Mapping: older, To: &end}, {Mapping: newer, From: 100}}
	if _, err := Read([]Config{{Address: address, Mappings: both}}); err != nil {
		t.Error(err)
	}
	for file, want := range map[string]string{older: "no rule emits `claimed`", newer: "no rule emits `requested`"} {
		if _, err := Read([]Config{{Address: address, Mapping: file}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", file, err)
		}
	}
}
