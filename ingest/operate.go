package ingest

import (
	"context"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/ingest/operate"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/mapping"
)

// Estimate samples this number of ranges of the chain, 1 or more, and returns the cost of a backfill into a new log. It
// must be the only use of this ingest; it needs no Kafka and writes nothing. progress may be nil.
func (i *Ingest) Estimate(ctx context.Context, samples int, progress operate.Progress) (*operate.Estimate, error) {
	defer i.nodes.Close()
	if i.fault != nil {
		return nil, rpc.Refuse("%v", i.fault)
	}
	c := i.config
	h := operate.History{
		ChainID: c.ID, Nodes: i.nodes, FromBlock: i.vaults[0].start, Vaults: len(i.vaults), PerBlock: i.sampledPerBlock(), Window: c.Window,
		Proof: c.Proof, Finality: rpc.Finality(c.Finality), Agreement: c.Agreement, Poll: c.PollInterval, Endpoints: len(c.RPC), InFlight: c.RangesInFlight,
		PerSecond: c.RPC[0].RequestsPerSecond, LookAgain: lookAgainFar,
	}
	var contracts []common.Address
	for _, v := range i.vaults {
		h.FromBlock = min(h.FromBlock, v.start)
		for _, source := range v.spec.sources {
			if !slices.Contains(contracts, source.Address) {
				contracts = append(contracts, source.Address)
			}
		}
	}
	h.Reader = i.reader(contracts)
	return h.Estimate(ctx, samples, progress)
}

// sampledPerBlock returns the number of NAV samples per block that the vaults of chain.vaults need, by their newest
// mappings.
func (i *Ingest) sampledPerBlock() (samples float64) {
	for _, v := range i.vaults {
		d, err := mapping.Describe(v.spec.sources, v.spec.texts)
		if err != nil || !d.Samples() {
			continue
		}
		if s := d.Ranges[len(d.Ranges)-1].Mapping.Sampling; s != nil {
			samples += 1 / float64(s.Every)
		}
	}
	return samples
}

// ProveReceipts proves the log by receipts, or a sample of it (operate.Receipts). It must be the only use of this
// ingest.
func (i *Ingest) ProveReceipts(ctx context.Context, o operate.ReceiptsOptions) (*operate.ReceiptsReport, error) {
	defer i.nodes.Close()
	if _, err := i.nodes.First(ctx); err != nil {
		return nil, err
	}
	cursor, err := i.readCursor(ctx)
	if err != nil {
		return nil, err
	}
	if cursor == nil {
		return nil, rpc.Refuse("there is nothing to prove: %s is empty", chainlog.LogTopic(i.config.ID))
	}
	mapped, _, err := i.readMapped(ctx, cursor)
	if err != nil {
		return nil, err
	}
	return operate.Receipts{
		Log: i.theLog(mapped), Cursor: cursor, Endpoints: len(i.config.RPC), InFlight: i.config.RangesInFlight, Finality: rpc.Finality(i.config.Finality),
	}.Prove(ctx, o)
}

func (i *Ingest) theLog(mapped *mapping.Vaults) operate.Log {
	return operate.Log{ChainID: i.config.ID, Kafka: i.kafka, Nodes: i.nodes, Mapped: mapped}
}

// proofs connects the schedule of proofs by receipts with the commits of a session. While it is on, the log accepts all
// blocks unproven, and only a run of the schedule proves them. A nil one stands for no schedule.
type proofs struct {
	schedule *operate.Schedule
	ingest   *Ingest

	mu      sync.Mutex
	covered []coverage // as last committed
}

// newProofs returns the schedule of a session; nil if chain.receiptsEvery is 0.
func (i *Ingest) newProofs(s *state) *proofs {
	if i.config.ReceiptsEvery == 0 {
		return nil
	}
	p := &proofs{ingest: i}
	p.schedule = operate.NewSchedule(i.theLog(s.mapped), i.config.ReceiptsEvery, i.config.ReceiptsPerSecond, i.log, operate.ScheduleEvents{
		Advanced: func() { i.noteProven(p.known()) },
		Ended:    func(warning string) { i.note(func(st *Status) { st.receiptsWarning = warning }) },
		Disproven: func(err error) {
			i.metrics.disproven.Set(1)
			i.note(func(st *Status) { st.Disproven = err.Error() })
		},
	})
	p.committed(s)
	return p
}

// merge adds the progress of the schedule to a state that is about to be committed.
func (p *proofs) merge(s *state) {
	if p != nil {
		p.mergeInto(s.covered)
	}
}

func (p *proofs) mergeInto(covered []coverage) {
	for i := range covered {
		c := &covered[i]
		c.proven = max(c.proven, min(p.schedule.Proven(c.address), c.believed))
	}
}

// known returns the coverage of the vaults with the progress of the schedule.
func (p *proofs) known() []coverage {
	p.mu.Lock()
	known := slices.Clone(p.covered)
	p.mu.Unlock()
	p.mergeInto(known)
	return known
}

// committed tells the schedule what a committed state lacks of proofs.
func (p *proofs) committed(s *state) {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.covered = slices.Clone(s.covered)
	p.mu.Unlock()
	var unproven []operate.Unproven
	for _, c := range s.covered {
		if !c.removed && c.proven < c.believed {
			unproven = append(unproven, operate.Unproven{Vault: c.address, Proven: c.provenTo(), To: c.believed})
		}
	}
	p.schedule.Committed(unproven, s.final, s.frozen != "")
}

// saves reports whether the progress of the schedule is worth a commit that contains only the cursor.
func (p *proofs) saves() bool { return p != nil && p.schedule.Saves() }
