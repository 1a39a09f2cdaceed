package pin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/schemas/readmodel"
)

// Args are the values of a question by the name that it has for them: {name:Type}. They
// are of the types uint64, uint32, int64, *big.Int, common.Address (for FixedString(20)),
// common.Hash (for FixedString(32)), []uint64, string for words of our own, and *Keys.
type Args map[string]any

// Ask puts a question to the generation of a pin and scans its rows by their `ch` tags.
// Beside args the question has the pin's seq and block, and never. The error is a *Error.
func Ask[T any](ctx context.Context, p *Pin, question string, args Args) ([]T, error) {
	all := Args{"seq": p.Seq, "block": p.Block}
	for name, value := range args {
		all[name] = value
	}
	return ask[T](ctx, p.snapshot.source, question, all)
}

// AskOne is Ask for a question with at most one row; false where there is none.
func AskOne[T any](ctx context.Context, p *Pin, question string, args Args) (row T, ok bool, err error) {
	rows, err := Ask[T](ctx, p, question, args)
	if err != nil || len(rows) == 0 {
		return row, false, err
	}
	return rows[0], true, nil
}

// Count adds up the total of a question's rows, of which one has the fence of its table.
func Count(ctx context.Context, p *Pin, question string, args Args) (total int64, err error) {
	type row struct {
		Total int64    `ch:"total"`
		Fence []uint64 `ch:"fence"`
	}
	rows, err := Ask[row](ctx, p, question, args)
	for _, r := range rows {
		p.See(readmodel.FenceOf(r.Fence))
		total += r.Total
	}
	return total, err
}

// Panic is what a part of Together panicked with, and where.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) String() string { return fmt.Sprint(p.Value) }

// Together does what does not wait for each other at once, and gives the first error. A part
// that panics does so where Together was called, with a *Panic: in a goroutine of its own
// nobody would catch it, and the program would end.
func Together(parts ...func() error) error {
	var group errgroup.Group
	var panicked atomic.Pointer[Panic]
	for _, part := range parts {
		group.Go(func() error {
			defer func() {
				if v := recover(); v != nil {
					p, nested := v.(*Panic)
					if !nested {
						p = &Panic{v, debug.Stack()}
					}
					panicked.Store(p)
				}
			}()
			return part()
		})
	}
	err := group.Wait()
	if p := panicked.Load(); p != nil {
		panic(p)
	}
	return err
}

// Error is a question that the engine did not answer.
type Error struct {
	Ours bool // the question is wrong, and will be so again
	Err  error
}

