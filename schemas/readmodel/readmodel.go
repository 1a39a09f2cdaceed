// Package readmodel is the contract about ClickHouse between the program that writes read models (projections) and the
// one that reads them (query): the tables, what their rows mean, and what a generation is.
//
// A generation is one ClickHouse database with two tables. It is a deterministic fold of the log up to a seq,
// disposable, and never altered: a change of the tables is a new generation.
//
//	events ... the decoded log: a row for each record and effect, and one for each retraction of it
//	lists .... every order in which something is read, and the cursor
//
// # When a thing is true
//
// What is true at block X never changes when later blocks arrive. So lists have no counters; they record when something
// is true: a withdrawal request has the blocks at which it was requested, funded and closed; running totals have a row
// for each block that changed them. A query for the newest block is the same as one for a past block. A unit that
// retracts changes what is true above its ancestor, and the cursor counts such units (rewrites).
//
// Events are append-only; rows have sign 1, and -1 if they retract the row whose seq is in retracts. One log has one
// place on the chain (block, log_index).
//
// Lists collapse: a change writes the old row with sign -1, then the new one with 1, and merges remove the pair. A row
// is live if the signs of equal rows add up to 1.
//
// # Cursors
//
// The cursor of lists is one of its rows, and the commit point of a unit: readers stop there. The cursor of events is
// max(seq); after a crash it may be a batch ahead. No seq is 0, so PARTITION BY seq = 0 puts all rows into one
// partition, and an insert is one part, as without the clause. The clause makes the engine keep the lowest and the
// highest seq of each part: so the cursor is found without reading older parts.
//
// Amounts are Int256 and |x| < 2^191, so that no sum of 2^64 rows can wrap.
// Times (ts) are Unix seconds of the block, 0 for never.
package readmodel

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/navlog/navlog/schemas/certs"
	"github.com/navlog/navlog/schemas/input"
	"github.com/navlog/navlog/schemas/mapping"
)

//go:embed definitions/*.sql views/*.sql
var files embed.FS

// Never is the block of an event that has not happened yet: in funded_block and closed_block, and as the end of a step
// of totals that still holds.
const Never uint64 = math.MaxUint64

// MinVersion is the oldest ClickHouse that navlog is tested with.
var MinVersion = [2]uint64{26, 7}

// MaxAmount is the smallest amount that is too large to be summed safely:
// 2^191. Logs with such an amount are quarantined.
var MaxAmount = mapping.MaxAmount

// Config is the connection to ClickHouse.
type Config struct {
	// Addr is host:port of the native protocol.
	Addr string `yaml:"addr" env:"ADDR"`
	// User and Password are the login of the writer; default the user `default` without a password.
	User     string `yaml:"user" env:"USER"`
	Password string `yaml:"password" env:"PASSWORD"`
	// QueryUser and QueryPassword are the read-only login of `navlog serve`; if empty, it uses User and Password.
	QueryUser     string `yaml:"queryUser" env:"QUERY_USER"`
	QueryPassword string `yaml:"queryPassword" env:"QUERY_PASSWORD"`
	// TLS 1.2 or later; default false.
	TLS bool `yaml:"tls" env:"TLS"`
	// Certificates are for a server with a certificate of a private authority, or that requires a client certificate.
	Certificates certs.Files `yaml:"certificates" envPrefix:"CERTIFICATES_"`
	// Prefix of the databases <prefix>_g1, <prefix>_g2, ...: a letter, then at most 30 of a-z, 0-9 and _; default navlog.
	Prefix string `yaml:"prefix" env:"PREFIX"`
	// Cluster is the name of a cluster with one shard in the server's configuration, on whose replicas the tables are
	// kept; empty for a single server. See cluster.go.
	Cluster string `yaml:"cluster" env:"CLUSTER"`
}

// DefaultConfig returns the defaults; only the address has none.
func DefaultConfig() Config { return Config{User: "default", Prefix: "navlog"} }

var identifier = regexp.MustCompile(`^[a-z][a-z0-9_]{0,30}$`)

