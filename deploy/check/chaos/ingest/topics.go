package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
)

// committed reads every committed record of a topic, each partition in its order.
func committed(ctx context.Context, brokers []string, topic string) (records []*kgo.Record, err error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, fmt.Errorf("make a reader of %s: %w", topic, err)
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListCommittedOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("read the end of %s: %w", topic, err)
	}
	missing := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			missing[o.Partition] = o.Offset
		}
	})
	for len(missing) > 0 {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("read %s: %w", topic, ctx.Err())
		}
		fetches.EachRecord(func(k *kgo.Record) {
			if !k.Attrs.IsControl() {
				records = append(records, k)
			}
			if end, waits := missing[k.Partition]; waits && k.Offset+1 >= end {
				delete(missing, k.Partition)
			}
		})
	}
	return records, nil
}

func newestCursor(ctx context.Context, brokers []string, chainID uint64) (*event.Cursor, error) {
	records, err := committed(ctx, brokers, chainlog.CursorTopic(chainID))
	if err != nil || len(records) == 0 {
		return nil, err
	}
	c := new(event.Cursor)
	if err := proto.Unmarshal(records[len(records)-1].Value, c); err != nil {
		return nil, fmt.Errorf("the newest cursor is invalid: %w", err)
	}
	return c, nil
}
