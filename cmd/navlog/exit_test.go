package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/alecthomas/kong"
	"github.com/ethereum/go-ethereum/core/types"
	ethrpc "github.com/ethereum/go-ethereum/rpc"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config/configtest"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/registrytest"
	"github.com/navlog/navlog/projections"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry"
	"github.com/navlog/navlog/schemas/registry/db"
)

// closedAddress is an address of this machine on which no program listens. Systems assign no port below 1024, so that no
// other process gets it meanwhile.
const closedAddress = "127.0.0.1:1"

// Each kind of failure has its own exit code, as docs/operations.md promises. The codes of a difference and of a freeze
// are tested where those happen.
func TestExitCodes(t *testing.T) {
	closed := closedAddress
	guarded, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL())
	if err != nil {
		t.Fatal(err)
	}
	defer guarded.Close()
	guarded.ControlKey(int16(kmsg.SASLAuthenticate), func(request kmsg.Request) (kmsg.Response, error, bool) {
		// the fake broker would close the connection
		guarded.KeepControl()
		answer := request.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		answer.ErrorCode = kerr.SaslAuthenticationFailed.Code
		return answer, nil, true
	})
	wrongLogin := map[string]string{"NAVLOG_KAFKA_BROKERS": strings.Join(guarded.ListenAddrs(), ","),
		"NAVLOG_KAFKA_SASL_MECHANISM": "PLAIN", "NAVLOG_KAFKA_SASL_USER": "admin", "NAVLOG_KAFKA_SASL_PASSWORD": "hunter2"}
	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer failing.Close()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":"0x7"}`)
	}))
	defer other.Close()
	secure := httptest.NewTLSServer(failing.Config.Handler)
	defer secure.Close()
	file := configtest.Write(t, configtest.Sound)
	t.Setenv("NAVLOG_SECRET_KEY", strings.TrimPrefix(configtest.SecretKey, "NAVLOG_SECRET_KEY="))
	for name, c := range map[string]struct {
		environ map[string]string
		args    string
		want    cli.Code
	}{
		"nothing wrong":  {nil, "config check", cli.Done},
		"no such backup": {nil, "backup /nonexistent --verify", cli.Usage},
		"no such certificate": {map[string]string{"NAVLOG_POSTGRES_URL": "postgres://navlog:hunter2@" + closed +
			"/navlog"}, "partner certificates set 1 --authorities /nonexistent", cli.Usage},
		"an invalid id": {nil, "webhook show nope", cli.Usage},
		"no secret key": {map[string]string{"NAVLOG_SECRET_KEY": ""}, "config check", cli.Done},
		"only ingest's settings": {map[string]string{"NAVLOG_SECRET_KEY": "", "NAVLOG_HTTP_LISTEN": "nowhere"},
			"config check --program ingest", cli.Done},
		"dispatch, no secret key": {map[string]string{"NAVLOG_SECRET_KEY": ""}, "config check --program dispatch",
			cli.Configuration},
		"help":                  {nil, "--help", cli.Done},
		"no such command":       {nil, "nonsense", cli.Usage},
		"no such flag":          {nil, "status --nonsense", cli.Usage},
		"a flag out of range":   {nil, "webhook list --limit 0", cli.Usage},
		"an invalid URL":        {nil, "status --url navlog.example", cli.Usage},
		"too many records":      {nil, "log tail -n 1000001", cli.Usage},
		"a negative time limit": {nil, "statement get --url http://a --from 1 --to 2 --timeout=-1s", cli.Usage},
		"too short an interval": {nil, "status --every 1ms", cli.Usage},
		"no such shell":         {nil, "completion tcsh", cli.Usage},
		"an unknown variable":   {map[string]string{"NAVLOG_CHAIN_IDD": "1"}, "config check", cli.Configuration},
		"a wrong value":         {map[string]string{"NAVLOG_CHAIN_WINDOW": "many"}, "serve", cli.Configuration},
		"doctor, a wrong value": {map[string]string{"NAVLOG_CHAIN_WINDOW": "many"}, "doctor", cli.Configuration},
		"PostgreSQL is down": {map[string]string{"NAVLOG_POSTGRES_URL": "postgres://navlog:hunter2@" + closed +
			"/navlog"}, "partner list", cli.Unreachable},
		"a program's PostgreSQL": {map[string]string{"NAVLOG_POSTGRES_URL": "postgres://navlog:hunter2@" + closed +
			"/navlog"}, "dispatch", cli.Unreachable},
		"Kafka is down":           {map[string]string{"NAVLOG_KAFKA_BROKERS": closed}, "log stats", cli.Unreachable},
		"Kafka rejects the login": {wrongLogin, "log stats", cli.Unreachable},
		"--headers by itself":     {nil, "verify --headers", cli.Usage},
		"ClickHouse is down": {map[string]string{"NAVLOG_POSTGRES_URL": registrytest.Postgres(t),
			"NAVLOG_CLICKHOUSE_ADDR": closed}, "projection list", cli.Unreachable},
		"not ClickHouse": {map[string]string{"NAVLOG_POSTGRES_URL": registrytest.Postgres(t),
			"NAVLOG_CLICKHOUSE_ADDR": failing.Listener.Addr().String()}, "projection list", cli.Unreachable},
		"not Kafka": {map[string]string{"NAVLOG_KAFKA_BROKERS": failing.Listener.Addr().String()},
			"log stats", cli.Unreachable},
		"a node of another chain": {map[string]string{"NAVLOG_CHAIN_RPC": other.URL}, "ingest estimate", cli.Configuration},
		"a self-signed certificate": {map[string]string{"NAVLOG_CHAIN_RPC": secure.URL}, "verify --receipts",
			cli.Unreachable},
		"no file of authorities": {map[string]string{"NAVLOG_POSTGRES_URL": "postgres://navlog:hunter2@" + closed +
			"/navlog?sslmode=verify-full&sslrootcert=/nonexistent"}, "config check", cli.Configuration},
		"a node by WebSocket": {nil, "vault detect 0x0000000000000000000000000000000000000001 --rpc ws://" + closed,
			cli.Usage},
		"the nodes fail":          {map[string]string{"NAVLOG_CHAIN_RPC": failing.URL}, "ingest estimate", cli.Unreachable},
		"a proxy without the API": {nil, "status --url " + failing.URL, cli.Unreachable},
		"the API is down":         {nil, "status --url http://" + closed, cli.Unreachable},
		"engines that are down": {map[string]string{"NAVLOG_CHAIN_RPC": "http://" + closed,
			"NAVLOG_KAFKA_BROKERS": closed, "NAVLOG_CLICKHOUSE_ADDR": closed,
			"NAVLOG_POSTGRES_URL": "postgres://navlog:hunter2@" + closed + "/navlog"}, "config check --connect",
			cli.Unreachable},
		"a probe only exits with 1": {nil, "probe http://" + closed, cli.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			for key, value := range c.environ {
				t.Setenv(key, value)
			}
			t.Setenv("NAVLOG_CONFIG", file)
			var out, said bytes.Buffer
			err := run(t.Context(), strings.Fields(c.args), &out, &said)
			if got := cli.CodeOf(err); got != c.want {
				t.Errorf("navlog %s: exit code %d, want %d: %v\n%s", c.args, got, c.want, err, out.String())
			}
			if text := out.String() + said.String() + fmt.Sprint(err); strings.Contains(text, "hunter2") {
				t.Errorf("navlog %s prints a password:\n%s", c.args, text)
			}
		})
	}
	// Those that accept a connection and do not respond, or no longer.
	for _, gone := range []error{context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF,
		ethrpc.HTTPError{StatusCode: 503}} {
		if got := cli.CodeOf(fmt.Errorf("around: %w", gone)); got != cli.Unreachable {
			t.Errorf("%v has code %d", gone, got)
		}
	}
	for _, gone := range []error{&tls.CertificateVerificationError{}, http.ErrSchemeMismatch} {
		if got := cli.CodeOf(fmt.Errorf("around: %w", gone)); got != cli.Unreachable {
			t.Errorf("%v has code %d", gone, got)
		}
	}
	for _, answered := range []error{context.Canceled, ethrpc.HTTPError{StatusCode: 404}} {
		if got := cli.CodeOf(fmt.Errorf("around: %w", answered)); got != cli.Failed {
			t.Errorf("%v has code %d", answered, got)
		}
	}
	own, err := engines.StartClickHouse(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer own.Kill()
	conn, err := readmodel.Config{Addr: own.Addr, User: "navlog", Password: "hunter2"}.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Ping(t.Context()); cli.CodeOf(fmt.Errorf("around: %w", err)) != cli.Unreachable {
		t.Errorf("ClickHouse rejects the login, but the code is %d: %v", cli.CodeOf(err), err)
	}
	if got := cli.CodeOf(fmt.Errorf("around: %w",
		errors.Join(errors.New("one"), cli.Frozen.With(errors.New("two"))))); got != cli.Frozen {
		t.Errorf("an error among others has code %d", got)
	}
	if err := cli.Frozen.With(nil); err != nil {
		t.Errorf("without an error the code is %v", err)
	}
}

