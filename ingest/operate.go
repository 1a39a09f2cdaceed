package ingest

import (
	"context"

	"github.com/navlog/navlog/ingest/backup"
	"github.com/navlog/navlog/ingest/catchup"
	"github.com/navlog/navlog/ingest/operate"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/mapping"
)

// Estimate is operate.History.Estimate for a new log. It must be the only use of this ingest.
func (i *Ingest) Estimate(ctx context.Context, samples int, progress backup.Progress) (*operate.Estimate, error) {
	defer i.nodes.Close()
	if i.fault != nil {
		return nil, rpc.Refuse("%v", i.fault)
	}
	c := i.config
	return operate.History{
		ChainID: c.ID, Nodes: i.nodes, FromBlock: i.vaults.FirstBlock(), Vaults: len(i.vaults),
		PerBlock: i.vaults.SamplesPerBlock(), Window: c.Window,
		Proof: c.Proof, Finality: rpc.Finality(c.Finality), Poll: c.PollInterval,
		InFlight: c.RangesInFlight, PerSecond: c.RPC[0].RequestsPerSecond, HeadInterval: catchup.HeadInterval,
		Reader: i.nodes.NewReader(i.vaults.Contracts(), nil, c.Proof, c.BatchBlocks, c.RangesInFlight),
	}.Estimate(ctx, samples, progress)
}

// ProveReceipts proves the log by receipts, or a sample of it (operate.Receipts). It must be the only use of this
// ingest.
func (i *Ingest) ProveReceipts(ctx context.Context, o operate.ReceiptsOptions) (*operate.ReceiptsReport, error) {
	defer i.nodes.Close()
	if _, err := i.nodes.First(ctx); err != nil {
		return nil, err
	}
	cursor, err := i.topics().Cursor(ctx)
	if err != nil {
		return nil, err
	}
	if cursor == nil {
		return nil, rpc.Refuse("there is nothing to prove: %s is empty", chainlog.LogTopic(i.config.ID))
	}
	mapped, _, err := i.topics().Mapped(ctx, cursor)
	if err != nil {
		return nil, err
	}
	proof := operate.Receipts{Log: i.operatedLog(mapped), Cursor: cursor, InFlight: i.config.RangesInFlight,
		Finality: rpc.Finality(i.config.Finality)}
	return proof.Prove(ctx, o)
}

func (i *Ingest) operatedLog(mapped *mapping.Vaults) operate.Log {
	return operate.Log{ChainID: i.config.ID, Kafka: i.kafka, Nodes: i.nodes, Mapped: mapped}
}

// Resume accepts the chain that froze the log (operate.Resume). It must be the only use of this ingest.
func (i *Ingest) Resume(ctx context.Context, accept bool, progress backup.Progress) (*operate.Resumption, error) {
	defer i.nodes.Close()
	s := i.newSession()
	defer s.close()
	resume := operate.Resume{Nodes: i.nodes, Writer: s.writer, Logger: i.log, AtOnce: i.retract.atOnce,
		AsUnit: i.retract.asUnit}
	return resume.Run(ctx, accept, progress)
}
