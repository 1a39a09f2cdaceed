package e2e

import (
	"encoding/json"
	"math/big"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/oracle"
	"github.com/navlog/navlog/deploy/testkit/stack"
	"github.com/navlog/navlog/deploy/testkit/wait"
)

func TestEndToEnd(t *testing.T) {
	t.Run("embedded Kafka", func(t *testing.T) {
		t.Parallel()
		scenario(t, true)
	})
	t.Run("Apache Kafka", func(t *testing.T) {
		t.Parallel()
		args := []string{}
		for _, broker := range enginetest.ApacheKafka(t) {
			args = append(args, "--kafka", broker)
		}
		scenario(t, false, args...)
	})
}

// scenario runs one navlog through several chapters; each continues from the state that the previous one left. Every
// chapter compares the newest state. Past states are compared in every chapter if pasts is set, and otherwise only in
// the last one: whatever the broker does to answers about past states also shows in the newest state, which is made of
// the same rows.
func scenario(t *testing.T, pasts bool, args ...string) {
	w := newWorld(t, args...)
	w.pasts = pasts
	chapter := func(name string, tell func(*testing.T, *world)) {
		if t.Failed() {
			return
		}
		began, sent := time.Now(), w.client.Sent.Load()
		tell(t, w)
		t.Logf("%s: %s, %d questions", name, time.Since(began).Round(time.Millisecond), w.client.Sent.Load()-sent)
	}
	chapter("partners register", func(t *testing.T, w *world) { w.register(t) })
	chapter("traffic", traffic)
	chapter("reorganisations that drop everything", emptied)
	chapter("a reorganisation that keeps transactions", keptTransactions)
	chapter("a node that goes back and another way", backAndAnotherWay)
	chapter("statements", statements)
	chapter("metrics", metrics)
	w.pasts = true
	chapter("a kill", kill)
	chapter("an interrupt", func(t *testing.T, w *world) { w.interrupt(t) })
}

// traffic spans two days, so that dates as bounds of lists have an effect.
func traffic(t *testing.T, w *world) {
	w.steps(t, 45)
	if err := devchain.IncreaseTime(t.Context(), w.RPC, 26*time.Hour); err != nil {
		t.Fatal(err)
	}
	w.steps(t, 40)
	w.agree(t)
	if refused := w.receiver.Refused(); refused != len(w.Partners) {
		t.Errorf("%d attempts were refused, want one for each partner", refused)
	}
}

// statements checks that every partner's statements match the node's data, byte for byte, after all the
// reorganisations.
func statements(t *testing.T, w *world) {
	chain, err := ethclient.DialContext(t.Context(), w.RPC)
	if err != nil {
		t.Fatal(err)
	}
	defer chain.Close()
	status, err := w.status()
	if err != nil {
		t.Fatal(err)
	}
	final, ok := new(big.Int).SetString(status.FinalBlock, 10)
	if !ok {
		t.Fatalf("the final block is %q", status.FinalBlock)
	}
	header, err := chain.HeaderByNumber(t.Context(), final)
	if err != nil {
		t.Fatal(err)
	}
	events := 0
	for _, p := range w.Partners {
		file := filepath.Join(t.TempDir(), "statement.json")
		run := func(args ...string) []byte {
			t.Helper()
			cmd := exec.CommandContext(t.Context(), binary(t, "navlog"), append([]string{"statement"}, args...)...)
			cmd.Env = stack.Environment("NAVLOG_API_KEY=" + p.APIKey)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("navlog statement %v: %v\n%s", args, err, out)
			}
			return out
		}
		run("get", "--url", w.API, "--from", "2000-01-01", "--to", strconv.FormatUint(header.Time-1, 10), "-o", file)
		var found struct {
			Events   int
			KeyKnown bool
		}
		if out := run("verify", file, "--rpc", w.RPC, "--url", w.API, "--json"); json.Unmarshal(out, &found) != nil ||
			!found.KeyKnown {
			t.Errorf("partner %d: %s", p.ID, out)
		}
		events += found.Events
	}
	if events == 0 {
		t.Error("no statement has an event")
	}
}

// status returns the newest block, and the newest final one, according to navlog.
func (w *world) status() (of struct{ IndexedBlock, FinalBlock string }, err error) {
	response, err := http.Get(w.API + "/status")
	if err != nil {
		return of, err
	}
	defer response.Body.Close()
	err = json.NewDecoder(response.Body).Decode(&struct{ Data any }{&of})
	return of, err
}

// branch makes steps until the chain satisfies good, and waits until navlog has indexed it.
func (w *world) branch(t *testing.T, good func(*oracle.History) bool) *oracle.History {
	t.Helper()
	for range 40 {
		w.steps(t, 1)
		if h := w.read(t); good(h) {
			return w.newest(t, true).history
		}
	}
	t.Fatal("40 steps made no chain as the test wants it")
	return nil
}

// since returns the facts of the newest blocks, as many as depth.
func since(h *oracle.History, depth uint64) []oracle.Fact {
	return slices.DeleteFunc(slices.Clone(h.Facts), func(f oracle.Fact) bool { return f.Block+depth <= h.Head() })
}

