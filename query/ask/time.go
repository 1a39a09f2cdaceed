package ask

import (
	"context"

	"github.com/navlog/navlog/query/state"
)

// Mapping a time to a block adds no dependency to an answer: if another branch moves the block, the answer's rows
// that belong to the old branch change, too.

type ofBlocks struct {
	Time  uint64   `ask:"time"`
	Timed bool     `ask:"timed"`
	Later bool     `ask:"later"`
	_     struct{} `reads:"-"`
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
	Part
	Block uint64 `ch:"last_block"`
}

var (
	blocks  = NewPage[ofBlocks, blockRow]("blocks", state.SQL(files, "sql/blocks"), NewestFirst)
	lastLog = New[betweenBlocks, lastBlock](state.SQL(files, "sql/last_log"))
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
	rows, err := blocks.Read(ctx, p, ofBlocks{}, 0, 1)
	if err == nil && len(rows) > 0 {
		p.time = uint64(rows[0].Time)
	}
	return p.time, err
}

// Blocks is an argument of questions: the blocks First to Last, both included; none if Last < First.
type Blocks struct {
	First uint64 `ask:"first"`
	Last  uint64 `ask:"last"`
}

// Blocks returns the blocks whose logs have times between from and to, both included, in Unix seconds. The last one is
// at most the pin's.
func (p *Pin) Blocks(ctx context.Context, from, to int64) (b Blocks, err error) {
	at, err := p.dividing(ctx, from-1, to)
	if err != nil {
		return b, err
	}
	if from > 0 {
		b.First = at[0].block + 1
	}
	b.Last = min(at[1].block, p.Block)
	return b, nil
}

// BlockAt returns the block to use as asOfBlock for the state at a time in Unix seconds, and the time of the newest
// indexed block up to it. ok is false for a time before the first indexed block.
func (p *Pin) BlockAt(ctx context.Context, time int64) (block, at uint64, ok bool, err error) {
	found, err := p.dividing(ctx, time)
	if err != nil || found[0].block < p.snapshot.First {
		return 0, 0, false, err
	}
	if block = min(found[0].block, p.Block); block == p.Block {
		at, err = p.Now(ctx)
		return block, at, true, err
	}
	if found[0].record == nil {
		return 0, 0, false, nil
	}
	return block, uint64(found[0].record.Time), true, nil
}

// division is a block that divides the logs up to the pin's block by a time: logs up to that block have at most that
// time, logs above it have a later one. record is the newest block record with at most that time; nil for a time that
// needs none.
type division struct {
	block  uint64
	record *blockRow
}

// dividing returns the division for each time. Times never decrease from block to block.
func (p *Pin) dividing(ctx context.Context, times ...int64) ([]division, error) {
	out := make([]division, len(times))
	var within []int // the indexes of times that are not at the ends of the chain
	var asked []ofBlocks
	for i, time := range times {
		switch {
		case time < 0:
		case uint64(time) >= p.snapshot.Time:
			// Now is not enough: a past block may have logs after the newest record up to it
			out[i].block = p.Block
		default:
			within = append(within, i)
			asked = append(asked, ofBlocks{Time: uint64(time), Timed: true}, ofBlocks{Time: uint64(time), Later: true})
		}
	}
	found, err := blocks.FirstOfEach(ctx, p, asked)
	if err != nil {
		return nil, err
	}
	var gaps []betweenBlocks
	var withGap []int
	for i, n := range within {
		before, after := found[2*i], found[2*i+1]
		gap := betweenBlocks{Before: p.Block + 1, Time: asked[2*i].Time}
		if before != nil {
			gap.After = before.Block
		}
		if after != nil {
			gap.Before = min(gap.Before, after.Block)
		}
		out[n] = division{gap.After, before}
		if gap.Before > gap.After+1 {
			gaps, withGap = append(gaps, gap), append(withGap, n)
		}
	}
	last, err := lastLog.RowsOfEach(ctx, p, gaps...)
	for i, rows := range last {
		at := &out[withGap[i]]
		for _, row := range rows { // at most one
			at.block = max(at.block, row.Block)
		}
	}
	return out, err
}
