package rpc

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff is the pause after an error: 250 ms doubling to 15 s, each shortened
// by up to a half at random, so that two writers do not stay in step.
type Backoff struct{ next time.Duration }

const (
	firstPause = 250 * time.Millisecond
	lastPause  = 15 * time.Second
)

// NewBackoff is before the first error.
func NewBackoff() *Backoff { return &Backoff{firstPause} }

// Reset is for after a success.
func (b *Backoff) Reset() { b.next = firstPause }

// Sleep waits for the pause that is due now, or until ctx ends, and gives its error
// then.
func (b *Backoff) Sleep(ctx context.Context) error { return Sleep(ctx, b.Pause()) }

// Pause gives the pause that is due now.
func (b *Backoff) Pause() time.Duration {
	pause := b.next/2 + rand.N(b.next/2)
	b.next = min(2*b.next, lastPause)
	return pause
}

// Sleep waits, or gives the error of ctx when that ends before.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
