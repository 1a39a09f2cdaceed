package ingest

import (
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/ingest/operate"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/ingest/writer"
)

// proofs connects the schedule of proofs by receipts with the commits of a session. While it is on, the log accepts all
// blocks unproven, and only a run of the schedule proves them. A nil one stands for no schedule.
type proofs struct {
	schedule *operate.Schedule
	ingest   *Ingest

	mu      sync.Mutex
	covered []writer.Coverage // as last committed
}

// newProofs returns the schedule of a session; nil if chain.receiptsEvery is 0.
func (i *Ingest) newProofs(s *writer.State) *proofs {
	if i.config.ReceiptsEvery == 0 {
		return nil
	}
	p := &proofs{ingest: i}
	p.schedule = operate.NewSchedule(i.theLog(s.Mapped), i.config.ReceiptsEvery, i.config.ReceiptsPerSecond, i.log, operate.ScheduleEvents{
		Advanced: func() { i.noteProven(p.known()) },
		Ended:    func(warning string) { i.status.Note(func(st *status.Status) { st.ReceiptsWarning = warning }) },
		Disproven: func(block uint64, reason error) {
			i.status.Note(func(st *status.Status) {
				st.Disproven, st.DisprovenAt = reason.Error(), block
				i.status.Disproven.Set(1)
			})
		},
	})
	p.committed(s)
	return p
}

// proven is the progress of the schedule, which the writer adds to a state that is about to be committed.
func (s *session) proven(vault common.Address) uint64 {
	if s.proofs == nil {
		return 0
	}
	return s.proofs.schedule.Proven(vault)
}

// committed reports a state that was committed, or read.
func (s *session) committed(state *writer.State) {
	s.proofs.committed(state)
	s.noteProven(state.Covered)
}

// known returns the coverage of the vaults with the progress of the schedule.
func (p *proofs) known() []writer.Coverage {
	p.mu.Lock()
	known := slices.Clone(p.covered)
	p.mu.Unlock()
	for i := range known {
		known[i].Prove(p.schedule.Proven(known[i].Address))
	}
	return known
}

// committed tells the schedule what a committed state lacks of proofs.
func (p *proofs) committed(s *writer.State) {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.covered = slices.Clone(s.Covered)
	p.mu.Unlock()
	var unproven []operate.Unproven
	for _, c := range s.Covered {
		if !c.Removed && c.Proven < c.Believed {
			unproven = append(unproven, operate.Unproven{Vault: c.Address, Proven: c.ProvenTo(), To: c.Believed})
		}
	}
	p.schedule.Committed(unproven, s.Final, s.Frozen != "")
}

// saves reports whether the progress of the schedule is worth a commit that contains only the cursor.
func (p *proofs) saves() bool { return p != nil && p.schedule.Saves() }
