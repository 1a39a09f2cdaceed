package ask

import (
	"context"
	_ "embed"

	"github.com/navlog/navlog/schemas/readmodel"
)

var (
	//go:embed sql/block_times.sql
	sqlBlockTimes string
	//go:embed sql/block_before.sql
	sqlBlockBefore string
	//go:embed sql/block_after.sql
	sqlBlockAfter string
	//go:embed sql/last_log.sql
	sqlLastLog string
)

// Mapping a time to a block adds no dependency to an answer: if another branch moves the block, the answer's rows
// that belong to the old branch change, too.

type ofBlocks struct {
	_ struct{} `reads:"-"`
}

type ofTime struct {
	Time uint64   `ask:"time"`
	_    struct{} `reads:"-"`
}

type blockRow struct {
	Entry
	Time uint32 `ch:"ts"`
}

type betweenBlocks struct {
	After  uint64   `ask:"after"`
	Before uint64   `ask:"before"`
	Time   uint64   `ask:"time"`
	_      struct{} `reads:"-"`
}

type lastBlock struct {
	Block uint64 `ch:"last_block"`
}

var (
	blockTimes  = NewPage[ofBlocks, blockRow]("blocks", sqlBlockTimes, NewestFirst)
	blockBefore = NewPage[ofTime, blockRow]("blocks", sqlBlockBefore, NewestFirst)
	blockAfter  = NewPage[ofTime, blockRow]("blocks", sqlBlockAfter, OldestFirst)
	lastLog     = New[betweenBlocks, lastBlock](sqlLastLog)
)

// Now returns the time by which expiry is decided, in Unix seconds: that of the newest indexed block up to Block.
func (p *Pin) Now(ctx context.Context) (uint64, error) {
	if !p.AsOf {
		return p.snapshot.Time, nil
	}
	p.clock.Lock()
	defer p.clock.Unlock()
	if p.time != 0 {
		return p.time, nil
	}
	rows, err := blockTimes.Read(ctx, p, ofBlocks{}, 0, 1)
	if err == nil && len(rows) > 0 {
		p.time = uint64(rows[0].Time)
	}
	return p.time, err
}

// Blocks returns the blocks whose logs have times between from and to, both included, in Unix seconds: first to last,
// and last is at most Block. The range is empty if last < first.
func (p *Pin) Blocks(ctx context.Context, from, to int64) (first, last uint64, err error) {
	err = Together(
		func() (err error) { last, err = p.blockAt(ctx, to); return },
		func() (err error) {
			if from > 0 {
				first, err = p.blockAt(ctx, from-1)
				first++
			}
			return err
		},
	)
	return first, min(last, p.Block), err
}

// BlockAt returns the block to use as asOfBlock for the state at a time in Unix seconds, and the time of the newest
// indexed block up to it. ok is false for a time before the first indexed block.
func (p *Pin) BlockAt(ctx context.Context, time int64) (block, at uint64, ok bool, err error) {
	if block, err = p.blockAt(ctx, time); err != nil || block < p.snapshot.First {
		return 0, 0, false, err
	}
	if block = min(block, p.Block); block == p.Block {
		at, err = p.Now(ctx)
		return block, at, true, err
	}
	rows, err := blockBefore.Read(ctx, p, ofTime{Time: uint64(time)}, 0, 1)
	if err != nil || len(rows) == 0 {
		return 0, 0, false, err
	}
	return block, uint64(rows[0].Time), true, nil
}

// blockAt returns a block that divides the logs up to Block by time: logs up to that block have at most the given
// time, logs above it have a later one. Times never decrease from block to block.
func (p *Pin) blockAt(ctx context.Context, time int64) (uint64, error) {
	if time < 0 {
		return 0, nil
	}
	if uint64(time) >= p.snapshot.Time { // Now is not enough: a past block may have logs after the newest record up to it
		return p.Block, nil
	}
	args := ofTime{Time: uint64(time)}
	var before, after []blockRow
	err := Together(
		func() (err error) { before, err = blockBefore.Read(ctx, p, args, 0, 1); return },
		func() (err error) { after, err = blockAfter.Read(ctx, p, args, 0, 1); return },
	)
	if err != nil {
		return 0, err
	}
	between := betweenBlocks{Before: readmodel.Never, Time: uint64(time)}
	if len(before) > 0 {
		between.After = before[0].Block
	}
	if len(after) > 0 {
		between.Before = after[0].Block
	}
	between.Before = min(between.Before, p.Block+1)
	if between.Before <= between.After+1 {
		return between.After, nil
	}
	found, _, err := lastLog.One(ctx, p, between)
	return max(found.Block, between.After), err
}
