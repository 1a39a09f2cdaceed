package state

import (
	"context"
	"errors"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"
)

// killWithin limits how long the engine is asked to end a query.
const killWithin = 5 * time.Second

// killable gives a query an id, and has the engine end the query when ctx is cancelled because the client has
// disconnected. The query itself uses another context: if its context were cancelled, the driver would close the
// connection, and the next query would wait for a new one. Deadlines are left to the engine (bounded).
//
// KILL QUERY needs access to system.processes, which query's login does not have. Replacing a query by another one
// with the same id needs no such right. If the address belongs to several servers, the replacement may reach a
// different one; then the query ends at its deadline.
func (s *Source) killable(ctx, question context.Context) (named context.Context, stop func() bool) {
	id := uuid.NewString()
	stop = context.AfterFunc(ctx, func() {
		if !errors.Is(ctx.Err(), context.Canceled) {
			return
		}
		kill := clickhouse.Context(context.WithoutCancel(question), clickhouse.WithQueryID(id),
			clickhouse.WithParameters(nil),
			clickhouse.WithSettings(clickhouse.Settings{
				"replace_running_query": 1, "replace_running_query_max_wait_ms": killWithin.Milliseconds(),
				"max_execution_time": int(killWithin.Seconds())}))
		late := time.Now().Add(killWithin)
		for pause := 20 * time.Millisecond; question.Err() == nil && time.Now().Before(late); pause *= 2 {
			// the query may not have begun yet
			var one uint8
			_ = s.conn.QueryRow(kill, "SELECT 1").Scan(&one) // if this fails, the query ends at its deadline
			select {
			case <-question.Done():
			case <-time.After(pause):
			}
		}
	})
	return clickhouse.Context(question, clickhouse.WithQueryID(id)), stop
}
