package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
)

// bare inserts the rows of generation 2 up to last into the same tables of a
// database of its own, all tables at once, a chunk of records after the other,
// and gives the time that the inserts took.
func (e *engines) bare(ctx context.Context, b *benchmark, last uint64) (took time.Duration, rows uint64, err error) {
	const database = "bare"
	if err := readmodel.Create(ctx, e.conn, database); err != nil {
		return 0, 0, err
	}
	for after := uint64(0); after < last; after += uint64(b.Chunk) {
		to := min(after+uint64(b.Chunk), last)
		answers := make([]driver.Rows, len(readmodel.Tables))
		for i, table := range readmodel.Tables {
			ask := fmt.Sprintf("SELECT * FROM %s.%s WHERE seq > %d AND seq <= %d ORDER BY seq, row SETTINGS max_block_size = 10000000, max_threads = 1", e.ch.Database(2), table, after, to)
			if answers[i], err = e.conn.Query(ctx, ask); err != nil {
				return 0, 0, fmt.Errorf("read the rows of %s: %w", table, err)
			}
			answers[i].Next() // the block is here now
		}
		began := time.Now()
		var group sync.WaitGroup
		faults := make([]error, len(answers))
		for i, table := range readmodel.Tables {
			group.Go(func() { faults[i] = e.send(ctx, database+"."+table, answers[i]) })
		}
		group.Wait()
		took += time.Since(began)
		if err := errors.Join(faults...); err != nil {
			return 0, 0, err
		}
	}
	for _, table := range readmodel.Tables {
		var n, want uint64
		ask := fmt.Sprintf("SELECT (SELECT count() FROM bare.%s), (SELECT count() FROM %s.%s WHERE seq <= %d)", table, e.ch.Database(2), table, last)
		if err := e.conn.QueryRow(ctx, ask).Scan(&n, &want); err != nil {
			return 0, 0, err
		}
		if n != want {
			return 0, 0, fmt.Errorf("the bare insert put %d rows into %s and not %d: it is no comparison", n, table, want)
		}
		rows += n
	}
	return took, rows, nil
}

func (e *engines) send(ctx context.Context, table string, rows driver.Rows) error {
	defer rows.Close()
	batch, err := e.conn.PrepareBatch(ctx, "INSERT INTO "+table)
	if err != nil {
		return err
	}
	defer batch.Close()
	if err := batch.Append(rows); err != nil {
		return err
	}
	return batch.Send()
}

// newestSeq is the seq of the log's last record.
func newestSeq(ctx context.Context, addr string) (seq uint64, err error) {
	c := kafkaConfig(addr)
	client, err := kgo.NewClient(c.Options()...)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	end, err := chainlog.End(ctx, kadm.NewClient(client), chainID)
	if err != nil {
		return 0, err
	}
	reader, err := kgo.NewClient(append([]kgo.Opt{
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{chainlog.LogTopic(chainID): {0: kgo.NewOffset().At(max(0, end-20))}}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	}, c.Options()...)...)
	if err != nil {
		return 0, err
	}
	defer reader.Close()
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	fetches := reader.PollFetches(limited)
	for _, in := range fetches.Records() {
		r, err := chainlog.Decode(chainID, in)
		if err != nil {
			return 0, err
		}
		seq = r.GetSeq()
	}
	return seq, fetches.Err()
}

const liveLogs = 20

// live appends blocks, which stay in the cached log, each when the one before is visible, and gives the times
// from the commit to the rows in every table, in ascending order: that is when project says so to those who
// answer from them. What it said is held against the tables afterwards.
func (e *engines) live(ctx context.Context, b *benchmark, last uint64) ([]time.Duration, error) {
	g, err := newGenerator(e.kafka.Addr, b.Users)
	if err != nil {
		return nil, err
	}
	defer g.client.Close()
	g.seq, g.block = last, last // no block of the log has a higher number than a record
	for i := range g.vaults {
		g.vaults[i] = vaultLife{deposits: 1 << 40, swept: 1 << 40, requests: 1 << 40, funded: 1 << 40, claimed: 1 << 40}
	}
	ears, err := e.listen(ctx)
	if err != nil {
		return nil, err
	}
	var waits []time.Duration
	for range b.Blocks {
		g.mine(0)
		g.unit = slices.Concat(g.unit[:liveLogs], g.unit[len(g.unit)-1:])
		for i, r := range g.unit {
			r.Seq = last + uint64(i) + 1
		}
		last += liveLogs + 1
		g.seq = last
		if err := g.commit(ctx); err != nil {
			return nil, err
		}
		began := time.Now()
		for at := uint64(0); at < last; {
			if err := ears.next(ctx); err != nil {
				return nil, err
			}
			took := time.Since(began)
			if at, err = e.position(ctx, 2); err != nil {
				return nil, err
			}
			if at == last {
				waits = append(waits, took)
			}
		}
	}
	slices.Sort(waits)
	return waits, e.untouched(ctx, last)
}

// hearing is what project announces of the live generation.
type hearing struct {
	words chan struct{}
	ended chan error
}

func (e *engines) listen(ctx context.Context) (*hearing, error) {
	pool, err := registry.Open(ctx, registry.Config{URL: e.postgres.URL, MaxConns: 2})
	if err != nil {
		return nil, err
	}
	h := &hearing{words: make(chan struct{}, 1), ended: make(chan error, 1)}
	ready := make(chan struct{})
	go func() {
		defer pool.Close()
		h.ended <- registry.ListenWritten(ctx, pool, func() { close(ready) }, func(generation int32) {
			if generation == 2 {
				h.words <- struct{}{}
			}
		})
	}()
	select {
	case <-ready:
		return h, nil
	case err := <-h.ended:
		return nil, err
	}
}

func (h *hearing) next(ctx context.Context) error {
	select {
	case <-h.words:
		return nil
	case err := <-h.ended:
		return err
	case <-time.After(time.Minute):
		return errors.New("nothing was announced for a minute")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// untouched checks that each live block is there once.
func (e *engines) untouched(ctx context.Context, last uint64) error {
	var rows, seqs uint64
	if err := e.conn.QueryRow(ctx, "SELECT count(), uniqExact(seq) FROM "+e.ch.Database(2)+".records").Scan(&rows, &seqs); err != nil {
		return err
	}
	if rows != last || seqs != last {
		return fmt.Errorf("the live generation has %d rows of %d seqs and must have %d: what was measured is no result", rows, seqs, last)
	}
	return nil
}

// meter reads how much processor time was spent since it was last read.
type meter struct {
	project, clickHouse int // processes
	last                spent
}

type spent struct{ project, clickHouse time.Duration }

func (m *meter) read() (spent, error) {
	project, err := cpu(m.project)
	if err != nil {
		return spent{}, err
	}
	clickHouse, err := cpu(m.clickHouse)
	if err != nil {
		return spent{}, err
	}
	was := m.last
	m.last = spent{project, clickHouse}
	return spent{project - was.project, clickHouse - was.clickHouse}, nil
}

// each tells what was spent on a record.
func (s spent) each(records uint64) string {
	micro := func(d time.Duration) float64 { return d.Seconds() * 1e6 / float64(records) }
	return fmt.Sprintf("microseconds of CPU a record: navlog project %.2f, ClickHouse %.2f", micro(s.project), micro(s.clickHouse))
}

// cpu is the processor time that a process has used.
func cpu(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the processor time of a process: %w", err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	var ticks int64
	for _, i := range []int{11, 12} { // utime, stime
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read the processor time of a process: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}
