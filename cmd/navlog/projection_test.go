package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/navlog/navlog/cmd/internal/cli"
	"github.com/navlog/navlog/cmd/internal/config"
	"github.com/navlog/navlog/cmd/internal/wiring"
	"github.com/navlog/navlog/deploy/engines/enginetest"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/projections"
	"github.com/navlog/navlog/projections/verify"
	"github.com/navlog/navlog/schemas/chainlog"
	"github.com/navlog/navlog/schemas/event"
)

// loadedKafka returns the connection to Kafka that the environment configures.
func loadedKafka(t *testing.T) chainlog.Config {
	t.Helper()
	c, err := config.Load(os.Getenv("NAVLOG_CONFIG"), os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	return c.Kafka
}

// writeLog writes a short log: a vault and some blocks.
func writeLog(t *testing.T, kafka chainlog.Config, blocks uint64) {
	t.Helper()
	address := append(make([]byte, 19), 0xa1)
	records := []*event.Record{{Boundary: true,
		Fact: &event.Record_Vault{Vault: &event.Vault{Address: address, StartBlock: 1, Name: "One", Symbol: "V", Decimals: 18,
			Asset: &event.Token{Address: address, Symbol: "A", Decimals: 6}}}}}
	for n := range blocks {
		records = append(records,
			&event.Record{Boundary: true,
				Fact: &event.Record_Block{Block: &event.Block{Number: n + 1, Time: 1_700_000_000 + n, Hash: make([]byte, 32),
					ParentHash: make([]byte, 32)}}})
	}
	writeRecords(t, kafka, records, &event.Coverage{Address: address, StartBlock: 1})
}

// writeRecords writes a log that ends with a block, and a cursor that covers a vault up to that block.
func writeRecords(t *testing.T, kafka chainlog.Config, records []*event.Record, vault *event.Coverage) {
	t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.TransactionalID("test"),
		kgo.RecordPartitioner(kgo.ManualPartitioner())}, kafka.Options()...)...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := chainlog.EnsureTopics(t.Context(), kadm.NewClient(client), 31337, kafka.Topology()); err != nil {
		t.Fatal(err)
	}
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	records[0].Origin = &event.Origin{LogId: []byte("0123456789abcdef"), GenesisHash: make([]byte, 32)}
	for i, r := range records {
		r.Seq, r.ChainId = uint64(i)+1, 31337
		out, err := chainlog.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		client.Produce(t.Context(), out, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Errorf("produce: %v", err)
			}
		})
	}
	head := records[len(records)-1]
	vault.CoveredTo = head.GetBlock().GetNumber()
	cursor, err := proto.Marshal(&event.Cursor{LogId: records[0].GetOrigin().GetLogId(), ChainId: 31337,
		Seq: head.GetSeq(), Head: head.GetBlock(), Vaults: []*event.Coverage{vault}})
	if err != nil {
		t.Fatal(err)
	}
	client.Produce(t.Context(), &kgo.Record{Topic: chainlog.CursorTopic(31337), Key: []byte("31337"), Value: cursor},
		func(_ *kgo.Record, err error) {
			if err != nil {
				t.Errorf("produce: %v", err)
			}
		})
	if err := client.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := chainlog.EndTransaction(t.Context(), client, kgo.TryCommit, chainlog.LogTopic(31337), chainlog.CursorTopic(31337)); err != nil {
		t.Fatal(err)
	}
}

// programs starts the programs of one process, as `navlog-dev up` does: they end with the test, and then their
// generations are dropped.
func programs(t *testing.T, c commands) (config.Config, *wiring.Deps, *wiring.Services) {
	t.Helper()
	loaded, err := config.Load(c.file, os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	loaded.HTTP.FileTimeout = loaded.HTTP.WriteTimeout // a generation is kept for this time after a switch
	conn, err := loaded.ClickHouse.Open("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // after the programs have ended
		for id := range int32(4) {
			if err := conn.Exec(context.Background(), "DROP DATABASE IF EXISTS "+loaded.ClickHouse.Database(id)); err != nil {
				t.Error(err)
			}
		}
		conn.Close()
	})
	d, err := wiring.New(t.Context(), loaded, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Pool.Close)
	running := wiring.NewServices(d.Log)
	t.Cleanup(func() {
		if err := running.Stop(); err != nil {
			t.Error(err)
		}
	})
	return loaded, d, running
}

// startProject runs project and serve on a short log, and returns the API's URL.
func startProject(t *testing.T, c commands) string {
	t.Helper()
	loaded, d, running := programs(t, c)
	writeLog(t, loaded.Kafka, 40)
	serve, err := d.Serve()
	if err != nil {
		t.Fatal(err)
	}
	project := d.Project()
	running.Start(t.Context(), "serve", serve.Run)
	running.Start(t.Context(), "project", project.Run)
	wait.Until(t, project.Ready)
	wait.Until(t, serve.Ready)
	return "http://" + serve.Addr()
}

// poller requests the API repeatedly until it is stopped, and records which generations responded, in order.
type poller struct {
	mu     sync.Mutex
	seen   []string
	faults []string
	stop   func()
}

func poll(t *testing.T, url string) *poller {
	a := new(poller)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			a.once(url)
		}
	}()
	a.stop = func() { cancel(); <-done; a.once(url) }
	return a
}

// newest returns the generation that responded last.
func (a *poller) newest() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.seen) == 0 {
		return "none"
	}
	return a.seen[len(a.seen)-1]
}

