package engines

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/navlog/navlog/deploy/testkit/wait"
)

func TestClickHouseKeepsData(t *testing.T) {
	dir := t.TempDir()
	for i, end := range []func(*ClickHouse){
		func(c *ClickHouse) {
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			if c.err != nil {
				t.Errorf("it did not end gracefully: %v: %s", c.err, c.lastLines())
			}
		},
		(*ClickHouse).Kill,
		(*ClickHouse).Kill,
	} {
		c := startClickHouseFor(t, dir)
		conn := openClickHouse(t, c, "default")
		execAll(t, conn,
			"CREATE DATABASE IF NOT EXISTS navlog_g1 ENGINE = Atomic",
			"CREATE TABLE IF NOT EXISTS navlog_g1.t (n UInt64) ENGINE = MergeTree ORDER BY n SETTINGS fsync_after_insert = "+
				"1, fsync_part_directory = 1",
			fmt.Sprintf("INSERT INTO navlog_g1.t VALUES (%d)", i))
		var rows uint64
		if err := conn.QueryRow(t.Context(), "SELECT count() FROM navlog_g1.t").Scan(&rows); err != nil {
			t.Fatalf("%v: its log ends with: %s", err, c.lastLines())
		}
		if rows != uint64(i+1) {
			t.Fatalf("after %d restarts: %d rows, want %d", i, rows, i+1)
		}
		end(c)
		if err := gone(c.Pid); err != nil {
			t.Error(err)
		}
	}
}

// A client that is connected, or in the middle of a query, must not keep the engine from exiting.
func TestClickHouseCloseEndsQueries(t *testing.T) {
	c := startClickHouseFor(t, t.TempDir())
	conn := openClickHouse(t, c, "default")
	ended := make(chan error, 1)
	go func() {
		ended <- conn.Exec(t.Context(),
			"SELECT sleepEachRow(3) FROM numbers(1000) SETTINGS max_block_size = 1, "+
				"function_sleep_max_microseconds_per_block = 0")
	}()
	wait.Until(t, func() error {
		var n uint64
		err := openClickHouse(t, c, "default").QueryRow(t.Context(),
			"SELECT count() FROM system.processes WHERE query LIKE '%sleepEachRow%' AND is_initial_query").Scan(&n)
		if err == nil && n < 2 { // this query is one of them
			err = fmt.Errorf("%d queries run", n)
		}
		return err
	})
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("a query of an hour ended without error")
	}
}

// Neither user's query hands the reads of its files over to other threads, which would cost more than the query itself.
func TestClickHouseReadsInTheThreadOfTheQuery(t *testing.T) {
	c := startClickHouseFor(t, t.TempDir())
	admin := openClickHouse(t, c, "default")
	execAll(t, admin, "CREATE DATABASE navlog_g1 ENGINE = Atomic",
		"CREATE TABLE navlog_g1.t (n UInt64) ENGINE = MergeTree ORDER BY n", "INSERT INTO navlog_g1.t VALUES (1)")
	for _, user := range []string{"default", "navlog_query"} {
		execAll(t, openClickHouse(t, c, user), "SELECT sum(n) FROM navlog_g1.t")
		var handedOver uint64
		if err := admin.QueryRow(t.Context(),
			"SELECT sum(value) FROM system.events WHERE event LIKE 'ThreadPoolReader%'").Scan(&handedOver); err != nil {
			t.Fatal(err)
		}
		if handedOver > 0 {
			t.Errorf("after a query of %s, reads of files went to other threads: the events count %d", user, handedOver)
		}
	}
}

func TestClickHouseServesHTTP(t *testing.T) {
	c := startClickHouseFor(t, t.TempDir())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+c.HTTPAddr+"/ping", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "Ok.\n" {
		t.Fatalf("ping: %q, %v", body, err)
	}
}

// The API's user can read generations and nothing else, within limits that it may lower but never raise.
func TestClickHouseQueryUser(t *testing.T) {
	c := startClickHouseFor(t, t.TempDir())
	admin := openClickHouse(t, c, "default")
	execAll(t, admin,
		"CREATE DATABASE navlog_g1 ENGINE = Atomic", "CREATE TABLE navlog_g1.t (n UInt64) ENGINE = MergeTree ORDER BY n",
		"CREATE DATABASE private ENGINE = Atomic", "CREATE TABLE private.t (n UInt64) ENGINE = MergeTree ORDER BY n")
	conn := openClickHouse(t, c, "navlog_query")
	execAll(t, conn,
		"SELECT count() FROM navlog_g1.t",
		"SELECT 1 SETTINGS max_execution_time = 5, max_threads = 1, max_memory_usage = 1000000")
	for _, refused := range []string{
		"SELECT count() FROM private.t",
		"SELECT count() FROM system.processes",
		"SELECT * FROM file('/etc/hostname', 'LineAsString')",
		"SELECT * FROM url('http://127.0.0.1/', 'LineAsString')",
		"INSERT INTO navlog_g1.t VALUES (1)",
		"CREATE TABLE navlog_g1.u (n UInt64) ENGINE = Memory",
		"DROP DATABASE navlog_g1",
		"SYSTEM STOP MERGES navlog_g1.t",
		"SET readonly = 0",
		"SELECT 1 SETTINGS max_execution_time = 61",
		"SELECT 1 SETTINGS max_execution_time = 0",
		"SELECT 1 SETTINGS max_threads = 5",
		"SELECT 1 SETTINGS max_memory_usage = 1073741825",
		"SELECT 1 SETTINGS max_memory_usage = 0",
	} {
		if err := conn.Exec(t.Context(), refused); err == nil {
			t.Errorf("%s was allowed", refused)
		}
	}
}

