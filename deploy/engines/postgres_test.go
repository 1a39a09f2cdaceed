package engines

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/deploy/testkit/wait"
)

func TestPostgresKeepsData(t *testing.T) {
	p := startPostgresFor(t, engineDir(t))
	for i, end := range []func(*Postgres){
		func(p *Postgres) {
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			if p.err != nil {
				t.Errorf("it did not end gracefully: %v: %s", p.err, p.lastLines())
			}
		},
		(*Postgres).Kill,
		(*Postgres).Kill,
	} {
		if url := p.URL; i > 0 {
			if err := p.Restart(t.Context()); err != nil || p.URL != url {
				t.Fatalf("at %s it comes back at %s: %v", url, p.URL, err)
			}
		}
		conn := connectPostgres(t, p.URL) // stays open: neither way of stopping may wait for it
		var rows int
		for _, statement := range []string{"CREATE TABLE IF NOT EXISTS t (n int)", "INSERT INTO t VALUES (1)"} {
			if _, err := conn.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM t").Scan(&rows); err != nil {
			t.Fatal(err)
		}
		if rows != i+1 {
			t.Fatalf("after %d restarts: %d rows, want %d", i, rows, i+1)
		}
		end(p)
		if err := gone(p.Pid); err != nil {
			t.Error(err)
		}
	}
}

func TestPostgresSettings(t *testing.T) {
	p := startPostgresFor(t, engineDir(t))
	conn := connectPostgres(t, p.URL)
	for name, want := range map[string]string{
		"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "on", "max_connections": "100",
		"password_encryption": "scram-sha-256", "TimeZone": "UTC", "server_encoding": "UTF8",
	} {
		var got string
		if err := conn.QueryRow(t.Context(), "SELECT current_setting($1)", name).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if conn.Config().Database != "navlog" {
		t.Errorf("the database is %q", conn.Config().Database)
	}
}

func TestPostgresPassword(t *testing.T) {
	dir := engineDir(t)
	p := startPostgresFor(t, dir)
	info, err := os.Stat(filepath.Join(dir, "password"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the password's file has mode %v", info.Mode())
	}
	config, err := pgx.ParseConfig(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, password := range []string{"", "wrong"} {
		config.Password = password
		if conn, err := pgx.ConnectConfig(t.Context(), config); err == nil {
			conn.Close(t.Context())
			t.Errorf("connected with the password %q", password)
		}
	}
}

func TestPostgresGoesWithItsParent(t *testing.T) {
	dir := engineDir(t)
	p := startParent(t, "postgres", dir)
	p.kill()
	wait.Until(t, func() error { return gone(p.Pid) })
	if _, err := os.Stat(filepath.Join(dir, "data", "postmaster.pid")); err == nil {
		t.Error("it did not end gracefully: postmaster.pid is still there")
	}
}

// A start right after the parent's death finds the predecessor still shutting down, and waits for it.
func TestPostgresRestartsAtOnce(t *testing.T) {
	dir := engineDir(t)
	for range 3 {
		p := startParent(t, "postgres", dir)
		connectPostgres(t, p.Addr)
		p.kill()
	}
	startPostgresFor(t, dir)
}

func TestPostgresRefuses(t *testing.T) {
	t.Run("a folder that its user cannot reach", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("only root starts the server as another user")
		}
		dir := engineDir(t)
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		_, err := StartPostgres(t.Context(), filepath.Join(dir, "postgres"))
		wantMessage(t, err, "uid 65534", dir, "chmod o+x")
	})
	t.Run("a port in use, or data of another version", func(t *testing.T) {
		dir := engineDir(t)
		p := startPostgresFor(t, dir)
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		use(t, addr(p.server.port))
		wantPortError(t, p.Restart(t.Context()), p.server.port)
		if err := os.WriteFile(filepath.Join(dir, "data", "PG_VERSION"), []byte("9\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := StartPostgres(t.Context(), dir)
		wantMessage(t, err, "postgresql.log", "incompatible")
	})
}

// Without the npm package, an installation of the machine is used.
func TestPostgresOfTheMachine(t *testing.T) {
	if len(installedPostgres()) == 0 { // then the package's programs are installed
		bin, err := packagedPostgres()
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	t.Setenv(enginesEnv, t.TempDir())
	p := startPostgresFor(t, engineDir(t))
	connectPostgres(t, p.URL)
}

func TestPostgresLinks(t *testing.T) {
	for range 2 { // the second time the links exist already
		bin, err := packagedPostgres()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(bin, filepath.FromSlash("native/bin")) {
			t.Fatalf("the programs are in %s", bin)
		}
	}
}

func startPostgresFor(t *testing.T, dir string) *Postgres {
	t.Helper()
	p, err := StartPostgres(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func connectPostgres(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(t.Context()) })
	return conn
}

// The end of the server is reported with its log; the end of the context is not.
func TestPostgresThatEndsIsReported(t *testing.T) {
	p := startPostgresFor(t, engineDir(t))
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := p.Watch(stopped); err != nil {
		t.Errorf("of a server that runs: %v", err)
	}
	p.Kill()
	if err := p.Watch(t.Context()); err == nil || !strings.Contains(err.Error(), "has ended by itself") ||
		!strings.Contains(err.Error(), p.log) {
		t.Errorf("of a server that was killed: %v", err)
	}
}
