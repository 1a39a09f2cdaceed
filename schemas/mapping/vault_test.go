package mapping

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// compile compiles the rules of a test.
func compile(t testing.TB, text string) *Vault {
	t.Helper()
	m, err := Parse("f.yaml", []byte(rules(text)))
	must(t, err)
	return m.Compile()
}

// emitted returns a log of an event: the first topics are the indexed parameters, the other words are the data.
func emitted(signature string, indexed int, words ...any) Log {
	l := Log{Place: Place(100, 2), Time: 1700000000, Topics: []common.Hash{crypto.Keccak256Hash([]byte(signature))}}
	for i, w := range words {
		var word common.Hash
		switch w := w.(type) {
		case int:
			word = common.BigToHash(big.NewInt(int64(w)))
			if w < 0 { // two's complement
				word = common.BigToHash(new(big.Int).Add(big.NewInt(int64(w)), new(big.Int).Lsh(big.NewInt(1), 256)))
			}
		case *big.Int:
			word = common.BigToHash(w)
		case common.Address:
			word = common.BytesToHash(w[:])
		case common.Hash:
			word = w
		}
		if i < indexed {
			l.Topics = append(l.Topics, word)
		} else {
			l.Data = append(l.Data, word[:]...)
		}
	}
	return l
}

// mapped maps one transaction without quarantined logs.
func mapped(t testing.TB, v *Vault, tx ...Log) []Effect {
	t.Helper()
	out, err := v.Map(tx, nil)
	must(t, err)
	return out
}

// TestExpressions checks what each expression computes from a log, and which logs cannot be counted because of it.
func TestExpressions(t *testing.T) {
	t.Parallel()
	const event = "A(uint256,uint128,int256,int64)"
	supply := func(expression string) *Vault {
		return compile(t, "  - on: A(uint256 a, uint128 b, int256 c, int64 d)\n    emit: supply\n    set: {shares: \""+
			expression+"\"}\n")
	}
	pow := func(bits uint) *big.Int { return new(big.Int).Lsh(big.NewInt(1), bits) }
	top := new(big.Int).Sub(MaxAmount, big.NewInt(1))
	for _, test := range []struct {
		expression string
		words      []any
		want       string // "" if the log is quarantined
	}{
		{"$a", []any{7, 0, 0, 0}, "7"},
		{"$a", []any{top, 0, 0, 0}, top.String()},
		{"$a", []any{MaxAmount, 0, 0, 0}, ""},
		{"$a", []any{1, pow(128), 0, 0}, ""}, // a word that is not a valid uint128, whether it is read or not
		{"$a", []any{1, 0, 0, pow(63)}, ""},
		{"$d", []any{1, 0, 0, -5}, "-5"},
		{"$c", []any{1, 0, -5, 0}, "-5"},
		{"$c", []any{1, 0, pow(255), 0}, ""},
		{"add($a, $b)", []any{7, 8, 0, 0}, "15"},
		{"add($a, $b)", []any{top, 1, 0, 0}, ""},
		{"add($a, $c)", []any{7, 0, -9, 0}, "-2"},
		{"add($a, 0x10)", []any{7, 0, 0, 0}, "23"},
		{"sub($a, $b)", []any{7, 8, 0, 0}, "-1"},
		{"sub(0, $a)", []any{7, 0, 0, 0}, "-7"},
		{"sub(0, $a)", []any{MaxAmount, 0, 0, 0}, ""},
		{"sub(sub($a, $b), $d)", []any{10, 3, 0, -1}, "8"},
		{"mulDiv($a, $b, 3)", []any{7, 2, 0, 0}, "4"}, // 4.67, rounded down
		{"mulDiv($a, $a, $a)", []any{top, 0, 0, 0}, top.String()},
		{"mulDiv($a, $b, 1)", []any{top, 2, 0, 0}, ""},
		{"mulDiv($a, 1, $b)", []any{7, 0, 0, 0}, ""}, // divides by zero
		{"mulDiv($c, 1, 1)", []any{7, 0, -1, 0}, ""}, // rounding down is not defined below zero
		{"place", []any{0, 0, 0, 0}, fmt.Sprint(100<<24 | 2)},
		{"$block", []any{0, 0, 0, 0}, "100"},
		{"$time", []any{0, 0, 0, 0}, "1700000000"},
		{"12", []any{0, 0, 0, 0}, "12"},
	} {
		out, err := supply(test.expression).Map([]Log{emitted(event, 0, test.words...)}, nil)
		if got := signed(out); got != test.want || (err != nil) != (test.want == "") {
			t.Errorf("%s of %v is %q, %v; want %q", test.expression, test.words, got, err, test.want)
		}
	}
}

