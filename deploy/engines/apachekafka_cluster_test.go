package engines

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/deploy/testkit/wait"
)

// Three brokers keep acknowledging after the death of one, and stop after that of a second one. A restarted broker
// catches up.
func TestApacheKafkaCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("starts five brokers")
	}
	needApacheKafka(t)
	c, err := StartApacheKafkaCluster(t.Context(), t.TempDir(), 3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	// Without idempotence a write whose outcome is unknown can be given a time limit.
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Addrs()...), kgo.DefaultProduceTopic("t"), kgo.DisableIdempotentWrite())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if made, err := kadm.NewClient(client).CreateTopic(t.Context(), 1, 3, nil, "t"); err != nil || made.Err != nil {
		t.Fatal(err, made.Err)
	}
	write := func(ctx context.Context) error {
		return client.ProduceSync(ctx, kgo.StringRecord("x")).FirstErr()
	}
	leader, err := c.Controller(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.Brokers[leader].Kill()
	if err := write(t.Context()); err != nil {
		t.Errorf("without the active controller a write fails: %v", err)
	}
	other := (leader + 1) % 3
	c.Brokers[other].Kill()
	short, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if err := write(short); err == nil {
		t.Error("one broker of three acknowledges a write")
	}
	if err := c.InSync(t.Context()); err == nil {
		t.Error("one broker of three is in sync with the dead ones")
	}
	restarted := make(chan error, 2)
	for _, i := range []int{leader, other} {
		go func() { restarted <- c.Brokers[i].Restart(t.Context()) }()
	}
	for range 2 {
		if err := <-restarted; err != nil {
			t.Fatal(err)
		}
	}
	wait.Until(t, func() error { return c.InSync(t.Context()) })
	wait.Until(t, func() error { // the first call creates the topic of the transactions
		i, err := c.Coordinator(t.Context(), "anyone")
		if err == nil && (i < 0 || i > 2) {
			err = fmt.Errorf("the coordinator is broker %d", i)
		}
		return err
	})
}
