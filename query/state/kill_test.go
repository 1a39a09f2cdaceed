package state_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/query/readtest"
)

// TestAbandonedQuery: the engine ends a query whose client has disconnected, and the connection is reused.
func TestAbandonedQuery(t *testing.T) {
	w := readtest.NewWorld(t, enginetest.ClickHouse(t))
	conn, err := w.Gen.Config.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	source := w.BeforeReorganisation().Source
	type row struct {
		N uint64 `ch:"n"`
	}
	const long = "SELECT count() AS n FROM numbers(1000000000000) WHERE sipHash64(number) = 0 -- abandoned"
	running := func() (n uint64) {
		if err := conn.QueryRow(t.Context(),
			"SELECT count() FROM system.processes WHERE query LIKE '%-- abandon' || 'ed'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	ctx, leave := context.WithTimeout(t.Context(), time.Minute)
	defer leave()
	done := make(chan error, 1)
	go func() {
		var rows []row
		done <- source.Select(ctx, &rows, long, nil)
	}()
	wait.For(t, "the query runs", func() bool { return running() == 1 })
	left := time.Now()
	leave()
	if err := <-done; err == nil || time.Since(left) > 20*time.Second {
		t.Errorf("the query ended after %s with %v", time.Since(left), err)
	}
	wait.For(t, "the engine has ended it", func() bool { return running() == 0 })
	var rows []row
	if err := source.Select(t.Context(), &rows, "SELECT toUInt64(7) AS n", nil); err != nil ||
		fmt.Sprint(rows) != "[{7}]" {
		t.Errorf("the next query: %v, %v", rows, err)
	}
}