// The login for a real server has the grant that is tested here.
func TestClickHouseQueryUsersAreAlike(t *testing.T) {
	shipped, err := os.ReadFile("../docker/clickhouse-query-user.xml")
	if err != nil {
		t.Fatal(err)
	}
	const grant = "<query>GRANT SELECT ON " + grantedGenerations + "</query>"
	for name, text := range map[string]string{"deploy/docker/clickhouse-query-user.xml": string(shipped),
		"clickhouse-users.xml": clickHouseUsers} {
		if strings.Count(text, grant) != 1 || strings.Count(text, "GRANT") != 1 {
			t.Errorf("%s must grant only with %s", name, grant)
		}
	}
}

// ClickHouse understands each statement with which docs/operations.md creates the logins, and navlog_query gets the
// limits of the file that is tested here. The embedded engine cannot store users, so the statements are parsed and not
// run.
func TestDocumentedClickHouseLogins(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n### Logins on ClickHouse\n")
	_, text, _ = strings.Cut(text, "```sql\n")
	text, _, _ = strings.Cut(text, "```")
	text = regexp.MustCompile("--.*").ReplaceAllString(text, "")
	conn := openClickHouse(t, startClickHouseFor(t, t.TempDir()), "default")
	understood, reader := 0, ""
	for statement := range strings.SplitSeq(text, ";") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		understood++
		var formatted string
		if err := conn.QueryRow(t.Context(), "SELECT formatQuerySingleLine($1)", statement).Scan(&formatted); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
		if strings.HasPrefix(formatted, "CREATE USER navlog_query ") {
			_, reader, _ = strings.Cut(formatted, " SETTINGS ")
		}
	}
	const limits = "readonly = 2 CONST, max_execution_time = 10 MIN 1 MAX 60, max_memory_usage = 1073741824 MIN 1 MAX " +
		"1073741824, max_threads = 2 MIN 1 MAX 4"
	if understood < 10 || reader != limits {
		t.Errorf("%d statements; navlog_query has the limits\n%s", understood, reader)
	}
	shipped, err := os.ReadFile("../docker/clickhouse-query-user.xml")
	if err != nil {
		t.Fatal(err)
	}
	for limit := range strings.SplitSeq(limits, ", ") {
		parts := strings.Fields(limit) // name = value CONST, or name = value MIN a MAX b
		constraint := "<const/>"
		if len(parts) > 4 {
			constraint = "<min>" + parts[4] + "</min><max>" + parts[6] + "</max>"
		}
		for _, want := range []string{parts[2], constraint} {
			if element := "<" + parts[0] + ">" + want + "</" + parts[0] + ">"; !strings.Contains(string(shipped), element) {
				t.Errorf("clickhouse-query-user.xml does not have %s", element)
			}
		}
	}
}

// The grant uses the prefix of the generations.
func TestClickHouseQueryUserReadsItsPrefix(t *testing.T) {
	c, err := StartClickHouseFor(t.Context(), t.TempDir(), "other")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	execAll(t, openClickHouse(t, c, "default"),
		"CREATE DATABASE navlog_g1 ENGINE = Atomic", "CREATE TABLE navlog_g1.t (n UInt64) ENGINE = MergeTree ORDER BY n",
		"CREATE DATABASE other_g1 ENGINE = Atomic", "CREATE TABLE other_g1.t (n UInt64) ENGINE = MergeTree ORDER BY n")
	conn := openClickHouse(t, c, "navlog_query")
	execAll(t, conn, "SELECT count() FROM other_g1.t")
	if err := conn.Exec(t.Context(), "SELECT count() FROM navlog_g1.t"); err == nil {
		t.Error("generations of another prefix are read")
	}
}

func TestClickHouseGoesWithItsParent(t *testing.T) {
	p := startParent(t, "clickhouse", t.TempDir())
	p.kill()
	wait.Until(t, func() error { return gone(p.Pid) })
}

func TestClickHouseRefuses(t *testing.T) {
	t.Run("a port in use", func(t *testing.T) {
		c := startClickHouseFor(t, t.TempDir())
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		use(t, c.Addr)
		wantPortError(t, c.Restart(t.Context()), c.begin.port)
	})
	t.Run("no modules", func(t *testing.T) {
		t.Setenv(enginesEnv, t.TempDir())
		_, err := StartClickHouse(t.Context(), t.TempDir())
		wantMessage(t, err, "node_modules", "make engines")
	})
}

// An engine that cannot bind its second port responds on the first one and exits a moment later; its start must fail.
func TestClickHouseAnswersOnBothPorts(t *testing.T) {
	c := startClickHouseFor(t, t.TempDir())
	closed, err := claimPort("ClickHouse", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := (&ClickHouse{Addr: c.Addr, HTTPAddr: c.HTTPAddr}).ping(t.Context()); err != nil {
		t.Errorf("an engine on both ports: %v", err)
	}
	for name, half := range map[string]*ClickHouse{"native": {Addr: c.Addr, HTTPAddr: addr(closed)},
		"HTTP": {Addr: addr(closed), HTTPAddr: c.HTTPAddr}} {
		if err := half.ping(t.Context()); err == nil {
			t.Errorf("an engine with only %s counts as started", name)
		}
	}
}

func startClickHouseFor(t *testing.T, dir string) *ClickHouse {
	t.Helper()
	c, err := StartClickHouse(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	return c
}

func openClickHouse(t *testing.T, c *ClickHouse, user string) driver.Conn {
	t.Helper()
	conn, err := clickhouse.Open(&clickhouse.Options{Addr: []string{c.Addr}, Auth: clickhouse.Auth{Username: user},
		DialTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func execAll(t *testing.T, conn driver.Conn, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
