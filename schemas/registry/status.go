package registry

// Programs, as they are named in program_status and by their subcommands.
const (
	Ingest   = "ingest"
	Project  = "project"
	Serve    = "serve"
	Dispatch = "dispatch"
)

// Programs lists them in the order of a log's life.
var Programs = []string{Ingest, Project, Serve, Dispatch}

// ProgramStatus is the part of a status that others read. State is the
// program's own word for what it is doing; only ingest knows of the chain.
type ProgramStatus struct {
	State string `json:"state"`
	ChainStatus
}

// ChainStatus is what ingest says of the chain in its status, and query shows to
// the public. Block numbers are 0 before the first is known.
type ChainStatus struct {
	// HeadBlock is the newest block at the node, IndexedBlock the newest one in
	// the log, FinalBlock the highest one that cannot change.
	HeadBlock    uint64 `json:"headBlock,omitempty"`
	IndexedBlock uint64 `json:"indexedBlock,omitempty"`
	FinalBlock   uint64 `json:"finalBlock,omitempty"`
	// LagBlocks and LagSeconds are between head and indexed block, by number and
	// by block time; nil before both are known.
	LagBlocks  *uint64 `json:"lagBlocks,omitempty"`
	LagSeconds *uint64 `json:"lagSeconds,omitempty"`
	// ETASeconds until the final block is indexed; nil when it is not known.
	ETASeconds *uint64 `json:"etaSeconds,omitempty"`
}
