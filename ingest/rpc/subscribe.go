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
	// silence is how long a subscription may announce nothing while polls see new blocks, before it is considered dead.
	silence = 15 * time.Second
	// eagerFor is how long after an announcement the announced block is polled more often, first after eagerEvery and then
	// at doubling intervals: the endpoint in use may get it later than the one that announced it.
	eagerFor   = 2 * time.Second
	eagerEvery = 25 * time.Millisecond
	// eagerAgain is how long after an announcement that led to no new head another one leads to such polls again, because
	// each poll is paid for.
	eagerAgain = 15 * time.Second
)

// Rest waits until the head should be read again: when an endpoint announces a block, but not sooner than eagerEvery
// after it last returned, or else after poll.
func (p *Pool) Rest(ctx context.Context, poll time.Duration) (err error) {
	timer := time.NewTimer(p.pause(poll))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.wake:
		if early := eagerEvery - p.clock.now().Sub(p.rested); early > 0 {
			err = p.clock.sleep(ctx, early)
		}
	case <-timer.C:
	}
	p.rested = p.clock.now()
	return err
}

func (p *Pool) pause(poll time.Duration) time.Duration {
	announced, seen := p.announced.Load(), p.seen.Load()
	if announced == nil || seen != nil && seen.number >= announced.number {
		return poll
	}
	since := p.clock.now().Sub(announced.at)
	if since >= eagerFor {
		return poll
	}
	return min(poll, max(since, eagerEvery))
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
	check := time.NewTicker(silence / 5)
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
			p.announce(n, sighting{h.number, p.clock.now()})
		case <-check.C:
			if err := missing.check(p.seen.Load(), p.clock.now()); err != nil {
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

// announce wakes the caller of Rest if the block is higher than those that the endpoint in use has returned or is
// polled for.
func (p *Pool) announce(n *Node, s sighting) {
	p.metrics.announcements.WithLabelValues(n.Name).Inc()
	seen, last := p.seen.Load(), p.announced.Load()
	if seen != nil && seen.number >= s.number {
		return
	}
	if last != nil && (seen == nil || !seen.at.After(last.at)) { // since the last announcement there was no new head
		since := s.at.Sub(last.at)
		if since < eagerAgain && (since >= eagerFor || s.number <= last.number) {
			return
		}
		if since < eagerFor {
			s.at = last.at
		}
	}
	p.announced.Store(&s)
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

func (m *missed) check(seen *sighting, now time.Time) error {
	switch {
	case seen == nil:
	case m.last == 0:
		m.last = seen.number
	case seen.number <= m.last:
		m.since = time.Time{}
	case m.since.IsZero():
		m.since = now
	case now.Sub(m.since) >= silence:
		return fmt.Errorf("it has been silent since block %d, and the head is block %d", m.last, seen.number)
	}
	return nil
}
