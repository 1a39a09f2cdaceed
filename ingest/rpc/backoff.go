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

// NewBackoff returns a Backoff whose next pause is the shortest.
func NewBackoff() *Backoff { return &Backoff{firstPause} }

// Reset starts over with the shortest pause; call it after a success.
func (b *Backoff) Reset() { b.next = firstPause }

// Sleep waits for the next pause. If ctx ends first, it returns the error of ctx.
func (b *Backoff) Sleep(ctx context.Context) error { return Sleep(ctx, b.Pause()) }

// Pause returns the next pause.
func (b *Backoff) Pause() time.Duration {
	pause := b.next/2 + rand.N(b.next/2)
	b.next = min(2*b.next, lastPause)
	return pause
}

// Sleep waits for d. If ctx ends first, it returns the error of ctx.
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
