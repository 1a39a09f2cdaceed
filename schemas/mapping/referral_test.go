package mapping

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
)

// recordOf returns the log of an event as in a record.
func recordOf(t *testing.T, e contracts.Event) *event.Log {
	t.Helper()
	l := logOf(t, e)
	out := &event.Log{Data: l.Data, BlockNumber: 5, LogIndex: 6}
	for _, topic := range l.Topics {
		out.Topics = append(out.Topics, topic.Bytes())
	}
	return out
}

// TestReferral checks that a log that names a partner is a referral, with all digits of its numbers, and that one with
// a number that cannot be counted is marked with the reason.
func TestReferral(t *testing.T) {
	t.Parallel()
	long := new(big.Int).Lsh(n(1), 64)
	for what, test := range map[string]struct {
		event contracts.Event
		want  *event.Effect
	}{
		"a deposit": {contracts.DepositAccepted{DepositID: n(1), Owner: alice, PartnerID: 7, Sender: bob, Assets: n(300),
			Shares: n(0)},
			&event.Effect{Kind: event.Effect_KIND_DEPOSIT, Key: []byte{1}, Owner: alice[:], PartnerId: 7, Assets: []byte{1, 44},
				Shares: []byte{}}},
		"a request": {contracts.WithdrawalRequested{RequestIndex: n(0), Owner: bob, PartnerID: 8, Shares: n(1),
			AssetsEstimate: n(2), ExpiresAt: 3},
			&event.Effect{Kind: event.Effect_KIND_REQUESTED, Key: []byte{}, Owner: bob[:], PartnerId: 8, Assets: []byte{2},
				Shares: []byte{1}}},
		"a large key": {contracts.DepositAccepted{DepositID: long, Owner: alice, PartnerID: 7, Assets: n(1), Shares: n(2)},
			&event.Effect{Kind: event.Effect_KIND_DEPOSIT, Key: long.Bytes(), Owner: alice[:], PartnerId: 7, Assets: []byte{1},
				Shares: []byte{2}, Quarantined: fmt.Sprintf("depositId is %s, and the read models hold 64 bits of it", long)}},
		"two large numbers": {contracts.WithdrawalRequested{RequestIndex: n(0), Owner: bob, PartnerID: 8, Shares: MaxAmount,
			AssetsEstimate: MaxAmount},
			&event.Effect{Kind: event.Effect_KIND_REQUESTED, Key: []byte{}, Owner: bob[:], PartnerId: 8,
				Assets: MaxAmount.Bytes(), Shares: MaxAmount.Bytes(),
				Quarantined: fmt.Sprintf("shares is %s, and an amount of 2^191 or more cannot be summed", MaxAmount)}},
		"a deposit without partner": {contracts.DepositAccepted{DepositID: n(1), Owner: alice, Assets: n(1), Shares: n(2)},
			nil},
		"a large one without partner": {contracts.DepositAccepted{DepositID: n(1), Owner: alice, Assets: MaxAmount,
			Shares: n(2)}, nil},
		"another event": {contracts.WithdrawalExpired{RequestIndex: n(1), Owner: alice, Shares: MaxAmount}, nil},
	} {
		got, err := Reference().Referral(recordOf(t, test.event))
		if err != nil || !proto.Equal(got, test.want) {
			t.Errorf("%s is %v, %v; want %v", what, got, err, test.want)
		}
	}
	bad := recordOf(t, contracts.DepositAccepted{DepositID: long, Owner: alice, PartnerID: 7, Assets: n(1), Shares: n(2)})
	bad.Topics[2] = common.MaxHash.Bytes() // not an address, so it is not a deposit with a large number either
	if got, err := Reference().Referral(bad); got != nil || err == nil ||
		!strings.Contains(err.Error(), "DepositAccepted: ") {
		t.Errorf("a deposit without an owner is %v, %v", got, err)
	}
	if got, err := Reference().Referral(&event.Log{}); got != nil || err != nil {
		t.Errorf("a log without topics is %v, %v", got, err)
	}
	if int32(Deposit) != int32(event.Effect_KIND_DEPOSIT) || int32(Requested) != int32(event.Effect_KIND_REQUESTED) {
		t.Error("a record's kinds have other numbers than those of effects")
	}
}

