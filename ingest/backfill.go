package ingest

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/schemas/event"
)

// maxRangeLogs bounds the memory of one range: a longer answer is asked for
// again in halves, unless it is a single block.
const maxRangeLogs = 50_000

// lowest is the block up to which every configured vault is covered.
func (s *session) lowest() uint64 {
	lowest := s.coverageOf(s.ingest.vaults[0].address).to
	for _, v := range s.ingest.vaults {
		lowest = min(lowest, s.coverageOf(v.address).to)
	}
	return lowest
}

// backfill appends the logs of one range of final blocks, of all vaults that
// are covered up to its beginning, and the range's last block; of a range that
// begins less than a window below tip, and moves the head, every block, so that
// a read as of a recent block knows its time however late ingest came to it.
func (s *session) backfill(ctx context.Context, n *node, tip *header, from, final uint64) error {
	to, vaults := s.nextRange(from, final)
	last, logs, err := s.readRange(ctx, n, from, to, vaults)
	if err != nil {
		return err
	}
	records, err := n.dated(ctx, logs)
	if err != nil {
		return err
	}
	leads := s.head == nil || last.Number > s.head.Number
	blocks := []*header{last}
	if leads && tip.Number-from < s.ingest.config.Window {
		if blocks, err = n.chainTo(ctx, from, last); err != nil {
			return err
		}
	}
	unit, err := rangeUnit(n, blocks, records)
	if err != nil {
		return err
	}
	c := &change{units: [][]*event.Record{unit}, final: final}
	for _, address := range vaults {
		have := *s.coverageOf(address)
		have.to = last.Number
		c.covered = append(c.covered, have)
	}
	if leads {
		c.head = last
	}
	return s.commit(ctx, c)
}

// rangeUnit puts each block behind its logs. blocks are the last one of a range,
// or all of them.
func rangeUnit(n *node, blocks []*header, logs []*event.Log) ([]*event.Record, error) {
	unit := make([]*event.Record, 0, len(blocks)+len(logs))
	for _, h := range blocks {
		for len(logs) > 0 && logs[0].GetBlockNumber() <= h.Number {
			l := logs[0]
			if l.GetBlockNumber() == h.Number && common.Hash(l.GetBlockHash()) != h.Hash {
				return nil, fmt.Errorf("%s answers a log of block %d with hash 0x%x, but the block's hash is %s", n.name, h.Number, l.GetBlockHash(), h.Hash)
			}
			unit, logs = append(unit, logFact(l)), logs[1:]
		}
		unit = append(unit, blockFact(h))
	}
	return unit, nil
}

// nextRange gives the vaults that are furthest behind and how far they go
// together: until they meet the next vault, the head, or the final block.
func (s *session) nextRange(from, final uint64) (to uint64, behind []common.Address) {
	to = min(final, from+s.rangeBlocks-1)
	for _, v := range s.ingest.vaults {
		switch have := s.coverageOf(v.address); {
		case have.to+1 == from:
			behind = append(behind, v.address)
		case have.to >= from:
			to = min(to, have.to)
		}
	}
	if s.head != nil && s.head.Number >= from {
		to = min(to, s.head.Number)
	}
	return to, behind
}

// readRange reads the logs of as many blocks from `from` as the node gives at
// once, `to` at most. Half the blocks are asked for when it fails.
func (s *session) readRange(ctx context.Context, n *node, from, to uint64, addresses []common.Address) (*header, []rpcLog, error) {
	for {
		last, logs, err := s.tryRange(ctx, n, from, to, addresses)
		if err == nil {
			s.rangeBlocks = min(s.rangeBlocks+s.rangeBlocks/4+1, s.ingest.config.BatchBlocks)
			return last, logs, nil
		}
		asked := to - from + 1
		if ctx.Err() != nil || asked == 1 {
			return nil, nil, err
		}
		s.rangeBlocks = asked / 2
		to = from + s.rangeBlocks - 1
		if !refused(err) && !errors.Is(err, errManyLogs) {
			return nil, nil, err // the next endpoint is asked, for half
		}
		s.ingest.log.Info("a range of logs was not given; half of it is next", "from", from, "blocks", asked, "error", err)
	}
}

var errManyLogs = errors.New("the answer is too long to hold")

func (s *session) tryRange(ctx context.Context, n *node, from, to uint64, addresses []common.Address) (*header, []rpcLog, error) {
	last, err := n.byNumber(ctx, to)
	if err != nil {
		return nil, nil, err
	}
	logs, err := n.logsOfRange(ctx, from, last, addresses)
	if err == nil && len(logs) > maxRangeLogs && to > from {
		err = fmt.Errorf("blocks %d to %d hold %d logs: %w", from, to, len(logs), errManyLogs)
	}
	return last, logs, err
}
