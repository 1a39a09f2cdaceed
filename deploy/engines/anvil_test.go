package engines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/navlog/navlog/deploy/testkit/wait"
)

// A chain continues unchanged, block by block, over several graceful restarts and with its clock ahead of the
// machine's.
func TestAnvilContinuesItsChain(t *testing.T) {
	dir := t.TempDir()
	var before []string
	for i := range 4 {
		a, err := StartAnvil(t.Context(), dir, AnvilOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.Kill)
		c := dialAnvil(t, a.URL)
		if i > 0 {
			wantChain(t, fmt.Sprintf("after restart %d", i), readChain(t, c), before)
		}
		sendLog(t, c)
		call(t, c, "evm_increaseTime", 86400)
		call(t, c, "anvil_mine", "0x2")
		before = readChain(t, c)
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// The parent is killed: the supervisor still shuts anvil down gracefully, and no block is lost.
func TestAnvilKeepsEveryBlockWhenItsParentIsKilled(t *testing.T) {
	dir := t.TempDir()
	p := startParent(t, "anvil", dir)
	c := dialAnvil(t, p.Addr)
	sendLog(t, c)
	before := readChain(t, c)
	p.kill()
	wait.Until(t, func() error { return gone(p.Pid) })
	wantChain(t, "after the parent was killed", readChain(t, dialAnvil(t, startAnvilFor(t, dir).URL)), before)
}

// Anvil itself is killed: what it had written by itself is restored, and a truncated dump loses only what came after
// the previous one.
func TestAnvilKilled(t *testing.T) {
	dir := t.TempDir()
	a := startAnvilFor(t, dir)
	c := dialAnvil(t, a.URL)
	sendLog(t, c)
	before := readChain(t, c)
	wait.Until(t, func() error {
		var dump struct{ Blocks []json.RawMessage }
		text, err := os.ReadFile(filepath.Join(dir, dumpFile))
		if err == nil {
			err = json.Unmarshal(text, &dump)
		}
		if err == nil && len(dump.Blocks) < 2 {
			err = fmt.Errorf("it holds %d blocks", len(dump.Blocks))
		}
		return err
	})
	a.Kill()
	if err := a.Watch(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "has ended by itself: it gave no reason;") ||
		!strings.Contains(err.Error(), a.process.log) {
		t.Errorf("of a chain that was killed: %v", err)
	}
	a = startAnvilFor(t, dir)
	wantChain(t, "after SIGKILL", readChain(t, dialAnvil(t, a.URL)), before)
	a.Kill()
	if err := os.WriteFile(filepath.Join(dir, dumpFile), []byte(`{"blocks":[`), 0o644); err != nil {
		t.Fatal(err)
	}
	wantChain(t, "after a torn dump", readChain(t, dialAnvil(t, startAnvilFor(t, dir).URL)), before)
}

// A start that is cancelled leaves nothing behind that would block the next one.
func TestAnvilStartGivenUp(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := StartAnvil(ctx, dir, AnvilOptions{}); !errors.Is(err, context.Canceled) {
		t.Fatalf("started under an ended context: %v", err)
	}
	startAnvilFor(t, dir)
}

func TestAnvilRefuses(t *testing.T) {
	t.Run("a folder that an engine still uses whose helper was killed", func(t *testing.T) {
		dir := t.TempDir()
		a := startAnvilFor(t, dir)
		t.Cleanup(func() { // without its helper, nothing else stops the engine
			if err := syscall.Kill(a.Pid, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			wait.Until(t, func() error { return gone(a.Pid) })
		})
		if err := a.helper.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-a.ended
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := StartAnvil(ctx, dir, AnvilOptions{})
		wantMessage(t, err, dir, fmt.Sprintf("in use by another process (pid %d)", a.Pid))
	})
	t.Run("a dump that is not a chain", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, dumpFile),
			[]byte(`{"blocks":[{"header":{"number":"0x0","timestamp":"soon"}}]}`), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := StartAnvil(t.Context(), dir, AnvilOptions{})
		wantMessage(t, err, dumpFile, "genesis block", "soon")
	})
	t.Run("a state that anvil refuses", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, stateFile), []byte("no chain"), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := StartAnvil(t.Context(), dir, AnvilOptions{})
		wantMessage(t, err, "anvil.log", stateFile)
	})
}

