package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/navlog/navlog/deploy/bench"
	"github.com/navlog/navlog/deploy/testkit/wait"
)

const (
	// askEvery is how often the API is polled while a block is awaited.
	askEvery = 5 * time.Millisecond
	// headPatience is how long a block may take before the run fails.
	headPatience = time.Minute
)

// head measures b.HeadBlocks blocks that are mined one by one, b.HeadInterval apart on average: how long they take from
// the node's announcement of a block until its logs are visible in the API.
func head(ctx context.Context, b *benchmark) (_ []bench.Bar, err error) {
	c, s, run, err := b.atHead(ctx, func(*settings) {})
	if err != nil {
		return nil, err
	}
	defer func() { run.stop(); err = errors.Join(err, s.stop(), c.Close()) }()
	bench.Say("mining %d blocks, one in about %s", b.HeadBlocks, b.HeadInterval)
	delays, err := follow(ctx, b, c, s, run)
	if err != nil {
		return nil, err
	}
	fmt.Printf("head: %d blocks of %d logs; navlog learns of a block %s\n", len(delays), b.HeadLogs, b.learns(fmt.Sprint("by asking each ", b.PollInterval)))
	p99 := bench.Quantile(delays, 0.99)
	row("announced to visible", "p50 %.0f ms, p90 %.0f ms, p99 %.0f ms, max %.0f ms", bench.Quantile(delays, 0.5), bench.Quantile(delays, 0.9), p99, bench.Quantile(delays, 1))
	return []bench.Bar{{Name: "visible-p99-ms", Value: p99, Bound: 250}}, wholeLog(ctx, s, c)
}

// atHead starts a chain, engines and navlog with the settings changed by differ, and waits until navlog has reached the
// head.
func (b *benchmark) atHead(ctx context.Context, differ func(*settings)) (c *chain, s *system, run programs, err error) {
	if c, err = b.chain(ctx); err != nil {
		return nil, nil, nil, err
	}
	defer func() {
		if err != nil {
			if run != nil {
				run.stop()
			}
			if s != nil {
				err = errors.Join(err, s.stop())
			}
			err = errors.Join(err, c.Close())
		}
	}()
	if err := c.dense(ctx, 2, 2*logsPerRound); err != nil {
		return nil, nil, nil, fmt.Errorf("build the chain: %w", err)
	}
	if s, err = startSystem(ctx, b); err != nil {
		return c, s, run, err
	}
	settings := b.settings(c, c.URL)
	if !b.NoWS {
		settings.ws = c.WSURL
	}
	differ(&settings)
	if err = s.configure(settings); err != nil {
		return c, s, run, err
	}
	if run, err = startPrograms(b, s, "ingest", "project", "serve"); err != nil {
		return c, s, run, err
	}
	bench.Say("navlog reaches the head")
	caughtUp := func(ctx context.Context) bool { return complete(ctx, s.api, c.vault) >= c.last }
	if err = run.until(ctx, visibleEvery, caughtUp); err != nil {
		err = fmt.Errorf("run navlog: %w", err)
	}
	return c, s, run, err
}

// follow mines the blocks and returns the delay of each.
func follow(ctx context.Context, b *benchmark, c *chain, s *system, run programs) (delays []time.Duration, err error) {
	heads, err := announcements(ctx, c)
	if err != nil {
		return nil, err
	}
	defer heads.stop()
	random := rand.New(rand.NewPCG(1, 1))
	next := time.Now()
	for range b.HeadBlocks {
		// The interval varies so that the blocks meet every phase of navlog's periodic work.
		next = next.Add(time.Duration((0.5 + random.Float64()) * float64(b.HeadInterval)))
		select {
		case <-time.After(time.Until(next)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if err := c.block(ctx, b.HeadLogs); err != nil {
			return nil, err
		}
		bounded, cancel := context.WithTimeout(ctx, headPatience)
		var visible time.Time
		err := run.until(bounded, askEvery, func(ctx context.Context) bool {
			there := newestBlock(ctx, s.api, c.vault) >= c.last
			visible = time.Now()
			return there
		})
		var announced time.Time
		if err == nil {
			announced, err = heads.at(bounded, c.last)
		}
		cancel()
		if err != nil {
			return nil, fmt.Errorf("wait for block %d: %w", c.last, err)
		}
		delays = append(delays, visible.Sub(announced))
	}
	return delays, nil
}

// heads records when the node announced each block to a subscriber.
type heads struct {
	subscription *rpc.ClientSubscription
	client       *rpc.Client

	mu    sync.Mutex
	times map[uint64]time.Time
}

func announcements(ctx context.Context, c *chain) (*heads, error) {
	client, err := rpc.DialContext(ctx, c.WSURL)
	if err != nil {
		return nil, fmt.Errorf("subscribe to the node's heads: %w", err)
	}
	type header struct {
		Number hexutil.Uint64 `json:"number"`
	}
	announced := make(chan header, 64)
	h := &heads{client: client, times: map[uint64]time.Time{}}
	if h.subscription, err = client.EthSubscribe(ctx, announced, "newHeads"); err != nil {
		client.Close()
		return nil, fmt.Errorf("subscribe to the node's heads: %w", err)
	}
	go func() {
		for {
			select {
			case one := <-announced:
				h.mu.Lock()
				h.times[uint64(one.Number)] = time.Now()
				h.mu.Unlock()
			case <-h.subscription.Err():
				return
			}
		}
	}()
	return h, nil
}

// at returns when a block was announced. A block may be readable before its announcement arrives, so at waits for it.
func (h *heads) at(ctx context.Context, block uint64) (t time.Time, err error) {
	err = wait.Poll(ctx, time.Millisecond, func() (ok bool, _ error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		t, ok = h.times[block]
		return ok, nil
	})
	if err != nil {
		err = fmt.Errorf("the node did not announce it: %w", err)
	}
	return t, err
}

func (h *heads) stop() {
	h.subscription.Unsubscribe()
	h.client.Close()
}