// signed returns the shares of the only effect.
func signed(out []Effect) string {
	if len(out) != 1 {
		return ""
	}
	v := out[0].Shares
	if v.Sign() < 0 {
		v.Neg(&v)
		return "-" + v.Dec()
	}
	return v.Dec()
}

// TestAmountsAreNotNegative checks that only the supply can be negative.
func TestAmountsAreNotNegative(t *testing.T) {
	t.Parallel()
	v := compile(t, "  - on: A(address a, uint256 b, uint256 c)\n    emit: instant\n    set: {owner: $a, shares: $b, "+
		"assets: \"sub($b, $c)\"}\n")
	if out := mapped(t, v, emitted("A(address,uint256,uint256)", 0, alice, 5, 3)); out[0].Assets != amountOf(n(2)) ||
		out[0].Owner != alice {
		t.Errorf("the effect is %+v", out[0])
	}
	if out, err := v.Map([]Log{emitted("A(address,uint256,uint256)", 0, alice, 5, 6)}, nil); err == nil || len(out) != 0 ||
		!strings.Contains(err.Error(), "is negative") {
		t.Errorf("a negative amount: %+v, %v", out, err)
	}
}

// TestWhen checks that the first rule whose conditions hold claims a log; a log that no rule claims is known and has no
// effect.
func TestWhen(t *testing.T) {
	t.Parallel()
	const transfer = "  - on: Transfer(address indexed from, address indexed to, uint256 value)\n"
	v := compile(t, transfer+
		"    when: {from: 0x0000000000000000000000000000000000000000}\n    emit: supply\n    set: {shares: $value}\n"+
		transfer+"    when: {to: 0x0000000000000000000000000000000000000000}\n    emit: supply\n    set: {shares: "+
		"\"sub(0, $value)\"}\n"+
		transfer+"    when: {from: $to}\n    emit: void\n    set: {key: $value}\n")
	log := func(from, to common.Address) Log { return emitted("Transfer(address,address,uint256)", 2, from, to, 9) }
	var zero common.Address
	for _, test := range []struct {
		from, to common.Address
		want     string
	}{{zero, alice, "supply 9"}, {alice, zero, "supply -9"}, {zero, zero, "supply 9"}, {alice, alice, "void 0"},
		{alice, bob, ""}} {
		l, got := log(test.from, test.to), ""
		if out := mapped(t, v, l); len(out) == 1 {
			got = out[0].Kind.String() + " " + signed(out)
		}
		if got != test.want || v.events[0].Name != "Transfer" || len(v.events) != 1 {
			t.Errorf("from %s to %s: %q, want %q", test.from, test.to, got, test.want)
		}
	}
	// A token of another standard has the same topic, with three indexed parameters.
	l := emitted("Transfer(address,address,uint256)", 3, alice, bob, 9)
	if event, out, fault := v.One(&l, nil); event == nil || out != nil || fault == nil ||
		fault.Error() !=
			"Transfer: the log has 4 topics, and no rule declares the event with 3 indexed parameters" {
		t.Errorf("%v, %v, %v", event, out, fault)
	}
}

// paid is a rule that claims the requests of a mapping, the oldest of an owner first.
const paid = "  - on: Paid(address who, uint256 assets, uint256 shares)\n    emit: claimed\n    set: {owner: $who, assets: " +
	"$assets, shares: $shares}\n"

// TestSeveralEffects checks that one log can have several effects, and has none if one of them cannot be counted.
func TestSeveralEffects(t *testing.T) {
	t.Parallel()
	v := compile(t, "  - on: Settled(uint256 epoch, uint256 assets, uint256 shares)\n    emit:\n"+
		"      - {priced: {side: redeem, group: $epoch, assets: $assets, shares: $shares}}\n      - {funded: "+
		"{up_to_group: $epoch}}\n  - on: Asked(address who, uint256 epoch, uint256 shares)\n    emit: requested\n    set: "+
		"{key: place, owner: $who, group: $epoch, shares: $shares}\n"+paid)
	out := mapped(t, v, Log{}, emitted("Settled(uint256,uint256,uint256)", 0, 4, 5, 6))
	want := []Effect{
		{Kind: Priced, Side: RedeemSide, Log: 1, Has: SideField | Group | Assets | Shares, Group: 4, Assets: amountOf(n(5)),
			Shares: amountOf(n(6))},
		{Kind: Funded, Log: 1, Sub: 1, Has: GroupTo, GroupTo: 4},
	}
	if !slices.Equal(out, want) {
		t.Errorf("the effects are\n%+v, want\n%+v", out, want)
	}
	if out, err := v.Map([]Log{emitted("Settled(uint256,uint256,uint256)", 0, new(big.Int).Lsh(big.NewInt(1), 64), 5, 6)},
		nil); err == nil || len(out) != 0 {
		t.Errorf("a group of 65 bits: %+v, %v", out, err)
	}
}

