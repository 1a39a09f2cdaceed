package ingest

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff is the pause after an error: 250 ms doubling to 15 s, each shortened
// by up to a half at random, so that two writers do not stay in step.
type backoff struct{ next time.Duration }

const (
	firstPause = 250 * time.Millisecond
	lastPause  = 15 * time.Second
)

func newBackoff() *backoff { return &backoff{firstPause} }

func (b *backoff) reset() { b.next = firstPause }

func (b *backoff) sleep(ctx context.Context) error { return sleep(ctx, b.pause()) }

// pause gives the pause that is due now.
func (b *backoff) pause() time.Duration {
	pause := b.next/2 + rand.N(b.next/2)
	b.next = min(2*b.next, lastPause)
	return pause
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
