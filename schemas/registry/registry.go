// Package registry is the contract about PostgreSQL: partners and their keys,
// endpoints and signing secrets, deliveries and their attempts, the list of
// generations, and what each program says of itself. The tables are in
// migrations/, the questions in queries/, the code made from them in db/.
//
// Each column has one writer. `navlog partner` writes partners, keys and
// secrets; query writes webhook URLs and commands; dispatch writes everything
// else about deliveries; project and `navlog projection` write generations. Every
// command of an operator that changes something adds to audit.
//
// A delivery is in one of these states:
//
//	pending      to be sent at due_at
//	parked       to be sent, but the breaker of its partner's URL is open
//	delivered    answered with 2xx                                        (replayable)
//	failed       1 attempt and 3 retries went wrong                       (replayable)
//	no_endpoint  its partner is disabled, has no URL, or came later       (replayable)
//
// What names a partner that does not exist has no row; the referral topics keep it,
// and it is found when the partner is created.
package registry

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/navlog/navlog/schemas/printable"
	"github.com/navlog/navlog/schemas/registry/db"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Delivery states.
const (
	Pending    = "pending"
	Parked     = "parked"
	Delivered  = "delivered"
	Failed     = "failed"
	NoEndpoint = "no_endpoint"
)

// Generation states. There is at most one live generation.
const (
	Building = "building"
	Live     = "live"
	Standby  = "standby"
	Bad      = "bad"
	Dropped  = "dropped"
)

// What operators want done to a vault, and what came of it.
const (
	RemoveVault    = "remove"
	RestoreVault   = "restore"
	AddVault       = "add" // with an argument
	CommandDone    = "done"
	CommandRefused = "refused"
)

// Config says how to reach PostgreSQL.
type Config struct {
	// URL like postgres://user:password@host:5432/navlog?sslmode=verify-full
	URL string `yaml:"url" env:"URL"`
	// Password wins over the one in URL, in which a / or # would mean something else, and
	// over PGPASSWORD; default none.
	Password string `yaml:"password" env:"PASSWORD"`
	// MaxConns of the pool of one program: 1 to 1000, default 10.
	MaxConns int32 `yaml:"maxConns" env:"MAX_CONNS"`
	// SkipMigrations: only `navlog migrate` brings the tables up to date, with a login
	// of its own; a program that finds older ones refuses them. Default false.
	SkipMigrations bool `yaml:"skipMigrations" env:"SKIP_MIGRATIONS"`
	// Pooled: URL leads to a pooler that gives a server's session for one transaction at
	// a time, as PgBouncer in transaction mode. Then nothing is kept in a session, and
	// what needs one of its own is refused: `navlog project` and `navlog migrate`.
	// Default false.
	Pooled bool `yaml:"pooled" env:"POOLED"`
}

// DefaultConfig has everything but the URL.
func DefaultConfig() Config { return Config{MaxConns: 10} }

// Validate reports every mistake at once, and never repeats the password.
func (c Config) Validate() error {
	var faults []error
	if u, err := url.Parse(c.URL); err != nil || u.Host == "" || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		faults = append(faults, errors.New("postgres.url must look like postgres://user:password@host:5432/navlog (NAVLOG_POSTGRES_URL)"))
	}
	if c.MaxConns < 1 || c.MaxConns > 1000 {
		faults = append(faults, fmt.Errorf("postgres.maxConns is %d and must be 1 to 1000", c.MaxConns))
	}
	return errors.Join(faults...)
}

