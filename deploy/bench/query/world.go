package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/deploy/local"
	"github.com/navlog/navlog/projections"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// world is the engines with the data set in them, and the projector at work.
type world struct {
	dir        string
	clickHouse *local.ClickHouse
	postgres   *local.Postgres
	kafka      *local.Kafka
	conn       driver.Conn
	pool       *pgxpool.Pool
	producer   *kgo.Client
	chain      *chain
	log        *slog.Logger
	keys       map[uint32]string // API key by partner
	failed     chan error
	projector  sync.WaitGroup
	stop       context.CancelFunc
}

func (w *world) readModel() readmodel.Config {
	c := readmodel.DefaultConfig()
	c.Addr = w.clickHouse.Addr
	return c
}

func (w *world) kafkaConfig() chainlog.Config {
	c := chainlog.DefaultConfig()
	c.Brokers = []string{w.kafka.Addr}
	return c
}

// open starts the engines in dir, goes on with what is there, and appends what
// is missing of the events. The chain is a function of its seed, so that it is
// made up again to go on with it.
func open(ctx context.Context, dir string, events, users int, log *slog.Logger) (*world, error) {
	ctx, stop := context.WithCancel(ctx)
	w := &world{dir: dir, log: log, failed: make(chan error, 1), keys: map[uint32]string{}, stop: stop}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return w, err
	}
	var err error
	if w.postgres, err = local.StartPostgres(ctx, filepath.Join(dir, "postgres"), 0); err != nil {
		return w, err
	}
	if w.clickHouse, err = local.StartClickHouse(ctx, filepath.Join(dir, "clickhouse"), 0); err != nil {
		return w, err
	}
	if w.kafka, err = local.StartKafka(ctx, filepath.Join(dir, "kafka")); err != nil {
		return w, err
	}
	if w.conn, err = w.readModel().Open(); err != nil {
		return w, err
	}
	if w.pool, err = registry.Open(ctx, registry.Config{URL: w.postgres.URL, MaxConns: 8}); err != nil {
		return w, err
	}
	if err := w.partners(ctx); err != nil {
		return w, err
	}
	if err := w.deliveries(ctx); err != nil {
		return w, err
	}
	return w, w.fill(ctx, events, users)
}

// partners makes one partner for each id that deposits name, and keeps their
// keys beside the data.
func (w *world) partners(ctx context.Context) error {
	file := filepath.Join(w.dir, "keys.json")
	b, err := os.ReadFile(file)
	if err == nil {
		return json.Unmarshal(b, &w.keys)
	}
	q := db.New(w.pool)
	limit := int32(1_000_000)
	for id := uint32(1); id <= partnerCount; id++ {
		if _, err := q.CreatePartnerWithID(ctx, db.CreatePartnerWithIDParams{ID: int64(id), Name: fmt.Sprintf("Partner %d", id)}); err != nil {
			return err
		}
		if err := q.CreateEndpoint(ctx, db.CreateEndpointParams{PartnerID: int64(id), Secret: []byte("sealed")}); err != nil {
			return err
		}
		if _, err := q.SetPartnerRateLimit(ctx, db.SetPartnerRateLimitParams{ID: int64(id), RateLimit: &limit}); err != nil {
			return err
		}
		key := registry.NewAPIKey(true)
		if err := q.CreateKey(ctx, db.CreateKeyParams{PartnerID: int64(id), Hash: registry.HashKey(key), Last4: key[len(key)-4:]}); err != nil {
			return err
		}
		w.keys[id] = key
	}
	if b, err = json.Marshal(w.keys); err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o600)
}

