package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/deploy/bench"
)

const (
	headLogs     = 20 // of each block
	headBlocks   = 200
	headInterval = 250 * time.Millisecond
	fastBlocks   = 300
	fastInterval = 200 * time.Millisecond
	// askEvery is how often the API is polled while a block is awaited.
	askEvery = 5 * time.Millisecond
	// headPatience is how long the last block may take before the run fails.
	headPatience = time.Minute
)

// head measures how long a block takes from the end of the call that mines it until its logs are visible in the API.
func (b *benchmark) head(ctx context.Context) ([]bench.Bar, error) {
	lags, err := b.follow(ctx, headBlocks, headInterval)
	if err != nil {
		return nil, err
	}
	p99 := bench.Quantile(lags, 0.99)
	row("mined to visible", "p50 %.0f ms, p90 %.0f ms, p99 %.0f ms, max %.0f ms", bench.Quantile(lags, 0.5),
		bench.Quantile(lags, 0.9), p99, bench.Quantile(lags, 1))
	return []bench.Bar{{Name: "visible-p99-ms", Value: p99, Bound: 250}}, nil
}

// fast measures the same with the profile for chains with many blocks, in blocks: how many were mined before this one
// could be read.
func (b *benchmark) fast(ctx context.Context) ([]bench.Bar, error) {
	lags, err := b.follow(ctx, fastBlocks, fastInterval, "NAVLOG_CHAIN_PROFILE=fast")
	if err != nil {
		return nil, err
	}
	behind := func(part float64) float64 { return bench.Quantile(lags, part) / bench.Milliseconds(fastInterval) }
	row("behind the chain", "p50 %.2f blocks, p99 %.2f, max %.2f", behind(0.50), behind(0.99), behind(1))
	return []bench.Bar{{Name: "fast-chain-lag-blocks", Value: behind(0.99), Bound: 2}}, nil
}

// follow runs navlog with additional settings at the head of a chain and mines blocks, one in about each interval,
// whether or not the earlier ones are visible in the API. It returns how long each took to become visible.
func (b *benchmark) follow(ctx context.Context, blocks int, interval time.Duration,
	settings ...string) (lags []time.Duration, err error) {
	c, err := b.chain(ctx, 2, 2*logsPerRound)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	s, err := b.start(ctx, c, c.URL, append(settings, "NAVLOG_CHAIN_RPC_0_WS="+c.WSURL)...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	run, err := s.start("ingest", "project", "serve")
	if err != nil {
		return nil, err
	}
	defer run.stop()
	bench.Say("navlog reaches the head")
	if err := run.until(ctx, visibleEvery,
		func() bool { return complete(ctx, s.api, c.vault) >= c.last }); err != nil {
		return nil, fmt.Errorf("run navlog: %w", err)
	}
	bench.Say("mining %d blocks, one in about %s", blocks, interval)
	first, last := c.tip+1, c.tip+uint64(blocks)
	mined, visible := make([]time.Time, blocks), make([]time.Time, blocks)
	work, each := errgroup.WithContext(ctx)
	work.Go(func() error {
		random, next := rand.New(rand.NewPCG(1, 1)), time.Now()
		for i := range mined {
			// The interval varies so that the blocks meet every phase of navlog's periodic work.
			next = next.Add(time.Duration((0.5 + random.Float64()) * float64(interval)))
			select {
			case <-time.After(time.Until(next)):
			case <-each.Done():
				return each.Err()
			}
			if err := c.block(each, headLogs); err != nil {
				return err
			}
			mined[i] = time.Now()
		}
		return nil
	})
	work.Go(func() error {
		next := first
		bounded, cancel := context.WithTimeout(each, time.Duration(blocks)*interval+headPatience)
		defer cancel()
		err := run.until(bounded, askEvery, func() bool {
			for there := newestBlock(bounded, s.api, c.vault); next <= min(there, last); next++ {
				visible[next-first] = time.Now()
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
	for i := range mined {
		lags = append(lags, max(0, visible[i].Sub(mined[i])))
	}
	fmt.Printf("%d blocks of %d logs, one in about %s\n", blocks, headLogs, interval)
	return lags, wholeLog(ctx, s, c)
}
