package ingest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/ingest/operate"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/ingest/vaults"
	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/webhook"
)

// resume is the operator's command. A panic with errKilled stands for a crash of its process.
func (r *rig) resume(accept bool, prepare ...func(*Ingest)) (plan *operate.Resumption, err error) {
	r.t.Helper()
	i := New(r.config, r.kafka, nil, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	for _, f := range prepare {
		f(i)
	}
	defer func() {
		if why := recover(); why != nil {
			if why != any(errKilled) {
				panic(why)
			}
			err = errKilled
		}
	}()
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	return i.Resume(ctx, accept, func(what string, done, of uint64) {
		if done > of {
			r.t.Errorf("%s: progress %d of %d", what, done, of)
		}
	})
}

// inSmallPieces splits the retractions of a resumption into many units and transactions.
func inSmallPieces(i *Ingest) { i.retract.atOnce, i.retract.asUnit = 8, 3 }

// expected returns what a resumption must find, computed from the topics and the chain.
func (r *rig) expected() (ancestor uint64, records int) {
	r.t.Helper()
	_, live := r.log()
	for _, record := range live {
		b := record.GetBlock()
		if b == nil || b.GetNumber() > r.height() {
			continue
		}
		h, err := r.chain.HeaderByNumber(r.ctx, new(big.Int).SetUint64(b.GetNumber()))
		r.must(err)
		if h.Hash() == common.Hash(b.GetHash()) {
			ancestor = max(ancestor, b.GetNumber())
		}
	}
	for _, record := range live {
		if number, ofBlock := writer.BlockOf(record); ofBlock && number > ancestor {
			records++
		}
	}
	return ancestor, records
}

// frozen is a rig whose running ingest was frozen by a reorganisation.
func frozen(t *testing.T, brokers func(testing.TB) []string, depth func(height uint64) uint64,
	prepare func(*rig)) (*rig, *process) {
	t.Helper()
	r := newRig(t, brokers)
	r.config.Confirmations = 1
	prepare(r)
	r.steps(40)
	p := r.follow()
	r.verify()
	r.reorg(depth(r.height()))
	p.until("freeze", func(st status.Status) bool { return st.State == status.Frozen })
	return r, p
}

// betweenDecisions checks that the log has an opening and a closing decision with only retractions between them, and
// returns their number.
func betweenDecisions(t *testing.T, all []*event.Record) (retractions, closed int) {
	t.Helper()
	open := false
	for _, record := range all {
		switch kind := record.GetDecision().GetKind(); {
		case kind == writer.AcceptReorgOpen:
			open = true // a second time if the command did not complete
		case kind == writer.AcceptReorgClose && !open:
			t.Fatalf("record %d closes a decision that was not opened", record.GetSeq())
		case kind == writer.AcceptReorgClose:
			open, closed = false, closed+1
		case open && record.GetRetracts() == 0:
			t.Fatalf("record %d between the decisions is not a retraction: %v", record.GetSeq(), record)
		case open:
			retractions++
		}
		if d := record.GetDecision(); d != nil &&
			(!strings.Contains(d.GetReason(), "accepts the chain") || d.GetTime() == 0 || !record.GetBoundary()) {
			t.Errorf("the decision is %v", record)
		}
	}
	if open {
		t.Error("a decision is not closed")
	}
	return retractions, closed
}

// After the operator's command a frozen ingest continues by itself, at any depth of the reorganisation, and so does one
// that starts later.
func TestResume(t *testing.T) {
	for name, c := range map[string]struct {
		depth   func(height uint64) uint64
		prepare func(*rig)
	}{
		"below the final block": {func(uint64) uint64 { return 14 }, func(*rig) {}},
		"below the window":      {func(uint64) uint64 { return 6 }, func(r *rig) { r.config.Window = 4 }},
		"below sparse records": {func(height uint64) uint64 { return height / 2 }, func(r *rig) {
			r.config.Finality, r.config.Window, r.config.BatchBlocks = Finality{Depth: 4}, 8, 1
		}},
		"below a vault's late history": {func(height uint64) uint64 { return height / 2 },
			func(r *rig) { r.followWithoutFirst(30) }},
		"below every record": {func(height uint64) uint64 { return height - 1 }, func(*rig) {}},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "below sparse records" {
				t.Skip("-short runs the command at one depth")
			}
			r, p := frozen(t, kfake, c.depth, c.prepare)
			before, _ := r.log()
			ancestor, records := r.expected()

			plan, err := r.resume(false)
			r.must(err)
			if plan.Ancestor.Number != ancestor || plan.Records != records || plan.Blocks+plan.Logs != records ||
				plan.Accepted || records == 0 {
				t.Errorf("the plan is %+v, want %d records above block %d", plan, records, ancestor)
			}
			if now, _ := r.log(); len(now) != len(before) || r.cursor().GetFrozen() == "" {
				t.Fatalf("showing the plan appended %d records", len(now)-len(before))
			}

			done, err := r.resume(true, inSmallPieces)
			r.must(err)
			if !done.Accepted || done.Ancestor != plan.Ancestor || done.Records != records ||
				len(done.Referrals) != len(plan.Referrals) {
				t.Errorf("done was %+v, the plan was %+v", done, plan)
			}
			p.caughtUp()
			if retractions, closed := betweenDecisions(t, r.verify()); retractions != records || closed != 1 {
				t.Errorf("%d records were retracted between %d pairs of decisions, want %d", retractions, closed, records)
			}
			if p.metric("frozen") != 0 {
				t.Error("navlog_ingest_frozen is not 0 again")
			}
			if c.depth(100) == 99 {
				return // no contracts are left for more traffic
			}
			r.steps(3)
			p.caughtUp()
			r.verify()
			p.halt()
			r.steps(3)
			r.follow()
			r.verify()
		})
	}
}

