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

	"github.com/navlog/navlog/deploy/testkit/poll"
	"github.com/navlog/navlog/projections"
)

// A follower is who follows the log of a history: one projector after the other, for most of them die.
type follower struct {
	h    *history
	rng  *rand.Rand
	over chan struct{} // closed when it has ended
	err  error         // read after over

	mu      sync.Mutex
	it      *projections.Projections
	door    *door
	rewrite bool          // the door shuts while a reorganisation is written
	deaths  int           // that are still to come, wherever the projector is then
	renew   chan struct{} // ends the present one as an operator would
	crashes int
	inside  int // of them while a reorganisation was written
}

// follow starts one that ends with ctx.
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

// life is that of one projector.
func (f *follower) life(ctx context.Context) error {
	d, err := openDoor(f.h.clickHouse, f.fate())
	if err != nil {
		return err
	}
	defer d.close()
	config := projections.DefaultConfig()
	config.MaxRows = 1 << f.rng.IntN(10) // units are cut together up to so many records
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
		_ = running.stop() // dead is dead, whatever it would say
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
	f.h.untilAsked(ctx, readers) // nobody repairs anything at once: readers find what is left
	return nil
}

// fate is after how many bytes the next projector dies, negative for never: at the first words as well as in mid-stream.
func (f *follower) fate() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.deaths == 0 {
		return -1
	}
	f.deaths--
	return f.rng.Int64N(1 << (8 + f.rng.IntN(12)))
}

// expect lets so many projectors die from now on, and the present one end in peace first where that is wanted.
func (f *follower) expect(deaths int, renew bool) {
	f.mu.Lock()
	f.deaths = deaths
	f.mu.Unlock()
	if renew || deaths > 0 {
		select {
		case f.renew <- struct{}{}:
		default: // it is to end already
		}
	}
}

// strike lets the present projector die after so many bytes more, which is while it writes the reorganisation that comes.
func (f *follower) strike(bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.door != nil {
		f.rewrite = true
		f.door.allow(bytes)
	}
}

// spare takes back what strike said, where nobody has died of it.
func (f *follower) spare() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.door != nil && f.rewrite {
		f.rewrite = false
		f.door.allow(-1)
	}
}

// seq is how far the generation is that is the furthest.
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

// reaches waits until some generation has a seq.
func (f *follower) reaches(ctx context.Context, seq uint64) error {
	return f.until(ctx, func() (bool, error) { return f.seq() >= seq, nil })
}

// until waits for a condition, as long as projectors follow the log.
func (f *follower) until(ctx context.Context, condition func() (bool, error)) error {
	err := poll.Until(ctx, 10*time.Millisecond, func() (bool, error) {
		if done, err := condition(); done || err != nil {
			return done, err
		}
		select {
		case <-f.over:
			return false, fmt.Errorf("nobody follows the log: %w", f.err)
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
	err    error // what Run returned; read after done
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

// A tail is the last lines that the programs of a history have logged, without those about requests that were sent away.
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
