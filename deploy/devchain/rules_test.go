package devchain

import (
	"context"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/schemas/contracts"
)

// The rules of the reference contracts that the indexer relies on, tested one by one on a real EVM.

type stage struct {
	*testing.T
	ctx        context.Context
	c          *chain
	v          *vault
	router     *Contract
	routerAt   common.Address
	alice, bob account
}

// newStage deploys the contracts, and gives alice and bob a million assets each, with allowances for the vault and the
// router.
func newStage(t *testing.T) *stage {
	t.Helper()
	ctx, url, deployed := fresh(t, engines.AnvilOptions{})
	s := &stage{T: t, ctx: ctx, c: connected(t, url), routerAt: deployed.Router, alice: newAccount("alice"),
		bob: newAccount("bob")}
	var err error
	if s.v, err = bindVault(ctx, s.c, deployed.Vaults[0]); err != nil {
		t.Fatal(err)
	}
	s.router = At(s.c, "ReferenceDepositRouter", deployed.Router)
	for _, a := range []account{s.alice, s.bob, manager} {
		s.do(a, s.v.asset.call("mint", a.address, n(1_000_000)))
		for _, spender := range []common.Address{s.v.Address, deployed.Router} {
			s.do(a, s.v.asset.call("approve", spender, n(1_000_000)))
		}
	}
	return s
}

// do sends a transaction and returns the vault's events in it.
func (s *stage) do(from account, call transaction) []contracts.Event {
	s.Helper()
	var events []contracts.Event
	for _, l := range mustSend(s.T, s.c, from, call).Logs {
		e, err := Decode(l.Topics, l.Data)
		if err != nil {
			s.Fatal(err)
		}
		if e != nil {
			if l.Address != s.v.Address {
				s.Errorf("a %s came from %s", e.Kind(), l.Address)
			}
			events = append(events, e)
		}
	}
	return events
}

