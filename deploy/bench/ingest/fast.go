package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/deploy/bench"
)

// fast mines b.FastBlocks blocks, one every b.FastInterval whether or not the earlier ones are visible in the API, and
// measures navlog with the profile for such chains.
func fast(ctx context.Context, b *benchmark) (_ []bench.Bar, err error) {
	c, s, run, err := b.atHead(ctx, func(s *settings) { s.profile, s.pollInterval = "fast", 0 })
	if err != nil {
		return nil, err
	}
	defer func() { run.stop(); err = errors.Join(err, s.stop(), c.Close()) }()
	bench.Say("mining %d blocks, one each %s", b.FastBlocks, b.FastInterval)
	first, last := c.tip+1, c.tip+uint64(b.FastBlocks)
	mined, visible := make(map[uint64]time.Time, b.FastBlocks), make(map[uint64]time.Time, b.FastBlocks)
	work, each := errgroup.WithContext(ctx)
	work.Go(func() error {
		tick := time.NewTicker(b.FastInterval)
		defer tick.Stop()
		for range b.FastBlocks {
			select {
			case <-tick.C:
			case <-each.Done():
				return each.Err()
			}
			if err := c.block(each, b.HeadLogs); err != nil {
				return err
			}
			mined[c.last] = time.Now()
		}
		return nil
	})
	work.Go(func() error {
		next := first
		bounded, cancel := context.WithTimeout(each, time.Duration(b.FastBlocks)*b.FastInterval+headPatience)
		defer cancel()
		err := run.until(bounded, askEvery, func(ctx context.Context) bool {
			for there := newestBlock(ctx, s.api, c.vault); next <= min(there, last); next++ {
				visible[next] = time.Now()
			}
			return next > last
		})
		if err != nil {
			return fmt.Errorf("wait for block %d: %w", next, err)
		}
		return nil
	})
	if err := work.Wait(); err != nil {
		return nil, err
	}
	var lags []time.Duration
	for number := first; number <= last; number++ {
		lags = append(lags, max(0, visible[number].Sub(mined[number])))
	}
	// In blocks: how many blocks were mined before this one could be read.
	behind := func(part float64) float64 { return bench.Quantile(lags, part) / bench.Milliseconds(b.FastInterval) }
	interval := bench.Milliseconds(mined[last].Sub(mined[first])) / float64(max(1, b.FastBlocks-1))
	fmt.Printf("fast: %d blocks of %d logs, one each %.0f ms; navlog learns of a block %s\n", b.FastBlocks, b.HeadLogs, interval, b.learns("by asking as often as the profile says"))
	row("behind the chain", "p50 %.2f blocks, p99 %.2f, max %.2f", behind(0.50), behind(0.99), behind(1))
	return []bench.Bar{{Name: "fast-chain-lag-blocks", Value: behind(0.99), Bound: 2}}, wholeLog(ctx, s, c)
}
