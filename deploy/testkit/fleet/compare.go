package fleet

import (
	"context"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/testkit/logoracle"
	"github.com/navlog/navlog/deploy/testkit/oracle"
	"github.com/navlog/navlog/deploy/testkit/stack"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
)

// Differences are the result of comparing everything with the chain.
type Differences struct {
	Logs     int // of the chain that are live in the log
	Records  int // committed in the log, retractions included
	Events   int // expected ones that arrived
	Repeated int // requests with an event that had arrived before, with the same bytes
	Lost     int // logs and events
	Doubled  int // logs and events that should not exist, or exist twice
	Faults   []string
}

func (v *Differences) differs(format string, a ...any) {
	v.Faults = append(v.Faults, fmt.Sprintf(format, a...))
}

func (v *Differences) String() string {
	return fmt.Sprintf("logs=%d records=%d events=%d repeated=%d lost=%d doubled=%d", v.Logs, v.Records, v.Events,
		v.Repeated, v.Lost, v.Doubled)
}

// Finish mines blocks until all traffic is final, and waits until the programs have processed it: ingest has the head,
// project has the log, and every event has arrived. The programs are one of each kind, those that do the work.
func (f *Fleet) Finish(ingest, project *Program) *oracle.History {
	f.t.Helper()
	f.must(devchain.Mine(f.t.Context(), f.URL, uint64(2*max(1, f.options.SlotsInEpoch)+1)))
	history, err := oracle.Read(f.t.Context(), f.URL, f.Contracts)
	f.must(err)
	expected := history.Events(f.Partners)
	if len(expected) == 0 {
		f.t.Fatal("the chain has no event of a partner")
	}
	f.Until(func() error {
		in, err := ingest.Metrics()
		if err != nil {
			return err
		}
		out, err := project.Metrics()
		if err != nil {
			return err
		}
		indexed, referrals := in["navlog_ingest_indexed_block"], in["navlog_ingest_referral_block"]
		if indexed != float64(history.Head()) || referrals < float64(history.Final) {
			return fmt.Errorf("ingest is at block %.0f of %d, referrals at block %.0f of %d",
				indexed, history.Head(), referrals, history.Final)
		}
		if out["navlog_projections_seq"] != in["navlog_ingest_seq"] {
			return fmt.Errorf("project is at seq %.0f of %.0f", out["navlog_projections_seq"], in["navlog_ingest_seq"])
		}
		if n := f.Receiver.Count(); n < len(expected) {
			return fmt.Errorf("%d of %d events have arrived", n, len(expected))
		}
		return nil
	})
	return history
}

// Compare compares the log and the events that arrived with the chain, and the read model with the log. The test fails
// if anything differs. Everything must have come to rest (see Finish).
func (f *Fleet) Compare(history *oracle.History) *Differences {
	f.t.Helper()
	v := &Differences{}
	f.compareLog(v, history)
	f.Receiver.compareDeliveries(v, history.Events(f.Partners))
	if _, err := f.Try(f.t.Context(), "verify"); err != nil {
		v.differs("%v", err)
	}
	f.t.Log(v)
	for _, fault := range v.Faults[:min(len(v.Faults), 5)] {
		f.t.Error(fault)
	}
	if v.Lost+v.Doubled > 0 {
		f.t.Errorf("lost %d, doubled %d", v.Lost, v.Doubled)
	}
	return v
}

// compareLog folds the committed records, and compares the live logs with those of the chain.
func (f *Fleet) compareLog(v *Differences, history *oracle.History) {
	f.t.Helper()
	var addresses []common.Address
	for _, vault := range f.Contracts.Vaults {
		addresses = append(addresses, vault.Address)
	}
	ctx, cancel := context.WithTimeout(f.t.Context(), Patience)
	defer cancel()
	logs, err := f.chain.FilterLogs(ctx, ethereum.FilterQuery{FromBlock: new(big.Int), Addresses: addresses})
	f.must(err)
	want := map[common.Address][]*event.Log{}
	for _, l := range logs {
		want[l.Address] = append(want[l.Address], devchain.Record(&l, history.Times[l.BlockNumber]))
	}
	committed, err := stack.Records(ctx, f.Brokers(), chainlog.LogTopic(chainID))
	f.must(err)
	v.Records = len(committed)
	log := logoracle.Log{ChainID: chainID, Fault: v.differs}
	log.Fold(committed)
	v.Logs, v.Lost, v.Doubled = log.Compare(want)
}
