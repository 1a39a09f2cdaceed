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
	conn, err := config(t).Open("")
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

// TestPatientConnection: what takes long is bounded in memory like any question of
// the writer, and not in time.
func TestPatientConnection(t *testing.T) {
	conn, err := config(t).OpenPatient("")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for name, want := range map[string]string{"max_execution_time": "0", "max_memory_usage": "2147483648"} {
		var value string
		if err := conn.QueryRow(t.Context(), "SELECT value FROM system.settings WHERE name = '"+name+"'").Scan(&value); err != nil || value != want {
			t.Errorf("%s is %q, %v; want %s", name, value, err, want)
		}
	}
}
