package webhook_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/navlog/navlog/schemas/contracts"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/webhook"
)

// The documented test vector.
const (
	secret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	timestamp = 1614265330
	body      = `{"test": 2432232314}`
	signature = "sha256=2e37df5d4a028c51a7f3133d64ae1e300d2c2c900f1b1d49d4369ad2530f8964"
)

func TestSignatureVector(t *testing.T) {
	if got := webhook.Sign(secret, timestamp, []byte(body)); got != signature {
		t.Errorf("signature %s, want %s", got, signature)
	}
}

func TestVerify(t *testing.T) {
	at := time.Unix(timestamp, 0)
	for _, c := range []struct {
		what, secret, timestamp, signature, body string
		now                                      time.Time
		valid                                    bool
	}{
		{"as sent", secret, "1614265330", signature, body, at, true},
		{"300 s later", secret, "1614265330", signature, body, at.Add(300 * time.Second), true},
		{"300 s earlier", secret, "1614265330", signature, body, at.Add(-300 * time.Second), true},
		{"301 s later", secret, "1614265330", signature, body, at.Add(301 * time.Second), false},
		{"301 s earlier", secret, "1614265330", signature, body, at.Add(-301 * time.Second), false},
		{"other secret", strings.TrimPrefix(secret, "whsec_"), "1614265330", signature, body, at, false},
		{"other time", secret, "1614265331", signature, body, at, false},
		{"other body", secret, "1614265330", signature, body + " ", at, false},
		{"no prefix", secret, "1614265330", strings.TrimPrefix(signature, "sha256="), body, at, false},
		{"cut signature", secret, "1614265330", signature[:len(signature)-2], body, at, false},
		{"no signature", secret, "1614265330", "", body, at, false},
		{"not hex", secret, "1614265330", "sha256=zz", body, at, false},
		{"no time", secret, "", signature, body, at, false},
		{"a leading zero", secret, "01614265330", signature, body, at, false},
		{"a huge time", secret, "9223372036854775807", signature, body, at, false},
	} {
		if err := webhook.Verify(c.secret, c.timestamp, c.signature, []byte(c.body), c.now); (err == nil) != c.valid {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

// Computed with Python's uuid.uuid5 and the documented namespace.
func TestEventIDVectors(t *testing.T) {
	if got := webhook.Namespace.String(); got != "fb2278cf-ec62-5c5e-ab93-87d662a5be5b" {
		t.Errorf("namespace %s", got)
	}
	hash := common.HexToHash("0xABCDEFabcdef0123456789ABCDEFabcdef0123456789ABCDEFabcdef01234567")
	for _, c := range []struct {
		chain   uint64
		log     uint32
		kind    string
		partner uint32
		want    string
	}{
		{31337, 2, "deposit.referral", 7, "d74502ed-c0ea-59a3-80d9-95fa4cc0bafe"},
		{31337, 2, "withdrawal.referral", 7, "a21246ac-583b-58c4-bf7f-81b79d28143a"},
		{1, 2, "deposit.referral", 7, "9c61ef24-de6c-562e-b6d2-e8d2efc5974a"},
		{31337, 3, "deposit.referral", 7, "5df3b3d2-75d2-5f6d-98a3-0963cb63d1d3"},
		{31337, 2, "deposit.referral", 8, "68a91a2b-a0a2-53f1-8de8-5c5927e4f115"},
		{18446744073709551615, 4294967295, "deposit.referral", 4294967295, "37126bcf-9c5f-5a6c-8395-f846c3751d1b"},
	} {
		got := webhook.EventID(c.chain, hash, c.log, c.kind, c.partner)
		if got.String() != c.want {
			t.Errorf("%+v: %s", c, got)
		}
		if got.Version() != 5 || got.Variant() != uuid.RFC4122 {
			t.Errorf("%s is not a UUIDv5", got)
		}
	}
}

func referral(t *testing.T, partner uint32, fact contracts.Event) *event.Referral {
	t.Helper()
	topics, data, err := contracts.Encode(fact)
	if err != nil {
		t.Fatal(err)
	}
	log := &event.Log{
		Address: common.HexToAddress("0x5fbdb2315678afecb367f032d93f642f64180aa3").Bytes(), Data: data,
		BlockNumber: 19, BlockTime: 1_700_000_000, LogIndex: 2,
		TxHash: common.HexToHash("0xABCDEFabcdef0123456789ABCDEFabcdef0123456789ABCDEFabcdef01234567").Bytes(),
	}
	for _, topic := range topics {
		log.Topics = append(log.Topics, topic.Bytes())
	}
	return &event.Referral{ChainId: 31337, PartnerId: partner, Log: log}
}

var user = common.HexToAddress("0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266")

// The largest amount of the chain keeps every digit.
func TestBodies(t *testing.T) {
	most := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))
	for want, fact := range map[string]contracts.Event{
		`{"id":"d74502ed-c0ea-59a3-80d9-95fa4cc0bafe","version":1,"type":"deposit.referral","createdAt":"2023-11-14T22:13:20.000Z","partnerId":7,` +
			`"data":{"vaultAddress":"0x5FbDB2315678afecb367f032d93F642f64180aa3","userAddress":"0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",` +
			`"assets":"115792089237316195423570985008687907853269984665640564039457584007913129639935","shares":"0",` +
			`"txHash":"0xabcdefabcdef0123456789abcdefabcdef0123456789abcdefabcdef01234567","blockNumber":"19","logIndex":2,"timestamp":"2023-11-14T22:13:20.000Z"}}`: contracts.DepositAccepted{
			DepositID: big.NewInt(1), Owner: user, PartnerID: 7, Sender: common.Address{1}, Assets: most, Shares: new(big.Int)},
		`{"id":"a21246ac-583b-58c4-bf7f-81b79d28143a","version":1,"type":"withdrawal.referral","createdAt":"2023-11-14T22:13:20.000Z","partnerId":7,` +
			`"data":{"vaultAddress":"0x5FbDB2315678afecb367f032d93F642f64180aa3","userAddress":"0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",` +
			`"shares":"5","assetsEstimate":"6","requestIndex":"18446744073709551616",` +
			`"txHash":"0xabcdefabcdef0123456789abcdefabcdef0123456789abcdefabcdef01234567","blockNumber":"19","logIndex":2,"timestamp":"2023-11-14T22:13:20.000Z"}}`: contracts.WithdrawalRequested{
			RequestIndex: new(big.Int).Lsh(big.NewInt(1), 64), Owner: user, PartnerID: 7, Receiver: common.Address{2},
			Shares: big.NewInt(5), AssetsEstimate: big.NewInt(6)},
	} {
		envelope, err := webhook.FromReferral(referral(t, 7, fact))
		if err != nil {
			t.Fatal(err)
		}
		got, err := envelope.Body()
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
		if !json.Valid(got) {
			t.Error("the body is not JSON")
		}
		// A record with an effect has the same body, whatever its log contains.
		r := referral(t, 7, fact)
		if r.Effect, err = mapping.Reference().Referral(r.Log); err != nil {
			t.Fatal(err)
		}
		r.Log.Topics, r.Log.Data = nil, nil
		same, err := webhook.FromReferral(r)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := same.Body(); err != nil || string(got) != want || same.Quarantined != envelope.Quarantined ||
			same.Quarantined == "" {
			t.Errorf("from the effect, %v, %q\n got %s\nwant %s", err, same.Quarantined, got, want)
		}
	}
}

// TestUnknownAmounts: amounts that the log of a referral does not have are left out of the body.
func TestUnknownAmounts(t *testing.T) {
	r := referral(t, 7, contracts.DepositAccepted{DepositID: big.NewInt(1), Owner: user, PartnerID: 7,
		Assets: big.NewInt(5), Shares: new(big.Int)})
	of := func(kind event.Effect_Kind) string {
		r.Effect = &event.Effect{Kind: kind, Key: []byte{1}, Owner: user[:], PartnerId: 7,
			NoAssets: kind == event.Effect_KIND_REQUESTED, NoShares: kind == event.Effect_KIND_DEPOSIT}
		envelope, err := webhook.FromReferral(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := envelope.Body()
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	if body := of(event.Effect_KIND_DEPOSIT); strings.Contains(body, `"shares"`) ||
		!strings.Contains(body, `"assets":"0"`) {
		t.Errorf("a deposit without shares is %s", body)
	}
	if body := of(event.Effect_KIND_REQUESTED); strings.Contains(body, `"assetsEstimate"`) ||
		!strings.Contains(body, `"shares":"0"`) {
		t.Errorf("a request without an estimate is %s", body)
	}
}

// A referral that contradicts itself never becomes an event.
func TestReferralsRejected(t *testing.T) {
	deposit := contracts.DepositAccepted{
		DepositID: big.NewInt(1), Owner: user, PartnerID: 7, Assets: big.NewInt(1), Shares: big.NewInt(1),
	}
	unattributed := deposit
	unattributed.PartnerID = 0
	for what, change := range map[string]func(*event.Referral){
		"no log":        func(r *event.Referral) { r.Log = nil },
		"short address": func(r *event.Referral) { r.Log.Address = r.Log.Address[1:] },
		"short hash":    func(r *event.Referral) { r.Log.TxHash = nil },
		"cut data":      func(r *event.Referral) { r.Log.Data = r.Log.Data[:32] },
		"no topics":     func(r *event.Referral) { r.Log.Topics = nil },
		"another event": func(r *event.Referral) {
			*r = *referral(t, 7, contracts.WithdrawalExpired{RequestIndex: big.NewInt(1), Shares: big.NewInt(1)})
		},
		"another partner": func(r *event.Referral) { r.PartnerId = 8 },
		"no partner":      func(r *event.Referral) { *r = *referral(t, 0, unattributed) },
	} {
		r := referral(t, 7, deposit)
		change(r)
		if envelope, err := webhook.FromReferral(r); err == nil {
			t.Errorf("%s: %+v", what, envelope)
		}
	}
	for what, change := range map[string]func(*event.Effect){
		"no kind":         func(e *event.Effect) { e.Kind = event.Effect_KIND_UNSPECIFIED },
		"another kind":    func(e *event.Effect) { e.Kind = 9 },
		"short owner":     func(e *event.Effect) { e.Owner = e.Owner[1:] },
		"long assets":     func(e *event.Effect) { e.Assets = make([]byte, 33) },
		"long key":        func(e *event.Effect) { e.Key = make([]byte, 33) },
		"another partner": func(e *event.Effect) { e.PartnerId = 8 },
		"no partner":      func(e *event.Effect) { e.PartnerId = 0 },
	} {
		r := referral(t, 7, deposit)
		var err error
		if r.Effect, err = mapping.Reference().Referral(r.Log); err != nil {
			t.Fatal(err)
		}
		change(r.Effect)
		if envelope, err := webhook.FromReferral(r); err == nil {
			t.Errorf("an effect with %s: %+v", what, envelope)
		}
	}
	if _, err := webhook.FromReferral(nil); err == nil {
		t.Error("a nil referral became an event")
	}
}

// Characters that encoders like to escape stay as they are, because the bytes are signed.
func TestBodyIsNotEscaped(t *testing.T) {
	e := webhook.Envelope{Data: map[string]string{"x": "<>&é😀"}}
	got, err := e.Body()
	if err != nil {
		t.Fatal(err)
	}
	if want := `"data":{"x":"<>&é😀"}}`; !strings.HasSuffix(string(got), want) {
		t.Errorf("%s", got)
	}
	if _, err := (&webhook.Envelope{Data: func() {}}).Body(); err == nil {
		t.Error("a function was encoded")
	}
}

func TestFormatTime(t *testing.T) {
	for seconds, want := range map[uint64]string{
		0: "1970-01-01T00:00:00.000Z", 1_700_000_000: "2023-11-14T22:13:20.000Z",
		253402300799: "9999-12-31T23:59:59.000Z", 253402300800: "9999-12-31T23:59:59.000Z",
		1<<64 - 1: "9999-12-31T23:59:59.000Z",
	} {
		if got := webhook.FormatTime(seconds); got != want {
			t.Errorf("%d: %s", seconds, got)
		}
	}
}

func ExampleSign() {
	fmt.Println(webhook.Sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 1614265330, []byte(`{"test": 2432232314}`)))
	// Output: sha256=2e37df5d4a028c51a7f3133d64ae1e300d2c2c900f1b1d49d4369ad2530f8964
}