// The plan shows the referrals that were published and are no longer in the chain. One whose transaction was mined
// again still is, whatever its position in the block.
func TestResumeNamesTheReferralsWithoutACause(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.config.Confirmations, r.config.Window = 1, 4
	for i := range r.config.Vaults { // logs are interpreted by the mapping of their block
		r.config.Vaults[i].Mappings = []vaults.MappingConfig{{Mapping: "reference", From: 1}}
	}
	r.steps(20)
	depositor := r.depositor()
	p := r.start()
	for n := range 6 {
		depositor.deposit(int64(n+1), 7+35*uint32(n%2))
	}
	p.caughtUp()
	r.verify()
	all := r.published()
	slices.SortFunc(all, func(a, b publishedReferral) int { return cmp.Compare(a.GetSeq(), b.GetSeq()) })
	// The transactions of the first two of the six are mined again, together in another block, where the logs of the
	// first come before those of the second.
	lost := all[len(all)-6:]
	shifted := lost[1].GetLog()
	r.reorg(6, devchain.Kept{Hash: common.Hash(lost[0].GetLog().GetTxHash()), Block: 2},
		devchain.Kept{Hash: common.Hash(shifted.GetTxHash()), Block: 2})
	p.until("freeze", func(st status.Status) bool { return st.State == status.Frozen })

	eventID := func(x publishedReferral) string {
		kind := map[string]string{chainlog.ReferralDeposits(r.config.ID): webhook.DepositReferral,
			chainlog.ReferralWithdrawals(r.config.ID): webhook.WithdrawalReferral}[x.topic]
		l := x.GetLog()
		return webhook.EventID(r.config.ID, common.Hash(l.GetTxHash()), l.GetLogIndex(), kind, x.GetPartnerId()).String()
	}
	want := map[string]uint64{}
	for _, x := range all {
		if _, err := r.chain.TransactionReceipt(r.ctx, common.Hash(x.GetLog().GetTxHash())); err != nil {
			want[eventID(x)] = x.GetSeq() // not in the chain
		}
	}
	receipt, err := r.chain.TransactionReceipt(r.ctx, common.Hash(shifted.GetTxHash()))
	r.must(err)
	if slices.ContainsFunc(receipt.Logs, func(l *types.Log) bool { return uint32(l.Index) == shifted.GetLogIndex() }) {
		t.Fatal("the kept transaction has a log at the same index as before: the test shows nothing")
	}
	if len(want) < 4 {
		t.Fatalf("only %d published referrals lost their cause", len(want))
	}
	check := func(plan *operate.Resumption) {
		t.Helper()
		got := map[string]uint64{}
		for _, lost := range plan.Referrals {
			got[lost.EventID] = lost.Seq
		}
		if !maps.Equal(got, want) {
			t.Errorf("the referrals without a cause are %v, want %v", got, want)
		}
	}
	plan, err := r.resume(false)
	r.must(err)
	check(plan)
	if _, err := r.resume(true, inSmallPieces, killAt(writer.AfterEnd, 1)); !errors.Is(err, errKilled) {
		t.Fatalf("the command was not killed: %v", err)
	}
	done, err := r.resume(true) // what the killed run retracted is shown too
	r.must(err)
	check(done)
	p.caughtUp()
	r.verify()
}

