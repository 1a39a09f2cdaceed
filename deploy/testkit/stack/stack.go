// Package stack runs navlog for a benchmark or a check: the engines, and the programs on them as processes, with their
// memory and CPU time.
package stack

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
)

// A Stack is a set of engines. Those that are nil were not started.
type Stack struct {
	Kafka      *engines.Kafka
	ClickHouse *engines.ClickHouse
	Postgres   *engines.Postgres

	// Conn and Pool are set by Connect.
	Conn driver.Conn
	Pool *pgxpool.Pool
}

// Folders hold the data of the engines. PostgreSQL's user must be able to enter its folder.
type Folders struct{ Kafka, ClickHouse, Postgres string }

// In returns a folder in dir for each engine.
func In(dir string) Folders {
	return Folders{filepath.Join(dir, "kafka"), filepath.Join(dir, "clickhouse"), filepath.Join(dir, "postgres")}
}

// Start starts, in parallel, the engines that have a folder, and returns when they respond. They continue with the data
// that is there.
func Start(ctx context.Context, in Folders) (*Stack, error) {
	s := &Stack{}
	group, ctx := errgroup.WithContext(ctx)
	if in.Kafka != "" {
		group.Go(func() (err error) { s.Kafka, err = engines.StartKafka(ctx, in.Kafka); return err })
	}
	if in.ClickHouse != "" {
		group.Go(func() (err error) { s.ClickHouse, err = engines.StartClickHouse(ctx, in.ClickHouse); return err })
	}
	if in.Postgres != "" {
		group.Go(func() (err error) { s.Postgres, err = engines.StartPostgres(ctx, in.Postgres); return err })
	}
	if err := group.Wait(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Connect connects to ClickHouse and PostgreSQL, if they were started, and creates the tables of PostgreSQL.
// Measurements that begin with empty engines do not call it.
func (s *Stack) Connect(ctx context.Context) (err error) {
	if s.ClickHouse != nil {
		if s.Conn, err = s.ReadModel().Open(""); err != nil {
			return err
		}
	}
	if s.Postgres != nil {
		c := registry.DefaultConfig()
		c.URL = s.Postgres.URL
		s.Pool, err = registry.Open(ctx, c)
	}
	return err
}

// Kill kills the engines, whose data is not needed any more, and closes the connections.
func (s *Stack) Kill() {
	if s.ClickHouse != nil {
		s.ClickHouse.Kill()
	}
	if s.Postgres != nil {
		s.Postgres.Kill()
	}
	_ = s.Close()
}

// Close closes the connections and stops the engines. Their data stays.
func (s *Stack) Close() error {
	var faults []error
	if s.Conn != nil {
		faults = append(faults, s.Conn.Close())
	}
	if s.Pool != nil {
		s.Pool.Close()
	}
	if s.Kafka != nil {
		faults = append(faults, s.Kafka.Close())
	}
	if s.ClickHouse != nil {
		faults = append(faults, s.ClickHouse.Close())
	}
	if s.Postgres != nil {
		faults = append(faults, s.Postgres.Close())
	}
	return errors.Join(faults...)
}

// Environment returns the environment of a navlog on these engines, with additional settings.
func (s *Stack) Environment(settings ...string) []string {
	var own []string
	if s.Kafka != nil {
		own = append(own, "NAVLOG_KAFKA_BROKERS="+s.Kafka.Addr)
	}
	if s.ClickHouse != nil {
		own = append(own, "NAVLOG_CLICKHOUSE_ADDR="+s.ClickHouse.Addr, "NAVLOG_CLICKHOUSE_QUERY_USER=navlog_query")
	}
	if s.Postgres != nil {
		own = append(own, "NAVLOG_POSTGRES_URL="+s.Postgres.URL)
	}
	return Environment(append(own, settings...)...)
}

// Run starts one of navlog's programs on these engines, with additional settings, in the folder of its log.
func (s *Stack) Run(navlog, program, log string, settings ...string) (*Process, error) {
	cmd := exec.Command(navlog, program)
	cmd.Dir, cmd.Env = filepath.Dir(log), s.Environment(settings...)
	return Launch(cmd, log)
}

// Chainlog returns how to connect to Kafka.
func (s *Stack) Chainlog() chainlog.Config {
	c := chainlog.DefaultConfig()
	c.Brokers = []string{s.Kafka.Addr}
	return c
}

// ReadModel returns how to connect to ClickHouse.
func (s *Stack) ReadModel() readmodel.Config {
	c := readmodel.DefaultConfig()
	c.Addr = s.ClickHouse.Addr
	return c
}
