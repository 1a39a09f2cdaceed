package registry

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/schemas/certs/certstest"
)

// TestOwnCertificates: a server with a private authority that requires a client certificate is reached with the right
// parameters of postgres.url, and not with others.
func TestOwnCertificates(t *testing.T) {
	ours, other := certstest.New(t), certstest.New(t)
	dir, err := engines.TempDir("secure")
	must(t, err)
	dir = filepath.Join(dir, "postgres")
	server, err := engines.StartPostgres(t.Context(), dir)
	must(t, err)
	t.Cleanup(server.Kill)
	data := filepath.Join(dir, "data")
	info, err := os.Stat(data)
	must(t, err)
	owner := info.Sys().(*syscall.Stat_t)
	put := func(name string, text []byte) {
		t.Helper()
		must(t, os.WriteFile(filepath.Join(data, name), text, 0o600))
		must(t, os.Chown(filepath.Join(data, name), int(owner.Uid), int(owner.Gid)))
	}
	for name, file := range map[string]string{"ca.pem": ours.Files().CA, "server.crt": ours.Files().Cert,
		"server.key": ours.Files().Key} {
		text, err := os.ReadFile(file)
		must(t, err)
		put(name, text)
	}
	conn, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	t.Cleanup(func() { conn.Close(context.Background()) })
	put("pg_hba.conf", []byte("hostssl all all 127.0.0.1/32 scram-sha-256 clientcert=verify-ca\n"))
	for _, statement := range []string{"ALTER SYSTEM SET ssl_ca_file = 'ca.pem'", "ALTER SYSTEM SET ssl = on",
		"SELECT pg_reload_conf()"} {
		_, err := conn.Exec(t.Context(), statement)
		must(t, err)
	}
	reach := func(mode, ca, cert, key string) error {
		u, err := url.Parse(server.URL)
		must(t, err)
		q := url.Values{"sslmode": {mode}}
		for name, file := range map[string]string{"sslrootcert": ca, "sslcert": cert, "sslkey": key} {
			if file != "" {
				q.Set(name, file)
			}
		}
		u.RawQuery = q.Encode()
		pool, err := Open(t.Context(), Config{URL: u.String(), MaxConns: 1})
		if err == nil {
			pool.Close()
		}
		return err
	}
	good, bad := ours.Files(), other.Files()
	wait.Until(t, func() error { // the server reads its files a moment later
		return reach("verify-full", good.CA, good.Cert, good.Key)
	})
	for _, c := range []struct{ what, mode, ca, cert, key, want string }{
		{"no encryption", "disable", "", "", "", "no encryption"},
		{"another authority", "verify-full", bad.CA, good.Cert, good.Key, "certificate"},
		{"no client certificate", "verify-full", good.CA, "", "", "client certificate"},
		{"a client certificate of another authority", "verify-full", good.CA, bad.Cert, bad.Key, ""},
	} {
		if err := reach(c.mode, c.ca, c.cert, c.key); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
