// Command rebuild is the benchmark `make bench-rebuild`: how fast navlog makes
// its read models anew from a log, beside what ClickHouse takes for the same
// rows when they only have to be inserted, and how soon a new block is visible.
//
//	log (embedded Kafka, cached) ─┬─ `navlog project`: builds the first generation
//	                              ├─ `navlog projection rebuild`: the next one, to the switch   ◀─ timed
//	                              ├─ bare: the rows of that generation into the same tables     ◀─ timed
//	                              ├─ fed: one table's rows by ClickHouse's own Kafka engine     ◀─ timed
//	                              └─ live: one block after the other, until all tables have it  ◀─ timed
//
// The rows of the bare insert are read back from the generation as native
// blocks, which is not timed, and sent as they are: no insert can do less.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"github.com/navlog/navlog/deploy/bench"
	"github.com/navlog/navlog/deploy/child"
	"github.com/navlog/navlog/deploy/local"
	"github.com/navlog/navlog/projections"
	"github.com/navlog/navlog/schemas/readmodel"
)

type benchmark struct {
	Data   string `type:"path" default:"build/bench-rebuild" help:"Folder for the cached log and the engines of a run."`
	Navlog string `type:"existingfile" default:"bin/navlog" help:"The binary to measure."`
	Events int    `default:"10000000" help:"Records of the log."`
	Users  int    `default:"1000000" help:"Users that the log names."`
	Blocks int    `default:"200" help:"Live blocks to time, of 20 logs each."`
	Chunk  int    `default:"50000" help:"Records whose rows the bare insert sends at once."`
	Fed    int    `default:"1000000" help:"Records that ClickHouse's own Kafka engine is given to read."`
}

func main() {
	var b benchmark
	kong.Parse(&b, kong.Name("bench-rebuild"), kong.Description("Measure how navlog rebuilds its read models."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := b.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-rebuild:", err)
		os.Exit(1)
	}
}

// engines of one run. The log outlives them.
type engines struct {
	dir        string
	kafka      *local.Kafka
	clickHouse *local.ClickHouse
	postgres   *local.Postgres
	config     string
	ch         readmodel.Config
	conn       driver.Conn
}

func (b *benchmark) start(ctx context.Context) (e *engines, err error) {
	if err := os.MkdirAll(b.Data, 0o755); err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	e = new(engines)
	if e.kafka, err = openLog(ctx, b); err != nil {
		return nil, err
	}
	if e.dir, err = local.RunDir(b.Data, false); err == nil {
		e.clickHouse, err = local.StartClickHouse(ctx, filepath.Join(e.dir, "clickhouse"), 0)
	}
	if err == nil {
		e.postgres, err = local.StartPostgres(ctx, filepath.Join(e.dir, "postgres"), 0)
	}
	if err == nil {
		err = e.configure()
	}
	if err != nil {
		return nil, errors.Join(err, e.stop())
	}
	return e, nil
}

// configure writes navlog.yaml and connects.
func (e *engines) configure() error {
	port, err := freePort()
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(map[string]any{
		"chain":      map[string]any{"id": chainID},
		"kafka":      map[string]any{"brokers": []string{e.kafka.Addr}},
		"clickhouse": map[string]any{"addr": e.clickHouse.Addr},
		"postgres":   map[string]any{"url": e.postgres.URL},
		"ops":        map[string]any{"listen": port},
	})
	if err != nil {
		return err
	}
	e.config = filepath.Join(e.dir, "navlog.yaml")
	if err := os.WriteFile(e.config, text, 0o600); err != nil {
		return err
	}
	e.ch = readmodel.DefaultConfig()
	e.ch.Addr = e.clickHouse.Addr
	e.conn, err = e.ch.Open()
	return err
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func (e *engines) stop() error {
	var faults []error
	if e.conn != nil {
		faults = append(faults, e.conn.Close())
	}
	if e.clickHouse != nil {
		faults = append(faults, e.clickHouse.Close())
	}
	if e.postgres != nil {
		faults = append(faults, e.postgres.Close())
	}
	if e.kafka != nil {
		faults = append(faults, e.kafka.Close())
	}
	return errors.Join(append(faults, os.RemoveAll(e.dir))...)
}

func (b *benchmark) run(ctx context.Context) (err error) {
	e, err := b.start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.stop()) }()
	project, stop, err := b.project(e)
	if err != nil {
		return err
	}
	defer stop()
	last, err := newestSeq(ctx, e.kafka.Addr)
	if err != nil {
		return err
	}
	spent := meter{project: project, clickHouse: e.clickHouse.Pid}
	first, err := b.firstBuild(ctx, e, &spent, last)
	if err != nil {
		return err
	}
	rebuilt, err := b.rebuild(ctx, e, &spent, last)
	if err != nil {
		return err
	}
	p99, err := b.liveBlocks(ctx, e, last)
	if err != nil {
		return err
	}
	memory := child.Peak(project)
	bench.Say("inserting the same rows bare")
	bare, rows, err := e.bare(ctx, b, last)
	if err != nil {
		return err
	}
	fmt.Printf("bare insert of the same %d rows: %.1f s, %.0f records/s; what ClickHouse merges later is not in it\n", rows, bare.Seconds(), rate(last, bare))
	if err := e.kafkaEngine(ctx, b, rate(last, rebuilt)); err != nil {
		return err
	}
	bench.Print(os.Stdout,
		bench.Bar{Name: "rebuild-ratio", Value: rebuilt.Seconds() / bare.Seconds(), Bound: 1.4},
		bench.Bar{Name: "rebuild-events-s", Value: rate(last, rebuilt), Bound: 200_000, Least: true},
		bench.Bar{Name: "first-build-events-s", Value: rate(last, first), Bound: 200_000, Least: true},
		bench.Bar{Name: "project-rss-mib", Value: float64(memory) / (1 << 20), Bound: 512},
		bench.Bar{Name: "live-visible-p99-ms", Value: ms(p99), Bound: 50},
	)
	return nil
}

