package ingest

import (
	"fmt"
	"math"
	"time"

	"github.com/navlog/navlog/ingest/proof"
)

// Status returns a snapshot. It is safe for concurrent use.
func (i *Ingest) Status() Status {
	st := i.status.snapshot()
	st.Endpoints, st.Calls = i.nodes.Status(), i.nodes.Calls()
	if st.HeadTime > 0 && st.indexedTime > 0 && !i.blind(&st) {
		blocks, seconds := difference(st.HeadBlock, st.IndexedBlock), difference(st.HeadTime, st.indexedTime)
		st.LagBlocks, st.LagSeconds = &blocks, &seconds
	}
	return st
}

// blind reports whether no head that continues the log was seen for a while: the nodes are gone or disagree, or ingest
// is frozen or waits for the log. Then the lag is unknown. An ingest that reads final blocks does not poll the head.
func (i *Ingest) blind(st *Status) bool {
	return st.State != Backfilling && st.Time.Sub(st.checked) > 10*time.Second+2*i.config.PollInterval
}

func difference(a, b uint64) uint64 { return a - min(a, b) }

// Ready returns nil while ingest does its role: as the writer of a log that reaches the chain's head, or as a standby
// that could take over (StandsBy). Otherwise it returns the reason.
func (i *Ingest) Ready() error {
	st := i.Status()
	switch {
	case st.State == Standby:
		return i.standbyReady(st.Time)
	case st.State == Backfilling:
		return fmt.Errorf("ingest is backfilling: block %d of %d", st.IndexedBlock, st.HeadBlock)
	case st.State != Following:
		return fmt.Errorf("ingest is %s: %s", st.State, st.Reason)
	case i.blind(&st):
		return fmt.Errorf("ingest has not seen the chain's head since %s: %s", st.checked.UTC().Format(time.RFC3339), st.Reason)
	}
	// Not LagBlocks, which is nil while the chain's head or the log's has no time: a genesis block may have none.
	if behind := difference(st.HeadBlock, st.IndexedBlock); behind > BlocksAtOnce {
		return fmt.Errorf("ingest is %d blocks behind the chain's head", behind)
	}
	return nil
}

// noteProven notes up to which block the vaults are proven, which is that of the vault furthest behind.
func (i *Ingest) noteProven(covered []coverage) {
	lowest := uint64(math.MaxUint64)
	for _, v := range covered {
		if !v.removed {
			lowest = min(lowest, v.provenTo())
		}
	}
	if lowest == math.MaxUint64 || i.config.Proof == proof.None {
		lowest = 0
	}
	i.status.proven.Set(float64(lowest))
	i.status.note(func(st *Status) { st.ProvenTo = lowest })
}
