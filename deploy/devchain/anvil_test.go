package devchain

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/accounts/abi/bind"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
)

func head(t *testing.T, c *chain) *types.Header {
	t.Helper()
	h, err := c.HeaderByNumber(testContext(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestMineAndTime(t *testing.T) {
	url := enginetest.Anvil(t, engines.AnvilOptions{}).URL
	ctx, c := testContext(t), connected(t, url)
	before := head(t, c)
	ok(t, Mine(ctx, url, 7))
	if got := head(t, c).Number.Uint64() - before.Number.Uint64(); got != 7 {
		t.Errorf("%d blocks were mined instead of 7", got)
	}
	ok(t, IncreaseTime(ctx, url, time.Hour))
	ok(t, Mine(ctx, url, 1))
	if got := head(t, c).Time - before.Time; got < 3600 {
		t.Errorf("the time advanced by %d s instead of an hour", got)
	}
}

func TestSnapshotAndRevert(t *testing.T) {
	url := enginetest.Anvil(t, engines.AnvilOptions{}).URL
	ctx, c := testContext(t), connected(t, url)
	ok(t, Mine(ctx, url, 2))
	before := head(t, c)
	id, err := Snapshot(ctx, url)
	ok(t, err)
	ok(t, Mine(ctx, url, 3))
	ok(t, Revert(ctx, url, id))
	if got := head(t, c); got.Hash() != before.Hash() {
		t.Errorf("reverted to block %s %s instead of %s %s", got.Number, got.Hash(), before.Number, before.Hash())
	}
	if err := Revert(ctx, url, id); err == nil || !strings.Contains(err.Error(), "the chain has no snapshot "+id) {
		t.Errorf("reverting twice gave %v", err)
	}
}

func TestMiningModes(t *testing.T) {
	url := enginetest.Anvil(t, engines.AnvilOptions{}).URL
	ctx, c := testContext(t), connected(t, url)
	start := head(t, c).Number.Uint64()
	ok(t, SetAutomine(ctx, url, false))
	tx := mustSend(t, c, owner, transfer(c)) // mined by send itself
	if tx.BlockNumber.Uint64() != start+1 {
		t.Errorf("the transaction is in block %s", tx.BlockNumber)
	}
	ok(t, SetIntervalMining(ctx, url, time.Second))
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for head(t, c).Number.Uint64() < start+2 {
		select {
		case <-poll.C:
		case <-ctx.Done():
			t.Fatal("no block was mined by time")
		}
	}
	ok(t, SetIntervalMining(ctx, url, 0))
	ok(t, SetAutomine(ctx, url, true))
	at := head(t, c).Number.Uint64()
	if tx := mustSend(t, c, owner, transfer(c)); tx.BlockNumber.Uint64() != at+1 {
		t.Errorf("the transaction is in block %s", tx.BlockNumber)
	}
}

// TestReorg replaces four blocks and keeps one of their transactions, in another block.
func TestReorg(t *testing.T) {
	url := enginetest.Anvil(t, engines.AnvilOptions{}).URL
	ctx, c := testContext(t), connected(t, url)
	ok(t, Mine(ctx, url, 3))
	ancestor := head(t, c)
	kept := mustSend(t, c, owner, transfer(c))
	lost := mustSend(t, c, oracle, transfer(c))
	ok(t, Mine(ctx, url, 2))
	old := head(t, c)
	ok(t, Reorg(ctx, url, 4, Kept{kept.TxHash, 2}))
	if got := head(t, c); got.Number.Cmp(old.Number) != 0 || got.Hash() == old.Hash() {
		t.Errorf("the head is block %s %s, it was %s %s", got.Number, got.Hash(), old.Number, old.Hash())
	}
	if got, err := c.HeaderByNumber(ctx, ancestor.Number); err != nil || got.Hash() != ancestor.Hash() {
		t.Errorf("the block below the reorganisation changed to %v, %v", got, err)
	}
	again, err := c.TransactionReceipt(ctx, kept.TxHash)
	ok(t, err)
	if again.BlockNumber.Uint64() != ancestor.Number.Uint64()+3 || kept.BlockNumber.Uint64() != ancestor.Number.Uint64()+1 {
		t.Errorf("the kept transaction is in block %s and was in %s, the ancestor is %s", again.BlockNumber, kept.BlockNumber, ancestor.Number)
	}
	if got, err := c.TransactionReceipt(ctx, lost.TxHash); err == nil {
		t.Errorf("the lost transaction is in block %s", got.BlockNumber)
	}
	if err := Reorg(ctx, url, 1, Kept{Hash: common.Hash{1}}); err == nil || !strings.Contains(err.Error(), "no transaction") {
		t.Errorf("keeping an unknown transaction gave %v", err)
	}
	if err := Reorg(ctx, url, 1000); err == nil || !strings.Contains(err.Error(), "anvil_reorg on the development chain") {
		t.Errorf("a reorganisation below the first block gave %v", err)
	}
}

func TestCommandsSayWhatIsWrong(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	const nowhere = "http://127.0.0.1:1"
	snapshot := func() error { _, err := Snapshot(ctx, nowhere); return err }
	for method, err := range map[string]error{
		"anvil_mine":            Mine(ctx, nowhere, 1),
		"evm_increaseTime":      IncreaseTime(ctx, nowhere, time.Second),
		"evm_setAutomine":       SetAutomine(ctx, nowhere, true),
		"evm_setIntervalMining": SetIntervalMining(ctx, nowhere, time.Second),
		"evm_snapshot":          snapshot(),
		"evm_revert":            Revert(ctx, nowhere, "0x0"),
		"anvil_reorg":           Reorg(ctx, nowhere, 1),
	} {
		if err == nil || !strings.Contains(err.Error(), method) {
			t.Errorf("%s: got %v", method, err)
		}
	}
	if err := Mine(ctx, "gopher://x", 1); err == nil || !strings.Contains(err.Error(), "connect to the development chain for anvil_mine") {
		t.Errorf("a wrong scheme gave %v", err)
	}
}

// transfer returns a transfer of nothing, the smallest possible transaction.
func transfer(c *chain) transaction {
	return func(o *bind.TransactOpts) (*types.Transaction, error) {
		o.GasLimit = 21_000
		return bind.NewBoundContract(common.Address{1}, abi.ABI{}, c, c, c).RawTransact(o, nil)
	}
}