// A command that dies at any step leaves a log that a second run completes, and that a starting ingest leaves
// unchanged.
func TestResumeKilledAtEveryStep(t *testing.T) {
	if testing.Short() {
		t.Skip("-short skips the many steps")
	}
	onEachBroker(t, func(t *testing.T, brokers func(testing.TB) []string) {
		for _, at := range writer.Steps {
			t.Run(string(at), func(t *testing.T) {
				r, p := frozen(t, brokers, func(uint64) uint64 { return 14 }, func(*rig) {})
				p.halt()
				for n := range 2 {
					if _, err := r.resume(true, inSmallPieces, killAt(at, n+1)); !errors.Is(err, errKilled) {
						t.Fatalf("run %d was not killed: %v", n, err)
					}
					r.log()
					p = r.start()
					p.until("still frozen", func(st status.Status) bool { return st.State == status.Frozen })
					p.halt()
				}
				_, err := r.resume(true, inSmallPieces)
				r.must(err)
				r.follow()
				betweenDecisions(t, r.verify())
			})
		}
	})
}

// After a resumption of many transactions the window reaches as far below the ancestor as after one of a single
// transaction: a reorganisation there is followed.
func TestReorganisationAfterAResume(t *testing.T) {
	sequential(t)
	r, p := frozen(t, kfake, func(uint64) uint64 { return 6 }, func(r *rig) { r.config.Window = 4 })
	p.halt()
	_, err := r.resume(true, func(i *Ingest) { i.retract.atOnce, i.retract.asUnit = 1, 1 })
	r.must(err)
	if head := r.cursor().GetHead().GetNumber(); head != r.height()-6 {
		t.Fatalf("after the resumption the head is block %d, and the chain's %d", head, r.height())
	}
	for _, v := range r.cursor().GetVaults() {
		if to := max(v.GetStartBlock()-1, r.height()-6); v.GetCoveredTo() != to {
			t.Errorf("after the resumption the vault 0x%x is covered up to block %d, want %d", v.GetAddress(), v.GetCoveredTo(),
				to)
		}
	}
	r.reorg(7) // from the ancestor
	r.follow()
	r.verify()
}

// A freeze without a cause: the chain is the log's again.
func TestResumeWithNothingToRetract(t *testing.T) {
	sequential(t)
	r := indexed(t)
	cursor := r.cursor()
	cursor.Frozen = "by mistake"
	r.writeCursor(mustMarshal(t, cursor))
	p := r.start()
	p.until("freeze", func(st status.Status) bool { return st.State == status.Frozen })
	done, err := r.resume(true)
	r.must(err)
	if done.Records != 0 || len(done.Referrals) != 0 || done.Ancestor.Number != cursor.GetHead().GetNumber() {
		t.Errorf("done was %+v", done)
	}
	r.steps(3)
	p.caughtUp()
	r.verify()
	if final := r.cursor().GetFinalBlock(); final < cursor.GetFinalBlock() {
		t.Errorf("the final block moved back from %d to %d for nothing", cursor.GetFinalBlock(), final)
	}
}

func TestResumeIsRefused(t *testing.T) {
	sequential(t)
	refused := func(t *testing.T, r *rig, want string) {
		t.Helper()
		before := r.cursor().GetSeq()
		_, err := r.resume(true)
		var refusal *rpc.RefusedError
		if !errors.As(err, &refusal) || !strings.Contains(err.Error(), want) {
			t.Errorf("resume ends with %v, want a refusal with %q", err, want)
		}
		if all, _ := r.log(); uint64(len(all)) != before {
			t.Error("a refused resumption appended something")
		}
	}
	var r *rig
	block := func(number uint64) (header map[string]any) {
		r.must(r.chain.Client().CallContext(r.ctx, &header, "eth_getBlockByNumber", fmt.Sprintf("%#x", number), false))
		return header
	}
	var ours map[string]any // the log's head, read before the reorganisation
	_, p := frozen(t, kfake, func(uint64) uint64 {
		ours = block(r.cursor().GetHead().GetNumber())
		return 14
	}, func(prepared *rig) { r = prepared })
	p.halt()
	good := r.config
	if head := fmt.Sprintf("%#x", r.cursor().GetHead().GetHash()); ours["hash"] != head {
		t.Fatalf("the log's head is %s, and the block read before the reorganisation %s", head, ours["hash"])
	}
	t.Run("a node that is behind", func(t *testing.T) {
		r.throughProxy(headIs(r.blockAt("0x5"), ""))
		refused(t, r, "wait until the node is in sync")
	})
	t.Run("endpoints that disagree", func(t *testing.T) {
		keeper := r.newProxy(func(method string, params []json.RawMessage, _ func() json.RawMessage) (any, error, bool) {
			return ours, nil, method == "eth_getBlockByNumber" && string(params[0]) == fmt.Sprintf("%q", ours["number"])
		})
		r.config.RPC = append(rpc.Endpoints(r.url), rpc.Endpoints(keeper.URL)...)
		refused(t, r, "remove the wrong one from chain.rpc")
	})
	t.Run("another chain", func(t *testing.T) {
		fresh := enginetest.Anvil(t, engines.AnvilOptions{ChainID: r.config.ID, Timestamp: 1_600_000_000})
		r.config.RPC = rpc.Endpoints(fresh.URL)
		refused(t, r, "genesis")
	})
	r.config = good
	if _, err := r.resume(true); err != nil {
		t.Error(err)
	}
}

