package ingest

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/registry"
)

// minedAgain returns the transactions of the newest depth blocks, in their order, for random blocks of another branch.
func (r *rig) minedAgain(depth uint64, rng *rand.Rand) (kept []devchain.Kept) {
	r.t.Helper()
	at := uint64(0)
	for n := r.height() - depth + 1; n <= r.height(); n++ {
		block, err := r.chain.BlockByNumber(r.ctx, new(big.Int).SetUint64(n))
		r.must(err)
		for _, tx := range block.Transactions() {
			at = min(at+rng.Uint64N(3), depth-1)
			kept = append(kept, devchain.Kept{Hash: tx.Hash(), Block: at})
		}
	}
	return kept
}

// Vaults are removed and restored while the chain reorganises and ingest is killed at random steps: the log has each log
// of each vault once, up to the block that it covers, and each referral.
func TestCommandsThroughCrashesAndReorganisations(t *testing.T) {
	for _, seed := range few([]uint64{3, 2}) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r, rng := newRig(t, kfake), rand.New(rand.NewPCG(seed, 0))
			r.config.Confirmations = Confirmations(rng.IntN(4))
			all := r.config.Vaults
			r.config.Vaults = all[1:]
			r.steps(12)
			r.index()
			var p *process
			run := func() {
				if p != nil {
					select {
					case <-p.done:
						if !errors.Is(p.err, errKilled) {
							t.Fatalf("ingest ended with %v", p.err)
						}
					default:
						return
					}
				}
				p = r.start(killAt(writer.Steps[rng.IntN(len(writer.Steps))], 1+rng.IntN(8)))
			}
			removed := map[int]bool{}
			for round := range 30 {
				if round == 8 {
					r.config.Vaults = all
				}
				run()
				switch vault := rng.IntN(len(all)); rng.IntN(6) {
				case 0, 1:
					depth := 1 + uint64(rng.IntN(8))
					r.reorg(depth, r.minedAgain(depth, rng)...)
				case 2, 3:
					switch {
					case round < 8:
					case removed[vault]:
						r.order(registry.RestoreVault, all[vault])
						delete(removed, vault)
					case len(removed) < 2:
						r.order(registry.RemoveVault, all[vault])
						removed[vault] = true
					}
				case 4:
					select {
					case <-p.done:
					default:
						p.stop()
						<-p.done
						p = nil
					}
				}
				r.steps(rng.IntN(4))
				if rng.IntN(3) > 0 {
					height := r.height()
					r.eventually("log at the height, with the commands", func() bool {
						run()
						return r.orders.pending() == 0 && r.cursor().GetHead().GetNumber() >= height
					})
				}
			}
			for vault := range removed {
				r.order(registry.RestoreVault, all[vault])
			}
			r.steps(2)
			if p != nil {
				p.stop()
				<-p.done
			}
			p = r.start()
			p.until("commands", func(status.Status) bool { return r.orders.pending() == 0 })
			p.caughtUp()
			r.verify()
		})
	}
}
