package ingest

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/ingest/follow"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/ingest/vaults"
	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/registry"
)

// recordsOf returns the records of a vault in the log, which it verifies.
func (r *rig) recordsOf(vault common.Address) (records []*event.Vault) {
	r.t.Helper()
	for _, record := range r.verify() {
		if v := record.GetVault(); v != nil && common.BytesToAddress(v.GetAddress()) == vault {
			records = append(records, v)
		}
	}
	return records
}

// A vault that is configured later is backfilled from its own start block, through final and unfinalised blocks, and
// then follows with the others; the same happens after it was removed for a while.
func TestVaultAddedLater(t *testing.T) {
	onEachBroker(t, func(t *testing.T, brokers func(testing.TB) []string) {
		r := newRig(t, brokers)
		all := r.config.Vaults
		r.config.Vaults, r.config.BatchBlocks = all[1:2], 7
		r.steps(40)
		p := r.follow()
		r.verify()
		p.halt()

		r.config.Vaults = all
		r.steps(3)
		p = r.follow()
		r.verify()
		r.reorg(4) // into blocks that the vault joined late
		r.steps(3)
		p.caughtUp()
		r.verify()
		p.halt()

		r.order(registry.RemoveVault, all[2])
		r.steps(20)
		p = r.start()
		p.until("head without the third vault", func(st status.Status) bool { return st.IndexedBlock == r.height() })
		p.outcome(r.order(registry.RestoreVault, all[2]))
		p.caughtUp()
		r.verify()
	})
}

// A vault that is missing from chain.vaults stays, with a warning, and only a command removes it: once, by its own
// record, whatever is in chain.vaults. Another command restores it. In between, its log stays and nothing is appended
// for it.
func TestVaultIsRemovedOnlyByACommand(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	all := r.config.Vaults
	first := common.HexToAddress(all[0].Address)
	r.steps(20)
	removals := func() (removed []bool) {
		for _, v := range r.recordsOf(first) {
			removed = append(removed, v.GetRemoved())
		}
		return removed
	}
	for n, run := range []struct {
		vaults  []vaults.Config
		order   string
		comes   vaults.Outcome // outcome of the command, with part of its detail
		want    []bool         // the records of the first vault: whether each removes it
		warning string         // about the vault
	}{
		{all[:1], "", vaults.Outcome{}, []bool{false}, ""},
		{all[:1], registry.RemoveVault, refused("is the only one"), []bool{false}, ""},
		{all[1:], "", vaults.Outcome{}, []bool{false}, "it is not in chain.vaults of ingest, and is still indexed"},
		{all[1:], registry.RestoreVault, done("was not removed"), []bool{false}, "it is not in chain.vaults"},
		{all[1:], registry.RemoveVault, done("is removed from responses"), []bool{false, true}, ""},
		// also after a crash before the outcome was written
		{all[1:], registry.RemoveVault, done("was removed before"), []bool{false, true}, ""},
		{all, "", vaults.Outcome{}, []bool{false, true}, "it was removed, and is still in chain.vaults"},
		{all, registry.RestoreVault, done("continues from block"), []bool{false, true, false}, ""},
		{all, registry.RemoveVault, done("is removed from responses"), []bool{false, true, false, true},
			"it was removed, and is still in chain.vaults"},
		{all[1:], "rename", refused("does not know"), []bool{false, true, false, true}, ""},
	} {
		r.config.Vaults = run.vaults
		r.steps(3)
		var ids []int64
		if run.order != "" {
			ids = r.order(run.order, all[0])
		}
		p := r.start()
		if outcome := p.outcome(ids); outcome.Result != run.comes.Result || !strings.Contains(outcome.Detail, run.comes.Detail) {
			t.Errorf("run %d: the outcome of the command is %v, want %v", n, outcome, run.comes)
		}
		p.until("block at the head",
			func(st status.Status) bool { return st.IndexedBlock == r.height() && len(st.LateVaults) == 0 })
		var warning string
		for _, w := range p.Status().VaultWarnings {
			if w.Address == first.Hex() {
				warning = w.Warning
			}
		}
		if !strings.Contains(warning, run.warning) || (warning == "") != (run.warning == "") {
			t.Errorf("run %d: the warning is %q, want %q", n, warning, run.warning)
		}
		if differ := p.metric("vaults_differing"); int(differ) != len(p.Status().VaultWarnings) {
			t.Errorf("run %d: %v vaults differ, and the warnings are %v", n, differ, p.Status().VaultWarnings)
		}
		p.halt()
		if removed := removals(); !slices.Equal(removed, run.want) {
			t.Errorf("run %d: the records of the first vault have removed %v, want %v", n, removed, run.want)
		}
		for _, v := range r.cursor().GetVaults() {
			gone := common.BytesToAddress(v.GetAddress()) == first && run.want[len(run.want)-1]
			if v.GetRemoved() != gone || !gone && v.GetCoveredTo() != r.height() {
				t.Errorf("run %d: in the cursor vault 0x%x has removed %t, want %t, and is covered up to block %d of %d", n,
					v.GetAddress(), v.GetRemoved(), gone, v.GetCoveredTo(), r.height())
			}
		}
	}
}