func (a *poller) once(url string) {
	answer, err := http.Get(url)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.faults = append(a.faults, err.Error())
		return
	}
	_, err = io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
	if err != nil || answer.StatusCode != http.StatusOK || answer.Header.Get("X-Indexed-Block") != "40" {
		a.faults = append(a.faults, fmt.Sprint(answer.Status, answer.Header, err))
	}
	if g := answer.Header.Get("X-Generation"); len(a.seen) == 0 || a.seen[len(a.seen)-1] != g {
		a.seen = append(a.seen, g)
	}
}

// TestProjectionLife rebuilds, switches, rolls back and drops by command while the API is requested continuously: no
// request fails, and the responses follow the switches.
func TestProjectionLife(t *testing.T) {
	if testing.Short() {
		t.Skip("a long test with several rebuilds")
	}
	c := newCommands(t)
	t.Setenv("NAVLOG_KAFKA_BROKERS", strings.Join(enginetest.Kafka(t), ","))
	t.Setenv("NAVLOG_CLICKHOUSE_ADDR", enginetest.ClickHouse(t))
	t.Setenv("NAVLOG_CLICKHOUSE_PREFIX", fmt.Sprintf("cmd%d", os.Getpid()))
	t.Setenv("NAVLOG_HTTP_LISTEN", "127.0.0.1:0")
	t.Setenv("NAVLOG_HTTP_PUBLIC_RATE_LIMIT", "0")
	t.Setenv("NAVLOG_HTTP_PUBLIC_ENGINE_TIME", "0")
	url := startProject(t, c) + "/api/v1/users"
	polled := poll(t, url)
	answers := func(want string) {
		t.Helper()
		wait.Until(t, func() error {
			if got := polled.newest(); got != want {
				return fmt.Errorf("generation %s responds, want %s", got, want)
			}
			return nil
		})
	}
	answers("1")
	var rebuilt projections.Rebuilt
	c.json(&rebuilt, "projection", "rebuild")
	if !rebuilt.Live || rebuilt.Generation != 2 || rebuilt.Parity == nil || rebuilt.Parity.Seq != 41 {
		t.Fatalf("rebuilt %+v", rebuilt)
	}
	answers("2")
	if out, err := c.run("projection", "rollback"); err != nil || out != "generation 1: live\n" {
		t.Errorf("rollback: %q, %v", out, err)
	}
	answers("1")
	if out, err := c.run("projection", "switch", "2"); err != nil || out != "generation 2: live\n" {
		t.Errorf("switch: %q, %v", out, err)
	}
	answers("2")
	polled.stop()
	if got := strings.Join(polled.seen, " "); len(polled.faults) > 0 || got != "1 2 1 2" {
		t.Errorf("generations %v, %d faults, the first is %.1q", polled.seen, len(polled.faults), polled.faults)
	}
	if _, err := c.run("projection", "drop", "2"); err == nil ||
		!strings.Contains(err.Error(), "generation 2 is live and is not dropped") {
		t.Errorf("drop of the live one: %v", err)
	}
	wait.Until(t, func() error { // serve must have reported that it reads another generation
		_, err := c.run("projection", "drop", "1")
		return err
	})
	var list []projections.Generation
	c.json(&list, "projection", "list")
	if len(list) != 2 || list[0].State != "dropped" || list[0].Seq != nil || list[1].State != "live" ||
		*list[1].Seq != 41 {
		t.Errorf("list %+v", list)
	}
	if out, err := c.run("projection", "list"); err != nil || !strings.Contains(out, "1   dropped  none") ||
		!strings.Contains(out, "2   live     41") {
		t.Errorf("list: %v\n%s", err, out)
	}
	out, err := c.run("projection", "rebuild", "--no-switch")
	if err != nil || !strings.Contains(out, "generation 2 (live) and generation 3 at seq 41") ||
		!strings.HasSuffix(out, "generation 3 is in standby: `navlog projection switch 3` makes it live\n") {
		t.Errorf("rebuild: %v\n%s", err, out)
	}
	answers("2")

	loaded, err := config.Load(c.file, os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := loaded.ClickHouse.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Exec(t.Context(),
		"ALTER TABLE "+loaded.ClickHouse.Database(2)+".events DELETE WHERE seq = 5 SETTINGS mutations_sync = 2"); err != nil {
		t.Fatal(err)
	}
	if out, err := c.run("verify", "--no-chain"); cli.CodeOf(err) != cli.Different {
		t.Errorf("for a generation that lost a row, the exit code of verify is %d: %v\n%s", cli.CodeOf(err), err, out)
	}

	if _, err := c.registry().Exec(t.Context(), "UPDATE generation SET outdated = true WHERE id = 3"); err != nil {
		t.Fatal(err)
	}
	if out, err := c.run("projection", "rollback"); err != nil ||
		!strings.HasPrefix(out, "generation 3: live\nit lacks later changes of vaults: project builds another") {
		t.Errorf("rollback to an outdated generation: %q, %v", out, err)
	}
}

// TestRebuiltIsJSON checks that the output of `rebuild --json` can be decoded.
func TestRebuiltIsJSON(t *testing.T) {
	var out bytes.Buffer
	in := &projections.Rebuilt{Generation: 2, Live: true, Parity: &verify.Parity{Live: 1, New: 2, Seq: 9}}
	if err := printRebuilt(cli.Output{JSON: true}, &out, in, true); err != nil {
		t.Fatal(err)
	}
	var back projections.Rebuilt
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back.Parity.Seq != 9 || !back.Live {
		t.Errorf("%s is read as %+v, %v", out.String(), back, err)
	}
}