// emptied replaces the newest blocks with empty ones, several times.
func emptied(t *testing.T, w *world) {
	for _, depth := range []uint64{3, 1, 6, 2, 4} {
		before := w.branch(t, func(h *oracle.History) bool { return len(since(h, depth)) > 0 })
		if err := devchain.Reorg(t.Context(), w.RPC, depth); err != nil {
			t.Fatal(err)
		}
		after := w.read(t)
		if len(since(after, depth)) != 0 || after.Head() != before.Head() {
			t.Fatalf("the reorganisation left %d facts in the newest blocks, and block %d instead of %d",
				len(since(after, depth)), after.Head(), before.Head())
		}
		for _, f := range since(before, depth) {
			t.Logf("block %d is gone, and with it %T", f.Block, f.Event)
		}
		w.newest(t, true)
	}
	w.agree(t)
}

// keptTransactions moves the transactions of four blocks into one, and drops those of the fifth.
func keptTransactions(t *testing.T, w *world) {
	const depth = 5
	before := w.branch(t, func(h *oracle.History) bool { return len(since(h, depth))-len(since(h, 2)) >= 2 })
	kept := w.transactions(t, before.Head()-depth+1, before.Head()-1)
	moves := make([]devchain.Kept, len(kept))
	for i, hash := range kept {
		moves[i] = devchain.Kept{Hash: hash, Block: 3}
	}
	if err := devchain.Reorg(t.Context(), w.RPC, depth, moves...); err != nil {
		t.Fatal(err)
	}
	after := w.read(t)
	moved := 0
	for _, old := range since(before, depth) {
		for _, f := range since(after, depth) {
			if f.Tx == old.Tx && f.Block != old.Block {
				moved++
			}
		}
	}
	if moved == 0 {
		t.Fatal("the reorganisation moved no fact")
	}
	w.newest(t, false)
	w.mine(t, 12)
	w.agree(t)
}

// transactions returns the transactions of some blocks, in chain order.
func (w *world) transactions(t *testing.T, from, to uint64) (hashes []common.Hash) {
	t.Helper()
	client, err := ethclient.DialContext(t.Context(), w.RPC)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for number := from; number <= to; number++ {
		block, err := client.BlockByNumber(t.Context(), new(big.Int).SetUint64(number))
		if err != nil {
			t.Fatal(err)
		}
		for _, tx := range block.Transactions() {
			hashes = append(hashes, tx.Hash())
		}
	}
	return hashes
}

// backAndAnotherWay shortens the chain to below what navlog has indexed, and lets it grow differently.
func backAndAnotherWay(t *testing.T, w *world) {
	id, err := devchain.Snapshot(t.Context(), w.RPC)
	if err != nil {
		t.Fatal(err)
	}
	old := w.branch(t, func(h *oracle.History) bool { return len(since(h, 3)) > 0 })
	if err := devchain.Revert(t.Context(), w.RPC, id); err != nil {
		t.Fatal(err)
	}
	if h := w.read(t); h.Head() >= old.Head() {
		t.Fatalf("the chain went back from block %d to block %d", old.Head(), h.Head())
	}
	if err := devchain.IncreaseTime(t.Context(), w.RPC, time.Hour); err != nil {
		t.Fatal(err)
	}
	w.steps(t, 3)
	for h := w.read(t); h.Head() <= old.Head(); h = w.read(t) {
		w.steps(t, 1)
	}
	w.agree(t)
}

// kill kills navlog with SIGKILL while it delivers webhooks.
func kill(t *testing.T, w *world) {
	before := w.receiver.Count()
	w.branch(t, func(h *oracle.History) bool {
		h.Final = h.Head() // soon
		return len(h.Events(w.Partners)) >= before+6
	})
	w.mine(t, 12)
	wait.For(t, "a webhook comes", func() bool { return w.receiver.Count() > before })
	h, was := w.read(t), w.document
	w.run.kill(t)
	w.killed = true

	w.start(t)
	if again := w.read(t); again.Head() != h.Head() || again.Times[h.Head()] != h.Times[h.Head()] ||
		len(again.Facts) != len(h.Facts) {
		t.Fatalf("the chain came back with block %d and %d facts, it had block %d and %d facts", again.Head(),
			len(again.Facts), h.Head(), len(h.Facts))
	}
	for _, line := range oracle.Diff(asTree(t, was.Contracts), asTree(t, w.Contracts)) {
		t.Errorf("the contracts after the restart: %s", line)
	}
	for _, line := range oracle.Diff(asTree(t, was.Partners), asTree(t, w.Partners)) {
		t.Errorf("the partners after the restart: %s", line)
	}
	w.webhooks(t, w.newest(t, false).history)
	w.steps(t, 30)
	w.mine(t, 12)
	w.agree(t)
}

func asTree(t *testing.T, value any) any {
	t.Helper()
	b, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := oracle.Tree(b)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}
