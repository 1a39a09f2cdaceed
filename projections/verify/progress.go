package verify

import (
	"context"
	"sync"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// Progress hears what is being compared, and how much of it is done: records, rows that
// ClickHouse has read, blocks, requests. of is 0 where nobody knows how much there is. It
// is called often, by several goroutines, and is to return at once.
type Progress func(what string, done, of uint64)

// Tell tells it, where somebody hears.
func (p Progress) Tell(what string, done, of uint64) {
	if p != nil {
		p(what, done, of)
	}
}

// Asked makes a context for questions to ClickHouse, which says at each of them how many
// rows it has read, of how many.
func (p Progress) Asked(ctx context.Context, what string) context.Context {
	if p == nil {
		return ctx
	}
	p(what, 0, 0)
	var mu sync.Mutex // the driver tells of each question by a goroutine of its own, which may outlive the answer
	var read, of uint64
	return clickhouse.Context(ctx, clickhouse.WithProgress(func(more *clickhouse.Progress) {
		mu.Lock()
		defer mu.Unlock()
		read, of = read+more.Rows, of+more.TotalRows // the engine says what came to it since
		p(what, read, max(read, of))
	}))
}
