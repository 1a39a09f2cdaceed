package stack

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Records returns the committed records of a topic, each partition in its order.
func Records(ctx context.Context, brokers []string, topic string) (records []*kgo.Record, err error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, fmt.Errorf("create a reader of %s: %w", topic, err)
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListCommittedOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("read the end of %s: %w", topic, err)
	}
	missing := map[int32]int64{} // ends of the partitions that are not read yet
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			missing[o.Partition] = o.Offset
		}
	})
	for len(missing) > 0 {
		fetches := client.PollFetches(ctx)
		if err := errors.Join(ctx.Err(), fetches.Err()); err != nil {
			return nil, fmt.Errorf("read %s: %w", topic, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			end, waits := missing[r.Partition]
			if waits && r.Offset < end && !r.Attrs.IsControl() {
				records = append(records, r)
			}
			if waits && r.Offset+1 >= end {
				delete(missing, r.Partition)
			}
		})
	}
	return records, nil
}
