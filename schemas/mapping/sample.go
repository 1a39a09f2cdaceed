package mapping

import (
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/navlog/navlog/schemas/event"
)

// maxNavDigits is the largest NavDigits of a sample: 10^57 is the largest power of ten that fits an amount.
const maxNavDigits = 57

// equalDecimals are the NavDigits of a vault whose shares have as many decimals as its asset.
const equalDecimals = 18

// Sampled returns the contract that is called for NAV at a block; false if there is none.
func (d *Description) Sampled(block uint64) (contract common.Address, due bool) {
	every := d.sampleEvery(block)
	if every == 0 || block%every != 0 {
		return contract, false
	}
	i := slices.IndexFunc(d.Sources, isVault)
	if i < 0 {
		return contract, false
	}
	return d.Sources[i].Address, true
}

// Samples reports whether NAV is sampled at any block.
func (d *Description) Samples() bool {
	return slices.ContainsFunc(d.Ranges, func(r Range) bool { return r.Mapping.SampleEvery > 0 }) &&
		slices.ContainsFunc(d.Sources, isVault)
}

func isVault(s Source) bool { return s.Role == "vault" }

// SampledIn returns the blocks from first to last at which NAV is sampled.
func (d *Description) SampledIn(first, last uint64) (blocks []uint64) {
	if !d.Samples() {
		return nil
	}
	for _, r := range d.Ranges {
		every, from, to := r.Mapping.SampleEvery, max(first, r.From), min(last, r.To)
		if every == 0 {
			continue
		}
		for n := from + (every-from%every)%every; n >= from && n <= to; n += every {
			blocks = append(blocks, n)
		}
	}
	slices.Sort(blocks)
	return blocks
}

// sampleEvery returns the SampleEvery of the mapping for a block.
func (d *Description) sampleEvery(block uint64) uint64 {
	for _, r := range d.Ranges {
		if r.From <= block && block <= r.To {
			return r.Mapping.SampleEvery
		}
	}
	return 0
}

// NavDigits returns n such that the value of 10^n shares, in native units of the asset, is the value of one share with
// 18 decimals; false if no such n of at least 1 exists, or if its power does not fit an amount.
func NavDigits(shareDecimals, assetDecimals uint32) (n uint32, ok bool) {
	digits := equalDecimals + int64(shareDecimals) - int64(assetDecimals)
	return uint32(digits), digits > 0 && digits <= maxNavDigits
}

// navDigitsOf returns the NavDigits of a vault record, 0 for none.
func navDigitsOf(v *event.Vault) uint8 {
	digits, ok := NavDigits(v.GetDecimals(), v.GetAsset().GetDecimals())
	if !ok {
		return 0
	}
	return uint8(digits)
}

var convertToAssets = crypto.Keccak256([]byte(ConvertToAssets + "(uint256)"))[:4]

// SampleCall returns the call data that measures NAV with a vault's NavDigits.
func SampleCall(navDigits uint32) []byte {
	shares := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(navDigits)), nil)
	return append(slices.Clone(convertToAssets), common.BigToHash(shares).Bytes()...)
}

// Measured returns the effect of a sample: one, or none if the mapping of its block does not sample. It reports false
// for a sample that cannot be counted: the measured value is too large, or it has lengths that ingest never writes.
func (s *Sources) Measured(sample *event.Sample) (effects []Effect, sound bool) {
	if s.Description.sampleEvery(sample.GetBlockNumber()) == 0 {
		return nil, true
	}
	e := Effect{Kind: Sample, Has: Nav, NavDigits: uint8(sample.GetNavDigits())}
	e.Nav.SetBytes(sample.GetAssets())
	if len(sample.GetVault()) != common.AddressLength || len(sample.GetAssets()) != common.HashLength ||
		sample.GetNavDigits() == 0 || sample.GetNavDigits() > maxNavDigits || e.Nav.BitLen() > amountBits {
		return nil, false
	}
	return []Effect{e}, true
}
