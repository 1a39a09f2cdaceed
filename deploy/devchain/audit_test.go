package devchain

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi/bind"
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/contracts"
)

// books are the accounts of one vault, kept from its events only.
type books struct {
	deposits  []*big.Int // assets of deposit i+1
	swept     int
	requests  []contracts.WithdrawalRequested
	state     []string
	funded    map[int]*big.Int
	settling  *big.Int // funded and not yet closed by WithdrawalsSettled
	settled   int
	navs      int
	sweeps    int
	deposited *big.Int
	claimed   *big.Int
}

// audit follows the events of every vault, checks each against the rules that an indexer relies on, and compares the
// sums with the contracts' own figures. Both are read as of one block, because a chain may still mine transactions of a
// scenario that has stopped. It first mines another block on top of that one, because anvil may return a state of the
// newest block that includes a part of what it is mining.
func audit(t *testing.T, c *chain, deployed *Contracts) {
	t.Helper()
	head, err := c.BlockNumber(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.rpc.CallContext(testContext(t), nil, "evm_mine"); err != nil {
		t.Fatal(err)
	}
	logs := eventLogs(t, c, deployed)
	for _, v := range deployed.Vaults {
		b := &books{funded: map[int]*big.Int{}, settling: new(big.Int), deposited: new(big.Int), claimed: new(big.Int)}
		for _, l := range logs {
			if l.Address != v.Address || l.BlockNumber > head {
				continue
			}
			if err := b.follow(l.event); err != nil {
				t.Errorf("vault %s, block %d, log %d, %+v: %v", v.Symbol, l.BlockNumber, l.Index, l.event, err)
			}
		}
		b.compare(t, c, v, head)
	}
}

func (b *books) follow(event contracts.Event) error {
	switch e := event.(type) {
	case contracts.DepositAccepted:
		b.deposits = append(b.deposits, e.Assets)
		b.deposited.Add(b.deposited, e.Assets)
		return same("depositId", e.DepositID, len(b.deposits))
	case contracts.DepositsSwept:
		if err := same("fromDepositId", e.FromDepositID, b.swept+1); err != nil {
			return err
		}
		sum := new(big.Int)
		for ; b.swept < int(e.ToDepositID.Int64()); b.swept++ {
			sum.Add(sum, b.deposits[b.swept])
		}
		b.sweeps++
		if sum.Cmp(e.Assets) != 0 || e.Custodian != custodian.address {
			return fmt.Errorf("the deposits sum to %s", sum)
		}
		return same("sweepId", e.SweepID, b.sweeps)
	case contracts.WithdrawalRequested:
		b.requests = append(b.requests, e)
		b.state = append(b.state, "pending")
		return same("requestIndex", e.RequestIndex, len(b.requests)-1)
	case contracts.WithdrawalFunded:
		b.settling.Add(b.settling, e.Assets)
		b.funded[int(e.RequestIndex.Int64())] = e.Assets
		if err := same("settlementId", e.SettlementID, b.settled+1); err != nil {
			return err
		}
		return b.move(e.RequestIndex, e.Owner, e.Shares, "pending", "funded")
	case contracts.WithdrawalsSettled:
		b.settled++
		if b.settling.Cmp(e.Assets) != 0 {
			return fmt.Errorf("its requests were funded with %s", b.settling)
		}
		b.settling = new(big.Int)
		return same("settlementId", e.SettlementID, b.settled)
	case contracts.WithdrawalClaimed:
		b.claimed.Add(b.claimed, e.Assets)
		i := int(e.RequestIndex.Int64())
		if b.funded[i].Cmp(e.Assets) != 0 || b.requests[i].Receiver != e.Receiver {
			return fmt.Errorf("request %d was funded with %s for %s", i, b.funded[i], b.requests[i].Receiver)
		}
		return b.move(e.RequestIndex, e.Owner, e.Shares, "funded", "claimed")
	case contracts.WithdrawalCancelled:
		return b.move(e.RequestIndex, e.Owner, e.Shares, "pending", "cancelled")
	case contracts.WithdrawalExpired:
		return b.move(e.RequestIndex, e.Owner, e.Shares, "pending", "expired")
	case contracts.NavUpdated:
		b.navs++
		if want := nav(e.TotalAssets, e.TotalSupply); want.Cmp(e.NavPerShare) != 0 {
			return fmt.Errorf("the NAV per share is %s", want)
		}
		return same("navId", e.NavID, b.navs)
	}
	return fmt.Errorf("an event of no known kind")
}

func (b *books) move(index *big.Int, owner common.Address, shares *big.Int, from, to string) error {
	i := int(index.Int64())
	if i >= len(b.requests) {
		return fmt.Errorf("there is no request %d", i)
	}
	if r := b.requests[i]; b.state[i] != from || r.Owner != owner || r.Shares.Cmp(shares) != 0 {
		return fmt.Errorf("request %d of %s over %s shares is %s", i, r.Owner, r.Shares, b.state[i])
	}
	b.state[i] = to
	return nil
}

// compare compares the books with the contract's figures at the end of a block.
func (b *books) compare(t *testing.T, c *chain, deployed Vault, block uint64) {
	t.Helper()
	ctx := testContext(t)
	v, err := bindVault(ctx, c, deployed)
	if err != nil {
		t.Fatal(err)
	}
	call := &bind.CallOpts{Context: ctx, BlockNumber: new(big.Int).SetUint64(block)}
	claimable := new(big.Int)
	for i, state := range b.state {
		if state == "funded" {
			claimable.Add(claimable, b.funded[i])
		}
	}
	holds := new(big.Int).Set(claimable)
	for _, d := range b.deposits[b.swept:] {
		holds.Add(holds, d)
	}
	figure := func(name string, of *Contract, want *big.Int, arguments ...any) {
		got, err := Read[*big.Int](call, of, name, arguments...)
		if err != nil {
			t.Fatal(err)
		}
		if got.Cmp(want) != 0 {
			t.Errorf("vault %s: %s is %s, its events say %s", deployed.Symbol, name, got, want)
		}
	}
	figure("depositCount", v.Contract, big.NewInt(int64(len(b.deposits))))
	figure("totalDeposited", v.Contract, b.deposited)
	figure("totalClaimed", v.Contract, b.claimed)
	figure("sweptTo", v.Contract, big.NewInt(int64(b.swept)))
	figure("sweepCount", v.Contract, big.NewInt(int64(b.sweeps)))
	figure("requestCount", v.Contract, big.NewInt(int64(len(b.requests))))
	figure("settlementCount", v.Contract, big.NewInt(int64(b.settled)))
	figure("navCount", v.Contract, big.NewInt(int64(b.navs)))
	figure("balanceOf", v.asset, holds, v.Address) // unswept and claimable
	names := map[uint8]string{statusPending: "pending", statusFunded: "funded", statusClaimed: "claimed",
		statusCancelled: "cancelled", statusExpired: "expired"}
	for i, state := range b.state {
		r, err := Read[Request](call, v.Contract, "request", big.NewInt(int64(i)))
		if err != nil {
			t.Fatal(err)
		}
		if names[r.Status] != state {
			t.Errorf("vault %s: request %d is %s, its events say %s", deployed.Symbol, i, names[r.Status], state)
		}
	}
}

// nav returns assets per share with 18 decimals, for assets and shares with the same decimals.
func nav(assets, shares *big.Int) *big.Int {
	n := new(big.Int).Mul(assets, big.NewInt(1e18))
	return n.Quo(n, shares)
}

func same(what string, got *big.Int, want int) error {
	if !got.IsInt64() || got.Int64() != int64(want) {
		return fmt.Errorf("%s is %s, the next one is %d", what, got, want)
	}
	return nil
}
