package histories_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/projections"
)

// A follower runs the projectors of a history one after the other, because most of them die.
type follower struct {
	h    *history
	rng  *rand.Rand
	over chan struct{} // closed when it has ended
	err  error         // read after over is closed

	mu      sync.Mutex
	it      *projections.Projections
	door    *engineProxy
	rewrite bool          // the door shuts while a reorganisation is written
	deaths  int           // still to come, wherever the projector is then
	renew   chan struct{} // shuts the current one down gracefully
	crashes int
	inside  int // deaths while a reorganisation was written
}

// follow starts a follower that ends with ctx.
func (h *history) follow(ctx context.Context, rng *rand.Rand) *follower {
	f := &follower{h: h, rng: rng, over: make(chan struct{}), renew: make(chan struct{}, 1)}
	go func() {
		defer close(f.over)
		for ctx.Err() == nil && f.err == nil {
			f.err = f.life(ctx)
		}
	}()
	return f
}

// life runs one projector until it ends.
func (f *follower) life(ctx context.Context) error {
	d, err := openDoor(f.h.clickHouse, f.fate())
	if err != nil {
		return err
	}
	defer d.close()
	config := projections.DefaultConfig()
	config.MaxRows = 1 << f.rng.IntN(10) // units are batched up to that many records
	through := f.h.clickhouse
	through.Addr = d.addr()
	p := projections.New(config, f.h.chainID, f.h.kafka, through, f.h.pool, prometheus.NewRegistry(), f.h.said.log())
	running := start(p)
	f.mu.Lock()
	f.it, f.door, f.rewrite = p, d, false
	f.mu.Unlock()
	select {
	case <-ctx.Done():
		return running.stop()
	case <-f.renew:
		return running.stop()
	case <-d.shut:
		_ = running.stop() // it is dead, so its error does not matter
	case <-running.done:
		select {
		case <-d.shut:
		default:
			return fmt.Errorf("the projector ended: %w", running.err)
		}
	}
	f.mu.Lock()
	f.crashes++
	if f.rewrite {
		f.inside++
	}
	f.mu.Unlock()
	f.h.untilAsked(ctx, readers) // no immediate repair, so that readers see the state that is left
	return nil
}

// fate returns after how many bytes the next projector dies, or -1 for never. It may die at its first bytes or in
// mid-stream.
func (f *follower) fate() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.deaths == 0 {
		return -1
	}
	f.deaths--
	return f.rng.Int64N(1 << (8 + f.rng.IntN(12)))
}

// expect lets that many of the next projectors die. If deaths is positive or renew is set, the current one is shut down
// gracefully first.
func (f *follower) expect(deaths int, renew bool) {
	f.mu.Lock()
	f.deaths = deaths
	f.mu.Unlock()
	if renew || deaths > 0 {
		select {
		case f.renew <- struct{}{}:
		default: // a shutdown is already requested
		}
	}
}

// killAfter lets the current projector die after that many more bytes, that is, while it writes the next reorganisation.
func (f *follower) killAfter(bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.door != nil {
		f.rewrite = true
		f.door.allow(bytes)
	}
}

// cancelKill cancels a planned kill that has not happened.
func (f *follower) cancelKill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.door != nil && f.rewrite {
		f.rewrite = false
		f.door.allow(-1)
	}
}

// seq returns the seq of the generation that is furthest ahead.
func (f *follower) seq() (seq uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.it == nil {
		return 0
	}
	s := f.it.Status()
	for _, one := range append([]projections.Status{s}, s.Others...) {
		seq = max(seq, one.Seq)
	}
	return seq
}

// reaches waits until some generation has reached a seq.
func (f *follower) reaches(ctx context.Context, seq uint64) error {
	return f.until(ctx, func() (bool, error) { return f.seq() >= seq, nil })
}

// until waits for a condition, as long as the follower runs.
func (f *follower) until(ctx context.Context, condition func() (bool, error)) error {
	err := wait.Poll(ctx, 10*time.Millisecond, func() (bool, error) {
		if done, err := condition(); done || err != nil {
			return done, err
		}
		select {
		case <-f.over:
			return false, fmt.Errorf("no projector follows the log: %w", f.err)
		default:
			return false, nil
		}
	})
	if err != nil && ctx.Err() != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.it != nil {
			err = fmt.Errorf("%w; the projector says %+v", err, f.it.Status())
		}
	}
	return err
}

// A program runs in this process.
type program[P interface{ Run(context.Context) error }] struct {
	it     P
	cancel context.CancelFunc
	done   chan struct{}
	err    error // result of Run; read after done is closed
}

func start[P interface{ Run(context.Context) error }](it P) *program[P] {
	ctx, cancel := context.WithCancel(context.Background())
	p := &program[P]{it: it, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = it.Run(ctx)
	}()
	return p
}

func (p *program[P]) stop() error {
	p.cancel()
	<-p.done
	return p.err
}

// A tail keeps the last log lines of a history's programs, except those about rejected requests.
type tail struct {
	mu   sync.Mutex
	last []string
}

func (l *tail) log() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *tail) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("status=503")) {
		return len(b), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = append(l.last, strings.TrimSpace(string(b)))
	if over := len(l.last) - 30; over > 0 {
		l.last = l.last[over:]
	}
	return len(b), nil
}

func (l *tail) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.last)
}
