package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/deploy/devchain"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/ingest/rpc"
	"github.com/navlog/navlog/ingest/vaults"
)

// A run that fails, for example because another one uses the port, leaves the ready file of the other; the run that
// wrote it removes it.
func TestReadyFileBelongsToItsRun(t *testing.T) {
	taken := httptest.NewServer(nil)
	defer taken.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "ready.json")
	first := &up{cmd: upCmd{ReadyFile: file}}
	if err := first.writeReadyFile(); err != nil {
		t.Fatal(err)
	}
	var out, log bytes.Buffer
	err := run(t.Context(), []string{"up", "--data", dir, "--ready-file", file, "--listen",
		taken.Listener.Addr().String()}, &out, &log)
	if err == nil || !strings.Contains(err.Error(), "choose another address with --listen") {
		t.Fatalf("the port is in use: %v", err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the run that failed: %v", err)
	}
	first.removeReadyFile()
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file of the finished run is still there: %v", err)
	}
}

// TestDataFolderInUse: a second `up` on the same data ends before it starts an engine, and names the process to stop.
func TestDataFolderInUse(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	release, err := engines.Reserve(folder)
	if err != nil {
		t.Fatal(err)
	}
	err = run(t.Context(), []string{"up", "--data", folder, "--listen", "127.0.0.1:0"}, io.Discard, io.Discard)
	want := fmt.Sprintf("--data: folder %s is in use by another process (pid %d): stop that one or choose another folder",
		folder, os.Getpid())
	if err == nil || err.Error() != want {
		t.Errorf("got the error %v, want %s", err, want)
	}
	if made, err := os.ReadDir(folder); err != nil || len(made) != 1 {
		t.Errorf("it created %v in the folder: %v", made, err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if release, err = engines.Reserve(folder); err != nil {
		t.Fatalf("the folder stays locked: %v", err)
	}
	release()
	var help bytes.Buffer
	if err := run(t.Context(), []string{"up", "--help"}, &help, &help); err != nil ||
		!strings.Contains(strings.Join(strings.Fields(help.String()), " "), "(default: data)") {
		t.Errorf("the help does not name the default folder: %v\n%s", err, help.String())
	}
}

// Mistakes of usage and of the configuration have the same exit codes as in navlog, wherever they are found.
func TestExitCodes(t *testing.T) {
	taken := httptest.NewServer(nil)
	defer taken.Close()
	var out bytes.Buffer
	start := func(args ...string) error {
		return run(t.Context(), append([]string{"up", "--data", t.TempDir()}, args...), &out, &out)
	}
	sound := &up{cmd: upCmd{Data: t.TempDir()}, config: config.Default()}
	prefixed := &up{cmd: sound.cmd, config: config.Default()}
	prefixed.config.ClickHouse.Prefix = "no prefix"
	file := filepath.Join(t.TempDir(), "navlog.yaml")
	if err := os.WriteFile(file, []byte("chian: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		err  error
		want cli.Code
	}{
		"too short an interval":             {start("--interval", "1ms"), cli.Usage},
		"a mistake in the file":             {start("--config", file), cli.Configuration},
		"an invalid prefix":                 {prefixed.startClickHouse(t.Context()), cli.Configuration},
		"no chain although the engines run": {sound.applyDevelopmentSettings(), cli.Configuration},
		"the port is taken":                 {start("--listen", taken.Listener.Addr().String()), cli.Failed},
	} {
		if got := cli.CodeOf(c.err); got != c.want {
			t.Errorf("%s: exit code %d, want %d: %v", name, got, c.want, c.err)
		}
	}
}

// A possible key in a node's address, and the password of a database, are in nothing that `up` prints or logs; only the
// ready file has them.
func TestUpKeepsKeysSecret(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	host := strings.TrimPrefix(closed.URL, "http://")
	var out, log bytes.Buffer
	u := &up{cmd: upCmd{Data: t.TempDir()}, streams: &cli.Streams{Out: &out},
		log: slog.New(slog.NewTextHandler(&log, nil))}
	u.ready.RPC = "http://someone:hunter2@" + host + "/v3/secretkey?apikey=secret2"
	u.ready.Postgres = "postgres://someone:hunter2@db.example:5432/navlog?sslpassword=secret3"
	u.ready.Ops = "http://127.0.0.1:9464"
	u.printWelcome(false)
	for _, shown := range []string{"metrics     http://127.0.0.1:9464/metrics\n", "http://" + host + "\n",
		"postgres://db.example:5432/navlog\n"} {
		if !strings.Contains(out.String(), shown) {
			t.Errorf("the welcome does not show %q:\n%s", shown, out.String())
		}
	}
	err := u.ensureContracts(t.Context())
	if err == nil || !strings.Contains(err.Error(), "deploy the reference contracts at http://"+host) {
		t.Fatalf("the contracts are deployed without a node: %v", err)
	}
	traffic := devchain.New(u.ready.RPC, &devchain.Contracts{Vaults: make([]devchain.Vault, 1)}, 1, nil, u.log)
	fault := traffic.Run(context.Background(), time.Millisecond)
	if fault == nil {
		t.Fatal("the scenario runs without a node")
	}
	for _, secret := range []string{"hunter2", "secretkey", "secret2", "secret3", "someone"} {
		if text := out.String() + log.String() + err.Error() + fault.Error(); strings.Contains(text, secret) {
			t.Errorf("%q is shown:\n%s", secret, text)
		}
	}
	for _, address := range []string{"host=db.example password=hunter2",
		"postgres://someone:hunter2%zz@db.example/navlog"} {
		if shown := redact(address); strings.Contains(shown, "hunter2") {
			t.Errorf("%q is shown as %q", address, shown)
		}
	}
}

// The configuration that up writes for the commands of navlog is valid and describes the same system.
func TestConfigurationForCommands(t *testing.T) {
	u := &up{cmd: upCmd{Data: t.TempDir()}, config: config.Default()}
	u.config.Chain.ID, u.config.Chain.RPC = 31337, rpc.Endpoints("http://127.0.0.1:8545")
	u.config.Chain.Vaults = []vaults.Config{{Address: "0x3406A4f5A90423d541ebF3E6221612FbbFF72435", StartBlock: 7,
		Name: "A"}}
	u.config.Kafka.Brokers, u.config.Kafka.ReplicationFactor = []string{"127.0.0.1:9092"}, 1
	u.config.ClickHouse.Addr, u.config.ClickHouse.QueryUser = "127.0.0.1:9000", "navlog_query"
	u.config.Postgres.URL = "postgres://navlog:secret@127.0.0.1:5432/navlog?sslmode=disable"
	u.config.HTTP.Router = "0x01e5219AA00dFE0F99E41Cf19849da2DAf6e394b"
	if err := u.writeConfiguration(); err != nil {
		t.Fatal(err)
	}
	got, err := config.Load(u.configuration(), nil)
	if err == nil {
		err = got.Validate(append(config.Needs["project"], append(config.Needs["ingest"], config.Needs["serve"]...)...)...)
	}
	if err != nil {
		t.Fatal(err)
	}
	if v := got.Chain.Vaults; len(v) != 1 || v[0].Address != u.config.Chain.Vaults[0].Address || v[0].StartBlock != 7 ||
		v[0].Name != "A" || got.Chain.RPC[0].URL != u.config.Chain.RPC[0].URL ||
		got.Postgres.URL != u.config.Postgres.URL || got.Kafka.Brokers[0] != u.config.Kafka.Brokers[0] ||
		got.ClickHouse.Addr != u.config.ClickHouse.Addr {
		t.Errorf("got %+v", got)
	}
	if info, err := os.Stat(u.configuration()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file with the password is %v, %v", info.Mode(), err)
	}
}
