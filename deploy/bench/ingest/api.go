package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// newestBlock is the block of the vault's newest valuation as the API tells it, 0 where it tells none. A valuation is the
// last log of every block that has logs, and an answer never holds half a block: when it is there, all of them are.
func newestBlock(ctx context.Context, api string, vault common.Address) uint64 {
	var answer struct {
		Data []struct {
			Block string `json:"blockNumber"`
		} `json:"data"`
	}
	if err := getJSON(ctx, api+"/api/v1/vaults/"+vault.Hex()+"/nav?pageSize=1", &answer); err != nil || len(answer.Data) == 0 {
		return 0
	}
	block, _ := strconv.ParseUint(answer.Data[0].Block, 10, 64) // not a number: not there yet
	return block
}

// complete is newestBlock where every question is answered, and 0 while the read models are built for the first time: then
// valuations are known already, and what is derived from all of the log is not.
func complete(ctx context.Context, api string, vault common.Address) uint64 {
	if err := getJSON(ctx, api+"/api/v1/users?pageSize=1", new(struct{})); err != nil {
		return 0
	}
	return newestBlock(ctx, api, vault)
}

var apiClient = &http.Client{Timeout: 10 * time.Second}

func getJSON(ctx context.Context, url string, into any) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := apiClient.Do(q)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, answer.Status)
	}
	return json.Unmarshal(text, into)
}

// wholeLog is nil where the read models, asked past the API, hold exactly the logs of the chain: a run that lost or doubled
// one is no result.
func wholeLog(ctx context.Context, s *system, c *chain) error {
	config := s.ReadModel()
	conn, err := config.Open("")
	if err != nil {
		return err
	}
	defer conn.Close()
	var logs uint64
	err = conn.QueryRow(ctx, "SELECT uniqExactIf((block, log_index), record = 'log' AND sign = 1) * (count() = uniqExact(seq, sub)) FROM "+config.Database(1)+".events").Scan(&logs)
	if err != nil {
		return fmt.Errorf("count the logs in the read models: %w", err)
	}
	if logs != c.logs {
		return fmt.Errorf("the read models hold %d different logs and the chain has %d: this run is no result", logs, c.logs)
	}
	return nil
}

// ingestedBlock is how far the log reaches, as `navlog ingest` tells it; 0 where it does not answer.
func ingestedBlock(ctx context.Context, s *system) uint64 {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.ops["ingest"]+"/metrics", nil)
	if err != nil {
		return 0
	}
	q.Header.Set("Accept-Encoding", "identity") // what packing takes would count as ingest's
	answer, err := apiClient.Do(q)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "navlog_ingest_indexed_block "); ok {
			block, _ := strconv.ParseFloat(value, 64) // not a number: not there yet
			return uint64(block)
		}
	}
	return 0
}
