package engines

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	postgresName     = "PostgreSQL"
	postgresUser     = "navlog"
	postgresDatabase = "navlog"
	// nobodyID is the user that PostgreSQL runs as if the parent is root, because it refuses to run as root.
	nobodyID = 65534
)

// A Postgres is a running server with a new or existing database navlog.
type Postgres struct {
	URL string // contains user and password, so it is never logged: postgres://navlog:...@127.0.0.1:port/navlog
	*process

	server *postgresServer
}

// StartPostgres starts PostgreSQL with its data in dir on a free port. It uses the npm package, or an installation of
// this machine if the package is missing or the server's user cannot access it. It returns when the server responds.
//
// If the caller is root, the server runs with nobodyID, so every folder above dir must be passable for other users
// (chmod o+x).
func StartPostgres(ctx context.Context, dir string) (*Postgres, error) {
	return startPostgres(ctx, dir, 0)
}

// Restart starts the server again at its address and with its data. If it still runs, it is killed first.
func (p *Postgres) Restart(ctx context.Context) error {
	p.Kill()
	again, err := startPostgres(ctx, p.server.dir, p.server.port)
	if err == nil {
		*p = *again
	}
	return err
}

func startPostgres(ctx context.Context, dir string, port int) (*Postgres, error) {
	p := new(Postgres)
	var err error
	p.process, err = start(ctx, postgresName, dir, func(dir string) (_ childSpec, err error) {
		if p.server, err = preparePostgres(ctx, dir); err != nil {
			return childSpec{}, err
		}
		if p.server.port, err = claimPort(postgresName, port); err != nil {
			return childSpec{}, err
		}
		p.URL = p.server.url(postgresDatabase)
		return p.server.spec(), nil
	}, func(ctx context.Context) error { return p.server.createDatabase(ctx) })
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Watch waits until ctx ends and returns nil, or until the server has exited by itself and returns the reason as far as
// its log shows it. Its folder remains, and another start continues with it.
func (p *Postgres) Watch(ctx context.Context) error {
	return p.watch(ctx, "Start it again: the data is kept")
}

// A postgresServer is what is known before the start.
type postgresServer struct {
	bin, dir, data, password string
	uid                      uint32
	port                     int
}

// preparePostgres finds the programs and creates the data folder if there is none.
func preparePostgres(ctx context.Context, dir string) (*postgresServer, error) {
	s := &postgresServer{dir: dir, data: filepath.Join(dir, "data")}
	if os.Geteuid() == 0 {
		s.uid = nobodyID
	}
	var err error
	if s.bin, err = postgresBin(s.uid); err != nil {
		return nil, err
	}
	if s.uid != 0 {
		if err := checkTraversable(dir); err != nil {
			return nil, fmt.Errorf("start %s: for root it runs with the uid %d, which must be able to access its data: %w",
				postgresName, nobodyID, err)
		}
	}
	if s.password, err = s.readPassword(); err != nil {
		return nil, err
	}
	if _, err := os.Stat(s.data); errors.Is(err, fs.ErrNotExist) {
		return s, s.initdb(ctx)
	}
	return s, nil
}

// readPassword reads the password of the server's only user, or creates one. The server's user must be able to read the
// file (initdb does), and no other user may.
func (s *postgresServer) readPassword() (string, error) {
	path := s.passwordFile()
	if text, err := os.ReadFile(path); err == nil && len(text) > 0 {
		return strings.TrimSpace(string(text)), nil
	}
	random := make([]byte, 24)
	rand.Read(random) // never fails
	password := hex.EncodeToString(random)
	err := os.WriteFile(path, []byte(password+"\n"), 0o600)
	if err == nil && s.uid != 0 {
		err = os.Chown(path, int(s.uid), int(s.uid))
	}
	if err != nil {
		return "", fmt.Errorf("start %s: write its password file: %w", postgresName, err)
	}
	return password, nil
}

func (s *postgresServer) passwordFile() string { return filepath.Join(s.dir, "password") }

// initdb creates the data folder under another name first, so that an incomplete one is never mistaken for a complete
// one.
func (s *postgresServer) initdb(ctx context.Context) error {
	half := s.data + ".new"
	err := os.RemoveAll(half)
	if err == nil {
		err = os.Mkdir(half, 0o700)
	}
	if err == nil && s.uid != 0 {
		err = os.Chown(half, int(s.uid), int(s.uid))
	}
	if err != nil {
		return fmt.Errorf("start %s: make its data folder: %w", postgresName, err)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "initdb"), "--pgdata", half, "--username", postgresUser,
		"--pwfile", s.passwordFile(), "--auth", "scram-sha-256", "--encoding", "UTF8", "--no-locale", "--no-instructions")
	cmd.Dir = s.dir
	if s.uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: s.uid, Gid: s.uid}}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("start %s: initdb: %w: %s", postgresName, err, strings.TrimSpace(string(out)))
	}
	if err := os.Rename(half, s.data); err != nil {
		return fmt.Errorf("start %s: %w", postgresName, err)
	}
	return nil
}