// A vault about which every call fails does not stop the vaults of the log, whether a command or chain.vaults adds it.
// The status shows why it waits, and it is added once its calls succeed.
func TestVaultThatFailsStopsNoOther(t *testing.T) {
	r := newRig(t, kfake)
	all := r.config.Vaults
	r.config.Vaults = all[:1]
	r.steps(20)
	var fails atomic.Value
	r.throughProxy(func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
		bad := false
		for _, v := range all[1:] {
			bad = bad || len(params) > 0 && strings.Contains(strings.ToLower(string(params[0])), strings.ToLower(v.Address[2:]))
		}
		return nil, errNoMethod, bad && method == fails.Load()
	})
	fails.Store("")
	p := r.follow()
	follows := func() {
		t.Helper()
		p.until("reason why the vault waits",
			func(st status.Status) bool { return strings.Contains(st.Warning, errNoMethod.Error()) })
		r.steps(10)
		p.until("block at the head", func(st status.Status) bool { return st.IndexedBlock == r.height() && p.Ready() == nil })
		if n := len(r.cursor().GetVaults()); n != 1 {
			t.Errorf("the log has %d vaults", n)
		}
	}
	fails.Store("eth_getCode")
	r.order(registry.AddVault, all[1])
	follows()
	fails.Store("eth_call")
	follows()
	p.halt()
	r.orders = &orders{outcomes: map[int64]vaults.Outcome{}}
	r.config.Vaults = all[:2] // also without the command
	p = r.start()
	follows()
	fails.Store("")
	p.until("record of the vault in the log", func(st status.Status) bool {
		return st.Warning == "" && len(st.LateVaults) == 0 && len(r.cursor().GetVaults()) == 2 &&
			st.IndexedBlock == r.height()
	})
	p.caughtUp()
	r.verify()
}

// The only vault of the log can be removed at the start that adds another one, which is not in the log yet.
func TestVaultIsReplacedAtAStart(t *testing.T) {
	r := newRig(t, kfake)
	all := r.config.Vaults
	r.config.Vaults = all[:1]
	r.steps(5)
	r.index()
	r.config.Vaults = all[:2]
	ids := r.order(registry.RemoveVault, all[0])
	p := r.start()
	if outcome := p.outcome(ids); outcome.Result != registry.CommandDone {
		t.Errorf("the outcome of the removal is %v", outcome)
	}
	p.caughtUpBut(1)
	if n := len(r.cursor().GetVaults()); n != 2 {
		t.Errorf("the log has %d vaults, want the removed one and its successor", n)
	}
}

// A running ingest executes a command within seconds, reports an unknown vault, and continues while the registry is
// away: then the log's vaults stay.
func TestCommandsOnARunningIngest(t *testing.T) {
	r := newRig(t, kfake)
	all := r.config.Vaults
	r.steps(20)
	p := r.follow()
	if outcome := p.outcome(r.order(registry.RemoveVault,
		vaults.Config{Address: r.contracts.Router.Hex()})); outcome.Result != registry.CommandRefused ||
		!strings.Contains(outcome.Detail, "has no vault") {
		t.Errorf("the outcome of the removal of an unknown vault is %v", outcome)
	}
	r.orders.fail(errors.New("away"))
	ids := r.order(registry.RemoveVault, all[0], all[1])
	r.steps(5)
	p.caughtUp()
	r.orders.fail(nil)
	if outcome := p.outcome(ids); outcome.Result != registry.CommandDone {
		t.Errorf("the outcome of the removal is %v", outcome)
	}
	r.steps(5)
	p.caughtUpBut(2)
	r.verify()
	if outcome := p.outcome(r.order(registry.RemoveVault, all[2])); outcome.Result != registry.CommandRefused {
		t.Errorf("the outcome of the removal of the last vault is %v", outcome)
	}
}