// Open makes a pool, checks that the server answers and brings the tables up
// to date, unless that is left to others. Several programs may do so at once.
func Open(ctx context.Context, c Config) (*pgxpool.Pool, error) {
	pool, err := Connect(ctx, c)
	if err != nil {
		return nil, err
	}
	version, err := Version(ctx, pool)
	switch {
	case err != nil:
	case version >= newest():
	case c.SkipMigrations || c.Pooled:
		err = outdated(version)
	default:
		err = Migrate(ctx, pool)
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// OpenAsItIs is Open for who only reads: it changes nothing, and refuses tables
// that are older than what it would ask them.
func OpenAsItIs(ctx context.Context, c Config) (*pgxpool.Pool, error) {
	c.SkipMigrations = true
	return Open(ctx, c)
}

// Connect makes a pool and checks that the server answers, and nothing more.
func Connect(ctx context.Context, c Config) (*pgxpool.Pool, error) {
	parsed, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, errors.New("postgres.url cannot be parsed: it must look like postgres://user:password@host:5432/navlog")
	}
	if c.Password != "" {
		parsed.ConnConfig.Password = c.Password
	}
	parsed.MaxConns = c.MaxConns
	parsed.ConnConfig.RuntimeParams["application_name"] = "navlog"
	parsed.ConnConfig.RuntimeParams["timezone"] = "UTC"
	parsed.ConnConfig.ConnectTimeout = 5 * time.Second
	if c.Pooled {
		parsed.ConnConfig.DefaultQueryExecMode = withoutSession
	} else {
		maps.Copy(parsed.ConnConfig.RuntimeParams, ofSessions)
	}
	pool, err := pgxpool.NewWithConfig(ctx, parsed)
	if err != nil {
		return nil, fmt.Errorf("open PostgreSQL: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		// pgx spreads the attempts over several lines.
		reason := strings.Join(strings.Fields(err.Error()), " ")
		return nil, &unreachable{fmt.Sprintf("reach PostgreSQL at %s:%d: %s; is postgres.url right and the server up?", parsed.ConnConfig.Host, parsed.ConnConfig.Port, reason), err}
	}
	return pool, nil
}

// unreachable says on one line why the server does not answer; what it wraps is
// pgx's own error.
type unreachable struct {
	text string
	err  error
}

func (e *unreachable) Error() string { return e.text }
func (e *unreachable) Unwrap() error { return e.err }

// ofSessions are settings of a session that is one program's alone; a pooler refuses a
// connection that brings them. A lease is a lock of a session: of a host that is gone the
// server must soon know that it is, and by default it asks for the first time after two
// hours.
var ofSessions = map[string]string{
	"idle_in_transaction_session_timeout": "30s",
	"tcp_keepalives_idle":                 "5",
	"tcp_keepalives_interval":             "5",
	"tcp_keepalives_count":                "3",
	"tcp_user_timeout":                    "20s", // keepalives rest while an answer is on its way
}

// withoutSession prepares nothing that a later transaction would need: what was learnt
// about a statement is kept here, and the statement is sent each time.
const withoutSession = pgx.QueryExecModeCacheDescribe

// OwnSessions is nil where each connection of a pool is a session of the server. what
// needs one, and is named in the error.
func OwnSessions(pool *pgxpool.Pool, what string) error {
	if pool.Config().ConnConfig.DefaultQueryExecMode != withoutSession {
		return nil
	}
	return fmt.Errorf("%s holds a lock of a PostgreSQL session, which behind a pooler would be another's: give it a postgres.url that leads to the server itself, and no postgres.pooled", what)
}

// Version is that of the tables: 0 where there are none.
func Version(ctx context.Context, pool *pgxpool.Pool) (int64, error) {
	var version int64
	err := pool.QueryRow(ctx, "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied").Scan(&version)
	var refusal *pgconn.PgError
	if errors.As(err, &refusal) && refusal.Code == "42P01" {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the version of the tables in PostgreSQL: %w", err)
	}
	return version, nil
}

// newest is the version that this program knows.
func newest() int64 {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil || len(names) == 0 {
		panic("the registry has no migrations") // they are embedded
	}
	version, err := goose.NumericComponent(names[len(names)-1]) // sorted
	if err != nil {
		panic(err)
	}
	return version
}

func outdated(version int64) error {
	if version == 0 {
		return errors.New("the registry in PostgreSQL has no tables yet: `navlog migrate` makes them")
	}
	return fmt.Errorf("the tables in PostgreSQL are of version %d, and this navlog needs %d: run `navlog migrate` of this version, with the login that owns them, and with --roles where each program has a login of its own", version, newest())
}

//go:embed roles.sql
var roles string

// GrantRoles gives each program's role the rights that its work takes, and no other.
// The login must own the tables, and make roles where some are missing.
func GrantRoles(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, roles); err != nil {
		return fmt.Errorf("grant the rights of the programs' roles: %w", err)
	}
	return nil
}

// Migrate brings the tables up to date.
func Migrate(ctx context.Context, pool *pgxpool.Pool) error {
	if err := OwnSessions(pool, "a migration"); err != nil {
		return err
	}
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	conn := stdlib.OpenDBFromPool(pool)
	defer conn.Close()
	provider, err := goose.NewProvider(goose.DialectPostgres, conn, dir, goose.WithSessionLocker(migrationLock{}))
	if err != nil {
		return fmt.Errorf("prepare the migrations of PostgreSQL: %w", err)
	}
	_, err = provider.Up(ctx)
	var refusal *pgconn.PgError
	switch {
	case errors.As(err, &refusal) && refusal.Code == "42501":
		return fmt.Errorf("migrate PostgreSQL: %w: run `navlog migrate` with the login that owns the tables, before this", err)
	case err != nil:
		return fmt.Errorf("migrate PostgreSQL: %w", err)
	}
	return nil
}

// migrationLock lets one program migrate at a time. It waits in PostgreSQL:
// goose's own lock asks again after 5 s, for which programs that start together
// would wait for each other even with nothing to migrate.
type migrationLock struct{}

func (migrationLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", lock.DefaultLockID)
	return err
}

func (migrationLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "SELECT pg_advisory_unlock($1)", lock.DefaultLockID)
	return err
}

