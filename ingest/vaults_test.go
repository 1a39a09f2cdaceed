package ingest

import "testing"

// A vault that is configured later is backfilled from its own start block,
// through final and unfinalised blocks, and then follows with the others; the
// same after it was left out for a while.
func TestVaultAddedLater(t *testing.T) {
	onEachBroker(t, func(t *testing.T, brokers func(testing.TB) []string) {
		r := newRig(t, brokers)
		all := r.config.Vaults
		r.config.Vaults, r.config.BatchBlocks = all[1:2], 7
		r.steps(40)
		p := r.start()
		p.caughtUp()
		r.verify()
		p.halt()

		r.config.Vaults = all
		r.steps(3)
		p = r.start()
		p.caughtUp()
		r.verify()
		r.reorg(4) // into blocks that the vault joined late
		r.steps(3)
		p.caughtUp()
		r.verify()
		p.halt()

		r.config.Vaults = all[:2] // the third is left out ...
		r.steps(20)
		p = r.start()
		p.until("head without the third vault", func(st Status) bool { return st.IndexedBlock == r.height() })
		p.halt()
		r.config.Vaults = all // ... and comes back
		p = r.start()
		p.caughtUp()
		r.verify()
	})
}

// Vaults begin where they are configured to begin, in the future too.
func TestStartBlocks(t *testing.T) {
	r := newRig(t, kfake)
	r.steps(20)
	height := r.height()
	r.config.Vaults[0].StartBlock = 0
	r.config.Vaults[1].StartBlock = height - 3 // not final yet
	r.config.Vaults[2].StartBlock = height + 5 // not there yet
	p := r.start()
	p.until("head", func(st Status) bool { return st.IndexedBlock == height })
	r.steps(15)
	p.caughtUp()
	r.verify()
}

// With every vault's start above the final block the head begins at the final
// block, so that a reorganisation there can be followed.
func TestNothingFinalYet(t *testing.T) {
	r := newRig(t, kfake)
	r.config.Finality = Finality{Depth: 1000}
	r.steps(10)
	p := r.start()
	p.caughtUp()
	r.verify()
	r.reorg(r.height() - 2) // nearly everything
	r.mine(20)
	p.until("new branch", func(st Status) bool { return st.IndexedBlock == r.height() })
	r.verify()
}