const withReferral = `  - on: DepositRequest(address indexed controller, address indexed owner, uint256 indexed requestId, address sender, uint256 assets)
    emit: deposit
    set: {key: place, group: $requestId, owner: $controller, sender: $sender, assets: $assets}
    with:
      on: Referral(address indexed referral, address indexed owner, uint256 indexed requestId, uint256 assets)
      match: {requestId: $requestId, owner: $owner}
      set: {attribution: $referral}
  - on: SettleDeposit(uint40 epochId, uint256 assets, uint256 shares)
    emit: [{priced: {side: deposit, up_to_group: $epochId, assets: $assets, shares: $shares}}]
`

// TestCompanion checks that a companion completes the log that it matches, wherever it is in the transaction, and only
// one log. A log without a companion is complete, and names no partner.
func TestCompanion(t *testing.T) {
	t.Parallel()
	v := compile(t, withReferral)
	place := uint32(0)
	at := func(l Log) Log { place++; l.Place = Place(1, place); return l }
	deposit := func(owner common.Address, request int) Log {
		return at(emitted("DepositRequest(address,address,uint256,address,uint256)", 3, owner, owner, request, bob, 10))
	}
	referral := func(who byte, owner common.Address, request int) Log {
		return at(emitted("Referral(address,address,uint256,uint256)", 3, common.Address{19: who}, owner, request, 10))
	}
	attributions := func(tx ...Log) (out []int) {
		for _, e := range mapped(t, v, tx...) {
			if e.Kind != Deposit || e.Present(Attribution) != (e.Attribution != common.Hash{}) || e.ID != tx[e.Log].Place {
				t.Errorf("the effect is %+v", e)
			}
			out = append(out, int(e.Attribution[31]))
		}
		return out
	}
	broken := referral(5, alice, 1)
	broken.Data = broken.Data[1:]
	for name, test := range map[string]struct{ got, want []int }{
		"none":                {attributions(deposit(alice, 1)), []int{0}},
		"after":               {attributions(deposit(alice, 1), referral(3, alice, 1)), []int{3}},
		"before":              {attributions(referral(3, alice, 1), deposit(alice, 1)), []int{3}},
		"for another owner":   {attributions(deposit(alice, 1), referral(3, bob, 1)), []int{0}},
		"for another request": {attributions(deposit(alice, 1), referral(3, alice, 2)), []int{0}},
		"two, reversed": {attributions(deposit(alice, 1), deposit(bob, 1), referral(4, bob, 1), referral(3, alice, 1)),
			[]int{3, 4}},
		"two of one request": {attributions(deposit(alice, 1), referral(3, alice, 1), deposit(alice, 1),
			referral(4, alice, 1)), []int{3, 4}},
		"one for two deposits": {attributions(deposit(alice, 1), deposit(alice, 1), referral(3, alice, 1)), []int{3, 0}},
		"without a partner":    {attributions(deposit(alice, 1), referral(0, alice, 1)), []int{0}},
		"with another layout":  {attributions(deposit(alice, 1), broken), []int{0}},
	} {
		if !slices.Equal(test.got, test.want) {
			t.Errorf("a companion %s: attributed to %v, want %v", name, test.got, test.want)
		}
	}
	single := referral(3, alice, 1)
	if event := v.Event(&single); event == nil || event.Name != "Referral" {
		t.Errorf("the companion's log is %v", event)
	}
}

