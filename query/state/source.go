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

	"github.com/navlog/navlog/schemas/readmodel"
)

// Source is the database of a generation and the way to it.
type Source struct {
	ID       int32
	Database string
	conn     driver.Conn
}

// Error is a question that ClickHouse did not answer.
type Error struct {
	Ours bool // the question is wrong, and will be so again
	Err  error
}

func (e *Error) Error() string { return "ask ClickHouse: " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// wrongQuestion holds the codes of ClickHouse exceptions that only a wrong question causes.
var wrongQuestion = map[int32]string{
	16: "no such column", 42: "number of arguments", 43: "type of argument", 46: "unknown function",
	47: "unknown identifier", 50: "unknown type", 53: "type mismatch", 62: "syntax", 184: "aggregation",
	215: "not aggregated", 386: "no common type", 456: "unknown parameter", 457: "bad parameter",
}

// failed judges why a question was not answered: a mistake of ours, or an engine that is
// gone, busy or has just dropped the generation, or a right that the login lacks. The
// operator can mend those, and query then goes on.
func failed(err error) *Error {
	var exception *clickhouse.Exception
	if errors.As(err, &exception) {
		_, ours := wrongQuestion[exception.Code]
		return &Error{Ours: ours, Err: err}
	}
	return &Error{Err: err}
}

// Wrong makes the error of a question that cannot be asked.
func Wrong(format string, args ...any) *Error {
	return &Error{Ours: true, Err: fmt.Errorf(format, args...)}
}

const (
	// engineGrace is how long the engine may take to report that a question's time is over.
	engineGrace = 10 * time.Second
	// longestQuestion is what query's login may ask the engine for: one that wants more is
	// refused (clickhouse-query-user.xml).
	longestQuestion = time.Minute
	// questionNice is the priority of a question in the engine, where the engine's process
	// may set one (CAP_SYS_NICE): before inserts, of which a block at the head brings two.
	questionNice = -10
	// longestText bounds a question's SQL, in bytes. It is longest where a page of a file by amounts names 4,096 users twice.
	longestText = 1 << 20
)

// Select asks a question and scans its rows by their `ch` tags into rows, a pointer to a
// slice of structs. parameters are the values of {name:Type} in the question, as ClickHouse
// reads them; never is always among them. The question ends when ctx does. The error is a
// *Error.
func (s *Source) Select(ctx context.Context, rows any, question string, parameters clickhouse.Parameters) error {
	if err := ctx.Err(); err != nil {
		return failed(err)
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

// bounded leaves it to the engine to end a question when its time is over: a driver that ends
// it closes the connection. Nothing is compiled for a question: after a few of a kind the
// engine would compile its sums and conditions again and again, for 15 to 20 ms each time.
// The older analyzer plans a question in four fifths of the time. The counters that the engine would send with
// each answer are not used.
func bounded(ctx context.Context, parameters clickhouse.Parameters) (context.Context, context.CancelFunc) {
	limit := engineGrace
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(time.Until(deadline), longestQuestion)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit+engineGrace)
	settings := clickhouse.Settings{
		"max_threads": 1, "max_execution_time": max(1, int(math.Ceil(limit.Seconds()))), "enable_analyzer": 0,
		"compile_expressions": 0, "compile_aggregate_expressions": 0, "compile_sort_description": 0,
		"send_profile_events":         0,
		"max_query_size":              longestText,
		"os_threads_nice_value_query": questionNice,
	}
	return clickhouse.Context(withoutDeadline{ctx}, clickhouse.WithSettings(settings), clickhouse.WithParameters(parameters)), cancel
}

// withoutDeadline hides a deadline from the driver, which would make another
// max_execution_time of it.
type withoutDeadline struct{ context.Context }

// Deadline is none.
func (withoutDeadline) Deadline() (time.Time, bool) { return time.Time{}, false }
