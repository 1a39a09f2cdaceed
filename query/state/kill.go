package state

import (
	"context"
	"errors"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"
)

// killWithin bounds how long a question is killed for.
const killWithin = 5 * time.Second

// killable names a question, which ends with its own context, and has the engine end it once
// ctx is cancelled: its client has left. The driver would close the connection instead, and
// the next question would wait for a new one. A deadline is left to the engine (bounded).
//
// KILL QUERY needs a right to system.processes, which query's login does not have. A question
// that replaces the one with its name needs none. Behind an address of several servers it
// may reach another one than the first did, which then ends at its deadline.
func (s *Source) killable(ctx, question context.Context) (named context.Context, stop func() bool) {
	id := uuid.NewString()
	stop = context.AfterFunc(ctx, func() {
		if !errors.Is(ctx.Err(), context.Canceled) {
			return
		}
		kill := clickhouse.Context(context.WithoutCancel(question), clickhouse.WithQueryID(id), clickhouse.WithParameters(nil),
			clickhouse.WithSettings(clickhouse.Settings{
				"replace_running_query": 1, "replace_running_query_max_wait_ms": killWithin.Milliseconds(), "max_execution_time": int(killWithin.Seconds())}))
		late := time.Now().Add(killWithin)
		for pause := 20 * time.Millisecond; question.Err() == nil && time.Now().Before(late); pause *= 2 { // at first it may not have begun
			var one uint8
			_ = s.conn.QueryRow(kill, "SELECT 1").Scan(&one) // or the question ends at its deadline
			select {
			case <-question.Done():
			case <-time.After(pause):
			}
		}
	})
	return clickhouse.Context(question, clickhouse.WithQueryID(id)), stop
}