// TestUnreachableIsNamed: a message names what did not respond, its address and the setting that has it, once.
func TestUnreachableIsNamed(t *testing.T) {
	closed := closedAddress
	t.Setenv("NAVLOG_CONFIG", configtest.Write(t, configtest.Sound))
	t.Setenv("NAVLOG_POSTGRES_URL", "postgres://navlog@"+closed+"/navlog")
	t.Setenv("NAVLOG_KAFKA_BROKERS", closed)
	for command, want := range map[string][]string{
		"partner list":                   {"reach PostgreSQL at " + closed, "dial tcp " + closed, "check postgres.url"},
		"doctor --program serve":         {"reach PostgreSQL at " + closed, "dial tcp " + closed, "check postgres.url"},
		"log tail":                       {"reach Kafka at " + closed + " (kafka.brokers)", "dial tcp " + closed},
		"backup " + t.TempDir():          {"reach Kafka at " + closed + " (kafka.brokers)", "dial tcp " + closed},
		"verify --no-chain":              {"reach Kafka at " + closed + " (kafka.brokers)", "dial tcp " + closed},
		"verify --receipts":              {"reach Kafka at " + closed + " (kafka.brokers)", "dial tcp " + closed},
		"projection rebuild":             {"reach Kafka at " + closed + " (kafka.brokers)", "dial tcp " + closed},
		"ingest resume":                  {"reach Kafka at " + closed + " (kafka.brokers)", "dial tcp " + closed},
		"kafka grant":                    {"reach Kafka at " + closed + " (kafka.brokers)", "dial tcp " + closed},
		"status --url http://" + closed:  {"reach the API at http://" + closed + ": dial tcp", "check --url"},
		"status --url https://" + closed: {"reach the API at https://" + closed + ": dial tcp", "check --url"},
	} {
		var out bytes.Buffer
		err := run(t.Context(), strings.Fields(command), &out, io.Discard)
		text := out.String() + fmt.Sprint(err)
		for _, words := range want {
			if cli.CodeOf(err) != cli.Unreachable || strings.Count(text, words) != 1 {
				t.Errorf("navlog %s does not print %q exactly once: %s", command, words, text)
			}
		}
	}
}

