package mapping

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/event"
)

const plainVault = `# A comment
preset: plain
sources: {vault: required, queue: optional}
events:
  - on: Deposit(address indexed sender, address indexed owner, uint256 assets, uint256 shares)
    emit: deposit
    set: {key: place, owner: $owner, assets: $assets, shares: $shares}
  - on: Asked(address indexed owner, uint256 indexed id, uint256 shares)
    source: queue
    emit: requested
    set: {key: $id, owner: $owner, shares: $shares, expires: "add($time, 3600)"}
`

// TestCanonical checks that two texts with the same meaning have the same canonical text, and that it is a valid
// mapping.
func TestCanonical(t *testing.T) {
	t.Parallel()
	one, err := Canonical("plain.yaml", []byte(plainVault))
	must(t, err)
	other, err := Canonical("other.yaml",
		[]byte("\n\n"+strings.ReplaceAll(strings.ReplaceAll(plainVault, "# A comment", ""), "preset: plain",
			"preset: 'plain' # x")))
	must(t, err)
	again, err := Canonical("again", one)
	must(t, err)
	if string(one) != string(other) || string(again) != string(one) || Hash(one) != Hash(other) {
		t.Errorf("the texts are\n%s\n%s\n%s", one, other, again)
	}
	if _, err := Canonical("plain.yaml",
		[]byte(strings.Replace(plainVault, "emit: deposit", "emit: depositt", 1))); err == nil {
		t.Error("a mistake is in no canonical text")
	}
}

// TestCanonicalIsAMapping: a text without mistakes has a canonical text without mistakes, whatever its comments contain.
func TestCanonicalIsAMapping(t *testing.T) {
	t.Parallel()
	for _, c := range []string{`\x7f`, `\x80`, `\x85`, `\uFEFF`, `\uFFFE`, `\u2028`, `\u202e`, `\0`, `\e`, `\r`, `\n`, `\t`,
		`\U0001F600`, `\_`, `<&>`} {
		text := []byte(rules("  - on: \"A(uint256 a /* " + c + " */)\"\n    emit: none\n"))
		if _, err := Parse("f.yaml", text); err != nil {
			continue
		}
		canonical, err := Canonical("f.yaml", text)
		must(t, err)
		if _, err := Parse("canonical", canonical); err != nil {
			t.Errorf("%s: the text has no mistakes, and its canonical text %q has: %v", c, canonical, err)
		}
	}
}

// TestRecordOfAnEarlierVersion: characters that are not displayed are a mistake now, and so is a rule that names two
// partners, voids a deposit that has shares, cancels shares that may not be funded, funds the requests of one owner up
// to a key or for a total, prices requests after their funding, names a place that no log contains, values a vault
// without its supply, has an expiry where the owner's oldest request is claimed, has an event with a reserved name,
// claims requests that no log makes, makes requests that no log closes, or requires a source without rules. But the log
// has them forever, so such a record can be read, and its text is found by its hash.
func TestRecordOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	const effect = "{key: place, owner: $who, assets: $assets, shares: $shares, partner: 1}"
	for _, emit := range []string{"[{deposit: " + effect + "}, {deposit: " + effect + "}]",
		"[{deposit: " + effect + "}, {void: {key: 1}}]",
		"[{requested: {key: place, owner: $who, shares: $shares}}, {funded: {up_to_key: 1}}, " +
			"{cancelled: {owner: $who, shares: $shares}}, {claimed: {owner: $who, assets: 1, shares: 1}}]",
		"[{requested: {key: 1, owner: $who, shares: $shares}}, {funded: {up_to_key: 1, owner: $who}}]",
		"[{requested: {key: 1, owner: $who, shares: $shares}}, {funded: {up_to_key: 1, assets: $assets}}]",
		"[{requested: {key: 1, owner: $who, shares: $shares}}, {funded: {up_to_key: 1}}, {priced: {side: redeem, group: 1, " +
			"assets: $assets, shares: $shares}}]",
		"[{requested: {key: place, owner: $who, shares: $shares, estimate: $assets}}, {claimed: {key: $assets}}]",
		"[{valuation: {total_assets: $assets}}]",
		"[{requested: {key: 1, owner: $who, shares: $shares, expires: $assets}}, {claimed: {owner: $who, assets: 1, shares: " +
			"1}}]",
		"[{requested: {key: place, owner: $who, shares: $shares}}, {claimed: {owner: $who, assets: 1, shares: 1}}, {deposit: " +
			"{key: place, owner: $who, assets: $assets, shares: $shares}}, {sweep: {up_to_key: $assets, assets: 1}}]",
		"[{claimed: {owner: $who, assets: 1, shares: 1}}]", "[{requested: {key: place, owner: $who, shares: $shares}}]",
		"none\n  - on: open(uint256 id)\n    emit: void\n    set: {key: $id}",
		"none\n  - on: \"B() // a\\u200bb\"\n    emit: none"} {
		text := []byte(rules(bought + "    emit: " + emit + "\n"))
		if _, _, err := ParseFile("x", text, Preset); err == nil {
			t.Errorf("%s: the text has no mistake", emit)
		}
		text, err := Canonical("x", text)
		must(t, err)
		vault := common.Address{1}
		r := &event.Vault{Address: vault[:]}
		must(t, Record(r, []Source{{Role: "vault", Address: vault}}, []Text{{0, math.MaxUint64, "x", text}}))
		_, err = Read(r)
		must(t, err)
	}
	_, err := Canonical("x", []byte("preset: x\nsources: {vault: required, queue: required}\nevents: [{on: A(), emit: none}]\n"))
	must(t, err)
}

