package mapping

import (
	"bytes"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/contracts"
)

var (
	alice = common.HexToAddress("0x00112233445566778899aabbccddeeff00112233")
	bob   = common.HexToAddress("0xffeeddccbbaa99887766554433221100ffeeddcc")
	most  = new(big.Int).Sub(MaxAmount, big.NewInt(1))
	n     = big.NewInt
)

// vectors are the events of the reference contracts, and the effects that they had before there was a mapping language.
var vectors = []struct {
	event contracts.Event
	want  Effect
}{
	{contracts.DepositAccepted{DepositID: n(1), Owner: alice, PartnerID: 7, Sender: bob, Assets: n(2), Shares: most},
		Effect{Kind: Deposit, Has: ID | Owner | Partner | Other | Assets | Shares, ID: 1, Owner: alice, Partner: 7,
			Other:  bob,
			Assets: amountOf(n(2)), Shares: amountOf(most)}},
	{contracts.DepositAccepted{DepositID: n(0), Owner: bob, Sender: alice, Assets: n(0), Shares: n(0)},
		Effect{Kind: Deposit, Has: ID | Owner | Other | Assets | Shares, Owner: bob, Other: alice}},
	{contracts.WithdrawalRequested{RequestIndex: n(3), Owner: alice, PartnerID: 1<<32 - 1, Receiver: bob, Shares: n(4),
		AssetsEstimate: n(5), ExpiresAt: 1<<64 - 1},
		Effect{Kind: Requested, Has: ID | Owner | Partner | Other | Assets | Shares | Expires, ID: 3, Owner: alice,
			Partner: 1<<32 - 1, Other: bob, Shares: amountOf(n(4)), Assets: amountOf(n(5)), Expires: 1<<64 - 1}},
	{contracts.WithdrawalFunded{RequestIndex: n(6), Owner: alice, SettlementID: MaxAmount, Shares: n(7), Assets: n(8)},
		Effect{Kind: Funded, Has: ID | Owner | Assets | Shares, ID: 6, Owner: alice, Shares: amountOf(n(7)),
			Assets: amountOf(n(8))}},
	{contracts.WithdrawalClaimed{RequestIndex: n(9), Owner: alice, Receiver: bob, Shares: n(10), Assets: n(11)},
		Effect{Kind: Claimed, Has: ID | Owner | Other | Assets | Shares, ID: 9, Owner: alice, Other: bob,
			Shares: amountOf(n(10)), Assets: amountOf(n(11))}},
	{contracts.WithdrawalCancelled{RequestIndex: n(12), Owner: bob, Shares: n(13)},
		Effect{Kind: Cancelled, Has: ID | Owner | Shares, ID: 12, Owner: bob, Shares: amountOf(n(13))}},
	{contracts.WithdrawalExpired{RequestIndex: n(14), Owner: bob, Shares: n(15)},
		Effect{Kind: Expired, Has: ID | Owner | Shares, ID: 14, Owner: bob, Shares: amountOf(n(15))}},
	{contracts.NavUpdated{NavID: MaxAmount, Updater: bob, NavPerShare: n(1e18), TotalAssets: n(16), TotalSupply: n(17)},
		Effect{Kind: Valuation, Has: Nav | Assets | Shares | Other, Other: bob, Nav: amountOf(n(1e18)),
			Assets: amountOf(n(16)), Shares: amountOf(n(17)), NavDigits: 18}},
	{contracts.DepositsSwept{SweepID: n(18), Custodian: alice, FromDepositID: n(19), ToDepositID: n(20), Assets: n(21)},
		Effect{Kind: Sweep, Has: ID | To | Other | Assets, ID: 19, To: 20, Other: alice, Assets: amountOf(n(21))}},
	{contracts.WithdrawalsSettled{SettlementID: n(22), Funder: bob, RequestCount: MaxAmount, Shares: n(24), Assets: n(25),
		NavPerShare: n(26)},
		Effect{Kind: Settled, Has: Assets | Shares | Nav | Other, Other: bob, Shares: amountOf(n(24)),
			Assets: amountOf(n(25)),
			Nav:    amountOf(n(26))}},
}

