package histories_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/histories"
	"github.com/navlog/navlog/deploy/testkit/oracle"
	"github.com/navlog/navlog/deploy/testkit/partners"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// A lane plays histories one after the other: it holds what is expensive to create and independent of any history.
type lane struct {
	clickHouse string
	kafka      chainlog.Config
	producer   *kgo.Client
	pool       *pgxpool.Pool
	partners   []oracle.Partner
}

// newLane creates the n-th lane on engines that all lanes share.
func newLane(t *testing.T, n int, brokers []string) *lane {
	t.Helper()
	l := &lane{clickHouse: enginetest.ClickHouse(t), kafka: chainlog.DefaultConfig()}
	l.kafka.Brokers = brokers
	var err error
	l.producer, err = kgo.NewClient(append([]kgo.Opt{kgo.TransactionalID(fmt.Sprint("lane-", n)),
		kgo.RecordPartitioner(kgo.ManualPartitioner())}, l.kafka.Options()...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.producer.Close)
	pg := registry.DefaultConfig()
	pg.URL = enginetest.Postgres(t)
	if l.pool, err = registry.Open(t.Context(), pg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.pool.Close)
	for id := uint32(1); id <= 2; id++ { // the histories name a third one, which navlog does not know
		made, err := partners.Make(t.Context(), l.pool, int64(id), fmt.Sprint("Partner ", id), "")
		if err != nil {
			t.Fatal(err)
		}
		l.partners = append(l.partners, oracle.Partner{ID: id, Name: made.Name, APIKey: made.APIKey})
	}
	return l
}

// topics creates the topics of a chain.
func (l *lane) topics(ctx context.Context, chainID uint64) error {
	return chainlog.EnsureTopics(ctx, kadm.NewClient(l.producer), chainID, l.kafka.Topology())
}

// append writes a unit to the log as ingest does: its records and the cursor in one transaction. If it fails, no
// transaction stays open: the lane's next history has the same producer.
func (l *lane) append(ctx context.Context, unit []*event.Record, cursor *event.Cursor) error {
	var all []*kgo.Record
	for _, r := range unit {
		out, err := chainlog.Encode(r)
		if err != nil {
			return err
		}
		all = append(all, out)
	}
	value, err := proto.Marshal(cursor)
	if err != nil {
		return err
	}
	chainID := cursor.GetChainId()
	all = append(all, &kgo.Record{Topic: chainlog.CursorTopic(chainID), Key: strconv.AppendUint(nil, chainID, 10),
		Value: value})
	if err := l.producer.BeginTransaction(); err != nil {
		return err
	}
	err = l.producer.ProduceSync(ctx, all...).FirstErr()
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		return errors.Join(err, l.producer.AbortBufferedRecords(ctx),
			chainlog.EndTransaction(ctx, l.producer, kgo.TryAbort))
	}
	return chainlog.EndTransaction(ctx, l.producer, kgo.TryCommit, all[0].Topic, chainlog.CursorTopic(chainID))
}

// TestAppendAfterAFailure: a history that runs out of time does not make the next ones of its lane fail.
func TestAppendAfterAFailure(t *testing.T) {
	l := newLane(t, 0, enginetest.Kafka(t))
	s := histories.New(1)
	s.Vault(histories.VaultAt(0))
	if err := l.topics(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.append(over, s.Records, s.Cursor(s.Seq())); err == nil {
		t.Error("a unit was appended after the time was over")
	}
	if err := l.append(t.Context(), s.Records, s.Cursor(s.Seq())); err != nil {
		t.Errorf("append after a failure: %v", err)
	}
}

// forget removes everything that a history left.
func (l *lane) forget(ctx context.Context, chainID uint64, ch readmodel.Config) error {
	conn, err := ch.Open("")
	if err != nil {
		return err
	}
	defer conn.Close()
	generations, err := db.New(l.pool).ListGenerations(ctx)
	if err != nil {
		return err
	}
	for _, g := range generations {
		if err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+ch.Database(g.ID)+" SYNC"); err != nil {
			return err
		}
	}
	if _, err := l.pool.Exec(ctx, "DELETE FROM generation"); err != nil {
		return err
	}
	_, err = kadm.NewClient(l.producer).DeleteTopics(ctx, chainlog.LogTopic(chainID), chainlog.CursorTopic(chainID))
	return err
}
