package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/navlog/navlog/deploy/bench"
)

// changedLog is the log in which the node changes an amount.
type changedLog struct{ block, index uint64 }

// receipts lets navlog index a chain of b.Logs logs from a node that lies consistently about one amount, and verifies
// the log against the receipts of an honest node.
func (b *benchmark) receipts(ctx context.Context) (_ []bench.Bar, err error) {
	c, err := b.chain(ctx, b.Blocks, b.Logs)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	r := &changedLog{block: c.start + uint64(b.Blocks+1)/2}
	proxy, err := r.startProxy(ctx, c)
	if err != nil {
		return nil, err
	}
	defer proxy.Close()
	s, err := b.start(ctx, c, proxy.URL)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	bench.Say("navlog indexes it from a node that changes log %d of block %d", r.index, r.block)
	if err := s.ingest(ctx, c); err != nil {
		return nil, fmt.Errorf("run navlog: %w", err)
	}
	bench.Say("navlog verify --receipts, by an honest node")
	return r.verify(ctx, s, c)
}

// startProxy starts a proxy in front of the chain's node that replaces the total of a block's last log, a valuation,
// wherever it occurs. Every valuation has a different total, so no other log is changed.
func (r *changedLog) startProxy(ctx context.Context, c *chain) (*httptest.Server, error) {
	var logs []struct {
		Data  hexutil.Bytes  `json:"data"`
		Index hexutil.Uint64 `json:"logIndex"`
	}
	filter := map[string]any{"fromBlock": hexutil.Uint64(r.block), "toBlock": hexutil.Uint64(r.block), "address": c.vault}
	if err := c.rpc.CallContext(ctx, &logs, "eth_getLogs", filter); err != nil {
		return nil, fmt.Errorf("choose a log: %w", err)
	}
	if len(logs) == 0 || len(logs[len(logs)-1].Data) == 0 {
		return nil, fmt.Errorf("choose a log: block %d has none with data", r.block)
	}
	chosen := logs[len(logs)-1]
	r.index = uint64(chosen.Index)
	was := []byte(chosen.Data.String())
	chosen.Data[len(chosen.Data)-1] ^= 1
	is := []byte(chosen.Data.String())
	proxy, err := proxyTo(c.URL)
	if err != nil {
		return nil, err
	}
	proxy.ModifyResponse = func(answer *http.Response) error {
		body, err := io.ReadAll(answer.Body)
		answer.Body = io.NopCloser(bytes.NewReader(bytes.ReplaceAll(body, was, is))) // of the same length
		return err
	}
	return httptest.NewServer(proxy), nil
}

// verify runs the command, which must find that log and nothing else.
func (r *changedLog) verify(ctx context.Context, s *system, c *chain) ([]bench.Bar, error) {
	began := time.Now()
	command := exec.CommandContext(ctx, s.navlog, "verify", "--receipts", "--json")
	var fault bytes.Buffer
	command.Dir, command.Stderr = s.dir, &fault
	command.Env = s.Environment(append(s.settings, "NAVLOG_CHAIN_RPC="+c.URL)...)
	text, err := command.Output()
	seconds := time.Since(began).Seconds()
	var report struct {
		Chosen, Proven, Unprovable, Wrong int
		Findings                          []struct {
			Block uint64
			Why   string
		}
	}
	if decoding := json.Unmarshal(text, &report); decoding != nil {
		return nil, fmt.Errorf("navlog verify --receipts reports nothing (%w): %s", errors.Join(err, decoding),
			fault.String())
	}
	found, why := 0, ""
	for _, f := range report.Findings {
		why = f.Why
		if f.Block == r.block && strings.Contains(f.Why, fmt.Sprintf("log %d,", r.index)) {
			found++
		}
	}
	if report.Wrong != 1 || report.Unprovable != 0 || report.Proven != report.Chosen-1 {
		return nil, fmt.Errorf("log %d of block %d was changed, and of %d blocks %d are proven, %d unprovable and %d "+
			"wrong: %s", r.index, r.block, report.Chosen, report.Proven, report.Unprovable, report.Wrong, why)
	}
	fmt.Printf("receipts: one amount changed among %d logs\n", c.logs)
	row("proven", "%d of %d blocks in %.1f s, %.0f logs/s", report.Proven, report.Chosen, seconds, float64(c.logs)/seconds)
	row("found in block", "%d: %s", r.block, why)
	return []bench.Bar{{Name: "changed-amounts-found", Value: float64(found), Bound: 1, Least: true}}, nil
}