// TestReferralLacks: a referral marks the amounts that its log does not have, so that they are not taken for 0.
func TestReferralLacks(t *testing.T) {
	t.Parallel()
	d := sourcesOf(t, `preset: bare
sources: {vault: required}
events:
  - on: DepositAccepted(uint256 indexed depositId, address indexed owner, uint32 indexed partnerId, address sender, uint256 assets, uint256 shares)
    emit: [{deposit: {key: $depositId, group: 1, owner: $owner, partner: $partnerId, assets: $assets}}, {priced: {side: deposit, group: 1, assets: 1, shares: 1}}]
  - on: WithdrawalRequested(uint256 indexed requestIndex, address indexed owner, uint32 indexed partnerId, address receiver, uint256 shares, uint256 assetsEstimate, uint64 expiresAt)
    emit: requested
    set: {key: $requestIndex, owner: $owner, partner: $partnerId, shares: $shares}
`)
	deposit, err := d.Referral(recordOf(t,
		contracts.DepositAccepted{DepositID: n(1), Owner: alice, PartnerID: 7, Assets: n(3), Shares: n(2)}))
	if err != nil || !deposit.GetNoShares() || deposit.GetNoAssets() {
		t.Errorf("the deposit is %v, %v", deposit, err)
	}
	request, err := d.Referral(recordOf(t,
		contracts.WithdrawalRequested{RequestIndex: n(0), Owner: bob, PartnerID: 8, Shares: n(1), AssetsEstimate: n(2)}))
	if err != nil || request.GetNoShares() || !request.GetNoAssets() {
		t.Errorf("the request is %v, %v", request, err)
	}
	for _, test := range []struct {
		kind   Kind
		field  Fields
		lacks  bool
		preset string
	}{{Deposit, Shares, true, "bare"}, {Requested, Assets, true, "bare"}, {Requested, Shares, false, "bare"},
		{Claimed, Assets, false, "bare"}, {Deposit, Shares, true, "lagoon-v0.6"}, {Requested, Other, true, "lagoon-v0.6"},
		{Requested, Other, false, "midas"},
		{Requested, Assets, false, "yo"}, {Requested, Partner, true, "yo"}, {Sweep, ID, false, "reference"}} {
		of := d.Description
		if test.preset != "bare" {
			m, err := Preset(test.preset)
			must(t, err)
			of = &Description{Ranges: []Range{{To: 9, Mapping: m}}}
		}
		if got := of.MayLack(test.kind, test.field, 9); got != test.lacks {
			t.Errorf("%s: a %s can be without field %d: %t", test.preset, test.kind, test.field, got)
		}
		if test.preset != "bare" && of.MayLack(test.kind, test.field, 10) {
			t.Errorf("%s: no mapping is for block 10", test.preset)
		}
		if got := of.Lacks(test.kind, test.field); got != test.lacks {
			t.Errorf("%s: in some block a %s can be without field %d: %t", test.preset, test.kind, test.field, got)
		}
	}
}

// TestReferralWithAnEstimateOfZero: if only some requests of a vault have an estimate, 0 is none, for a referral as for
// the read models, which do not store whether the log had one. Statements must have the same amounts as webhooks.
func TestReferralWithAnEstimateOfZero(t *testing.T) {
	t.Parallel()
	const declared = "WithdrawalRequested(uint256 indexed requestIndex, address indexed owner, uint32 indexed partnerId, " +
		"address receiver, uint256 shares, uint256 assetsEstimate, uint64 expiresAt)"
	const rule = "\n  - on: %s\n    emit: requested\n    set: {key: $requestIndex, owner: $owner, partner: $partnerId, shares: $shares%s}"
	text := "preset: x\nsources: {vault: required}\nevents:" + fmt.Sprintf(rule, declared, ", estimate: $assetsEstimate")
	old := fmt.Sprintf(rule, "Old"+declared, "")
	for what, s := range map[string]*Sources{"every": sourcesOf(t, text), "some": sourcesOf(t, text+old)} {
		for estimate, lacks := range map[int64]bool{0: what == "some", 2: false} {
			l := recordOf(t,
				contracts.WithdrawalRequested{RequestIndex: n(0), Owner: bob, PartnerID: 8, Shares: n(1), AssetsEstimate: n(estimate)})
			one, err := s.Referral(l)
			if err != nil || one.GetNoAssets() != lacks {
				t.Errorf("%s request has an estimate, and this one of %d is %v, %v", what, estimate, one, err)
			}
			if all := s.Referrals([]*event.Log{l}); !proto.Equal(all[0], one) {
				t.Errorf("%s request has an estimate, and this one of %d is %v in its transaction", what, estimate, all)
			}
		}
	}
}

