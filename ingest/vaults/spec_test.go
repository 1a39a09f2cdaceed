package vaults

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
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
			for text.To = text.From; len(v.Texts)*len(text.Text) <= mostText; text.From, text.To = text.From+1, text.To+1 {
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
		_, err = decodeVault(string(argument))
		if c.fault == "" && err != nil || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%s: %v, want %q", name, err, c.fault)
		}
	}
}
