package engines

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// A ClickHouse is a running engine on the given loopback ports. Its users are `default` (all rights, no password) and
// `navlog_query` (reads generations, within limits, no password): see clickhouse-users.xml. Databases must be created
// with ENGINE = Atomic, because this engine's default is a different one.
//
// The whole engine exits if a client logs in over the native protocol with an unknown user name or database: an
// exception that leaves a session's thread ends the library, which it would not do in the server. Watch reports it. A
// reset connection would end it too, so clients connect to a relay, in the same process, which keeps resets away.
type ClickHouse struct {
	Addr     string // host:port of the native protocol
	HTTPAddr string // host:port of the HTTP interface
	Pid      int    // of the engine's process

	start clickHouseStart
	proc  *process
}

// clickHouseStart is what a start needs.
type clickHouseStart struct {
	dir    string
	port   int    // of the native protocol; 0 for one to be chosen
	prefix string // of the generations that navlog_query can read
}

// Resource limits of the engine and its users. The files are written into the engine's folder at each start.
var (
	//go:embed clickhouse-config.xml
	clickHouseConfig string
	//go:embed clickhouse-users.xml
	clickHouseUsers string
)

// grantedGenerations are the databases that clickhouse-users.xml lets navlog_query read: those with the default prefix.
const grantedGenerations = "navlog_g*.*"

// StartClickHouse starts ClickHouse with its data in dir on free ports. It returns when the engine responds.
func StartClickHouse(ctx context.Context, dir string) (*ClickHouse, error) {
	return StartClickHouseFor(ctx, dir, "navlog")
}

// StartClickHouseFor does the same for generations with another prefix: navlog_query can read these and no others.
func StartClickHouseFor(ctx context.Context, dir, prefix string) (*ClickHouse, error) {
	return startClickHouse(ctx, clickHouseStart{dir: dir, prefix: prefix})
}

// Restart starts the engine again at its native address and with its data. If it still runs, it is killed first.
func (c *ClickHouse) Restart(ctx context.Context) error {
	c.Kill()
	again, err := startClickHouse(ctx, c.start)
	if err == nil {
		*c = *again
	}
	return err
}

func startClickHouse(ctx context.Context, s clickHouseStart) (*ClickHouse, error) {
	const what = "ClickHouse"
	lib, err := chdbLibrary()
	if err != nil {
		return nil, err
	}
	dir, lock, err := lockDir(ctx, what, s.dir)
	if err != nil {
		return nil, err
	}
	s.dir = dir
	c, spec, err := s.prepare(lib)
	if err != nil {
		lock.Close()
		return nil, err
	}
	if c.proc, err = launch(what, dir, lock, spec); err != nil {
		return nil, err
	}
	c.Pid = c.proc.pid
	if err := c.proc.waitReady(ctx, c.ping); err != nil {
		return nil, err
	}
	return c, nil
}

func chdbLibrary() (string, error) {
	platform := nodePlatform()
	if strings.HasPrefix(platform, "linux-") {
		platform += "-gnu"
	}
	return moduleFile(platform, "@chdb/lib-", "libchdb.so")
}

// prepare chooses the ports and writes the configuration.
func (s clickHouseStart) prepare(lib string) (_ *ClickHouse, _ childSpec, err error) {
	const what = "ClickHouse"
	if s.port, err = claimPort(what, s.port); err != nil {
		return nil, childSpec{}, err
	}
	inside, err := claimPort(what, 0)
	if err != nil {
		return nil, childSpec{}, err
	}
	web, err := claimPort(what, 0)
	if err != nil {
		return nil, childSpec{}, err
	}
	config := filepath.Join(s.dir, "config.xml")
	users := strings.ReplaceAll(clickHouseUsers, grantedGenerations, s.prefix+"_g*.*")
	for path, text := range map[string]string{config: clickHouseConfig, filepath.Join(s.dir, "users.xml"): users} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return nil, childSpec{}, fmt.Errorf("start %s: write its configuration: %w", what, err)
		}
	}
	spec := childSpec{Kind: clickHouseKind, Path: lib, From: addr(s.port), To: addr(inside), Args: []string{
		"clickhouse",
		"--config-file", config,
		"--path", filepath.Join(s.dir, "data"),
		"--listen_host", loopback,
		"--tcp_port", fmt.Sprint(inside),
		"--http_port", fmt.Sprint(web),
		"--query", "SYSTEM START LISTEN TCP; SYSTEM START LISTEN HTTP; SELECT count() FROM file('stdin', 'LineAsString', 'l String') FORMAT Null",
	}}
	return &ClickHouse{Addr: addr(s.port), HTTPAddr: addr(web), start: s}, spec, nil
}

// ping checks both ports: an engine that cannot listen on the second one exits a moment after it responded on the
// first.
func (c *ClickHouse) ping(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.HTTPAddr+"/ping", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	conn, err := clickhouse.Open(&clickhouse.Options{Addr: []string{c.Addr}})
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Ping(ctx)
}

// Watch waits until ctx ends and returns nil, or until the engine has exited by itself and returns the reason as far as
// its log shows it. The engine's folder remains, and another start continues with it.
func (c *ClickHouse) Watch(ctx context.Context) error {
	return c.proc.watch(ctx, "The whole engine exits if a client logs in with a user name other than default or navlog_query (neither has a "+
		"password), to a database that does not exist, or with TLS: start it again, the data is kept, or use a server of your own")
}

// Close shuts the engine down gracefully and waits until it has exited.
func (c *ClickHouse) Close() error { return c.proc.stop() }

// Kill kills the engine with SIGKILL and waits until it has exited.
func (c *ClickHouse) Kill() { c.proc.kill() }