// TestFlagsAreUniform: a flag means the same in every command and is explained in the same words, and the placeholder
// of its value describes the value, not its Go type.
func TestFlagsAreUniform(t *testing.T) {
	parser, err := kong.New(new(subcommands))
	if err != nil {
		t.Fatal(err)
	}
	unclear := regexp.MustCompile(`^(STRING|U?INT(-[0-9]+)?|[A-Z]+(-[A-Z]+)+)$`)
	begin := map[string]string{"json": "Print JSON", "yes": "Do not ask for confirmation."}
	var look func(*kong.Node)
	look = func(n *kong.Node) {
		for _, f := range n.Flags {
			if !strings.HasPrefix(f.Help, begin[f.Name]) {
				t.Errorf("%s --%s: the help is %q and must begin with %q", n.FullPath(), f.Name, f.Help, begin[f.Name])
			}
			if limits := f.Tag.Get("range"); !strings.Contains(f.Help, limits) {
				t.Errorf("%s --%s: the help does not name the range %s", n.FullPath(), f.Name, limits)
			}
			if !f.IsBool() && unclear.MatchString(f.FormatPlaceHolder()) {
				t.Errorf("%s --%s has the placeholder %s", n.FullPath(), f.Name, f.FormatPlaceHolder())
			}
		}
		for _, child := range n.Children {
			look(child)
		}
	}
	look(parser.Model.Node)
}

// TestMisuse: an error in the command line names the help of the command that was called; help and --version are
// understood as most programs understand them.
func TestMisuse(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"nonsense"}, "(try `navlog --help`)"},
		{[]string{"partner"}, "(try `navlog partner --help`)"},
		{[]string{"partner", "create"}, "(try `navlog partner create --help`)"},
		{[]string{"partner", "create", "Acme", "--nonsense"}, "(try `navlog partner create --help`)"},
		{[]string{"webhook", "list", "--limit", "many"}, "(try `navlog webhook list --help`)"},
		{[]string{"partner", "create", "Acme", "--id", "-1"},
			"numbers are not negative here, and flags are words (try `navlog partner create --help`)"},
		{[]string{"partner", "set-limit", "1", "-5"},
			"numbers are not negative here, and flags are words (try `navlog partner set-limit --help`)"},
		{[]string{"partner", "create", ""}, "<name>: the value is empty (try `navlog partner create --help`)"},
		{[]string{"webhook", "show", "nope"}, `"nope" is not an event id: it must be 32 hex digits`},
		{[]string{"backup", "/nonexistent", "--verify"}, "there is no backup in /nonexistent"},
		{[]string{"partner", "create", "a\x00b"}, "<name>: the value has a character that cannot be seen"},
		{[]string{"partner", "create", strings.Repeat("a", 1001)}, "more than 1000 bytes"},
	} {
		err := run(t.Context(), c.args, io.Discard, io.Discard)
		if cli.CodeOf(err) != cli.Usage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("navlog %.80q: %.200v, want %q", c.args, err, c.want)
		}
	}
	for _, same := range [][2][]string{{{"help"}, {"--help"}},
		{{"help", "partner", "create"}, {"partner", "create", "--help"}}, {{"--version"}, {"version"}}} {
		var got, want bytes.Buffer
		if err := errors.Join(run(t.Context(), same[0], &got, &got), run(t.Context(), same[1], &want, &want)); err != nil ||
			got.String() != want.String() {
			t.Errorf("navlog %q prints %q: %v", same[0], got.String(), err)
		}
	}
}

