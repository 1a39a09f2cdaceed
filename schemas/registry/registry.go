// Package registry is the contract on PostgreSQL: partners and their keys,
// endpoints and signing secrets, deliveries and their attempts, the list of
// generations, and the status of each program. The tables are in migrations/,
// the queries in queries/, and the code generated from them in db/.
//
// `navlog partner` writes partners, keys, secrets and certificates, and so does
// query if partners may change their own. query writes webhook URLs and commands;
// dispatch writes everything else about deliveries; project and `navlog projection`
// write generations. Each program takes the leases of its own jobs (Leases). Every
// operator's command that changes something adds to audit.
//
// A delivery is in one of these states:
//
//	pending      to be sent at due_at
//	parked       to be sent, but the breaker of its partner's URL is open
//	delivered    acknowledged with 2xx                                    (replayable)
//	failed       1 attempt and 3 retries failed                           (replayable)
//	no_endpoint  its partner was disabled, had no URL, or was new         (replayable)
//
// A referral that names an unknown partner has no row; the referral topics keep it, and
// it is backfilled when the partner is created.
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
	"slices"
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
	"github.com/navlog/navlog/schemas/telemetry"
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

// Commands of operators for a vault, and their outcomes.
const (
	RemoveVault    = "remove"
	RestoreVault   = "restore"
	AddVault       = "add"      // with an argument
	SetAlias       = "alias"    // with an argument
	RemoveAlias    = "unalias"  // with an argument
	SendEarlier    = "backfill" // with an argument
	CommandDone    = "done"
	CommandRefused = "refused"
)

// Config is the section `postgres` of the configuration.
type Config struct {
	// URL like postgres://user:password@host:5432/navlog?sslmode=verify-full
	URL string `yaml:"url" env:"URL"`
	// Password overrides the one in URL, in which a / or # would have to be escaped, and
	// PGPASSWORD; default none.
	Password string `yaml:"password" env:"PASSWORD"`
	// MaxConns is the size of one program's pool: 1 to 1000, default 10.
	MaxConns int32 `yaml:"maxConns" env:"MAX_CONNS"`
	// SkipMigrations leaves migrations to `navlog migrate`, which may use its own login; a
	// program that finds older tables ends with an error. Default false.
	SkipMigrations bool `yaml:"skipMigrations" env:"SKIP_MIGRATIONS"`
	// Pooled declares that URL leads to a pooler that assigns a server session per
	// transaction, such as PgBouncer in transaction mode. navlog then keeps nothing in a
	// session, and `navlog migrate`, which needs its own session, ends with an error.
	// Default false.
	Pooled bool `yaml:"pooled" env:"POOLED"`
}

// DefaultConfig returns the defaults; only URL has none.
func DefaultConfig() Config { return Config{MaxConns: 10} }

// Validate returns every problem at once, and never repeats the password.
func (c Config) Validate() error {
	var faults []error
	switch u, err := url.Parse(c.URL); {
	case err != nil || u.Host == "" || (u.Scheme != "postgres" && u.Scheme != "postgresql") || endsInPassword(u):
		faults = append(faults, errors.New("postgres.url must look like postgres://user:password@host:5432/navlog "+
			"(NAVLOG_POSTGRES_URL), with special characters of the password percent-encoded, such as %2F for /"))
	default:
		if _, err := c.parsed(); err != nil {
			faults = append(faults, err)
		}
	}
	if c.MaxConns < 1 || c.MaxConns > 1000 {
		faults = append(faults, fmt.Errorf("postgres.maxConns is %d and must be 1 to 1000", c.MaxConns))
	}
	return errors.Join(faults...)
}

// endsInPassword reports whether a special character of the password ended the host: the rest of the password is then a
// part of the database's name, the query or the fragment, and its beginning would be printed as the host.
func endsInPassword(u *url.URL) bool {
	return u.Fragment != "" || strings.ContainsAny(strings.TrimPrefix(u.EscapedPath(), "/"), "/@") ||
		u.User == nil && strings.Contains(u.RawQuery, "@")
}

// Open returns a pool after it has checked that the server responds and has migrated the
// tables, unless the configuration forbids that. Several programs may do so at once.
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
		Close(pool)
		return nil, err
	}
	return pool, nil
}

// OpenAsItIs is Open for callers that only read: it changes nothing, and returns an error
// if the tables are older than its queries.
func OpenAsItIs(ctx context.Context, c Config) (*pgxpool.Pool, error) {
	c.SkipMigrations = true
	return Open(ctx, c)
}

