package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/navlog/navlog/deploy/testkit/stack"
	"github.com/navlog/navlog/schemas/registry"
)

const liveLogs = 20

// liveCost is what live blocks cost: the times from the commit until the rows are in every table, and the engine's CPU
// time per block, in which a query for the position is included.
type liveCost struct {
	waits  []time.Duration
	engine time.Duration
}

// live measures blocks at the head. It appends one, waits until every table has it, and appends the next. A block has
// arrived when project announces it and lists has it. The blocks stay in the cached log.
func (e *system) live(ctx context.Context, b *benchmark) (l liveCost, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ready, written := make(chan struct{}), make(chan struct{}, 1)
	go func() {
		cancel(registry.ListenWritten(ctx, e.Pool, func() { close(ready) }, func(int32) {
			select {
			case written <- struct{}{}:
			default: // one pending signal is enough
			}
		}))
	}()
	heard := func(of <-chan struct{}) error {
		select {
		case <-of:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Minute):
			return errors.New("nothing was announced for a minute")
		}
	}
	if err := heard(ready); err != nil {
		return l, err
	}
	before, err := stack.CPU(e.ClickHouse.Pid)
	if err != nil {
		return l, err
	}
	for range b.Blocks {
		if err := e.log.Next(); err != nil {
			return l, err
		}
		if err := e.log.Commit(); err != nil {
			return l, err
		}
		began := time.Now()
		for at := uint64(0); at < e.log.Seq; {
			if err := heard(written); err != nil {
				return l, err
			}
			took := time.Since(began)
			if at, err = e.position(ctx, 2); err != nil {
				return l, err
			}
			if at == e.log.Seq {
				l.waits = append(l.waits, took)
			}
		}
	}
	after, err := stack.CPU(e.ClickHouse.Pid)
	if err != nil {
		return l, err
	}
	l.engine = (after - before) / time.Duration(b.Blocks)
	return l, e.untouched(ctx, e.log.Seq)
}

// untouched checks that each live block is present exactly once.
func (e *system) untouched(ctx context.Context, last uint64) error {
	var rows, seqs uint64
	if err := e.Conn.QueryRow(ctx, "SELECT count(), uniqExact(seq) FROM "+e.ch.Database(2)+".events").Scan(&rows,
		&seqs); err != nil {
		return err
	}
	if rows != last || seqs != last {
		return fmt.Errorf("the live generation has %d rows of %d seqs and must have %d: the measurement does not count", rows,
			seqs, last)
	}
	return nil
}