// The help of navlog fits on one screen: every command in its chapter, no line wider than 80, at most 50 lines.
func TestHelpIsOneScreen(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), nil, &out, &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) > 50 {
		t.Errorf("the help has %d lines", len(lines))
	}
	for _, line := range lines {
		if len(line) > 80 {
			t.Errorf("%q is wider than 80 columns", line)
		}
	}
	for _, g := range groups {
		if !strings.Contains(out.String(), "\n"+g.Title+"\n") {
			t.Errorf("the help has no chapter %q", g.Title)
		}
	}
	if strings.Contains(out.String(), "probe") || !strings.Contains(out.String(), "doctor") {
		t.Errorf("the help:\n%s", out.String())
	}
}

// --url needs no configuration: anyone may read the API's status.
func TestStatusOfAnAPI(t *testing.T) {
	document := `{"chainId":5,"chainState":"stalled","chainReason":"project retries","frozenReason":null,"generation":3,"seq":77,"indexedBlock":"11","indexedAt":"2023-11-14T22:15:32.000Z",
		"headBlock":"12","finalBlock":null,"lagBlocks":1,"lagSeconds":12,"etaSeconds":null,"endpoints":[{"calls":42,"units":1050}],"firstSync":null,"programs":{"serve":"serving","ingest":"unknown"},
		"vaults":[{"address":"0xA1","name":"Alpha","lastNavAt":null,"state":"leaving","warnings":["none of its logs is known"]}]}`
	body := `{"ok":true,"data":` + document + `}`
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/status" {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(w, body)
	}))
	defer api.Close()
	t.Chdir(t.TempDir())
	status := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := run(t.Context(), append([]string{"status", "--url", api.URL + "/"}, args...), &out, &out)
		return out.String(), err
	}
	out, err := status()
	words := strings.Join(strings.Fields(out), " ")
	for _, want := range []string{"CHAIN 5 stalled", "reason project retries", "head block 12",
		"indexed block 11 (1 block, 12s behind)", "final unknown", "generation 3, seq 77, block time 2023-11-14T22:15:32Z",
		"ENDPOINT CALLS UNITS 1 42 1050", "ingest unknown serve serving", "0xA1 Alpha - leaving none of its logs is known"} {
		if err != nil || !strings.Contains(words, want) {
			t.Errorf("the status lacks %q: %v\n%s", want, err, out)
		}
	}
	if out, err := status("--json"); err != nil || out != strings.ReplaceAll(document, "\n\t\t", "")+"\n" {
		t.Errorf("as JSON: %v\n%s", err, out)
	}
	body = strings.Replace(body, `"frozenReason":null`, `"frozenReason":"block 9 is final"`, 1)
	if out, err := status(); cli.CodeOf(err) != cli.Frozen || !strings.Contains(out, "block 9 is final") ||
		!strings.HasSuffix(err.Error(), ": block 9 is final") { // ingest's reason says what to do
		t.Errorf("a frozen chain: %v\n%s", err, out)
	}
	body = strings.Replace(strings.ReplaceAll(body, "Alpha", `\u001b[2J\nbeta\tserved`), "block 9 is final",
		`\u001b[2J\nno`, 1)
	if out, err := status(); strings.ContainsAny(out+err.Error(), "\x1b") || strings.Contains(out+err.Error(), "\nno") ||
		!strings.Contains(out, `0xA1   \x1b[2J\nbeta\tserved  -`) {
		t.Errorf("untrusted text: %q\n%s", err, out)
	}
	for _, other := range []string{"<html>", `{"ok":false}`, `{"ok":true,"data":[]}`, ""} {
		body = other
		if out, err := status(); err == nil || out != "" {
			t.Errorf("for %q, the command prints %q, %v", other, out, err)
		}
	}
}