// TestRecord checks that a vault record returns the contracts and mappings that were put into it, that the record of a
// vault with the preset reference and no other contract has none of them, and that a contradictory record is rejected.
func TestRecord(t *testing.T) {
	t.Parallel()
	vault, queue := common.Address{1}, common.Address{2}
	text, err := Canonical("plain", []byte(plainVault))
	must(t, err)
	reference, err := PresetText("reference")
	must(t, err)
	reference, err = Canonical("reference", reference)
	must(t, err)
	sources := []Source{{Role: "vault", Address: vault},
		{Role: "queue", Address: queue, Filters: []Filter{{2, common.Hash{9}}}}}
	texts := []Text{{0, 99, "reference", reference}, {100, math.MaxUint64, "plain", text}}
	r := &event.Vault{Address: vault[:]}
	must(t, Record(r, sources, texts))
	s, err := Read(r)
	must(t, err)
	log := &event.Log{Address: queue[:], Topics: [][]byte{{1}, {2}, common.Hash{9}.Bytes()}}
	if role, ok := s.Role(queue); !ok || role != 1 || !s.Takes(log) || !s.Matches(r) || len(s.Addresses()) != 2 ||
		s.Companions() {
		t.Errorf("the record has %+v", s)
	}
	log.Topics[2] = common.Hash{8}.Bytes()
	foreign := &event.Log{Address: make([]byte, 20), Topics: log.Topics}
	if log.Topics = log.Topics[:3]; s.Takes(log) || s.Takes(foreign) || s.Takes(&event.Log{Address: queue[:]}) {
		t.Error("a log of another vault is accepted")
	}
	plain := &event.Vault{Address: vault[:]}
	must(t, Record(plain, sources[:1], []Text{{0, math.MaxUint64, "reference", reference}}))
	if plain.Mappings != nil || plain.Sources != nil || SameMapping(plain, r) ||
		!SameMapping(plain, &event.Vault{Name: "x"}) {
		t.Errorf("the preset reference is recorded as %v", plain)
	}
	for want, change := range map[string]func(*event.Vault){
		"not of its hash":    func(r *event.Vault) { r.Mappings[1].Hash[0]++ },
		"needs a source":     func(r *event.Vault) { r.Sources = r.Sources[1:] },
		"overlap":            func(r *event.Vault) { r.Mappings[0].Last = 100 },
		"are an empty range": func(r *event.Vault) { r.Mappings[0].First = 100 },
		"appears twice":      func(r *event.Vault) { r.Sources[1].Role = "vault" },
		"the same address":   func(r *event.Vault) { r.Sources[1].Address = vault[:] },
		"has a source `own`": func(r *event.Vault) { r.Sources[1].Role = "own" },
		"filters topic 4":    func(r *event.Vault) { r.Sources[1].Filters[0].Topic = 4 },
	} {
		bad := &event.Vault{Address: vault[:]}
		must(t, Record(bad, sources, texts))
		if change(bad); true {
			if _, err := Read(bad); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the error is %v, want %q", err, want)
			}
		}
	}
}