// TestCompanionOfAnotherSource checks that a companion can be the event of the rule itself, from another source: the
// transfer of the assets that completes the transfer of the shares.
func TestCompanionOfAnotherSource(t *testing.T) {
	t.Parallel()
	v := compile(t, "  - on: Transfer(address indexed from, address indexed to, uint256 value)\n    when: {from: "+
		common.Address{}.Hex()+"}\n    emit: deposit\n    set: {key: place, owner: $to, shares: $value}\n    with:\n"+
		"      on: Transfer(address indexed from, address indexed to, uint256 value)\n      source: oracle\n"+
		"      match: {from: $to}\n      set: {assets: $value}\n")
	transfer := func(role uint8, from, to common.Address, value int) Log {
		l := emitted("Transfer(address,address,uint256)", 2, from, to, value)
		l.Role = role
		return l
	}
	out := mapped(t, v, transfer(0, common.Address{}, alice, 80), transfer(0, alice, bob, 5), transfer(1, alice, bob, 100))
	if len(out) != 1 || out[0].Owner != alice || out[0].Shares != amountOf(n(80)) || out[0].Assets != amountOf(n(100)) {
		t.Errorf("the effects are %+v", out)
	}
}

// TestCompanionWithLiteral checks that a companion is chosen by a literal too: the mint among all transfers to a user.
func TestCompanionWithLiteral(t *testing.T) {
	t.Parallel()
	v := compile(t, "  - on: Submitted(address indexed who, uint256 assets)\n    emit: deposit\n    set: {key: place, "+
		"owner: $who, assets: $assets}\n    with:\n      on: Transfer(address indexed from, address indexed to, uint256 "+
		"shares)\n      match: {to: $who, from: 0x0000000000000000000000000000000000000000}\n      set: {shares: $shares}\n")
	moved := func(from, to common.Address, shares int) Log {
		return emitted("Transfer(address,address,uint256)", 2, from, to, shares)
	}
	submitted := emitted("Submitted(address,uint256)", 1, alice, 120)
	out := mapped(t, v, moved(bob, alice, 7), submitted, moved(common.Address{}, bob, 8),
		moved(common.Address{}, alice, 100))
	if len(out) != 1 || out[0].Shares.Uint64() != 100 || out[0].Assets.Uint64() != 120 {
		t.Errorf("the effects are %+v", out)
	}
	if _, err := v.Map([]Log{moved(bob, alice, 7), submitted}, nil); err == nil {
		t.Error("a transfer from another user completes the log")
	}
}

