package verify

import (
	"context"
	"sync"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// Progress is called with what is being compared, and how much of it is done: records, rows that ClickHouse has read,
// blocks, requests. of is 0 if the total is unknown. It is called often, by several goroutines, and must return at
// once.
type Progress func(what string, done, of uint64)

// Report calls p, unless it is nil.
func (p Progress) Report(what string, done, of uint64) {
	if p != nil {
		p(what, done, of)
	}
}

// Asked returns a context for ClickHouse queries that reports how many rows each query has read, of how many.
func (p Progress) Asked(ctx context.Context, what string) context.Context {
	if p == nil {
		return ctx
	}
	p(what, 0, 0)
	var mu sync.Mutex // the driver reports each query in a goroutine of its own, which may outlive the result
	var read, of uint64
	return clickhouse.Context(ctx, clickhouse.WithProgress(func(more *clickhouse.Progress) {
		mu.Lock()
		defer mu.Unlock()
		read, of = read+more.Rows, of+more.TotalRows // the engine reports increments
		p(what, read, max(read, of))
	}))
}