// More vaults than may be indexed are refused, counted over the log and chain.vaults; a pending command makes space
// first.
func TestVaultsOfLogAndConfigurationAreCounted(t *testing.T) {
	r := newRig(t, kfake)
	r.index()
	s := r.session()
	for n := byte(1); n <= vaults.Max-3; n++ {
		s.writer.State.Covered = append(s.writer.State.Covered, writer.Coverage{Address: common.Address{n}, Start: 1})
	}
	s.registrar.SelectVaults()
	_, err := s.registrar.Describe(r.ctx, nil, nil)
	r.must(err)
	s.writer.State.Covered = append(s.writer.State.Covered, writer.Coverage{Address: common.Address{99}, Start: 1})
	s.registrar.SelectVaults()
	if _, err := s.registrar.Describe(r.ctx, nil, nil); err == nil || !strings.Contains(err.Error(), "vault remove") {
		t.Errorf("%d vaults: %v", vaults.Max+1, err)
	}
	s.writer.State.Covered[0].Removed = true
	s.registrar.SelectVaults()
	_, err = s.registrar.Describe(r.ctx, nil, nil)
	r.must(err)
	for i := range s.writer.State.Covered {
		s.writer.State.Covered[i].Removed = true
	}
	s.registrar.SelectVaults()
	if _, err := s.registrar.Describe(r.ctx, nil, nil); err == nil || !strings.Contains(err.Error(), "vault restore") {
		t.Errorf("no vault: %v", err)
	}
}

// A reorganisation retracts the logs of every vault, but its new branch is read only for those at the head. The others
// are then covered up to the common ancestor, so that they miss nothing of the branch when they are restored, or
// approach the head.
func TestReorganisationBelowAnAbsentVault(t *testing.T) {
	sequential(t)
	for name, late := range map[string]bool{"removed": false, "late": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, kfake)
			all := r.config.Vaults
			r.steps(20)
			depositor := r.depositor() // into the first vault
			for n := range 4 {
				depositor.deposit(int64(n+1), 7)
			}
			r.index()
			covered := r.height()
			_, live := r.log()
			var deposits []common.Hash
			for _, record := range live {
				if l := record.GetLog(); l.GetBlockNumber() > covered-3 {
					deposits = append(deposits, common.Hash(l.GetTxHash()))
				}
			}
			deposits = slices.Compact(deposits) // each has several logs

			r.order(registry.RemoveVault, all[0])
			p := r.start()
			r.mine(2)
			p.caughtUpBut(1)
			if late {
				p.halt()
				r.order(registry.RestoreVault, all[0])
				old, err := r.chain.HeaderByNumber(r.ctx, new(big.Int).SetUint64(covered+1))
				r.must(err)
				r.config.RPC = rpc.Endpoints(r.newProxy(func(method string, params []json.RawMessage, _ func() json.RawMessage) (any,
					error, bool) {
					return nil, errHangUp, method == "eth_getBlockByHash" && strings.Contains(string(params[0]), old.Hash().Hex())
				}).URL)
				p = r.start()
				p.until("late vault", func(st status.Status) bool {
					return len(st.LateVaults) == 1 &&
						st.LateVaults[0].Reason != ""
				})
			}
			before := len(r.topic(chainlog.LogTopic(r.config.ID)))
			r.reorg(5, devchain.Kept{Hash: deposits[0], Block: 1}, devchain.Kept{Hash: deposits[1], Block: 2},
				devchain.Kept{Hash: deposits[2], Block: 4})
			if late {
				p.caughtUp()
			} else {
				p.caughtUpBut(1)
				r.verify()
				p.outcome(r.order(registry.RestoreVault, all[0]))
				p.caughtUp()
			}
			again := map[common.Hash]bool{}
			for _, record := range r.verify()[before:] { // verify checks that each log of the chain is in the log once
				if l := record.GetLog(); l != nil && record.GetRetracts() == 0 &&
					common.Address(l.GetAddress()) == r.contracts.Vaults[0].Address {
					again[common.Hash(l.GetTxHash())] = true
				}
			}
			if len(again) != 3 {
				t.Errorf("%d deposits of the new branch are in the log, want 3", len(again))
			}
		})
	}
}

// While the history of a late vault is read, the others continue: their new logs come before its old ones, and each
// vault's own are in chain order.
func TestLateVaultDoesNotHoldUpTheOthers(t *testing.T) {
	const blocks = 20
	r := newRig(t, kfake)
	r.followWithoutFirst(60)

	before := r.cursor().GetHead().GetNumber()
	r.config.BatchBlocks = 1 // as if its history were long
	var made atomic.Int32
	p := r.start(func(i *Ingest) {
		i.hook = func(reached writer.Step) error { // the chain grows with every transaction
			if reached != writer.BeforeProduce || made.Add(1) > blocks {
				return nil
			}
			return r.traffic.Steps(r.ctx, 1)
		}
	})
	var state status.State
	p.until("late vault", func(st status.Status) bool {
		state = st.State
		return len(st.LateVaults) == 1 && st.LateVaults[0].Address == common.HexToAddress(r.config.Vaults[0].Address).Hex()
	})
	if state != status.Following {
		t.Errorf("with a late vault the state is %s, want %s", state, status.Following)
	}
	p.caughtUp()
	var flowed, passed int // new logs of the others, and those of them before the last old one of the late vault
	late := common.HexToAddress(r.config.Vaults[0].Address)
	for _, record := range r.verify() {
		switch l := record.GetLog(); {
		case l == nil || record.GetRetracts() != 0:
		case l.GetBlockNumber() > before && common.Address(l.GetAddress()) != late:
			flowed++
		case l.GetBlockNumber() <= before && common.Address(l.GetAddress()) == late:
			passed = flowed
		}
	}
	if passed == 0 || passed < flowed/4 {
		t.Errorf("%d of %d new logs of the other vaults were appended before the last old one of the late vault", passed,
			flowed)
	}
	if st := p.Status(); st.LateVaults != nil || st.ETASeconds != nil {
		t.Errorf("when every vault is at the head, the status shows late vaults %v and ETA %v", st.LateVaults, st.ETASeconds)
	}
}

