package engines

import (
	"context"
	"fmt"
	"net"

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
	b, err := newBroker(addr, kgo.Dialer(dial))
	if err != nil {
		return false, err
	}
	defer b.client.Close()
	open, err := b.openTransactions(ctx)
	if err != nil {
		return false, err
	}
	partitions, err := b.partitions(ctx)
	if err != nil {
		return false, err
	}
	found := findings{committed: map[txID]bool{}}
	for _, p := range partitions {
		if err := found.read(ctx, b, p, open); err != nil {
			return false, fmt.Errorf("read %s-%d: %w", p.topic, p.partition, err)
		}
	}
	for _, loose := range found.loose {
		commit := found.committed[loose.tx]
		if err := b.mark(ctx, loose.partition, loose.tx, commit); err != nil {
			return false, fmt.Errorf("end the transaction of producer %d in %s-%d: %w", loose.tx.producer, loose.topic,
				loose.partition.partition, err)
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

// A looseTx is a transaction that lacks its marker in one partition.
type looseTx struct {
	partition
	tx txID
}

// findings is the result of reading the log.
type findings struct {
	loose     []looseTx
	committed map[txID]bool // in some partition
}

// read reads a partition. open are the producers whose transaction the broker knows to be open.
func (f *findings) read(ctx context.Context, b *broker, p partition, open map[int64]bool) error {
	left := make(map[int64]txID) // by producer, which has at most one open transaction
	err := b.batches(ctx, p, func(batch kmsg.RecordBatch) error {
		const transactional, control = 1 << 4, 1 << 5 // bits of a batch's attributes
		tx := txID{batch.ProducerID, batch.ProducerEpoch}
		switch {
		case batch.Attributes&control != 0:
			commit, err := isCommit(batch)
			if err != nil {
				return fmt.Errorf("the marker at offset %d: %w", batch.FirstOffset, err)
			}
			if commit {
				f.committed[tx] = true
			}
			delete(left, tx.producer)
		case batch.Attributes&transactional != 0:
			if _, more := left[tx.producer]; !more {
				left[tx.producer] = tx
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for producer, tx := range left {
		if !open[producer] {
			f.loose = append(f.loose, looseTx{p, tx})
		}
	}
	return nil
}

// isCommit reports whether a marker commits its transaction.
func isCommit(batch kmsg.RecordBatch) (bool, error) {
	var (
		record kmsg.Record
		key    kmsg.ControlRecordKey
	)
	if err := record.ReadFrom(batch.Records); err != nil {
		return false, err
	}
	err := key.ReadFrom(record.Key)
	return key.Type == kmsg.ControlRecordKeyTypeCommit, err
}