// Validate reports every mistake at once.
func (c Config) Validate() error {
	var faults []error
	if !input.Address(c.Addr) {
		faults = append(faults, fmt.Errorf("clickhouse.addr is %q and must be host:port of the native protocol", c.Addr))
	}
	if c.User == "" {
		faults = append(faults, errors.New("clickhouse.user is empty: give the user that writes the read models, such as "+
			"default"))
	}
	if !identifier.MatchString(c.Prefix) {
		faults = append(faults, fmt.Errorf("clickhouse.prefix is %q and must be a letter and then at most 30 of a-z, 0-9 "+
			"and _", c.Prefix))
	}
	if c.Cluster != "" && !identifier.MatchString(c.Cluster) {
		faults = append(faults, fmt.Errorf("clickhouse.cluster is %q and must be a letter and then at most 30 of a-z, 0-9 "+
			"and _", c.Cluster))
	}
	if err := c.Certificates.Validate("clickhouse", c.TLS); err != nil {
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// Database returns the name of generation id's database.
func (c Config) Database(id int32) string { return fmt.Sprintf("%s_g%d", c.Prefix, id) }

// Open returns a pool for the writer's queries on a database, which must exist when they run; an empty name means none.
// It does not connect yet.
func (c Config) Open(database string) (driver.Conn, error) {
	return c.open(c.options(database, c.User, c.Password, readTimeout, writerConns, clickhouse.Settings{
		"async_insert":                   0,
		"insert_deduplicate":             1,
		"max_insert_threads":             1,
		"min_insert_block_size_rows":     0,
		"min_insert_block_size_bytes":    0,
		"max_insert_block_size":          16 << 20,
		"optimize_use_projections":       1,
		"deduplicate_insert":             "enable",
		"insert_deduplication_token":     "",
		"max_memory_usage":               writerMemory,
		"max_execution_time":             60,
		"max_bytes_before_external_sort": writerMemory / 2,
	}))
}

// writerMemory is the memory limit of a query by the writer, because the engine also serves query.
const writerMemory int64 = 2 << 30

// sharedSnapshot is the setting with which all uses of a table in one query see the same rows.
const sharedSnapshot = "enable_shared_storage_snapshot_in_query"

// OpenReader returns a pool of conns connections for query to a generation's database, with the read-only login if
// there is one, and with limits on time, memory and threads per query.
func (c Config) OpenReader(database string, conns int) (driver.Conn, error) {
	user, password := c.QueryUser, c.QueryPassword
	if user == "" {
		user, password = c.User, c.Password
	}
	return c.open(c.options(database, user, password, readTimeout, conns, clickhouse.Settings{
		"max_memory_usage":   int64(1 << 30),
		"max_execution_time": 10,
		"max_threads":        2,
	}))
}

// OpenPatient returns a pool to a database for statements of the writer whose duration grows with the data and that
// send nothing before they end: merges and proofs. They have a memory limit but no time limit.
func (c Config) OpenPatient(database string) (driver.Conn, error) {
	return c.open(c.options(database, c.User, c.Password, dayLong, writerConns, clickhouse.Settings{
		"max_memory_usage":                   writerMemory,
		"max_execution_time":                 0,
		"max_bytes_before_external_sort":     writerMemory / 2,
		"max_bytes_before_external_group_by": writerMemory / 2,
	}))
}

const (
	dialTimeout = 5 * time.Second  // time limit of connecting
	readTimeout = 90 * time.Second // longer than any query may take
	dayLong     = 24 * time.Hour   // longer than a build of lists
	writerConns = 16               // one per table, and some for monitoring them
	idleConns   = 16
	// sendBytes is the amount of an insert that a connection buffers before it sends. The driver's own 10 MiB were two
	// fifths of a projector's allocations: each insert grew a new buffer to that size, by doubling it.
	sendBytes = 1 << 20
)

func (c Config) open(options *clickhouse.Options) (driver.Conn, error) {
	conn, err := clickhouse.Open(options)
	if err != nil {
		return nil, fmt.Errorf("open ClickHouse at %s: %w", c.Addr, err)
	}
	return conn, nil
}

func (c Config) options(database, user, password string, readTimeout time.Duration, conns int,
	settings clickhouse.Settings) *clickhouse.Options {
	// The seqs of a part determine whether it is read. Using them for the search within a part as well, the engine's
	// default, took as long as a look-up.
	settings["use_partition_minmax_for_primary_key_pruning"] = 0
	settings["use_skip_indexes_on_data_read"], settings[sharedSnapshot] = 0, 1
	c.clustered(settings)
	options := &clickhouse.Options{
		Addr:             []string{c.Addr},
		Auth:             clickhouse.Auth{Database: database, Username: user, Password: password},
		Settings:         settings,
		Compression:      &clickhouse.Compression{Method: clickhouse.CompressionLZ4},
		DialTimeout:      dialTimeout,
		ReadTimeout:      readTimeout,
		MaxOpenConns:     conns,
		MaxIdleConns:     min(conns, idleConns),
		ConnMaxLifetime:  max(time.Hour, readTimeout), // longer than any session
		BlockBufferSize:  4,
		ConnOpenStrategy: clickhouse.ConnOpenInOrder,
		// The buffer of a large insert would otherwise stay with its connection, for each one in the pool.
		FreeBufOnConnRelease: true,
		MaxCompressionBuffer: sendBytes,
		DialStrategy:         connect,
	}
	if host, _, err := net.SplitHostPort(c.Addr); err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback()) {
		options.Compression = nil // on one machine it only costs CPU on both sides
	}
	options.DialContext = func(ctx context.Context, addr string) (net.Conn, error) {
		if !c.TLS {
			return dial(ctx, addr, nil)
		}
		secure, err := c.Certificates.Config()
		if err != nil {
			return nil, err
		}
		return dial(ctx, addr, secure)
	}
	return options
}

// FoldVersion is the version of the fold. It is raised with every change that produces other rows for the same records:
// one version never continues a generation of another.
const FoldVersion = 10

// Schema identifies the tables that this binary reads and writes, and their content: a hash of their DDL, of the
// definitions of lists and of the views without comments, and of FoldVersion. The registry stores it with each
// generation. A projector compares it often, so it is computed once.
func Schema() string { return schema() }

var schema = sync.OnceValue(func() string {
	h := sha256.New()
	fmt.Fprintf(h, "fold %d\n%s\n%s\n", FoldVersion, EventsTable.DDL("generation.events"),
		ListsTable.DDL("generation.lists"))
	for _, table := range derived {
		fmt.Fprintf(h, "%s\n%s\n", table, definition(table))
	}
	for _, d := range Definitions {
		fmt.Fprintf(h, "%s\n%s\n", d.Columns, d.SQL())
	}
	for _, view := range Views {
		fmt.Fprintf(h, "%s\n%s\n", view, DefaultConfig().viewDDL("generation", view))
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
})

// uncommented returns SQL without its comment lines, so that a better comment does not force a rebuild.
func uncommented(sql string) string {
	var b strings.Builder
	for line := range strings.Lines(sql) {
		if !strings.HasPrefix(strings.TrimSpace(line), "--") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func file(folder, name string) string {
	b, err := files.ReadFile(folder + "/" + name + ".sql")
	if err != nil {
		panic(err) // the files are embedded
	}
	return string(b)
}

// ErrUnreachable is in the errors of Reach about a server that does not respond as ClickHouse does.
var ErrUnreachable = errors.New("reach ClickHouse")

// Reach rejects a server that does not respond, or that is too old.
func Reach(ctx context.Context, conn driver.Conn) error {
	var v *driver.ServerVersion
	var err error
	asked := make(chan struct{})
	go func() { // it has no context, but the time limit of a connection
		v, err = conn.ServerVersion()
		close(asked)
	}()
	select {
	case <-asked:
	case <-ctx.Done():
		return fmt.Errorf("reach ClickHouse: %w", ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("%w: %w; is clickhouse.addr right and the server up?", ErrUnreachable, err)
	}
	if v.Version.Major < MinVersion[0] || v.Version.Major == MinVersion[0] && v.Version.Minor < MinVersion[1] {
		return fmt.Errorf("ClickHouse %d.%d is too old: navlog needs %d.%d or later", v.Version.Major, v.Version.Minor,
			MinVersion[0], MinVersion[1])
	}
	return nil
}

// CheckServer is Reach for the connections of Open, and rejects settings that would break exactly-once inserts.
func CheckServer(ctx context.Context, conn driver.Conn) error {
	if err := Reach(ctx, conn); err != nil {
		return err
	}
	want := map[string]string{"async_insert": "0", "insert_deduplicate": "1", sharedSnapshot: "1"}
	var settings []struct {
		Name  string `ch:"name"`
		Value string `ch:"value"`
	}
	if err := conn.Select(ctx, &settings, "SELECT name, value FROM system.settings WHERE name IN {names:Array(String)}",
		clickhouse.Named("names", slices.Sorted(maps.Keys(want)))); err != nil {
		return fmt.Errorf("read ClickHouse settings: %w", err)
	}
	for _, s := range settings {
		if want[s.Name] != s.Value {
			return fmt.Errorf("ClickHouse setting %s is %s for this user and must be %s: remove the constraint from its profile",
				s.Name, s.Value, want[s.Name])
		}
	}
	return nil
}

// TableError reports a table of a generation that is not as CreateEvents or CreateLists creates it.
type TableError struct{ Database, Table, Lacks string }

func (e *TableError) Error() string {
	return fmt.Sprintf("table %s.%s lacks %s: it was altered or not made by navlog; run `navlog projection rebuild`, a "+
		"generation is never altered", e.Database, e.Table, e.Lacks)
}