func startAnvilFor(t *testing.T, dir string) *Anvil {
	t.Helper()
	a, err := StartAnvil(t.Context(), dir, AnvilOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Kill)
	return a
}

func dialAnvil(t *testing.T, url string) *rpc.Client {
	t.Helper()
	c, err := rpc.DialContext(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func call(t *testing.T, c *rpc.Client, method string, args ...any) json.RawMessage {
	t.Helper()
	var result json.RawMessage
	if err := c.CallContext(t.Context(), &result, method, args...); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return result
}

// sendLog sends a transaction whose contract emits one log and waits for its receipt.
func sendLog(t *testing.T, c *rpc.Client) {
	t.Helper()
	var accounts []string
	if err := json.Unmarshal(call(t, c, "eth_accounts"), &accounts); err != nil {
		t.Fatal(err)
	}
	code := "0x604260006000a100" // PUSH1 42, PUSH1 0, PUSH1 0, LOG1, STOP
	var hash string
	if err := json.Unmarshal(call(t, c, "eth_sendTransaction",
		map[string]string{"from": accounts[0], "data": code, "gas": "0x30000"}), &hash); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, func() error {
		if receipt := call(t, c, "eth_getTransactionReceipt", hash); string(receipt) == "null" {
			return errors.New("the transaction is not mined")
		}
		return nil
	})
}

// readChain returns every block with its transactions, the receipts, all logs, and the logs of each block by its hash.
func readChain(t *testing.T, c *rpc.Client) []string {
	t.Helper()
	var head hexutil.Uint64
	if err := json.Unmarshal(call(t, c, "eth_blockNumber"), &head); err != nil {
		t.Fatal(err)
	}
	chain := []string{string(call(t, c, "eth_getLogs", map[string]string{"fromBlock": "0x0", "toBlock": "latest"}))}
	var last hexutil.Uint64
	for n := hexutil.Uint64(0); n <= head; n++ {
		raw := call(t, c, "eth_getBlockByNumber", n, true)
		var block struct {
			Hash         string
			Timestamp    hexutil.Uint64
			Transactions []struct{ Hash string }
		}
		if err := json.Unmarshal(raw, &block); err != nil {
			t.Fatal(err)
		}
		if block.Timestamp < last {
			t.Errorf("block %d is older than its parent", n)
		}
		last = block.Timestamp
		chain = append(chain, string(raw), string(call(t, c, "eth_getLogs", map[string]string{"blockHash": block.Hash})))
		for _, tx := range block.Transactions {
			chain = append(chain, string(call(t, c, "eth_getTransactionReceipt", tx.Hash)))
		}
	}
	return chain
}

func wantChain(t *testing.T, when string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s the chain has %d answers, want %d", when, len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%s the chain's answer %d is\n%s\nwant\n%s", when, i, got[i], want[i])
		}
	}
}

func TestOneGenesis(t *testing.T) {
	got, err := oneGenesis([]byte(`{"accounts":{"a":1},"blocks":[
		{"header":{"number":"0x0","timestamp":"0xa0"}},
		{"header":{"number":"0x1","timestamp":"0x9f"}},
		{"header":{"number":"0x0","timestamp":"0x9f"},"true":1}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"accounts":{"a":1},"blocks":[{"header":{"number":"0x1","timestamp":"0x9f"}},{"header":{"number":"0x0","timestamp":"0x9f"},"true":1}]}`
	if string(got) != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
	for _, bad := range []string{`[]`, `{}`, `{"blocks":[1]}`} {
		if _, err := oneGenesis([]byte(bad)); err == nil {
			t.Errorf("%s was accepted as a chain", bad)
		}
	}
}