// Connect returns a pool after it has checked that the server responds.
func Connect(ctx context.Context, c Config) (*pgxpool.Pool, error) {
	parsed, err := c.parsed()
	if err != nil {
		return nil, err
	}
	if c.Password != "" {
		parsed.ConnConfig.Password = c.Password
	}
	parsed.MaxConns = c.MaxConns
	parsed.ConnConfig.RuntimeParams["application_name"] = "navlog"
	parsed.ConnConfig.RuntimeParams["timezone"] = "UTC"
	parsed.ConnConfig.ConnectTimeout = 5 * time.Second
	parsed.ConnConfig.OnPgError = closeReadOnly(parsed.ConnConfig.OnPgError)
	if telemetry.Enabled() {
		parsed.ConnConfig.Tracer = tracer{}
	}
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
		Close(pool)
		return nil, &unreachable{fmt.Sprintf(
			"reach PostgreSQL at %s: %s; check postgres.url, postgres.password and that the server is up",
			Servers(pool), onOneLine(err),
		), err}
	}
	err = pool.AcquireFunc(ctx,
		func(c *pgxpool.Conn) error { return supported(c.Conn().PgConn().ParameterStatus("server_version")) })
	if err != nil {
		Close(pool)
		return nil, err
	}
	return pool, nil
}

// Servers returns the addresses of the servers that postgres.url names.
func Servers(pool *pgxpool.Pool) string {
	c := pool.Config().ConnConfig
	servers := []string{fmt.Sprintf("%s:%d", c.Host, c.Port)}
	for _, f := range c.Fallbacks { // also the same server without TLS
		if server := fmt.Sprintf("%s:%d", f.Host, f.Port); !slices.Contains(servers, server) {
			servers = append(servers, server)
		}
	}
	return strings.Join(servers, ", ")
}

// closeWithin is how long Close waits for the ends of connections.
const closeWithin = time.Second

// Close closes a pool after its last use. The driver waits 15 s for a server that does not respond to the end of
// a connection; Close waits a second, after which the process may end.
func Close(pool *pgxpool.Pool) {
	closed := make(chan struct{})
	go func() {
		pool.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(closeWithin):
	}
}

// closeReadOnly ends a session that rejects a write because it is read-only, so that the pool opens another one. A
// session keeps its default_transaction_read_only after that of the database or the login has changed, and its server
// after postgres.url has begun to lead to another primary: it would reject writes until it is an hour old. The error
// says what to do, because PostgreSQL's text does not.
func closeReadOnly(next pgconn.PgErrorHandler) pgconn.PgErrorHandler {
	return func(c *pgconn.PgConn, err *pgconn.PgError) bool {
		if err.Code != readOnlyTransaction {
			return next(c, err)
		}
		err.Message += ", because " + readOnly(c.Conn().RemoteAddr().String())
		return false
	}
}

// readOnly says why a server rejects writes, and what to do.
func readOnly(server string) string {
	return fmt.Sprintf("PostgreSQL at %s is a standby, or its default_transaction_read_only is on: let postgres.url lead "+
		"to the primary, or turn that setting off", server)
}

// Writable returns an error if the server does not respond or is read-only. It ends a session that is read-only.
func Writable(ctx context.Context, pool *pgxpool.Pool) error {
	return writable(ctx, pool, "SELECT current_setting('transaction_read_only')::boolean")
}

// WritableByOthers is Writable for the logins of the programs: it ignores a setting of this login or its connection.
func WritableByOthers(ctx context.Context, pool *pgxpool.Pool) error {
	return writable(ctx, pool, "SELECT pg_is_in_recovery() OR setting::boolean AND source NOT IN "+
		"('user', 'database user', 'client', 'session') FROM pg_settings WHERE name = 'default_transaction_read_only'")
}

func writable(ctx context.Context, pool *pgxpool.Pool, query string) error {
	return pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		var rejects bool
		err := c.QueryRow(ctx, query).Scan(&rejects)
		if err != nil || !rejects {
			return err
		}
		pg := c.Conn().PgConn()
		_ = pg.Close(ctx) // the pool opens another one
		return errors.New(readOnly(pg.Conn().RemoteAddr().String()))
	})
}

// readOnlyTransaction is PostgreSQL's error code for a write in a read-only transaction, such as on a standby.
const readOnlyTransaction = "25006"

