// Package poll is how programs wait for a condition. Tests do it by package wait.
package poll

import (
	"context"
	"net/http"
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

var client = &http.Client{Timeout: 10 * time.Second}

// Answers tells whether a URL answers with 200, as the one by which a program says that it is ready.
func Answers(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}
