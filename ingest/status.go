package ingest

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/navlog/navlog/ingest/follow"
	"github.com/navlog/navlog/ingest/proof"
	"github.com/navlog/navlog/ingest/status"
	"github.com/navlog/navlog/ingest/writer"
	"github.com/navlog/navlog/schemas/printable"
)

// Status returns a snapshot. It is safe for concurrent use.
func (i *Ingest) Status() status.Status {
	st := i.status.Snapshot()
	st.Endpoints, st.Calls = i.nodes.Status(), i.nodes.Calls()
	if st.HeadTime > 0 && st.IndexedTime > 0 && !i.noHead(&st) {
		blocks, seconds := difference(st.HeadBlock, st.IndexedBlock), difference(st.HeadTime, st.IndexedTime)
		st.LagBlocks, st.LagSeconds = &blocks, &seconds
	}
	return st
}

// noHead reports whether no head that continues the log was seen for a while, so that the lag is unknown. An ingest
// that reads final blocks does not poll the head.
func (i *Ingest) noHead(st *status.Status) bool {
	return st.State != status.Backfilling && time.Since(st.Checked) > 10*time.Second+2*i.config.PollInterval
}

func difference(a, b uint64) uint64 { return a - min(a, b) }

// Ready returns nil while ingest does its role: as the writer of a log that reaches the chain's head, or as a standby
// that could take over (StandsBy). Otherwise it returns the reason.
func (i *Ingest) Ready() error {
	st := i.Status()
	switch {
	case st.State == status.Standby:
		if why := cmp.Or(st.HeartbeatError, st.CannotWrite); why != "" {
			return fmt.Errorf("ingest stands by and could not take over: %s", why)
		}
		return nil
	case st.State == status.Backfilling:
		return fmt.Errorf("ingest is backfilling: block %d of %d", st.IndexedBlock, st.HeadBlock)
	case st.State != status.Following:
		return fmt.Errorf("ingest is %s: %s", st.State, cmp.Or(st.Reason, "it has not read the log yet"))
	case i.noHead(&st):
		return fmt.Errorf("ingest has not seen the chain's head since %s: %s", st.Checked.UTC().Format(time.RFC3339),
			cmp.Or(st.Reason, "a node has not responded yet"))
	}
	// Not LagBlocks, which is nil while the chain's head or the log's has no time: a genesis block may have none.
	if behind := difference(st.HeadBlock, st.IndexedBlock); behind > follow.MaxBlocks {
		return fmt.Errorf("ingest is %s behind the chain's head", printable.Count(behind, "block"))
	}
	return nil
}

// noteProven notes up to which block the vaults are proven, which is that of the vault furthest behind. A block that
// was disproven and is proven now is no longer reported.
func (i *Ingest) noteProven(covered []writer.Coverage) {
	lowest := uint64(math.MaxUint64)
	for _, v := range covered {
		if !v.Removed {
			lowest = min(lowest, v.ProvenTo())
		}
	}
	if lowest == math.MaxUint64 || i.config.Proof == proof.None {
		lowest = 0
	}
	i.status.Note(func(st *status.Status) {
		st.ProvenTo = lowest
		if st.Disproven != "" && lowest >= st.DisprovenAt {
			st.Disproven = ""
		}
	})
}