// oldestServer is the oldest major version of PostgreSQL that navlog is tested with.
const oldestServer = 15

// supported rejects a server that is too old. A version whose format is unknown is accepted.
func supported(version string) error {
	var major int
	if n, _ := fmt.Sscan(version, &major); n == 1 && major < oldestServer {
		return fmt.Errorf("PostgreSQL %s is too old: navlog needs %d or later", version, oldestServer)
	}
	return nil
}

// parsed parses the URL, and reads the files that it names. pgx repeats the URL in its errors, and may not recognise
// the password in it, so only the reason of a mistake in the parameters of TLS is kept.
func (c Config) parsed() (*pgxpool.Config, error) {
	parsed, err := pgxpool.ParseConfig(c.URL)
	if err == nil {
		return parsed, nil
	}
	reason := errors.Unwrap(err)
	if reason != nil && strings.HasSuffix(err.Error(), "failed to configure TLS ("+reason.Error()+")") {
		return nil, fmt.Errorf("postgres.url has parameters of TLS that cannot be used: %w", reason)
	}
	return nil, errors.New("postgres.url cannot be parsed: it must look like postgres://user:password@host:5432/navlog")
}

// onOneLine returns pgx's reasons without repetitions: it has a line for each attempt, and by default attempts a
// connection with TLS and one without.
func onOneLine(err error) string {
	var reasons []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); !slices.Contains(reasons, line) {
			reasons = append(reasons, line)
		}
	}
	return strings.Join(reasons, " ")
}

// unreachable describes on one line why the server does not respond, and wraps pgx's own
// error.
type unreachable struct {
	text string
	err  error
}

func (e *unreachable) Error() string { return e.text }
func (e *unreachable) Unwrap() error { return e.err }

// ofSessions are settings for sessions without a pooler, which would reject them. A
// session may hold locks, so the server must notice soon that a client's host is gone; by
// default it sends its first probe after two hours.
var ofSessions = map[string]string{
	"idle_in_transaction_session_timeout": "30s",
	"tcp_keepalives_idle":                 "5",
	"tcp_keepalives_interval":             "5",
	"tcp_keepalives_count":                "3",
	"tcp_user_timeout":                    "20s", // keepalives pause while data is unacknowledged
}

// withoutSession prepares no statement on the server: pgx caches the description of a
// statement and sends its text each time.
const withoutSession = pgx.QueryExecModeCacheDescribe

// Replanned returns Queries whose statements PostgreSQL plans for each call. After five calls of a prepared statement
// it may use one plan for all arguments. If a filter may be absent, that plan cannot use the index of the filter.
func Replanned(on db.DBTX) *db.Queries { return db.New(replanned{on}) }

type replanned struct{ db.DBTX }

func (r replanned) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return r.DBTX.Query(ctx, sql, append([]any{withoutSession}, args...)...)
}

func (r replanned) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return r.DBTX.QueryRow(ctx, sql, append([]any{withoutSession}, args...)...)
}

// Version returns the version of the tables, 0 if there are none.
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

// newest returns the newest version that this program has.
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
		return errors.New("the registry in PostgreSQL has no tables yet: `navlog migrate` creates them")
	}
	return fmt.Errorf("the tables in PostgreSQL are of version %d, and this navlog needs %d: run `navlog migrate` of "+
		"this "+
		"version, with the login that owns them, and with --roles if each program has its own login", version, newest())
}

//go:embed roles.sql
var roles string

// GrantRoles gives each program's role exactly the rights that it needs. The login must own
// the tables, and be able to create missing roles.
func GrantRoles(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, roles); err != nil {
		return fmt.Errorf("grant the rights of the programs' roles: %w", err)
	}
	return nil
}

// Migrate migrates the tables to the newest version.
func Migrate(ctx context.Context, pool *pgxpool.Pool) error {
	if pool.Config().ConnConfig.DefaultQueryExecMode == withoutSession {
		return errors.New("a migration holds a lock of a PostgreSQL session, which a pooler would pass on to others: give " +
			"it a postgres.url that leads to the server itself, and no postgres.pooled")
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
		return fmt.Errorf("migrate PostgreSQL: %w: run `navlog migrate` with the login that owns the tables, first", err)
	case err != nil:
		return fmt.Errorf("migrate PostgreSQL: %w", err)
	}
	return nil
}