func amountOf(v *big.Int) (out Amount) {
	out.SetFromBig(v)
	return out
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// logOf encodes an event of the reference contracts with their own encoder.
func logOf(t testing.TB, e contracts.Event) Log {
	t.Helper()
	topics, data, err := contracts.Encode(e)
	must(t, err)
	return Log{Place: Place(100, 2), Time: 1700000000, Topics: topics, Data: data}
}

// TestPresets checks that every shipped preset has no mistakes and is in a file with its name.
func TestPresets(t *testing.T) {
	t.Parallel()
	if !slices.Contains(Presets(), "reference") {
		t.Fatalf("the presets are %v", Presets())
	}
	for _, name := range Presets() {
		m, err := Preset(name)
		must(t, err)
		if m.Name != name {
			t.Errorf("the file of %s has the preset %s", name, m.Name)
		}
	}
	if _, err := Preset("no-such"); err == nil ||
		err.Error() != `unknown preset "no-such": the presets are `+series(Presets(), "and") {
		t.Error(err)
	}
}

// TestReference checks that the preset has exactly the events of the reference contracts, and gives each its effect.
func TestReference(t *testing.T) {
	t.Parallel()
	v := Reference()
	if got := len(v.Events()); got != len(contracts.Kinds()) {
		t.Errorf("the preset has %d events, the contracts have %d", got, len(contracts.Kinds()))
	}
	for i, vector := range vectors {
		log := logOf(t, vector.event)
		event, got, fault := v.One(&log, nil)
		kind := vector.event.Kind()
		if fault != nil || event == nil || event.Name != kind.String() || event.Signature != kind.Signature() ||
			event.Topic != kind.Topic() {
			t.Fatalf("vector %d is %+v, %v; want %s", i, event, fault, kind)
		}
		if len(got) != 1 || got[0] != vector.want {
			t.Errorf("%s has the effects\n%+v, want\n%+v", kind, got, vector.want)
		}
		same, err := v.Map([]Log{log}, nil)
		if err != nil || !slices.Equal(same, got) {
			t.Errorf("%s: Map returns %+v, %v", kind, same, err)
		}
	}
}

// TestPresetLogs checks the effects of transactions as the contracts of the protocols emit them.
func TestPresetLogs(t *testing.T) {
	t.Parallel()
	gateway, vault := common.Address{0: 0x9a}, common.Address{0: 0xa1}
	from := func(role uint8) func(Log) Log { return func(l Log) Log { l.Role = role; return l } }
	teller, queue := from(1), from(3) // in the order of the preset
	yoPaid := func(caller, owner common.Address) Log {
		return emitted("Withdraw(address,address,address,uint256,uint256)", 3, caller, alice, owner, 99, 100)
	}
	for name, c := range map[string]struct {
		preset string
		logs   []Log
		want   []string
	}{
		"YO, an instant redemption through the gateway, after the fee": {"yo", []Log{yoPaid(gateway, gateway),
			emitted("RedeemRequest(address,address,uint256,uint256,bool)", 3, alice, gateway, 1, 100, 100)},
			[]string{"instant owner=alice receiver=alice shares=100 assets=99"}},
		"YO, a fulfilled request, after the fee": {"yo", []Log{
			emitted("RequestFulfilled(address,uint256,uint256)", 1, alice, 100, 100), yoPaid(vault, vault)},
			[]string{"claimed owner=alice assets=99 shares=100"}},
		"Lagoon, a deposit that is done at once, with its referral": {"lagoon-v0.6", []Log{
			emitted("DepositSync(address,address,uint256,uint256)", 2, bob, alice, 50, 49),
			emitted("Referral(address,address,uint256,uint256)", 3, vault, bob, 0, 50)},
			[]string{"deposit key=1677721600 owner=alice sender=bob assets=50 shares=49 attribution=" +
				common.BytesToHash(vault[:]).Hex()}},
		"Lagoon, a deposit that is done at once, without a referral": {"lagoon-v0.6", []Log{
			emitted("DepositSync(address,address,uint256,uint256)", 2, bob, alice, 50, 49),
			emitted("Referral(address,address,uint256,uint256)", 3, common.Address{}, bob, 0, 50)},
			[]string{"deposit key=1677721600 owner=alice sender=bob assets=50 shares=49"}},
		"Lagoon, two deposits of one owner and amount, each with its referral": {"lagoon-v0.6", []Log{
			emitted("DepositRequest(address,address,uint256,address,uint256)", 3, bob, bob, 1, bob, 50),
			emitted("Referral(address,address,uint256,uint256)", 3, vault, bob, 1, 50),
			emitted("DepositSync(address,address,uint256,uint256)", 2, bob, alice, 50, 49),
			emitted("Referral(address,address,uint256,uint256)", 3, gateway, bob, 0, 50)},
			[]string{"deposit key=1677721600 owner=bob sender=bob assets=50 group=1 attribution=" +
				common.BytesToHash(vault[:]).Hex(),
				"deposit key=1677721602 owner=alice sender=bob assets=50 shares=49 attribution=" +
					common.BytesToHash(gateway[:]).Hex()}},
		"Lagoon, a settlement without requests: the fees come after its assets": {"lagoon-v0.6", []Log{
			emitted("TotalAssetsUpdated(uint256)", 0, 1100),
			emitted("Transfer(address,address,uint256)", 2, common.Address{}, bob, 18)},
			[]string{"supply shares=18"}},
		"Lagoon, requests and cancellations of nothing": {"lagoon-v0.6", []Log{
			emitted("RedeemRequest(address,address,uint256,address,uint256)", 3, alice, alice, 2, alice, 0),
			emitted("RedeemRequestCanceled(uint256,address,uint256)", 2, 2, alice, 0),
			emitted("RedeemRequestCanceled(uint256,address,uint256)", 2, 2, bob, 7)},
			[]string{"cancelled owner=bob group=2"}},
		"Veda, a deposit with a referral": {"veda",
			[]Log{teller(emitted("Deposit(uint256,address,address,uint256,uint256,uint256,uint256,address)", 3,
				alice, vault, bob, 5, 50, 49, 1700000000, 0))},
			[]string{"deposit key=1677721600 owner=alice assets=50 shares=49 asset=" + vault.Hex() + " attribution=" +
				common.BytesToHash(bob[:]).Hex()}},
		"Veda, a deposit by a solver": {"veda", []Log{
			emitted("Enter(address,address,uint256,address,uint256)", 3, bob, vault, alice, 50, 49),
			teller(emitted("BulkDeposit(address,uint256)", 1, vault, 50))},
			[]string{"deposit key=1677721601 owner=alice sender=bob assets=50 shares=49 asset=" + vault.Hex()}},
		"Veda, a withdrawal without a request": {"veda", []Log{
			emitted("Exit(address,address,uint256,address,uint256)", 3, bob, vault, alice, 50, 49),
			teller(emitted("Withdraw(address,uint256)", 1, vault, 49))},
			[]string{"instant owner=alice receiver=bob shares=49 assets=50"}},
		"Veda, a request can be solved in the second of its deadline": {"veda", []Log{queue(emitted(
			"OnChainWithdrawRequested(bytes32,address,address,uint96,uint128,uint128,uint40,uint24,uint24)", 3,
			common.Hash{7}, alice, vault, 1, 49, 50, 1700000000, 60, 3600))},
			[]string{"requested key=1677721600 source_id=" + common.Hash{7}.Hex() +
				" owner=alice shares=49 estimate=50 matures=1700000060 expires=1700003661"}},
	} {
		m, err := Preset(c.preset)
		must(t, err)
		for i := range c.logs {
			c.logs[i].Place = Place(100, uint32(i))
		}
		var got []string
		for _, e := range mapped(t, m.Compile(), c.logs...) {
			words := []string{e.Kind.String()}
			for _, v := range e.Values() {
				words = append(words, v.Name+"="+v.Text)
			}
			got = append(got, strings.NewReplacer(alice.Hex(), "alice", bob.Hex(), "bob").Replace(strings.Join(words, " ")))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: the effects are %q, want %q", name, got, c.want)
		}
	}
}

// TestValues checks that every field that a rule sets has its name and text, in the order of the language.
func TestValues(t *testing.T) {
	t.Parallel()
	word := func(b byte) common.Hash { return common.Hash{31: b} }
	e := Effect{Kind: Requested, ID: 1, SourceID: word(2), Owner: alice, Other: bob, Shares: amountOf(most),
		Assets: amountOf(n(3)), Group: 4, Matures: 5, Expires: 6, Attribution: word(7), Partner: 8, Has: ^Fields(0)}
	want := []Value{{"key", "1"}, {"source_id", word(2).Hex()}, {"owner", alice.Hex()}, {"receiver", bob.Hex()},
		{"shares", most.String()}, {"estimate", "3"}, {"group", "4"}, {"matures", "5"}, {"expires", "6"},
		{"attribution", word(7).Hex()}, {"partner", "8"}}
	if got := e.Values(); !slices.Equal(got, want) {
		t.Errorf("the values are\n%v, want\n%v", got, want)
	}
	e = Effect{Kind: Supply, Has: Shares}
	e.Shares.Neg(new(Amount).SetUint64(9))
	if got := e.Values(); !slices.Equal(got, []Value{{"shares", "-9"}}) {
		t.Errorf("the values are %v", got)
	}
	e = Effect{Kind: Priced, Side: RedeemSide, Has: SideField | GroupTo, GroupTo: 3}
	if got := e.Values(); !slices.Equal(got, []Value{{"side", "redeem"}, {"up_to_group", "3"}}) {
		t.Errorf("the values are %v", got)
	}
	e = Effect{Kind: Priced, Side: DepositSide, Has: SideField | Group | GroupTo, Group: 2, GroupTo: 3}
	if got := e.Values(); !slices.Equal(got, []Value{{"side", "deposit"}, {"group", "2"}, {"to_group", "3"}}) {
		t.Errorf("the values are %v", got)
	}
	if e = (Effect{Kind: 99, Has: Shares}); e.Values() != nil || e.Kind.String() != "effect 99" {
		t.Errorf("%s has %v", e.Kind, e.Values())
	}
}

// TestReferenceQuarantines checks that each log whose layout is not that of its event, or with a number that the tables
// cannot hold, is quarantined and has no effect.
func TestReferenceQuarantines(t *testing.T) {
	t.Parallel()
	v := Reference()
	amounts := map[string]int{"DepositAccepted": 2, "WithdrawalRequested": 2, "WithdrawalFunded": 2,
		"WithdrawalClaimed": 2, "WithdrawalCancelled": 1, "WithdrawalExpired": 1, "NavUpdated": 3, "DepositsSwept": 3,
		"WithdrawalsSettled": 3}
	for _, vector := range vectors {
		name := vector.event.Kind().String()
		quarantined := func(what string, change func(*Log)) bool {
			log := logOf(t, vector.event)
			log.Data = bytes.Clone(log.Data)
			change(&log)
			event, got, fault := v.One(&log, []Effect{{ID: 99}})
			if event == nil || event.Name != name || len(got) != 1 && fault != nil || got[0].ID != 99 {
				t.Errorf("%s %s: %v, %+v, %v", name, what, event, got, fault)
			}
			return fault != nil
		}
		all := func(what string, change func(*Log)) {
			if !quarantined(what, change) {
				t.Errorf("%s is counted with %s", name, what)
			}
		}
		all("a missing topic", func(l *Log) { l.Topics = l.Topics[:len(l.Topics)-1] })
		all("an extra topic", func(l *Log) { l.Topics = append(slices.Clone(l.Topics), common.Hash{}) })
		all("nine topics", func(l *Log) { l.Topics = append(slices.Clone(l.Topics), make([]common.Hash, 9)...) })
		all("no data", func(l *Log) { l.Data = nil })
		all("a missing byte", func(l *Log) { l.Data = l.Data[1:] })
		all("an extra word", func(l *Log) { l.Data = append(l.Data, make([]byte, 32)...) })
		large := 0
		for word := range len(logOf(t, vector.event).Data) / 32 {
			if quarantined(fmt.Sprint("word ", word), func(l *Log) { l.Data[32*word+31-191/8] |= 0x80 }) {
				large++
			}
		}
		narrow := map[string]int{"DepositAccepted": 1, "WithdrawalRequested": 2}[name]
		if large != amounts[name]+narrow {
			t.Errorf("%s is quarantined for %d large words, want %d", name, large, amounts[name]+narrow)
		}
	}
}

// TestUnknownLogs checks that a log of an unknown event has no effect and is not a fault.
func TestUnknownLogs(t *testing.T) {
	t.Parallel()
	v := Reference()
	known := logOf(t, vectors[0].event)
	for name, log := range map[string]Log{
		"anonymous":      {},
		"unknown event":  {Topics: []common.Hash{{1}}},
		"another source": {Role: 1, Topics: known.Topics, Data: known.Data},
		"no source":      {Role: 255, Topics: known.Topics, Data: known.Data},
	} {
		if event, got, fault := v.One(&log, nil); event != nil || got != nil || fault != nil {
			t.Errorf("%s: %v, %v, %v", name, event, got, fault)
		}
		if v.Event(&log) != nil {
			t.Errorf("%s: the log has an event", name)
		}
	}
}

// TestMapContinuesAfterQuarantine checks that a quarantined log does not change the effects of the others, nor the
// indexes of their logs.
func TestMapContinuesAfterQuarantine(t *testing.T) {
	t.Parallel()
	good, bad := logOf(t, vectors[0].event), logOf(t, vectors[3].event)
	bad.Data = bad.Data[1:]
	got, err := Reference().Map([]Log{bad, good, {}, bad, good}, nil)
	quarantine, ok := err.(Quarantine)
	if !ok || len(quarantine) != 2 || quarantine[0].Log != 0 || quarantine[1].Log != 3 {
		t.Fatalf("the error is %v", err)
	}
	if want := "log 0: WithdrawalFunded: 63 bytes of data instead of 64\nlog 3: WithdrawalFunded: 63 bytes of data " +
		"instead of 64"; err.Error() != want {
		t.Errorf("the error is\n%v, want\n%s", err, want)
	}
	if len(got) != 2 || got[0].Log != 1 || got[1].Log != 4 {
		t.Errorf("the effects are %+v", got)
	}
}

func BenchmarkOne(b *testing.B) {
	v := Reference()
	var logs []Log
	for _, vector := range vectors {
		logs = append(logs, logOf(b, vector.event))
	}
	out := make([]Effect, 0, 1)
	b.ReportAllocs()
	for b.Loop() {
		for i := range logs {
			if _, _, fault := v.One(&logs[i], out); fault != nil {
				b.Fatal(fault)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(logs)), "ns/log")
}