// Nor do they wait for the pauses after errors of a node that does not return a late vault's history.
func TestLateVaultThatFailsDoesNotHoldUpTheOthers(t *testing.T) {
	sequential(t)
	const rounds = 30
	r := newRig(t, kfake)
	r.followWithoutFirst(40)

	failing := r.throughProxy(func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
		return nil, errHangUp, method == "eth_getLogs" && strings.Contains(string(params[0]), "fromBlock")
	})
	lines := &lines{}
	p := r.start(func(i *Ingest) { i.log = slog.New(slog.NewTextHandler(lines, nil)) })
	for range rounds {
		r.steps(1)
		p.atHead()
	}
	p.until("report of the late vault", func(st status.Status) bool {
		return len(st.LateVaults) == 1 && strings.Contains(st.LateVaults[0].Reason, "eth_getLogs")
	})
	if tries := lines.count("cannot read late vaults, retrying"); tries >= rounds {
		t.Errorf("the late vault was tried %d times in %d rounds", tries, rounds)
	}
	failing.use(honest)
	p.caughtUp()
	r.verify()
}

// If every endpoint has lost a late vault's old logs, the others continue, and the status says what to do; it catches
// up when an endpoint has them.
func TestLateVaultWithPrunedHistory(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.followWithoutFirst(40)

	late := strings.ToLower(strings.TrimPrefix(r.config.Vaults[0].Address, "0x"))
	pruned := r.throughProxy(func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
		if method == "eth_getBlockReceipts" {
			return nil, nil, true
		}
		if method != "eth_getLogs" {
			return nil, nil, false
		}
		filter := strings.ToLower(string(params[0]))
		return []any{}, nil, strings.Contains(filter, late) || strings.Contains(filter, "blockhash") &&
			!strings.Contains(filter, "address")
	})
	s := r.session()
	advance := func() {
		t.Helper()
		s.catchup.RetryAt = time.Time{} // no pause between the attempts
		if _, err := s.advance(r.ctx); err != nil {
			t.Fatalf("the late vault stops the others: %v", err)
		}
	}
	r.eventually("advice about the late vault", func() bool {
		advance()
		return strings.Contains(s.lateReason(), "add an archive node")
	})
	r.mine(3)
	r.eventually("head", func() bool {
		advance()
		return s.writer.State.Head.Number == r.height()
	})
	pruned.use(honest)
	r.follow()
	r.verify()
}

// A node that is slow to fail has returned nothing meanwhile: the pauses grow, and the reason stays.
func TestLateVaultBehindSlowFailures(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.followWithoutFirst(40)

	looked := make(chan struct{}) // ingest waited for a response that did not come
	failing := r.throughProxy(func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
		if method != "eth_getLogs" || !strings.Contains(string(params[0]), "fromBlock") {
			return nil, nil, false
		}
		<-looked
		return "no logs", nil, true // not a closed connection, after which net/http retries
	})
	s := r.session()
	release := sync.OnceFunc(func() { close(looked) })
	t.Cleanup(release)
	complained, failures := false, 0
	r.eventually("third failure in a row", func() bool {
		s.catchup.RetryAt = time.Time{}
		if _, err := s.advance(r.ctx); err != nil {
			t.Fatalf("the late vault stops the others: %v", err)
		}
		if complained && s.lateReason() == "" {
			t.Fatal("the reason disappeared while ingest waited for the node")
		}
		complained = s.lateReason() != ""
		select {
		case looked <- struct{}{}:
		default:
		}
		if !s.catchup.RetryAt.IsZero() {
			failures++
		}
		return failures >= 3
	})
	failing.use(honest)
	release()
	r.follow()
	r.verify()
}

