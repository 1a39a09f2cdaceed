package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/navlog/navlog/cmd/internal/cli"
)

func TestStatusForPeople(t *testing.T) {
	var none bytes.Buffer
	if writeStatus(&none, nil); !strings.Contains(none.String(), "no program has run with this registry yet") {
		t.Errorf("the status without programs: %q", none.String())
	}
	ingest := `{"state":"frozen","reason":"block 90 is final, but the chain has another one there","headBlock":125,"indexedBlock":123,"headTime":1700001500,"finalBlock":90,"lagBlocks":2,"lagSeconds":24,"etaSeconds":80,"warning":"nothing more becomes final",
		"backfill":{"fromBlock":1,"block":45,"toBlock":90,"blocksPerSecond":0.56,"logsPerSecond":17.8},
		"calls":[{"method":"eth_getLogs","calls":7,"bytes":900,"units":525},{"method":"eth_getBlockByNumber","calls":2,"bytes":100}],
		"endpoints":[{"name":"https://a.example","state":"up","inUse":true,"subscribed":true,"latencyMs":12.345,"headBlock":125},
			{"name":"https://b.example","state":"rate-limited","limitedUntil":"2026-01-02T03:04:05Z","lastError":"HTTP 429 Too Many Requests","lastErrorAt":"2026-01-02T03:03:05Z"}]}`
	rows := []statusRow{
		{"ingest", "host:1", 300, true, []byte(ingest)},
		{"ingest", "host:11", 300, true,
			[]byte(`{"state":"standby","reason":"another ingest writes this chain's log","headBlock":0,"indexedBlock":0}`)},
		{"project", "host:2", 400, true,
			[]byte(`{"state":"writing","generation":2,"seq":9007199254740993,"derived":true,"lag":0,"recordsPerSecond":6.981306017251485,"vaultWarnings":[{"address":"0xA1","warning":"none of its logs is known"}],"others":[{"state":"x"}]}`)},
		{"serve", "host:3", 6000, false, []byte(`{"state":"serving","generation":1,"indexedBlock":9}`)},
		{"serve", "host:5", 200, true,
			[]byte(`{"state":"serving","generation":2,"indexedBlock":25,"indexedAt":"2023-11-14T22:18:20.000Z"}`)},
		{"serve", "host:6", 200, true, []byte(`{"state":"unready","generation":0}`)},
		{"serve", "host:7", 61000, false, []byte(`{"state":"serving"}`)},
		{"dispatch", "host:4", 100, true, []byte(`[]`)},
		{"dispatch", "host:10", 100, true,
			[]byte(`{"state":"reading","deliveries":{"pending":2,"failed":9},"measuredAt":"2026-01-02T03:04:04Z"}`)},
		{"dispatch", "host:8", 100, true,
			[]byte(`{"state":"reading","intake":true,"lagRecords":4,"lanes":2,"oldestPendingSeconds":75.25,"openBreakers":1,"deliveries":{"pending":3,"failed":10000},"measuredAt":"2026-01-02T03:04:05.147889147Z"}`)},
		{"dispatch", "host:9", 60000, false,
			[]byte(`{"state":"waiting","reason":"no lease","deliveries":{"pending":4},"measuredAt":"2026-01-02T03:04:06Z"}`)},
	}
	var out bytes.Buffer
	if err := (cli.Output{}).Print(&out, nil, func(w io.Writer) { writeStatus(w, rows) }); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"ingest host:1 300ms frozen",
		"project host:2 400ms writing generation 2, seq 9007199254740993, 0 records left, 7.0 records/s serve",
		"host:3 6s unknown (last: serving)", "host:4 100ms unreadable dispatch",
		"host:8 100ms reading reads the referral topics, 4 referrals left, sends to 2 partners, oldest pending delivery " +
			"due for 1m15s, open breakers: 1 dispatch",
		"host:9 1m0s unknown (last: waiting) no lease CHAIN",
		"head block 125 indexed block 123 (2 blocks, 24s behind) final block 90",
		"backfill 50.0%: block 45 of 90, 0 blocks/s, 17 logs/s, 1m20s left",
		"CHAIN, by ingest host:11 standby another ingest writes this chain's log SERVED BY",
		"spent 9 calls, 525 units, 1000 bytes (eth_getLogs: 7, eth_getBlockByNumber: 2)", "frozen block 90 is final, but",
		"another one there warning nothing more becomes final ENDPOINT",
		"https://a.example up, in use, announces blocks 12.3 ms 125",
		"https://b.example rate-limited until 03:04:05 - - 0 0 2026-01-02 03:03:05: HTTP 429 Too Many Requests",
		"DELIVERIES failed 10000 or more pending 3",
		"SERVED BY GENERATION BLOCK host:5 2 25 (100 blocks, 20m0s behind) VAULT WARNING 0xA1 none of its logs is known " +
			"DELIVERIES",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the status lacks %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(text, "host:7") {
		t.Errorf("an instance that ended and was replaced is shown:\n%s", out.String())
	}
	if rows := withoutEnded([]statusRow{{Program: "serve", AgeMs: 3_600_000}}); len(rows) != 1 {
		t.Error("the last instance of a program that is not running is left out")
	}
}
