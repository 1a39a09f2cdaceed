package contracts_test

import (
	"bytes"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/navlog/navlog/schemas/contracts"
)

// declared is the interface that vaults have to declare.
const declared = `
event DepositAccepted(uint256 indexed depositId, address indexed owner, uint32 indexed partnerId, address sender, uint256 assets, uint256 shares);
event WithdrawalRequested(uint256 indexed requestIndex, address indexed owner, uint32 indexed partnerId, address receiver, uint256 shares, uint256 assetsEstimate, uint64 expiresAt);
event WithdrawalFunded(uint256 indexed requestIndex, address indexed owner, uint256 indexed settlementId, uint256 shares, uint256 assets);
event WithdrawalClaimed(uint256 indexed requestIndex, address indexed owner, address indexed receiver, uint256 shares, uint256 assets);
event WithdrawalCancelled(uint256 indexed requestIndex, address indexed owner, uint256 shares);
event WithdrawalExpired(uint256 indexed requestIndex, address indexed owner, uint256 shares);
event NavUpdated(uint256 indexed navId, address indexed updater, uint256 navPerShare, uint256 totalAssets, uint256 totalSupply);
event DepositsSwept(uint256 indexed sweepId, address indexed custodian, uint256 fromDepositId, uint256 toDepositId, uint256 assets);
event WithdrawalsSettled(uint256 indexed settlementId, address indexed funder, uint256 requestCount, uint256 shares, uint256 assets, uint256 navPerShare);
`

// vector is an event and the values from which go-ethereum's encoder encodes it, without code of this package.
type vector struct {
	event     contracts.Event
	arguments []any
}

var (
	alice = common.HexToAddress("0x00112233445566778899aabbccddeeff00112233")
	bob   = common.HexToAddress("0xffeeddccbbaa99887766554433221100ffeeddcc")
	max   = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))
	zero  = new(big.Int)
	n     = big.NewInt
)

var vectors = []vector{
	{contracts.DepositAccepted{DepositID: n(1), Owner: alice, PartnerID: 0, Sender: bob, Assets: n(1_000_000),
		Shares: n(999_999)},
		[]any{n(1), alice, uint32(0), bob, n(1_000_000), n(999_999)}},
	{contracts.DepositAccepted{DepositID: max, Owner: bob, PartnerID: 1<<32 - 1, Sender: alice, Assets: max, Shares: zero},
		[]any{max, bob, uint32(1<<32 - 1), alice, max, zero}},
	{contracts.WithdrawalRequested{RequestIndex: zero, Owner: alice, PartnerID: 7, Receiver: bob, Shares: n(11),
		AssetsEstimate: n(12), ExpiresAt: 0},
		[]any{zero, alice, uint32(7), bob, n(11), n(12), uint64(0)}},
	{contracts.WithdrawalRequested{RequestIndex: n(3), Owner: bob, PartnerID: 0, Receiver: alice, Shares: max,
		AssetsEstimate: zero, ExpiresAt: 1<<64 - 1},
		[]any{n(3), bob, uint32(0), alice, max, zero, uint64(1<<64 - 1)}},
	{contracts.WithdrawalFunded{RequestIndex: n(4), Owner: alice, SettlementID: n(5), Shares: n(6), Assets: n(7)},
		[]any{n(4), alice, n(5), n(6), n(7)}},
	{contracts.WithdrawalClaimed{RequestIndex: n(8), Owner: alice, Receiver: bob, Shares: n(9), Assets: n(10)},
		[]any{n(8), alice, bob, n(9), n(10)}},
	{contracts.WithdrawalCancelled{RequestIndex: n(11), Owner: bob, Shares: n(12)}, []any{n(11), bob, n(12)}},
	{contracts.WithdrawalExpired{RequestIndex: n(13), Owner: alice, Shares: n(14)}, []any{n(13), alice, n(14)}},
	{contracts.NavUpdated{NavID: n(15), Updater: bob, NavPerShare: n(1e18), TotalAssets: n(16), TotalSupply: n(17)},
		[]any{n(15), bob, n(1e18), n(16), n(17)}},
	{contracts.DepositsSwept{SweepID: n(18), Custodian: alice, FromDepositID: n(19), ToDepositID: n(20), Assets: n(21)},
		[]any{n(18), alice, n(19), n(20), n(21)}},
	{contracts.WithdrawalsSettled{SettlementID: n(22), Funder: bob, RequestCount: n(23), Shares: n(24), Assets: n(25),
		NavPerShare: n(26)},
		[]any{n(22), bob, n(23), n(24), n(25), n(26)}},
}

