package devchain

import (
	"context"
	"fmt"
	"log/slog"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/accounts/abi/bind"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/schemas/contracts"
)

var partners = []uint32{7, 42}

func TestSixtyStepsShowEveryEvent(t *testing.T) {
	for seed := range int64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			ctx, url, deployed := fresh(t, engines.AnvilOptions{})
			if err := New(url, deployed, seed, partners, quiet).Steps(ctx, 60); err != nil {
				t.Fatal(err)
			}
			c := connected(t, url)
			logs := eventLogs(t, c, deployed)
			seen := map[contracts.Kind]int{}
			deposits := map[string]int{}
			requests := map[string]int{}
			vaultsOf := map[common.Address]map[common.Address]bool{}
			for _, l := range logs {
				seen[l.event.Kind()]++
				switch e := l.event.(type) {
				case contracts.DepositAccepted:
					way := "plain"
					switch {
					case e.Sender == deployed.Router:
						way = "routed"
					case e.PartnerID != 0:
						way = "referral"
					}
					if (way != "plain") != slices.Contains(partners, e.PartnerID) {
						t.Errorf("a %s deposit has partner %d", way, e.PartnerID)
					}
					deposits[way]++
					if vaultsOf[e.Owner] == nil {
						vaultsOf[e.Owner] = map[common.Address]bool{}
					}
					vaultsOf[e.Owner][l.Address] = true
				case contracts.WithdrawalRequested:
					requests[fmt.Sprintf("partner %t, expiring %t", e.PartnerID != 0, e.ExpiresAt != 0)]++
				}
			}
			for _, kind := range contracts.Kinds() {
				if seen[kind] == 0 {
					t.Errorf("60 steps made no %s", kind)
				}
			}
			if len(deposits) != 3 {
				t.Errorf("not every way to deposit was used: %v", deposits)
			}
			if len(requests) != 4 {
				t.Errorf("not every sort of request was made: %v", requests)
			}
			inSeveral := 0
			for _, in := range vaultsOf {
				if len(in) > 1 {
					inSeveral++
				}
			}
			if inSeveral == 0 {
				t.Error("no user is in more than one vault")
			}
			audit(t, c, deployed)
		})
	}
}

// TestTheSeedDecides: the same seed on the same chain gives the same events, and a different seed gives different ones.
func TestTheSeedDecides(t *testing.T) {
	events := func(seed int64) string {
		ctx, url, deployed := fresh(t, engines.AnvilOptions{})
		if err := New(url, deployed, seed, partners, quiet).Steps(ctx, 40); err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, l := range eventLogs(t, connected(t, url), deployed) {
			if e, ok := l.event.(contracts.WithdrawalRequested); ok {
				e.ExpiresAt = 0 // depends on when the chain began
				l.event = e
			}
			all = append(all, fmt.Sprintf("%d %s %+v", l.BlockNumber, l.Address, l.event))
		}
		return strings.Join(all, "\n")
	}
	first, again, other := events(5), events(5), events(6)
	if first != again {
		t.Errorf("the same seed gave\n%s\nand then\n%s", first, again)
	}
	if first == other {
		t.Error("another seed gave the same events")
	}
}

// TestGoesOn: a scenario survives a restart and a reorganisation, because it reads its state from the chain.
func TestGoesOn(t *testing.T) {
	ctx, url, deployed := fresh(t, engines.AnvilOptions{})
	first := New(url, deployed, 1, partners, quiet)
	if err := first.Steps(ctx, 35); err != nil {
		t.Fatal(err)
	}
	second := New(url, deployed, 1, partners, quiet)
	for round := range 4 {
		before := len(eventLogs(t, connected(t, url), deployed))
		if err := Reorg(ctx, url, uint64(4+5*round)); err != nil {
			t.Fatal(err)
		}
		c := connected(t, url)
		if lost := before - len(eventLogs(t, c, deployed)); lost == 0 {
			t.Fatalf("reorganisation %d removed no event", round)
		}
		if err := second.Steps(ctx, 15); err != nil {
			t.Fatalf("after reorganisation %d: %v", round, err)
		}
		audit(t, c, deployed)
	}
}

