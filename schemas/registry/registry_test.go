package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/schemas/registry/db"
)

// migrated makes databases with the tables of the newest version.
var migrated = enginetest.NewPostgresTemplate(func(ctx context.Context, url string) error {
	pool, err := Open(ctx, Config{URL: url, MaxConns: 2})
	if err == nil {
		pool.Close()
	}
	return err
})

func open(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := Open(context.Background(), Config{URL: url, MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func TestValidateReportsEveryMistakeAndNoPassword(t *testing.T) {
	if err := (Config{URL: "postgres://u:p@h:5432/db", MaxConns: 10}).Validate(); err != nil {
		t.Error(err)
	}
	for _, sound := range []string{"postgresql://h/db", "postgres://u:a%2Fb%23c@h/db", "postgres://u:a@b@h/",
		"postgres://u:p@h/of%40all%2Fchains?application_name=a@b"} {
		if err := (Config{URL: sound, MaxConns: 1}).Validate(); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "mysql://u:geheim@h/db", "postgres://", "host=h password=geheim",
		"postgres://u:geheim@h:port/db", "://geheim",
		// An unescaped character ends the host.
		"postgres://u:p@geheim/x@h/db", "postgres://u@geheim/x/db", "postgres://u:1#geheim@h/db",
		"postgres://u:1?geheim@h/db"} {
		err := Config{URL: bad, MaxConns: 0}.Validate()
		if err == nil || !strings.Contains(err.Error(), "postgres.url") ||
			!strings.Contains(err.Error(), "postgres.maxConns is 0") {
			t.Errorf("%q: %v", bad, err)
		}
		if err != nil && strings.Contains(err.Error(), "geheim") {
			t.Errorf("the error contains the password: %v", err)
		}
	}
	if err := DefaultConfig().Validate(); err == nil {
		t.Error("the defaults have no URL and are accepted")
	}
}

func TestOpenErrorsHaveTheCauseAndNoPassword(t *testing.T) {
	const addr = "127.0.0.1:1" // nothing listens there
	right, err := url.Parse(enginetest.Postgres(t))
	if err != nil {
		t.Fatal("parse the test's URL")
	}
	wrongPassword, wrongDatabase := *right, *right
	wrongPassword.User = url.UserPassword(right.User.Username(), "geheim")
	wrongDatabase.Path = "nosuchdatabase"
	for name, c := range map[string]struct{ url, part string }{
		"no listener":    {"postgres://u:geheim@" + addr + "/db", addr},
		"not a URL":      {"postgres://u:geheim@h:port/db", "postgres.url cannot be parsed"},
		"wrong password": {wrongPassword.String(), "reach PostgreSQL at"},
		"wrong database": {wrongDatabase.String(), "nosuchdatabase"},
		"unknown setting": {"postgres://u:geheim@" + addr + "/db?sslmode=nonsense",
			"postgres.url has parameters of TLS that cannot be used: sslmode is invalid"},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		pool, err := Open(ctx, Config{URL: c.url, MaxConns: 1})
		cancel()
		if err == nil {
			pool.Close()
			t.Errorf("%s: a pool was opened", name)
			continue
		}
		if !strings.Contains(err.Error(), c.part) {
			t.Errorf("%s: %v, want %q", name, err, c.part)
		}
		if password, _ := right.User.Password(); strings.Contains(err.Error(), "geheim") || password != "" &&
			strings.Contains(err.Error(), password) {
			t.Errorf("%s: a password is in the error", name)
		}
	}
}

// oldServer accepts every login and reports a version. It answers any statement as the empty one of a ping.
func oldServer(t *testing.T, version string) (addr string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				client := pgproto3.NewBackend(conn, conn)
				if _, err := client.ReceiveStartupMessage(); err != nil {
					return
				}
				client.Send(&pgproto3.AuthenticationOk{})
				client.Send(&pgproto3.ParameterStatus{Name: "server_version", Value: version})
				client.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
				for client.Flush() == nil {
					if _, err := client.Receive(); err != nil {
						return
					}
					client.Send(&pgproto3.EmptyQueryResponse{})
					client.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// A server that is too old is rejected before a statement fails that it does not know.
func TestOldServerIsRejected(t *testing.T) {
	for version, want := range map[string]string{
		"14.20 (Debian 14.20-1)": "PostgreSQL 14.20 (Debian 14.20-1) is too old: navlog needs 15 or later",
		"9.6.24":                 "PostgreSQL 9.6.24 is too old", "15.1": "", "18beta1": "", "devel": "",
	} {
		pool, err := Connect(t.Context(),
			Config{URL: "postgres://u:p@" + oldServer(t, version) + "/db?sslmode=disable", MaxConns: 1})
		if err == nil {
			pool.Close()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("a server of version %s: %v, want %q", version, err, want)
		}
	}
}

// A password outside the URL needs no escaping.
func TestPasswordOutsideURL(t *testing.T) {
	const password = "pa/ss#wo?rd@=:%2F"
	owner := open(t, migrated.Postgres(t))
	role := owner.Config().ConnConfig.Database // as unique as the test's database
	exec(t, owner, fmt.Sprintf("CREATE ROLE %s SUPERUSER LOGIN PASSWORD '%s'", role, password))
	t.Cleanup(func() {
		if _, err := owner.Exec(context.Background(), "DROP ROLE "+role); err != nil {
			t.Error(err)
		}
	})
	server := owner.Config().ConnConfig
	c := Config{URL: fmt.Sprintf("postgres://%s@%s:%d/%s?sslmode=disable", role, server.Host, server.Port,
		server.Database), MaxConns: 1}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if pool, err := Open(t.Context(), c); err == nil {
		pool.Close()
		t.Fatal("the server does not require a password")
	}
	t.Setenv("PGPASSWORD", password)
	open(t, c.URL)
	t.Setenv("PGPASSWORD", "another one")
	c.Password = password
	pool, err := Open(t.Context(), c)
	if err != nil {
		t.Fatalf("the separate password does not take precedence: %v", err)
	}
	pool.Close()
}

// Migrations run once, however many programs open the registry at the same time and wait for each other, and the tables
// reject invalid rows.
func TestMigrations(t *testing.T) {
	url := enginetest.Postgres(t)
	another, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer another.Close(context.Background())
	if _, err := another.Exec(t.Context(), "SELECT pg_advisory_lock($1)", lock.DefaultLockID); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		group.Go(func() {
			pool, err := Open(context.Background(), Config{URL: url, MaxConns: 2})
			if err == nil {
				pool.Close()
			}
			errs[i] = err
		})
	}
	for waiting := 0; waiting < len(errs); {
		if err := another.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%advisory_lock%'`).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := another.Exec(t.Context(), "SELECT pg_advisory_unlock($1)", lock.DefaultLockID); err != nil {
		t.Fatal(err)
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	pool := open(t, url)
	ctx := context.Background()
	var tables int
	if err := pool.QueryRow(ctx,
		`SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public' AND table_name IN
		('partner','api_key','endpoint','command','position','stream','delivery','attempt','breaker','job_lease','dead_record','generation','program_status')`).Scan(&tables); err != nil || tables != 13 {
		t.Errorf("%d of 13 tables: %v", tables, err)
	}
	for _, statement := range []string{
		`INSERT INTO partner (id, name) VALUES (0, 'zero is no partner')`,
		`INSERT INTO partner (id, name) VALUES (4294967296, 'not a uint32')`,
		`INSERT INTO partner (id, name) VALUES (1, '')`,
		`INSERT INTO partner (id, name, rate_limit) VALUES (1, 'a', 0)`,
		`INSERT INTO api_key (partner_id, hash, last4) VALUES (1, sha256('x'), 'xxxx')`,
		`INSERT INTO generation VALUES (1, '\x00', 's', 'live')`,
		`INSERT INTO generation VALUES (1, decode(repeat('00', 16), 'hex'), 's', 'wonderful')`,
		`INSERT INTO delivery (event_id, partner_id, sequence, type, body, state) VALUES (gen_random_uuid(), 1, 1, 't', '', 'lost')`,
	} {
		if _, err := pool.Exec(ctx, statement); err == nil {
			t.Errorf("accepted: %s", statement)
		}
	}
}

// Failed attempts from before the partner column are found after the migration, which can be
// reverted and repeated.
func TestEarlierFailuresAreFound(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), enginetest.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	conn := stdlib.OpenDBFromPool(pool)
	defer conn.Close()
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, conn, dir)
	if err != nil {
		t.Fatal(err)
	}
	step := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	_, err = provider.UpTo(t.Context(), 4)
	step("migrate to 4", err)
	_, err = pool.Exec(t.Context(),
		`INSERT INTO delivery (event_id, partner_id, sequence, type, body, state) VALUES ('00000000-0000-5000-8000-000000000001', 7, 1, 't', '', 'pending')`)
	step("insert a delivery", err)
	_, err = pool.Exec(t.Context(),
		`INSERT INTO attempt (event_id, number, url, endpoint_version, started_at, duration_ms, status) VALUES
		('00000000-0000-5000-8000-000000000001', 1, 'u', 1, '2024-02-01', 5, 302), ('00000000-0000-5000-8000-000000000001', 2, 'u', 1, '2024-02-02', 5, 204)`)
	step("insert attempts", err)
	for range 2 {
		_, err = provider.Up(t.Context())
		step("migrate", err)
		if at, err := db.New(pool).LastFailure(t.Context(), 7); err != nil || at.UTC().Format(time.DateOnly) != "2024-02-01" {
			t.Errorf("%v %v", at, err)
		}
		_, err = provider.DownTo(t.Context(), 4)
		step("migrate back", err)
	}
}

func TestOneLiveGeneration(t *testing.T) {
	queries, ctx := db.New(open(t, migrated.Postgres(t))), context.Background()
	create := func(id int32, state string) error {
		return queries.CreateGeneration(ctx,
			db.CreateGenerationParams{ID: id, LogID: make([]byte, 16), Schema: "s", State: state})
	}
	if _, err := queries.LiveGeneration(ctx); err == nil {
		t.Error("there is a live generation before the first")
	}
	for id, state := range map[int32]string{1: Live, 2: Standby, 3: Building} {
		if err := create(id, state); err != nil {
			t.Fatal(err)
		}
	}
	if create(4, Live) == nil {
		t.Error("two generations are live")
	}
	if live, err := queries.LiveGeneration(ctx); err != nil || live.ID != 1 {
		t.Errorf("live is %v: %v", live.ID, err)
	}
	if n, err := queries.SetGenerationState(ctx,
		db.SetGenerationStateParams{ID: 3, OldState: Live, NewState: Bad}); err != nil || n != 0 {
		t.Errorf("a generation that is not live was moved from live: %d, %v", n, err)
	}
	all, err := queries.ListGenerations(ctx)
	if err != nil || len(all) != 3 || all[2].State != Building {
		t.Errorf("%v %v", all, err)
	}
}

func TestPartnerByKey(t *testing.T) {
	pool := open(t, migrated.Postgres(t))
	queries, ctx := db.New(pool), context.Background()
	id, err := queries.CreatePartner(ctx, "One")
	if err != nil {
		t.Fatal(err)
	}
	key := NewAPIKey(false)
	if err := queries.CreateKey(ctx,
		db.CreateKeyParams{PartnerID: id, Hash: HashKey(key), Last4: key[len(key)-4:]}); err != nil {
		t.Fatal(err)
	}
	limit := int32(7)
	if _, err := queries.SetPartnerRateLimit(ctx, db.SetPartnerRateLimitParams{ID: id, RateLimit: &limit}); err != nil {
		t.Fatal(err)
	}
	got, err := queries.PartnerByKey(ctx, HashKey(key))
	if err != nil || got.ID != id || got.Name != "One" || got.Disabled || got.RateLimit == nil || *got.RateLimit != 7 {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := queries.PartnerByKey(ctx, HashKey(NewAPIKey(false))); err == nil {
		t.Error("an unknown key has a partner")
	}
	many, err := queries.PartnersByKeys(ctx, [][]byte{HashKey(NewAPIKey(false)), HashKey(key), HashKey(key)})
	if err != nil || len(many) != 1 || many[0].ID != id || many[0].Name != "One" || many[0].RateLimit == nil ||
		!bytes.Equal(many[0].Hash, HashKey(key)) {
		t.Errorf("%+v %v", many, err)
	}
	keys, err := queries.ListLiveKeys(ctx, id)
	if err != nil || len(keys) != 1 || keys[0].Last4 != key[len(key)-4:] {
		t.Fatalf("%v %v", keys, err)
	}
	if err := queries.RevokeKey(ctx, keys[0].ID); err != nil {
		t.Fatal(err)
	}
	if _, err := queries.PartnerByKey(ctx, HashKey(key)); err == nil {
		t.Error("a revoked key has a partner")
	}
	if many, err := queries.PartnersByKeys(ctx, [][]byte{HashKey(key)}); err != nil || len(many) != 0 {
		t.Errorf("a revoked key has %+v, %v", many, err)
	}
	var stored int
	if err := pool.QueryRow(ctx, `SELECT count(*) FROM api_key k WHERE k::text LIKE '%' || $1 || '%'`,
		key[8:40]).Scan(&stored); err != nil || stored != 0 {
		t.Errorf("the key itself is stored: %d %v", stored, err)
	}
}

// The first secret must be sealed with a key that the running dispatchers have; otherwise none of them could open it.
func TestFirstSecretCanBeOpened(t *testing.T) {
	const key, other = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY="
	pool := open(t, migrated.Postgres(t))
	if _, err := ProvenSealer(t.Context(), pool, other); err != nil {
		t.Errorf("without partners and dispatchers: %v", err)
	}
	theirs, err := NewSealer(key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.New(pool).Announce(t.Context(),
		db.AnnounceParams{Owner: uuid.New(), Milliseconds: 3_600_000, KeyIds: theirs.KeyIDs()}); err != nil {
		t.Fatal(err)
	}
	if _, err := ProvenSealer(t.Context(), pool, other); err == nil ||
		!strings.Contains(err.Error(), "1 running dispatcher could not open") {
		t.Errorf("with a key that the dispatcher does not have: %v", err)
	}
	if _, err := ProvenSealer(t.Context(), pool, key); err != nil {
		t.Errorf("with the key that it has: %v", err)
	}
}

func TestEndpointVersionRisesWithEveryChange(t *testing.T) {
	queries, ctx := db.New(open(t, migrated.Postgres(t))), context.Background()
	id, err := queries.CreatePartnerWithID(ctx, db.CreatePartnerWithIDParams{ID: 4294967295, Name: "Last"})
	if err != nil {
		t.Fatal(err)
	}
	if err := queries.CreateEndpoint(ctx, db.CreateEndpointParams{PartnerID: id, Secret: []byte("a")}); err != nil {
		t.Fatal(err)
	}
	url := "https://example.com"
	if n, err := queries.SetWebhookURL(ctx, db.SetWebhookURLParams{PartnerID: id, Url: &url}); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	if n, err := queries.SetSecret(ctx, db.SetSecretParams{PartnerID: id, Secret: []byte("b")}); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	p, err := queries.GetPartner(ctx, id)
	if err != nil || p.Version != 3 || p.Url == nil || *p.Url != url {
		t.Errorf("%+v %v", p, err)
	}
	if n, err := queries.SetWebhookURL(ctx, db.SetWebhookURLParams{PartnerID: 1, Url: &url}); err != nil || n != 0 {
		t.Errorf("an unknown partner got a URL: %d %v", n, err)
	}
}

// A rotation cannot start before the last one has ended, because that would discard the secret
// that the partner received; a replacement at once ends it.
func TestRotationsDoNotOverlap(t *testing.T) {
	pool, ctx := open(t, migrated.Postgres(t)), context.Background()
	queries := db.New(pool)
	if _, err := queries.CreatePartnerWithID(ctx, db.CreatePartnerWithIDParams{ID: 7, Name: "Seven"}); err != nil {
		t.Fatal(err)
	}
	if err := queries.CreateEndpoint(ctx, db.CreateEndpointParams{PartnerID: 7, Secret: []byte("a")}); err != nil {
		t.Fatal(err)
	}
	rotate := func(secret string, want int64) {
		t.Helper()
		n, err := queries.RotateSecret(ctx,
			db.RotateSecretParams{PartnerID: 7, NextSecret: []byte(secret), OverlapSeconds: 3600})
		if err != nil || n != want {
			t.Errorf("rotated %d secrets, not %d: %v", n, want, err)
		}
	}
	rotate("b", 1)
	rotate("c", 0)
	if end, err := queries.EndOfRotation(ctx, 7); err != nil || !end.After(time.Now()) {
		t.Errorf("the rotation ends at %s: %v", end, err)
	}
	exec(t, pool, "UPDATE endpoint SET next_at = now()")
	rotate("d", 1)
	var secrets string
	if err := pool.QueryRow(ctx,
		"SELECT convert_from(secret || next_secret, 'UTF8') FROM endpoint").Scan(&secrets); err != nil || secrets != "bd" {
		t.Errorf("the secrets are %s: %v", secrets, err)
	}
	if n, err := queries.SetSecret(ctx, db.SetSecretParams{PartnerID: 7, Secret: []byte("e")}); err != nil || n != 1 {
		t.Errorf("replaced %d secrets at once: %v", n, err)
	}
	rotate("f", 1)
}

func TestDeliveryQueries(t *testing.T) {
	pool := open(t, migrated.Postgres(t))
	queries, ctx := db.New(pool), context.Background()
	if _, err := queries.LastSuccess(ctx, 7); err == nil {
		t.Error("a success before the first delivery")
	}
	if _, err := queries.LastFailure(ctx, 7); err == nil {
		t.Error("a failure before the first delivery")
	}
	for i := 1; i <= 5; i++ {
		partner := 7 + i/5 // the fifth is another partner's
		exec(t, pool,
			fmt.Sprintf(`INSERT INTO delivery (event_id, partner_id, sequence, type, body, state, created_at, finished_at)
			VALUES ('00000000-0000-5000-8000-00000000000%d', %d, %d, 't', 'b%d', 'delivered', '2024-01-01', '2024-01-0%d')`, i,
				partner, i, i, i))
	}
	exec(t, pool, `INSERT INTO attempt (event_id, number, url, endpoint_version, started_at, duration_ms, status) VALUES
		('00000000-0000-5000-8000-000000000001', 1, 'u', 1, '2024-02-01', 5, 302), ('00000000-0000-5000-8000-000000000001', 2, 'u', 1, '2024-02-02', 5, 204),
		('00000000-0000-5000-8000-000000000005', 1, 'u', 1, '2024-02-03', 5, NULL)`)
	events, err := queries.EventsAfter(ctx, db.EventsAfterParams{PartnerID: 7, Sequence: 1, Limit: 2})
	if err != nil || len(events) != 2 || events[0].Sequence != 2 || string(events[1].Body) != "b3" {
		t.Errorf("%v %v", events, err)
	}
	list, err := queries.ListDeliveries(ctx, db.ListDeliveriesParams{PartnerID: 7, Limit: 2, Offset: 1})
	if err != nil || len(list) != 2 || list[0].Sequence != 3 {
		t.Errorf("%v %v", list, err)
	}
	if n, err := queries.CountDeliveries(ctx, 7); err != nil || n != 4 {
		t.Errorf("%d %v", n, err)
	}
	if at, err := queries.LastSuccess(ctx, 7); err != nil || at == nil || at.UTC().Format(time.DateOnly) != "2024-01-04" {
		t.Errorf("%v %v", at, err)
	}
	if at, err := queries.LastFailure(ctx, 7); err != nil || at.UTC().Format(time.DateOnly) != "2024-02-01" {
		t.Errorf("%v %v", at, err)
	}
}

// explained runs queries and records how much PostgreSQL read for the last one.
type explained struct {
	*pgxpool.Pool
	t      *testing.T
	blocks int
}

func (e *explained) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	e.explain(ctx, sql, args)
	return e.Pool.QueryRow(ctx, sql, args...)
}

func (e *explained) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	e.explain(ctx, sql, args)
	return e.Pool.Query(ctx, sql, args...)
}

func (e *explained) explain(ctx context.Context, sql string, args []any) {
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := e.Pool.QueryRow(ctx, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+sql, args...).Scan(&plans); err != nil {
		e.t.Fatal(err)
	}
	e.blocks = plans[0].Plan.Hit + plans[0].Plan.Read
}

// The last success, the last failure and the number of a partner's deliveries are found without reading its whole
// history, which is kept forever: for a partner with many of either kind, and for one with none among those of others.
func TestLastResultsAreFoundWithoutTheLog(t *testing.T) {
	pool, ctx := open(t, migrated.Postgres(t)), context.Background()
	for _, statement := range []string{
		`INSERT INTO delivery (event_id, partner_id, sequence, type, body, state, finished_at)
			SELECT gen_random_uuid(), 7 + n % 2, (n + 1) / 2, 't', '', CASE WHEN n % 2 = 0 THEN 'delivered' ELSE 'failed' END, timestamptz '2024-01-01' + n * interval '1 second'
			FROM generate_series(1, 20000) n`,
		`INSERT INTO attempt (event_id, number, url, endpoint_version, started_at, duration_ms, status)
			SELECT event_id, 1, 'u', 1, finished_at, 5, CASE WHEN state = 'delivered' THEN 204 END FROM delivery`,
		`INSERT INTO delivery (event_id, partner_id, type, body, state) VALUES (gen_random_uuid(), 7, 'webhook.test', '', 'pending')`,
	} {
		exec(t, pool, statement)
	}
	e := &explained{Pool: pool, t: t}
	queries := db.New(e)
	for partner, found := range map[int64]struct {
		success, failure bool
		deliveries       int64
	}{7: {true, false, 10_001}, 8: {false, true, 10_000}, 9: {}} {
		n, err := queries.CountDeliveries(ctx, partner)
		if err != nil || n != found.deliveries || e.blocks > 10 {
			t.Errorf("partner %d has %d deliveries, not %d, counted in %d blocks: %v", partner, n, found.deliveries, e.blocks,
				err)
		}
		for what, last := range map[string]struct {
			ask   func(context.Context, int64) error
			found bool
		}{
			"success": {func(ctx context.Context, id int64) error { _, err := queries.LastSuccess(ctx, id); return err },
				found.success},
			"failure": {func(ctx context.Context, id int64) error { _, err := queries.LastFailure(ctx, id); return err },
				found.failure},
		} {
			if err := last.ask(ctx, partner); (err == nil) != last.found {
				t.Errorf("the last %s of partner %d: %v", what, partner, err)
			}
			if e.blocks > 10 {
				t.Errorf("the last %s of partner %d is found in %d blocks", what, partner, e.blocks)
			}
		}
	}
}

// The oldest attempts are found by the index, even when the newest ones are between them in the table, as after the
// first retention, and are pruned without reading the others.
func TestOldAttemptsAreFoundByTheIndex(t *testing.T) {
	pool, ctx := open(t, migrated.Postgres(t)), context.Background()
	const insert = `INSERT INTO attempt (event_id, number, url, endpoint_version, started_at, duration_ms, status)
		SELECT gen_random_uuid(), mod(n, 2), 'u', 1, timestamptz '2024-01-01' + n * interval '1 second', 5, 204 FROM generate_series(%d, %d) n`
	for _, statement := range []string{
		fmt.Sprintf(insert, 1, 40_000), `DELETE FROM attempt WHERE number = 1`, `VACUUM attempt`,
		fmt.Sprintf(insert, 100_001, 120_000), `VACUUM ANALYZE attempt`,
	} {
		exec(t, pool, statement)
	}
	e := &explained{Pool: pool, t: t}
	queries := db.New(e)
	first, before := time.Date(2024, 1, 1, 6, 0, 0, 0, time.UTC), time.Date(2024, 1, 2, 20, 0, 0, 0, time.UTC)
	exec(t, pool, "UPDATE retention SET until = '2024-01-01 06:00Z'")
	part, err := queries.ClaimRetention(ctx, db.ClaimRetentionParams{Before: before, AtMost: 5})
	if err != nil || !part.First.Equal(first) || !part.Until.Equal(first.Add(8*time.Second+time.Microsecond)) ||
		e.blocks > 20 {
		t.Errorf("the part begins at %s and ends at %s, found in %d blocks: %v", part.First, part.Until, e.blocks, err)
	}
	if _, err := queries.PruneAttempts(ctx,
		db.PruneAttemptsParams{First: first, Until: part.Until, AttemptsKept: 4}); err != nil || e.blocks > 200 {
		t.Errorf("pruned in %d blocks: %v", e.blocks, err)
	}
}

// The live keys of a partner are found without reading the revoked ones, which stay.
func TestLiveKeysAreFoundWithoutTheRevokedOnes(t *testing.T) {
	pool, ctx := open(t, migrated.Postgres(t)), context.Background()
	for _, statement := range []string{
		`INSERT INTO partner (id, name) VALUES (7, 'Seven')`,
		`INSERT INTO api_key (partner_id, hash, last4, revoked_at)
			SELECT 7, sha256(n::text::bytea), 'abcd', CASE WHEN n < 20000 THEN now() END FROM generate_series(1, 20001) n`,
		`VACUUM ANALYZE api_key`,
	} {
		exec(t, pool, statement)
	}
	e := &explained{Pool: pool, t: t}
	if live, err := db.New(e).ListLiveKeys(ctx, 7); err != nil || len(live) != 2 || e.blocks > 10 {
		t.Errorf("%d live keys, found in %d blocks: %v", len(live), e.blocks, err)
	}
}

// A page of deliveries is found by the index, however deep in the log it starts, and the next
// page starts right after it, even among deliveries of the same time.
func TestDeliveriesAreFoundByTheIndex(t *testing.T) {
	pool, ctx := open(t, migrated.Postgres(t)), context.Background()
	exec(t, pool, `INSERT INTO delivery (event_id, partner_id, sequence, type, body, state, created_at)
		SELECT gen_random_uuid(), 7 + n % 2, CASE WHEN n % 9 > 0 THEN n END, 't', '', 'delivered', timestamptz '2024-01-01' + n / 90 * interval '1 second' FROM generate_series(1, 20000) n`)
	exec(t, pool, `ANALYZE delivery`)
	e := &explained{Pool: pool, t: t}
	queries := Replanned(e)
	for _, offset := range []int32{0, 44, 5000, 9990} {
		behind, err := queries.ListDeliveries(ctx, db.ListDeliveriesParams{PartnerID: 7, Limit: 21, Offset: offset})
		if err != nil || len(behind) < 10 {
			t.Fatal(len(behind), err)
		}
		before := behind[0]
		after := db.ListDeliveriesParams{PartnerID: 7, Limit: 20, AfterAt: &before.CreatedAt, AfterSequence: before.Sequence,
			AfterEvent: before.EventID}
		page, err := queries.ListDeliveries(ctx, after)
		if err != nil || !reflect.DeepEqual(page, behind[1:]) || e.blocks > 100 {
			t.Errorf("after %d, in %d blocks: %v\n got %v\nwant %v", offset, e.blocks, err, page, behind[1:])
		}
	}
}

// The deliveries of one transaction are found by its index in every call, although the same queries are also called
// without this filter.
func TestDeliveriesOfATransactionAreFoundByTheIndex(t *testing.T) {
	pool, ctx := open(t, migrated.Postgres(t)), t.Context()
	exec(t, pool, `INSERT INTO delivery (event_id, partner_id, sequence, type, body, state, tx_hash)
		SELECT gen_random_uuid(), 7, n, 't', '', 'delivered', sha256(n::text::bytea) FROM generate_series(1, 20000) n`)
	exec(t, pool, "ANALYZE delivery")
	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	read := func() (rows int64) {
		t.Helper()
		const counted = `SELECT (coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint
			FROM pg_stat_xact_user_tables WHERE relname = 'delivery'`
		if err := tx.QueryRow(ctx, counted).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	queries, state, hash := Replanned(tx), Delivered, HashKey("77") // the SHA-256
	find := func(state *string, hash []byte) (found int, counted, rows int64) {
		t.Helper()
		before := read()
		list, err := queries.ListDeliveries(ctx, db.ListDeliveriesParams{PartnerID: 7, State: state, TxHash: hash, Limit: 20})
		if err != nil {
			t.Fatal(err)
		}
		counted, err = queries.CountFiltered(ctx,
			db.CountFilteredParams{PartnerID: 7, State: state, TxHash: hash, AtMost: 100_000})
		if err != nil {
			t.Fatal(err)
		}
		return len(list), counted, read() - before
	}
	for range 10 { // PostgreSQL chooses a plan for all arguments after five calls
		find(&state, nil)
	}
	if found, counted, rows := find(nil, hash); found != 1 || counted != 1 || rows > 10 {
		t.Errorf("%d deliveries found and %d counted in %d rows", found, counted, rows)
	}
}

// The partners with deliveries to send are found by the index only, even right after their
// backlogs were parked, when the planner's statistics still count all of it as pending.
func TestPartnersToSendAreFoundByTheIndex(t *testing.T) {
	const partners, backlog = 40, 1000
	pool, ctx := open(t, migrated.Postgres(t)), context.Background()
	for _, statement := range []string{
		fmt.Sprintf(`INSERT INTO delivery (event_id, partner_id, sequence, type, body, state)
			SELECT gen_random_uuid(), p, n, 't', decode(repeat('ab', 350), 'hex'), 'pending' FROM generate_series(1, %d) p, generate_series(1, %d) n`, partners, backlog),
		`ANALYZE delivery`,
		`UPDATE delivery SET state = 'parked'`,
	} {
		exec(t, pool, statement)
	}
	var table int
	if err := pool.QueryRow(ctx, "SELECT pg_relation_size('delivery') / 8192").Scan(&table); err != nil {
		t.Fatal(err)
	}
	e := &explained{Pool: pool, t: t}
	rows, err := db.New(e).PartnersToSend(ctx, uuid.New())
	if err != nil || len(rows) != partners || rows[0].Due {
		t.Errorf("%d partners: %v", len(rows), err)
	}
	if e.blocks > table {
		t.Errorf("found in %d blocks; the table has %d", e.blocks, table)
	}
}

func TestReportWritesUntilTheEnd(t *testing.T) {
	pool := open(t, migrated.Postgres(t))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- Report(ctx, pool, "query", func() any { return map[string]int{"seq": 7} })
	}()
	deadline, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		status, err := db.New(pool).ListStatus(deadline)
		if err != nil {
			t.Fatal(err)
		}
		if len(status) == 1 {
			if s := status[0]; s.Program != "query" || s.Instance != Instance() || string(s.Status) != `{"seq": 7}` ||
				s.AgeMs < 0 {
				t.Errorf("%+v %s", s, s.Status)
			}
			break
		}
		<-tick.C
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := report(context.Background(), db.New(pool), "query", "i", func() {}); err == nil ||
		!strings.Contains(err.Error(), "encode the status of query") {
		t.Errorf("a status that cannot be encoded: %v", err)
	}
}

// A status may contain any foreign text. Its row is written all the same, since a missing row
// means that the program is not running.
func TestAnyStatusIsWritten(t *testing.T) {
	pool := open(t, migrated.Postgres(t))
	queries := db.New(pool)
	stored := func(status any) (s map[string]any, err error) {
		_, err = report(t.Context(), queries, Ingest, "i", status)
		rows, fault := queries.ListStatus(t.Context())
		if fault != nil || len(rows) != 1 {
			t.Fatalf("%d rows, %v", len(rows), fault)
		}
		if err := json.Unmarshal(rows[0].Status, &s); err != nil {
			t.Fatal(err)
		}
		return s, err
	}
	for text, want := range map[string]string{
		"HTTP 500: page\x00with a NUL": "HTTP 500: page\ufffdwith a NUL",
		"cut \xe2\x82 and \xff":        "cut \ufffd\ufffd and \ufffd",
		"\\u0000 as text":              "\\u0000 as text",
	} {
		s, err := stored(ProgramStatus{State: Following,
			ChainStatus: ChainStatus{Endpoints: []EndpointStatus{{LastError: text}}}})
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if got := s["endpoints"].([]any)[0].(map[string]any)["lastError"]; got != want {
			t.Errorf("%q is stored as %q, want %q", text, got, want)
		}
	}
	// Values that PostgreSQL rejects for another reason are omitted, with the reason.
	s, err := stored(map[string]any{"state": Following, "headBlock": 7, "weird": json.Number("1e400000")})
	if err == nil || s["state"] != Following || s["headBlock"] != 7.0 || s["reason"] == nil || s["weird"] != nil {
		t.Errorf("a rejected status is stored as %v (%v)", s, err)
	}
}

// A lasting failure is not logged every second.
func TestOutageIsLoggedOncePerMinute(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	o := statusOutage
	at := time.Unix(1_700_000_000, 0)
	for i := range 150 { // seconds
		o.note(log, fmt.Errorf("refused, the %d. time", i), at.Add(time.Duration(i)*time.Second))
	}
	if lines := strings.Count(out.String(), "\n"); lines != 3 {
		t.Errorf("150 s of failures make %d lines:\n%s", lines, out.String())
	}
	out.Reset()
	for range 3 {
		o.note(log, nil, at)
	}
	if !strings.Contains(out.String(), "status written again") || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("the end is logged as %q", out.String())
	}
}

func TestPartnerNamePrints(t *testing.T) {
	for _, name := range []string{"a\x00b", "a\u202eb", "\xff", strings.Repeat("x", maxName+1)} {
		if _, err := CreatePartner(t.Context(), nil, "me", nil, 0, name, false); err == nil ||
			!strings.Contains(err.Error(), "unprintable") {
			t.Errorf("%.20q: %v", name, err)
		}
	}
}

// Report first deletes the rows of processes that ended long ago, and no others.
func TestReportDeletesOldRows(t *testing.T) {
	pool := open(t, migrated.Postgres(t))
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	exec(t, pool, `INSERT INTO program_status (program, instance, at, status) VALUES
		('query', 'gone', now() - interval '25 hours', '{}'), ('query', 'silent', now() - interval '23 hours', '{}')`)
	reporting, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		done <- Report(reporting, pool, "query", func() any { return nil })
	}()
	instances := func() (names []string) {
		status, err := db.New(pool).ListStatus(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range status {
			names = append(names, s.Instance)
		}
		return names
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !slices.Contains(instances(), Instance()) {
		<-tick.C
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if names := instances(); slices.Contains(names, "gone") || !slices.Contains(names, "silent") {
		t.Errorf("the status is of %q: rows of 25 hours ago must be deleted and those of 23 must not", names)
	}
}

// Announcements reach every listener until its connection ends, which is reported without the
// password.
func TestAnnounceWritten(t *testing.T) {
	pool := open(t, migrated.Postgres(t))
	ready, notified, ended := make(chan struct{}), make(chan int32, 8), make(chan error, 1)
	go func() {
		ended <- ListenWritten(t.Context(), pool, func() { close(ready) }, func(generation int32) { notified <- generation })
	}()
	<-ready
	exec(t, pool, "SELECT pg_notify($1, 'something else')", written)
	for _, generation := range []int32{7, 8} {
		if err := AnnounceWritten(t.Context(), pool, generation); err != nil {
			t.Fatal(err)
		}
		if got := <-notified; got != generation {
			t.Errorf("got generation %d, want %d", got, generation)
		}
	}
	exec(t, pool, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query "+
		"LIKE 'LISTEN%'")
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "listen to PostgreSQL") {
		t.Errorf("the listener ended with %v", err)
	}
	pool.Close()
	if err := AnnounceWritten(t.Context(), pool, 9); err == nil || !strings.Contains(err.Error(), "generation 9") {
		t.Errorf("an announcement with a closed pool: %v", err)
	}
}

// Writing a result reads only the newest attempts of its event: the first attempt and the twenty
// thousandth cost the same.
func TestResultIsWrittenWithoutTheLog(t *testing.T) {
	pool, ctx := open(t, migrated.Postgres(t)), context.Background()
	few, many := uuid.New(), uuid.New()
	for _, statement := range []string{
		fmt.Sprintf(`INSERT INTO delivery (event_id, partner_id, sequence, type, body, state) VALUES ('%s', 7, 1, 't', '', 'pending'), ('%s', 7, 2, 't', '', 'pending')`, few, many),
		fmt.Sprintf(`INSERT INTO attempt (event_id, number, url, endpoint_version, started_at, duration_ms, status)
			SELECT '%s', n, 'u', 1, timestamptz '2024-01-01' + n * interval '1 second', 5, 200 FROM generate_series(1, 20000) n`,
			many),
		"ANALYZE attempt",
	} {
		exec(t, pool, statement)
	}
	e := &explained{Pool: pool, t: t}
	queries := db.New(e)
	for _, id := range []uuid.UUID{few, many} {
		p := db.FinishAttemptsParams{
			EventIds: []uuid.UUID{id}, PartnerIds: []int64{7}, Fences: []int64{1}, States: []string{"delivered"},
			Attempts: []int32{1}, WaitMs: []int64{0},
			Finished: []bool{true}, Urls: []string{"u"}, EndpointVersions: []int64{1}, StartedAt: []time.Time{time.Now()},
			DurationMs: []int32{1},
			Statuses:   []int32{200}, Errors: []string{""}, Responses: [][]byte{nil}, DnsUs: []int32{-1}, ConnectUs: []int32{-1},
			TlsUs: []int32{-1}, FirstByteUs: []int32{-1},
			Owner: uuid.New(), AttemptsKept: 1 << 30,
		}
		if _, err := queries.FinishAttempts(ctx, p); err != nil {
			t.Fatal(err)
		}
		if e.blocks > 60 {
			t.Errorf("writing a result reads %d blocks", e.blocks)
		}
	}
}