// deliveries writes those of partner 1, the large one, once for a data set: each was
// told at the first attempt, and one in a hundred at the second.
func (w *world) deliveries(ctx context.Context) error {
	mark := filepath.Join(w.dir, "deliveries.loaded")
	if _, err := os.Stat(mark); err == nil {
		return nil
	}
	err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "TRUNCATE delivery, attempt"); err != nil { // of a run that was broken off
			return err
		}
		if _, err := tx.Exec(ctx, `INSERT INTO delivery (event_id, partner_id, sequence, type, body, state, attempts, created_at, due_at, finished_at)
			SELECT gen_random_uuid(), 1, n, 'deposit.referral', convert_to('{"id":"' || n || '","padding":"' || repeat('x', 500) || '"}', 'UTF8'), 'delivered',
			  1 + (n % 100 = 0)::int, to_timestamp($1::bigint + n), to_timestamp($1::bigint + n), to_timestamp($1::bigint + n)
			FROM generate_series(1, $2::bigint) n`, genesisTime, deliveryCount); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO attempt (event_id, number, url, endpoint_version, started_at, duration_ms, status)
			SELECT event_id, number, 'https://partner.example/hook', 1, created_at, 20, CASE WHEN number < attempts THEN 500 ELSE 200 END
			FROM delivery, generate_series(1, attempts) number`)
		return err
	})
	if err == nil {
		_, err = w.pool.Exec(ctx, "VACUUM ANALYZE delivery, attempt")
	}
	if err != nil {
		return fmt.Errorf("write the deliveries of partner 1: %w", err)
	}
	return os.WriteFile(mark, nil, 0o644)
}

// fill brings log and read models to the number of events.
func (w *world) fill(ctx context.Context, events, users int) error {
	var err error
	if w.producer, err = kgo.NewClient(append(w.kafkaConfig().Options(), kgo.ProducerBatchMaxBytes(chainlog.MaxBatchBytes), kgo.ProducerLinger(5*time.Millisecond),
		kgo.MaxBufferedRecords(200_000), kgo.ProducerBatchCompression(kgo.Lz4Compression()), kgo.RecordPartitioner(kgo.ManualPartitioner()))...); err != nil {
		return err
	}
	if err := chainlog.EnsureTopics(ctx, kadm.NewClient(w.producer), chainID, w.kafkaConfig().Topology()); err != nil {
		return err
	}
	var have uint64
	err = chainlog.ReadAfter(ctx, chainID, chainlog.Position{}, func(e chainlog.Entry) error { have = e.Seq; return nil }, w.kafkaConfig().Options()...)
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	w.log.Info("log", "records", have)
	w.chain = newChain(1, events, users, func(r *event.Record) error {
		if r.Seq <= have {
			return nil
		}
		record, err := chainlog.Encode(r)
		if err != nil {
			return err
		}
		w.producer.Produce(ctx, record, func(_ *kgo.Record, err error) {
			if err != nil && ctx.Err() == nil {
				w.fail(fmt.Errorf("produce: %w", err))
			}
		})
		return nil
	})
	logID := sha256.Sum256([]byte("bench"))
	start := time.Now()
	if err := w.chain.start(logID[:16]); err != nil {
		return err
	}
	for made := 0; made < events || w.chain.seq < have; made += eventsPerBlock {
		if err := w.chain.next(); err != nil {
			return err
		}
	}
	if err := w.producer.Flush(ctx); err != nil {
		return err
	}
	w.log.Info("log written", "records", w.chain.seq, "of them new", w.chain.seq-have, "users", w.chain.known, "took", time.Since(start).Round(time.Second), "a second", rate(w.chain.seq-have, start))
	p := projections.New(projections.DefaultConfig(), chainID, w.kafkaConfig(), w.readModel(), w.pool, prometheus.NewRegistry(), w.log.With("program", "project"))
	w.projector.Go(func() {
		if err := p.Run(ctx); err != nil {
			w.fail(err)
		}
	})
	return w.await(ctx)
}

// await waits until the read models hold the whole log and are merged, which is
// what they are a while after a rebuild.
func (w *world) await(ctx context.Context) error {
	start, said := time.Now(), time.Now()
	began := ^uint64(0)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		cursor, merged, err := w.state(ctx)
		if err == nil {
			began = min(began, cursor)
		}
		if err == nil && cursor == w.chain.seq && merged {
			w.log.Info("read models complete", "seq", cursor, "took", time.Since(start).Round(time.Second), "a second", rate(cursor-began, start))
			return nil
		}
		if time.Since(said) > 10*time.Second {
			said = time.Now()
			w.log.Info("filling", "seq", cursor, "of", w.chain.seq, "merged", merged, "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-w.failed:
			return err
		case <-tick.C:
		}
	}
}

// rate is n a second since start.
func rate(n uint64, start time.Time) int { return int(float64(n) / time.Since(start).Seconds()) }

// state is how far the slowest table is, and whether nothing is to be merged.
func (w *world) state(ctx context.Context) (cursor uint64, merged bool, err error) {
	live, err := db.New(w.pool).LiveGeneration(ctx)
	if err != nil {
		return 0, false, err
	}
	database := w.readModel().Database(live.ID)
	for i, table := range readmodel.Tables {
		var last uint64
		if err := w.conn.QueryRow(ctx, "SELECT max(seq) FROM "+database+"."+table).Scan(&last); err != nil {
			return 0, false, err
		}
		if i == 0 || last < cursor {
			cursor = last
		}
	}
	merged, err = projections.Merged(ctx, w.conn, database)
	return cursor, merged, err
}

// live appends a block a second, so that the newest state moves while it is
// asked about.
func (w *world) live(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := w.chain.next(); err != nil {
				w.fail(err)
				return
			}
		}
	}
}

func (w *world) fail(err error) {
	select {
	case w.failed <- err:
	default:
	}
}

func (w *world) close() error {
	var faults []error
	w.stop()
	w.projector.Wait()
	if w.producer != nil {
		w.producer.Close()
	}
	if w.pool != nil {
		w.pool.Close()
	}
	for _, engine := range []io.Closer{closer(w.kafka != nil, func() error { return w.kafka.Close() }),
		closer(w.clickHouse != nil, func() error { return w.clickHouse.Close() }), closer(w.postgres != nil, func() error { return w.postgres.Close() })} {
		faults = append(faults, engine.Close())
	}
	return errors.Join(faults...)
}

type closeFunc func() error

func (f closeFunc) Close() error { return f() }

func closer(started bool, stop func() error) io.Closer {
	if !started {
		return closeFunc(func() error { return nil })
	}
	return closeFunc(stop)
}
