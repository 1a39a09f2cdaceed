package enginetest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/deploy/engines"
)

// pooledSessions is how many sessions of the server PgBouncer shares out: so few that
// each is soon another client's.
const pooledSessions = 2

// PgBouncer is the URL of a database behind a PgBouncer of the test's own, in transaction
// mode. Where this machine has none, and no way to install it, the test is skipped.
func PgBouncer(t testing.TB, database string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		t.Skip(err)
	}
	server, err := url.Parse(database)
	if err != nil {
		t.Fatal("parse the URL of the database") // the error would hold the password
	}
	var said strings.Builder
	for range 10 { // a free port may be taken by somebody else before it is used
		pooled := *server
		pooled.User, pooled.Host = url.User(server.User.Username()), must(t, engines.FreeAddr)
		if startPgBouncer(t, program, server, &pooled, &said) {
			return pooled.String()
		}
	}
	t.Fatalf("PgBouncer does not start: %s", said.String())
	return ""
}

// startPgBouncer tells whether it answers; if not, it has ended.
func startPgBouncer(t testing.TB, program string, server, pooled *url.URL, said *strings.Builder) bool {
	t.Helper()
	name, password := strings.TrimPrefix(server.Path, "/"), ""
	if given, ok := server.User.Password(); ok {
		password = given
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "pgbouncer.ini")
	settings := fmt.Sprintf("[databases]\n%s = host=%s port=%s user=%s password=%s\n[pgbouncer]\nlisten_addr = %s\nlisten_port = %s\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = %d\n",
		name, server.Hostname(), server.Port(), server.User.Username(), password, pooled.Hostname(), pooled.Port(), pooledSessions)
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{file}
	if os.Geteuid() == 0 { // it refuses to be root, and reads its settings before it becomes another
		args = append([]string{"--user=nobody"}, args...)
	}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = said, said
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGKILL) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	for {
		conn, err := pgx.Connect(ctx, pooled.String())
		if err == nil {
			_ = conn.Close(ctx)
			t.Cleanup(func() { stop(); <-ended })
			return true
		}
		select {
		case <-ended:
			stop()
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
}