func (e *Error) Error() string { return "ask ClickHouse: " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Codes of the ClickHouse exceptions that only a wrong question causes.
const (
	exceptionNoSuchColumn     = 16
	exceptionArgumentCount    = 42
	exceptionArgumentType     = 43
	exceptionUnknownFunction  = 46
	exceptionUnknownName      = 47
	exceptionUnknownType      = 50
	exceptionTypeMismatch     = 53
	exceptionSyntax           = 62
	exceptionAggregation      = 184
	exceptionNotAggregated    = 215
	exceptionNoCommonType     = 386
	exceptionUnknownParameter = 456
	exceptionBadParameter     = 457
)

// failed judges why a question was not answered: a mistake of ours, or an engine that is
// gone, busy, without its Keeper, or has just dropped the generation. There are hundreds of
// reasons of that kind, and more with each version. A right, a password, a quota or a setting
// that query's login does not have is among them: the operator can mend that, and query
// then goes on.
func failed(err error) *Error {
	var exception *clickhouse.Exception
	if errors.As(err, &exception) {
		switch exception.Code {
		case exceptionNoSuchColumn, exceptionArgumentCount, exceptionArgumentType, exceptionUnknownFunction, exceptionUnknownName,
			exceptionUnknownType, exceptionTypeMismatch, exceptionSyntax, exceptionAggregation, exceptionNotAggregated,
			exceptionNoCommonType, exceptionUnknownParameter, exceptionBadParameter:
			return &Error{Ours: true, Err: err}
		}
	}
	return &Error{Err: err}
}

// ask puts a question to a generation.
func ask[T any](ctx context.Context, s *source, question string, args Args) ([]T, error) {
	if err := ctx.Err(); err != nil { // there is no time to tell the engine of
		return nil, failed(err)
	}
	values := clickhouse.Parameters{"never": strconv.FormatUint(readmodel.Never, 10)}
	for name, value := range args {
		if keys, ok := value.(*Keys); ok {
			question = keys.in(question, name)
			continue
		}
		text, ok := written(value)
		if !ok {
			return nil, &Error{Ours: true, Err: fmt.Errorf("the parameter %s of a question is a %T, which none can have", name, value)}
		}
		values[name] = text
	}
	asked, cancel := unhurried(ctx, values)
	defer cancel()
	asked, stop := s.killable(ctx, asked)
	defer stop()
	var rows []T
	if err := s.conn.Select(asked, &rows, question); err != nil {
		return nil, failed(err)
	}
	return rows, nil
}

// written is a value as the engine reads a parameter: as text, in which a byte may be
// written by its number.
func written(value any) (string, bool) {
	switch v := value.(type) {
	case uint64:
		return strconv.FormatUint(v, 10), true
	case *big.Int:
		return v.String(), true
	case uint32:
		return strconv.FormatUint(uint64(v), 10), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case common.Address:
		return bytesWritten(v[:]), true
	case common.Hash:
		return bytesWritten(v[:]), true
	case []uint64:
		texts := make([]string, len(v))
		for i, n := range v {
			texts[i] = strconv.FormatUint(n, 10)
		}
		return "[" + strings.Join(texts, ",") + "]", true
	case string:
		return v, ownWord(v)
	}
	return "", false
}

func bytesWritten(bytes []byte) string {
	var b strings.Builder
	for _, c := range bytes {
		fmt.Fprintf(&b, `\x%02x`, c)
	}
	return b.String()
}

// ownWord tells whether a text is a word of ours, which needs no escapes: of a-z and _.
func ownWord(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_") == ""
}

const (
	// engineGrace is how long the engine may take to say that time is over.
	engineGrace = 10 * time.Second
	// longestQuestion is what query's login may ask the engine for: one that wants
	// more is refused (clickhouse-query-user.xml).
	longestQuestion = time.Minute
	// questionNice is the priority of a question in the engine, where the engine's
	// process may set one (CAP_SYS_NICE): before inserts, of which a block at the head
	// brings several at once. They held answers up for a tenth of a second on two cores,
	// and take a fifth longer since.
	questionNice = -10
)

// unhurried leaves it to the engine to end a question when its time is over. A driver
// that ends it closes the connection, and the embedded engine has been seen to abort
// when a connection was reset at the wrong moment.
//
// The engine's older analyzer plans a question in four fifths of the time; a question
// that it does not understand asks for the newer one in its own SETTINGS. Nothing is
// compiled for a question: after a few of a kind the engine would have machine code made
// of its sums and conditions, again and again, and each time that takes 15 to 20 ms.
func unhurried(ctx context.Context, values clickhouse.Parameters) (context.Context, context.CancelFunc) {
	limit := engineGrace
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(time.Until(deadline), longestQuestion)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit+engineGrace)
	settings := clickhouse.Settings{
		"max_threads": 1, "max_execution_time": max(1, int(math.Ceil(limit.Seconds()))), "enable_analyzer": 0,
		"compile_expressions": 0, "compile_aggregate_expressions": 0, "compile_sort_description": 0,
		"os_threads_nice_value_query": questionNice,
	}
	return clickhouse.Context(withoutDeadline{ctx}, clickhouse.WithSettings(settings), clickhouse.WithParameters(values)), cancel
}

// withoutDeadline hides a deadline from the driver, which would make another
// max_execution_time of it.
type withoutDeadline struct{ context.Context }

// Deadline is none.
func (withoutDeadline) Deadline() (time.Time, bool) { return time.Time{}, false }
