package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/deploy/bench"
	"github.com/navlog/navlog/deploy/testkit/wait"
)

const (
	fedDatabase = "fed"
	fedTopic    = "bench.fed"
)

// kafkaEngine times ClickHouse's own Kafka engine: a materialized view that fills the table events from a topic. The
// topic holds the projector's finished rows in RowBinary, one per message, so the engine neither decodes logs nor folds
// nor writes the other tables; the ratio flatters it.
func (e *system) kafkaEngine(ctx context.Context, b *benchmark, rebuilt float64) (err error) {
	var there uint64
	if err := e.Conn.QueryRow(ctx, "SELECT count() FROM system.table_engines WHERE name = 'Kafka'").Scan(&there); err != nil {
		return fmt.Errorf("look for ClickHouse's Kafka engine: %w", err)
	}
	if there == 0 {
		fmt.Println("ClickHouse's Kafka table engine: this build has none, nothing is compared with it")
		return nil
	}
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.DefaultProduceTopic(fedTopic)}, e.Chainlog().Options()...)...)
	if err != nil {
		return err
	}
	defer client.Close()
	adm := kadm.NewClient(client)
	if err := forgetTopic(ctx, adm); err != nil { // left by an interrupted run: the log's broker is kept
		return err
	}
	if _, err := adm.CreateTopic(ctx, 1, 1, nil, fedTopic); err != nil {
		return fmt.Errorf("make the topic %s: %w", fedTopic, err)
	}
	defer func() {
		err = errors.Join(err, e.Conn.Exec(context.WithoutCancel(ctx), "DROP DATABASE IF EXISTS "+fedDatabase+" SYNC"), forgetTopic(context.WithoutCancel(ctx), adm))
	}()
	bench.Say("writing rows for ClickHouse's own Kafka engine")
	rows, err := e.writeRows(ctx, client, b.Fed)
	if err != nil {
		return err
	}
	bench.Say("feeding a table by ClickHouse's own Kafka engine")
	took, err := e.feed(ctx, rows)
	if err != nil {
		return err
	}
	speed := float64(rows) / took.Seconds()
	fmt.Printf("ClickHouse's Kafka table engine: %d ready rows into the table events alone in %.1f s, %.0f rows/s; navlog's rebuild of all tables, %.0f events/s, is %.2f times that\n",
		rows, took.Seconds(), speed, rebuilt, rebuilt/speed)
	return nil
}

func forgetTopic(ctx context.Context, adm *kadm.Client) error {
	_, err := adm.DeleteTopic(ctx, fedTopic)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil
	}
	return err
}

// writeRows writes the first rows of generation 2's events to the topic.
func (e *system) writeRows(ctx context.Context, client *kgo.Client, most int) (written int, err error) {
	answer, err := e.Conn.Query(ctx, fmt.Sprintf("SELECT formatRow('RowBinary', *) FROM %s.events ORDER BY seq LIMIT %d", e.ch.Database(2), most))
	if err != nil {
		return 0, fmt.Errorf("read the rows of events: %w", err)
	}
	defer answer.Close()
	failed := kgo.AbortingFirstErrPromise(client)
	for answer.Next() {
		var row string
		if err := answer.Scan(&row); err != nil {
			return 0, fmt.Errorf("read a row of events: %w", err)
		}
		client.Produce(ctx, kgo.StringRecord(row), failed.Promise())
		written++
	}
	if err := answer.Err(); err != nil {
		return 0, fmt.Errorf("read the rows of events: %w", err)
	}
	if err := failed.Err(); err != nil {
		return 0, fmt.Errorf("write rows to %s: %w", fedTopic, err)
	}
	return written, nil
}

// feed creates the tables, lets the engine read the topic, and returns the time from then until all rows are in the
// table.
func (e *system) feed(ctx context.Context, rows int) (time.Duration, error) {
	if err := e.ch.CreateEvents(ctx, e.Conn, fedDatabase); err != nil {
		return 0, err
	}
	var columns string
	ask := "SELECT arrayStringConcat(groupArray(name || ' ' || type), ', ') FROM (SELECT name, type FROM system.columns WHERE database = '" + fedDatabase + "' AND table = 'events' ORDER BY position)"
	if err := e.Conn.QueryRow(ctx, ask).Scan(&columns); err != nil {
		return 0, fmt.Errorf("read the columns of events: %w", err)
	}
	queue := strings.NewReplacer("{db}", fedDatabase, "{columns}", columns, "{broker}", e.Kafka.Addr, "{topic}", fedTopic).Replace(
		"CREATE TABLE {db}.queue ({columns}) ENGINE = Kafka SETTINGS kafka_broker_list = '{broker}', kafka_topic_list = '{topic}', kafka_group_name = 'bench', " +
			"kafka_format = 'RowBinary', kafka_max_block_size = 200000, kafka_poll_max_batch_size = 65536, kafka_flush_interval_ms = 1000")
	if err := e.Conn.Exec(ctx, queue); err != nil {
		return 0, fmt.Errorf("make a table of ClickHouse's Kafka engine: %w", err)
	}
	began := time.Now()
	if err := e.Conn.Exec(ctx, "CREATE MATERIALIZED VIEW "+fedDatabase+".pump TO "+fedDatabase+".events AS SELECT * FROM "+fedDatabase+".queue"); err != nil {
		return 0, fmt.Errorf("make the view that feeds the table: %w", err)
	}
	bounded, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	var n uint64
	err := wait.Poll(bounded, 50*time.Millisecond, func() (bool, error) {
		err := e.Conn.QueryRow(ctx, "SELECT count() FROM "+fedDatabase+".events").Scan(&n)
		return n >= uint64(rows), err
	})
	if err != nil {
		return 0, fmt.Errorf("ClickHouse's Kafka engine has put %d of %d rows into the table (%w): the reason is in its log, or in system.kafka_consumers", n, rows, err)
	}
	return time.Since(began), nil
}
