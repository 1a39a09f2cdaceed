package state

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/navlog/navlog/schemas/mapping"
	"github.com/navlog/navlog/schemas/readmodel"
)

// Source is the database of a generation and the connection to it.
type Source struct {
	ID       int32
	Database string
	conn     driver.Conn
	// mapped is how the generation maps the logs of vaults: by the records that it was made with, or else by the first
	// record of a vault.
	mapped *mapping.Vaults
}

// Error is the error of a failed ClickHouse query.
type Error struct {
	Ours   bool // the query is wrong, and would fail again
	Silent bool // the engine did not respond: it is down, hangs or cannot be reached
	Err    error
}

func (e *Error) Error() string { return "ask ClickHouse: " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// wrongQuestion has the codes of ClickHouse exceptions that only a wrong query causes.
var wrongQuestion = map[int32]string{
	16: "no such column", 42: "number of arguments", 43: "type of argument", 46: "unknown function",
	47: "unknown identifier", 50: "unknown type", 53: "type mismatch", 62: "syntax", 184: "aggregation",
	215: "not aggregated", 386: "no common type", 456: "unknown parameter", 457: "bad parameter",
}

// failed classifies why a query failed: a programming error; or an engine that is down, busy or has just dropped the
// generation, or a right that the login lacks. The operator can fix the latter, and query then recovers by itself.
func failed(err error) *Error {
	var exception *clickhouse.Exception
	if errors.As(err, &exception) {
		_, ours := wrongQuestion[exception.Code]
		return &Error{Ours: ours, Err: err}
	}
	return &Error{Silent: true, Err: err}
}

// Wrong returns the error of a query that cannot be run.
func Wrong(format string, args ...any) *Error {
	return &Error{Ours: true, Err: fmt.Errorf(format, args...)}
}

const (
	// engineGrace is how long the engine may take to report that a query has timed out.
	engineGrace = 10 * time.Second
	// longestQuestion is the longest time that query's login may request: the engine rejects queries that request
	// more (clickhouse-query-user.xml).
	longestQuestion = time.Minute
	// questionNice is the priority of a query, if the engine's process may set one (CAP_SYS_NICE): higher than that
	// of inserts, of which each block at the head brings two.
	questionNice = -10
	// longestText is the maximum length of a query in bytes. The longest query is for a page of a file by amounts,
	// which names 4,096 users twice.
	longestText = 1 << 20
)

// Select runs a query and scans its rows by their `ch` tags into rows, a pointer to a slice of structs. parameters
// are the values of {name:Type} in the query, in ClickHouse's format; never is always added. The query ends when ctx
// does. The error is a *Error.
func (s *Source) Select(ctx context.Context, rows any, question string, parameters clickhouse.Parameters) error {
	if err := ctx.Err(); err != nil {
		return &Error{Err: err}
	}
	if parameters == nil {
		parameters = clickhouse.Parameters{}
	}
	parameters["never"] = strconv.FormatUint(readmodel.Never, 10)
	asked, cancel := bounded(ctx, parameters)
	defer cancel()
	asked, stop := s.killable(ctx, asked)
	defer stop()
	if err := s.conn.Select(asked, rows, question); err != nil {
		return failed(err)
	}
	return nil
}

// bounded lets the engine end a query when its time is over, because a driver that ends it closes the connection. The
// engine's profile events are not used, so they are not sent.
func bounded(ctx context.Context, parameters clickhouse.Parameters) (context.Context, context.CancelFunc) {
	limit := engineGrace
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(time.Until(deadline), longestQuestion)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit+engineGrace)
	settings := readmodel.SmallQuery()
	settings["max_execution_time"] = max(1, int(math.Ceil(limit.Seconds())))
	settings["send_profile_events"] = 0
	settings["max_query_size"] = longestText
	settings["os_threads_nice_value_query"] = questionNice
	return clickhouse.Context(withoutDeadline{readmodel.Traced(ctx)}, clickhouse.WithSettings(settings),
		clickhouse.WithParameters(parameters)), cancel
}

// withoutDeadline hides a deadline from the driver, which would derive its own max_execution_time from it.
type withoutDeadline struct{ context.Context }

func (withoutDeadline) Deadline() (time.Time, bool) { return time.Time{}, false }

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
