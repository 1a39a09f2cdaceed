package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/navlog/navlog/deploy/bench"
	"github.com/navlog/navlog/deploy/bench/workload"
)

const (
	// exported is the maximum number of rows exported from a list.
	exported = 1_000_000
	// leastRows is the minimum number of rows for the rate of a list to be meaningful.
	leastRows = 50_000
)

// export downloads whole lists as CSV, one after the other, as curl would, while the chain grows.
func (w *world) export(ctx context.Context) ([]bench.Bar, error) {
	ctx, s, stop, err := w.serveLive(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	vault := api + "/vaults/" + workload.VaultAddress(0).Hex()
	user := api + "/users/" + workload.Router.Hex()
	lists := []string{
		api + "/events", vault + "/events", vault + "/deposits", vault + "/withdrawals", vault + "/nav", user + "/deposits",
		user + "/withdrawals",
		api + "/queues/withdrawals", api + "/queues/deposits", api + "/users", api + "/users?sortBy=totalDeposited",
		vault + "/users",
		api + "/partner/deposits",
	}
	fmt.Println("\nexport, one at a time: rows, rows/s")
	least := math.Inf(1)
	for _, list := range lists {
		rows, took, err := w.take(ctx, s.addr, list, w.newestKnown())
		if err != nil {
			return nil, fmt.Errorf("take %s: %w", list, err)
		}
		rate := float64(rows) / took.Seconds()
		fmt.Printf("%-70s %9d %9.0f\n", list, rows, rate)
		if rows >= leastRows {
			least = min(least, rate)
		}
	}
	memory, err := s.memory()
	if err != nil {
		return nil, err
	}
	if math.IsInf(least, 1) {
		return nil, fmt.Errorf("no list has %d rows: make a larger data set", leastRows)
	}
	return []bench.Bar{
		{Name: "export-rows-s", Value: least, Bound: 50_000, Least: true},
		{Name: "export-memory-mib", Value: memory, Bound: mostMemory},
	}, nil
}

// take reads a list as of a block, to its end or up to the maximum number of rows.
func (w *world) take(
	ctx context.Context, addr, list string, block uint64,
) (rows int, took time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began := time.Now()
	mark := "?"
	if strings.Contains(list, mark) {
		mark = "&"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		fmt.Sprintf("http://%s%s%sformat=csv&asOfBlock=%d", addr, list, mark, block), nil)
	if err != nil {
		return 0, 0, err
	}
	if strings.Contains(list, "/partner/") {
		req.Header.Set("x-api-key", w.keys[workload.BigPartner])
	}
	transport := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return 0, 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return 0, 0, fmt.Errorf("%s: %s", resp.Status, said)
	}
	lines := bufio.NewReaderSize(resp.Body, 64<<10)
	for rows = -1; rows < exported; rows++ { // the first line is the header
		_, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, 0, err
		}
	}
	return rows, time.Since(began), nil
}
