package engines

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A partition of a topic, which is identified by name and id: a topic that is recreated under an old name is a
// different topic.
type partition struct {
	topic     string
	id        [16]byte
	partition int32
}

// A broker is the only broker of the cluster, accessed with kadm, and to fetch also with plain requests, because heal
// needs what a consumer does not return.
type broker struct {
	*kadm.Client
	client *kgo.Client
}

func newBroker(addr string, opts ...kgo.Opt) (*broker, error) {
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(addr))...)
	if err != nil {
		return nil, err
	}
	return &broker{kadm.NewClient(client), client}, nil
}

func (b *broker) openTransactions(ctx context.Context) (map[int64]bool, error) {
	listed, err := b.ListTransactions(ctx, nil, []string{"Ongoing"})
	if err != nil {
		return nil, fmt.Errorf("list the open transactions: %w", err)
	}
	open := make(map[int64]bool)
	for _, tx := range listed {
		open[tx.ProducerID] = true
	}
	return open, nil
}

func (b *broker) partitions(ctx context.Context) ([]partition, error) {
	cluster, err := b.Metadata(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the topics: %w", err)
	}
	var all []partition
	for _, t := range cluster.Topics.Sorted() {
		for _, p := range t.Partitions.Numbers() {
			all = append(all, partition{t.Topic, t.ID, p})
		}
	}
	return all, nil
}

// batches calls see for each batch of a partition.
func (b *broker) batches(ctx context.Context, p partition, see func(kmsg.RecordBatch) error) error {
	from, err := b.start(ctx, p)
	if err != nil {
		return err
	}
	for {
		chunk, err := b.fetch(ctx, p, from)
		if err != nil {
			return err
		}
		batches, err := readBatches(chunk.RecordBatches)
		if err != nil || len(batches) == 0 {
			return err
		}
		for _, batch := range batches {
			if err := see(batch); err != nil {
				return err
			}
			from = batch.FirstOffset + int64(batch.LastOffsetDelta) + 1
		}
	}
}

// fetch reads a partition as it is, including uncommitted records and markers.
func (b *broker) fetch(ctx context.Context, p partition, offset int64) (*kmsg.FetchResponseTopicPartition, error) {
	part := kmsg.NewFetchRequestTopicPartition()
	part.Partition, part.FetchOffset, part.PartitionMaxBytes = p.partition, offset, 8<<20
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = p.topic, p.id
	topic.Partitions = append(topic.Partitions, part)
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes = 8 << 20
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(ctx, b.client.Broker(0))
	if err != nil {
		return nil, err
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return nil, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return nil, errors.New("the response does not contain the requested partition")
	}
	got := &resp.Topics[0].Partitions[0]
	return got, kerr.ErrorForCode(got.ErrorCode)
}

// readBatches parses the batches, but not their records. The last one may be truncated, as fetched bytes can be.
func readBatches(raw []byte) ([]kmsg.RecordBatch, error) {
	var all []kmsg.RecordBatch
	for len(raw) >= 12 {
		size := 12 + int(binary.BigEndian.Uint32(raw[8:])) // 12 for the offset and the length itself
		if size > len(raw) {
			break
		}
		var batch kmsg.RecordBatch
		if err := batch.ReadFrom(raw[:size]); err != nil {
			return nil, err
		}
		all, raw = append(all, batch), raw[size:]
	}
	return all, nil
}

// start returns a partition's first offset: earlier records may have been deleted.
func (b *broker) start(ctx context.Context, p partition) (int64, error) {
	listed, err := b.ListStartOffsets(ctx, p.topic)
	if err != nil {
		return 0, err
	}
	found, ok := listed.Lookup(p.topic, p.partition)
	if !ok {
		return 0, errors.New("the response does not contain the requested partition")
	}
	return found.Offset, found.Err
}

// mark writes the marker that ends a transaction in one partition.
func (b *broker) mark(ctx context.Context, p partition, tx txID, commit bool) error {
	marker := kadm.TxnMarkers{ProducerID: tx.producer, ProducerEpoch: tx.epoch, Commit: commit, Topics: kadm.TopicsSet{}}
	marker.Topics.Add(p.topic, p.partition)
	written, err := b.WriteTxnMarkers(ctx, marker)
	written.EachPartition(func(r kadm.TxnMarkersPartitionResponse) { err = errors.Join(err, r.Err) })
	return err
}
