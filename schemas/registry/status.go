package registry

import "time"

// Programs, as program_status and their subcommands name them.
const (
	Ingest   = "ingest"
	Project  = "project"
	Serve    = "serve"
	Dispatch = "dispatch"
)

// Programs lists the programs in the order in which data passes through them.
var Programs = []string{Ingest, Project, Serve, Dispatch}

// StandingBy is the state of a program that is ready to take over from another instance, and that reports nothing else.
const StandingBy = "standby"

// States of ingest in which its report of the chain is current. In other states it is the
// last known one.
const (
	Backfilling = "backfilling"
	Following   = "following"
	Frozen      = "frozen" // the chain changed below the final block; an operator must decide
)

// Retrying is the state of a project that cannot write: an engine is down or fails, or another
// writer fenced it. project also has the states Following, Building and Bad.
const Retrying = "retrying"

// States of the whole pipeline, which also has those of ingest.
const (
	Stalled = "stalled" // the live generation does not advance
	Unknown = "unknown" // a program has not reported for 5 s
)

// Serving is the state of a serve that responds, and Reading that of a dispatch that sends webhooks.
const (
	Serving = "serving"
	Reading = "reading"
)

// Working reports whether a program in a state does the work of its role. A program that starts, waits, stands by,
// retries or is stuck is running but does not.
func Working(state string) bool {
	switch state {
	case Backfilling, Following, Building, Serving, Reading:
		return true
	}
	return false
}

// ProgramStatus is the part of a status that other programs read. State is specific to the
// program; only ingest reports the chain.
type ProgramStatus struct {
	State string `json:"state"`
	// Reason is why the program does not advance, or what it waits for; empty if nothing
	// is wrong.
	Reason string `json:"reason,omitempty"`
	// LogID is the log that ingest writes, in hex; Seq is its last record at the time of the report.
	LogID string `json:"logId,omitempty"`
	Seq   uint64 `json:"seq,omitempty"`
	// LateVaults are vaults that are still catching up while the others follow the head.
	// ingest reports them while it is Following.
	LateVaults []LateVault `json:"lateVaults,omitempty"`
	// VaultWarnings are problems for an operator to examine, in words that the public may read.
	VaultWarnings []VaultWarning `json:"vaultWarnings,omitempty"`
	// Building is set while project builds the first generation and none is live.
	Building *BuildingStatus `json:"building,omitempty"`
	ChainStatus
}

// LateVault is a vault whose history is still being read.
type LateVault struct {
	Address   string `json:"address"`
	CoveredTo uint64 `json:"coveredTo"`        // the log has its history up to this block
	Reason    string `json:"reason,omitempty"` // why it does not continue
}

// VaultWarning is a program's warning about one vault.
type VaultWarning struct {
	Address string `json:"address"` // EIP-55 checksum
	Warning string `json:"warning"`
}

// BuildingStatus is the progress of the generation being built.
type BuildingStatus struct {
	Generation int32  `json:"generation"`
	Seq        uint64 `json:"seq"` // the log is applied up to this record
	// RecordsLeft is the number of records still to apply.
	RecordsLeft int64 `json:"recordsLeft"`
	// ETASeconds is the time until it goes live; nil if unknown.
	ETASeconds *uint64 `json:"etaSeconds"`
	Phase      string  `json:"phase"` // PhaseFacts, PhaseDeriving
}

// Phases of building a generation: reading the log, and then deriving tables from it.
const (
	PhaseFacts    = "facts"
	PhaseDeriving = "deriving"
)

