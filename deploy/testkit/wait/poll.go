package wait

import (
	"bytes"
	"context"
	"fmt"
	"io"
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

// Answers returns nil if a URL responds with 200, for example a program's readiness endpoint. Otherwise the error
// contains the response, in which a program says why it is not ready.
func Answers(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	const enough = 2000
	body, _ := io.ReadAll(io.LimitReader(response.Body, enough))
	return fmt.Errorf("%s responds with %s: %s", url, response.Status, bytes.TrimSpace(body))
}
