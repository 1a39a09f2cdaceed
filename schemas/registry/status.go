package registry

import "time"

// Programs, as they are named in program_status and by their subcommands.
const (
	Ingest   = "ingest"
	Project  = "project"
	Serve    = "serve"
	Dispatch = "dispatch"
)

// Programs lists them in the order of a log's life.
var Programs = []string{Ingest, Project, Serve, Dispatch}

// StandingBy is the state of a program that waits for another one of its kind to end,
// and does nothing that others should hear of.
const StandingBy = "standby"

// States of ingest by which others judge what it says of the chain. In its other states
// that is what it knew before.
const (
	Backfilling = "backfilling"
	Following   = "following"
	Frozen      = "frozen" // the chain changed below the final block, and an operator has to act
)

// Retrying is the state of a project that cannot write: an engine is away, or fails, or another
// writer fenced this one. Following, Building and Bad are states of it too.
const Retrying = "retrying"

// States of the whole way from the chain to an answer, which also has those of ingest.
const (
	Stalled = "stalled" // the read model that is served does not advance
	Unknown = "unknown" // a program did not say within 5 s how it is
)

// ProgramStatus is the part of a status that others read. State is the
// program's own word for what it is doing; only ingest knows of the chain.
type ProgramStatus struct {
	State string `json:"state"`
	// Reason says why the program is not going on, or what it waits for; empty
	// where nothing is wrong.
	Reason string `json:"reason,omitempty"`
	// LogID is the log that ingest writes, in hex; Seq is its last record when ingest said this.
	LogID string `json:"logId,omitempty"`
	Seq   uint64 `json:"seq,omitempty"`
	// LateVaults are behind the head, which the other vaults follow meanwhile. ingest
	// reports them while it is Following.
	LateVaults []LateVault `json:"lateVaults,omitempty"`
	// VaultWarnings are what an operator should look at, in words that the public may read.
	VaultWarnings []VaultWarning `json:"vaultWarnings,omitempty"`
	// Building is there while project makes the first generation, and none is live.
	Building *BuildingStatus `json:"building,omitempty"`
	ChainStatus
}

// LateVault is a vault whose history is still being read.
type LateVault struct {
	Address   string `json:"address"`
	CoveredTo uint64 `json:"coveredTo"` // the last block of it that is in the log
}

// VaultWarning is what a program says against one vault.
type VaultWarning struct {
	Address string `json:"address"` // with its checksum
	Warning string `json:"warning"`
}

// BuildingStatus is how far a generation is that is being made.
type BuildingStatus struct {
	Generation int32  `json:"generation"`
	Seq        uint64 `json:"seq"` // it holds the log up to here
	// RecordsLeft is how many records of the log it lacks.
	RecordsLeft int64 `json:"recordsLeft"`
	// ETASeconds until it goes live; nil when it is not known.
	ETASeconds *uint64 `json:"etaSeconds"`
	Phase      string  `json:"phase"` // PhaseFacts, PhaseDeriving
}

// Phases of a generation that is being made: it reads the log, and then says what
// came of it.
const (
	PhaseFacts    = "facts"
	PhaseDeriving = "deriving"
)

