package ingest

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/registry"
)

// sampling returns what to sample for vaults according to their newest records in the log; nil for nothing. A vault
// whose decimals have no NavDigits is not sampled.
func (s *session) sampling(vaults []common.Address) *rpc.Sampling {
	type sampled struct {
		vault       common.Address
		input       []byte
		description *mapping.Description
	}
	var all []sampled
	for _, v := range vaults {
		d := s.state.mapped.Of(v).Description
		if digits, ok := s.navDigits(v); ok && d.Samples() {
			all = append(all, sampled{v, mapping.SampleCall(digits), d})
		}
	}
	if len(all) == 0 {
		return nil
	}
	return &rpc.Sampling{Need: s.ingest.config.Agreement, Calls: func(first, last uint64) (calls []rpc.SampleCall) {
		for _, v := range all {
			for _, number := range v.description.SampledIn(first, last) {
				to, _ := v.description.Sampled(number)
				calls = append(calls, rpc.SampleCall{Vault: v.vault, Number: number, To: to, Input: v.input})
			}
		}
		slices.SortStableFunc(calls, func(a, b rpc.SampleCall) int { return cmp.Compare(a.Number, b.Number) })
		return calls
	}}
}

// samples reports whether the mapping of a vault record samples NAV.
func samples(r *event.Vault) bool {
	sources, err := mapping.Read(r)
	return err == nil && sources.Description.Samples()
}

// navDigits returns mapping.NavDigits of a vault.
func (s *session) navDigits(vault common.Address) (digits uint32, ok bool) {
	r := s.state.records[vault]
	if r == nil {
		return 0, false
	}
	return mapping.NavDigits(r.GetDecimals(), r.GetAsset().GetDecimals())
}

// samplesOf measures the NAV of the sampled vaults at a block, at its hash. If no endpoint has the state of the block
// any more, there is no sample, and the log continues.
func (s *session) samplesOf(ctx context.Context, n *rpc.Node, h *rpc.Header, vaults []common.Address) ([]*event.Record, error) {
	plan := s.sampling(vaults)
	if plan == nil {
		return nil, nil
	}
	calls := plan.Calls(h.Number, h.Number)
	if len(calls) == 0 {
		return nil, nil
	}
	samples, noState, err := s.nodes.Sample(ctx, n, plan.Need, calls, map[uint64]*rpc.Header{h.Number: h})
	if err != nil {
		return nil, fmt.Errorf("sample NAV at block %d: %w", h.Number, err)
	}
	for _, c := range calls {
		if noState > 0 {
			s.noState[c.Vault] = noState
		} else if s.noState[c.Vault] == h.Number {
			delete(s.noState, c.Vault) // another endpoint has it
		}
	}
	return s.sampleFacts(samples), nil
}

// sampleFacts returns samples as records. A contract that reverts, or does not return one word, has no sample: that is
// a fact about the contract, and is counted.
func (s *session) sampleFacts(samples []rpc.Sample) (facts []*event.Record) {
	for _, sample := range samples {
		digits, _ := s.navDigits(sample.Vault)
		if len(sample.Output) != common.HashLength {
			s.ingest.metrics.samples.WithLabelValues(sample.Vault.Hex(), "unanswered").Inc()
			continue
		}
		facts = append(facts, &event.Record{Fact: &event.Record_Sample{Sample: &event.Sample{
			Vault: sample.Vault.Bytes(), BlockNumber: sample.At.Number, BlockHash: sample.At.Hash.Bytes(), BlockTime: sample.At.Time,
			NavDigits: digits, Assets: sample.Output,
		}}})
	}
	return facts
}

// noteNoState updates, in the coverage of a commit, the block from which a vault is sampled.
func (s *session) noteNoState(covered []coverage) {
	for i := range covered {
		v := &covered[i]
		block, missing := s.noState[v.address]
		if !missing || block > v.to {
			continue
		}
		delete(s.noState, v.address)
		if block < v.sampledFrom {
			continue
		}
		if v.sampledFrom == 0 {
			s.ingest.log.Warn("no endpoint has the state of old blocks, so NAV is sampled from a later block", "vault", v.address, "block", block)
		}
		v.sampledFrom = block + 1
	}
}

// samplingWarnings returns a warning for each vault that has NAV only from a block after its start, or no NAV at all.
func (s *state) samplingWarnings() (warnings []registry.VaultWarning) {
	for _, v := range s.covered {
		if v.removed {
			continue
		}
		warn := func(text string) {
			warnings = append(warnings, registry.VaultWarning{Address: v.address.Hex(), Warning: text})
		}
		r := s.records[v.address]
		if r != nil && s.mapped.Of(v.address).Description.Samples() {
			if _, ok := mapping.NavDigits(r.GetDecimals(), r.GetAsset().GetDecimals()); !ok {
				warn(fmt.Sprintf("its NAV is not sampled: shares of %d decimals of an asset of %d decimals have no price with 18 decimals",
					r.GetDecimals(), r.GetAsset().GetDecimals()))
				continue
			}
		}
		if v.sampledFrom > 0 {
			warn(fmt.Sprintf("its NAV is sampled from block %d on: earlier blocks were read without samples, or no endpoint of "+
				"chain.rpc had their state; for the whole history, index the chain into a new log with an archive node", v.sampledFrom))
		}
	}
	return warnings
}