// Instance names this process in program_status: host and process id.
func Instance() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d", printable.Text(host, 255), os.Getpid())
}

// Report writes what status returns once a second until ctx ends. status must
// be fast and safe to call from another goroutine; its value becomes JSON.
// Anything older than 5 s is to be read as unknown. What has said nothing for a
// day is forgotten first: an instance has the name of its process, and the rows
// of all that ever ran would stay. A failure that lasts is logged once a minute.
func Report(ctx context.Context, pool *pgxpool.Pool, program string, status func() any) error {
	queries, instance := db.New(pool), Instance()
	if err := forgetOld(ctx, queries); err != nil && ctx.Err() == nil {
		slog.Warn("old status not removed", "program", program, "error", err)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var failing outage
	for {
		err := report(ctx, queries, program, instance, status())
		if ctx.Err() == nil {
			failing.note(slog.Default().With("program", program), err, time.Now())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// outageLogged is how often a failure to write the status is logged while it lasts.
const outageLogged = time.Minute

// outage is a time in which the status cannot be written.
type outage struct {
	failures int
	logged   time.Time
}

// note logs the first failure, one a minute of those that follow, and the end of it.
func (o *outage) note(log *slog.Logger, err error, now time.Time) {
	switch {
	case err == nil && o.failures > 0:
		log.Info("status written again", "failures", o.failures)
		*o = outage{}
	case err == nil:
	default:
		if o.failures++; o.failures == 1 || now.Sub(o.logged) >= outageLogged {
			log.Warn("status not written", "error", err, "failures", o.failures)
			o.logged = now
		}
	}
}

func forgetOld(ctx context.Context, queries *db.Queries) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return queries.DeleteOldStatus(ctx)
}

// report writes a status. One that PostgreSQL refuses for what is in it is written again without its texts: a row that is
// missing means that the program does not live.
func report(ctx context.Context, queries *db.Queries, program, instance string, status any) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	b, err := json.Marshal(status)
	if err != nil {
		return fmt.Errorf("encode the status of %s: %w", program, err)
	}
	err = queries.PutStatus(ctx, db.PutStatusParams{Program: program, Instance: instance, Status: printable.JSON(b)})
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) || !strings.HasPrefix(refusal.Code, dataException) {
		return err
	}
	if again := queries.PutStatus(ctx, db.PutStatusParams{Program: program, Instance: instance, Status: withoutTexts(b, refusal)}); again != nil {
		return errors.Join(err, again)
	}
	return fmt.Errorf("the status is written without its texts: %w", err)
}

// dataException is how the codes of PostgreSQL for a value that it does not take begin.
const dataException = "22"

// withoutTexts returns the state, the numbers and the flags of a status, and why there is no more of it.
func withoutTexts(status []byte, refusal *pgconn.PgError) []byte {
	var all map[string]any
	_ = json.Unmarshal(status, &all) // no object: nothing is kept of it
	kept := map[string]any{"reason": "PostgreSQL refuses the status (" + refusal.Code + "): the program's log says why"}
	for name, value := range all {
		switch value := value.(type) {
		case float64, bool:
			kept[name] = value
		case string:
			if name == "state" {
				kept[name] = printable.Text(value, printable.Sentence)
			}
		}
	}
	b, err := json.Marshal(kept)
	if err != nil {
		panic(err) // it came from JSON
	}
	return b
}
