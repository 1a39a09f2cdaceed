package readmodel_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"
)

// TestGivenUpQuestions: questions whose context ends at any moment of them do
// the server no harm, and the next question is answered.
func TestGivenUpQuestions(t *testing.T) {
	conn, err := config(t).Open()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	rng := rand.New(rand.NewPCG(1, 1))
	given := 0
	for i := range 600 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(3000))*time.Microsecond)
		if i%2 == 0 {
			err = conn.Ping(ctx)
		} else {
			var n uint64
			err = conn.QueryRow(ctx, "SELECT max(number) FROM numbers(100000)").Scan(&n)
		}
		cancel()
		if err != nil {
			given++
		}
	}
	if given == 0 {
		t.Error("every question was answered in time: the test proves nothing")
	}
	var n uint64
	if err := conn.QueryRow(t.Context(), "SELECT count() FROM numbers(7)").Scan(&n); err != nil || n != 7 {
		t.Fatalf("after %d questions that were given up the server says %d, %v", given, n, err)
	}
}
