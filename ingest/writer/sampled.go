package writer

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
func (w *Writer) noteNoState(covered []Coverage) {
	for i := range covered {
		v := &covered[i]
		block, missing := w.noState[v.Address]
		if !missing || block > v.To {
			continue
		}
		delete(w.noState, v.Address)
		if block < v.SampledFrom {
			continue
		}
		if v.SampledFrom == 0 {
			w.log.Warn("no endpoint has the state of old blocks, so NAV is sampled from a later block", "vault", v.Address,
				"block", block)
		}
		v.SampledFrom = block + 1
	}
}

// samplingWarnings returns a warning for each vault that has NAV only from a block after its start, or no NAV at all.
func (s *State) samplingWarnings() (warnings []registry.VaultWarning) {
	for _, v := range s.Covered {
		if v.Removed {
			continue
		}
		warn := func(text string) {
			warnings = append(warnings, registry.VaultWarning{Address: v.Address.Hex(), Warning: text})
		}
		r := s.Records[v.Address]
		if r != nil && s.Mapped.Of(v.Address).Description.Derives(mapping.Nav|mapping.Assets|mapping.Shares) {
			if _, ok := s.NavDigits(v.Address); !ok {
				warn(fmt.Sprintf("its NAV is unknown: shares of %d decimals of an asset of %d decimals have no price with 18 "+
					"decimals",
					r.GetDecimals(), r.GetAsset().GetDecimals()))
				continue
			}
		}
		if v.SampledFrom > 0 {
			warn(fmt.Sprintf("its NAV is sampled from block %d on: earlier blocks were read without samples, or no endpoint of "+
				"chain.rpc had their state; for the whole history, index the chain into a new log with an archive node",
				v.SampledFrom))
		}
	}
	return warnings
}

// NavDigits returns mapping.NavDigits of a vault.
func (s *State) NavDigits(vault common.Address) (digits uint32, ok bool) {
	r := s.Records[vault]
	if r == nil {
		return 0, false
	}
	return mapping.NavDigits(r.GetDecimals(), r.GetAsset().GetDecimals())
}
