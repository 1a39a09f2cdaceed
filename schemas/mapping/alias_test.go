package mapping

import (
	"math"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/event"
)

const attributedVault = `preset: attributed
sources: {vault: required}
events:
  - on: Deposit(address indexed owner, uint256 indexed ref, uint256 assets, uint256 shares)
    emit: deposit
    set: {key: place, owner: $owner, assets: $assets, shares: $shares, attribution: $ref}
  - on: Asked(address indexed owner, uint32 indexed partner, uint256 shares)
    emit: requested
    set: {key: place, owner: $owner, shares: $shares, partner: $partner}
`

// attributedRecord returns a vault record with a mapping and aliases.
func attributedRecord(t *testing.T, text string, aliases map[common.Hash]uint32) *event.Vault {
	t.Helper()
	canonical, err := Canonical("attributed", []byte(text))
	must(t, err)
	r := &event.Vault{Address: common.Address{1}.Bytes()}
	must(t, Record(r, []Source{{Role: "vault", Address: common.Address{1}}},
		[]Text{{0, math.MaxUint64, "attributed", canonical}}))
	for value, partner := range aliases {
		r = WithAlias(r, value, partner)
	}
	return r
}

// TestAliases checks that an alias turns an attribution value into a partner, in effects and referrals, and keeps
// partners that a rule sets; a record with other aliases is a different mapping.
func TestAliases(t *testing.T) {
	t.Parallel()
	seven, eight := common.Hash{31: 7}, common.Hash{31: 8}
	plain := attributedRecord(t, attributedVault, nil)
	one := WithAlias(plain, seven, 70)
	both := WithAlias(WithAlias(one, eight, 80), seven, 71)
	if AliasOf(plain, seven) != 0 || AliasOf(one, seven) != 70 || AliasOf(both, seven) != 71 ||
		AliasOf(both, eight) != 80 || len(both.Aliases) != 2 {
		t.Errorf("the aliases are %v and %v", one.Aliases, both.Aliases)
	}
	if again := WithAlias(WithAlias(both, seven, 70), eight, 0); !SameMapping(again, one) || SameMapping(one, plain) ||
		SameMapping(one, both) ||
		!SameMapping(WithAlias(one, seven, 0), plain) {
		t.Errorf("equal records differ, or different ones are equal: %v", again.Aliases)
	}
	deposit := func(ref any) *event.Log {
		return asRecord(emitted("Deposit(address,uint256,uint256,uint256)", 2, alice, ref, 5, 6))
	}
	requested := asRecord(emitted("Asked(address,uint32,uint256)", 2, alice, 7, 5))
	for name, c := range map[string]struct {
		record *event.Vault
		log    *event.Log
		want   uint32
	}{
		"without an alias":             {plain, deposit(7), 0},
		"with an alias":                {both, deposit(7), 71},
		"with another value's":         {one, deposit(8), 0},
		"with the value zero":          {both, deposit(0), 0},
		"with a partner set by a rule": {both, requested, 7},
	} {
		s, err := Read(c.record)
		must(t, err)
		l, _ := s.FromRecord(c.log)
		effects := mapped(t, s.Vault, l)
		if len(effects) != 1 || effects[0].Partner != c.want || effects[0].Present(Partner) != (c.want != 0) {
			t.Errorf("a log %s: the effects are %+v, want partner %d", name, effects, c.want)
		}
		referral, err := s.Referral(c.log)
		if err != nil || referral.GetPartnerId() != c.want || (referral == nil) != (c.want == 0) {
			t.Errorf("a log %s: the referral is %v, %v", name, referral, err)
		}
		if !s.MayRefer(c.log) || s.MayRefer(asRecord(emitted("Other()", 0))) || !s.Description.Attributes() {
			t.Errorf("a log %s: it cannot name a partner, or another log can", name)
		}
	}
	large := deposit(7)
	copy(large.Data, common.MaxHash[:])
	s, err := Read(one)
	must(t, err)
	if referral, err := s.Referral(large); err != nil || referral.GetPartnerId() != 70 || referral.GetQuarantined() == "" {
		t.Errorf("the referral of too large a deposit is %v, %v", referral, err)
	}
	companion, err := Read(attributedRecord(t,
		"preset: attributed\nsources: {vault: required, oracle: optional}\nevents:\n"+withReferral,
		map[common.Hash]uint32{{31: 3}: 30}))
	must(t, err)
	logs := []*event.Log{
		asRecord(emitted("DepositRequest(address,address,uint256,address,uint256)", 3, alice, alice, 1, bob, 10)),
		asRecord(emitted("Referral(address,address,uint256,uint256)", 3, common.Address{19: 3}, alice, 1, 10)),
	}
	if referrals := companion.Referrals(logs); referrals[0].GetPartnerId() != 30 || referrals[1] != nil ||
		!companion.MayRefer(logs[0]) || !companion.Description.Attributes() {
		t.Errorf("with a companion the referrals are %v", referrals)
	}
	if reference(common.Address{1}).Description.Attributes() {
		t.Error("the reference contracts have attributions")
	}
	for _, bad := range []*event.Alias{{Value: []byte{7}, PartnerId: 1}, {Value: seven[:]}} {
		r := attributedRecord(t, attributedVault, nil)
		r.Aliases = []*event.Alias{bad}
		if _, err := Read(r); err == nil || !strings.Contains(err.Error(), "has an alias of") {
			t.Errorf("an alias %v is read: %v", bad, err)
		}
	}
}

