package ingest

import (
	"errors"
	"fmt"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/event"
)

// Every attributed event is published exactly once, as soon as its block is deep enough, across restarts and changes of
// chain.confirmations. verify compares the topics with the chain up to the referral block; each run names that
// block.
func TestReferralsByConfirmations(t *testing.T) {
	sequential(t)
	onEachBroker(t, func(t *testing.T, brokers func(testing.TB) []string) {
		r := newRig(t, brokers)
		r.steps(20)
		depositor := r.depositor()
		run := func(confirmations Confirmations, want func(st status.Status) uint64) uint64 {
			t.Helper()
			r.config.Confirmations = confirmations
			p := r.follow()
			p.until("referral block", func(st status.Status) bool { return st.ReferralBlock == want(st) })
			r.verify()
			p.halt()
			return p.Status().ReferralBlock
		}
		final := func(st status.Status) uint64 { return st.FinalBlock }
		head := func(st status.Status) uint64 { return st.IndexedBlock }

		run(0, final)
		depositor.deposit(5, 7)
		depositor.deposit(6, 42)
		few := len(r.published())
		run(0, final)
		lowered := run(1, head) // lowered: the difference is published at the start
		if many := len(r.published()); many < few+2 {
			t.Errorf("%d referrals were published after confirmations were lowered, %d before, want 2 more", many, few)
		}
		run(0, func(status.Status) uint64 { return lowered }) // raised: nothing is retracted
		r.steps(12)
		run(3, func(st status.Status) uint64 { return st.IndexedBlock - 2 })
		kinds := map[event.Referral_Kind]bool{}
		for _, referral := range r.published() {
			kinds[referral.GetKind()] = true
		}
		if !kinds[event.Referral_KIND_DEPOSIT] || !kinds[event.Referral_KIND_WITHDRAWAL] {
			t.Errorf("the traffic produced only referrals of the kinds %v", kinds)
		}
	})
}

// A reorganisation deeper than the confirmations: the referrals of the new branch are published too, and none of those
// below it is published twice.
func TestReorganisationBelowPublishedReferrals(t *testing.T) {
	sequential(t)
	r := newRig(t, kfake)
	r.config.Confirmations = 1
	r.steps(20)
	depositor := r.depositor()
	p := r.start()
	depositor.deposit(5, 7)
	depositor.deposit(6, 42)
	p.caughtUp()
	r.verify()
	r.reorg(2)
	depositor.deposit(7, 42)
	p.caughtUp()
	r.verify()
	r.publishedOnce()

	// With more confirmations than before, the referrals of a new branch wait for them.
	p.halt()
	r.config.Confirmations = 0
	r.reorg(2)
	depositor.deposit(8, 7)
	p = r.follow()
	r.verify()
	if st := p.Status(); st.ReferralBlock != st.IndexedBlock-3 { // two new blocks, and the deposit's
		t.Errorf("the referral block is %d with block %d indexed, want the common ancestor, %d", st.ReferralBlock,
			st.IndexedBlock, st.IndexedBlock-3)
	}
}

// Confirmations that are lowered and raised from run to run, with reorganisations deeper than them in between, and a
// crash at every step of the transactions that publish the result: no referral is lost, and none of one block is
// published twice.
func TestReferralsThroughCrashes(t *testing.T) {
	for _, at := range few(writer.Steps) {
		t.Run(string(at), func(t *testing.T) {
			r := newRig(t, kfake)
			r.steps(15)
			depositor := r.depositor()
			for n, confirmations := range []Confirmations{2, 1, 0, 1} {
				r.config.Confirmations = confirmations
				p := r.follow()
				depositor.deposit(int64(5+n), 7)
				depositor.deposit(int64(15+n), 42)
				p.caughtUp()
				p.halt()
				r.reorg(uint64(3 + n)) // deeper than the confirmations of what was published
				depositor.deposit(int64(25+n), 42)
				r.config.Confirmations = 3 - confirmations
				for transaction := 1; transaction <= 2; transaction++ { // the claim and the reorganisation
					r.killed(killAt(at, transaction))
				}
				p = r.follow()
				r.verify()
				p.halt()
			}
			if n := r.publishedOnce(); n < 6 {
				t.Errorf("only %d referrals were published", n)
			}
		})
	}
}

// Confirmations that are lowered across a reorganisation make blocks deep enough that have left the chain. Their
// referrals are not published: neither by the first transaction after a start, which comes before the chain is read,
// nor while the log is frozen, nor by the operator's command.
func TestOrphanedBranchIsNotPublished(t *testing.T) {
	sequential(t)
	for name, depth := range map[string]uint64{"followed": 4, "frozen": 12} { // 8 blocks are unfinalised
		t.Run(name, func(t *testing.T) {
			r := newRig(t, kfake)
			r.steps(20)
			depositor := r.depositor()
			r.mine(8)
			for n := range 4 {
				depositor.deposit(int64(n+1), 7+35*uint32(n%2))
			}
			r.index()
			before := map[string]bool{}
			for _, referral := range r.published() {
				before[placeOf(referral)] = true
			}
			r.reorg(depth)
			r.config.Confirmations = 1
			p := r.start()
			if name == "frozen" {
				p.until("freeze", func(st status.Status) bool { return st.State == status.Frozen })
				if _, err := r.resume(true, inSmallPieces, killAt(writer.AfterEnd, 2)); !errors.Is(err, errKilled) {
					t.Fatalf("the command was not killed: %v", err)
				}
				_, err := r.resume(true, inSmallPieces)
				r.must(err)
			}
			p.caughtUp()
			depositor.deposit(9, 42) // which is sent to partners
			p.caughtUp()
			r.verify()
			again := 0
			for _, referral := range r.published() {
				l := referral.GetLog()
				h, err := r.chain.HeaderByNumber(r.ctx, new(big.Int).SetUint64(l.GetBlockNumber()))
				r.must(err)
				switch dead := h.Hash() != common.Hash(l.GetBlockHash()); {
				case dead && !before[placeOf(referral)]:
					t.Errorf("log %d of block %d, which has left the chain, was published", l.GetLogIndex(), l.GetBlockNumber())
				case !dead && !before[placeOf(referral)]:
					again++
				}
			}
			if again == 0 {
				t.Error("no referral of the new branch was published")
			}
		})
	}
}

// publishedOnce checks that no log of a block was published twice, and returns how many were published.
func (r *rig) publishedOnce() int {
	r.t.Helper()
	perLog := map[string]int{}
	for _, referral := range r.published() {
		if perLog[placeOf(referral)]++; perLog[placeOf(referral)] > 1 {
			r.t.Errorf("the log %s was published %d times", placeOf(referral), perLog[placeOf(referral)])
		}
	}
	return len(perLog)
}

// placeOf identifies the log of a referral by its block and index.
func placeOf(x publishedReferral) string {
	return fmt.Sprintf("%x/%d", x.GetLog().GetBlockHash(), x.GetLog().GetLogIndex())
}
