package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/mapping"
)

// samplesCompared is the number of NAV samples to compare with the chain, besides the newest one of each vault: each
// is a call of the EVM at an old block, which few nodes serve for free.
const samplesCompared = 30

// compareSamples repeats the calls of some samples, chosen at random each time, at their blocks. A node without the
// state of a block cannot confirm or refute its sample.
func (c *chainCheck) compareSamples(ctx context.Context) error {
	if len(c.samples) == 0 {
		return nil
	}
	check := Check{Name: "chain: samples of NAV"}
	lacking, others := 0, 0
	defer func() {
		if lacking > 0 {
			check.Name += fmt.Sprintf(" (the node lacks the state of %d more)", lacking)
		}
		if others > 0 {
			check.Name += fmt.Sprintf(" (the mapping does not sample the blocks of %d more)", others)
		}
		c.report.Checks = append(c.report.Checks, check)
	}()
	chosen := c.chooseSamples()
	for i, s := range chosen {
		c.progress.Report(check.Name, uint64(i), uint64(len(chosen)))
		contract, due := c.mapped.Of(common.BytesToAddress(s.GetVault())).Description.Sampled(s.GetBlockNumber())
		if !due { // the vault had another mapping then
			others++
			continue
		}
		difference, known, err := c.compareSample(ctx, contract, s)
		switch {
		case err != nil:
			return err
		case difference != "":
			check.Difference = difference
			return nil
		case known:
			check.Compared++
		default:
			lacking++
		}
	}
	return nil
}

// chooseSamples returns the newest sample of each vault, and some others at random.
func (c *chainCheck) chooseSamples() (chosen []*event.Sample) {
	newest := map[common.Address]bool{}
	var others []*event.Sample
	for _, s := range slices.Backward(c.samples) {
		if vault := common.BytesToAddress(s.GetVault()); !newest[vault] {
			newest[vault], chosen = true, append(chosen, s)
			continue
		}
		others = append(others, s)
	}
	rand.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	return append(chosen, others[:min(len(others), samplesCompared)]...)
}

// compareSample calls a contract again and returns the difference of one sample, empty if none. known is false if the
// node does not report what the contract returned.
func (c *chainCheck) compareSample(
	ctx context.Context, contract common.Address, s *event.Sample,
) (difference string, known bool, err error) {
	vault, hash := common.BytesToAddress(s.GetVault()), common.BytesToHash(s.GetBlockHash())
	if difference, err = c.compareHash(ctx, s.GetBlockNumber(), hash); difference != "" || err != nil {
		return difference, true, err
	}
	var output []byte
	err = c.call(ctx, func(ctx context.Context) (err error) {
		output, err = c.client.CallContractAtHash(ctx,
			ethereum.CallMsg{To: &contract, Data: mapping.SampleCall(s.GetNavDigits())}, hash)
		return err
	})
	var refused rpc.Error
	switch {
	case err == nil && bytes.Equal(output, s.GetAssets()):
		return "", true, nil
	case err == nil:
		return inBlock(s.GetBlockNumber(), hash, fmt.Sprintf("%s of vault %s returns 0x%x, but the log's sample is 0x%x",
			mapping.ConvertToAssets, vault, output, s.GetAssets())), true, nil
	case lacksView(err), errors.As(err, &refused) && strings.Contains(strings.ToLower(err.Error()), "revert"):
		return inBlock(s.GetBlockNumber(), hash,
			fmt.Sprintf("%s of vault %s reverts, but the log has a sample", mapping.ConvertToAssets, vault)), true, nil
	case errors.As(err, &refused):
		difference, err = c.compareHash(ctx, s.GetBlockNumber(), hash)
		return difference, difference != "", err
	}
	return "", false, fmt.Errorf("call %s of vault %s at block %d: %w", mapping.ConvertToAssets, vault, s.GetBlockNumber(),
		err)
}