// emits sends a transaction and compares the vault's events, including their order, with the expected ones.
func (s *stage) emits(from account, call transaction, want ...contracts.Event) {
	s.Helper()
	got := s.do(from, call)
	if len(got) != len(want) {
		s.Fatalf("got the events %+v, want %+v", got, want)
	}
	for i := range want {
		gotTopics, gotData, err := contracts.Encode(got[i])
		if err != nil {
			s.Fatal(err)
		}
		wantTopics, wantData, err := contracts.Encode(want[i])
		if err != nil {
			s.Fatal(err)
		}
		if !reflect.DeepEqual([]any{gotTopics, gotData}, []any{wantTopics, wantData}) {
			s.Errorf("event %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

// refuses expects the contract's own error.
func (s *stage) refuses(from account, want string, call transaction) {
	s.Helper()
	_, err := s.c.send(s.ctx, from, call)
	if err == nil || !strings.Contains(err.Error(), "reverts with "+want) {
		s.Errorf("got error %v, want %s", err, want)
	}
}

func (s *stage) checkValue(want int64, of *Contract, method string, arguments ...any) {
	s.Helper()
	got, err := read[*big.Int](s.ctx, of, method, arguments...)
	if err != nil {
		s.Fatal(err)
	}
	if got.Cmp(n(want)) != 0 {
		s.Errorf("%s is %s, want %d", method, got, want)
	}
}

func (s *stage) assets(want int64, a common.Address) {
	s.Helper()
	s.checkValue(want, s.v.asset, "balanceOf", a)
}

func (s *stage) shares(want int64, a common.Address) {
	s.Helper()
	s.checkValue(want, s.v.Contract, "balanceOf", a)
}

func (s *stage) deposit(assets int64, receiver common.Address) transaction {
	return s.v.call("deposit", n(assets), receiver)
}

func (s *stage) request(shares int64, receiver common.Address) transaction {
	return s.v.call("requestWithdrawal", n(shares), receiver)
}

func (s *stage) nav(assets int64) transaction {
	return s.v.call("updateNav", n(assets))
}

func (s *stage) sweep(to int64) transaction {
	return s.v.call("sweepDeposits", n(to))
}

func (s *stage) settle(indexes ...int64) transaction {
	var all []*big.Int
	for _, i := range indexes {
		all = append(all, n(i))
	}
	return s.v.call("settleWithdrawals", all)
}

func (s *stage) claim(index int64) transaction {
	return s.v.call("claimWithdrawal", n(index))
}

func (s *stage) cancel(index int64) transaction {
	return s.v.call("cancelWithdrawal", n(index))
}

func (s *stage) expire(index int64) transaction {
	return s.v.call("expireWithdrawal", n(index))
}

var n = big.NewInt

func TestDepositsAndNav(t *testing.T) {
	s := newStage(t)
	// The first deposit gets one share per asset; a plain one has no partner; the owner is the receiver.
	s.emits(s.alice, s.deposit(1000, s.bob.address),
		contracts.DepositAccepted{DepositID: n(1), Owner: s.bob.address, PartnerID: 0, Sender: s.alice.address,
			Assets: n(1000), Shares: n(1000)})
	s.shares(1000, s.bob.address)
	s.assets(999_000, s.alice.address)
	// The oracle sets the value of a share to 1.25, with 18 decimals.
	s.emits(oracle, s.nav(1250),
		contracts.NavUpdated{NavID: n(1), Updater: oracle.address, NavPerShare: n(1_250_000_000_000_000_000),
			TotalAssets: n(1250), TotalSupply: n(1000)})
	s.emits(s.alice, s.v.call("deposit0", n(500), s.alice.address, uint32(1<<32-1)),
		contracts.DepositAccepted{DepositID: n(2), Owner: s.alice.address, PartnerID: 1<<32 - 1, Sender: s.alice.address,
			Assets: n(500), Shares: n(400)})
	// Deposits since then are part of the total; the next valuation replaces it.
	s.checkValue(1750, s.v.Contract, "totalAssets")
	s.checkValue(1500, s.v.Contract, "totalDeposited")
	s.emits(oracle, s.nav(1400),
		contracts.NavUpdated{NavID: n(2), Updater: oracle.address, NavPerShare: n(1e18), TotalAssets: n(1400),
			TotalSupply: n(1400)})

	s.refuses(s.alice, "NotAuthorized["+s.alice.address.Hex(), s.nav(1))
	s.refuses(s.alice, "ZeroAmount", s.deposit(0, s.alice.address))
	s.refuses(s.alice, "ZeroAddress", s.deposit(1, common.Address{}))
	s.refuses(s.alice, "InsufficientAllowance", s.deposit(1_000_000, s.alice.address))
	s.do(oracle, s.nav(0))
	s.refuses(s.alice, "ZeroNav", s.deposit(1, s.alice.address))
}

// TestERC4626Beside: the vault also emits the standard's events, with the same amounts.
func TestERC4626Beside(t *testing.T) {
	s := newStage(t)
	topic := func(signature string) common.Hash { return crypto.Keccak256Hash([]byte(signature)) }
	find := func(receipt *types.Receipt, topic common.Hash) *types.Log {
		for _, l := range receipt.Logs {
			if l.Address == s.v.Address && l.Topics[0] == topic {
				return l
			}
		}
		t.Fatalf("no log with topic %s in %v", topic, receipt.Logs)
		return nil
	}
	var in struct {
		Sender, Owner  common.Address
		Assets, Shares *big.Int
	}
	receipt := mustSend(t, s.c, s.alice, s.deposit(1000, s.bob.address))
	if err := s.v.UnpackLog(&in, "Deposit",
		*find(receipt, topic("Deposit(address,address,uint256,uint256)"))); err != nil {
		t.Fatal(err)
	}
	if in.Sender != s.alice.address || in.Owner != s.bob.address || in.Assets.Cmp(n(1000)) != 0 ||
		in.Shares.Cmp(n(1000)) != 0 {
		t.Errorf("ERC-4626 Deposit is %+v", in)
	}
	s.do(s.bob, s.request(400, s.alice.address))
	s.do(manager, s.settle(0))
	receipt = mustSend(t, s.c, s.alice, s.claim(0)) // the receiver may claim too
	outLog := find(receipt, topic("Withdraw(address,address,address,uint256,uint256)"))
	var out struct {
		Sender, Receiver, Owner common.Address
		Assets, Shares          *big.Int
	}
	if err := s.v.UnpackLog(&out, "Withdraw", *outLog); err != nil {
		t.Fatal(err)
	}
	if out.Sender != s.alice.address || out.Receiver != s.alice.address || out.Owner != s.bob.address ||
		out.Assets.Cmp(n(400)) != 0 || out.Shares.Cmp(n(400)) != 0 {
		t.Errorf("ERC-4626 Withdraw is %+v", out)
	}
	if claimed := find(receipt, contracts.KindWithdrawalClaimed.Topic()); claimed.Index != outLog.Index-1 {
		t.Errorf("WithdrawalClaimed is log %d, Withdraw is log %d", claimed.Index, outLog.Index)
	}
	// Synchronous withdrawals are disabled.
	for _, limit := range []string{"maxWithdraw", "maxRedeem", "maxMint"} {
		s.checkValue(0, s.v.Contract, limit, s.bob.address)
	}
	for _, method := range []string{"withdraw", "redeem"} {
		_, err := read[*big.Int](s.ctx, s.v.Contract, method, n(1), s.bob.address, s.bob.address)
		if err == nil || !strings.Contains(err.Error(), "SynchronousExitClosed") {
			t.Errorf("%s gave %v", method, err)
		}
	}
}

func TestSweepsAreContiguous(t *testing.T) {
	s := newStage(t)
	s.refuses(manager, "WrongSweepRange[0 1 0]", s.sweep(1))
	for _, assets := range []int64{10, 200, 3000, 40000} {
		s.do(s.alice, s.deposit(assets, s.alice.address))
	}
	s.refuses(s.alice, "NotAuthorized", s.sweep(1))
	s.emits(manager, s.sweep(2),
		contracts.DepositsSwept{SweepID: n(1), Custodian: custodian.address, FromDepositID: n(1), ToDepositID: n(2),
			Assets: n(210)})
	s.assets(210, custodian.address)
	s.assets(43_000, s.v.Address)
	s.refuses(manager, "WrongSweepRange[2 2 4]", s.sweep(2))
	s.refuses(manager, "WrongSweepRange[2 1 4]", s.sweep(1))
	s.refuses(manager, "WrongSweepRange[2 5 4]", s.sweep(5))
	s.emits(manager, s.sweep(4),
		contracts.DepositsSwept{SweepID: n(2), Custodian: custodian.address, FromDepositID: n(3), ToDepositID: n(4),
			Assets: n(43_000)})
	s.assets(0, s.v.Address)
	s.checkValue(4, s.v.Contract, "sweptTo")
}

func TestSettlementAndClaim(t *testing.T) {
	s := newStage(t)
	s.do(s.alice, s.deposit(1000, s.alice.address))
	s.do(s.bob, s.deposit(1000, s.bob.address))
	s.emits(s.alice, s.request(300, s.bob.address),
		contracts.WithdrawalRequested{RequestIndex: n(0), Owner: s.alice.address, Receiver: s.bob.address, Shares: n(300),
			AssetsEstimate: n(300)})
	s.emits(s.bob, s.v.call("requestWithdrawal0", n(101), s.bob.address, uint32(42)),
		contracts.WithdrawalRequested{RequestIndex: n(1), Owner: s.bob.address, PartnerID: 42, Receiver: s.bob.address,
			Shares: n(101), AssetsEstimate: n(101)})
	s.shares(700, s.alice.address) // the shares are in escrow, and still part of the supply
	s.shares(401, s.v.Address)
	s.checkValue(2000, s.v.Contract, "totalSupply")
	s.refuses(s.alice, "InsufficientBalance", s.request(701, s.alice.address))
	s.refuses(s.alice, "ZeroAmount", s.request(0, s.alice.address))
	s.refuses(s.alice, "ZeroAddress", s.request(1, common.Address{}))
	s.refuses(s.alice, "WrongStatus[0 0]", s.claim(0)) // before funding
	s.refuses(s.alice, "UnknownRequest[2]", s.claim(2))

	s.do(oracle, s.nav(3000)) // a share is worth 1.5 at the settlement, which counts instead of the estimate
	s.refuses(s.alice, "NotAuthorized", s.settle(0))
	s.refuses(manager, "ZeroAmount", s.settle())
	s.refuses(manager, "UnknownRequest[7]", s.settle(0, 7))
	s.refuses(manager, "WrongStatus[1 1]", s.settle(1, 1)) // twice in one settlement
	s.emits(manager, s.settle(1, 0),
		contracts.WithdrawalFunded{RequestIndex: n(1), Owner: s.bob.address, SettlementID: n(1), Shares: n(101),
			Assets: n(151)},
		contracts.WithdrawalFunded{RequestIndex: n(0), Owner: s.alice.address, SettlementID: n(1), Shares: n(300),
			Assets: n(450)},
		contracts.WithdrawalsSettled{SettlementID: n(1), Funder: manager.address, RequestCount: n(2), Shares: n(401),
			Assets: n(601), NavPerShare: n(1_500_000_000_000_000_000)})
	s.checkValue(1599, s.v.Contract, "totalSupply")
	s.checkValue(3000-601, s.v.Contract, "totalAssets")
	s.assets(1_000_000-601, manager.address)

	s.refuses(manager, "WrongStatus[0 1]", s.settle(0))
	s.refuses(s.alice, "WrongStatus[0 1]", s.cancel(0)) // funded, so neither cancelled nor expired
	s.refuses(s.alice, "WrongStatus[0 1]", s.expire(0))
	s.refuses(s.alice, "NotAuthorized", s.claim(1))
	before := int64(1_000_000 - 1000)
	s.emits(s.alice, s.claim(0),
		contracts.WithdrawalClaimed{RequestIndex: n(0), Owner: s.alice.address, Receiver: s.bob.address, Shares: n(300),
			Assets: n(450)})
	s.assets(before+450, s.bob.address) // the receiver is paid, not the owner
	s.assets(before, s.alice.address)
	s.checkValue(450, s.v.Contract, "totalClaimed")
	s.refuses(s.alice, "WrongStatus[0 2]", s.claim(0))
	// The other claim is still there in addition to the two unswept deposits, and a sweep does not touch it.
	s.do(manager, s.sweep(2))
	s.assets(151, s.v.Address)
}

func TestCancellationAndExpiry(t *testing.T) {
	s := newStage(t)
	s.do(s.alice, s.deposit(1000, s.alice.address))
	s.refuses(s.alice, "NotAuthorized", s.v.call("setRequestTtl", uint64(60)))
	s.do(s.alice, s.request(10, s.alice.address)) // 0: made before a time to live was set, so it never expires
	s.do(owner, s.v.call("setRequestTtl", uint64(600)))
	expiresAt := s.do(s.alice, s.request(20, s.alice.address))[0].(contracts.WithdrawalRequested).ExpiresAt // 1
	now, err := s.c.now(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if expiresAt != now+600 {
		t.Errorf("the request of block time %d expires at %d", now, expiresAt)
	}
	s.do(s.alice, s.request(40, s.alice.address)) // 2
	s.refuses(s.bob, "NotAuthorized", s.cancel(2))
	s.refuses(s.bob, "RequestNotExpired[0 0]", s.expire(0))
	s.refuses(s.bob, "RequestNotExpired[1", s.expire(1))
	s.emits(s.alice, s.cancel(2), contracts.WithdrawalCancelled{RequestIndex: n(2), Owner: s.alice.address, Shares: n(40)})
	s.shares(1000-30, s.alice.address)

	// At exactly expiresAt it can no longer be cancelled or settled, only expired, by anyone.
	s.callAt(expiresAt-1, s.alice, true, "cancelWithdrawal", n(1))
	s.callAt(expiresAt-1, s.bob, false, "expireWithdrawal", n(1))
	s.callAt(expiresAt-1, manager, true, "settleWithdrawals", []*big.Int{n(1)})
	s.callAt(expiresAt, s.alice, false, "cancelWithdrawal", n(1))
	s.callAt(expiresAt, manager, false, "settleWithdrawals", []*big.Int{n(1)})
	s.callAt(expiresAt, s.bob, true, "expireWithdrawal", n(1))
	if err := s.c.jumpTo(s.ctx, expiresAt); err != nil {
		t.Fatal(err)
	}
	s.refuses(s.alice, "RequestExpired[1", s.cancel(1))
	s.refuses(manager, "RequestExpired[1", s.settle(0, 1)) // a settlement succeeds as a whole or not at all
	s.emits(s.bob, s.expire(1), contracts.WithdrawalExpired{RequestIndex: n(1), Owner: s.alice.address, Shares: n(20)})
	s.shares(1000-10, s.alice.address)
	s.refuses(s.bob, "WrongStatus[1 4]", s.expire(1))
	s.refuses(s.alice, "WrongStatus[2 3]", s.claim(2))
	s.refuses(s.bob, "RequestNotExpired[0 0]", s.expire(0)) // 0 never expires
	s.checkValue(1000, s.v.Contract, "totalSupply")
}

// callAt tries a call to the vault as if the block's time were at, and expects it to succeed or to be rejected.
func (s *stage) callAt(at uint64, from account, works bool, method string, arguments ...any) {
	s.Helper()
	input, err := contracts.VaultABI().Pack(method, arguments...)
	if err != nil {
		s.Fatal(err)
	}
	call := map[string]any{"from": from.address, "to": s.v.Address, "data": "0x" + common.Bytes2Hex(input)}
	block := map[string]any{"time": "0x" + big.NewInt(int64(at)).Text(16)}
	var answer string
	err = s.c.rpc.CallContext(s.ctx, &answer, "eth_call", call, "latest", map[string]any{}, block)
	if (err == nil) != works {
		s.Errorf("%s at %d gave %v, want it to work: %t", method, at, err, works)
	}
}

func TestRouter(t *testing.T) {
	s := newStage(t)
	route := func(vault common.Address, assets, minShares int64, partner uint32) transaction {
		return s.router.call("deposit", vault, n(assets), n(minShares), s.bob.address, partner)
	}
	status := func(partner uint32, active bool) transaction {
		return s.router.call("setPartnerStatus", partner, active)
	}
	allow := func(vault common.Address, allowed bool) transaction {
		return s.router.call("setVaultAllowed", vault, allowed)
	}
	s.refuses(s.alice, "PartnerNotActive[7]", route(s.v.Address, 1000, 0, 7))
	s.refuses(s.alice, "NotAuthorized", status(7, true))
	s.refuses(s.alice, "NotAuthorized", allow(s.v.Address, false))
	s.refuses(owner, "PartnerNotActive[0]", status(0, true))
	s.do(owner, status(7, true))
	s.refuses(s.alice, "VaultNotAllowed", route(s.bob.address, 1000, 0, 7))
	s.refuses(s.alice, "TooFewShares[1000 1001]", route(s.v.Address, 1000, 1001, 7))
	s.assets(1_000_000, s.alice.address)

	// The vault sees the router as the sender and the receiver as the owner; the router's own event names who paid.
	receipt := mustSend(t, s.c, s.alice, route(s.v.Address, 1000, 1000, 7))
	var routed struct {
		PartnerId               uint32
		Vault, Receiver, Sender common.Address
		Assets, Shares          *big.Int
	}
	if err := s.router.UnpackLog(&routed, "RoutedDeposit", *receipt.Logs[len(receipt.Logs)-1]); err != nil {
		t.Fatal(err)
	}
	if routed.PartnerId != 7 || routed.Vault != s.v.Address || routed.Receiver != s.bob.address ||
		routed.Sender != s.alice.address ||
		routed.Assets.Cmp(n(1000)) != 0 || routed.Shares.Cmp(n(1000)) != 0 {
		t.Errorf("RoutedDeposit is %+v", routed)
	}
	s.emits(s.alice, route(s.v.Address, 500, 500, 7),
		contracts.DepositAccepted{DepositID: n(2), Owner: s.bob.address, PartnerID: 7, Sender: s.routerAt, Assets: n(500),
			Shares: n(500)})
	s.assets(0, s.routerAt)
	s.shares(1500, s.bob.address)

	ask := s.router.call("requestWithdrawal", s.v.Address, n(600), s.alice.address, uint32(7))
	s.refuses(s.bob, "InsufficientAllowance", ask) // the router needs bob's approval
	s.do(s.bob, s.v.call("approve", s.routerAt, n(600)))
	s.emits(s.bob, ask,
		contracts.WithdrawalRequested{RequestIndex: n(0), Owner: s.bob.address, PartnerID: 7, Receiver: s.alice.address,
			Shares: n(600), AssetsEstimate: n(600)})
	s.checkValue(0, s.v.Contract, "allowance", s.bob.address, s.routerAt)
	s.refuses(s.alice, "InsufficientAllowance",
		s.v.call("requestWithdrawalFor", s.bob.address, n(1), s.alice.address, uint32(7)))

	s.do(owner, status(7, false))
	s.refuses(s.bob, "PartnerNotActive[7]", ask)
	s.do(owner, status(7, true))
	s.do(owner, allow(s.v.Address, false))
	s.refuses(s.bob, "VaultNotAllowed", ask)
	s.refuses(s.alice, "VaultNotAllowed", route(s.v.Address, 1, 0, 7))
}

func TestVaultMetadata(t *testing.T) {
	s := newStage(t)
	name, err := read[string](s.ctx, s.v.Contract, "name")
	if err != nil || name != vaults[0].name {
		t.Errorf("name is %q, %v", name, err)
	}
	symbol, err := read[string](s.ctx, s.v.Contract, "symbol")
	if err != nil || symbol != vaults[0].symbol {
		t.Errorf("symbol is %q, %v", symbol, err)
	}
	decimals, err := read[uint8](s.ctx, s.v.Contract, "decimals")
	if err != nil || decimals != assetDecimals {
		t.Errorf("decimals are %d, %v", decimals, err)
	}
	asset, err := read[common.Address](s.ctx, s.v.Contract, "asset")
	if err != nil || asset != s.v.Vault.Asset {
		t.Errorf("asset is %s, %v", asset, err)
	}
}
