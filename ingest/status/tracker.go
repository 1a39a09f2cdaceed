package status

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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

// Status is what ingest reports about itself. Block numbers are 0 before the first is known.
type Status struct {
	State    State  `json:"state"`
	Reason   string `json:"reason,omitempty"` // why it does not continue
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
	LateVaults []registry.LateVault `json:"lateVaults,omitempty"`
	// ReferralBlock is the last block whose referrals were published.
	ReferralBlock uint64    `json:"referralBlock"`
	Time          time.Time `json:"time"`

	IndexedTime uint64    `json:"-"` // Unix seconds
	Checked     time.Time `json:"-"` // when the chain was last seen to continue the log
	// The vaults start at CoveredFrom or above, and all are covered up to CoveredTo.
	CoveredFrom     uint64 `json:"-"`
	CoveredTo       uint64 `json:"-"`
	LogFrozen       bool   `json:"-"` // of the log as it was last read or written, also while the state is another one
	DisprovenAt     uint64 `json:"-"` // the block that Disproven is about
	FinalWarning    string `json:"-"` // why nothing more becomes final
	CommandWarning  string `json:"-"` // why a command waits, or a vault that is not in the log
	ProofWarning    string `json:"-"` // why blocks at the head are not proven
	ReceiptsWarning string `json:"-"` // why the proof by receipts does not reach the final block
	HeartbeatError  string `json:"-"` // why a standby cannot read the writer's heartbeat from Kafka
	CannotWrite     string `json:"-"` // why the log, the chain or the configuration does not let a standby write
	// for vaults whose NAV is sampled only from a block after their start
	Sampling []registry.VaultWarning `json:"-"`
}

// Tracker collects the status and the metrics of a running ingest from all parts of it. It is safe for concurrent use.
type Tracker struct {
	*Metrics

	mu     sync.Mutex
	status Status
	pace   pace
}

// New returns a tracker whose metrics are registered.
func New(reg prometheus.Registerer, chainID uint64, instance string) *Tracker {
	t := &Tracker{status: Status{State: Starting, ChainID: chainID, Instance: instance}}
	t.registerGauges(reg)
	t.Metrics = newMetrics(reg)
	return t
}

// Reset returns the status, and so the gauges, to that of an ingest that has not written yet. The counters stay.
func (t *Tracker) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status, t.pace = Status{State: Starting, ChainID: t.status.ChainID, Instance: t.status.Instance}, pace{}
}

// Note changes the status.
func (t *Tracker) Note(change func(*Status)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.status)
}

// Snapshot returns the status, without what the endpoints report.
func (t *Tracker) Snapshot() Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	st, now := t.status, time.Now()
	st.Time = now.UTC() // which has no monotonic reading, so no duration is computed from it
	warnings := []string{st.FinalWarning, st.CommandWarning, st.ProofWarning, st.ReceiptsWarning}
	st.Warning = strings.Join(slices.DeleteFunc(warnings, func(w string) bool { return w == "" }), "; ")
	st.VaultWarnings = slices.Concat(st.VaultWarnings, st.Sampling)
	st.Logs = t.Appended.Load()
	st.Backfill, st.ETASeconds = t.pace.backfill(now, st.CoveredFrom, st.CoveredTo, st.FinalBlock, st.Logs)
	return st
}