// A late vault keeps what it has read of the blocks that are not final when a node fails to return the next one, and a
// reorganisation retracts it like the rest.
func TestJoinKeepsWhatWasRead(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.config.Finality = Finality{Depth: 200}
	all := r.config.Vaults
	r.config.Vaults = all[1:]
	r.steps(30)
	r.mine(2 * follow.MaxBlocks)
	depositor := r.depositor() // into the first vault
	for n := range 8 {
		depositor.deposit(int64(n+1), 7)
	}
	r.index()

	missing, err := r.chain.HeaderByNumber(r.ctx, new(big.Int).SetUint64(r.height()-3))
	r.must(err)
	failing := r.newProxy(func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
		return nil, errHangUp, method == "eth_getBlockByHash" && strings.Contains(string(params[0]), missing.Hash().Hex())
	})
	r.config.RPC, r.config.Vaults = rpc.Endpoints(failing.URL), all
	p := r.start()
	p.until("late vault before the missing block", func(st status.Status) bool {
		return len(st.LateVaults) == 1 && st.LateVaults[0].CoveredTo == missing.Number.Uint64()-1 &&
			st.LateVaults[0].Reason != ""
	})
	r.verify()
	r.mine(2)
	p.atHead()
	r.reorg(9)
	r.mine(1)
	p.caughtUp()
	r.verify()
}

// If finality lags more than the window, a late vault joins through the blocks between them.
func TestLateVaultBelowTheWindow(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.config.Window = 4 // and the block eight below the head is final
	r.followWithoutFirst(40)
	p := r.follow()
	r.steps(5)
	p.caughtUp()
	r.verify()
}

// TestVaultsAreCalledOnce: responses of a vault are not read again when the node fails at the next call.
func TestVaultsAreCalledOnce(t *testing.T) {
	r := newRig(t, kfake)
	r.steps(3)
	var mu sync.Mutex
	calls, answered := 0, map[string]int{}
	r.throughProxy(func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
		if method != "eth_call" {
			return nil, nil, false
		}
		mu.Lock()
		defer mu.Unlock()
		if calls++; calls%6 == 0 {
			return nil, errHangUp, true
		}
		answered[string(params[0])]++
		return nil, nil, false
	})
	r.start().caughtUp()
	r.verify()
	mu.Lock()
	defer mu.Unlock()
	if calls <= len(answered) {
		t.Error("no call failed")
	}
	for question, times := range answered {
		if times > 1 {
			t.Errorf("%s succeeded %d times", question, times)
		}
	}
}

// TestLateVaultUnderAnotherFinality adds a vault together with a rule by which fewer blocks are final than the log
// already has as final: the window has dropped those blocks, so they must be read as final ones.
func TestLateVaultUnderAnotherFinality(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.config.Finality = Finality{Depth: 2}
	r.followWithoutFirst(20)

	final := r.cursor().GetFinalBlock()
	r.config.Finality = Finality{Depth: 500}
	r.follow()
	r.verify()
	if now := r.cursor().GetFinalBlock(); now != final || now == 0 {
		t.Errorf("block %d is final now, and it was %d before", now, final)
	}
}

// lines is the log output of a program.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

// An ingest that was away for long, and starts with a late vault, reads what the others lack first. If no vault is at
// the head, none waits forever.
func TestLateVaultAfterAnAbsence(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	all := r.config.Vaults
	r.followWithoutFirst(30)
	before := r.cursor().GetHead().GetNumber()
	r.steps(40)
	r.config.BatchBlocks = 3
	p := r.follow()
	late, began := common.HexToAddress(all[0].Address), false
	for _, record := range r.verify() {
		switch l := record.GetLog(); {
		case l == nil:
		case common.Address(l.GetAddress()) == late:
			began = true
		case began && l.GetBlockNumber() <= r.cursor().GetFinalBlock() && l.GetBlockNumber() > before:
			t.Fatalf("log %d of block %d waited for the late vault", record.GetSeq(), l.GetBlockNumber())
		}
	}
	p.halt()

	// Only a vault that is behind the log's head is left, and one far in the future.
	r.order(registry.RemoveVault, all[0], all[1])
	r.steps(20)
	p = r.start()
	p.caughtUpBut(2)
	r.order(registry.RestoreVault, all[0], all[1])
	p.outcome(r.order(registry.RemoveVault, all[2]))
	r.steps(20)
	p.caughtUpBut(1)
	r.verify()
}

// Vaults begin at their configured blocks, even in the future.
func TestStartBlocks(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.steps(20)
	height := r.height()
	r.config.Vaults[0].StartBlock = 0
	r.config.Vaults[1].StartBlock = height - 3 // not final yet
	r.config.Vaults[2].StartBlock = height + 5 // not mined yet
	p := r.start()
	p.until("head", func(st status.Status) bool { return st.IndexedBlock == height })
	r.steps(15)
	p.caughtUp()
	r.verify()
}

