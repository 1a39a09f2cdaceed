package ingest

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/registry"
)

// NoState notes that a sample of a vault was due at a block whose state no endpoint has.
func (w *Writer) NoState(vault common.Address, block uint64) { w.noState[vault] = block }

// Sampled notes that an endpoint has the state of a block after all.
func (w *Writer) Sampled(vault common.Address, block uint64) {
	if w.noState[vault] == block {
		delete(w.noState, vault)
	}
}

// noteNoState updates, in the coverage of a commit, the block from which a vault is sampled.
func (w *Writer) noteNoState(covered []coverage) {
	for i := range covered {
		v := &covered[i]
		block, missing := w.noState[v.address]
		if !missing || block > v.to {
			continue
		}
		delete(w.noState, v.address)
		if block < v.sampledFrom {
			continue
		}
		if v.sampledFrom == 0 {
			w.log.Warn("no endpoint has the state of old blocks, so NAV is sampled from a later block", "vault", v.address, "block", block)
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
			if _, ok := s.navDigits(v.address); !ok {
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

// navDigits returns mapping.NavDigits of a vault.
func (s *state) navDigits(vault common.Address) (digits uint32, ok bool) {
	r := s.records[vault]
	if r == nil {
		return 0, false
	}
	return mapping.NavDigits(r.GetDecimals(), r.GetAsset().GetDecimals())
}