// A frozen ingest appends nothing from which it would learn that another one took over, so it checks.
func TestFrozenIsFenced(t *testing.T) {
	r, first := frozen(t, kfake, func(uint64) uint64 { return 14 }, func(*rig) {})
	second := r.start()
	second.until("freeze", func(st status.Status) bool { return st.State == status.Frozen })
	if err := first.wait(); !errors.Is(err, writer.ErrFenced) {
		t.Errorf("the first ingest ends with %v", err)
	}
	_, err := r.resume(true)
	r.must(err)
	second.caughtUp()
	r.verify()
}

// Only the writer reports on the log. An ingest that stands by after it wrote shows what one does that has never
// written: not whether the log is frozen or disproven, and no warning.
func TestFrozenThatStandsBy(t *testing.T) {
	r, first := frozen(t, kfake, func(uint64) uint64 { return 14 }, func(r *rig) { r.config.Standby = time.Minute })
	first.status.Note(func(st *status.Status) {
		st.FinalWarning, st.CommandWarning, st.ProofWarning, st.ReceiptsWarning = "a", "b", "c", "d"
		st.Disproven, st.DisprovenAt, st.ProvenTo = "e", 7, 6
		st.LateVaults = []registry.LateVault{{Address: "0x1"}}
	})
	r.config.Standby = 0
	second := r.start()
	second.until("freeze", func(st status.Status) bool { return st.State == status.Frozen })
	first.until("standby", func(st status.Status) bool { return st.State == status.Standby })
	if of := [2]float64{first.metric("frozen"), second.metric("frozen")}; of != [2]float64{0,
		1} {
		t.Errorf("navlog_ingest_frozen of the standby and of the writer is %v", of)
	}
	st := first.Status()
	fresh := status.New(newRegistry(), st.ChainID, st.Instance).Snapshot()
	fresh.State, fresh.Reason, fresh.Time, fresh.Logs = st.State, st.Reason, st.Time, st.Logs
	fresh.Endpoints, fresh.Calls, fresh.CannotWrite = st.Endpoints, st.Calls, st.CannotWrite
	if !reflect.DeepEqual(st, fresh) {
		t.Errorf("the status of the standby is %+v, want %+v", st, fresh)
	}
	families, err := first.reg.Gather()
	r.must(err)
	var gauges []string
	for _, f := range families {
		gauges = append(gauges, f.GetName())
	}
	for _, name := range []string{"head_block", "indexed_block", "final_block", "referral_block", "seq", "proven_block",
		"disproven", "receipts_failing", "vaults_differing"} {
		if value := first.metric(name); value != 0 || !slices.Contains(gauges, "navlog_ingest_"+name) {
			t.Errorf("navlog_ingest_%s of the standby is %v", name, value)
		}
	}
}

// An ingest that takes over while the command runs stops the command.
func TestResumeIsFenced(t *testing.T) {
	r, p := frozen(t, kfake, func(uint64) uint64 { return 14 }, func(*rig) {})
	p.halt()
	_, err := r.resume(true, inSmallPieces, func(i *Ingest) {
		i.hook = func(at writer.Step) error {
			if at == writer.AfterEnd && p.Status().State == status.Frozen {
				i.hook = nil
				p = r.start()
				p.until("freeze", func(st status.Status) bool { return st.State == status.Frozen })
			}
			return nil
		}
	})
	if err == nil || !strings.Contains(err.Error(), "run the command again") {
		t.Fatalf("a fenced command ends with %v", err)
	}
	_, err = r.resume(true)
	r.must(err)
	p.caughtUp()
	betweenDecisions(t, r.verify())
}
