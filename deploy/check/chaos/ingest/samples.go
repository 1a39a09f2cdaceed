package ingest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/navlog/navlog/schemas/mapping"
)

// writeSampled writes the mapping of vaults whose NAV is sampled every so many blocks, and returns its file.
func writeSampled(dir string, every uint64) (file string, err error) {
	text, err := mapping.PresetText("reference")
	if err != nil {
		return "", err
	}
	changed := strings.Replace(string(text), "nav: {from: valuation}",
		fmt.Sprintf("nav: {sample: convertToAssets, every: %d}", every), 1)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	file = filepath.Join(dir, "sampled.yaml")
	return file, os.WriteFile(file, []byte(changed), 0o600)
}

// samples compares the live samples with what the contracts return: each vault has one for every block that must be
// sampled, and no other.
func (f *fold) samples(blocks []*fact) error {
	type place struct {
		vault common.Address
		block uint64
	}
	there := map[place]bool{}
	for seq, r := range f.Live {
		s := r.GetSample()
		if s == nil {
			continue
		}
		f.Samples++
		at := place{common.Address(s.GetVault()), s.GetBlockNumber()}
		if there[at] {
			f.Doubled++
			f.differs("record %d is a second sample of vault %s at block %d", seq, at.vault, at.block)
		}
		there[at] = true
		if at.block >= uint64(len(blocks)) || common.Hash(s.GetBlockHash()) != blocks[at.block].hash ||
			s.GetBlockTime() != blocks[at.block].time {
			f.differs("record %d is a sample of block %d (0x%x), which is not in the chain", seq, at.block, s.GetBlockHash())
			continue
		}
		var got hexutil.Bytes
		call := map[string]any{"to": at.vault, "data": hexutil.Bytes(mapping.SampleCall(s.GetNavDigits()))}
		if err := f.chain.CallContext(f.ctx, &got, "eth_call", call, hexutil.Uint64(at.block)); err != nil {
			return fmt.Errorf("call vault %s at block %d: %w", at.vault, at.block, err)
		}
		if !bytes.Equal(got, s.GetAssets()) {
			f.differs("the sample of vault %s at block %d is 0x%x, the contract returns %s", at.vault, at.block, s.GetAssets(),
				got)
		}
	}
	for _, v := range f.cursor.GetVaults() {
		for n := v.GetStartBlock(); n < uint64(len(blocks)); n++ {
			at, due := place{common.Address(v.GetAddress()), n}, f.plan.SampleEvery > 0 && n%f.plan.SampleEvery == 0
			if due && !there[at] {
				f.Lost++
			}
			if due != there[at] {
				f.differs("block %d of vault %s is sampled: %t", n, at.vault, there[at])
			}
		}
	}
	return nil
}