// TestDecimals checks that the decimals of a vault's record decide in which unit its valuations are derived, that a
// record with corrected decimals is another one, and that a valuation without a unit is left out unless its log says
// everything.
func TestDecimals(t *testing.T) {
	t.Parallel()
	text, err := Canonical("valued", []byte(`preset: valued
sources: {vault: required}
events:
  - on: Settled(uint256 assets, uint256 supply)
    emit:
      - {valuation: {total_assets: $assets, total_supply: $supply}}
      - {supply: {shares: $supply}}
  - on: Valued(uint256 nav, uint256 assets, uint256 supply)
    emit: valuation
    set: {nav: $nav, total_assets: $assets, total_supply: $supply}
`))
	must(t, err)
	vault := common.Address{1}
	record := func(shares, asset uint32) *event.Vault {
		r := &event.Vault{Address: vault[:], Decimals: shares, Asset: &event.Token{Decimals: asset}}
		must(t, Record(r, []Source{{Role: "vault", Address: vault}},
			[]Text{{To: math.MaxUint64, Preset: "valued", Text: text}}))
		return r
	}
	for _, c := range []struct {
		shares, asset uint32
		digits        uint8
		same          bool // as a record with 18 decimals for both
		want          string
	}{{18, 18, 18, true, "valuation 0, supply 1, valuation 0"}, {6, 6, 18, true, "valuation 0, supply 1, valuation 0"},
		{18, 6, 30, false, "valuation 0, supply 1, valuation 0"}, {8, 18, 8, false, "valuation 0, supply 1, valuation 0"},
		{0, 18, 0, false, "supply 0, valuation 0"}, {77, 6, 0, false, "supply 0, valuation 0"}} {
		r := record(c.shares, c.asset)
		s, err := Read(r)
		must(t, err)
		var got []string
		for _, e := range mapped(t, s.Vault, emitted("Settled(uint256,uint256)", 0, 5, 4),
			emitted("Valued(uint256,uint256,uint256)", 0, 6, 5, 4)) {
			if got = append(got, fmt.Sprint(e.Kind, " ", e.Sub)); e.Kind == Valuation && e.NavDigits != c.digits {
				t.Errorf("shares of %d decimals of an asset of %d: the unit has %d digits, want %d", c.shares, c.asset, e.NavDigits,
					c.digits)
			}
		}
		if got := strings.Join(got, ", "); got != c.want {
			t.Errorf("shares of %d decimals of an asset of %d: %s, want %s", c.shares, c.asset, got, c.want)
		}
		if SameMapping(r, record(18, 18)) != c.same || !s.Matches(r) || s.Matches(record(18, 17)) {
			t.Errorf("shares of %d decimals of an asset of %d: the record is another one: %t", c.shares, c.asset, c.same)
		}
	}
}

// TestOverlap checks that the logs of two vaults in one contract are distinguished by a topic, or rejected.
func TestOverlap(t *testing.T) {
	t.Parallel()
	at, by := common.Address{1}, func(topic int, value byte) []Filter { return []Filter{{topic, common.Hash{value}}} }
	for _, c := range []struct {
		a, b Source
		want bool
	}{
		{Source{Address: at}, Source{Address: common.Address{2}}, false},
		{Source{Address: at}, Source{Address: at}, true},
		{Source{Address: at, Filters: by(1, 1)}, Source{Address: at}, true},
		{Source{Address: at, Filters: by(1, 1)}, Source{Address: at, Filters: by(2, 2)}, true},
		{Source{Address: at, Filters: by(1, 1)}, Source{Address: at, Filters: by(1, 2)}, false},
	} {
		if got := c.a.Overlap(&c.b); got != c.want || got != c.b.Overlap(&c.a) {
			t.Errorf("%+v and %+v overlap: %t", c.a, c.b, got)
		}
	}
}

// TestCapabilities checks that a vault has exactly the capabilities of the rules for its own sources.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	if got, want := referenceMapping().capabilities(),
		(Capabilities{true, true, true, true, true, true, true}); got != want {
		t.Errorf("the capabilities of the reference contracts are %+v", got)
	}
	m, err := Parse("plain", []byte(plainVault))
	must(t, err)
	if got, want := m.capabilities(), (Capabilities{Deposits: true, Queue: true, Expiry: true}); got != want {
		t.Errorf("with both sources the capabilities are %+v", got)
	}
	single := Description{Sources: []Source{{Role: "vault"}}, Ranges: []Range{{Mapping: m}}}
	if got, want := single.Capabilities(), (Capabilities{Deposits: true}); got != want {
		t.Errorf("without the queue the capabilities are %+v", got)
	}
}

// TestKinds checks that the kinds of a vault are the events of its own sources that have an effect, each once.
func TestKinds(t *testing.T) {
	t.Parallel()
	veda, err := Preset("veda")
	must(t, err)
	kinds := func(roles ...string) string {
		d := Description{Ranges: []Range{{Mapping: veda}, {Mapping: veda}}}
		for _, role := range roles {
			d.Sources = append(d.Sources, Source{Role: role})
		}
		return strings.Join(d.Kinds(), " ")
	}
	const queue = "OnChainWithdrawRequested OnChainWithdrawCancelled OnChainWithdrawSolved "
	if got, want := kinds("vault", "teller", "accountant", "queue"),
		"Deposit BulkDeposit Withdraw "+queue+"ExchangeRateUpdated Transfer"; got != want {
		t.Errorf("with all sources the kinds are %q, want %q", got, want)
	}
	if got, want := kinds("vault", "teller", "accountant"),
		"Deposit BulkDeposit Withdraw ExchangeRateUpdated Transfer"; got != want {
		t.Errorf("without the queue the kinds are %q, want %q", got, want)
	}
}

