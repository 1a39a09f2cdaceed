package engines

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A transaction's records are in the log from the moment they are sent; a marker after them, in each of its partitions,
// says how it ended. kfake writes no markers for the transactions that were open when it died: it only treats them as
// aborted until its next restart. This causes three problems. What the same producer commits next stays invisible,
// because it looks like a part of the aborted transaction. After another crash the aborted records become visible,
// because the producer's next marker says "committed". And a crash between the markers of one commit leaves a
// transaction that is committed in only some partitions.
//
// heal writes the missing markers. It reads each partition and collects the transactions whose data is not followed by
// a marker. It skips those that the broker knows to be open (after a graceful stop it remembers them, and ends them
// itself), commits those that are committed in another partition, and aborts the rest. A transaction is identified by
// its producer's id and epoch: the epoch is raised at each end (KIP-890) if broker and client use EndTxn version 5 or
// later, which kfake and franz-go do.
//
// A completed commit is correct on disk but not yet in the broker's memory, which still considers the transaction
// aborted. heal reports this, and the broker must then be restarted to read its log again.
func heal(
	ctx context.Context, addr string, dial func(context.Context, string, string) (net.Conn, error),
) (again bool, err error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.Dialer(dial))
	if err != nil {
		return false, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	listed, err := admin.ListTransactions(ctx, nil, []string{"Ongoing"})
	if err != nil {
		return false, fmt.Errorf("list the open transactions: %w", err)
	}
	found := findings{left: map[partOf]txID{}, committed: map[txID]bool{}}
	if err := found.read(ctx, admin, kgo.SeedBrokers(addr), kgo.Dialer(dial)); err != nil {
		return false, fmt.Errorf("read the log: %w", err)
	}
	for _, tx := range listed {
		for part := range found.left {
			if part.producer == tx.ProducerID {
				delete(found.left, part)
			}
		}
	}
	for part, tx := range found.left {
		commit := found.committed[tx]
		marker := kadm.TxnMarkers{ProducerID: tx.producer, ProducerEpoch: tx.epoch, Commit: commit, Topics: kadm.TopicsSet{}}
		marker.Topics.Add(part.topic, part.partition)
		written, err := admin.WriteTxnMarkers(ctx, marker)
		written.EachPartition(func(r kadm.TxnMarkersPartitionResponse) { err = errors.Join(err, r.Err) })
		if err != nil {
			return false, fmt.Errorf("end the transaction of producer %d in %s-%d: %w", tx.producer, part.topic,
				part.partition, err)
		}
		again = again || commit
	}
	return again, nil
}

// A txID identifies a transaction.
type txID struct {
	producer int64
	epoch    int16
}

// A partOf is where a producer, which has at most one open transaction, has written.
type partOf struct {
	topic     string
	partition int32
	producer  int64
}

// findings is the result of reading the log.
type findings struct {
	left      map[partOf]txID // transactions that lack their marker there
	committed map[txID]bool   // in some partition
}

// read reads all partitions as they are, including uncommitted records and markers.
func (f *findings) read(ctx context.Context, admin *kadm.Client, options ...kgo.Opt) error {
	starts, err := admin.ListStartOffsets(ctx)
	if err != nil {
		return err
	}
	ends, err := admin.ListEndOffsets(ctx)
	if err != nil {
		return err
	}
	type place struct {
		topic     string
		partition int32
	}
	missing, from := map[place]int64{}, map[string]map[int32]kgo.Offset{} // ends, and starts, of what is not read yet
	ends.Each(func(end kadm.ListedOffset) {
		start, _ := starts.Lookup(end.Topic, end.Partition)
		if err = errors.Join(err, start.Err, end.Err); end.Offset > start.Offset {
			missing[place{end.Topic, end.Partition}] = end.Offset
			if from[end.Topic] == nil {
				from[end.Topic] = map[int32]kgo.Offset{}
			}
			from[end.Topic][end.Partition] = kgo.NewOffset().At(start.Offset)
		}
	})
	if err != nil || len(missing) == 0 {
		return err
	}
	client, err := kgo.NewClient(append(options, kgo.ConsumePartitions(from), kgo.KeepControlRecords(),
		kgo.FetchIsolationLevel(kgo.ReadUncommitted()))...)
	if err != nil {
		return err
	}
	defer client.Close()
	for len(missing) > 0 {
		fetches := client.PollFetches(ctx)
		if err := errors.Join(ctx.Err(), fetches.Err()); err != nil {
			return err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			err = errors.Join(err, f.see(r))
			if at := (place{r.Topic, r.Partition}); r.Offset+1 >= missing[at] {
				delete(missing, at)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// see notes a record, which may be a marker.
func (f *findings) see(r *kgo.Record) error {
	part, tx := partOf{r.Topic, r.Partition, r.ProducerID}, txID{r.ProducerID, r.ProducerEpoch}
	switch {
	case r.Attrs.IsControl():
		var key kmsg.ControlRecordKey
		if err := key.ReadFrom(r.Key); err != nil {
			return fmt.Errorf("the marker at offset %d of %s-%d: %w", r.Offset, r.Topic, r.Partition, err)
		}
		if key.Type == kmsg.ControlRecordKeyTypeCommit {
			f.committed[tx] = true
		}
		delete(f.left, part)
	case r.Attrs.IsTransactional():
		if _, more := f.left[part]; !more {
			f.left[part] = tx
		}
	}
	return nil
}
