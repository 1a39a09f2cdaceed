package ingest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/schemas/chainlog"
)

// turn is an ingest's place among those that would write one log. They are a consumer
// group on the cursor's one partition: who has it writes, the others wait. Kafka gives
// it to another one when its holder leaves, or says nothing for chain.takeOver. It
// keeps nobody from writing who thinks that it is his turn still; fencing does that.
// It keeps those who wait from fencing the one who writes.
type turn struct {
	client *kgo.Client

	mu      sync.Mutex
	held    context.Context // ends with the turn; nil while it is another one's
	end     context.CancelFunc
	working sync.WaitGroup // what holds the turn
	came    chan struct{}  // closed when it comes
}

// errTurnLost says that another ingest has the turn now.
var errTurnLost = errors.New("another ingest has the turn to write")

// line enters the group.
func (i *Ingest) line(ctx context.Context) (*turn, error) {
	t := &turn{came: make(chan struct{})}
	topic := chainlog.CursorTopic(i.config.ID)
	lost := func(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
		if len(parts[topic]) > 0 {
			t.lose()
		}
	}
	client, err := kgo.NewClient(append(i.kafka.Options(),
		kgo.ConsumerGroup(fmt.Sprintf("navlog-ingest-%d", i.config.ID)),
		kgo.ConsumeTopics(topic),
		kgo.DisableAutoCommit(),
		kgo.SessionTimeout(i.config.TakeOver), kgo.HeartbeatInterval(i.config.TakeOver/6),
		kgo.RebalanceTimeout(commitTimeout+startTimeout),
		kgo.Balancers(kgo.CooperativeStickyBalancer()), // who has the turn keeps it when others come
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
			if len(parts[topic]) > 0 {
				t.take(ctx)
			}
		}),
		kgo.OnPartitionsRevoked(lost), kgo.OnPartitionsLost(lost),
	)...)
	if err != nil {
		return nil, fmt.Errorf("make the Kafka client of the group of ingests: %w", err)
	}
	client.PauseFetchTopics(topic) // the place in the group is all that is wanted of it
	t.client = client
	return t, nil
}

// watch tells what keeps this ingest from its place in the group, until ctx ends.
func (t *turn) watch(ctx context.Context, tell func(error)) {
	for ctx.Err() == nil {
		t.client.PollFetches(ctx).EachError(func(_ string, _ int32, err error) {
			if ctx.Err() == nil {
				tell(err)
			}
		})
	}
}

func (t *turn) take(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held == nil {
		t.held, t.end = context.WithCancel(ctx)
		close(t.came)
	}
}

// lose ends the turn, and returns when what held it has ended: only then the group
// gives it to another one.
func (t *turn) lose() {
	t.mu.Lock()
	if t.held != nil {
		t.end()
		t.held, t.came = nil, make(chan struct{})
	}
	t.mu.Unlock()
	t.working.Wait()
}

// wait waits for the turn. While it is held, lasts does not end; whoever has it calls
// done when he has stopped.
func (t *turn) wait(ctx context.Context) (lasts context.Context, done func(), err error) {
	for {
		t.mu.Lock()
		held, came := t.held, t.came
		if held != nil {
			t.working.Add(1)
			t.mu.Unlock()
			return held, t.working.Done, nil
		}
		t.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-came:
		}
	}
}

// leave gives the turn to the next one. What held it has ended.
func (t *turn) leave() {
	bounded, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	_ = t.client.LeaveGroupContext(bounded) // where it cannot be said, chain.takeOver says it
	t.client.Close()
}

// leaveTimeout bounds how long the end of a program waits for a broker.
const leaveTimeout = 2 * time.Second
