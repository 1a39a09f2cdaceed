package workload

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
)

// recordsATransaction is how many records are committed together while a history is written, as in a backfill.
const recordsATransaction = 10_000

// A Log is a chain that is written to Kafka as ingest writes it: whole units, with the cursor in the same transaction.
type Log struct {
	*Chain
	Written uint64 // new records

	client  *kgo.Client
	ctx     context.Context
	pending int // records in the open transaction
	mu      sync.Mutex
	failed  error // error of a record that was handed to the client
}

// OpenLog creates the topics and generates the chain up to the end of its history: first, without writing, the part
// that the log already has, then the missing part. It continues an interrupted run.
func OpenLog(ctx context.Context, kafka chainlog.Config, o Options) (*Log, error) {
	client, err := kgo.NewClient(append(kafka.Options(), kgo.TransactionalID("workload"),
		kgo.ProducerBatchMaxBytes(chainlog.MaxBatchBytes), kgo.MaxBufferedRecords(2*recordsATransaction),
		kgo.ProducerBatchCompression(kgo.Lz4Compression()), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		return nil, fmt.Errorf("create a Kafka producer: %w", err)
	}
	l := &Log{client: client, ctx: ctx}
	if err := l.fill(kafka, o); err != nil {
		client.Close()
		return nil, err
	}
	return l, nil
}

func (l *Log) fill(kafka chainlog.Config, o Options) error {
	if err := chainlog.EnsureTopics(l.ctx, kadm.NewClient(l.client), ChainID, kafka.Topology()); err != nil {
		return err
	}
	if _, _, err := l.client.ProducerID(l.ctx); err != nil { // aborts a transaction that an interrupted run left open
		return fmt.Errorf("begin to write the log: %w", err)
	}
	cursor, err := chainlog.ReadCursor(l.ctx, ChainID, kafka.Options()...)
	if err != nil {
		return err
	}
	have := cursor.GetSeq()
	l.Chain = New(o, have, l.put)
	if err := l.Start(); err != nil {
		return err
	}
	for l.Made < o.Events || l.Seq < have {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		if err := l.Next(); err != nil {
			return err
		}
		if l.pending >= recordsATransaction {
			if err := l.Commit(); err != nil {
				return err
			}
		}
	}
	return l.Commit()
}

func (l *Log) put(r *event.Record) error {
	if l.pending == 0 {
		if err := l.client.BeginTransaction(); err != nil {
			return err
		}
	}
	l.pending++
	l.Written++
	out, err := chainlog.Encode(r)
	if err != nil {
		return err
	}
	l.produce(out)
	return nil
}

func (l *Log) produce(r *kgo.Record) {
	l.client.Produce(l.ctx, r, func(_ *kgo.Record, err error) {
		if err != nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.failed = errors.Join(l.failed, err)
		}
	})
}

// Commit ends the open transaction, if any, with the cursor in it.
func (l *Log) Commit() error {
	if l.pending == 0 {
		return nil
	}
	value, err := proto.Marshal(l.Cursor())
	if err != nil {
		return err
	}
	l.produce(&kgo.Record{Topic: chainlog.CursorTopic(ChainID), Key: strconv.AppendUint(nil, ChainID, 10), Value: value})
	if err := l.client.Flush(l.ctx); err != nil {
		return fmt.Errorf("write the log: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return fmt.Errorf("write the log: %w", l.failed)
	}
	l.pending = 0
	topics := []string{chainlog.LogTopic(ChainID), chainlog.CursorTopic(ChainID)}
	if err := chainlog.EndTransaction(l.ctx, l.client, kgo.TryCommit, topics...); err != nil {
		return fmt.Errorf("commit to the log: %w", err)
	}
	return nil
}

// Close closes the producer.
func (l *Log) Close() { l.client.Close() }
