// Command rebuild is the benchmark `make bench-rebuild`: how fast navlog rebuilds its read models from a log, and how
// soon a new block is visible.
//
//	log (embedded Kafka, cached) ─┬─ `navlog project`: builds the first generation
//	                              ├─ `navlog projection rebuild`: the next one, to the switch   ◀─ timed
//	                              └─ live: one block after the other, until all tables have it  ◀─ timed
//
// The log is the difficult one of package workload. Its logs count, including retracted ones and retractions. Block
// records, one record in eleven, are nearly free and do not count. A rebuild is finished when the new generation is
// live and its tables, lists included, are merged.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/navlog/navlog/deploy/bench"
	"github.com/navlog/navlog/deploy/bench/workload"
	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/testkit/stack"
	"github.com/navlog/navlog/deploy/testkit/wait"
	"github.com/navlog/navlog/schemas/readmodel"
	"github.com/navlog/navlog/schemas/registry/db"
)

type benchmark struct {
	Data   string `type:"path" default:"build/bench-rebuild" help:"Folder for the cached log and the engines of a run."`
	Navlog string `type:"existingfile" default:"bin/navlog" help:"The binary to measure."`
	Events int    `default:"10000000" help:"Logs of the chain's history; those of reorganisations come on top."`
	Users  int    `default:"1000000" help:"Users that the log names."`
	Blocks int    `default:"400" help:"Live blocks to time, of 20 logs each."`
}

func main() {
	var b benchmark
	bench.Main("bench-rebuild", "Measure how navlog rebuilds its read models.", &b, nil, b.run)
}

// system holds the engines of one run. The log outlives them.
type system struct {
	*stack.Stack
	dir string
	log *workload.Log
	ch  readmodel.Config
}

func (b *benchmark) start(ctx context.Context) (_ *system, err error) {
	e := new(system)
	if e.dir, err = engines.RunDir(b.Data, false); err != nil {
		return nil, err
	}
	in := stack.In(e.dir)
	// A different chain needs a different log.
	in.Kafka = filepath.Join(b.Data, fmt.Sprintf("log-%d-%d-%d", workload.Version, b.Events, b.Users), "kafka")
	if e.Stack, err = stack.Start(ctx, in); err != nil {
		return nil, err
	}
	e.ch = e.ReadModel()
	bench.Say("making the log of %d events and %d users", b.Events, b.Users)
	e.log, err = workload.OpenLog(ctx, e.Chainlog(),
		workload.Options{Events: b.Events, Users: b.Users, LiveLogs: liveLogs})
	if err == nil {
		err = e.Connect(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, e.stop())
	}
	return e, nil
}

func (e *system) stop() error {
	if e.log != nil {
		e.log.Close()
	}
	return errors.Join(e.Close(), os.RemoveAll(e.dir))
}

// settings of navlog's programs and commands.
var settings = []string{"NAVLOG_CHAIN_ID=" + strconv.Itoa(workload.ChainID), "NAVLOG_OPS_LISTEN=127.0.0.1:0"}

func (b *benchmark) run(ctx context.Context) (err error) {
	e, err := b.start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.stop()) }()
	output := filepath.Join(b.Data, "project.log")
	_ = os.Remove(output) // left by the last run, if any
	project, err := e.Run(b.Navlog, "project", output, settings...)
	if err != nil {
		return err
	}
	defer func() { _ = project.Stop() }() // the exit status does not matter
	last, logs := e.log.Seq, e.log.Logs
	bench.Say("building the first generation of %d records", last)
	began := time.Now()
	if err := e.reaches(ctx, 1, last); err != nil {
		return err
	}
	fmt.Printf("first generation: %.0f events/s\n", rate(logs, time.Since(began)))
	if err := e.merged(ctx, 1); err != nil {
		return err
	}
	took, engine, err := b.rebuild(ctx, e)
	if err != nil {
		return err
	}
	blocks, err := b.liveBlocks(ctx, e)
	if err != nil {
		return err
	}
	bench.Print(
		bench.Bar{Name: "rebuild-events-per-second", Value: rate(logs, took), Bound: 70_000, Least: true},
		bench.Bar{Name: "engine-microseconds-per-event", Value: engine.Seconds() * 1e6 / float64(logs), Bound: 5},
		bench.Bar{Name: "memory-mib", Value: float64(stack.Peak(project.Pid)) / (1 << 20), Bound: 256},
		bench.Bar{Name: "live-block-p50-ms", Value: bench.Quantile(blocks.waits, 0.5), Bound: 40},
		bench.Bar{Name: "live-block-p99-ms", Value: bench.Quantile(blocks.waits, 0.99), Bound: 100},
		bench.Bar{Name: "live-block-engine-ms", Value: bench.Milliseconds(blocks.engine), Bound: 50},
	)
	return nil
}

// rate returns events per second.
func rate(events uint64, took time.Duration) float64 { return float64(events) / took.Seconds() }

// command runs one of navlog's operator commands.
func (b *benchmark) command(ctx context.Context, e *system, args ...string) error {
	cmd := exec.CommandContext(ctx, b.Navlog, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = e.Environment(settings...), os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("navlog %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// rebuild times a second generation next to the first, up to the switch, the comparison included, and returns the
// engine's CPU time up to the end of the merges.
func (b *benchmark) rebuild(ctx context.Context, e *system) (took, engine time.Duration, err error) {
	bench.Say("rebuilding beside it")
	before, err := stack.CPU(e.ClickHouse.Pid)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := b.command(ctx, e, "projection", "rebuild"); err != nil {
		return 0, 0, err
	}
	took = time.Since(began)
	if err := e.merged(ctx, 2); err != nil {
		return 0, 0, err
	}
	after, err := stack.CPU(e.ClickHouse.Pid)
	return took, after - before, err
}

// liveBlocks times blocks at the head without a standby generation.
func (b *benchmark) liveBlocks(ctx context.Context, e *system) (liveCost, error) {
	bench.Say("timing live blocks")
	if err := b.command(ctx, e, "projection", "drop", "1"); err != nil {
		return liveCost{}, err
	}
	return e.live(ctx, b)
}

// merged waits until the tables of a generation are merged as far as they settle after a build.
func (e *system) merged(ctx context.Context, id int32) error {
	var m bench.Merging
	return wait.Poll(ctx, 100*time.Millisecond, func() (bool, error) { return m.Done(ctx, e.Conn, e.ch.Database(id)) })
}

// reaches waits until a generation is live and has reached a seq.
func (e *system) reaches(ctx context.Context, id int32, seq uint64) error {
	bounded, cancel := context.WithTimeout(ctx, 30*time.Minute)
	defer cancel()
	var at uint64
	var failed error
	err := wait.Poll(bounded, 20*time.Millisecond, func() (bool, error) {
		var live db.LiveGenerationRow
		if live, failed = db.New(e.Pool).LiveGeneration(ctx); failed == nil && live.ID == id {
			at, failed = e.position(ctx, id)
		}
		return failed == nil && at >= seq, nil
	})
	if err != nil {
		return fmt.Errorf("generation %d is at seq %d, and not at %d: %w", id, at, seq, errors.Join(err, failed))
	}
	return nil
}

// position returns the seq that a generation has reached.
func (e *system) position(ctx context.Context, id int32) (uint64, error) {
	at, err := readmodel.ReadPosition(ctx, e.Conn, e.ch.Database(id))
	return at.Seq, err
}