// TestInterface compares the encoder and the compiled vault with the declarations, word for word.
func TestInterface(t *testing.T) {
	vault := vaultABI(t)
	lines := strings.Split(strings.TrimSpace(declared), "\n")
	if len(lines) != len(contracts.Kinds()) {
		t.Fatalf("%d events are declared, the encoder has %d", len(lines), len(contracts.Kinds()))
	}
	for i, line := range lines {
		kind := contracts.Kinds()[i]
		name, rest, _ := strings.Cut(strings.TrimPrefix(line, "event "), "(")
		var types []string
		for _, argument := range strings.Split(strings.TrimSuffix(rest, ");"), ", ") {
			types = append(types, strings.Fields(argument)[0])
		}
		signature := name + "(" + strings.Join(types, ",") + ")"
		topic := crypto.Keccak256Hash([]byte(signature))
		if kind.String() != name || kind.Signature() != signature || kind.Topic() != topic ||
			contracts.KindOf(topic) != kind {
			t.Errorf("the encoder's %s is %s with topic %s, declared is %s with topic %s", kind, kind.Signature(), kind.Topic(),
				signature, topic)
		}
		if got := vault.Events[name].String() + ";"; got != line {
			t.Errorf("the compiled vault declares\n%s\ninstead of\n%s", got, line)
		}
	}
}

// TestCalls checks the functions that callers of the reference contracts rely on, and the router's events, which are
// for audit only.
func TestCalls(t *testing.T) {
	vault, router := readABI(t, "ReferenceVault"), readABI(t, "ReferenceDepositRouter")
	for contract, calls := range map[*abi.ABI][]string{
		&vault: {
			"deposit(uint256,address)", "deposit(uint256,address,uint32)",
			"requestWithdrawal(uint256,address)", "requestWithdrawal(uint256,address,uint32)",
			"claimWithdrawal(uint256)", "cancelWithdrawal(uint256)", "expireWithdrawal(uint256)",
			"updateNav(uint256)", "sweepDeposits(uint256)", "settleWithdrawals(uint256[])",
		},
		&router: {"deposit(address,uint256,uint256,address,uint32)", "requestWithdrawal(address,uint256,address,uint32)"},
	} {
		for _, call := range calls {
			if _, err := contract.MethodById(crypto.Keccak256([]byte(call))[:4]); err != nil {
				t.Errorf("%s is missing: %v", call, err)
			}
		}
	}
	for name, want := range map[string]string{
		"VaultAllowed":     "event VaultAllowed(address indexed vault, bool allowed)",
		"PartnerStatusSet": "event PartnerStatusSet(uint32 indexed partnerId, bool active)",
		"RoutedDeposit": "event RoutedDeposit(uint32 indexed partnerId, address indexed vault, address indexed " +
			"receiver, address sender, uint256 assets, uint256 shares)",
		"RoutedWithdrawal": "event RoutedWithdrawal(uint32 indexed partnerId, address indexed vault, address indexed " +
			"owner, uint256 requestIndex, uint256 shares)",
	} {
		if got := router.Events[name].String(); got != want {
			t.Errorf("the router declares %q, want %q", got, want)
		}
	}
}