// The clock of a restarted node is the machine's, however far the times of the chain are behind it.
func TestGoesOnAfterARestart(t *testing.T) {
	ctx, dir := testContext(t), t.TempDir()
	start := func() *engines.Anvil {
		a, err := engines.StartAnvil(ctx, dir, engines.AnvilOptions{Timestamp: 1_750_000_000})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.Kill)
		return a
	}
	first := start()
	deployed, err := Deploy(ctx, first.URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := New(first.URL, deployed, 1, partners, quiet).Steps(ctx, 30); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := New(start().URL, deployed, 1, partners, quiet).Steps(ctx, 30); err != nil {
		t.Fatal(err)
	}
}

func TestRunOnEveryWayOfMining(t *testing.T) {
	for name, options := range map[string]engines.AnvilOptions{
		"a block per transaction": {},
		"a block per second":      {BlockTime: time.Second},
		"on demand":               {NoMining: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, url, deployed := fresh(t, options)
			running, stop := context.WithCancel(ctx)
			ended := make(chan error, 1)
			go func() { ended <- New(url, deployed, 1, partners, quiet).Run(running, time.Millisecond) }()
			c := connected(t, url)
			poll := time.NewTicker(50 * time.Millisecond)
			defer poll.Stop()
			for len(eventLogs(t, c, deployed)) < 4 {
				select {
				case <-poll.C:
				case err := <-ended:
					t.Fatalf("the run ended by itself: %v", err)
				case <-ctx.Done():
					t.Fatal("no events came")
				}
			}
			audit(t, c, deployed) // while it runs
			stop()
			if err := <-ended; err != nil {
				t.Errorf("the run ended with %v, want nil", err)
			}
			audit(t, c, deployed)
		})
	}
}