// spec describes how the supervisor runs and stops the server: fast shutdown (sessions are ended, data written), then
// immediate.
func (s *postgresServer) spec() childSpec {
	program := filepath.Join(s.bin, "postgres")
	spec := childSpec{
		Kind: supervisorKind, Path: program, Dir: s.dir, UID: s.uid, GID: s.uid,
		Args: []string{program, "-D", s.data}, // the full path, from which it finds its libraries
		Stop: []stopStep{{int(syscall.SIGINT), 20 * time.Second}, {int(syscall.SIGQUIT), 5 * time.Second}},
	}
	for _, setting := range []string{
		"listen_addresses=" + loopback, fmt.Sprintf("port=%d", s.port), "unix_socket_directories=",
		"max_connections=100", "fsync=on", "shared_buffers=64MB", "timezone=UTC", "log_timezone=UTC", "logging_collector=off",
	} {
		spec.Args = append(spec.Args, "-c", setting)
	}
	return spec
}

func (s *postgresServer) url(database string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(postgresUser, s.password), Host: addr(s.port), Path: database,
		RawQuery: "sslmode=disable"}
	return u.String()
}

// createDatabase creates the database if it is missing. Its success also shows that the server responds.
func (s *postgresServer) createDatabase(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)",
		postgresDatabase).Scan(&exists); err != nil || exists {
		return err
	}
	_, err = conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{postgresDatabase}.Sanitize())
	return err
}

// postgresBin returns the folder with initdb and postgres: the npm package's, else one of this machine.
func postgresBin(uid uint32) (string, error) {
	bin, err := packagedPostgres()
	if err == nil && uid != 0 {
		err = checkTraversable(bin)
	}
	if err == nil {
		return bin, nil
	}
	for _, bin := range installedPostgres() {
		if uid == 0 || checkTraversable(bin) == nil {
			return bin, nil
		}
	}
	return "", fmt.Errorf("start %s: it is not installed on this machine, and the npm package cannot be used: %w",
		postgresName, err)
}

// installedPostgres returns the folders of this machine that contain both programs, the most likely first.
func installedPostgres() []string {
	var bins []string
	if path, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			bins = append(bins, filepath.Dir(real))
		}
	}
	more, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	bins = append(bins, more...)
	var both []string
	for _, bin := range bins {
		_, err1 := exec.LookPath(filepath.Join(bin, "postgres"))
		_, err2 := exec.LookPath(filepath.Join(bin, "initdb"))
		if err1 == nil && err2 == nil {
			both = append(both, bin)
		}
	}
	return both
}

// packagedPostgres returns the npm package's folder, with the library links that its install script would have created.
func packagedPostgres() (string, error) {
	list, err := moduleFile(nodePlatform(), "@embedded-postgres/", "native/pg-symlinks.json")
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(list)
	if err != nil {
		return "", fmt.Errorf("read the links of the package: %w", err)
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(text, &links); err != nil {
		return "", fmt.Errorf("read the links of the package: %s: %w", list, err)
	}
	root := filepath.Dir(filepath.Dir(list))
	for _, link := range links {
		source, target := filepath.Join(root, link.Source), filepath.Join(root, link.Target)
		rel, err := filepath.Rel(filepath.Dir(target), source)
		if err == nil {
			err = os.Symlink(rel, target)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("link the libraries of the package: %w", err)
		}
	}
	return filepath.Join(root, "native", "bin"), nil
}

// checkTraversable reports whether any user can pass through every folder down to path.
func checkTraversable(path string) error {
	for dir := path; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("folder %s does not let other users pass: chmod o+x it or choose another folder", dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}