// TestTopics pins the topic hashes themselves, as any block explorer shows them.
func TestTopics(t *testing.T) {
	want := map[contracts.Kind]string{
		contracts.KindDepositAccepted:     "0xbb9545c3de1c4f05adee15cb6c4809e625fe0101f0216fd8d130821d6faa8057",
		contracts.KindWithdrawalRequested: "0x50d5cb4248c65b5f8192bd9a97bf795ee69e674a5fa35b4654baeaae17826094",
		contracts.KindWithdrawalFunded:    "0x1adee656cb612f423b882c3977d9686471c63b0737226e77fc11bef721139527",
		contracts.KindWithdrawalClaimed:   "0x8c6f1f453248546230edca559f3fcddbea2f6c7c33a0f7899c403d78dfb642f2",
		contracts.KindWithdrawalCancelled: "0x1827a0ec328915df70a21d3ac58a86f06973898dbc2eaee0aa91be7563f136eb",
		contracts.KindWithdrawalExpired:   "0x5fb0e1ba0a27df5b9c0aa4e2cf04d157f0a731b6a17aa890ee8735c842bdedd4",
		contracts.KindNavUpdated:          "0x19987253612dbb189dc7f1c655caecc013a35927823f41014343d0f875e1795e",
		contracts.KindDepositsSwept:       "0xebb24afaa1938255368713eafd60bea748aebde2bca568a812715a201fa47d67",
		contracts.KindWithdrawalsSettled:  "0x6acaec6c4211e4110e727a52c5a35a29be43818f76977157cc5be460771a6bd6",
	}
	for _, kind := range contracts.Kinds() {
		if got := kind.Topic().Hex(); got != want[kind] {
			t.Errorf("topic of %s is %s, want %s", kind, got, want[kind])
		}
	}
}

func TestUnknownKinds(t *testing.T) {
	if got := contracts.KindUnknown; got.String() != "Unknown" || got.Signature() != "" || got.Topic() != (common.Hash{}) {
		t.Errorf("KindUnknown is %s, %q, %s", got, got.Signature(), got.Topic())
	}
	if got := contracts.Kind(200); got.String() != "Kind(200)" || got.Signature() != "" || got.Topic() != (common.Hash{}) {
		t.Errorf("kind 200 is %s, %q, %s", got, got.Signature(), got.Topic())
	}
}

func TestEncode(t *testing.T) {
	seen := map[contracts.Kind]bool{}
	for i, v := range vectors {
		topics, data := pack(t, v)
		kind := v.event.Kind()
		seen[kind] = true
		t.Run(fmt.Sprintf("%d %s", i, kind), func(t *testing.T) {
			gotTopics, gotData, err := contracts.Encode(v.event)
			if err != nil {
				t.Fatalf("encode: %v", err)
			}
			if !slices.Equal(gotTopics, topics) || !bytes.Equal(gotData, data) {
				t.Errorf("encoded %x %x, want %x %x", gotTopics, gotData, topics, data)
			}
		})
	}
	if len(seen) != len(contracts.Kinds()) {
		t.Errorf("the vectors cover %d kinds of %d", len(seen), len(contracts.Kinds()))
	}
}

func TestEncodeRejectsInvalidIntegers(t *testing.T) {
	for _, v := range []*big.Int{nil, n(-1), new(big.Int).Lsh(n(1), 256)} {
		_, _, err := contracts.Encode(contracts.WithdrawalExpired{RequestIndex: n(1), Shares: v})
		if err == nil || !strings.Contains(err.Error(), "not an unsigned 256-bit integer") {
			t.Errorf("encode %v: got error %v", v, err)
		}
	}
}

func vaultABI(t testing.TB) abi.ABI {
	t.Helper()
	return readABI(t, "ReferenceVault")
}

func readABI(t testing.TB, contract string) abi.ABI {
	t.Helper()
	source, err := os.Open("abi/" + contract + ".json")
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	parsed, err := abi.JSON(source)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// pack encodes with go-ethereum and the ABI from the Solidity compiler.
func pack(t testing.TB, v vector) ([]common.Hash, []byte) {
	t.Helper()
	event := vaultABI(t).Events[v.event.Kind().String()]
	topics := []common.Hash{event.ID}
	var rest []any
	for i, argument := range event.Inputs {
		if !argument.Indexed {
			rest = append(rest, v.arguments[i])
			continue
		}
		made, err := abi.MakeTopics([]any{v.arguments[i]})
		if err != nil {
			t.Fatal(err)
		}
		topics = append(topics, made[0][0])
	}
	data, err := event.Inputs.NonIndexed().Pack(rest...)
	if err != nil {
		t.Fatal(err)
	}
	return topics, data
}
