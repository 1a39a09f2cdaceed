package follow

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
)

// Sampling returns what to sample for vaults according to their newest records in the log; nil for nothing.
func (f *Follower) Sampling(vaults []common.Address) rpc.Sampling {
	type sampled struct {
		vault       common.Address
		input       []byte
		description *mapping.Description
	}
	var all []sampled
	for _, v := range vaults {
		d := f.writer.State.Mapped.Of(v).Description
		if digits, ok := f.writer.State.NavDigits(v); ok && d.Samples() {
			all = append(all, sampled{v, mapping.SampleCall(digits), d})
		}
	}
	if len(all) == 0 {
		return nil
	}
	return func(first, last uint64) (calls []rpc.SampleCall) {
		for _, v := range all {
			for _, number := range v.description.SampledIn(first, last) {
				to, _ := v.description.Sampled(number)
				calls = append(calls, rpc.SampleCall{Vault: v.vault, Number: number, To: to, Input: v.input})
			}
		}
		slices.SortStableFunc(calls, func(a, b rpc.SampleCall) int { return cmp.Compare(a.Number, b.Number) })
		return calls
	}
}

// samplesOf measures the NAV of the sampled vaults at a block.
func (f *Follower) samplesOf(
	ctx context.Context, n *rpc.Node, h *rpc.Header, vaults []common.Address,
) ([]*event.Record, error) {
	plan := f.Sampling(vaults)
	if plan == nil {
		return nil, nil
	}
	calls := plan(h.Number, h.Number)
	if len(calls) == 0 {
		return nil, nil
	}
	samples, noState, err := f.nodes.Sample(ctx, n, calls, map[uint64]*rpc.Header{h.Number: h})
	if err != nil {
		return nil, fmt.Errorf("sample NAV at block %d: %w", h.Number, err)
	}
	for _, c := range calls {
		if noState > 0 {
			f.writer.NoState(c.Vault, noState)
		} else {
			f.writer.Sampled(c.Vault, h.Number)
		}
	}
	return f.SampleFacts(samples), nil
}

// SampleFacts returns samples as records. A contract that reverts, or does not return one word, has no sample: that is
// a fact about the contract, and is counted.
func (f *Follower) SampleFacts(samples []rpc.Sample) (facts []*event.Record) {
	for _, sample := range samples {
		digits, _ := f.writer.State.NavDigits(sample.Vault)
		if len(sample.Output) != common.HashLength {
			f.status.Metrics.Samples.WithLabelValues(sample.Vault.Hex(), "unanswered").Inc()
			continue
		}
		facts = append(facts, &event.Record{Fact: &event.Record_Sample{Sample: &event.Sample{
			Vault: sample.Vault.Bytes(), BlockNumber: sample.At.Number, BlockHash: sample.At.Hash.Bytes(),
			BlockTime: sample.At.Time,
			NavDigits: digits, Assets: sample.Output,
		}}})
	}
	return facts
}
