package ingest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/navlog/navlog/ingest/proof"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/registry"
)

// State is what ingest is doing.
type State string

// The states of an ingest. Frozen ends by an operator's decision. Fenced is final with chain.standby 0, and otherwise
// changes to Standby at once.
const (
	Starting    State = "starting"           // no session yet: fencing, reading the cursor, or waiting for an engine
	Backfilling State = registry.Backfilling // reading final blocks
	Following   State = registry.Following   // at the head
	Frozen      State = registry.Frozen      // the chain changed below the final block or the window
	Fenced      State = "fenced"             // another ingest took over
	Standby     State = registry.StandingBy  // another ingest writes, and this one takes over when it ends
)

// Status is what ingest knows about itself. Block numbers are 0 before the
// first is known.
type Status struct {
	State  State  `json:"state"`
	Reason string `json:"reason,omitempty"` // why it does not continue
	// Warning is a problem that does not stop ingest.
	Warning  string `json:"warning,omitempty"`
	ChainID  uint64 `json:"chainId"`
	Instance string `json:"instance"` // hex
	LogID    string `json:"logId"`    // hex
	// Seq of the last record in the log.
	Seq uint64 `json:"seq"`
	// Logs that this process appended, without retractions.
	Logs uint64 `json:"logs"`
	registry.ChainStatus
	// VaultWarnings name the vaults about which chain.vaults and the log disagree.
	VaultWarnings []registry.VaultWarning `json:"vaultWarnings,omitempty"`
	// LateVaults are behind the head, which the others follow meanwhile.
	LateVaults []LateVault `json:"lateVaults,omitempty"`
	// ReferralBlock is the last block whose referrals were published.
	ReferralBlock uint64    `json:"referralBlock"`
	Time          time.Time `json:"time"`

	indexedTime  uint64    // Unix seconds
	checked      time.Time // when the chain was last seen to continue the log
	pace         pace
	finalWarning string // why nothing more becomes final
	sealWarning  string // why blooms prove nothing
	// receiptsWarning is why the last proof by receipts ended before the final block.
	receiptsWarning string
	standby         standing
	sampling        []registry.VaultWarning // for vaults whose NAV is sampled only from a block after their start
}

// LateVault is a vault whose history is still being read.
type LateVault struct {
	Address   string `json:"address"`
	CoveredTo uint64 `json:"coveredTo"`        // last block of the vault that is in the log
	Reason    string `json:"reason,omitempty"` // why it does not continue
}

// Status returns a snapshot. It is safe for concurrent use.
func (i *Ingest) Status() Status {
	i.mu.Lock()
	defer i.mu.Unlock()
	st := i.status
	st.Time = time.Now().UTC()
	st.Warning = strings.Join(slices.DeleteFunc([]string{st.finalWarning, st.sealWarning, st.receiptsWarning}, func(w string) bool { return w == "" }), "; ")
	st.VaultWarnings = slices.Concat(st.VaultWarnings, st.sampling)
	st.Endpoints = i.nodes.Status()
	st.Calls = i.nodes.Calls()
	st.Logs = i.metrics.appended.Load()
	st.Backfill, st.ETASeconds = i.status.pace.backfill(st.Time, i.indexes, st.FinalBlock, st.Logs)
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
		return i.standbyReady(&st)
	case st.State == Backfilling:
		return fmt.Errorf("ingest is backfilling: block %d of %d", st.IndexedBlock, st.HeadBlock)
	case st.State != Following:
		return fmt.Errorf("ingest is %s: %s", st.State, st.Reason)
	case i.blind(&st):
		return fmt.Errorf("ingest has not seen the chain's head since %s: %s", st.checked.UTC().Format(time.RFC3339), st.Reason)
	}
	// Not LagBlocks, which is nil while the chain's head or the log's has no time: a genesis block may have none.
	if behind := difference(st.HeadBlock, st.IndexedBlock); behind > blocksAtOnce {
		return fmt.Errorf("ingest is %d blocks behind the chain's head", behind)
	}
	return nil
}

func (i *Ingest) note(change func(*Status)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change(&i.status)
}

// seen notes the head of a chain that continues the log.
func (st *Status) seen(tip *rpc.Header, now time.Time) {
	st.HeadBlock, st.HeadTime, st.checked, st.Reason = tip.Number, tip.Time, now, ""
}

// indexed notes a committed state.
func (st *Status) indexed(s *state) {
	st.LogID, st.Seq, st.FinalBlock, st.ReferralBlock = fmt.Sprintf("%x", s.logID), s.seq, s.final, s.told
	st.LogsWithoutData, st.sampling = s.withoutData, s.samplingWarnings()
	if s.head != nil {
		st.IndexedBlock, st.indexedTime = s.head.Number, s.head.Time
	}
	st.pace.committed(s.covered)
}

// noteProven notes up to which block the vaults are proven, which is that of the vault furthest behind.
func (i *Ingest) noteProven(covered []coverage) {
	lowest := uint64(math.MaxUint64)
	for _, v := range i.watched() {
		to := uint64(0)
		for _, have := range covered {
			if have.address == v.address {
				to = have.provenTo()
			}
		}
		lowest = min(lowest, to)
	}
	if i.config.Proof == proof.None {
		lowest = 0
	}
	i.metrics.proven.Set(float64(lowest))
	i.note(func(st *Status) { st.ProvenTo = lowest })
}
