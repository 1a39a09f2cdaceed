package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/navlog/navlog/deploy/engines"
	"github.com/navlog/navlog/deploy/testkit/stack"
	"github.com/navlog/navlog/deploy/testkit/wait"
)

const (
	ponderDir    = "deploy/bench/ingest/ponder"
	ponderSchema = "bench"
	// ponderFinality is how far below the head Ponder considers a block of an unknown chain final. Newer blocks take a
	// slower path.
	ponderFinality = 30
	// ponderPatience is much longer than the slowest run worth waiting for.
	ponderPatience = 15 * time.Minute
)

// ponder lets Ponder index the chain, and returns how long that took.
func (b *benchmark) ponder(ctx context.Context, c *chain) (_ time.Duration, err error) {
	// Not npm ci, which also demands the packages that the lock file lists for every other platform.
	if out, err := exec.CommandContext(ctx, "npm", "--prefix", ponderDir, "install", "--no-save", "--ignore-scripts",
		"--no-audit", "--no-fund", "--loglevel=error").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("fetch Ponder from npm: %w: %.300s", err, out)
	}
	dir, err := engines.RunDir(b.Data, b.Keep)
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	db, err := engines.StartPostgres(ctx, filepath.Join(dir, "postgres"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	addr, err := engines.FreeAddr()
	if err != nil {
		return 0, err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return 0, err
	}
	home, err := filepath.Abs(ponderDir)
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(filepath.Join(home, "node_modules", ".bin", "ponder"), "start", "--schema", ponderSchema, "--port",
		port, "--hostname", "127.0.0.1", "--log-level", "warn")
	cmd.Dir, cmd.Env = home, stack.Environment(
		"DATABASE_URL="+db.URL, "BENCH_RPC="+c.URL, "BENCH_VAULT="+c.vault.Hex(),
		"BENCH_START="+strconv.FormatUint(c.start, 10), "BENCH_END="+strconv.FormatUint(c.last, 10),
		"PONDER_TELEMETRY_DISABLED=true", "CI=true",
	)
	if err := c.mine(ctx, ponderFinality); err != nil {
		return 0, err
	}
	began := time.Now()
	p, err := stack.Launch(cmd, filepath.Join(dir, "ponder.log"))
	if err != nil {
		return 0, err
	}
	run := programs{"ponder": p}
	defer run.stop()
	bounded, cancel := context.WithTimeout(ctx, ponderPatience)
	defer cancel()
	if err := run.until(bounded, visibleEvery,
		func() bool { return wait.Answers(bounded, "http://"+addr+"/ready") == nil }); err != nil {
		return 0, fmt.Errorf("run Ponder: %w", err)
	}
	took := time.Since(began)
	rows, err := countRows(ctx, db.URL)
	if err != nil {
		return 0, err
	}
	if rows != c.logs {
		return 0, fmt.Errorf("count what Ponder indexed: it is ready with %d of %d events", rows, c.logs)
	}
	return took, nil
}

func countRows(ctx context.Context, url string) (rows uint64, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, fmt.Errorf("count what Ponder indexed: %w", err)
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM "+ponderSchema+".fact").Scan(&rows); err != nil {
		return 0, fmt.Errorf("count what Ponder indexed: %w", err)
	}
	return rows, nil
}