// With --watch a failed request is repeated, and a signal ends the command normally. Output that is not a terminal gets
// one status after the other, each with its time and without control codes.
func TestStatusIsWatched(t *testing.T) {
	answers := make(chan string)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, <-answers) }))
	defer api.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out bytes.Buffer
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"status", "--watch", "--every", "200ms", "--url", api.URL}, &out, &out)
	}()
	answers <- "nonsense"
	answers <- `{"ok":true,"data":{"chainId":5,"chainState":"following"}}`
	answers <- `{"ok":true,"data":{"chainId":5,"chainState":"waiting"}}`
	stop()
	close(answers)
	if err := <-done; err != nil {
		t.Error(err)
	}
	statuses := regexp.MustCompile(`\n20\d\d-\S+Z\n`).Split(out.String(), -1)
	if len(statuses) < 3 || statuses[0] != "" || !strings.Contains(statuses[1], "did not send a response of navlog") ||
		!strings.Contains(statuses[1], "\nCHAIN 5  following") || strings.Contains(out.String(), "\x1b") {
		t.Errorf("the output is %q", statuses)
	}
}

// The doctor reports for real engines what is valid, missing or wrong, and what to do.
func TestDoctor(t *testing.T) {
	c := newCommands(t)
	t.Setenv("NAVLOG_KAFKA_BROKERS", strings.Join(enginetest.Kafka(t), ","))
	t.Setenv("NAVLOG_CLICKHOUSE_ADDR", enginetest.ClickHouse(t))
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":"0x7"}`)
	}))
	defer node.Close()
	t.Setenv("NAVLOG_CHAIN_RPC", node.URL)
	c.mustRun("partner", "create", "Acme")
	pool, err := registry.Open(t.Context(), registry.Config{URL: os.Getenv("NAVLOG_POSTGRES_URL"), MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	for instance, st := range map[string]projections.Status{"one": {State: projections.Bad, Reason: "users differ"},
		"two": {State: projections.Retrying, Reason: "no broker"}} {
		said, err := json.Marshal(st)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.New(pool).PutStatus(t.Context(),
			db.PutStatusParams{Program: registry.Project, Instance: instance, Status: said}); err != nil {
			t.Fatal(err)
		}
	}

	out, err := c.run("doctor")
	words := strings.Join(strings.Fields(out), " ")
	for _, want := range []string{
		"ok configuration chain 31337, 1 vault, 1 node",
		"it serves chain 7, but chain.id is 31337 -> give a node of the chain, or correct chain.id",
		"ok Kafka", "warning Kafka, rights there is no login: every client that reaches the brokers can write the log",
		"warning topics not all of chain 31337 are there", "ok ClickHouse version 26.",
		"warning ClickHouse, reading a `navlog serve` of this configuration has the login that writes",
		" disk of ClickHouse ", "ok PostgreSQL version 1", "ok grants navlog has the rights of 5 of 5 roles", "ok tables",
		"warning ingest it does not run", "ok secret key",
		"FAIL project bad: users differ -> follow the reason", "warning project retrying: no broker",
	} {
		if !strings.Contains(words, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	if cli.CodeOf(err) != cli.Configuration || !strings.Contains(fmt.Sprint(err), "2 of ") {
		t.Errorf("the doctor returns %v", err)
	}
	t.Setenv("NAVLOG_SECRET_KEY", "BAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
	least := readmodel.MinVersion
	readmodel.MinVersion[0]++ // the version of this engine is too old for project
	out, err = c.run("doctor")
	readmodel.MinVersion = least
	for _, want := range []string{"FAIL     secret key", "FAIL     ClickHouse", "is too old: navlog needs"} {
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("with another secret key and an old ClickHouse, the output lacks %q: %v\n%s", want, err, out)
		}
	}
	t.Setenv("NAVLOG_CHAIN_RPC", node.URL+",http://"+closedAddress+"/v1/hunter2")
	own, err := engines.StartClickHouse(t.Context(), t.TempDir()) // the embedded engine exits on an unknown login
	if err != nil {
		t.Fatal(err)
	}
	defer own.Kill()
	t.Setenv("NAVLOG_CLICKHOUSE_ADDR", own.Addr)
	t.Setenv("NAVLOG_CLICKHOUSE_QUERY_USER", "unknown_user")
	out, err = c.run("doctor", "--json")
	if err == nil || !strings.Contains(out, `"ok":false`) || !strings.Contains(out, "connection refused") ||
		!strings.Contains(out, "as unknown_user: ") || strings.Contains(out, "hunter2") {
		t.Errorf("as JSON: %v\n%s", err, out)
	}
	var found struct{ Findings []finding }
	if c.tryJSON(out, &found); len(found.Findings) < 10 || found.Findings[0].Check != "configuration" ||
		found.Findings[0].Verdict != fine {
		t.Errorf("as JSON: %+v", found)
	}
}

// A machine that has only some of the secrets, like every service of compose.yaml, reports which are missing, without
// a failure. A login that has a password, and a key that was given, must be right.
func TestDoctorWithoutSomeSecrets(t *testing.T) {
	block := func(number int64) string {
		h := &types.Header{Number: big.NewInt(number), Difficulty: new(big.Int), Time: uint64(time.Now().Unix())}
		header, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		return string(header)
	}
	head, final := block(9), block(8)
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := head
		switch request, _ := io.ReadAll(r.Body); {
		case bytes.Contains(request, []byte("eth_chainId")):
			answer = `"0x7a69"`
		case bytes.Contains(request, []byte("finalized")):
			answer = final
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"result":%s}`, answer)
	}))
	defer node.Close()
	c := newCommands(t)
	t.Setenv("NAVLOG_KAFKA_BROKERS", strings.Join(enginetest.Kafka(t), ","))
	t.Setenv("NAVLOG_CHAIN_RPC", node.URL)
	t.Setenv("NAVLOG_CLICKHOUSE_ADDR", guardedClickHouse(t))
	c.mustRun("migrate")
	out, err := c.run("config", "check", "--connect")
	if err != nil || !strings.Contains(out, "run this where its password is set") {
		t.Errorf("a password was not given: %v\n%s", err, out)
	}
	t.Setenv("NAVLOG_CLICKHOUSE_QUERY_USER", "navlog_query")
	if err := os.Unsetenv("NAVLOG_SECRET_KEY"); err != nil { // newCommands restores the value
		t.Fatal(err)
	}
	out, err = c.run("doctor")
	words := strings.Join(strings.Fields(out), " ")
	for _, want := range []string{"ok configuration", "ok node ", "warning ClickHouse 127.0.0.1:",
		"warning ClickHouse, reading as navlog_query: ", "ok tables", "warning secret key it was not given here"} {
		if !strings.Contains(words, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	if err != nil {
		t.Errorf("nothing is wrong, but the doctor returns %v:\n%s", err, out)
	}
	t.Setenv("NAVLOG_CLICKHOUSE_QUERY_PASSWORD", "hunter2")
	if out, err := c.run("doctor"); cli.CodeOf(err) != cli.Unreachable ||
		!strings.Contains(out, "FAIL     ClickHouse, reading") {
		t.Errorf("a wrong password: %v\n%s", err, out)
	}
	t.Setenv("NAVLOG_SECRET_KEY", "short")
	if out, err := c.run("doctor"); cli.CodeOf(err) != cli.Configuration ||
		!strings.Contains(out, "NAVLOG_SECRET_KEY must be the base64 of 32 bytes") {
		t.Errorf("an invalid key: %v\n%s", err, out)
	}
}

// guardedClickHouse rejects each login as a server with passwords does: the embedded engine has none, and exits on an
// unknown login.
func guardedClickHouse(t *testing.T) string {
	t.Helper()
	var refusal proto.Buffer
	refusal.PutByte(2) // packet type: exception
	(&proto.Exception{Code: 516, Name: "DB::Exception", Message: "Authentication failed"}).EncodeAware(&refusal, 0)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
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
			_, _ = conn.Read(make([]byte, 4096)) // the client's hello
			_, _ = conn.Write(refusal.Buf)
			conn.Close()
		}
	}()
	return listener.Addr().String()
}

// If the configuration cannot be read, the engines are only defaults: the doctor contacts none of them, and reports
// that.
func TestDoctorWithoutConfiguration(t *testing.T) {
	for name, file := range map[string]string{"a missing file": filepath.Join(t.TempDir(), "navlog.yaml"),
		"invalid YAML": configtest.Write(t, "chain: [\n")} {
		var said struct{ Findings []finding }
		c := commands{t, file}
		out, err := c.run("doctor", "--json")
		c.tryJSON(out, &said)
		for _, f := range said.Findings {
			if f.Check != "configuration" && (f.Check != "nodes and engines" || f.Verdict != warning) {
				t.Errorf("%s: the doctor checks %s: %s", name, f.Check, f.Found)
			}
		}
		if cli.CodeOf(err) != cli.Configuration || len(said.Findings) < 2 {
			t.Errorf("%s: exit code %d: %v\n%s", name, cli.CodeOf(err), err, out)
		}
	}
}

// A check that a signal ended failed for no other reason: neither its findings nor its exit code say that something is
// unreachable.
func TestInterruptedChecks(t *testing.T) {
	c := commands{t, configtest.Write(t, configtest.Sound)}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, command := range []string{"doctor", "doctor --json", "config check --connect",
		"config check --connect --json"} {
		var out bytes.Buffer
		err := run(ctx, append(strings.Fields(command), "--config", c.file), &out, io.Discard)
		if cli.CodeOf(err) != cli.Failed || err.Error() != "interrupted: check the nodes and the engines" ||
			strings.Contains(out.String(), failing) {
			t.Errorf("navlog %s ends with %d: %v\n%s", command, cli.CodeOf(err), err, out.String())
		}
	}
}

// A server that accepts connections and never responds does not delay the end of a command by a signal.
func TestInterruptedBySilence(t *testing.T) {
	c := newCommands(t)
	const engines, clickhouse, kafka = "check the nodes and the engines", "NAVLOG_CLICKHOUSE_ADDR", "NAVLOG_KAFKA_BROKERS"
	for _, given := range []struct{ command, silent, want string }{
		{"projection list", clickhouse, "reach ClickHouse"},
		{"doctor", clickhouse, engines},
		{"config check --connect", clickhouse, engines},
		{"doctor", kafka, engines},
		{"log tail", kafka, "reach Kafka at SILENT (kafka.brokers)"},
		{"verify --no-chain", kafka, "reach Kafka at SILENT (kafka.brokers)"},
	} {
		silent, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var start time.Time
		go func() {
			conn, err := silent.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = conn.Read(make([]byte, 1)) // the driver greets
			start = time.Now()
			cancel()
			<-t.Context().Done()
		}()
		t.Setenv(clickhouse, "127.0.0.1:1")
		t.Setenv(kafka, "127.0.0.1:1")
		t.Setenv(given.silent, silent.Addr().String())
		err = run(ctx, append(strings.Fields(given.command), "--config", c.file), io.Discard, io.Discard)
		<-ctx.Done()
		want := "interrupted: " + strings.ReplaceAll(given.want, "SILENT", silent.Addr().String())
		if err == nil || err.Error() != want || time.Since(start) > 3*time.Second {
			t.Errorf("navlog %s with a silent %s, %s after the signal: %v", given.command, given.silent, time.Since(start), err)
		}
	}
}

// The completion scripts work in their shells and contain the current commands.
func TestCompletion(t *testing.T) {
	scripts := map[string]string{}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		var out bytes.Buffer
		if err := run(t.Context(), []string{"completion", shell}, &out, &out); err != nil {
			t.Fatal(err)
		}
		scripts[shell] = out.String()
	}
	if !strings.Contains(scripts["zsh"], "bashcompinit") ||
		!strings.Contains(scripts["fish"], `complete -c navlog -n "__fish_use_subcommand" -a doctor`) ||
		strings.Contains(scripts["fish"], "-a probe") {
		t.Errorf("zsh and fish get\n%.300s\n%.300s", scripts["zsh"], scripts["fish"])
	}
	for typed, want := range map[string]string{"doc": "doctor", "webhook dead re": "retry", "log tail --fol": "--follow",
		"partner rotate-secret 7 --over": "--overlap", "ingest res": "resume"} {
		ask := scripts["bash"] + "\nCOMP_WORDS=(navlog " + typed +
			"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _navlog; echo \"${COMPREPLY[@]}\""
		out, err := exec.Command("bash", "-c", ask).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%q is completed to %q, want %q: %v", typed, got, want, err)
		}
	}
}

// A receiver's response is untrusted text: it is shown on one line and cannot control the terminal.
func TestReceiverResponsesAreEscaped(t *testing.T) {
	if got := cli.Printable("no\x1b[2J\n\"such\" thing é\u009b"); got != `no\x1b[2J\n"such" thing é\u009b` {
		t.Errorf("printed as %s", got)
	}
	var out bytes.Buffer
	status := int32(500)
	writeAttempts(&out, []attemptRow{{Number: 2, Status: &status, Response: "out of order\n"}, {Number: 3}})
	if !strings.Contains(out.String(), `response 2  out of order\n`) || strings.Contains(out.String(), "response 3") {
		t.Errorf("the attempts are printed as %s", out.String())
	}
}

// The log is shown without any engine but Kafka.
func TestLogCommands(t *testing.T) {
	t.Setenv("NAVLOG_CONFIG", configtest.Write(t, configtest.Sound))
	brokers := enginetest.Kafka(t)
	t.Setenv("NAVLOG_KAFKA_BROKERS", strings.Join(brokers, ","))
	show := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := run(t.Context(), append([]string{"log"}, args...), &out, os.Stderr)
		return out.String(), err
	}
	if out, err := show("tail"); err == nil || !strings.Contains(err.Error(), "`navlog ingest`") {
		t.Errorf("without a log: %v\n%s", err, out)
	}
	kafka := loadedKafka(t)
	writeLog(t, kafka, 40)
	if out, err := show("tail", "-n", "2"); err != nil ||
		out != "40  block  block 39  hash="+zeroHash+"\n41  block  block 40  hash="+zeroHash+"\n" {
		t.Errorf("the last two: %v\n%s", err, out)
	}
	if out, err := show("tail", "-n", "100", "--json"); err != nil || strings.Count(out, "\n") != 41 ||
		!strings.HasPrefix(out,
			`{"seq":1,"offset":0,"type":"vault","boundary":true,"vault":"0x00000000000000000000000000000000000000A1","data":{"name":"One","startBlock":"1"}}`+"\n") {
		t.Errorf("the whole log: %v\n%.300s", err, out)
	}
	if out, err := show("show", "3"); err != nil || !strings.Contains(out, "3  block  block 2") ||
		!strings.Contains(out, "of chain.31337.log, ends a unit: true") || !strings.Contains(out, `"chainId"`) {
		t.Errorf("one record: %v\n%s", err, out)
	}
	for _, seq := range []string{"0", "42"} {
		if out, err := show("show", seq); cli.CodeOf(err) != cli.Failed ||
			!strings.Contains(err.Error(), "goes from 1 to 41") {
			t.Errorf("record %s: %v\n%s", seq, err, out)
		}
	}
	out, err := show("stats")
	words := strings.Join(strings.Fields(out), " ")
	for _, want := range []string{"records 41 in 41 units, no seq missing", "blocks 1 to 40", "retracted 0",
		"block 40 vault 1"} {
		if err != nil || !strings.Contains(words, want) {
			t.Errorf("the stats lack %q: %v\n%s", want, err, out)
		}
	}
}

var zeroHash = "0x" + strings.Repeat("0", 64)

// TestConfigWithoutNodes: a configuration without nodes is sound for every program but ingest. Everything else of the
// section chain is checked without them too.
func TestConfigWithoutNodes(t *testing.T) {
	t.Setenv("NAVLOG_SECRET_KEY", "")
	sound := strings.Replace(configtest.Sound, "  rpc: [http://127.0.0.1:8545]\n", "", 1)
	c := commands{t, configtest.Write(t, sound)}
	for program, want := range map[string]cli.Code{"": cli.Done, "serve": cli.Done, "ingest": cli.Configuration} {
		if out, err := c.run("config", "check", "--program", program); cli.CodeOf(err) != want ||
			(program == "") != strings.Contains(out, "no node is given") {
			t.Errorf("%q: %v\n%s", program, err, out)
		}
	}
	for fault, want := range map[string]string{"  vaults: []": "chain.vaults has 0 vaults",
		"  vaults: []\n  window: 100001": "chain.window is 100001"} {
		i, j := strings.Index(sound, "  vaults:"), strings.Index(sound, "  pollInterval")
		c := commands{t, configtest.Write(t, sound[:i]+fault+"\n"+sound[j:])}
		for _, command := range []string{"config check", "doctor"} {
			out, err := c.run(strings.Fields(command)...)
			if text := out + fmt.Sprint(err); cli.CodeOf(err) != cli.Configuration || !strings.Contains(text, want) ||
				strings.Contains(text, "chain.rpc") {
				t.Errorf("%s of %q does not report %q: %v\n%s", command, fault, want, err, out)
			}
		}
	}
	for faulty, want := range map[bool]string{false: "chain 31337, 1 vault, 0 nodes",
		true: "chain.window is 100001 and must be 1 to 100000"} {
		c, want, code := c, finding{Check: "configuration", Verdict: fine, Found: want}, cli.Done
		if faulty {
			c.file = configtest.Write(t, strings.Replace(sound, "chain:\n", "chain:\n  window: 100001\n", 1))
			want.Verdict, code = failing, cli.Configuration
		}
		var checked struct {
			OK       bool
			Findings []finding
		}
		out, err := c.run("config", "check", "--json")
		if c.tryJSON(out, &checked); cli.CodeOf(err) != code || checked.OK == faulty ||
			!slices.Contains(checked.Findings, want) {
			t.Errorf("config check --json, want %+v: %v\n%s", want, err, out)
		}
	}
	_, err := c.run("ingest")
	if err == nil || !strings.Contains(err.Error(), "`navlog config check --program ingest` lists all of them") {
		t.Errorf("the error of ingest names no command that checks its nodes: %v", err)
	}
}

// TestNoConfiguration: if no file is found and settings are missing, the error of a command names where it looked. A
// configuration of variables only needs no file.
func TestNoConfiguration(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("NAVLOG_CONFIG", "") // so that the test restores it
	os.Unsetenv("NAVLOG_CONFIG")
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	want := "there is no navlog.yaml in " + folder + ", and neither --config nor NAVLOG_CONFIG names one"
	for _, command := range []string{"status", "config check", "doctor", "serve"} {
		var out bytes.Buffer
		err := run(t.Context(), strings.Fields(command), &out, io.Discard)
		if text := out.String() + fmt.Sprint(err); cli.CodeOf(err) != cli.Configuration || strings.Count(text, want) != 1 {
			t.Errorf("%s does not print %q exactly once: %v\n%s", command, want, err, out.String())
		}
	}
	t.Setenv("NAVLOG_CHAIN_ID", "31337")
	if err := run(t.Context(), []string{"kafka", "rights"}, io.Discard, io.Discard); err != nil {
		t.Errorf("a configuration of variables: %v", err)
	}
}
