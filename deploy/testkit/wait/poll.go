package wait

import (
	"context"
	"net/http"
	"time"
)

// Poll checks repeatedly, with a pause in between, until a condition holds. It returns the error of a failed check, or
// the reason why ctx ended.
func Poll(ctx context.Context, pause time.Duration, holds func() (bool, error)) error {
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

// Answers reports whether a URL responds with 200, for example a program's readiness endpoint.
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
