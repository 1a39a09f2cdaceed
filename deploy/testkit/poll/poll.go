// Package poll is how programs wait for a condition. Tests do it by package wait.
package poll

import (
	"context"
	"time"
)

// Until asks whether a condition holds, with a pause after each answer, until it does. It returns what the condition could
// not be told for, and why ctx ended, where that came first.
func Until(ctx context.Context, pause time.Duration, holds func() (bool, error)) error {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		if ok, err := holds(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