// sourcesOf is a vault at the address of recordOf with one mapping, as its record has it.
func sourcesOf(t *testing.T, text string) *Sources {
	t.Helper()
	m, err := (&checker{file: "bare.yaml", recorded: true}).parse([]byte(text))
	must(t, err)
	d := &Description{Sources: []Source{{Role: "vault"}}, Ranges: []Range{{To: math.MaxUint64, Mapping: m}}}
	return &Sources{Vault: d.Compile(), Description: d}
}

// TestLargeReferrals checks that a log with a number that cannot be counted is a referral also in a vault whose mapping
// has companions, whether it has one, and whichever of the two logs has the number.
func TestLargeReferrals(t *testing.T) {
	t.Parallel()
	s := sourcesOf(t, `preset: x
sources: {vault: required}
events:
  - on: Bought(uint256 id, address who, uint256 assets)
    emit: deposit
    set: {key: $id, owner: $who, assets: $assets, group: 1}
    with: {on: "Referred(address who, uint256 shares, uint32 partner)", match: {who: $who}, set: {shares: $shares, partner: $partner}}
  - on: Asked(uint256 id, address who, uint256 shares, uint32 partner)
    emit: requested
    set: {key: $id, owner: $who, shares: $shares, partner: $partner}
  - on: Priced(uint256 assets, uint256 shares)
    emit: priced
    set: {side: deposit, group: 1, assets: $assets, shares: $shares}
`)
	long := new(big.Int).Lsh(n(1), 64)
	const bought, referred, asked = "Bought(uint256,address,uint256)", "Referred(address,uint256,uint32)",
		"Asked(uint256,address,uint256,uint32)"
	for what, test := range map[string]struct {
		logs []Log
		want []*event.Effect
	}{
		"a large key, without a companion": {[]Log{emitted(asked, 0, long, alice, 2, 7)},
			[]*event.Effect{{Kind: event.Effect_KIND_REQUESTED, Key: long.Bytes(), Owner: alice[:], Shares: []byte{2},
				PartnerId: 7, NoAssets: true,
				Quarantined: fmt.Sprintf("id is %s, and the read models hold 64 bits of it", long)}}},
		"a large amount, with a companion": {[]Log{emitted(bought, 0, 1, alice, MaxAmount),
			emitted(referred, 0, alice, 5, 8)},
			[]*event.Effect{{Kind: event.Effect_KIND_DEPOSIT, Key: []byte{1}, Owner: alice[:], Assets: MaxAmount.Bytes(),
				Shares: []byte{5}, PartnerId: 8,
				Quarantined: fmt.Sprintf("assets is %s, and an amount of 2^191 or more cannot be summed", MaxAmount)}, nil}},
		"a large amount in the companion": {[]Log{emitted(referred, 0, alice, MaxAmount, 8),
			emitted(bought, 0, 1, alice, 6)},
			[]*event.Effect{nil, {Kind: event.Effect_KIND_DEPOSIT, Key: []byte{1}, Owner: alice[:], Assets: []byte{6},
				Shares: MaxAmount.Bytes(), PartnerId: 8, Quarantined: fmt.Sprintf(
					"Referred: shares is %s, and an amount of 2^191 or more cannot be summed", MaxAmount)}}},
		"no partner": {[]Log{emitted(bought, 0, 1, alice, MaxAmount)}, []*event.Effect{nil}},
	} {
		var logs []*event.Log
		for i, l := range test.logs {
			r := &event.Log{Address: make([]byte, 20), TxHash: make([]byte, 32), Data: l.Data, BlockNumber: 5,
				LogIndex: uint32(i)}
			for _, topic := range l.Topics {
				r.Topics = append(r.Topics, topic.Bytes())
			}
			logs = append(logs, r)
		}
		got := s.Referrals(logs)
		for i := range logs {
			if !proto.Equal(got[i], test.want[i]) {
				t.Errorf("%s: log %d is %v, want %v", what, i, got[i], test.want[i])
			}
		}
	}
}
