package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/navlog/navlog/deploy/testkit/stack"
	"github.com/navlog/navlog/schemas/client"
)

// newestBlock returns the block of the vault's newest valuation according to the API, or 0 if there is none. A
// valuation is the last log of every block that has logs, and a response never contains half a block, so when it is
// visible, all logs of its block are.
func newestBlock(ctx context.Context, api *client.Client, vault common.Address) uint64 {
	navs, err := client.Read[[]struct{ BlockNumber string }](api.Get(ctx, "/api/v1/vaults/"+vault.Hex()+"/nav", oneItem))
	if err != nil || len(navs.Data) == 0 {
		return 0
	}
	block, _ := strconv.ParseUint(navs.Data[0].BlockNumber, 10, 64) // not a number: not visible yet
	return block
}

var oneItem = url.Values{"pageSize": {"1"}}

// complete returns newestBlock, or 0 while the read models are built for the first time: valuations are visible by
// then, but not what is derived from the whole log.
func complete(ctx context.Context, api *client.Client, vault common.Address) uint64 {
	if _, err := client.Read[json.RawMessage](api.Get(ctx, "/api/v1/users", oneItem)); err != nil {
		return 0
	}
	return newestBlock(ctx, api, vault)
}

var apiClient = &http.Client{Timeout: 10 * time.Second}

// wholeLog returns an error unless the read models, queried without the API, hold exactly the logs of the chain: a run
// that lost or duplicated a log is not a result.
func wholeLog(ctx context.Context, s *system, c *chain) error {
	if err := s.Connect(ctx); err != nil {
		return err
	}
	var logs uint64
	if err := s.Conn.QueryRow(ctx, "SELECT uniqExactIf((block, log_index), record = 'log' AND sign = 1) * (count() = "+
		"uniqExact(seq, sub)) FROM "+s.ReadModel().Database(1)+".events").Scan(&logs); err != nil {
		return fmt.Errorf("count the logs in the read models: %w", err)
	}
	if logs != c.logs {
		return fmt.Errorf("the read models hold %d different logs and the chain has %d: this run does not count", logs,
			c.logs)
	}
	return nil
}

// ingestedBlock returns the newest block in the log according to `navlog ingest`, or 0 if it does not respond.
func ingestedBlock(ctx context.Context, s *system) uint64 {
	metrics, _ := stack.Metrics(ctx, "http://"+s.ops)
	if block := metrics["navlog_ingest_indexed_block"]; block > 0 { // not NaN
		return uint64(block)
	}
	return 0
}