// ChainStatus is what ingest reports about the chain. query publishes its progress, but not
// its nodes and calls. Block numbers are 0 until the first is known.
type ChainStatus struct {
	// HeadBlock is the newest block at the node, IndexedBlock the newest block in the log,
	// FinalBlock the highest block that cannot change.
	HeadBlock    uint64 `json:"headBlock,omitempty"`
	IndexedBlock uint64 `json:"indexedBlock,omitempty"`
	FinalBlock   uint64 `json:"finalBlock,omitempty"`
	// HeadTime is the Unix time of HeadBlock.
	HeadTime uint64 `json:"headTime,omitempty"`
	// LagBlocks and LagSeconds are the distance from the head to the indexed block, by number
	// and by block time; nil until both are known, and during a backfill that sees no head.
	LagBlocks  *uint64 `json:"lagBlocks,omitempty"`
	LagSeconds *uint64 `json:"lagSeconds,omitempty"`
	// ETASeconds is the time until the final block is indexed; nil if unknown.
	ETASeconds *uint64 `json:"etaSeconds,omitempty"`
	// Backfill is set while final blocks are read. Without it, every vault is in the log up to FinalBlock.
	Backfill *BackfillStatus `json:"backfill,omitempty"`
	// ProvenTo is the block up to which the logs of every vault were verified against the
	// headers of their blocks, 0 if none were. Disproven describes a part of the log that is
	// not on the chain; empty if there is none.
	ProvenTo  uint64 `json:"provenTo,omitempty"`
	Disproven string `json:"disproven,omitempty"`
	// Warning is a problem that does not stop ingest, in words for the operator.
	Warning string `json:"warning,omitempty"`
	// LogsWithoutData counts the live logs that have only the length and the hash of their data,
	// which was too long for a record.
	LogsWithoutData uint64 `json:"logsWithoutData,omitempty"`
	// Calls counts the RPC calls since the start of the process, the most frequent method
	// first.
	Calls []MethodCalls `json:"calls,omitempty"`
	// Endpoints are the nodes in the order of chain.rpc.
	Endpoints []EndpointStatus `json:"endpoints,omitempty"`
}

// BackfillStatus is the progress of reading the final blocks: every configured vault is in
// the log up to Block. Rates are those of the last half minute.
type BackfillStatus struct {
	FromBlock       uint64  `json:"fromBlock"` // the lowest start block
	Block           uint64  `json:"block"`
	ToBlock         uint64  `json:"toBlock"` // the final block
	Logs            uint64  `json:"logs"`    // appended by this process
	BlocksPerSecond float64 `json:"blocksPerSecond"`
	LogsPerSecond   float64 `json:"logsPerSecond"`
}

// MethodCalls counts the calls of one RPC method.
type MethodCalls struct {
	Method string `json:"method"`
	Calls  uint64 `json:"calls"` // each request of a batch counts
	Bytes  uint64 `json:"bytes"` // of the responses, after decompression
	// Units is the cost of the calls at the method's price in chain.prices; 0 if it has
	// none.
	Units uint64 `json:"units,omitempty"`
}

// Spent adds up the calls, bytes and units of all methods.
func Spent(methods []MethodCalls) (all MethodCalls) {
	for _, m := range methods {
		all.Calls, all.Bytes, all.Units = all.Calls+m.Calls, all.Bytes+m.Bytes, all.Units+m.Units
	}
	return all
}

// Part returns the completed part, from 0 to 1.
func (b *BackfillStatus) Part() float64 {
	if b.ToBlock < b.FromBlock {
		return 1
	}
	done := max(b.Block+1, b.FromBlock) - b.FromBlock
	return min(1, float64(done)/float64(b.ToBlock-b.FromBlock+1))
}

// States of an endpoint.
const (
	EndpointUntried = "untried"
	EndpointUp      = "up"
	EndpointLagging = "lagging"      // its head is far behind another endpoint's
	EndpointLimited = "rate-limited" // it rejects calls for a while
	EndpointDown    = "down"
	EndpointWrong   = "wrong chain"
)

// EndpointStates lists the states.
var EndpointStates = []string{
	EndpointUntried, EndpointUp, EndpointLagging, EndpointLimited, EndpointDown, EndpointWrong,
}

// EndpointStatus is the health of one RPC endpoint.
type EndpointStatus struct {
	Name  string `json:"name"` // scheme and host
	State string `json:"state"`
	InUse bool   `json:"inUse"` // for the head
	// LatencyMs is the moving average of its response times in milliseconds; nil before
	// the first response.
	LatencyMs *float64 `json:"latencyMs,omitempty"`
	HeadBlock uint64   `json:"headBlock,omitempty"` // 0 before it is known
	// LimitedUntil is when it may be called again; nil if it may be called within two seconds.
	LimitedUntil *time.Time `json:"limitedUntil,omitempty"`
	Subscribed   bool       `json:"subscribed"` // it notifies of new blocks
	// Calls counts its calls since the start of the process, Units their cost; 0 without
	// prices.
	Calls uint64 `json:"calls"`
	Units uint64 `json:"units,omitempty"`
	// FailingSince is when the first of its failures occurred; nil while it is not down. Failures are cleared after 8
	// responses in a row, or a minute without one.
	FailingSince *time.Time `json:"failingSince,omitempty"`
	// LastError is for operators: it may contain the provider's own words.
	LastError   string     `json:"lastError,omitempty"`
	LastErrorAt *time.Time `json:"lastErrorAt,omitempty"`
}
