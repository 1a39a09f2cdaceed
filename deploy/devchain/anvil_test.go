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
	if again.BlockNumber.Uint64() != ancestor.Number.Uint64()+3 ||
		kept.BlockNumber.Uint64() != ancestor.Number.Uint64()+1 {
		t.Errorf("the kept transaction is in block %s and was in %s, the ancestor is %s", again.BlockNumber, kept.BlockNumber,
			ancestor.Number)
	}
	if got, err := c.TransactionReceipt(ctx, lost.TxHash); err == nil {
		t.Errorf("the lost transaction is in block %s", got.BlockNumber)
	}
	if err := Reorg(ctx, url, 1, Kept{Hash: common.Hash{1}}); err == nil ||
		!strings.Contains(err.Error(), "no transaction") {
		t.Errorf("keeping an unknown transaction gave %v", err)
	}
	if err := Reorg(ctx, url, 1000); err == nil || !strings.Contains(err.Error(), "anvil_reorg on the development chain") {
		t.Errorf("a reorganisation below the first block gave %v", err)
	}
}

func TestRevertingTwice(t *testing.T) {
	url := enginetest.Anvil(t, engines.AnvilOptions{}).URL
	ctx := testContext(t)
	id, err := Snapshot(ctx, url)
	ok(t, err)
	ok(t, Revert(ctx, url, id))
	if err := Revert(ctx, url, id); err == nil || !strings.Contains(err.Error(), "the chain has no snapshot "+id) {
		t.Errorf("reverting twice gave %v", err)
	}
}

func TestCommandsSayWhatIsWrong(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	const nowhere = "http://127.0.0.1:1"
	snapshot := func() error { _, err := Snapshot(ctx, nowhere); return err }
	for method, err := range map[string]error{
		"anvil_mine":       Mine(ctx, nowhere, 1),
		"evm_increaseTime": IncreaseTime(ctx, nowhere, time.Second),
		"evm_snapshot":     snapshot(),
		"evm_revert":       Revert(ctx, nowhere, "0x0"),
		"anvil_reorg":      Reorg(ctx, nowhere, 1),
	} {
		if err == nil || !strings.Contains(err.Error(), method) {
			t.Errorf("%s: got %v", method, err)
		}
	}
	if err := Mine(ctx, "gopher://x", 1); err == nil ||
		!strings.Contains(err.Error(), "connect to the development chain for anvil_mine") {
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