// ChainStatus is what ingest says of the chain in its status. query shows the public how
// far it is, and neither nodes nor calls. Block numbers are 0 before the first is known.
type ChainStatus struct {
	// HeadBlock is the newest block at the node, IndexedBlock the newest one in
	// the log, FinalBlock the highest one that cannot change.
	HeadBlock    uint64 `json:"headBlock,omitempty"`
	IndexedBlock uint64 `json:"indexedBlock,omitempty"`
	FinalBlock   uint64 `json:"finalBlock,omitempty"`
	// HeadTime is the Unix time of HeadBlock.
	HeadTime uint64 `json:"headTime,omitempty"`
	// LagBlocks and LagSeconds are between head and indexed block, by number and
	// by block time; nil before both are known, and while no head is seen but in a backfill.
	LagBlocks  *uint64 `json:"lagBlocks,omitempty"`
	LagSeconds *uint64 `json:"lagSeconds,omitempty"`
	// ETASeconds until the final block is indexed; nil when it is not known.
	ETASeconds *uint64 `json:"etaSeconds,omitempty"`
	// Backfill is there while final blocks are read.
	Backfill *BackfillStatus `json:"backfill,omitempty"`
	// ProvenTo is the block up to which the logs of every vault were compared with
	// the headers of their blocks; 0 where nothing was. Disproven says what of the
	// log was found not to be the chain's; empty where nothing was.
	ProvenTo  uint64 `json:"provenTo,omitempty"`
	Disproven string `json:"disproven,omitempty"`
	// LogsWithoutData are the live logs that have the length and the hash of their data, which
	// no record holds.
	LogsWithoutData uint64 `json:"logsWithoutData,omitempty"`
	// Calls are what the nodes were asked since the process began, the most called
	// method first.
	Calls []MethodCalls `json:"calls,omitempty"`
	// Endpoints are the nodes, in the order of chain.rpc.
	Endpoints []EndpointStatus `json:"endpoints,omitempty"`
}

// BackfillStatus is how far the final blocks are read: every configured vault is
// in the log up to Block. Rates are those of the last half minute.
type BackfillStatus struct {
	FromBlock       uint64  `json:"fromBlock"` // the lowest start block
	Block           uint64  `json:"block"`
	ToBlock         uint64  `json:"toBlock"` // the final block
	Logs            uint64  `json:"logs"`    // appended by this process
	BlocksPerSecond float64 `json:"blocksPerSecond"`
	LogsPerSecond   float64 `json:"logsPerSecond"`
}

// MethodCalls is what one RPC method was called for.
type MethodCalls struct {
	Method string `json:"method"`
	Calls  uint64 `json:"calls"` // each question of a batch is one
	Bytes  uint64 `json:"bytes"` // of the answers, after decompression
	// Units are the calls at the price that chain.prices has for the method; 0 where
	// it has none.
	Units uint64 `json:"units,omitempty"`
}

// Spent adds up calls, bytes and units of all methods.
func Spent(methods []MethodCalls) (all MethodCalls) {
	for _, m := range methods {
		all.Calls, all.Bytes, all.Units = all.Calls+m.Calls, all.Bytes+m.Bytes, all.Units+m.Units
	}
	return all
}

// Part is how much is done, from 0 to 1.
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
	EndpointLagging = "lagging"      // its head is far below another's
	EndpointLimited = "rate-limited" // it is asked too often
	EndpointDown    = "down"
	EndpointWrong   = "wrong chain"
)

// EndpointStates lists them.
var EndpointStates = []string{EndpointUntried, EndpointUp, EndpointLagging, EndpointLimited, EndpointDown, EndpointWrong}

// EndpointStatus is the health of one RPC endpoint.
type EndpointStatus struct {
	Name  string `json:"name"` // scheme and host
	State string `json:"state"`
	InUse bool   `json:"inUse"` // for the head
	// LatencyMs is the moving average of its answers in milliseconds; nil before
	// the first.
	LatencyMs *float64 `json:"latencyMs,omitempty"`
	HeadBlock uint64   `json:"headBlock,omitempty"` // 0 before it is known
	// LimitedUntil is when it may be asked again; nil where it may be now.
	LimitedUntil *time.Time `json:"limitedUntil,omitempty"`
	Subscribed   bool       `json:"subscribed"` // it announces new blocks
	// Calls is what it was asked since the process began, Units what its prices make
	// of that; 0 where it has none.
	Calls uint64 `json:"calls"`
	Units uint64 `json:"units,omitempty"`
	// LastError is for operators: it may hold a provider's own words.
	LastError   string     `json:"lastError,omitempty"`
	LastErrorAt *time.Time `json:"lastErrorAt,omitempty"`
}