func TestRunGivesUpOnADeadChain(t *testing.T) {
	anvil := enginetest.Anvil(t, engines.AnvilOptions{})
	ctx := testContext(t)
	deployed, err := Deploy(ctx, anvil.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := New(anvil.URL, deployed, 1, partners, quiet)
	if err := s.Steps(ctx, 1); err != nil {
		t.Fatal(err)
	}
	anvil.Kill()
	if err := s.Run(ctx, time.Millisecond); err == nil ||
		!strings.Contains(err.Error(), "10 steps of the scenario failed in a row") {
		t.Errorf("the run ended with %v", err)
	}
}

func TestWithoutPartnersNothingIsAttributed(t *testing.T) {
	ctx, url, deployed := fresh(t, engines.AnvilOptions{})
	if err := New(url, deployed, 1, nil, quiet).Steps(ctx, 40); err != nil {
		t.Fatal(err)
	}
	for _, l := range eventLogs(t, connected(t, url), deployed) {
		switch e := l.event.(type) {
		case contracts.DepositAccepted:
			if e.PartnerID != 0 {
				t.Errorf("deposit %s has partner %d", e.DepositID, e.PartnerID)
			}
		case contracts.WithdrawalRequested:
			if e.PartnerID != 0 {
				t.Errorf("request %s has partner %d", e.RequestIndex, e.PartnerID)
			}
		}
	}
}

func TestScenarioSaysWhatIsWrong(t *testing.T) {
	ctx, url, deployed := fresh(t, engines.AnvilOptions{})
	wrong := func(change func(*Contracts)) *Contracts {
		c := *deployed
		c.Vaults = slices.Clone(c.Vaults)
		change(&c)
		return &c
	}
	for name, try := range map[string]struct {
		url       string
		contracts *Contracts
		want      string
	}{
		"unreachable": {"http://127.0.0.1:1", deployed, "ask the development chain for its chain id"},
		"another chain": {url, wrong(func(c *Contracts) { c.ChainID = 1 }),
			"the contracts are on chain 1, but the node serves chain 31337"},
		"no vaults": {url, wrong(func(c *Contracts) { c.Vaults = nil }), "deploy the contracts first"},
		"no code": {url, wrong(func(c *Contracts) { c.Vaults[1].Address = common.Address{9} }),
			"no contract at the vault address"},
	} {
		s := New(try.url, try.contracts, 1, partners, quiet)
		if err := s.Steps(ctx, 1); err == nil || !strings.Contains(err.Error(), try.want) {
			t.Errorf("%s: got %v, want %q", name, err, try.want)
		}
		if err := s.Run(ctx, time.Millisecond); err == nil || !strings.Contains(err.Error(), try.want) {
			t.Errorf("%s: Run gave %v, want %q", name, err, try.want)
		}
	}
	if _, err := Deploy(ctx, "http://127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "chain id") {
		t.Errorf("deploying to nowhere gave %v", err)
	}
}

// TestAFailedStepIsNamed revokes the oracle's role while the scenario runs.
func TestAFailedStepIsNamed(t *testing.T) {
	ctx, url, deployed := fresh(t, engines.AnvilOptions{})
	c := connected(t, url)
	for _, v := range deployed.Vaults {
		bound, err := bindVault(ctx, c, v)
		if err != nil {
			t.Fatal(err)
		}
		mustSend(t, c, owner, bound.call("setRoles", owner.address, manager.address, custodian.address))
	}
	err := New(url, deployed, 1, partners, quiet).Steps(ctx, 60)
	if err == nil || !strings.HasPrefix(err.Error(), "a NAV update in the vault v") ||
		!strings.Contains(err.Error(), "NotAuthorized["+oracle.address.Hex()+"]") {
		t.Errorf("got %v", err)
	}
}

func TestTransactionsThatFail(t *testing.T) {
	ctx, url, deployed := fresh(t, engines.AnvilOptions{})
	c := connected(t, url)
	v, err := bindVault(ctx, c, deployed.Vaults[0])
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.send(ctx, oracle, func(o *bind.TransactOpts) (*types.Transaction, error) {
		o.GasLimit = 1_000_000 // without an estimate the failure only shows in the block
		return v.Transact(o, "sweepDeposits", big.NewInt(1))
	})
	if err == nil || !strings.Contains(err.Error(), "reverted in block") {
		t.Errorf("a reverted transaction gave %v", err)
	}
	c.patience = 100 * time.Millisecond
	if _, err := c.mined(ctx, common.Hash{1}); err == nil || !strings.Contains(err.Error(), "was not mined within 100ms") {
		t.Errorf("a lost transaction gave %v", err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := c.mined(cancelled, common.Hash{1}); err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("a cancelled wait gave %v", err)
	}
}

// An eventLog is a log with its decoded event.
type eventLog struct {
	types.Log
	event contracts.Event
}

func eventLogs(t *testing.T, c *chain, deployed *Contracts) []eventLog {
	t.Helper()
	var addresses []common.Address
	for _, v := range deployed.Vaults {
		addresses = append(addresses, v.Address)
	}
	logs, err := c.FilterLogs(testContext(t), ethereum.FilterQuery{FromBlock: new(big.Int), Addresses: addresses})
	if err != nil {
		t.Fatal(err)
	}
	var found []eventLog
	for _, l := range logs {
		e, err := Decode(l.Topics, l.Data)
		if err != nil {
			t.Fatalf("log %d of block %d: %v", l.Index, l.BlockNumber, err)
		}
		if e != nil {
			found = append(found, eventLog{l, e})
		}
	}
	return found
}

var quiet = slog.New(slog.DiscardHandler)

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func fresh(t *testing.T, options engines.AnvilOptions) (context.Context, string, *Contracts) {
	t.Helper()
	url := enginetest.Anvil(t, options).URL
	ctx := testContext(t)
	deployed, err := Deploy(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	return ctx, url, deployed
}

func connected(t *testing.T, url string) *chain {
	t.Helper()
	c, err := dial(testContext(t), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func mustSend(t *testing.T, c *chain, from account, call transaction) *types.Receipt {
	t.Helper()
	receipt, err := c.send(testContext(t), from, call)
	if err != nil {
		t.Fatal(err)
	}
	return receipt
}
