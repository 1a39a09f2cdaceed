package verify

import (
	"cmp"
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/navlog/navlog/schemas/contracts"
)

// wholeRange is the default number of blocks in one request.
const wholeRange = 2000

// blockRange is a range of consecutive blocks in which the log covers the same vaults.
type blockRange struct {
	from, to uint64
	vaults   []common.Address
}

// coverage returns all blocks in which the log covers a vault, in order.
func (c *chainCheck) coverage() (all []blockRange) {
	var edges []uint64
	for _, v := range c.covered {
		edges = append(edges, v.GetStartBlock(), v.GetCoveredTo()+1)
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	for i := 1; i < len(edges); i++ {
		if vaults := c.covering(edges[i-1]); len(vaults) > 0 {
			all = append(all, blockRange{edges[i-1], edges[i] - 1, vaults})
		}
	}
	return all
}

// compareRanges compares the logs of all covered blocks, or of one range in sample. The ranges are chosen before the
// node can reject one, so that a block in a range with many logs is as likely to be chosen as any other.
func (c *chainCheck) compareRanges(ctx context.Context, sample uint64) error {
	check := Check{Name: "chain: covered blocks by ranges"}
	defer func() { c.report.Checks = append(c.report.Checks, check) }()
	all := c.coverage()
	var passed, blocks uint64
	for _, s := range all {
		blocks += s.to - s.from + 1
	}
	for _, s := range all {
		for from := s.from; from <= s.to; from += c.most {
			piece := blockRange{from, min(s.to, from+c.most-1), s.vaults}
			c.progress.Report(check.Name, passed, blocks)
			passed += piece.to - piece.from + 1
			if sample > 1 && rand.Uint64N(sample) != 0 {
				continue
			}
			err := c.comparePieces(ctx, piece, &check)
			if err != nil || check.Difference != "" {
				return err
			}
		}
	}
	return nil
}

// comparePieces compares a range in pieces: half as many blocks after a piece that the node rejects, and slowly more
// after one that it returns. Each provider words the reason differently, so a rejection is an error only for a single
// block.
func (c *chainCheck) comparePieces(ctx context.Context, s blockRange, check *Check) error {
	for s.from <= s.to {
		piece := blockRange{s.from, min(s.to, s.from+c.width-1), s.vaults}
		blocks := piece.to - piece.from + 1
		difference, err := c.compareRange(ctx, piece)
		switch {
		case err != nil && (blocks == 1 || ctx.Err() != nil):
			return err
		case err != nil:
			c.width = blocks / 2
			continue
		case difference != "":
			check.Difference = difference
			return nil
		}
		check.Compared += blocks
		s.from, c.width = piece.to+1, min(c.most, c.width+c.width/8+1)
	}
	return nil
}

// compareRange compares the logs of a range and returns the first difference, empty if none. If the response differs
// from the log, the block is requested again by its hash, because a response about many blocks may be truncated.
func (c *chainCheck) compareRange(ctx context.Context, s blockRange) (difference string, err error) {
	numbers, returned := c.known(s), map[common.Hash][]types.Log{}
	logs, err := c.ofChain(ctx,
		ethereum.FilterQuery{FromBlock: new(big.Int).SetUint64(s.from), ToBlock: new(big.Int).SetUint64(s.to),
			Addresses: c.mapped.Contracts(s.vaults)})
	if err != nil {
		err = fmt.Errorf("request the logs of blocks %d to %d: %w", s.from, s.to, err)
		if known := inOrder(numbers); s.from == s.to && len(known) > 0 {
			return c.replaced(ctx, s.from, known[0], err)
		}
		return "", err
	}
	for _, l := range c.ofVaults(logs, s.vaults) {
		numbers[l.BlockHash], returned[l.BlockHash] = l.BlockNumber, append(returned[l.BlockHash], l)
	}
	for _, hash := range inOrder(numbers) {
		if differ(c.logs[hash], returned[hash]) == "" {
			continue
		}
		if difference, err = c.compareBlock(ctx, numbers[hash], hash); difference != "" || err != nil {
			return difference, err
		}
		return "", fmt.Errorf("%s returns other logs of block %d for blocks %d to %d than for the block's hash: give "+
			"another chain.rpc", contracts.EndpointName(c.url), numbers[hash], s.from, s.to)
	}
	return "", nil
}

// known returns the numbers of the blocks of a range that the log has.
func (c *chainCheck) known(s blockRange) map[common.Hash]uint64 {
	numbers := map[common.Hash]uint64{}
	first, _ := slices.BinarySearchFunc(c.order, s.from,
		func(hash common.Hash, number uint64) int { return cmp.Compare(c.numbers[hash], number) })
	for _, hash := range c.order[first:] {
		if c.numbers[hash] > s.to {
			break
		}
		numbers[hash] = c.numbers[hash]
	}
	return numbers
}
