package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/deploy/bench"
	"github.com/navlog/navlog/deploy/bench/workload"
	"github.com/navlog/navlog/deploy/testkit/partners"
	"github.com/navlog/navlog/deploy/testkit/stack"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry/db"
)

// deliveryCount is the number of deliveries of the big partner.
const deliveryCount = 1_000_000

// world holds the engines with the data set, and the running `navlog project`.
type world struct {
	options
	*stack.Stack
	dir       string
	chain     *workload.Log
	writing   sync.Mutex
	known     atomic.Int64      // number of users
	block     atomic.Uint64     // newest block written
	keys      map[uint32]string // API key by partner
	failed    chan error        // error of the chain
	projector *stack.Process
}

// open starts the engines, keeps the data that is there, and appends the missing events.
func open(ctx context.Context, o options) (*world, error) {
	// The name includes the versions of the tables and the chain, because a change of either makes another data set.
	dir := filepath.Join(o.Dir, fmt.Sprintf("%d-%d-%d-%s", o.Events, o.users(), workload.Version, readmodel.Schema()))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	started, err := stack.Start(ctx, stack.In(dir))
	if err != nil {
		return nil, err
	}
	w := &world{options: o, Stack: started, dir: dir, failed: make(chan error, 1), keys: map[uint32]string{}}
	if err := w.Connect(ctx); err != nil {
		return w, err
	}
	if err := w.partners(ctx); err != nil {
		return w, err
	}
	if err := w.deliveries(ctx); err != nil {
		return w, err
	}
	return w, w.fill(ctx)
}

// partners creates one partner for each id that deposits name, and stores their keys next to the data.
func (w *world) partners(ctx context.Context) error {
	file := filepath.Join(w.dir, "keys.json")
	b, err := os.ReadFile(file)
	if err == nil {
		return json.Unmarshal(b, &w.keys)
	}
	q := db.New(w.Pool)
	limit := int32(1_000_000)
	for id := uint32(1); id <= workload.Partners; id++ {
		made, err := partners.Make(ctx, w.Pool, int64(id), fmt.Sprintf("Partner %d", id), "")
		if err != nil {
			return err
		}
		if _, err := q.SetPartnerRateLimit(ctx, db.SetPartnerRateLimitParams{ID: int64(id), RateLimit: &limit}); err != nil {
			return err
		}
		w.keys[id] = made.APIKey
	}
	if b, err = json.Marshal(w.keys); err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o600)
}

// deliveries writes the deliveries of partner 1, the large one, once per data set: each succeeded at the first attempt,
// one in a hundred at the second.
func (w *world) deliveries(ctx context.Context) error {
	mark := filepath.Join(w.dir, "deliveries.loaded")
	if _, err := os.Stat(mark); err == nil {
		return nil
	}
	err := pgx.BeginFunc(ctx, w.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "TRUNCATE delivery, attempt CASCADE"); err != nil { // left by an interrupted run
			return err
		}
		if _, err := tx.Exec(ctx,
			`INSERT INTO delivery (event_id, partner_id, sequence, type, body, state, attempts, created_at, due_at, finished_at)
			SELECT gen_random_uuid(), 1, n, 'deposit.referral',
			  convert_to('{"id":"' || n || '","padding":"' || repeat('x', 500) || '"}', 'UTF8'), 'delivered',
			  1 + (n % 100 = 0)::int, to_timestamp($1::bigint + n), to_timestamp($1::bigint + n), to_timestamp($1::bigint + n)
			FROM generate_series(1, $2::bigint) n`, workload.GenesisTime, deliveryCount); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO attempt (event_id, number, url, endpoint_version, started_at, duration_ms, status)
			SELECT event_id, number, 'https://partner.example/hook', 1, created_at, 20,
			  CASE WHEN number < attempts THEN 500 ELSE 200 END
			FROM delivery, generate_series(1, attempts) number`)
		return err
	})
	if err == nil {
		_, err = w.Pool.Exec(ctx, "VACUUM ANALYZE delivery, attempt")
	}
	if err != nil {
		return fmt.Errorf("write the deliveries of partner 1: %w", err)
	}
	return os.WriteFile(mark, nil, 0o644)
}

// fill brings the log and the read models up to the number of events.
func (w *world) fill(ctx context.Context) (err error) {
	start := time.Now()
	o := workload.Options{Events: w.Events, Users: w.users()}
	if w.chain, err = workload.OpenLog(ctx, w.Chainlog(), o); err != nil {
		return fmt.Errorf("make the log: %w", err)
	}
	w.known.Store(int64(w.chain.Users))
	w.block.Store(w.chain.Block)
	bench.Say("the log has %d records, %d of them new, and %d users, after %s", w.chain.Seq, w.chain.Written,
		w.chain.Users, time.Since(start).Round(time.Second))
	output := filepath.Join(w.dir, "project.log")
	_ = os.Remove(output) // left by the last run, if any
	if w.projector, err = stack.Launch(w.program("project"), output); err != nil {
		return err
	}
	return w.await(ctx)
}

// await waits until a generation is live, holds the whole log and is merged: the state that it reaches a while after a
// rebuild.
func (w *world) await(ctx context.Context) error {
	start, said := time.Now(), time.Now()
	var merged bench.Merging
	return wait.Poll(ctx, 200*time.Millisecond, func() (bool, error) {
		seq, quiet, err := w.state(ctx, &merged)
		if err == nil && seq == w.chain.Seq && quiet {
			bench.Say("the read models are complete after %s", time.Since(start).Round(time.Second))
			return true, nil
		}
		if time.Since(said) > 10*time.Second {
			said = time.Now()
			bench.Say("the read models are at seq %d of %d: %v", seq, w.chain.Seq, err)
		}
		return false, w.ended()
	})
}

// state returns the seq of the live generation and whether no merges are pending in it.
func (w *world) state(ctx context.Context, merged *bench.Merging) (seq uint64, quiet bool, err error) {
	live, err := db.New(w.Pool).LiveGeneration(ctx)
	if err != nil {
		return 0, false, err
	}
	database := w.ReadModel().Database(live.ID)
	at, err := readmodel.ReadPosition(ctx, w.Conn, database)
	if err != nil || at.Seq < w.chain.Seq {
		return at.Seq, false, err
	}
	quiet, err = merged.Done(ctx, w.Conn, database)
	return at.Seq, quiet, err
}

// live appends a unit per second, including reorganisations, so that the newest state changes while it is queried.
func (w *world) live(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := w.append(); err != nil {
				w.fail(err)
				return
			}
		}
	}
}

// append writes the next unit. Parts of the benchmark never write at the same time, but a part may finish its last unit
// late.
func (w *world) append() error {
	w.writing.Lock()
	defer w.writing.Unlock()
	if err := w.chain.Next(); err != nil {
		return err
	}
	if err := w.chain.Commit(); err != nil {
		return err
	}
	w.known.Store(int64(w.chain.Users))
	w.block.Store(w.chain.Block)
	return nil
}

func (w *world) fail(err error) {
	select {
	case w.failed <- err:
	default:
	}
}

// ended returns why the chain or the projector has ended, or nil while both run.
func (w *world) ended() error {
	select {
	case err := <-w.failed:
		return err
	default:
		return w.projector.Running()
	}
}

func (w *world) close() error {
	if w.projector != nil {
		_ = w.projector.Stop() // the exit status does not matter
	}
	if w.chain != nil {
		w.chain.Close()
	}
	return w.Close()
}