// TestCompanionOfAnAbsentSource: a log of a source that the vault does not have completes no log, so it adds no
// capability, and the logs of a transaction need not be mapped together. Its own effects are none of the vault.
func TestCompanionOfAnAbsentSource(t *testing.T) {
	t.Parallel()
	m, err := Parse("gated", []byte(`preset: gated
sources: {vault: required, gateway: optional}
events:
  - on: Deposit(address indexed owner, uint256 assets, uint256 shares)
    emit: deposit
    set: {key: place, owner: $owner, assets: $assets, shares: $shares}
    with:
      on: Brought(uint32 indexed partner, uint256 shares)
      source: gateway
      match: {shares: $shares}
      set: {partner: $partner}
  - on: Minted(uint256 shares)
    source: gateway
    emit: supply
    set: {shares: $shares}
`))
	must(t, err)
	for _, roles := range [][]Source{{{Role: "vault"}}, {{Role: "vault"}, {Role: "gateway"}}} {
		d := Description{Sources: roles, Ranges: []Range{{To: math.MaxUint64, Mapping: m}}}
		if has := len(roles) > 1; d.Capabilities().Partners != has || d.Compile().Companions() != has ||
			d.Emits(Supply) != has {
			t.Errorf("with %d sources: partners %t, companions %t, supply %t", len(roles), d.Capabilities().Partners,
				d.Compile().Companions(), d.Emits(Supply))
		}
	}
}

// capabilities returns the capabilities of a vault that has all sources.
func (m *Mapping) capabilities() Capabilities {
	d := Description{Ranges: []Range{{Mapping: m}}}
	for _, r := range m.Roles {
		d.Sources = append(d.Sources, Source{Role: r.Name})
	}
	return d.Capabilities()
}

// TestSingle checks which numbers of the presets follow from single logs, and which rules prevent that.
func TestSingle(t *testing.T) {
	t.Parallel()
	values := map[string][3]bool{"reference": {true, true, true}, "erc4626": {true, false, false},
		"erc7540": {true, false, false}, "yo": {true, false, false}, "veda": {true, false, false},
		"lagoon-v0.6": {false, false, false}, "midas": {true, false, false}}
	single := map[string]Single{"reference": {true, true, true}, "erc4626": {true, true, true},
		"erc7540": {true, true, false}, "yo": {true, true, false}, "veda": {true, false, false},
		"lagoon-v0.6": {false, true, false}, "midas": {false, false, true}}
	for _, name := range Presets() {
		m, err := Preset(name)
		must(t, err)
		d := Description{Ranges: []Range{{Mapping: m}}}
		if got := d.Single(); got != single[name] {
			t.Errorf("%s: %+v follow from single logs, want %+v", name, got, single[name])
		}
		if has := [3]bool{!d.Derives(Nav), !d.Derives(Assets), !d.Derives(Shares)}; has != values[name] {
			t.Errorf("whether the valuations of %s have NAV, assets and shares: %t", name, has)
		}
		if all := values[name] == [3]bool{true, true, true}; d.Derives(Nav|Assets|Shares) == all {
			t.Errorf("whether a valuation of %s lacks a field: %t", name, all)
		}
	}
	for effect, want := range map[string]Single{
		"deposit\n    set: {key: $a, owner: $b, assets: $c, shares: $c}": {true, true, true},
		"claimed\n    set: {key: $a, owner: $b, assets: $c, shares: $c}": {true, true, true},
		"claimed\n    set: {key: $a, owner: $b}":                         {true, false, true},
		"claimed\n    set: {key: $a, assets: $c}":                        {true, false, true},
		"claimed\n    set: {owner: $b, assets: $c, shares: $c}":          {true, true, false},
		"funded\n    set: {up_to_key: $a}":                               {true, true, false},
		"funded\n    set: {key: $a}":                                     {true, true, true},
		"void\n    set: {key: $a}":                                       {false, true, true},
		"instant\n    set: {owner: $b, assets: $c, shares: $c}":          {true, true, true},
	} {
		m, err := (&checker{file: "one", recorded: true}).parse([]byte("preset: one\nsources: {vault: required}\nevents:\n" +
			"  - on: E(uint256 a, address b, uint256 c)\n    emit: " + effect + "\n"))
		must(t, err)
		if got := (&Description{Ranges: []Range{{Mapping: m}}}).Single(); got != want {
			t.Errorf("%s: %+v, want %+v", effect, got, want)
		}
	}
}