// If every vault starts above the final block, the head begins at the final block, so that a reorganisation there can
// be followed.
func TestNothingFinalYet(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.config.Finality = Finality{Depth: 1000}
	r.steps(10)
	p := r.follow()
	r.verify()
	r.reorg(r.height() - 2) // nearly everything
	r.mine(20)
	p.until("new branch", func(st status.Status) bool { return st.IndexedBlock == r.height() })
	r.verify()
}

// Another display name in the configuration causes one more vault record, and so does the return to the contract's own;
// nothing is read again.
func TestVaultIsRenamed(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.steps(20)
	own := r.contracts.Vaults[1].Name
	var want []string
	for n, name := range []string{"", "Dollars", "Dollars", "More dollars", ""} {
		r.config.Vaults[1].Name = name
		if n > 0 {
			r.config.Vaults[1].StartBlock++ // raising it has no effect
		}
		r.index()
		shown := name
		if name == "" {
			shown = own
		}
		if len(want) == 0 || want[len(want)-1] != shown {
			want = append(want, shown)
		}
		var got []string
		for _, v := range r.recordsOf(r.contracts.Vaults[1].Address) {
			got = append(got, v.GetName())
			if v.GetStartBlock() != r.contracts.Vaults[1].StartBlock {
				t.Errorf("the record %q has start block %d, want %d", v.GetName(), v.GetStartBlock(),
					r.contracts.Vaults[1].StartBlock)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("after run %d with the name %q the records are %q, want %q", n, name, got, want)
		}
	}
}

// A command adds a vault to a running ingest, which reads it like a late one. To add it again changes nothing, even
// after a crash before the outcome was written. A vault that cannot be added is refused with the reason, and nothing
// stops.
func TestVaultIsAddedByACommand(t *testing.T) {
	r := newRig(t, kfake)
	all := r.config.Vaults
	r.config.Vaults = all[:2]
	r.steps(20)
	p := r.start()
	p.atHead()
	comes := func(v vaults.Config, is, words string) {
		t.Helper()
		if outcome := p.outcome(r.order(registry.AddVault, v)); outcome.Result != is || !strings.Contains(outcome.Detail, words) {
			t.Errorf("the outcome of adding %+v is %v, want %s with %q", v, outcome, is, words)
		}
	}
	nowhere := all[2]
	nowhere.Address = common.Address{0xee}.Hex()
	comes(nowhere, registry.CommandRefused, "has no code")
	shared := all[2]
	shared.Mapping, shared.Sources = writeMapping(t), map[string]vaults.SourceConfig{"desk": {Address: all[0].Address}}
	comes(shared, registry.CommandRefused, "share the contract")
	comes(all[2], registry.CommandDone, "is read from block")
	later := all[2]
	later.StartBlock++
	for _, again := range []vaults.Config{all[2], later} {
		comes(again, registry.CommandDone, fmt.Sprintf("is in the log already, from block %d on", all[2].StartBlock))
	}
	earlier := all[2]
	earlier.StartBlock--
	comes(earlier, registry.CommandRefused, "append-only")
	renamed := all[2]
	renamed.Name = "Renamed"
	comes(renamed, registry.CommandDone, "is read from block")
	if records := r.recordsOf(common.HexToAddress(renamed.Address)); records[len(records)-1].GetName() != "Renamed" {
		t.Errorf("the newest record of the vault is %v", records[len(records)-1])
	}
	renamed = all[1]
	renamed.Name = "Renamed"
	comes(renamed, registry.CommandRefused, "change it there")
	r.steps(5)
	p.caughtUp()
	r.verify()
	p.halt()
	p = r.start() // the vault is in the log, whatever is in chain.vaults
	p.caughtUp()
	r.verify()
	comes(shared, registry.CommandRefused, "with other sources")
}

// A command about a vault that is in chain.vaults, but not in the log yet, is refused unless it describes the vault as
// chain.vaults does: the vault would be changed back at once, and the next start refused with a lower start block than
// that of the log.
func TestCommandThatContradictsTheConfiguration(t *testing.T) {
	r := newRig(t, kfake)
	all := r.config.Vaults
	all[1].Name = "Configured"
	r.config.Vaults = all[:1]
	r.steps(5)
	r.index()
	r.config.Vaults = all[:2]
	later, renamed, same := all[1], all[1], all[1]
	later.StartBlock++
	renamed.Name, same.Name = "Renamed", ""
	ids := r.order(registry.AddVault, later, renamed, same)
	r.must(r.session().runsCommands(r, len(ids)))
	for i, want := range []vaults.Outcome{refused("is in chain.vaults of ingest"), refused("is in chain.vaults of ingest"),
		done("is read from block")} {
		got := r.orders.outcomes[ids[i]]
		if got.Result != want.Result || !strings.Contains(got.Detail, want.Detail) {
			t.Errorf("the outcome of command %d is %v, want %v", i, got, want)
		}
	}
	r.index()
	records := r.recordsOf(r.contracts.Vaults[1].Address)
	if len(records) != 1 || records[0].GetName() != "Configured" || records[0].GetStartBlock() != all[1].StartBlock {
		t.Errorf("the records of the vault are %v", records)
	}
}

// A restored vault is read again: it may have another name than when it was added, also in the same session.
func TestRestoredVaultIsReadAgain(t *testing.T) {
	r := newRig(t, kfake)
	r.steps(5)
	const renamed = "Renamed"
	answer, err := abi.Arguments{{Type: abi.Type{T: abi.StringTy}}}.Pack(renamed)
	r.must(err)
	names, node := selectors("name()"), r.newProxy(honest)
	r.config.RPC = rpc.Endpoints(node.URL)
	p := r.follow()
	node.use(func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
		return hexutil.Bytes(answer), nil, method == "eth_call" && names(string(params[0]))
	})
	p.outcome(r.order(registry.RemoveVault, r.config.Vaults[0]))
	p.outcome(r.order(registry.RestoreVault, r.config.Vaults[0]))
	records := r.recordsOf(r.contracts.Vaults[0].Address)
	if name := records[len(records)-1].GetName(); name != renamed {
		t.Errorf("the restored vault is called %q, want %q", name, renamed)
	}
}