// asRecord converts a log to its form in a record.
func asRecord(l Log) *event.Log {
	out := &event.Log{Address: common.Address{1}.Bytes(), TxHash: make([]byte, 32), BlockHash: make([]byte, 32),
		Data: l.Data}
	for _, topic := range l.Topics {
		out.Topics = append(out.Topics, topic.Bytes())
	}
	return out
}

// TestAttributionWord checks that values are accepted as block explorers show them, and become the word of the log.
func TestAttributionWord(t *testing.T) {
	t.Parallel()
	word := "0x" + strings.Repeat("ab", 32)
	for text, want := range map[string]common.Hash{
		"7": {31: 7}, "007": {31: 7}, "0x00000000000000000000000000000000000000b1": {31: 0xb1}, word: common.HexToHash(word),
		"115792089237316195423570985008687907853269984665640564039457584007913129639935": common.MaxHash,
	} {
		got, err := AttributionWord(text)
		if err != nil || got != want {
			t.Errorf("%s is %s, %v; want %s", text, got, err, want)
		}
		if again, err := AttributionWord(AttributionText(got)); err != nil || again != got {
			t.Errorf("%s is written as %s, which is read as %s, %v", text, AttributionText(got), again, err)
		}
	}
	for _, text := range []string{"", "-7", "+7", "1_0", "0x7", "7.5", "acme", word[:65], word + "ab",
		strings.TrimPrefix(word, "0x"),
		strings.Repeat("b1", 20), "115792089237316195423570985008687907853269984665640564039457584007913129639936"} {
		if got, err := AttributionWord(text); err == nil || !strings.Contains(err.Error(), "is not an attribution value") {
			t.Errorf("%q is %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"0", "0x" + strings.Repeat("00", 32), "0x" + strings.Repeat("00", 20)} {
		if _, err := AttributionWord(text); err == nil || !strings.Contains(err.Error(), "names no partner") {
			t.Errorf("%q is %v", text, err)
		}
	}
	for word, want := range map[common.Hash]string{{31: 7}: "7", {12: 0xb1}: common.Address{0xb1}.Hex(),
		{0: 1}: common.Hash{0: 1}.Hex()} {
		if got := AttributionText(word); got != want {
			t.Errorf("%s is written as %s, want %s", word, got, want)
		}
	}
}
