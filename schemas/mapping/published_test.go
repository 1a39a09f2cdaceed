package mapping

import (
	"os"
	"strings"
	"testing"
)

// TestPublishedABI checks that the presets declare events as their protocols publish them, and have every event that
// moves money. The files in testdata/abi are extracted from packages of the protocols; YO publishes only its gateway.
func TestPublishedABI(t *testing.T) {
	t.Parallel()
	// moves are the words in the names of events that move money or a request.
	moves := []string{"Deposit", "Withdraw", "Redeem", "Settle", "Transfer", "Referral"}
	for _, test := range []struct {
		preset, role string
		events       int // published ones of the preset
	}{{"erc4626", "vault", 4}, {"lagoon-v0.6", "vault", 15}, {"yo", "gateway", 2}} {
		text, err := os.ReadFile("testdata/abi/" + test.preset + ".txt")
		must(t, err)
		published := map[string]bool{}
		for declaration := range strings.Lines(string(text)) {
			of, _, err := parseSignature(strings.NewReplacer("\n", "", "tuple", "bytes").Replace(declaration))
			must(t, err)
			published[of.layout()] = true
		}
		m, err := Preset(test.preset)
		must(t, err)
		role, _ := m.Role(test.role)
		known := map[string]bool{}
		for _, r := range m.rules {
			if r.role == role {
				if known[r.of.layout()] = true; !published[r.of.layout()] {
					t.Errorf("%s: the protocol does not publish %s", test.preset, r.of.layout())
				}
			}
		}
		if len(known) != test.events {
			t.Errorf("%s has %d events, want %d", test.preset, len(known), test.events)
		}
		for layout := range published {
			for _, word := range moves {
				if name, _, _ := strings.Cut(layout, "("); strings.Contains(name, word) &&
					!strings.HasPrefix(name, "OwnershipTransfer") && !known[layout] {
					t.Errorf("%s lacks %s", test.preset, layout)
				}
			}
		}
	}
}

// layout returns the declaration with types and indexed flags, but without parameter names.
func (s *signature) layout() string {
	var parameters []string
	for i := range s.parameters {
		p := &s.parameters[i]
		text := p.typ.text
		if p.place.topic {
			text += " indexed"
		}
		parameters = append(parameters, text)
	}
	return s.Name + "(" + strings.Join(parameters, ", ") + ")"
}