// A restored vault, and one that gets a new mapping, keep the decimals and the asset of their records, which their
// contracts need not return: they may have been configured. A new mapping keeps the configured name and symbol too.
func TestVaultKeepsWhatWasConfigured(t *testing.T) {
	r := newRig(t, kfake)
	configured, eighteen := r.config.Vaults[2], uint8(18)
	r.config.Vaults = r.config.Vaults[:2]
	mute := selectors("decimals()", "asset()")
	r.throughProxy(func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
		call := strings.ToLower(string(slices.Concat(params...)))
		return nil, errors.New("execution reverted"), method == "eth_call" && mute(call) &&
			strings.Contains(call, strings.ToLower(configured.Address[2:]))
	})
	configured.Decimals = &eighteen
	configured.Name, configured.Symbol = "Configured", "CFG"
	configured.Asset.Address = r.contracts.Vaults[2].Asset.Hex()
	mapped := vaults.Config{Address: configured.Address, StartBlock: configured.StartBlock, Mapping: writeMapping(t)}
	p := r.follow()
	for _, command := range []struct {
		kind  string
		vault vaults.Config
	}{{registry.AddVault, configured}, {registry.AddVault, mapped}, {registry.RemoveVault, mapped},
		{registry.RestoreVault, mapped}} {
		if outcome := p.outcome(r.order(command.kind, command.vault)); outcome.Result != registry.CommandDone {
			t.Fatalf("%s: %v", command.kind, outcome)
		}
	}
	records := r.recordsOf(common.HexToAddress(configured.Address))
	if last := records[len(records)-1]; last.GetDecimals() != 18 || !proto.Equal(last.GetAsset(), records[0].GetAsset()) {
		t.Errorf("the vault is restored as %v, and was added as %v", last, records[0])
	}
	want := proto.CloneOf(records[0])
	want.Mappings, want.Sources = records[1].Mappings, records[1].Sources
	if len(want.Mappings) == 0 || !proto.Equal(records[1], want) {
		t.Errorf("with another mapping the vault is %v, and was added as %v", records[1], records[0])
	}
}

// runsCommands executes commands as a session does, without its pauses, until the attempts are used up or an error ends
// it.
func (s *session) runsCommands(r *rig, attempts int) (err error) {
	r.t.Helper()
	n, err := s.nodes.Current(r.ctx)
	r.must(err)
	tip, err := n.Latest(r.ctx)
	r.must(err)
	stop := s.registrar.Receive(r.ctx, r.orders)
	for ; attempts > 0 && err == nil; attempts-- {
		s.commandsRetryAt = time.Time{}
		_, _, err = s.runCommands(r.ctx, n, tip)
	}
	stop() // the outcomes are written
	return err
}

