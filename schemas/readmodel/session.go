package readmodel

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// OpenSession opens one connection to a generation's database, for Derive and BuildLists: the temporary tables of a
// session end with its connection. Statements run one at a time, and the rows of one must be read or closed before the
// next. They have a memory limit but no time limit. After the connection has ended, every statement fails.
func (c Config) OpenSession(database string) (driver.Conn, error) {
	options := c.options(database, c.User, c.Password, dayLong, 1, clickhouse.Settings{
		"max_memory_usage":   writerMemory,
		"max_execution_time": 0,
		// A row of lists has 600 bytes uncompressed.
		"max_insert_block_size":              1 << 18,
		"min_insert_block_size_rows":         1 << 18,
		"min_insert_block_size_bytes":        1 << 28,
		"max_insert_threads":                 1,
		"max_threads":                        2,
		"max_bytes_before_external_sort":     writerMemory / 4,
		"max_bytes_before_external_group_by": writerMemory / 2,
		// A window reads the tables of inOrder in their order, which is off by default, and holds few rows of each part.
		"optimize_read_in_window_order": 1,
		"read_in_order_use_buffering":   0,
		"max_block_size":                8192,
	})
	s := &session{}
	dial := options.DialContext
	options.DialContext = func(ctx context.Context, addr string) (net.Conn, error) {
		if s.dialed.Swap(true) {
			return nil, errOneConnection
		}
		conn, err := dial(ctx, addr)
		if err != nil {
			s.dialed.Store(false)
		}
		return conn, err
	}
	var err error
	s.Conn, err = c.open(options)
	return s, err
}

var errOneConnection = errors.New("the connection of the session, which has its temporary tables, has ended: run " +
	"the command again")

// session has one connection. The driver returns it to its pool a moment after the caller has read the last row
// (clickhouse-go 2.49, conn_query.go), and would open another one for a statement that comes in between: such a
// statement is retried.
type session struct {
	driver.Conn
	dialed atomic.Bool
}

// retried sends a statement. It waits a millisecond and sends it again if it was not sent, because the connection was
// not back in the pool yet, up to a thousand times: then the connection has ended.
func retried[T any](ctx context.Context, send func() (T, error)) (out T, err error) {
	for range 1000 {
		if out, err = send(); !errors.Is(err, errOneConnection) || ctx.Err() != nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return out, err
}

func (s *session) Exec(ctx context.Context, statement string, args ...any) error {
	_, err := retried(ctx, func() (any, error) { return nil, s.Conn.Exec(ctx, statement, args...) })
	return err
}

func (s *session) Query(ctx context.Context, query string, args ...any) (driver.Rows, error) {
	return retried(ctx, func() (driver.Rows, error) { return s.Conn.Query(ctx, query, args...) })
}

func (s *session) Select(ctx context.Context, dest any, query string, args ...any) error {
	_, err := retried(ctx, func() (any, error) { return nil, s.Conn.Select(ctx, dest, query, args...) })
	return err
}

func (s *session) QueryRow(ctx context.Context, query string, args ...any) driver.Row {
	row, _ := retried(ctx, func() (driver.Row, error) {
		row := s.Conn.QueryRow(ctx, query, args...)
		return row, row.Err()
	})
	return row
}
