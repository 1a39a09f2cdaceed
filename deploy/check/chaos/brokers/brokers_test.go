package main

import (
	"os"
	"testing"

	"github.com/navlog/navlog/deploy/engines"
)

// `make chaos-brokers ROUNDS=5` kills more.
func TestKilledBrokers(t *testing.T) {
	if err := engines.ApacheKafkaAvailable(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	result, err := Try(t.Context(), 1, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Log(result)
	if err := result.Err(); err != nil {
		t.Error(err)
	}
	if result.Lost != 0 || result.Doubled != 0 || result.Repeated != 0 {
		t.Errorf("no program was killed, and the result is %s", result)
	}
	if result.Kills != brokers+brokers-1 || result.Logs < 100 || result.Events < 20 {
		t.Errorf("the drill did too little: %s", result)
	}
}