// rate is in records a second.
func rate(records uint64, took time.Duration) float64 { return float64(records) / took.Seconds() }

// project starts navlog project, which writes what it says to a file beside the engines, and gives its process id.
func (b *benchmark) project(e *engines) (pid int, stop func(), err error) {
	said, err := os.Create(filepath.Join(b.Data, "project.log"))
	if err != nil {
		return 0, nil, err
	}
	project := exec.Command(b.Navlog, "project", "--config", e.config)
	project.Env, project.Stdout, project.Stderr = child.Environment(), said, said
	if err := project.Start(); err != nil {
		return 0, nil, errors.Join(fmt.Errorf("start navlog project: %w", err), said.Close())
	}
	return project.Process.Pid, func() {
		_ = project.Process.Signal(syscall.SIGTERM)
		_ = project.Wait() // its end decides nothing any more
		_ = said.Close()
	}, nil
}

// command runs one of the operator's commands of navlog.
func (b *benchmark) command(ctx context.Context, e *engines, args ...string) error {
	cmd := exec.CommandContext(ctx, b.Navlog, append(args, "--config", e.config)...)
	cmd.Env, cmd.Stdout, cmd.Stderr = child.Environment(), os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("navlog %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// firstBuild times how navlog project fills its first generation up to the end of the log.
func (b *benchmark) firstBuild(ctx context.Context, e *engines, spent *meter, last uint64) (time.Duration, error) {
	bench.Say("building the first generation of %d records", last)
	took, err := e.reaches(ctx, 1, last)
	if err != nil {
		return 0, err
	}
	building, err := spent.read()
	if err != nil {
		return 0, err
	}
	fmt.Printf("first generation: %.1f s, %.0f records/s, %s\n", took.Seconds(), rate(last, took), building.each(last))
	return took, e.merged(ctx, 1)
}

// rebuild times a second generation beside the first, up to the switch.
func (b *benchmark) rebuild(ctx context.Context, e *engines, spent *meter, last uint64) (time.Duration, error) {
	bench.Say("rebuilding beside it")
	began := time.Now()
	if err := b.command(ctx, e, "projection", "rebuild"); err != nil {
		return 0, err
	}
	took := time.Since(began)
	rebuilding, err := spent.read()
	if err != nil {
		return 0, err
	}
	fmt.Printf("rebuild to the switch: %.1f s, %.0f records/s, %s\n", took.Seconds(), rate(last, took), rebuilding.each(last))
	return took, e.merged(ctx, 2)
}

// liveBlocks times blocks at the head with the standby generation and, for the percentile that it gives, without.
func (b *benchmark) liveBlocks(ctx context.Context, e *engines, last uint64) (p99 time.Duration, err error) {
	bench.Say("timing live blocks")
	beside, err := e.live(ctx, b, last)
	if err != nil {
		return 0, err
	}
	if err := b.command(ctx, e, "projection", "drop", "1"); err != nil {
		return 0, err
	}
	alone, err := e.live(ctx, b, last+uint64(b.Blocks)*(liveLogs+1))
	if err != nil {
		return 0, err
	}
	printLive("with a standby generation beside the live one", beside)
	return printLive("with the live generation alone", alone), nil
}

// printLive prints how long live blocks took, which are in ascending order, and gives the 99th percentile.
func printLive(how string, waits []time.Duration) time.Duration {
	p99 := waits[(len(waits)*99+99)/100-1]
	fmt.Printf("live blocks of %d logs %s, from commit to all tables: p50 %.1f ms, p99 %.1f ms, of %d\n", liveLogs, how, ms(waits[len(waits)/2]), ms(p99), len(waits))
	return p99
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// merged waits until a generation lies as it does a while after it was built.
func (e *engines) merged(ctx context.Context, id int32) error {
	for began := time.Now(); ; {
		done, err := projections.Merged(ctx, e.conn, e.ch.Database(id))
		if err != nil {
			return err
		}
		if done {
			fmt.Printf("generation %d merged after %.0f s more\n", id, time.Since(began).Seconds())
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// reaches waits until every table of a generation has a seq, and tells how long it took.
func (e *engines) reaches(ctx context.Context, id int32, seq uint64) (time.Duration, error) {
	began := time.Now()
	for {
		at, err := e.position(ctx, id)
		if err == nil && at >= seq {
			return time.Since(began), nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
		if time.Since(began) > 30*time.Minute {
			return 0, fmt.Errorf("generation %d is at seq %d after 30 minutes, and not at %d: %w", id, at, seq, err)
		}
	}
}

// position is how far every table of a generation is.
func (e *engines) position(ctx context.Context, id int32) (uint64, error) {
	var all []uint64
	for _, table := range readmodel.Tables {
		seq, err := readmodel.LastSeq(ctx, e.conn, e.ch.Database(id), table)
		if err != nil {
			return 0, err
		}
		all = append(all, seq)
	}
	return slices.Min(all), nil
}