// TestCopiedDeclarations checks that the lines and comments of a declaration do not matter.
func TestCopiedDeclarations(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"|\n      event Asked(\n          uint256 indexed id, // the request's id\n          " +
		"address owner /* of the\n          shares */\n      );\n",
		"|\n      /// @notice Shares are requested.\n      event Asked(uint256 indexed id, address owner);\n",
		">-\n      event Asked(\n          uint256 indexed id,\n          address owner\n      );\n",
		"event Asked(\n        uint256 indexed id,\n        address owner\n      );\n",
		"event Asked(uint256 indexed id, address\n        payable owner);\n"} {
		m, err := Parse("f.yaml", []byte(rules("  - on: "+text+"    emit: none\n")))
		if err != nil || m.Events()[0].Signature != "Asked(uint256,address)" {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestStructMembers checks that a rule reads the members of a struct whose words are in the log one after the other.
// Those that no rule reads can have any value.
func TestStructMembers(t *testing.T) {
	t.Parallel()
	const struct4 = "(address token, (uint64 id, int128) inner, uint256[2] list, uint128 paid)"
	v := compile(t, "  - on: event Claimed(uint256 index, "+struct4+" request, bool indexed last, uint256 shares);\n"+
		"    when: {request.token: 0x00000000000000000000000000000000000000b2}\n    emit: instant\n"+
		"    set: {owner: $request.token, assets: \"sub($request.paid, $index)\", shares: $shares}\n"+
		"  - on: Claimed(uint256, "+struct4+" request, bool indexed, uint256)\n    emit: void\n    set: {key: "+
		"$request.inner.id}\n")
	token := common.Address{19: 0xb2}
	claimed := func(words ...any) Log {
		return emitted("Claimed(uint256,(address,(uint64,int128),uint256[2],uint128),bool,uint256)", 1, words...)
	}
	out := mapped(t, v, claimed(1, 2, token, 7, -8, 9, 10, 102, 11), claimed(1, 2, alice, 7, -8, 9, 10, 102, 11))
	want := []Effect{
		{Kind: Instant, Has: Owner | Assets | Shares, Owner: token, Assets: amountOf(n(100)), Shares: amountOf(n(11))},
		{Kind: Void, Log: 1, Has: ID, ID: 7},
	}
	if !slices.Equal(out, want) {
		t.Errorf("the effects are\n%+v, want\n%+v", out, want)
	}
	long := new(big.Int).Lsh(big.NewInt(1), 200)
	for name, test := range map[string]struct {
		log  Log
		want int
	}{
		"a token that is no address and not read":       {claimed(1, 2, long, 7, -8, 9, 10, 102, 11), 1},
		"a paid amount of more than 128 bits":           {claimed(1, 2, token, 7, -8, 9, 10, long, 11), 0},
		"a paid amount of more than 128 bits, not read": {claimed(1, 2, alice, 7, -8, 9, 10, long, 11), 1},
		"an id of more than 64 bits":                    {claimed(1, 2, alice, long, -8, 9, 10, 102, 11), 0},
		"an id of more than 64 bits, not read":          {claimed(1, 2, token, long, -8, 9, 10, 102, 11), 1},
	} {
		if out, err := v.Map([]Log{test.log}, nil); len(out) != test.want || (err != nil) != (test.want == 0) {
			t.Errorf("%s: %+v, %v", name, out, err)
		}
	}
}

// TestVoidWithCompanion: a deposit whose shares come from an optional companion may wait for its price, so it can be
// void.
func TestVoidWithCompanion(t *testing.T) {
	t.Parallel()
	compile(t, "  - on: Bought(uint256 id, address who, uint256 assets)\n    emit: deposit\n"+
		"    set: {key: $id, owner: $who, assets: $assets, group: 1}\n"+
		"    with: {on: 'Minted(address to, uint256 shares)', match: {to: $who}, set: {shares: $shares}}\n"+
		"  - on: Refunded(uint256 id)\n    emit: void\n    set: {key: $id}\n"+
		"  - on: Priced(uint256 assets, uint256 shares)\n    emit: priced\n    set: {side: deposit, group: 1, assets: "+
		"$assets, shares: $shares}\n")
}

// TestKeyIsGroup checks that requests that are funded up to a key are priced by their keys.
func TestKeyIsGroup(t *testing.T) {
	t.Parallel()
	v := compile(t, "  - on: Asked(uint256 id, address who, uint256 shares)\n    emit: requested\n    set: {key: $id, "+
		"owner: $who, shares: $shares}\n  - on: Processed(uint256 last, uint256 rate)\n    emit:\n      - {priced: {side: "+
		"redeem, up_to_group: $last, assets: $rate, shares: 100}}\n      - {funded: {up_to_key: $last}}\n"+paid)
	out := mapped(t, v, emitted("Asked(uint256,address,uint256)", 0, 5, alice, 10),
		emitted("Processed(uint256,uint256)", 0, 5, 105))
	if len(out) != 3 || out[0].Group != 5 || !out[0].Present(Group) || out[1].GroupTo != 5 || out[2].To != 5 {
		t.Errorf("the effects are %+v", out)
	}
}

// TestNeededCompanion checks that a log that needs a companion for its effect is quarantined if there is none.
func TestNeededCompanion(t *testing.T) {
	t.Parallel()
	v := compile(t, "  - on: Paid(uint256 id, address who)\n    emit: instant\n    set: {owner: $who}\n"+
		"    with:\n      on: Amounts(uint256 id, uint256 shares, uint256 assets)\n      source: oracle\n      match: "+
		"{id: $id}\n      set: {shares: $shares, assets: $assets}\n")
	paid, amounts := emitted("Paid(uint256,address)", 0, 1, alice), emitted("Amounts(uint256,uint256,uint256)", 0, 1, 5, 6)
	if out, err := v.Map([]Log{paid, amounts}, nil); err == nil || len(out) != 0 ||
		err.Error() != "log 0: Paid: the transaction has no companion for it: Amounts" {
		t.Errorf("a companion of another source: %+v, %v", out, err)
	}
	if _, _, fault := v.One(&paid, nil); fault == nil {
		t.Error("a log without its companion is counted")
	}
	amounts.Role = 1
	want := Effect{Kind: Instant, Has: Owner | Shares | Assets, Owner: alice, Shares: amountOf(n(5)),
		Assets: amountOf(n(6))}
	if out := mapped(t, v, paid, amounts); len(out) != 1 || out[0] != want {
		t.Errorf("the effects are %+v, want %+v", out, want)
	}
	if out, err := v.Map([]Log{paid,
		func() Log { l := emitted("Amounts(uint256,uint256,uint256)", 0, 1, MaxAmount, 6); l.Role = 1; return l }()},
		nil); err == nil || len(out) != 0 {
		t.Errorf("a companion with too large an amount: %+v, %v", out, err)
	}
}

// TestWrongGroups checks that a log that prices no groups, or too many, is quarantined with the reason.
func TestWrongGroups(t *testing.T) {
	t.Parallel()
	v := compile(t, "  - on: In(address who, uint256 group, uint256 assets)\n    emit: deposit\n    set: {key: place, "+
		"owner: $who, group: $group, assets: $assets}\n  - on: Priced(uint256 first, uint256 last)\n    emit: priced\n    "+
		"set: {side: deposit, group: $first, to_group: $last, assets: 1, shares: 1}\n")
	for _, c := range []struct {
		last int
		want string
	}{{5, ""}, {1004, ""}, {1005, "it prices the groups 5 to 1005: one log can price 1 to 1000 groups"},
		{4, "it prices the groups 5 to 4: one log can price 1 to 1000 groups"}} {
		l, got := emitted("Priced(uint256,uint256)", 0, 5, c.last), ""
		_, effects, fault := v.One(&l, nil)
		if fault != nil {
			got = fault.Why
		}
		if got != c.want || len(effects) == 0 != (fault != nil) {
			t.Errorf("the groups 5 to %d: %q with %d effects, want %q", c.last, got, len(effects), c.want)
		}
	}
}

// TestRequestOfNoShares checks that a request of no shares, which anyone can make, has no effect in a queue that is
// claimed first in, first out: it is neither quarantined nor a referral. In another queue it has a key, and counts.
func TestRequestOfNoShares(t *testing.T) {
	t.Parallel()
	for claim, want := range map[string]int{"owner: $who, assets: $value, shares: $value": 0,
		"key: $value, assets: $value": 1} {
		s := sourcesOf(t, "preset: asked\nsources: {vault: required}\nevents:\n"+
			"  - on: Asked(address indexed who, uint32 partner, uint256 shares)\n    emit: requested\n    set: {key: $partner, "+
			"owner: $who, partner: $partner, shares: $shares}\n  - on: Paid(address indexed who, uint256 value)\n    emit: "+
			"claimed\n    set: {"+claim+"}\n")
		for shares, want := range map[int]int{0: want, 1: 1} {
			requested := emitted("Asked(address,uint32,uint256)", 1, alice, 7, shares)
			effects := mapped(t, s.Vault, requested)
			record := asRecord(requested)
			record.Address = make([]byte, common.AddressLength)
			referral, err := s.Referral(record)
			if len(effects) != want || (referral != nil) != (want > 0) || err != nil {
				t.Errorf("claims with %s: a request of %d shares has %d effects and the referral %v, %v", claim, shares,
					len(effects), referral, err)
			}
		}
	}
}

// TestDynamicData checks an event with a string or a list: its words are where its declaration puts them, with more
// data after them.
func TestDynamicData(t *testing.T) {
	t.Parallel()
	v := compile(t, "  - on: A(string note, uint256[2] pair, (address who, bytes data) inner, uint256 shares, string "+
		"indexed hash)\n    emit: supply\n    set: {shares: $shares}\n")
	l := emitted("A(string,uint256[2],(address,bytes),uint256,string)", 1, 1, 0xa0, 1, 2, 0xc0, 77, 0, 0)
	if out := mapped(t, v, l); signed(out) != "77" {
		t.Errorf("the effects are %+v", out)
	}
	for _, length := range []int{0, 31, 32 * 5} {
		short := l
		short.Data = l.Data[:max(0, length-1)]
		if _, _, fault := v.One(&short, nil); fault == nil {
			t.Errorf("a log with %d bytes of data is counted", len(short.Data))
		}
	}
}

// TestMappingsTogether: a mapping may pay the requests of another one of its vault, and one of them must.
func TestMappingsTogether(t *testing.T) {
	t.Parallel()
	presets := map[string]string{
		"old": "preset: old\nsources: {vault: required}\nevents:\n  - on: A(uint256 x, address who)\n    emit: requested\n" +
			"    set: {key: $x, owner: $who, shares: $x}\n",
		"new": "preset: new\nsources: {vault: required}\nevents:\n  - on: B(uint256 x)\n    emit: claimed\n" +
			"    set: {key: $x, assets: $x}\n",
		"none": "preset: none\nsources: {vault: required}\nevents:\n  - on: C(uint256 x)\n    emit: none\n",
	}
	preset := func(name string) (*Mapping, error) { return Parse(name, []byte(presets[name])) }
	never, unmade := "no rule emits `claimed`", "no rule emits `requested`"
	for names, want := range map[[2]string]string{
		{"old", "new"}: "", {"new", "old"}: "", {"old", "none"}: never, {"none", "old"}: never, {"new", "none"}: unmade,
		{"none", "new"}: unmade, {"none", "none"}: "", {"old", "old"}: never,
	} {
		_, _, err := ParseFile("v.yaml", []byte(fmt.Sprintf("sources: {vault: 0x0000000000000000000000000000000000000001}\n"+
			"presets: [{preset: %s, to: 9}, {preset: %s, from: 10}]\n", names[0], names[1])), preset)
		if got := fmt.Sprint(err); (want == "") != (err == nil) || !strings.Contains(got, want) {
			t.Errorf("%v: %s, want %q", names, got, want)
		}
	}
	for name, want := range map[string]string{"old": never, "new": unmade, "none": ""} {
		_, _, err := ParseFile(name, []byte(presets[name]), preset)
		if got := fmt.Sprint(err); (want == "") != (err == nil) || !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %q", name, got, want)
		}
	}
}

// TestRanges checks that a vault that was upgraded uses the mapping of the block, and has no events outside of its
// ranges.
func TestRanges(t *testing.T) {
	t.Parallel()
	presets := map[string]string{
		"old": "preset: old\nsources: {vault: required}\nevents:\n  - on: A(uint256 x)\n    emit: supply\n    set: " +
			"{shares: $x}\n",
		"new": "preset: new\nsources: {gate: required, vault: required}\nevents:\n  - on: A(uint256 x)\n    source: " +
			"gate\n    emit: void\n    set: {key: $x}\n",
	}
	_, d, err := ParseFile("v.yaml",
		[]byte("sources:\n  vault: 0x0000000000000000000000000000000000000001\n  gate: "+
			"0x0000000000000000000000000000000000000002\npresets:\n  - {preset: old, from: 5, to: 9}\n  - {preset: new, "+
			"from: 10, to: 19}\n"),
		func(name string) (*Mapping, error) { return Parse(name, []byte(presets[name])) })
	must(t, err)
	if len(d.Sources) != 2 || d.Sources[1].Role != "gate" || d.Sources[1].Address != (common.Address{19: 2}) ||
		d.Ranges[1].From != 10 {
		t.Fatalf("the description is %+v", d)
	}
	v := d.Compile()
	for _, test := range []struct {
		block uint64
		role  uint8
		want  string
	}{{4, 0, ""}, {5, 0, "supply"}, {9, 0, "supply"}, {9, 1, ""}, {10, 0, ""}, {10, 1, "void"}, {19, 1, "void"},
		{20, 1, ""}} {
		l, got := emitted("A(uint256)", 0, 3), ""
		l.Place, l.Role = Place(test.block, 0), test.role
		if out := mapped(t, v, l); len(out) == 1 {
			got = out[0].Kind.String()
		}
		if got != test.want {
			t.Errorf("block %d, source %d: %q, want %q", test.block, test.role, got, test.want)
		}
	}
}

// TestManyLogs checks that a transaction with thousands of logs costs no more per log than a small one: each companion
// is looked up, not compared with all logs.
func TestManyLogs(t *testing.T) {
	t.Parallel()
	const logs = 20_000
	v := compile(t, withReferral)
	var tx []Log
	for i := range logs {
		tx = append(tx, emitted("DepositRequest(address,address,uint256,address,uint256)", 3, alice, alice, 1, bob, i),
			emitted("Referral(address,address,uint256,uint256)", 3, alice, alice, 1, i))
	}
	m := transaction{v: v, logs: tx}
	var out []Effect
	for i := range tx {
		_, out, _ = v.one(&tx[i], i, &m, out)
	}
	if len(out) != logs || len(m.found) != 1 {
		t.Errorf("%d effects, %d groups of companions", len(out), len(m.found))
	}
	for _, e := range out {
		if !e.Present(Attribution) {
			t.Fatalf("%+v has no attribution", e)
		}
	}
}

// FuzzMap checks that no bytes cause a panic, that a quarantined log has no effect, that an unknown log has no fault,
// and that every counted amount can be summed.
func FuzzMap(f *testing.F) {
	mappings := []*Vault{Reference(), compile(f, withReferral),
		compile(f, "  - on: A(int128 a, bool b, bytes4 c, string d)\n    emit: supply\n    set: {shares: \"add($a, "+
			"mulDiv($block, $time, 7))\"}\n"),
		compile(f, "  - on: A((int128 x, bool y, (uint8 z, bytes4 w) v) a, bytes b)\n    when: {a.y: true}\n    emit: "+
			"supply\n    set: {shares: \"add($a.x, $a.v.z)\"}\n")}
	for i, vector := range vectors {
		l := logOf(f, vector.event)
		f.Add(uint8(0), uint8(i), uint8(len(l.Topics)), uint8(0), l.Data)
	}
	f.Add(uint8(1), uint8(0), uint8(4), uint8(1), make([]byte, 64))
	f.Add(uint8(1), uint8(1), uint8(4), uint8(1), make([]byte, 32))
	f.Add(uint8(2), uint8(0), uint8(1), uint8(0), append(slices.Repeat([]byte{0xff}, 32), make([]byte, 96)...))
	f.Add(uint8(2), uint8(0), uint8(200), uint8(255), []byte(nil))
	f.Fuzz(func(t *testing.T, which, event, topics, role uint8, data []byte) {
		v := mappings[int(which)%len(mappings)]
		l := Log{Role: role % 3, Place: binary.BigEndian.Uint64(append(slices.Clone(data), make([]byte, 8)...)),
			Time: 1 << 63, Data: data}
		for i := range int(topics) {
			var topic common.Hash
			if i == 0 {
				topic = v.events[int(event)%len(v.events)].Topic
			} else {
				copy(topic[12:], data)
			}
			l.Topics = append(l.Topics, topic)
		}
		tx := []Log{l, l, {Topics: l.Topics, Data: data}}
		out, err := v.Map(tx, nil)
		quarantine, _ := err.(Quarantine)
		bad := map[uint32]bool{}
		for _, q := range quarantine {
			bad[uint32(q.Log)] = true
			if q.Error() == "" || v.Event(&tx[q.Log]) == nil {
				t.Fatalf("%v of an unknown log", q)
			}
		}
		for _, e := range out {
			if bad[e.Log] || v.Event(&tx[e.Log]) == nil {
				t.Fatalf("%+v is an effect of a log that has none", e)
			}
			for _, a := range []Amount{e.Assets, e.Shares, e.Nav} {
				if !fits(&a, amountBits, e.Kind == Supply) {
					t.Fatalf("%+v cannot be summed", e)
				}
			}
			if !satisfied(e.Kind, e.Has) {
				t.Fatalf("%+v lacks a field", e)
			}
		}
	})
}

// FuzzParse checks that no text causes a panic, and that a text without mistakes compiles.
func FuzzParse(f *testing.F) {
	reference, err := PresetText("reference")
	must(f, err)
	f.Add(string(reference))
	f.Add(rules(withReferral))
	f.Add(rules(bought + "    when: {who: 0x00}\n    emit: [{supply: {shares: \"add($a, sub(1, (2))\"}}]\n"))
	f.Add(rules("  - on: A((uint256,(string)[3])[],bytes33,uint,)\n    emit: none\n"))
	f.Add(rules("  - on: A(string[1000][1000][1000] a, ((((((((((uint8)))))))))) b)\n    emit: none\n"))
	f.Add("sources: {vault: [1]}\npresets: [{preset: {}}, {preset: reference, from: [], to: 5}]\n")
	f.Add("a: &a [*a]\n? {b: c}\n: !!binary x\n<<: *a\n")
	f.Add("preset: ~\nsources: ~\nevents: [~, {on: ~}, {on: A(), emit: ~, set: ~, when: ~, with: ~}]\nnav: ~\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse("f.yaml", []byte(text))
		if (err == nil) != (m != nil) {
			t.Fatalf("%v, %v", m, err)
		}
		if m != nil {
			m.Compile()
		}
		m, d, err := ParseFile("f.yaml", []byte(text), Preset)
		if (err == nil) != (m != nil || d != nil) {
			t.Fatalf("%v, %v, %v", m, d, err)
		}
		if d != nil {
			d.Compile()
		}
	})
}
