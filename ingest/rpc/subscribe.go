package rpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	ethrpc "github.com/ethereum/go-ethereum/rpc"

	"github.com/navlog/navlog/schemas/contracts"
)

const (
	// subscriptionTimeout is how long a subscription may announce nothing while polls see new blocks, before it is
	// considered dead.
	subscriptionTimeout = 15 * time.Second
	// fastPollFor is how long after an announcement the announced block is polled more often, first after fastPollEvery
	// and then at doubling intervals: the endpoint in use may get it later than the one that announced it.
	fastPollFor   = 2 * time.Second
	fastPollEvery = 25 * time.Millisecond
	// fastPollAgain is how long after an announcement that led to no new head another one leads to such polls again,
	// because each poll is paid for.
	fastPollAgain = 15 * time.Second
)

// WaitForHead waits until the head should be read again: when an endpoint announces a block, but not sooner than
// fastPollEvery after it last returned, or else after poll.
func (p *Pool) WaitForHead(ctx context.Context, poll time.Duration) (err error) {
	timer := time.NewTimer(p.pollPause(poll))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.wake:
	case <-timer.C:
	}
	if early := min(poll, fastPollEvery) - p.clock.now().Sub(p.lastWait); early > 0 {
		err = p.clock.sleep(ctx, early)
	}
	p.lastWait = p.clock.now()
	return err
}

func (p *Pool) pollPause(poll time.Duration) time.Duration {
	announced, seen := p.announcedHead.Load(), p.seenHead.Load()
	if announced == nil || seen != nil && seen.number >= announced.number {
		return poll
	}
	since := p.clock.now().Sub(announced.at)
	if since >= fastPollFor {
		return poll
	}
	return min(poll, max(since, fastPollEvery))
}

// listen subscribes to the new blocks of an endpoint, again after each failure, until ctx ends.
func (p *Pool) listen(ctx context.Context, n *Node) {
	for wait := new(Backoff); ctx.Err() == nil; _ = wait.Sleep(ctx) {
		err := p.receive(ctx, n, wait)
		n.health.set(func(h *health) { h.subscribed = false })
		if ctx.Err() == nil {
			p.log.Warn("no announcements of new blocks; the head is polled until they resume", "endpoint", n.Name, "error",
				contracts.Discreet(err, n.ws))
		}
	}
}

// receive reads announcements until the subscription fails, over its own connection, so that no long response delays
// them.
func (p *Pool) receive(ctx context.Context, n *Node, wait *Backoff) error {
	bounded, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	client, err := ethrpc.DialOptions(bounded, n.ws)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer client.Close()
	heads := make(chan announcement, 64)
	subscription, err := client.EthSubscribe(bounded, heads, "newHeads")
	if err != nil {
		return fmt.Errorf("subscribe to newHeads: %w", err)
	}
	n.health.set(func(h *health) { h.subscribed = true })
	var missing missed
	check := time.NewTicker(subscriptionTimeout / 5)
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-subscription.Err():
			if err == nil {
				err = errors.New("the connection is closed")
			}
			return err
		case h := <-heads:
			wait.Reset()
			missing.announced(h.number)
			p.announce(n, seenBlock{h.number, p.clock.now()})
		case <-check.C:
			if err := missing.check(p.seenHead.Load(), p.clock.now()); err != nil {
				return err
			}
		}
	}
}

type announcement struct{ number uint64 }

func (a *announcement) UnmarshalJSON(b []byte) error {
	var number []byte
	err := object(b, "a block", func(name, value []byte) error {
		if string(name) == "number" {
			number = value
		}
		return nil
	})
	if err == nil {
		a.number, err = quantity(number)
	}
	if err != nil {
		return fmt.Errorf("the number of the announced block cannot be read: %w", err)
	}
	return nil
}

// announce wakes the caller of WaitForHead if the block is higher than those that the endpoint in use has returned or
// is polled for.
func (p *Pool) announce(n *Node, s seenBlock) {
	p.metrics.announcements.WithLabelValues(n.Name).Inc()
	seen, last := p.seenHead.Load(), p.announcedHead.Load()
	if seen != nil && seen.number >= s.number {
		return
	}
	if last != nil && (seen == nil || !seen.at.After(last.at)) { // since the last announcement there was no new head
		since := s.at.Sub(last.at)
		if since < fastPollAgain && (since >= fastPollFor || s.number <= last.number) {
			return
		}
		if since < fastPollFor {
			s.at = last.at
		}
	}
	p.announcedHead.Store(&s)
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// missed detects a subscription that no longer announces the blocks that polls see.
type missed struct {
	last  uint64    // announced, or the head at the start
	since time.Time // when a higher one was first seen; zero for none
}

func (m *missed) announced(number uint64) { *m = missed{last: number} }

func (m *missed) check(seen *seenBlock, now time.Time) error {
	switch {
	case seen == nil:
	case m.last == 0:
		m.last = seen.number
	case seen.number <= m.last:
		m.since = time.Time{}
	case m.since.IsZero():
		m.since = now
	case now.Sub(m.since) >= subscriptionTimeout:
		return fmt.Errorf("it has been silent since block %d, and the head is block %d", m.last, seen.number)
	}
	return nil
}
