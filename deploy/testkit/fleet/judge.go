package fleet

import (
	"context"
	"errors"
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

// A Verdict is the result of comparing everything with the chain.
type Verdict struct {
	Logs     int // of the chain that are live in the log
	Records  int // committed in the log, retractions included
	Events   int // expected ones that arrived
	Repeated int // requests with an event that had arrived before, with the same bytes
	Lost     int // logs and events
	Doubled  int // logs and events that should not exist, or exist twice
	Faults   []string
}

func (v *Verdict) differs(format string, a ...any) {
	v.Faults = append(v.Faults, fmt.Sprintf(format, a...))
}

// Err returns an error with the first faults, or nil.
func (v *Verdict) Err() error {
	var faults []error
	for _, fault := range v.Faults[:min(len(v.Faults), 5)] {
		faults = append(faults, errors.New(fault))
	}
	if len(faults) == 0 && v.Lost+v.Doubled > 0 {
		faults = append(faults, fmt.Errorf("lost %d, doubled %d", v.Lost, v.Doubled))
	}
	return errors.Join(faults...)
}

func (v *Verdict) String() string {
	return fmt.Sprintf("logs=%d records=%d events=%d repeated=%d lost=%d doubled=%d", v.Logs, v.Records, v.Events,
		v.Repeated, v.Lost, v.Doubled)
}

// Finish mines blocks until all traffic is final, and waits until the programs have processed it: ingest has the head,
// project has the log, and every event has arrived. The programs are one of each kind, those that do the work.
func (f *Fleet) Finish(ctx context.Context, ingest, project *Program) (*oracle.History, error) {
	if err := devchain.Mine(ctx, f.URL, uint64(2*max(1, f.options.SlotsInEpoch)+1)); err != nil {
		return nil, err
	}
	history, err := oracle.Read(ctx, f.URL, f.Contracts)
	if err != nil {
		return nil, err
	}
	expected := history.Events(f.Partners)
	if len(expected) == 0 {
		return nil, errors.New("the chain has no event of a partner")
	}
	err = f.Until(ctx, func() error {
		in, err := ingest.Metrics(ctx)
		if err != nil {
			return err
		}
		out, err := project.Metrics(ctx)
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
	return history, err
}

// Judge compares the log and the events that arrived with the chain, and the read model with the log. Everything must
// have come to rest (see Finish).
func (f *Fleet) Judge(ctx context.Context, history *oracle.History) (*Verdict, error) {
	v := &Verdict{}
	if err := f.judgeLog(ctx, v, history); err != nil {
		return v, err
	}
	f.Receiver.judge(v, history.Events(f.Partners))
	if _, err := f.Run(ctx, "verify"); err != nil {
		v.differs("%v", err)
	}
	return v, nil
}

// judgeLog folds the committed records, and compares the live logs with those of the chain.
func (f *Fleet) judgeLog(ctx context.Context, v *Verdict, history *oracle.History) error {
	var addresses []common.Address
	for _, vault := range f.Contracts.Vaults {
		addresses = append(addresses, vault.Address)
	}
	logs, err := f.chain.FilterLogs(ctx, ethereum.FilterQuery{FromBlock: new(big.Int), Addresses: addresses})
	if err != nil {
		return fmt.Errorf("read the logs of the chain: %w", err)
	}
	want := map[common.Address][]*event.Log{}
	for _, l := range logs {
		want[l.Address] = append(want[l.Address], devchain.Record(&l, history.Times[l.BlockNumber]))
	}
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	committed, err := stack.Records(ctx, f.Brokers(), chainlog.LogTopic(chainID))
	if err != nil {
		return err
	}
	v.Records = len(committed)
	log := logoracle.Log{ChainID: chainID, Fault: v.differs}
	log.Fold(committed)
	v.Logs, v.Lost, v.Doubled = log.Compare(want)
	return nil
}
