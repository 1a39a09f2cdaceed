package engines

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
)

const pgBouncerName = "PgBouncer"

// pooledSessions is the number of server sessions in the pool: so few that clients soon get each other's sessions.
const pooledSessions = 2

// A PgBouncer is a running pooler in transaction mode.
type PgBouncer struct {
	URL string // of the database, through the pooler
	*process
}

// PgBouncerAvailable returns an error that says what StartPgBouncer would lack on this machine, or nil.
func PgBouncerAvailable() error {
	_, err := pgBouncerProgram()
	return err
}

func pgBouncerProgram() (string, error) {
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		return "", fmt.Errorf("find %s: there is no pgbouncer in PATH: install it (Debian: apt-get install pgbouncer)",
			pgBouncerName)
	}
	return program, nil
}

// StartPgBouncer starts a pooler on a free port in front of a database, with its settings in dir. It returns when the
// database responds through it.
func StartPgBouncer(ctx context.Context, dir, database string) (*PgBouncer, error) {
	program, err := pgBouncerProgram()
	if err != nil {
		return nil, err
	}
	server, err := url.Parse(database)
	if err != nil {
		// the error would contain the password
		return nil, fmt.Errorf("start %s: the URL of the database cannot be parsed", pgBouncerName)
	}
	p := new(PgBouncer)
	p.process, err = start(ctx, pgBouncerName, dir, func(dir string) (childSpec, error) {
		port, err := claimPort(pgBouncerName, 0)
		if err != nil {
			return childSpec{}, err
		}
		pooled := *server
		pooled.User, pooled.Host = url.User(server.User.Username()), addr(port)
		p.URL = pooled.String()
		file := filepath.Join(dir, "pgbouncer.ini")
		if err := os.WriteFile(file, []byte(pgBouncerSettings(server, port)), 0o600); err != nil {
			return childSpec{}, fmt.Errorf("start %s: write its settings: %w", pgBouncerName, err)
		}
		args := []string{program}
		if os.Geteuid() == 0 { // it refuses to run as root, and reads its settings before it switches user
			args = append(args, "--user=nobody") // words: "nobody": the name of a user
		}
		// Its graceful ways to stop wait for clients, and it has nothing to lose: it is simply killed.
		return childSpec{Kind: supervisorKind, Path: program, Dir: dir, Args: append(args, file)}, nil
	}, p.answers)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (p *PgBouncer) answers(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.URL)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

func pgBouncerSettings(server *url.URL, port int) string {
	password, _ := server.User.Password()
	return strings.Join([]string{
		"[databases]",
		fmt.Sprintf("%s = host=%s port=%s user=%s password=%s", strings.TrimPrefix(server.Path, "/"), server.Hostname(),
			server.Port(), server.User.Username(), password),
		"[pgbouncer]",
		"listen_addr = " + loopback,
		fmt.Sprintf("listen_port = %d", port),
		"unix_socket_dir =",
		"auth_type = any",
		"pool_mode = transaction",
		fmt.Sprintf("default_pool_size = %d", pooledSessions),
		"idle_transaction_timeout = 30", // as docs/operations.md recommends
		"",
	}, "\n")
}
