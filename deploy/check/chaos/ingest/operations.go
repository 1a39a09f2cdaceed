package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/ingest"
)

// do performs one operation of the script.
func (w *world) do(o Op) error {
	switch o.Name {
	case opTraffic:
		return w.steps(o.N)
	case opMine:
		return w.mine(o.N)
	case opSettle:
		if o.Flag {
			return w.reach()
		}
		return w.settle()
	case opFault:
		_, err := w.eventually(patience, func() (bool, error) {
			if w.faults() >= o.N {
				return true, nil
			}
			return w.atHead()
		})
		return err
	case opReorg:
		return w.reorg(o)
	case opAgain:
		if err := w.reorg(o); err != nil {
			return err
		}
		return w.reorg(Op{N: o.N, Keep: 1 - o.Keep, Flag: o.Flag})
	case opRewind:
		return w.rewind(o)
	case opReturn:
		return w.returnToBranch(o)
	case opKill:
		return w.restart(false)
	case opOffline:
		return w.offline(o)
	case opTakeover:
		return w.takeOver(o)
	case opPair:
		return w.pair()
	case opBroker:
		return w.restartBroker()
	case opVault:
		w.count("vault added")
		late := w.contracts.Vaults[len(w.contracts.Vaults)-1]
		w.reconfigure(func(c *ingest.Config) { c.Vaults = append(c.Vaults, w.vault(late)) })
		return w.restart(true)
	case opConfirm:
		return w.confirmations(uint64(o.N))
	case opFinality:
		w.count("finality changed")
		w.reconfigure(func(c *ingest.Config) { c.Finality = ingest.Finality{Depth: uint64(o.N)} })
		if err := w.moved(); err != nil {
			return err
		}
		return w.restart(true)
	case opRate:
		for i, p := range w.proxies {
			if w.plan.Endpoints[i].FalseResponses {
				continue
			}
			if err := p.SetRate(float64(o.N) / 100); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("the script has the unknown operation %q", o.Name)
}

func (w *world) restart(orderly bool) error {
	if !orderly {
		w.count("SIGKILL at some moment")
	}
	if err := w.sup.stop(orderly); err != nil {
		return err
	}
	w.sup.start()
	return nil
}

func (w *world) confirmations(n uint64) error {
	w.count("confirmations changed")
	if n > 0 && (w.least == 0 || n < w.least) {
		w.least = n
	}
	w.reconfigure(func(c *ingest.Config) { c.Confirmations = ingest.Confirmations(n) })
	return w.restart(true)
}

// reorg replaces blocks. The height of the chain stays the same.
func (w *world) reorg(o Op) error {
	if o.Flag {
		if err := w.settle(); err != nil {
			return err
		}
	}
	head, err := w.head()
	if err != nil {
		return err
	}
	n := uint64(head.Number)
	depth := min(uint64(o.N), n-min(n, w.floor))
	if depth == 0 {
		return nil
	}
	if err := w.recorder.note(w.ctx); err != nil {
		return err
	}
	kept, err := w.kept(n-depth+1, n, o)
	if err != nil {
		return err
	}
	if err := devchain.Reorg(w.ctx, w.anvil.URL, depth, kept...); err != nil {
		return err
	}
	w.count("reorganisation")
	if len(kept) > 0 {
		w.count("reorganisation with the same transactions")
	}
	w.newTraffic()
	return w.moved()
}

// kept chooses transactions from the blocks that will be lost, a prefix of each sender's. They appear again in the same
// block of the new branch or one later.
func (w *world) kept(from, to uint64, o Op) (kept []devchain.Kept, err error) {
	if o.Keep == 0 {
		return nil, nil
	}
	var later uint64
	if to > from {
		later = w.plan.Seed % 2
	}
	share, seen := 0.0, map[common.Address]bool{} // senders of whom a transaction is already lost
	for n := from; n <= to; n++ {
		var b struct {
			Transactions []struct {
				Hash common.Hash
				From common.Address
			}
		}
		if err := w.chain.CallContext(w.ctx, &b, "eth_getBlockByNumber", hexutil.Uint64(n), true); err != nil {
			return nil, fmt.Errorf("read block %d: %w", n, err)
		}
		for _, tx := range b.Transactions {
			if share += o.Keep; share < 1 || seen[tx.From] {
				seen[tx.From] = true
				continue
			}
			share--
			kept = append(kept, devchain.Kept{Hash: tx.Hash, Block: min(n-from+later, to-from)})
		}
	}
	return kept, nil
}

// branch calls extend on a branch that is then discarded.
func (w *world) branch(extend func() error) error {
	snapshot, err := devchain.Snapshot(w.ctx, w.anvil.URL)
	if err != nil {
		return err
	}
	if err := extend(); err != nil {
		return err
	}
	if err := w.recorder.note(w.ctx); err != nil {
		return err
	}
	return devchain.Revert(w.ctx, w.anvil.URL, snapshot)
}

// rewind makes the chain shorter than before, and then longer.
func (w *world) rewind(o Op) error {
	w.count("shorter chain")
	err := w.branch(func() error {
		for range o.N {
			if err := w.mine(1); err != nil {
				return err
			}
		}
		if o.Flag {
			return w.settle()
		}
		return nil
	})
	if err != nil {
		return err
	}
	w.newTraffic()
	if err := w.steps(1); err != nil {
		return err
	}
	return w.raiseHead()
}

// returnToBranch creates a branch A, then another one, then A again with the same blocks.
func (w *world) returnToBranch(o Op) error {
	w.count("A -> B -> A")
	d, err := devchain.NewDepositor(w.ctx, w.anvil.URL, w.contracts.Vaults[0])
	if err != nil {
		return err
	}
	defer d.Close()
	grow := func(amount int64, then func() error) func() error {
		return func() error {
			for i := range o.N {
				if err := d.Deposit(w.ctx, amount+int64(i), partners[0]); err != nil {
					return err
				}
			}
			if err := w.moved(); err != nil {
				return err
			}
			if o.Flag {
				if err := w.settle(); err != nil {
					return err
				}
			}
			return then()
		}
	}
	var first, second header
	remember := func(h *header) func() error {
		return func() (err error) { *h, err = w.head(); return err }
	}
	if err := w.branch(grow(1, remember(&first))); err != nil {
		return err
	}
	if err := w.branch(grow(1000, func() error { return nil })); err != nil {
		return err
	}
	if err := grow(1, remember(&second))(); err != nil {
		return err
	}
	if first.Hash != second.Hash {
		return fmt.Errorf("the chain did not come back to block %s, but to %s", first.Hash, second.Hash)
	}
	w.newTraffic()
	return nil
}

// offline reorganises the chain while ingest is down.
func (w *world) offline(o Op) error {
	w.count("offline reorganisation")
	if err := w.sup.stop(o.Flag); err != nil {
		return err
	}
	if err := w.reorg(Op{N: o.N, Keep: o.Keep}); err != nil {
		return err
	}
	if err := w.steps(1 + o.N%4); err != nil {
		return err
	}
	w.sup.start()
	return nil
}

// takeOver stops an ingest with SIGSTOP in the middle of a transaction, lets another one take over, and resumes the
// first, which must notice that it was replaced.
func (w *world) takeOver(o Op) error {
	if err := w.sup.stop(false); err != nil {
		return err
	}
	old, err := w.sup.spawn(Death{Step: o.Step, Nth: 1 + int(w.plan.Seed%2), Stop: true})
	if err != nil {
		return err
	}
	defer old.kill()
	if err := w.steps(2); err != nil {
		return err
	}
	stopped, err := old.stopsItself(w.ctx)
	if err != nil {
		return err
	}
	if !stopped {
		w.sup.start()
		return nil
	}
	w.count("SIGSTOP and a takeover")
	before := w.cursor().GetInstanceId()
	w.sup.start()
	took, err := w.eventually(patience, func() (bool, error) {
		c := w.cursor()
		return c != nil && !bytes.Equal(c.GetInstanceId(), before), nil
	})
	if err != nil {
		return err
	}
	if !took {
		return fmt.Errorf("a second ingest has not taken over within %s", patience)
	}
	if err := w.steps(1); err != nil {
		return err
	}
	if err := w.raiseHead(); err != nil {
		return err
	}
	return w.fenced(old)
}

// noticeTimeout is how long a replaced process may take to notice. It learns this from Kafka in its next transaction,
// before which it needs responses from failing endpoints, from two at a time if they have to agree.
const noticeTimeout = 5 * patience

// fenced resumes a replaced process and waits until it has noticed: either it exits, or it becomes a standby and is
// then killed.
func (w *world) fenced(p *process) error {
	learned, err := w.eventually(noticeTimeout, func() (bool, error) {
		p.Signal(syscall.SIGCONT) // repeatedly, because it may only now reach the step at which it stops itself
		return p.isStandby() || p.Running() != nil, nil
	})
	switch {
	case err != nil:
		return err
	case !learned:
		return fmt.Errorf("an ingest that was replaced still runs after %s; it says:\n%s", noticeTimeout, p.Output())
	case p.Running() == nil: // it stands by
		p.kill()
	case p.code() != exitFenced:
		return fmt.Errorf("an ingest that was replaced ended with %s; it says:\n%s", p.State(), p.Output())
	}
	return nil
}

// pair starts two processes at the same time: one of them stays the writer.
func (w *world) pair() error {
	if err := w.sup.stop(false); err != nil {
		return err
	}
	var two [2]*process
	for i := range two {
		p, err := w.sup.spawn(Death{})
		if err != nil {
			two[0].kill()
			return err
		}
		two[i] = p
	}
	var stays *process
	sentAway := false // the other was a standby, and was killed as one
	defer func() {
		for _, p := range two {
			if p != stays {
				p.kill()
			}
		}
	}()
	w.count("two at once")
	ended := func() (bool, error) {
		for i, p := range two {
			select {
			case <-p.Ended():
				stays = two[1-i]
				return true, nil
			default:
			}
			if other := two[1-i]; p.isStandby() || p.isWaiting() && !other.isWaiting() {
				p.kill()
				stays, sentAway = other, true
				return true, nil
			}
		}
		return false, nil
	}
	// A process only learns that it was replaced when it has something to write.
	for wait := 200 * time.Millisecond; stays == nil && wait < patience; wait *= 2 {
		if err := w.steps(1); err != nil {
			return err
		}
		if _, err := w.eventually(wait, ended); err != nil {
			return err
		}
	}
	if stays == nil {
		return errors.New("two ingests run and none of them is fenced")
	}
	if err := w.steps(10); err != nil { // for the one that stays to write
		return err
	}
	if sentAway { // it may have reported since that it takes over
		w.sup.supervise(stays)
		return nil
	}
	return w.left(two[0], two[1], stays)
}

// left continues with the remaining one of two processes. The other was fenced, or failed at its start.
func (w *world) left(a, b, stays *process) error {
	gone := a
	if stays == a {
		gone = b
	}
	if code := gone.code(); code != exitFenced && code != exitFailed {
		return fmt.Errorf("one of two ingests ended with %s; it says:\n%s", gone.State(), gone.Output())
	}
	w.sup.supervise(stays)
	return nil
}

// restartBroker restarts the embedded broker with its data.
func (w *world) restartBroker() error {
	if w.broker == nil {
		return nil
	}
	w.count("broker restart")
	return w.broker.Restart(w.ctx)
}
