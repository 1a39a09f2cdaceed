package pin_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/query/pin"
)

// TestAbandonedQuestion: the engine ends a question whose client has left, and the connection
// is used again.
func TestAbandonedQuestion(t *testing.T) {
	w := newWorld(t)
	w.beforeReorganisation()
	conn, err := w.g.Config.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	p, err := w.Snapshot().At(nil)
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		N uint64 `ch:"n"`
	}
	const long = "SELECT count() AS n FROM numbers(1000000000000) WHERE sipHash64(number) = 0 -- abandoned"
	running := func() (n uint64) {
		if err := conn.QueryRow(t.Context(), "SELECT count() FROM system.processes WHERE query LIKE '%-- abandon' || 'ed'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	ctx, leave := context.WithTimeout(t.Context(), time.Minute)
	defer leave()
	done := make(chan error, 1)
	go func() {
		_, err := pin.Ask[row](ctx, p, long, nil)
		done <- err
	}()
	wait.For(t, "the question runs", func() bool { return running() == 1 })
	left := time.Now()
	leave()
	if err := <-done; err == nil || time.Since(left) > 20*time.Second {
		t.Errorf("the question ended after %s with %v", time.Since(left), err)
	}
	wait.For(t, "the engine has ended it", func() bool { return running() == 0 })
	rows, err := pin.Ask[row](t.Context(), p, "SELECT toUInt64(7) AS n", nil)
	if err != nil || fmt.Sprint(rows) != "[{7}]" {
		t.Errorf("the next question: %v, %v", rows, err)
	}
}
