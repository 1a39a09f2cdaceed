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

const clickHouseName = "ClickHouse"

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
	*process

	begin clickHouseStart
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
	again, err := startClickHouse(ctx, c.begin)
	if err == nil {
		*c = *again
	}
	return err
}

func startClickHouse(ctx context.Context, s clickHouseStart) (*ClickHouse, error) {
	lib, err := chdbLibrary()
	if err != nil {
		return nil, err
	}
	c := &ClickHouse{begin: s}
	c.process, err = start(ctx, clickHouseName, s.dir, func(dir string) (childSpec, error) { return c.prepare(dir, lib) },
		c.ping)
	if err != nil {
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
func (c *ClickHouse) prepare(dir, lib string) (_ childSpec, err error) {
	c.begin.dir = dir
	var ports [3]int // of the relay for clients, of the engine behind it, and of HTTP
	for i := range ports {
		given := 0
		if i == 0 {
			given = c.begin.port
		}
		if ports[i], err = claimPort(clickHouseName, given); err != nil {
			return childSpec{}, err
		}
	}
	c.begin.port, c.Addr, c.HTTPAddr = ports[0], addr(ports[0]), addr(ports[2])
	config := filepath.Join(dir, "config.xml")
	users := strings.ReplaceAll(clickHouseUsers, grantedGenerations, c.begin.prefix+"_g*.*")
	for path, text := range map[string]string{config: clickHouseConfig, filepath.Join(dir, "users.xml"): users} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return childSpec{}, fmt.Errorf("start %s: write its configuration: %w", clickHouseName, err)
		}
	}
	return childSpec{Kind: clickHouseKind, Path: lib, From: c.Addr, To: addr(ports[1]), Args: []string{
		"clickhouse",
		"--config-file", config,
		"--path", filepath.Join(dir, "data"),
		"--listen_host", loopback,
		"--tcp_port", fmt.Sprint(ports[1]),
		"--http_port", fmt.Sprint(ports[2]),
		"--query", "SYSTEM START LISTEN TCP; SYSTEM START LISTEN HTTP; SELECT count() FROM file('stdin', 'LineAsString', " +
			"'l String') FORMAT Null",
	}}, nil
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
	return c.watch(ctx, "The whole engine exits if a client logs in with a user name other than default or "+
		"navlog_query (neither has a password), to a database that does not exist, or with TLS: start it again, the data "+
		"is kept, or use a server of your own")
}
