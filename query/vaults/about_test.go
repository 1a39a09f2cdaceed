package vaults

import (
	"strings"
	"testing"
)

const someVault = "0x1111111111111111111111111111111111111111"

// An entry of http.vaults is refused with one sentence per mistake, which names the entry.
func TestAboutIsChecked(t *testing.T) {
	for _, good := range []About{
		{Address: someVault, Description: strings.Repeat("é", 500)},
		{Address: someVault, ManagementFee: "0", PerformanceFee: "100"},
		{Address: someVault, ManagementFee: "0.000001", Link: "https://vault.example/about?x=1"},
	} {
		if err := CheckAbout([]About{good}); err != nil {
			t.Errorf("%+v is refused: %v", good, err)
		}
	}
	for want, bad := range map[string]About{
		"http.vaults[0].address is \"0x12\"": {Address: "0x12", Description: "d"},
		"http.vaults[0] has only an address": {Address: someVault},
		"http.vaults[0].description has 501 characters": {Address: someVault,
			Description: strings.Repeat("é", 501)},
		"http.vaults[0].description must be plain text on one line": {Address: someVault, Description: "two\nlines"},
		"http.vaults[0].managementFee is \"2%\"":                    {Address: someVault, ManagementFee: "2%"},
		"http.vaults[0].managementFee is \"-1\"":                    {Address: someVault, ManagementFee: "-1"},
		"http.vaults[0].performanceFee is \"100.01\"":               {Address: someVault, PerformanceFee: "100.01"},
		"http.vaults[0].performanceFee is \"02\"":                   {Address: someVault, PerformanceFee: "02"},
		"http.vaults[0].performanceFee is \"1e1\"":                  {Address: someVault, PerformanceFee: "1e1"},
		"http.vaults[0].link must be an https URL":                  {Address: someVault, Link: "http://vault.example/"},
		"must be an https URL with a host":                          {Address: someVault, Link: "javascript:alert(1)"},
		"http.vaults[0].link must have no user": {Address: someVault,
			Link: "https://a:secret@vault.example/"},
		"http.vaults[0].link is longer": {Address: someVault, Link: "https://vault.example/" + strings.Repeat("x", 500)},
	} {
		err := CheckAbout([]About{bad})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("want %q: %v", want, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("a password is repeated: %v", err)
		}
	}
	twice := []About{{Address: someVault, Description: "a"}, {Address: strings.ToUpper(someVault[2:]), Description: "b"}}
	twice[1].Address = "0x" + twice[1].Address
	err := CheckAbout(twice)
	if err == nil || !strings.Contains(err.Error(), "http.vaults[1].address is the same as http.vaults[0].address") {
		t.Errorf("one vault twice: %v", err)
	}
}