// A refusal inside a transaction is not the outcome of the command that caused it: the session ends, since only the
// cursor shows what the log has. A command that no node can answer is refused in the end, so that those behind it are
// executed. While fewer endpoints are up than must agree, it waits.
func TestCommandThatAlwaysFails(t *testing.T) {
	r := newRig(t, kfake)
	all := r.config.Vaults
	r.config.Vaults = all[:2]
	r.index()
	add := r.order(registry.AddVault, all[2])[0]
	s := r.session()
	s.writer.Hook = func(writer.Step) error { return rpc.Refuse("too large") }
	if err := s.runsCommands(r, 1); !errors.Is(err, writer.ErrCommit) || len(r.orders.outcomes) > 0 {
		t.Errorf("a refused transaction ends with %v, and the outcomes are %v", err, r.orders.outcomes)
	}
	bad := r.newProxy(func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
		ours := len(params) > 0 && strings.Contains(strings.ToLower(string(params[0])), strings.ToLower(all[2].Address[2:]))
		return nil, errors.New("execution aborted"), ours && method == "eth_call"
	})
	remove := r.order(registry.RemoveVault, all[1])[0]
	r.config.RPC, r.config.Agreement = rpc.Endpoints(bad.URL, r.newProxy(away).URL), 2
	r.must(r.session().runsCommands(r, 20))
	if len(r.orders.outcomes) > 0 {
		t.Errorf("while an endpoint is down: %v", r.orders.outcomes)
	}
	r.config.RPC, r.config.Agreement = rpc.Endpoints(bad.URL), 1
	r.must(r.session().runsCommands(r, 20))
	if outcome := r.orders.outcomes[add]; outcome.Result != registry.CommandRefused ||
		!strings.Contains(outcome.Detail, "execution aborted") {
		t.Errorf("the outcome of the command that always fails is %v", outcome)
	}
	if outcome := r.orders.outcomes[remove]; outcome.Result != registry.CommandDone {
		t.Errorf("the outcome of the next command is %v", outcome)
	}
}

// writeMapping writes a mapping with two sources to a file, and returns its name.
func writeMapping(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "desk.yaml")
	text := "preset: desk\nsources: {vault: required, desk: optional}\nevents:\n  - on: Paid(uint256 sum)\n    source: " +
		"desk\n    emit: none\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A changed mapping causes another record at the next start. Other sources of a vault that is in the log cause a
// warning, and those in the log stay. Every mistake in a mapping is reported with its position.
func TestMappingChanges(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.steps(10)
	r.index()
	records := func() (presets []string) {
		for _, v := range r.recordsOf(r.contracts.Vaults[0].Address) {
			name := "reference"
			if m := v.GetMappings(); len(m) > 0 {
				name = m[0].GetPreset()
			}
			presets = append(presets, name)
		}
		return presets
	}
	file := writeMapping(t)
	for _, run := range []struct {
		change  func(v *vaults.Config)
		want    []string
		warning string
	}{
		{func(v *vaults.Config) { v.Mapping = file }, []string{"reference", "desk"}, ""},
		{func(*vaults.Config) {}, []string{"reference", "desk"}, ""},
		{func(v *vaults.Config) {
			v.Sources = map[string]vaults.SourceConfig{"desk": {Address: r.contracts.Router.Hex()}}
		}, []string{"reference", "desk"},
			"its sources in chain.vaults of ingest are not those of the log"},
		{func(v *vaults.Config) { v.Mapping, v.Sources = "", nil }, []string{"reference", "desk", "reference"}, ""},
	} {
		run.change(&r.config.Vaults[0])
		r.steps(2)
		p := r.follow()
		warned := ""
		for _, w := range p.Status().VaultWarnings {
			warned += w.Warning
		}
		p.halt()
		if got := records(); !slices.Equal(got, run.want) {
			t.Errorf("the records name %q, want %q", got, run.want)
		}
		if !strings.Contains(warned, run.warning) || (warned == "") != (run.warning == "") {
			t.Errorf("the warning is %q, want %q", warned, run.warning)
		}
	}
	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	if err := os.WriteFile(wrong,
		[]byte("preset: x\nsources: {vault: required}\nevents:\n  - on: Paid(uint256 sum)\n    emit: deposit\n    set: "+
			"{keys: $sum}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := r.config
	c.Vaults = slices.Clone(c.Vaults)
	for want, v := range map[string]vaults.Config{
		wrong + ":6:11: unknown field":         {Mapping: wrong},
		`unknown preset "nothing"`:             {Mapping: "nothing"},
		"no mapping of the vault has a source": {Sources: map[string]vaults.SourceConfig{"gate": {Address: common.Address{1}.Hex()}}},
		"sources.gate.topic1":                  {Sources: map[string]vaults.SourceConfig{"gate": {Address: common.Address{1}.Hex(), Topic1: "0x12"}}},
		"mapping and mappings": {Mapping: "reference",
			Mappings: []vaults.MappingConfig{{Mapping: "reference"}}},
		"overlap": {Mappings: []vaults.MappingConfig{{Mapping: "reference"}, {Mapping: "reference", From: 9}}},
		"share the contract": {Mapping: file,
			Sources: map[string]vaults.SourceConfig{"desk": {Address: c.Vaults[1].Address}}},
	} {
		v.Address, v.StartBlock = r.config.Vaults[0].Address, 1
		c.Vaults[0] = v
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the mistake is %v, want %q", err, want)
		}
	}
}

// lateReason returns why late vaults wait, according to the status.
func (s *session) lateReason() string {
	for _, v := range s.Status().LateVaults {
		return v.Reason
	}
	return ""
}