// migrationLock lets one program migrate at a time. It polls, and more often than goose's own lock: a program that
// waited in PostgreSQL would hold a snapshot, for whose end CREATE INDEX CONCURRENTLY of the program that migrates
// waits.
type migrationLock struct{}

// lockInterval is how often a program that waits for another one's migration checks whether it has ended.
const lockInterval = 100 * time.Millisecond

func (migrationLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	for {
		var locked bool
		err := conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", lock.DefaultLockID).Scan(&locked)
		if err != nil || locked {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockInterval):
		}
	}
}

func (migrationLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "SELECT pg_advisory_unlock($1)", lock.DefaultLockID)
	return err
}

// Instance identifies this process in program_status: host and process id.
func Instance() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d", printable.Text(host, 255), os.Getpid())
}

// Report writes the result of status once a second until ctx ends, and with it the program's uptime of the day. status
// must be fast and safe to call from another goroutine; its value becomes JSON. Readers treat a row older than 5 s as
// unknown. Report first deletes rows older than a day, since every process has its own row. It logs a lasting failure
// once a minute.
func Report(ctx context.Context, pool *pgxpool.Pool, program string, status func() any) error {
	queries, instance := db.New(pool), Instance()
	if err := deleteOld(ctx, queries); err != nil && ctx.Err() == nil {
		slog.Warn("old status not removed", "program", program, "error", err)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	failing, unrecorded := statusOutage, uptimeOutage
	for {
		state, err := report(ctx, queries, program, instance, status())
		noted := noteUptime(ctx, queries, program, Working(state))
		if ctx.Err() == nil {
			log := slog.Default().With("program", program)
			failing.note(log, err, time.Now())
			unrecorded.note(log, noted, time.Now())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// outageLogged is how often a lasting failure to write the status is logged.
const outageLogged = time.Minute

// outage is a period in which something cannot be written.
type outage struct {
	began, ended string // messages
	failures     int
	logged       time.Time
}

var (
	statusOutage = outage{began: "status not written", ended: "status written again"}
	uptimeOutage = outage{began: "uptime not recorded", ended: "uptime recorded again"}
)

// note logs the first failure, then one per minute, and the end of the outage.
func (o *outage) note(log *slog.Logger, err error, now time.Time) {
	switch {
	case err == nil && o.failures > 0:
		log.Info(o.ended, "failures", o.failures)
		o.failures, o.logged = 0, time.Time{}
	case err == nil:
	default:
		if o.failures++; o.failures == 1 || now.Sub(o.logged) >= outageLogged {
			log.Warn(o.began, "error", err, "failures", o.failures)
			o.logged = now
		}
	}
}

func deleteOld(ctx context.Context, queries *db.Queries) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return queries.DeleteOldStatus(ctx)
}

// noteUptime records that the program runs now, and whether it is in its role.
func noteUptime(ctx context.Context, queries *db.Queries, program string, working bool) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return queries.NoteUptime(ctx, db.NoteUptimeParams{Program: program, Working: working})
}

// report writes a status and returns its state. If PostgreSQL rejects its content, report writes
// it again without texts, because a missing row means that the program is not running.
func report(ctx context.Context, queries *db.Queries, program, instance string, status any) (state string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	b, err := json.Marshal(status)
	if err != nil {
		return "", fmt.Errorf("encode the status of %s: %w", program, err)
	}
	var reported ProgramStatus
	if json.Unmarshal(b, &reported) == nil { // some other status has no state
		state = reported.State
	}
	err = queries.PutStatus(ctx, db.PutStatusParams{Program: program, Instance: instance, Status: printable.JSON(b)})
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) || !strings.HasPrefix(refusal.Code, dataException) {
		return state, err
	}
	if again := queries.PutStatus(
		ctx, db.PutStatusParams{Program: program, Instance: instance, Status: withoutTexts(b, refusal)},
	); again != nil {
		return state, errors.Join(err, again)
	}
	return state, fmt.Errorf("the status was written without its texts: %w", err)
}

// dataException is the prefix of PostgreSQL's error codes for invalid values.
const dataException = "22"

// withoutTexts returns the state, numbers and flags of a status, and the reason why the rest is missing.
func withoutTexts(status []byte, refusal *pgconn.PgError) []byte {
	var all map[string]any
	_ = json.Unmarshal(status, &all) // nothing is kept unless it is an object
	kept := map[string]any{"reason": "PostgreSQL rejects the status (" + refusal.Code + "): see the program's log"}
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
